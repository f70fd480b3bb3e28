"""Runner of the jobs of a verification: in threads of this process, or in several processes.

Threads compile in parallel, but Python traces one system at a time. On two processors the shipped
list takes 491 s in two processes, where two threads take 542 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, cast

import jax
import jax.numpy as jnp

from jfric.numerics.compilation import collect_seldom, use_compilation_cache
from jfric.numerics.cores import cores
from jfric.numerics.kept_programs import forget_programs
from jfric.verification.job_lists import AnyJob, Works
from jfric.verification.jobs import Job, Refused, trajectory_results
from jfric.verification.processes import processes, submitted
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
