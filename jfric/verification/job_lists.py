"""Jobs of a verification: those of the shipped list, or those of a user's files.

The list is read from ``data/cases.toml``: a system with changes and expected values. A file in
``data/`` with the name of a case holds its exact values and its changes of mode; the checks in the
case's configuration file count as well.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args

import numpy as np

from jfric.errors import ProblemError, nearest
from jfric.files.config import Check, Config, outside, time_span
from jfric.files.read_toml import load_config
from jfric.files.solver_choice import (
    SOLVERS,
    choose_solver,
    settings_of,
    solver_label,
)
from jfric.results.quantity import Quantity, parse_quantity, resolve
from jfric.solvers.event_driven.kernels import Kernel, require_kernel
from jfric.solvers.event_driven.solver import EventDriven
from jfric.system.assembly import has_linear_modes
from jfric.system.naming import set_parameters
from jfric.verification.configs import files_in, shipped
from jfric.verification.evaluate import needed_times
from jfric.verification.jobs import Job, Refused, batches
from jfric.verification.system_checks import LABELS, SystemJob, system_jobs

_DATA = Path(__file__).resolve().parent / "data"
_CLOSED_FORM = "closed form"
EXACT, RUNGE_KUTTA = "exact", "runge-kutta"


@dataclass(frozen=True)
class Case:
    """A system, the changes in it, and the expected results.

    ``config``: name of a shipped file. ``set``: changed parameters, by path; the file's own checks
    are used if nothing is changed. ``expected``: published or closed-form values; they have a
    tolerance above zero where the source prints fewer digits. ``relative``: error allowed with the
    exact flow, relative to the expected time or to the peak of the component. ``sequence``: changes
    of mode, such as ``"slip+ > stick"``, in order. ``flows``: each is run if it can represent the
    system. ``solver``: settings of another solver than the event-driven one, for which only the
    tolerances of ``expected`` apply.
    """

    name: str
    config: str
    set: Mapping[str, float] = field(default_factory=dict)
    expected: tuple[Check, ...] = ()
    sequence: tuple[str, ...] = ()
    relative: float = 1e-10
    flows: tuple[str, ...] = (EXACT, RUNGE_KUTTA)
    solver: Mapping[str, Any] = field(default_factory=dict)


def cases() -> list[Case]:
    """All cases, in the order of the table."""
    groups = tomllib.loads((_DATA / "cases.toml").read_text("utf-8"))["group"]
    return [case for group in groups for case in _of_group(**group)]


def _of_group(names: tuple[str, ...] = (), **given: Any) -> Iterator[Case]:
    """Cases of a group: the shipped systems ``names``, or the one case that is ``given``."""
    for name in names:
        path = _DATA / f"{name}.json"
        own = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        yield _case(name=name, config=name, **own, **given)
    if not names:
        yield _case(**given)


def _case(
    expected: Mapping[str, Any] | None = None,
    source: str = _CLOSED_FORM,
    tolerance: float = 0.0,
    sequence: tuple[str, ...] = (),
    **settings: Any,
) -> Case:
    """A case whose ``expected`` values have one source and tolerance, but for those that are tables
    with their own."""
    common = {"tolerance": tolerance, "source": source}
    values = {q: x if isinstance(x, dict) else {"expected": x} for q, x in (expected or {}).items()}
    found = tuple(Check(parse_quantity(q), **{**common, **x}) for q, x in values.items())
    return Case(expected=found, sequence=tuple(sequence), **settings)


#: Error of the Runge-Kutta flow at rtol = RTOL, relative to the scale of a quantity.
RUNGE_KUTTA_ERROR = 1e-7
RTOL = 1e-10

#: Name that stands for every kernel; "auto" is one of them.
ALL = "all"
KERNELS = tuple(name for name in get_args(Kernel) if name != "auto")

AnyJob = Job | SystemJob | Refused
Jobs = list[AnyJob]
#: Groups of jobs that are computed together.
Works = list[Sequence[AnyJob]]


def selected_jobs(
    paths: Sequence[str | os.PathLike[str]],
    case: str | Sequence[str] | None,
    flow: str | None,
    kernel: str | None,
    outputs: int,
    options: Mapping[str, Any],
    remark: Callable[[str], None] | None,
) -> Jobs:
    """All jobs of a verification (see :func:`jfric.verify`); raises :class:`jfric.ProblemError` if
    there are none, or a single file is refused."""
    if paths:
        found = _selected(file_jobs(paths, flow, remark, options), case, lambda job: job.case)
    else:
        found = listed_jobs(case, flow, options)
    if flow is not None and not found:
        raise ProblemError(f"flow: no case runs with {flow!r}")
    if kernel is not None:
        found = _with_kernel(found, kernel)
    return [_with_outputs(job, outputs) for job in found] if outputs else found


def works(jobs: Jobs) -> Works:
    """Groups of jobs that are computed together, in starting order: orbits take longest, and large
    groups compile longest."""
    single: Works = [[job] for job in jobs if not isinstance(job, Job)]
    groups = batches([job for job in jobs if isinstance(job, Job)])
    return [*single, *sorted(groups, key=lambda group: -len(group))]


def _with_kernel(every: Jobs, kernel: str) -> Jobs:
    """The trajectories that this kernel can run, with it. For all kernels each trajectory appears
    once for each kernel that can run it, the general one first, and other jobs are unchanged."""
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
    """Copy of ``job`` with this ``kernel``; None if the kernel cannot run the job."""
    solver = dataclasses.replace(job.solver, kernel=kernel)
    try:
        solver.has_small_passes(job.problem)
    except ProblemError:
        return None
    label = f"{job.label}, {kernel} kernel"
    return dataclasses.replace(job, solver=solver, label=label, kernel=kernel)


def _with_outputs(job: AnyJob, count: int) -> AnyJob:
    """Copy of ``job`` with ``count`` further times, for users of the trajectory."""
    if not isinstance(job, Job):
        return job
    return dataclasses.replace(job, further=np.linspace(job.ts[0], job.ts[-1], count))


def listed_jobs(
    case: str | Sequence[str] | None = None,
    flow: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Jobs:
    """Jobs of the shipped list; with ``options`` only cases whose solver takes these settings."""
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
        if options and not set(options) <= {"name", *settings_of(_solver_of(config))}:
            continue
        config = _with_options(config, options)
        jobs += _case_jobs(entry, config, flow)
    if options and not jobs:
        choose_solver(None, **options)
        raise ProblemError(f"options: no case takes {', '.join(options)}")
    return jobs


def _solver_of(config: Config) -> str:
    """Name of the solver in a file."""
    return str(config.solver.get("name", SOLVERS[0]))


def _with_options(config: Config, options: Mapping[str, Any] | None) -> Config:
    """Copy of ``config`` with ``options`` in place of the same settings of its solver."""
    if not options:
        return config
    return dataclasses.replace(config, solver=choose_solver(config.solver, **options)[1])


def _parted(name: str, config: Config, checks: Sequence[Check]) -> tuple[Jobs, tuple[Check, ...]]:
    """Jobs of the ``checks`` on equilibria and periodic motion, and the checks on trajectories."""
    jobs: Jobs = [*system_jobs(name, config, checks)]
    return jobs, tuple(c for c in checks if c.quantity.kind not in LABELS)


def _case_jobs(entry: Case, config: Config, flow: str | None) -> Jobs:
    further = tuple(
        dataclasses.replace(check, quantity=resolve(check.quantity, config.problem))
        for check in entry.expected
    )
    # Closed-form values of the list have its tighter tolerance; published values keep theirs.
    repeated = {check.quantity for check in further}
    own = [c for c in config.checks if c.relative is not None or c.quantity not in repeated]
    every = (*own, *further)
    jobs, checks = _parted(entry.name, config, every)
    by_flow = flow not in (None, "auto")
    jobs = [] if by_flow else jobs
    if every and not checks:
        return jobs
    if _solver_of(config) != SOLVERS[0]:
        # A file that names another solver is verified with that one.
        relative = 0.0 if entry.solver else entry.relative
        about = checks, relative, entry.sequence
        return [] if by_flow else [*jobs, _job(entry.name, config, *about)]
    linear = has_linear_modes(config.problem)
    wanted = (EXACT if linear else RUNGE_KUTTA) if flow == "auto" else flow
    for each in entry.flows:
        if (each == EXACT and not linear) or wanted not in (None, each):
            continue
        # A file with its own tolerance is verified with that tolerance.
        loose = each == RUNGE_KUTTA and "rtol" not in config.solver
        relative = max(RUNGE_KUTTA_ERROR, entry.relative) if loose else entry.relative
        about = checks, relative, entry.sequence
        jobs.append(_job(entry.name, config, *about, flow=each, rtol=RTOL if loose else None))
    return jobs


def file_jobs(
    paths: Iterable[str | os.PathLike[str]],
    flow: str | None = None,
    remark: Callable[[str], None] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Jobs:
    """Jobs of a user's files and folders, for each file with checks. A refused file is a job as
    well, unless it is the only one; ``remark`` is called for the other files."""
    files = named_files(paths)
    jobs: Jobs = []
    for name, path in files.items():
        try:
            found, why = _jobs_in(path, name, flow, options)
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
    """Files of a user among ``paths``, by the names of their cases."""
    files = files_in([Path(p) for p in paths])
    stems = [path.stem for path in files]
    return {path.stem if stems.count(path.stem) == 1 else str(path): path for path in files}


def _jobs_in(
    path: Path, name: str, flow: str | None, options: Mapping[str, Any] | None
) -> tuple[Jobs, str]:
    """Jobs of one file, or the reason why it has none."""
    config = load_config(path)
    if not config.checks:
        return [], "found no [[check]], nothing to verify"
    config = _with_options(config, options)
    jobs, checks = _parted(name, config, config.checks)
    if not checks:
        return jobs, ""
    solver = _solver_of(config)
    # As for shipped cases: --flow selects what can run with it, and "auto" fits every solver.
    if flow in (EXACT, RUNGE_KUTTA) and "flow" not in settings_of(solver):
        return jobs, f"left out, the solver {solver} has no flow {flow!r}"
    if flow == EXACT and not has_linear_modes(config.problem):
        return jobs, "left out, its modes are not linear with constant coefficients (flow 'exact')"
    chosen = flow if "flow" in settings_of(solver) else None
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
    times = np.array(sorted({start, end} | needed_times(quantities)))
    for time in times[outside(config.problem, times)]:
        raise ProblemError(
            f"{config.path}: a check asks for t = {time:g} s, outside the simulated span "
            f"from {start:g} s to {end:g} s"
        )
    return times


def _selected(
    entries: list, wanted: str | Sequence[str] | None, name: Callable[[Any], str]
) -> list:
    """Entries whose names match one of the words; each word has to match at least one."""
    if not wanted:
        return entries
    words = [wanted] if isinstance(wanted, str) else wanted
    names = dict.fromkeys(name(entry) for entry in entries)
    for word in words:
        if not any(fnmatchcase(x, word) for x in names):
            hint = nearest(word, names) or f"; there are {', '.join(names)}"
            raise ProblemError(f"--case: no case {word!r}{hint}")
    return [entry for entry in entries if any(fnmatchcase(name(entry), word) for word in words)]
