"""Run the verification list, or the checks in a user's own files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np

from jfric.errors import ProblemError, nearest
from jfric.files.config import Check, Config, time_span
from jfric.files.read_toml import load_config
from jfric.files.solver_choice import (
    SETTINGS,
    SOLVERS,
    choose_solver,
    solver_label,
    uses_exact_flow,
)
from jfric.results.quantity import Quantity, parse_quantity, resolve
from jfric.results.solution import Solution
from jfric.results.status import Status
from jfric.solvers.event_driven.kernels import Kernel, require_kernel
from jfric.solvers.event_driven.solver import EventDriven
from jfric.system.naming import set_parameters
from jfric.verification.case import EXACT, RUNGE_KUTTA, Case
from jfric.verification.compare_kernels import agreement
from jfric.verification.configs import files_in, shipped
from jfric.verification.evaluate import COUNTS, Trajectory, needed_times
from jfric.verification.jobs import Job, Refused, batches, outcomes, side_by_side
from jfric.verification.periodic_checks import (
    PeriodicJob,
    is_periodic,
    periodic_job,
    periodic_results,
)
from jfric.verification.result import Result, compare, not_run, refused, whole
from jfric.verification.static_checks import StaticJob, is_static, static_job, static_results

#: Error of the Runge-Kutta flow at rtol = RTOL, relative to the scale of a quantity.
RUNGE_KUTTA_ERROR = 1e-7
RTOL = 1e-10

#: Stands for every kernel by its name; "auto" is one of them.
ALL = "all"
KERNELS = tuple(name for name in get_args(Kernel) if name != "auto")

Progress = Callable[[int, int, str], None]
AnyJob = Job | StaticJob | PeriodicJob | Refused
Jobs = list[AnyJob]
#: Told of each job: what was computed for it (a :class:`Trajectory`, the values of a static or
#: periodic one, or the error in place of them) and what came of its checks.
Each = Callable[[AnyJob, Any, list[Result]], None]


def verify(
    paths: Sequence[str | os.PathLike[str]] | None = None,
    *,
    case: str | None = None,
    flow: str | None = None,
    kernel: str | None = None,
    progress: Progress | None = None,
    remark: Callable[[str], None] | None = None,
    each: Each | None = None,
    outputs: int = 0,
) -> list[Result]:
    """Run the shipped verification list, or every ``[[check]]`` in the files and folders ``paths``.

    ``case`` keeps the cases of this name only (``janovsky*`` keeps all that match). ``flow``
    keeps ``"exact"`` or ``"runge-kutta"``; ``kernel`` takes another form of the event-driven
    computation (see :class:`jfric.EventDriven`) and keeps the trajectories that it can run;
    ``"all"`` runs each with every kernel that can, and checks that they agree.
    Trajectories of equal structure run as one batch.
    ``progress(done, total, case)`` is called at the start and after each job: the trajectory, the
    equilibria or the orbit of a case by one solver, as they run side by side; ``case`` is the one
    just finished, the first one at the start. A file that is refused, and a program that cannot
    be compiled or run on this machine, is a failed result, and the others go on.
    ``remark(sentence)`` is told which files hold nothing to verify.
    ``each(job, computed, results)`` is told of every job when it is done, trajectories with this
    many further ``outputs``, evenly spaced; no check sees these.

    Raises :class:`jfric.ProblemError` for a single bad file and unknown cases. Needs float64.
    A case of the list::

        >>> results = jfric.verify(case="c8_incline")
        >>> {result.case for result in results}, all(result.passed for result in results)
        ({'c8_incline'}, True)
    """
    every = file_jobs(paths, flow, remark) if paths else listed_jobs(case, flow)
    if paths:
        every = _selected(every, case, lambda job: job.case)
    if flow is not None and not every:
        raise ProblemError(f"flow: no case runs with {flow!r}")
    if kernel is not None:
        every = _with_kernel(every, kernel)
    if outputs:
        every = [_with_outputs(job, outputs) for job in every]
    order = {id(job): i for i, job in enumerate(every)}
    found: list[tuple[int, list[Result]]] = []

    def keep(job: AnyJob, computed: Any, results: list[Result]) -> None:
        found.append((order[id(job)], results))
        if each is not None:
            each(job, computed, results)

    compared: dict[Any, list[tuple[Job, Trajectory]]] = {}
    groups = batches([job for job in every if isinstance(job, Job)])
    count = 0

    def done(jobs: int, case: str) -> None:
        nonlocal count
        count += jobs
        if progress:
            progress(count, len(every), case)

    # Orbits take longest, and large groups compile longest: first.
    works: list[Sequence[AnyJob]] = [[job] for job in every if not isinstance(job, Job)]
    works += sorted(groups, key=lambda group: -len(group))
    if works:
        done(0, works[0][0].case)
    for index, computed in side_by_side([partial(_computed, jobs) for jobs in works]):
        for job, (one, results) in zip(works[index], computed, strict=True):
            keep(job, one, results)
            forms = kernel == ALL and isinstance(one, Trajectory)
            if forms and isinstance(job, Job) and job.kernel:
                compared.setdefault((job.case, job.settings), []).append((job, one))
        done(len(works[index]), works[index][0].case)
    for same in compared.values():
        first, *others = sorted(same, key=lambda x: order[id(x[0])])
        found += [(order[id(other[0])], agreement(*first, *other)) for other in others]
    return [result for _, results in sorted(found, key=lambda x: x[0]) for result in results]


def _computed(jobs: Sequence[AnyJob]) -> list[tuple[Any, list[Result]]]:
    """What trajectories of equal structure, or one job of another kind, compute, and the checks."""
    first = jobs[0]
    if isinstance(first, StaticJob):
        return [static_results(first)]
    if isinstance(first, PeriodicJob):
        return [periodic_results(first)]
    if isinstance(first, Refused):
        return [(None, [refused(first.case, first.reason)])]
    group = [job for job in jobs if isinstance(job, Job)]
    return [(one, _results(job, one)) for job, one in zip(group, outcomes(group), strict=True)]


def _with_kernel(every: Jobs, kernel: str) -> Jobs:
    """The trajectories that this kernel can run, with it; with all of them each trajectory as often
    as there are kernels that can run it, the general one first, and everything else as it is."""
    if kernel != ALL:
        require_kernel(kernel)
    found: Jobs = []
    for job in every:
        if isinstance(job, Job) and isinstance(job.solver, EventDriven):
            kernels = KERNELS if kernel == ALL else (kernel,)
            found += [made for name in kernels if (made := _by_kernel(job, name)) is not None]
        elif kernel == ALL:
            found.append(job)
    if not found:
        raise ProblemError(f"kernel: no case runs with {kernel!r}")
    return found


def _by_kernel(job: Job, kernel: str) -> Job | None:
    """The same with this kernel, if it can run it."""
    solver = dataclasses.replace(job.solver, kernel=kernel)
    try:
        solver.has_small_passes(job.problem)
    except ProblemError:
        return None
    label = f"{job.label}, {kernel} kernel"
    return dataclasses.replace(job, solver=solver, label=label, kernel=kernel)


def _with_outputs(job: AnyJob, count: int) -> AnyJob:
    """The same with further times for whoever looks at the trajectory."""
    if not isinstance(job, Job):
        return job
    return dataclasses.replace(job, further=np.linspace(job.ts[0], job.ts[-1], count))


def _results(job: Job, found: Trajectory | Exception) -> list[Result]:
    """The checks of a job, all failed where it could not run or be judged."""
    if isinstance(found, Exception):
        return not_run(job.case, job.label, job.checks, found)
    try:
        return judge(job, found)
    except ProblemError as error:
        return not_run(job.case, job.label, job.checks, error)


def listed_jobs(case: str | None = None, flow: str | None = None) -> Jobs:
    """Jobs of the shipped list."""
    from jfric.verification.cases import cases

    configs: dict[str, Config] = {}
    jobs: Jobs = []
    for entry in _selected(cases(), case, lambda entry: entry.name):
        if entry.config not in configs:
            configs[entry.config] = load_config(shipped(entry.config))
        config = configs[entry.config]
        if entry.set:
            problem = set_parameters(config.problem, entry.set)
            config = dataclasses.replace(config, problem=problem, checks=())
        if entry.solver:
            config = dataclasses.replace(config, solver=entry.solver, checks=())
        jobs += _case_jobs(entry, config, flow)
    return jobs


def _case_jobs(
    entry: Case, config: Config, flow: str | None
) -> list[Job | StaticJob | PeriodicJob]:
    further = tuple(
        Check(
            resolve(parse_quantity(e.quantity), config.problem),
            e.value,
            tolerance=e.tolerance,
            source=e.source,
        )
        for e in entry.expected
    )
    # Closed-form values of the list are held to its tighter tolerance; published ones stay.
    repeated = {check.quantity for check in further}
    own = [c for c in config.checks if c.relative is not None or c.quantity not in repeated]
    every = (*own, *further)
    checks = tuple(check for check in every if not (is_static(check) or is_periodic(check)))
    jobs: list[Job | StaticJob | PeriodicJob] = []
    if flow in (None, "auto"):
        jobs += static_job(entry.name, config, every)
        jobs += periodic_job(entry.name, config, every)
    if every and not checks:
        return jobs
    if config.solver.get("name", SOLVERS[0]) != SOLVERS[0]:
        # A file that names another solver is verified with that one.
        if flow not in (None, "auto"):
            return jobs
        relative = 0.0 if entry.solver else entry.relative
        return [*jobs, _job(entry.name, config, checks, relative, entry.sequence)]
    linear = uses_exact_flow(config.problem)
    for each in entry.flows:
        if (each == EXACT and not linear) or flow not in (None, "auto", each):
            continue
        if flow == "auto" and each != (EXACT if linear else RUNGE_KUTTA):
            continue
        # A file that says how exact it wants to be is held to that.
        own = "rtol" in config.solver
        loose = each == RUNGE_KUTTA and not own
        relative = max(RUNGE_KUTTA_ERROR, entry.relative) if loose else entry.relative
        rtol = RTOL if loose else None
        jobs.append(
            _job(entry.name, config, checks, relative, entry.sequence, flow=each, rtol=rtol)
        )
    return jobs


def file_jobs(
    paths: Iterable[str | os.PathLike[str]],
    flow: str | None = None,
    remark: Callable[[str], None] | None = None,
) -> Jobs:
    """Jobs of the files and folders of a user, for each file that holds checks. A file that is
    refused is a job as well, unless it is the only one; ``remark`` is told of the others."""
    files = named_files(paths)
    jobs: Jobs = []
    for name, path in files.items():
        try:
            found, why = _jobs_in(path, name, flow)
        except ProblemError as error:
            if len(files) == 1:
                raise
            found, why = [Refused(name, str(error))], ""
        jobs += found
        if why and remark is not None:
            remark(f"{path}: {why}")
    if not jobs and flow is None:
        raise ProblemError(
            f"found no [[check]] in {', '.join(map(str, files.values()))}; nothing to verify"
        )
    return jobs


def named_files(paths: Iterable[str | os.PathLike[str]]) -> dict[str, Path]:
    """Files of a user among ``paths`` by what their case is called."""
    files = files_in([Path(p) for p in paths])
    stems = [path.stem for path in files]
    return {path.stem if stems.count(path.stem) == 1 else str(path): path for path in files}


def _jobs_in(path: Path, name: str, flow: str | None) -> tuple[Jobs, str]:
    """Jobs of one file, or why it has none."""
    config = load_config(path)
    if not config.checks:
        return [], "found no [[check]], nothing to verify"
    jobs: Jobs = [
        *static_job(name, config, config.checks),
        *periodic_job(name, config, config.checks),
    ]
    checks = tuple(c for c in config.checks if not (is_static(c) or is_periodic(c)))
    if not checks:
        return jobs, ""
    solver = str(config.solver.get("name", SOLVERS[0]))
    # Like the shipped cases: --flow keeps what runs with it, and "auto" is right for every solver.
    if flow in (EXACT, RUNGE_KUTTA) and "flow" not in SETTINGS.get(solver, ()):
        return jobs, f"left out, the solver {solver} has no flow {flow!r}"
    if flow == EXACT and not uses_exact_flow(config.problem):
        return jobs, "left out, its modes are not linear with constant coefficients (flow 'exact')"
    chosen = flow if "flow" in SETTINGS.get(solver, ()) else None
    return [*jobs, _job(name, config, checks, 0.0, (), flow=chosen)], ""


def _job(
    name: str,
    config: Config,
    checks: tuple[Check, ...],
    relative: float,
    sequence: tuple[str, ...],
    **settings: Any,
) -> Job:
    solver, chosen = choose_solver(config.solver, **settings)
    solver.require(config.problem)
    return Job(
        case=name,
        problem=config.problem,
        solver=solver,
        label=solver_label(chosen, config.problem),
        ts=output_times(config, [check.quantity for check in checks]),
        checks=checks,
        relative=relative,
        sequence=sequence,
        settings=tuple(sorted(chosen.items())),
    )


def output_times(config: Config, quantities: Sequence[Quantity]) -> np.ndarray:
    """The end points, and the times that ``quantities`` need."""
    start, end = time_span(config.problem)
    times = {start, end} | needed_times(quantities)
    for time in times:
        if not start <= time <= end:
            raise ProblemError(
                f"{config.path}: a check asks for t = {time:g} s, outside the simulated span "
                f"from {start:g} s to {end:g} s"
            )
    return np.array(sorted(times))


def judge(job: Job, trajectory: Trajectory) -> list[Result]:
    """All checks of a job on its trajectory; an incomplete one is a failed check itself."""
    if job.further.size:
        trajectory = trajectory.at(job.ts)
    solution = trajectory.solution
    about = {"case": job.case, "solver": job.label}
    results = [
        compare(
            check.quantity,
            check.expected,
            trajectory,
            tolerance=check.allowed,
            relative=0.0 if check.quantity.kind in COUNTS else job.relative,
            source=check.source,
            **about,
        )
        for check in job.checks
    ]
    if job.sequence:
        wrong = float(_mismatches(job.sequence, solution))
        results.append(whole(quantity="changes of mode out of order", value=wrong, **about))
    if int(solution.status) != Status.OK:
        name = f"status: {Status(int(solution.status)).message}"
        results.append(whole(quantity=name, value=float(solution.status), **about))
    return results


def _mismatches(sequence: tuple[str, ...], solution: Solution) -> int:
    found = [f"{row['from']} > {row['to']}" for row in solution.event_table()]
    wrong = sum(a != b for a, b in zip(found, sequence, strict=False))
    return wrong + abs(len(found) - len(sequence))


def _selected(entries: list, wanted: str | None, name: Callable[[Any], str]) -> list:
    if wanted is None:
        return entries
    from fnmatch import fnmatchcase

    kept = [entry for entry in entries if fnmatchcase(name(entry), wanted)]
    if not kept:
        names = dict.fromkeys(name(entry) for entry in entries)
        hint = nearest(wanted, names) or f"; there are {', '.join(names)}"
        raise ProblemError(f"--case: no case {wanted!r}{hint}")
    return kept
