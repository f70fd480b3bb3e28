"""Minimisation of a fit: from several starts, then around the best, then with the noise known."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.free import Layout
from jfric.fits.objective import Objective, Squares, failed
from jfric.fits.optimise.descents import LevenbergMarquardt, Members, Outcome
from jfric.fits.optimise.direct_search import (
    MOST,
    Cloud,
    direct_search,
    explored,
    search_in_steps,
    stepped,
)
from jfric.fits.optimise.searches import nearby
from jfric.fits.recipe import Recipe
from jfric.fits.task import Task
from jfric.fits.uncertainty.residual_series import bandwidth, long_run_covariance
from jfric.numerics.limits import STARTS, require_count
from jfric.results.status import Status

#: Called after each iteration of a fit with the stage, the number of the iteration and the largest
#: possible number, the least cost so far, and the parameters there by name.
Watch = Callable[[str, int, int, float, dict[str, float]], None]
#: Further fits if the noise is unknown, in which weights and parameters settle together.
NOISE_ROUNDS = 2
#: Best starts that are judged for parameters that act in steps.
JUDGED = 2

Minimiser = Callable[[np.ndarray, str], Members]


class Minimum(NamedTuple):
    """The best point (P,) of all starts, its cost, and how it was reached.

    ``waterfall``: result of each start, best first.
    """

    vector: np.ndarray
    cost: float
    outcome: Outcome
    waterfall: list[dict[str, Any]]
    remarks: tuple[str, ...]
    #: Points around the best one, where parameters act in steps.
    cloud: Cloud | None = None


def solve(recipe: Recipe, watch: Watch | None = None) -> tuple[Task, Minimum]:
    """Compute the fit with these arguments; raises :class:`jfric.ProblemError`."""
    task, seed = recipe.setup.task(), recipe.seed
    require_count("starts", recipe.starts, 1, STARTS)
    if seed < 0:
        raise ProblemError(f"seed: found {seed}, must not be negative")
    objective = task.objective
    if recipe.starts == 1:
        # Members that only fill up a call would take sixteen times the work.
        objective.members = 1

    def told(stage: str, iteration: int, most: int, cost: float, x: np.ndarray) -> None:
        if watch is not None:
            values = dict(zip(objective.layout.names, x.tolist(), strict=True))
            watch(stage, iteration, most, cost, values)

    def minimise(x0: np.ndarray, stage: str) -> Members:
        return recipe.optimiser.minimise(objective, x0, seed, functools.partial(told, stage))

    x0 = recipe.search.points(task, recipe.starts, seed)
    if isinstance(recipe.optimiser, LevenbergMarquardt):
        x0 = x0[np.argsort(objective.normal(x0).cost, kind="stable")] if len(x0) > 1 else x0
        which = stepped(objective, x0[:JUDGED])
        if which.any():
            return task, _in_steps(task, x0, which, seed, told)
    return task, _least(task, minimise, x0, seed)


def _least(task: Task, minimise: Minimiser, x0: np.ndarray, seed: int) -> Minimum:
    """The least cost that ``minimise`` (from starts (B, P) to their end points) reaches from x0."""
    objective, layout = task.objective, task.objective.layout
    starts = len(x0)
    members = minimise(x0, "starts")
    waterfall = _waterfall(layout, x0, members)
    best = np.argmin(members.cost)
    if starts > 1 and np.isfinite(members.cost[best]):
        x0 = nearby(objective, members.x[best], starts, seed)
        again = minimise(x0, "around the best")
        waterfall = sorted(waterfall + _waterfall(layout, x0, again), key=lambda w: w["cost"])
        if np.min(again.cost) < members.cost[best]:
            members, best = again, np.argmin(again.cost)
    if not task.noise_is_known or not isinstance(objective.loss, Squares):
        for _ in range(NOISE_ROUNDS):
            if not np.isfinite(members.cost[best]):
                break
            task.estimate_noise(members.x[best])
            members, best = minimise(members.x[best][None], "with the noise"), 0
    vector, cost, remarks = members.x[best], float(members.cost[best]), ()
    stalled = members.outcome[best] == Outcome.STALLED
    if stalled and layout.size > MOST:
        said = (
            "the cost jumps or has a kink at its minimum: intervals from derivatives do not hold "
            f"there; a search without derivatives is tried for at most {MOST} free parameters"
        )
        remarks = (said,)
    elif stalled:
        before = cost
        vector, cost, generations = direct_search(objective.costs, layout, vector, seed=seed)
        said = (
            "the cost jumps or has a kink at its minimum: a search without derivatives "
            f"({generations} generations) lowered it by {before - cost:.2g}; intervals from "
            "derivatives do not hold there, take those of the bootstrap"
        )
        remarks = (said,)
    outcome = Outcome(int(members.outcome[best]))
    if outcome == Outcome.FAILED:
        remarks = (_why_it_failed(task, vector),)
    return Minimum(vector, cost, outcome, waterfall, remarks)


def _in_steps(task: Task, x0: np.ndarray, which: np.ndarray, seed: int, told) -> Minimum:
    """The least cost where parameters ``which`` (P,) act in steps, and the points around it."""
    objective, layout = task.objective, task.objective.layout
    known = task.noise_is_known and isinstance(objective.loss, Squares)
    watch = functools.partial(told, "in steps")
    x, cloud = search_in_steps(objective, x0, known, seed, watch)
    for i in range(1 if known else NOISE_ROUNDS):
        if not known:
            task.estimate_noise(x)
        warmth = _warmth(objective, x)
        x, cloud = explored(objective, x, cloud, True, seed + 5 + i, watch=watch, warmth=warmth)
    cost = float(objective.costs(x[None])[0])
    outcome = Outcome.CONVERGED if cloud.settled else Outcome.MAX_ITERATIONS
    if not np.isfinite(cost):
        return Minimum(x, cost, Outcome.FAILED, [], (_why_it_failed(task, x),))
    n, own = len(x0), np.array([int(outcome)])
    found = Members(layout.coordinates(x)[None], x[None], np.array([cost]), own, np.array([n]))
    names = ", ".join(name for name, w in zip(layout.names, which, strict=True) if w)
    said = (
        f"{names}: finite changes of the objective are not those that derivatives foresee (steps); "
        "found by a search without derivatives, intervals are those of the objective itself"
    )
    return Minimum(x, cost, outcome, _waterfall(layout, x0[:1], found), (said,), cloud)


def _warmth(objective: Objective, x: np.ndarray) -> float:
    """Variance of a sum of the residuals at ``x`` (P,), relative to that of independent
    ones, at least 1."""
    r = objective.linearised_at(x).residuals
    series = [own[own != 0.0][:, None] for e in r.reshape(*r.shape[:2], -1) for own in e.T]
    both = [(long_run_covariance(s, bandwidth(s))[0, 0], np.sum(s**2)) for s in series if s.size]
    long, plain = np.sum(both, axis=0) if both else (1.0, 1.0)
    return max(1.0, float(long / plain))


def _why_it_failed(task: Task, x: np.ndarray) -> str:
    """Reason why predictions for the parameters ``x`` (P,) cannot be used, in one sentence."""
    objective = task.objective
    found = objective.linearised_at(x)
    status, missing = found.status, task.used & ~np.isfinite(found.predicted)
    for i, experiment in enumerate(task.experiments):
        where = f"experiment {experiment.name or i + 1}"
        if failed(status[i]):
            return f"{where}: the simulation ended with status {Status(int(status[i])).name}"
        if missing[i].any():
            sample, signal = np.argwhere(missing[i])[0]
            return (
                f"{where}: {objective.data.signals[signal]} is not predicted from "
                f"t = {experiment.t[sample]:g} s on; does an event stop the run before?"
            )
    return "the residuals or their derivatives are not finite at the start"


def _waterfall(layout: Layout, x0: np.ndarray, members: Members) -> list[dict[str, Any]]:
    """Rows with each start, the point where it ended, cost and outcome, best first."""
    return [
        {
            "start": dict(zip(layout.names, x0[i].tolist(), strict=True)),
            "values": dict(zip(layout.names, members.x[i].tolist(), strict=True)),
            "cost": float(members.cost[i]),
            "outcome": Outcome(int(members.outcome[i])),
            "iterations": int(members.iterations[i]),
        }
        for i in np.argsort(members.cost, kind="stable")
    ]
