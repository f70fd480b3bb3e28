"""Runner of the jobs of a verification: in threads of this process, or in several processes.

Threads compile in parallel, but Python traces one system at a time. On two processors the shipped
list takes 491 s in two processes, where two threads take 542 s.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any, cast

import jax
import jax.numpy as jnp

from jfric.numerics.compilation import collect_seldom, use_compilation_cache
from jfric.numerics.cores import cores
from jfric.numerics.kept_programs import forget_programs
from jfric.verification.job_lists import AnyJob, Works
from jfric.verification.jobs import Job, Refused, trajectory_results
from jfric.verification.result import Result, not_run, refused
from jfric.verification.system_checks import system_results

#: Largest number of workers: more would only hold more compilations in memory at once.
MAX_WORKERS = 8
#: Groups per process from which on starting it, which takes some seconds, is worthwhile.
SHARE = 8

#: Called with a job and its result: a :class:`Trajectory`, the values of another job,
#: or the error that took their place.
Observe = Callable[[AnyJob, Any], Any]
#: For each job of a group: its result, or the observation of it, and the results of its checks.
Made = Sequence[tuple[Any, list[Result]]]


def useful(count: int) -> int:
    """Useful number of processes for ``count`` groups; one if they would share a GPU."""
    if jax.default_backend() != "cpu":
        return 1
    return max(1, min(cores(), MAX_WORKERS, count // SHARE))


def computed(jobs: Sequence[AnyJob]) -> Made:
    """Values and checks of trajectories of equal structure, or of one job of another kind."""
    first = jobs[0]
    if isinstance(first, Job):
        return trajectory_results(cast(list[Job], list(jobs)))
    if isinstance(first, Refused):
        return [(None, [refused(first.case, first.reason)])]
    return [system_results(first)]


def in_threads(begun: Works, observe: Observe | None) -> Iterator[tuple[int, Made]]:
    """Index and results of each of the groups ``begun``, in the order of completion; the groups
    start in the given order and compile in parallel. Observation runs in the calling thread."""
    double = jnp.result_type(float) == jnp.float64

    def run(jobs: Sequence[AnyJob]) -> Made:
        # A `with jax.enable_x64(True)` of the caller does not reach other threads by itself.
        with jax.enable_x64(double):
            return computed(jobs)

    with ThreadPoolExecutor(max(1, min(cores(), len(begun), MAX_WORKERS))) as pool:
        futures = {pool.submit(run, jobs): i for i, jobs in enumerate(begun)}
        try:
            for future in as_completed(futures):
                index = futures[future]
                yield index, _observed(begun[index], future.result(), observe)
        finally:
            pool.shutdown(cancel_futures=True)


def _observed(jobs: Sequence[AnyJob], made: Made, observe: Observe | None) -> Made:
    """Results with each computed value replaced by the result of ``observe`` for it."""
    if observe is None:
        return made
    return [(observe(job, one), found) for job, (one, found) in zip(jobs, made, strict=True)]


def in_processes(
    begun: Works, number: int, observe: Observe | None, *, wanted: bool
) -> Iterator[tuple[int, Made]]:
    """Index and results of each of the groups ``begun``, in the order of completion, by ``number``
    processes; the computed values come back only if they are ``wanted``."""
    double = jnp.result_type(float) == jnp.float64
    about = (_begin, double, jax.config.values["jax_compilation_cache_dir"], observe, wanted)
    left = dict(enumerate(begun))
    with suppress(BrokenProcessPool), processes(number, *about) as pool:
        futures = {submitted(pool, _one, jobs): i for i, jobs in left.items()}
        for future in as_completed(futures):
            made = future.result()
            del left[futures[future]]
            yield futures[future], made
    # A process has ended: running the groups one by one shows which group caused it.
    while left:
        index = min(left)
        try:
            with processes(1, *about) as pool:
                for index in sorted(left):
                    made = submitted(pool, _one, left[index]).result()
                    del left[index]
                    yield index, made
        except BrokenProcessPool:
            error = RuntimeError("its process ended (out of memory?)")
            lost = left.pop(index)
            yield index, [(error, not_run(x.case, x.label, x.checks, error)) for x in lost]


class _Own:
    """Settings of a worker process, set when the process begins."""

    observe: Observe | None
    wanted: bool


def _begin(double: bool, cache: str | None, observe: Observe | None, wanted: bool) -> None:
    jax.config.update("jax_enable_x64", double)
    if cache is not None:
        use_compilation_cache()
        jax.config.update("jax_compilation_cache_dir", cache)
    collect_seldom()
    _Own.observe, _Own.wanted = observe, wanted


def _one(jobs: Sequence[AnyJob]) -> Made:
    made = _observed(jobs, computed(jobs), _Own.observe)
    # Another structure needs other programs.
    forget_programs()
    return made if _Own.wanted else [(None, found) for _, found in made]


@contextmanager
def processes(
    number: int, begin: Callable[..., None], *about: Any
) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with the block, even during their work; each starts with ``begin``."""
    context = multiprocessing.get_context("spawn")  # jax has threads, which a fork would lose
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(number, context, initializer=_begin_process, initargs=(begin, about))
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise


def _begin_process(begin: Callable[..., None], about: tuple[Any, ...]) -> None:
    # Ctrl-C is handled by the parent process; this process ends when the parent ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    begin(*about)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def submitted(pool: ProcessPoolExecutor, work: Callable[..., Any], *arguments: Any) -> Future:
    """A job for a process, which may start here and ignores Ctrl-C even while it imports."""
    with _interrupted_afterwards():
        if not hasattr(signal, "pthread_sigmask"):
            return pool.submit(work, *arguments)
        # New processes inherit blocked signals.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return pool.submit(work, *arguments)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Block after which Ctrl-C arrives. Blocking the signal is not enough: another thread takes it,
    and Python passes it to this thread between the start of a process and the data for it."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: arrived.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if arrived.is_set():
            signal.raise_signal(signal.SIGINT)
