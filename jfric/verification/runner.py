"""Verification of the shipped list, or of a user's own files, in threads or in several processes.

Threads compile in parallel, but Python traces one system at a time. On two processors the shipped
list takes 491 s in two processes, where two threads take 542 s.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from jfric.numerics.compilation import collect_seldom, use_compilation_cache
from jfric.numerics.cores import cores
from jfric.numerics.kept_programs import forget_programs
from jfric.numerics.limits import require_double
from jfric.results.solution import Events
from jfric.verification.evaluate import Trajectory
from jfric.verification.job_lists import ALL, AnyJob, Works, selected_jobs, works
from jfric.verification.jobs import Job, Refused, trajectory_results
from jfric.verification.result import Result, not_run, refused, whole
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
Progress = Callable[[int, int, str], None]
#: Called for each job with its computed values (or the result of ``observe`` for them, or the error
#: in their place), and the results of its checks.
Each = Callable[[AnyJob, Any, list[Result]], None]
#: Error relative to the scale of a quantity for jobs that do not state one.
UNKNOWN = 1e-7


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


def agreement(first: Job, expected: Trajectory, other: Job, found: Trajectory) -> list[Result]:
    """Checks that the trajectories of ``other`` and ``first`` agree: the same status, flags and
    changes of mode, at times and with positions that differ by no more than the errors of both."""
    a, b = expected.solution, found.solution
    about = {"case": other.case, "solver": other.label}
    than = f"than with the {first.kernel} kernel"
    results = [
        whole(quantity=f"other {name} {than}", value=float(value), **about)
        for name, value in (
            ("status", int(a.status) != int(b.status)),
            ("flags", int(a.flags) ^ int(b.flags)),
            ("events", _unlike(a.events.used(), b.events.used())),
        )
    ]
    scales = (
        ("event times", a.events.used().time, b.events.used().time, float(np.abs(a.ts).max())),
        ("positions", a.q, b.q, float(np.abs(a.q).max(initial=0.0))),
    )
    for name, x, y, scale in scales:
        count = min(len(x), len(y))
        difference = float(np.abs(x[:count] - y[:count]).max(initial=0.0))
        allowed = 2.0 * (other.relative or UNKNOWN) * scale
        results.append(
            Result(
                quantity=f"other {name} {than}",
                expected=0.0,
                value=difference,
                tolerance=allowed,
                **about,
            )
        )
    return results


def _unlike(a: Events, b: Events) -> int:
    """Number of records of the logs that differ in contact, modes, or kind (impact or not)."""

    def records(log: Events):
        columns = (log.contact, log.from_mode, log.to_mode, log.impact)
        return zip(*(np.asarray(x).tolist() for x in columns), strict=True)

    return sum(x != y for x, y in itertools.zip_longest(records(a), records(b)))


def verify(
    paths: Sequence[str | os.PathLike[str]] | None = None,
    *,
    case: str | Sequence[str] | None = None,
    flow: str | None = None,
    kernel: str | None = None,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    remark: Callable[[str], None] | None = None,
    each: Each | None = None,
    observe: Observe | None = None,
    outputs: int = 0,
    processes: int | None = 1,
) -> list[Result]:
    """Run the shipped verification list, or every ``[[check]]`` in the files and folders ``paths``.

    ``case`` keeps the cases of this name, or of these names (``janovsky*`` keeps all matches).
    ``flow`` keeps ``"exact"`` or ``"runge-kutta"``; ``kernel`` takes another form of the
    event-driven computation (see :class:`jfric.EventDriven`) and keeps the trajectories that it can
    run; ``"all"`` runs each with every kernel that can, and checks that they agree. ``options``:
    settings of the solver (``{"rtol": 1e-10}``) in place of those of the files; of the shipped list
    only cases whose solver takes them are kept.
    Trajectories of equal structure run as one batch.
    ``progress(done, total, case)`` is called at the start and after each job: the trajectory, the
    equilibria or the orbit of a case by one solver, as they run side by side; ``case`` is the one
    just finished, or the first one at the start. A refused file, or a program that cannot be
    compiled or run on this machine, is a failed result; the others go on. ``remark(sentence)`` is
    called for each file without checks.
    ``each(job, computed, results)`` is called for every finished job; trajectories have this number
    of additional evenly spaced ``outputs``, which no check uses.
    ``processes``: by default one, with a thread for each processor. More processes are faster,
    because Python traces one system at a time; each of them imports the calling script, which needs
    its ``if __name__ == "__main__"``. ``None``: as many as are useful. A process that ends (for
    lack of memory) fails its current jobs only.
    ``observe(job, computed)`` is called in the process that computed a job, and ``each`` gets its
    result: with several processes both must be transferable (a function of a module).

    Raises :class:`jfric.ProblemError` for a single bad file, unknown cases, and in single
    precision, in which checks are not valid. A case of the list::

        >>> results = jfric.verify(case="c8_incline")
        >>> {result.case for result in results}, all(result.passed for result in results)
        ({'c8_incline'}, True)
    """
    require_double("checks")
    every = selected_jobs(paths or (), case, flow, kernel, outputs, options or {}, remark)
    order = {id(job): i for i, job in enumerate(every)}
    found: list[tuple[int, list[Result]]] = []
    compared: dict[Any, list[tuple[Job, Trajectory]]] = {}
    begun = works(every)
    count = 0

    def done(jobs: int, name: str) -> None:
        nonlocal count
        count += jobs
        if progress:
            progress(count, len(every), name)

    # A comparison of kernels compares whole trajectories.
    if kernel == ALL:
        processes = 1
    number = useful(len(begun)) if processes is None else min(processes, len(begun))
    if number > 1:
        ready = in_processes(begun, number, observe, wanted=each is not None)
    else:
        ready = in_threads(begun, observe)
    if begun:
        done(0, begun[0][0].case)
    for index, made in ready:
        for job, (one, results) in zip(begun[index], made, strict=True):
            found.append((order[id(job)], results))
            if each is not None:
                each(job, one, results)
            forms = kernel == ALL and isinstance(one, Trajectory)
            if forms and isinstance(job, Job) and job.kernel:
                compared.setdefault((job.case, job.settings), []).append((job, one))
        done(len(begun[index]), begun[index][0].case)
    for same in compared.values():
        first, *others = sorted(same, key=lambda x: order[id(x[0])])
        found += [(order[id(other[0])], agreement(*first, *other)) for other in others]
    return [result for _, results in sorted(found, key=lambda x: x[0]) for result in results]
