"""Jobs of a verification in processes of their own.

Threads compile in parallel, but Python traces one system at a time. On two processors the shipped
list takes 491 s in two processes, where two threads take 542 s.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp

from jfric.numerics.compilation import collect_seldom, use_compilation_cache
from jfric.numerics.cores import cores
from jfric.numerics.kept_programs import forget_programs
from jfric.verification.job_lists import AnyJob, Works
from jfric.verification.jobs import MAX_WORKERS, Job, Refused
from jfric.verification.result import Result, not_run, refused
from jfric.verification.run_jobs import computed

#: Works per process from which on its start, some seconds, pays.
SHARE = 8

#: Called with a job and what was computed for it: a :class:`Trajectory`, the values of a static or
#: periodic one, or the error in place of them.
Observe = Callable[[AnyJob, Any], Any]
Made = list[tuple[Any, list[Result]]]


def useful(count: int) -> int:
    """So many processes are of use for ``count`` works; one where they would share a GPU."""
    if jax.default_backend() != "cpu":
        return 1
    return max(1, min(cores(), MAX_WORKERS, count // SHARE))


def in_processes(
    begun: Works,
    number: int,
    observe: Observe | None,
    *,
    wanted: bool,
) -> Iterator[tuple[int, Made]]:
    """Index and results of each of the works ``begun``, in the order of completion, by ``number``
    processes; the computed values come back only where ``wanted``."""
    double = jnp.result_type(float) == jnp.float64
    about = (double, jax.config.values["jax_compilation_cache_dir"], observe, wanted)
    left = set(range(len(begun)))
    with _pool(number, about) as pool:
        try:
            futures = [submitted(pool, _one, i, jobs) for i, jobs in enumerate(begun)]
            for future in as_completed(futures):
                index, made = future.result()
                left.remove(index)
                yield index, made
        except BrokenProcessPool:
            pass
    # A process has ended: which work it was at shows when they run one by one.
    while left:
        index = -1
        with _pool(1, about) as pool:
            try:
                for index in sorted(left):
                    yield submitted(pool, _one, index, begun[index]).result()
                    left.remove(index)
            except BrokenProcessPool:
                yield index, _lost(begun[index])
                left.remove(index)


@contextmanager
def _pool(number: int, about: tuple[Any, ...]) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with the block, whatever they are at."""
    context = multiprocessing.get_context("spawn")  # jax has threads, which a fork would lose
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(number, context, initializer=_begin, initargs=about)
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise


def submitted(pool: ProcessPoolExecutor, work: Callable[..., Any], *arguments: Any) -> Future:
    """A work for a process, which may start here: Ctrl-C is not for it, also while it imports."""
    with _interrupted_afterwards():
        if not hasattr(signal, "pthread_sigmask"):
            return pool.submit(work, *arguments)
        # Processes inherit what is blocked.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return pool.submit(work, *arguments)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Ctrl-C arrives after the block. To block the signal is not enough: another thread takes it,
    and Python hands it to this one, between the start of a process and what that is to read."""
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


class _Own:
    """Settings of a worker process, set when the process begins."""

    observe: Observe | None
    wanted: bool


def _begin(double: bool, cache: str | None, observe: Observe | None, wanted: bool) -> None:
    # Ctrl-C is for the one who started this process; when that one ends, this does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    jax.config.update("jax_enable_x64", double)
    if cache is not None:
        use_compilation_cache()
        jax.config.update("jax_compilation_cache_dir", cache)
    collect_seldom()
    _Own.observe, _Own.wanted = observe, wanted


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _one(index: int, jobs: Sequence[AnyJob]) -> tuple[int, Made]:
    found: Made = []
    for job, (one, results) in zip(jobs, computed(jobs), strict=True):
        if _Own.observe is not None:
            one = _Own.observe(job, one)
        found.append((one if _Own.wanted else None, results))
    # Another structure needs other programs.
    forget_programs()
    return index, found


def _lost(jobs: Sequence[AnyJob]) -> Made:
    """Results of a work whose process has ended."""
    error = RuntimeError("its process ended (out of memory?)")
    found: Made = []
    for job in jobs:
        if isinstance(job, Refused):
            found.append((error, [refused(job.case, job.reason)]))
            continue
        label = job.label if isinstance(job, Job) else ""
        found.append((error, not_run(job.case, label, job.checks, error)))
    return found
