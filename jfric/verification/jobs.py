"""Simulations for a verification, run in batches of equal structure, and their checks."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass, field
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.files.config import Check
from jfric.numerics.compilation import brief_options, single_options
from jfric.numerics.kept_programs import Kept
from jfric.results.quantity import Quantity
from jfric.results.solution import Solution
from jfric.results.status import Status
from jfric.solvers.simulation import simulate
from jfric.system.problem import Problem
from jfric.verification.evaluate import COUNTS, Trajectory, reduced
from jfric.verification.result import NOT_RUN, Result, compare, not_run, whole

#: Number of jobs of equal structure from which on a vmapped batch is faster.
BATCH = 8
#: Number of passes that take a slow program a second, the time to compile a fast program.
BRIEF_PASSES = 2000


@dataclass(frozen=True)
class Job:
    """One trajectory to simulate and its checks.

    ``label``: solver and flow, as shown in tables. ``relative``: allowed error relative to a
    quantity's scale, in addition to each check's own tolerance. ``kernel``: the requested form of
    the computation. ``further``: additional output times without checks.
    """

    case: str
    problem: Problem
    solver: Any
    label: str
    ts: np.ndarray
    checks: tuple[Check, ...]
    relative: float = 0.0
    sequence: tuple[str, ...] = ()
    settings: tuple = field(default=())
    kernel: str = ""
    further: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def outputs(self) -> np.ndarray:
        """All output times of the trajectory."""
        return np.union1d(self.ts, self.further)


@dataclass(frozen=True)
class Refused:
    """A file that cannot be verified, and a sentence with the reason."""

    case: str
    reason: str
    label: ClassVar[str] = ""
    checks: ClassVar[tuple[Check, ...]] = ()


def batches(jobs: list[Job]) -> list[list[Job]]:
    """Groups of jobs whose problems have the same structure and the same solver."""
    groups: dict[Any, list[Job]] = {}
    for job in jobs:
        leaves, structure = jax.tree.flatten(job.problem)
        shapes = tuple(np.shape(leaf) for leaf in leaves)
        key = (job.settings, job.kernel, shapes, structure)
        groups.setdefault(key, []).append(job)
    return list(groups.values())


Motion = tuple["Solution", dict[str, Any]]


def _motion(
    problem: Problem, ts: jax.Array, solver: Any, quantities: tuple[Quantity, ...]
) -> Motion:
    return simulate(problem, solver=solver, ts=ts), reduced(problem, quantities, solver)(problem)


#: Called with ``(problem, ts, solver, quantities)``: motion of ``problem``, and values of those
#: ``quantities`` that no solution holds.
single_motion = Kept(_motion, options=single_options)
_brief_motion = Kept(_motion, options=brief_options)


def motion(problem: Problem, ts: jax.Array, solver: Any, quantities: tuple) -> Motion:
    """Motion of ``problem``, and ``quantities`` that no solution holds, computed once.

    Most motions end before a fast program for them could be compiled. So a program that compiles
    quickly computes the first :data:`BRIEF_PASSES`, and another program computes longer motions.
    """
    if solver.compile_quickly and solver.max_steps > BRIEF_PASSES:
        brief = dataclasses.replace(solver, max_steps=BRIEF_PASSES)
        solution, values = found = _brief_motion(problem, ts, brief, quantities)
        known = all(np.isfinite(x).all() for x in map(np.asarray, values.values()))
        if int(solution.status) != int(Status.MAX_STEPS) and known:
            return found
    return single_motion(problem, ts, solver, quantities)


@Kept
def _motions(problems: Problem, ts: jax.Array, solver: Any, quantities: tuple[Quantity, ...]):
    return eqx.filter_vmap(lambda problem, t: _motion(problem, t, solver, quantities))(problems, ts)


def run_batch(jobs: list[Job]) -> list[Trajectory]:
    """Simulate jobs of equal structure with one compilation, and again if a check needs a quantity
    that no solution holds.

    Many jobs run as one vmapped batch; few run one after the other, which compiles faster.
    """
    size = max(job.outputs.size for job in jobs)
    ts = [jnp.asarray(padded(job.outputs, size)) for job in jobs]
    problems = [jax.tree.map(jnp.asarray, job.problem) for job in jobs]
    quantities = tuple(dict.fromkeys(check.quantity for job in jobs for check in job.checks))
    if len(jobs) < BATCH:
        found = [
            motion(problem, t, jobs[0].solver, quantities)
            for problem, t in zip(problems, ts, strict=True)
        ]
        found = [jax.tree.map(np.asarray, one) for one in found]
    else:
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *problems)
        every = _motions(stacked, jnp.stack(ts), jobs[0].solver, quantities)
        every = jax.tree.map(np.asarray, every)
        found = [jax.tree.map(lambda x, i=i: x[i], every) for i in range(len(jobs))]
    return [Trajectory(job.problem, *one) for job, one in zip(jobs, found, strict=True)]


def trajectory_results(group: list[Job]) -> list[tuple[Trajectory | Exception, list[Result]]]:
    """Trajectories of a group and their checks. If a system is refused, or a program cannot be
    compiled or run on this machine, the error takes the place of each trajectory."""
    try:
        found = run_batch(group)
    except NOT_RUN as error:
        return [(error, not_run(job.case, job.label, job.checks, error)) for job in group]
    return [(one, _judged(job, one)) for job, one in zip(group, found, strict=True)]


def _judged(job: Job, trajectory: Trajectory) -> list[Result]:
    """The checks of a job, all of them failed if a quantity cannot be judged."""
    try:
        return judge(job, trajectory)
    except ProblemError as error:
        return not_run(job.case, job.label, job.checks, error)


def judge(job: Job, trajectory: Trajectory) -> list[Result]:
    """All checks of a job on its trajectory; an incomplete trajectory is a failed check itself."""
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
        seen = [f"{row['from']} > {row['to']}" for row in solution.event_table()]
        wrong = sum(a != b for a, b in itertools.zip_longest(seen, job.sequence))
        results.append(whole(quantity="changes of mode out of order", value=float(wrong), **about))
    if int(solution.status) != Status.OK:
        name = f"status: {Status(int(solution.status)).message}"
        results.append(whole(quantity=name, value=float(solution.status), **about))
    return results


def padded(ts: np.ndarray, size: int) -> np.ndarray:
    """``ts`` with further times in between: different times are no other program then."""
    while ts.size < size:
        gap = int(np.argmax(np.diff(ts)))
        ts = np.insert(ts, gap + 1, 0.5 * (ts[gap] + ts[gap + 1]))
    return ts
