"""Run the verification list, or the checks in a user's own files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jfric.numerics.limits import require_double
from jfric.results.solution import Events
from jfric.verification.evaluate import Trajectory
from jfric.verification.job_lists import ALL, AnyJob, Selection, works
from jfric.verification.jobs import Job
from jfric.verification.result import Result, judged, whole
from jfric.verification.runner import Observe, in_processes, in_threads, useful

#: Error relative to the scale of a quantity for jobs that do not state one.
UNKNOWN = 1e-7


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
            judged(
                quantity=f"other {name} {than}",
                expected=0.0,
                value=difference,
                allowed=allowed,
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


Progress = Callable[[int, int, str], None]
#: Called for each job with its computed values (or the result of ``observe`` for them, or the error
#: in their place), and the results of its checks.
Each = Callable[[AnyJob, Any, list[Result]], None]


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
    selection = Selection(tuple(paths or ()), case, flow, kernel, outputs, dict(options or {}))
    every = selection.jobs(remark)
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
