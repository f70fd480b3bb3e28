"""Minimising a fit: from several starts, then around the best, then with the noise known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from jfric.errors import ProblemError, nearest
from jfric.fits.objective import Objective, failed
from jfric.fits.optimise.descent import descend
from jfric.fits.optimise.direct_search import direct_search
from jfric.fits.optimise.growing import SHARES, can_grow, growing
from jfric.fits.optimise.levenberg_marquardt import Members, Outcome, levenberg_marquardt
from jfric.fits.optimise.starts import nearby
from jfric.fits.optimise.starts import starts as choose_starts
from jfric.fits.parameter_vector import Layout
from jfric.fits.recipe import SEARCH, Recipe
from jfric.fits.shooting import shooting
from jfric.fits.task import Task, prepare
from jfric.numerics.limits import STARTS, require_count
from jfric.results.status import Status

Optimiser = Literal["levenberg-marquardt", "l-bfgs", "adam", "direct"]
OPTIMISERS = get_args(Optimiser)
#: Told after each iteration of a fit: the stage, the number of the iteration and the most there can
#: be, the least cost so far, and the parameters there by name.
Watch = Callable[[str, int, int, float, dict[str, float]], None]
Search = Literal["starts", "global", "shooting"]
SEARCHES = get_args(Search)
#: Fits after the first where the noise is unknown: weights and parameters settle together.
NOISE_ROUNDS = 2


Minimiser = Callable[[np.ndarray, str], Members]


class Minimum(NamedTuple):
    """The best point (P,) of all starts, its cost, and how it was reached.

    ``waterfall``: what became of each start, best first.
    """

    vector: np.ndarray
    cost: float
    outcome: Outcome
    waterfall: list[dict[str, Any]]
    remarks: tuple[str, ...]


def solve(recipe: Recipe, watch: Watch | None = None) -> tuple[Task, Minimum]:
    """Compute the fit with these arguments; raises :class:`jfric.ProblemError`."""
    options = dict(recipe.options)
    # Fits that were written before there was a choice have none.
    search = {name: options.pop(name, None) for name in SEARCH}
    task = prepare(recipe.problem, recipe.experiments, recipe.free, **options)
    starts, seed = search.pop("starts"), search["seed"]
    require_count("starts", starts, 1, STARTS)
    if seed < 0:
        raise ProblemError(f"seed: found {seed}, must not be negative")
    if search["optimiser"] not in OPTIMISERS:
        raise ProblemError(
            f"optimiser: found {search['optimiser']!r}{nearest(search['optimiser'], OPTIMISERS)}, "
            "allowed are " + ", ".join(OPTIMISERS)
        )
    way, schedule = search.pop("search") or "starts", search.pop("schedule")
    if way not in SEARCHES:
        raise ProblemError(
            f"search: found {way!r}{nearest(way, SEARCHES)}, allowed are " + ", ".join(SEARCHES)
        )
    if way == "starts" and schedule is not None:
        raise ProblemError("schedule: has no meaning for search='starts', take 'global'")
    shares, objective = _shares(task, schedule), task.objective
    minimise = _minimiser(objective, watch, **search)
    if way == "starts":
        x0 = choose_starts(lambda x: objective.normal(x).cost, objective.layout, starts, seed)
    else:
        more = None
        if way == "shooting":
            more = shooting(recipe, options, objective.layout, starts, seed)
        x0 = growing(objective, starts, seed, shares, more)
    return task, _least(task, minimise, x0, seed)


def _shares(task: Task, schedule: Sequence[float] | None) -> tuple[float, ...]:
    """Parts of the records from lengths [s]; the whole comes last."""
    if not can_grow(task.objective):
        if schedule is not None:
            raise ProblemError("schedule: found one for residuals that are no samples in time")
        return (1.0,)
    if schedule is None:
        return SHARES
    longest = max(float(np.ptp(e.t)) for e in task.experiments)
    try:
        lengths = np.asarray(schedule, float)
    except (TypeError, ValueError):
        lengths = np.array([np.nan])
    rising = lengths.size and np.all(np.diff(lengths, prepend=0.0) > 0)
    if not rising or not lengths[-1] <= longest * (1 + 1e-9):
        raise ProblemError(
            f"schedule: found {schedule}, needs lengths [s] that increase, above 0 and up to that "
            f"of the record, {longest:g} s"
        )
    return (*(x for x in (lengths / longest).tolist() if x < 1.0), 1.0)


def _minimiser(
    objective: Objective,
    watch: Watch | None,
    *,
    optimiser: Optimiser,
    max_iterations: int | None,
    learning_rate: float,
    batch: int | None,
    seed: int,
) -> Minimiser:
    """A function from starts (B, P) to where they end, in a stage with a name."""

    def minimise(x0: np.ndarray, stage: str) -> Members:
        def told(iteration: int, most: int, cost: float, x: np.ndarray) -> None:
            if watch is None:
                return
            values = dict(zip(objective.layout.names, x.tolist(), strict=True))
            watch(stage, iteration, most, cost, values)

        if optimiser == "levenberg-marquardt":
            return levenberg_marquardt(
                lambda x, _: objective.normal(x),
                objective.layout,
                x0,
                max_iterations=max_iterations or 60,
                watch=told,
            )
        if optimiser == "direct":
            return _direct(objective, x0, max_iterations or 200, seed, told)
        return descend(
            objective,
            x0,
            optimiser,
            max_iterations=max_iterations or 200,
            learning_rate=learning_rate,
            batch=batch,
            seed=seed,
            watch=told,
        )

    return minimise


def _least(task: Task, minimise: Minimiser, x0: np.ndarray, seed: int) -> Minimum:
    """The least cost that ``minimise`` (from starts (B, P) to where they end) gets to from x0."""
    objective, layout = task.objective, task.objective.layout
    starts = len(x0)
    members = minimise(x0, "starts")
    waterfall = _waterfall(layout, x0, members)
    best = np.argmin(members.cost)
    if starts > 1 and np.isfinite(members.cost[best]):
        x0 = nearby(lambda x: objective.normal(x).cost, layout, members.x[best], starts, seed)
        again = minimise(x0, "around the best")
        waterfall = sorted(waterfall + _waterfall(layout, x0, again), key=lambda w: w["cost"])
        if np.min(again.cost) < members.cost[best]:
            members, best = again, np.argmin(again.cost)
    if not task.noise_is_known or objective.loss != "linear":
        for _ in range(NOISE_ROUNDS):
            if not np.isfinite(members.cost[best]):
                break
            task.estimate_noise(members.x[best])
            members, best = minimise(members.x[best][None], "with the noise"), 0
    vector, cost, remarks = members.x[best], float(members.cost[best]), ()
    if members.outcome[best] == Outcome.STALLED:
        vector, cost, remarks = _refine(objective, vector, cost, seed)
    outcome = Outcome(int(members.outcome[best]))
    if outcome == Outcome.FAILED:
        remarks = (_why_it_failed(task, vector),)
    return Minimum(vector, cost, outcome, waterfall, remarks)


def _why_it_failed(task: Task, x: np.ndarray) -> str:
    """Reason why predictions for the parameters ``x`` (P,) cannot be used, in one sentence."""
    objective = task.objective
    found = objective.linearise(x[None])
    status, missing = found.status[0], task.used & ~np.isfinite(found.predicted[0])
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


def _refine(objective: Objective, x: np.ndarray, cost: float, seed: int):
    """Result of a search without derivatives where no step lowers the cost: (P,), cost, remarks."""
    found, least, generations = direct_search(
        lambda x: objective.normal(x).cost, objective.layout, x, seed=seed
    )
    return (
        found,
        least,
        (
            "the cost jumps or has a kink at its minimum: a search without derivatives "
            f"({generations} generations) lowered it by {cost - least:.2g}; intervals from "
            "derivatives do not hold there, take those of the bootstrap",
        ),
    )


def _direct(objective: Objective, x0: np.ndarray, generations: int, seed: int, watch) -> Members:
    """Every start by a search without derivatives."""
    layout = objective.layout
    found = [
        direct_search(
            lambda x: objective.normal(x).cost,
            layout,
            x,
            seed=seed + i,
            generations=generations,
            width=0.2,
            watch=watch,
        )
        for i, x in enumerate(x0)
    ]
    x, cost = np.stack([f[0] for f in found]), np.array([f[1] for f in found])
    used = np.array([f[2] for f in found])
    outcome = np.where(used < generations, Outcome.CONVERGED, Outcome.MAX_ITERATIONS)
    outcome[~np.isfinite(cost)] = Outcome.FAILED
    return Members(layout.coordinates(x), x, cost, outcome, used)


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
