"""Runs the jobs of a verification, and judges what comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jfric.errors import ProblemError
from jfric.results.solution import Solution
from jfric.results.status import Status
from jfric.verification.evaluate import COUNTS, Trajectory
from jfric.verification.job_lists import AnyJob
from jfric.verification.jobs import Job, Refused, outcomes
from jfric.verification.periodic_checks import PeriodicJob, periodic_results
from jfric.verification.result import Result, compare, not_run, refused, whole
from jfric.verification.static_checks import StaticJob, static_results


def computed(jobs: Sequence[AnyJob]) -> list[tuple[Any, list[Result]]]:
    """Values and checks of trajectories of equal structure, or of one job of another kind."""
    first = jobs[0]
    if isinstance(first, StaticJob):
        return [static_results(first)]
    if isinstance(first, PeriodicJob):
        return [periodic_results(first)]
    if isinstance(first, Refused):
        return [(None, [refused(first.case, first.reason)])]
    group = [job for job in jobs if isinstance(job, Job)]
    return [(one, _results(job, one)) for job, one in zip(group, outcomes(group), strict=True)]


def _results(job: Job, found: Trajectory | Exception) -> list[Result]:
    """The checks of a job, all failed where it could not run or be judged."""
    if isinstance(found, Exception):
        return not_run(job.case, job.label, job.checks, found)
    try:
        return judge(job, found)
    except ProblemError as error:
        return not_run(job.case, job.label, job.checks, error)


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
