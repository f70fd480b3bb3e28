"""Searches: the points from which the last descents of a fit begin.

They are given values, little friction, a sample of all parameters, and the ends of descents on
growing parts of the records. The cost of a whole record has a minimum for each number of cycles
that the model gains or loses on the data. Its first part holds few cycles, and the valley that
leads to the best parameters is wide. Each part begins with a fresh sample of all parameters in
addition to the results of the last part, so that neither missing information nor a wrong turn in a
short part decides.

Multiple shooting takes parameters from short windows that begin at measured states. A window
forgets what happened before it: its cost is nearly a parabola, whereas the cost of the whole record
of a chaotic motion, or of one without a known beginning, has many valleys.
"""

from __future__ import annotations

import abc
import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.fits.free import Layout
from jfric.fits.objective import Objective, weighted
from jfric.fits.optimise.descents import LevenbergMarquardt

if TYPE_CHECKING:
    from jfric.fits.task import Setup, Task

#: Candidates for each start.
CANDIDATES = 8
#: Coefficients of friction of the low-friction start, as a part of their range.
LOW = 0.1


def little_friction(layout: Layout) -> np.ndarray:
    """The first start (P,) with small coefficients of friction."""
    friction = np.array([n.split(".")[0] in ("friction", "contact") for n in layout.names])
    return np.where(friction, _at(layout, np.full(layout.size, LOW)), layout.init)


def global_sample(layout: Layout, count: int, seed: int) -> np.ndarray:
    """``count`` points (count, P) of a Sobol sequence over the ranges."""
    return _at(layout, sobol(layout.size, count, seed))


def sobol(size: int, count: int, seed: int) -> np.ndarray:
    """``count`` points (count, size) of a Sobol sequence over the unit cube."""
    from scipy.stats import qmc  # slow to import

    sampler = qmc.Sobol(size, rng=np.random.default_rng(seed))
    return sampler.random_base2(int(np.ceil(np.log2(count))))[:count]


def nearby(objective: Objective, x: np.ndarray, count: int, seed: int) -> np.ndarray:
    """``count`` starts around the parameters ``x`` (P,): the best of a cloud of many widths.

    A cost with friction has a minimum for each number of half cycles, and the best one often lies
    next to the one found.
    """
    rng, layout = np.random.default_rng(seed + 1), objective.layout
    size = CANDIDATES * count
    width = 10.0 ** rng.uniform(-3.0, -0.5, size=(size, 1))
    z = layout.coordinates(x) + width * rng.normal(size=(size, layout.size))
    points = layout.values(np.clip(z, -0.5 * np.pi, 0.5 * np.pi))
    return points[np.argsort(objective.normal(points).cost, kind="stable")[:count]]


def _at(layout: Layout, fraction: np.ndarray) -> np.ndarray:
    """Parameters at the given parts of their ranges."""
    return layout.values(np.arcsin(2.0 * fraction - 1.0))


#: Parts of the records, unless a schedule is given.
SHARES = (0.125, 0.25, 0.5, 1.0)
#: Points of the sample for each start, and steps of a descent on a part.
SAMPLE, STEPS = 32, 15
#: Distance of coordinates, in parts of their range, below which two points are one start.
NEAR = 1e-3


def growing(
    objective: Objective,
    count: int,
    seed: int,
    shares: Sequence[float] = SHARES,
    more: np.ndarray | None = None,
) -> np.ndarray:
    """At most ``count`` starts (n, P) for the whole records, from descents on growing parts.

    ``shares``: parts of each record in turn, from its start; the last is 1. ``more`` (n, P): points
    that are tried in addition to the sample. Numbers that belong to one experiment, such as initial
    states of windows, begin at their first value.
    """
    layout = objective.layout
    points = _sample(layout, SAMPLE * count, seed)
    if more is not None:
        points = np.concatenate([more, points])
    found = points[:0]
    for share in shares:
        part = beginning(objective, share)
        pool = np.concatenate([found, points])
        x0 = distinct(layout, pool, part.normal(pool).cost, count)
        if share == shares[-1]:
            return x0
        members = LevenbergMarquardt(STEPS).minimise(part, x0, seed)
        found = members.x[np.isfinite(members.cost)]
    return found


def beginning(objective: Objective, share: float) -> Objective:
    """The objective for the first ``share`` of each record, with the programs of the whole one."""
    if share >= 1.0:
        return objective
    data = objective.data
    t, start, end = (np.asarray(a) for a in (data.t, data.start, data.end))
    keep = t <= (start + share * (end - start))[:, None]
    # Two samples at least, so that a derivative exists.
    keep[:, :2] = np.isfinite(t[:, :2])
    last = np.max(np.where(keep, t, -np.inf), axis=1)
    part = copy.copy(objective)
    part.data = dataclasses.replace(
        data, t=jnp.asarray(np.where(keep, t, np.inf)), end=jnp.asarray(last)
    )
    part.weight = np.where(keep[..., None], objective.weight, 0.0)
    return part


def can_grow(objective: Objective) -> bool:
    """Whether a part of the records is a smaller fit: samples are compared one by one, in time."""
    return objective.residual is weighted and objective.model.runs_in_time


def distinct(layout: Layout, x: np.ndarray, cost: np.ndarray, count: int) -> np.ndarray:
    """The best ``count`` of parameters (B, P), without those that are next to a better one."""
    z = layout.coordinates(x) / np.pi
    chosen: list[int] = []
    for i in np.argsort(cost, kind="stable"):
        if len(chosen) == count or not np.isfinite(cost[i]):
            break
        if all(np.max(np.abs(z[i] - z[j])) > NEAR for j in chosen):
            chosen.append(int(i))
    return x[chosen] if chosen else layout.init[None]


def shared(layout: Layout) -> np.ndarray:
    """Whether each parameter (P,) belongs to all experiments."""
    return np.bincount(layout.columns.ravel(), minlength=layout.size) >= layout.columns.shape[0]


def _sample(layout: Layout, count: int, seed: int) -> np.ndarray:
    """The first start, one with little friction, and a sample of what all experiments share."""
    points = np.where(shared(layout), global_sample(layout, count, seed), layout.init)
    return np.concatenate([layout.init[None], little_friction(layout)[None], points])


#: Number of windows of the shortest record by default.
WINDOWS = 8


class AbstractSearch(abc.ABC):
    """Search for the starts of the descents on the whole records."""

    #: Name in files and commands.
    word: ClassVar[str]
    #: Whether the search looks for the lowest of many minima.
    is_global: ClassVar[bool] = True

    @abc.abstractmethod
    def points(self, task: Task, count: int, seed: int) -> np.ndarray:
        """At most ``count`` starts (n, P)."""


@dataclass(frozen=True)
class Starts(AbstractSearch):
    """Best points of a sample of all parameters.

    The first start is the given one. The second has little friction: with too much everything
    sticks and no derivative shows the way out. The others are the best of eight times as many
    points of a Sobol sequence::

        >>> jfric.Starts().word
        'starts'
    """

    word = "starts"
    is_global = False

    def points(self, task, count, seed):
        objective, layout = task.objective, task.objective.layout
        chosen = [layout.init, little_friction(layout)][:count]
        if count > 2:
            points = global_sample(layout, CANDIDATES * count, seed)
            best = np.argsort(objective.normal(points).cost, kind="stable")[: count - 2]
            chosen += list(points[best])
        return np.stack(chosen)


@dataclass(frozen=True)
class Global(AbstractSearch):
    """Descents from a larger sample on growing parts of the records, which have fewer minima.

    ``schedule``: lengths of the parts [s], followed by the whole; by default an eighth, a quarter
    and a half of each record::

        >>> jfric.Global([1.0, 5.0]).schedule
        [1.0, 5.0]
    """

    word = "global"
    schedule: Sequence[float] | None = None

    def points(self, task, count, seed):
        shares = _shares(task, self.schedule)
        return growing(task.objective, count, seed, shares)


@dataclass(frozen=True)
class Shooting(AbstractSearch):
    """Fits of windows from measured states, then a global search.

    For chaotic motions and unknown initial states. ``window`` [s]: length of the windows, by
    default an eighth of the shortest record; ``schedule``: as in :class:`jfric.Global`::

        >>> jfric.Shooting(window=2.0).window
        2.0
    """

    word = "shooting"
    window: float | None = None
    schedule: Sequence[float] | None = None

    def points(self, task, count, seed):
        shares = _shares(task, self.schedule)
        found = self.ends_of_windows(task.setup, task.objective.layout, count, seed)
        return growing(task.objective, count, seed, shares, found)

    def ends_of_windows(self, setup: Setup, layout: Layout, count: int, seed: int) -> np.ndarray:
        """At most ``count`` points (n, P) of the whole records: the end points of fits of windows.

        Initial states are those of the first window; other parameters of one experiment keep their
        first value.
        """
        from jfric.fits.residuals import windows  # with all models, which no other search needs

        system, records = setup.system, setup.experiments
        shortest = min(float(np.ptp(e.t)) for e in records)
        length = self.window or shortest / WINDOWS
        residual = setup.residual.in_windows(length)
        if residual is None or system is None:
            raise ProblemError(
                "search: 'shooting' cuts records of signals into windows, it needs "
                "residual='output' and a jfric.Problem; take search='global'"
            )
        missing = [dof for dof in system.dofs for e in records if dof not in e.y]
        if missing:
            raise ProblemError(
                f"search: 'shooting' begins windows at measured positions, {missing[0]!r} is not "
                "measured; take search='global'"
            )
        free = {
            path: item
            for path, item in setup.free.items()
            if not path.startswith("initial.") and not item.per_experiment
        }
        cut = replace(setup, problem=system, free=free, residual=residual).task().objective
        x0 = growing(cut, count, seed)
        found = LevenbergMarquardt(2 * STEPS).minimise(cut, x0, seed)
        counts = [len(windows(e, [*system.dofs], length)) for e in records]
        first = np.cumsum([0, *counts])[:-1]
        return _whole(layout, cut.layout, first, found.x[np.isfinite(found.cost)])


SEARCHES = {search.word: search for search in (Starts, Global, Shooting)}


def _shares(task: Task, schedule: Sequence[float] | None) -> tuple[float, ...]:
    """Parts of the records from lengths [s], followed by the whole."""
    if not can_grow(task.objective):
        if schedule is not None:
            raise ProblemError("schedule: found one for residuals that are no samples in time")
        return (1.0,)
    if schedule is None:
        return SHARES
    longest = max(float(np.ptp(e.t)) for e in task.experiments)
    try:
        lengths = np.atleast_1d(np.asarray(schedule, float))
    except (TypeError, ValueError):
        lengths = np.array([np.nan])
    rising = lengths.size and np.all(np.diff(lengths, prepend=0.0) > 0)
    if not rising or not lengths[-1] <= longest * (1 + 1e-9):
        raise ProblemError(
            f"schedule: found {schedule}, needs lengths [s] that increase, above 0 and up to that "
            f"of the record, {longest:g} s"
        )
    return (*(x for x in (lengths / longest).tolist() if x < 1.0), 1.0)


def _whole(layout: Layout, cut: Layout, first: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Parameters (n, P) of the whole records from those of windows; ``first`` (E,): the first
    window of each record."""
    points = np.tile(layout.init, (x.shape[0], 1))
    for column, path in enumerate(layout.paths):
        if path not in cut.paths:
            continue
        own = cut.columns[first, cut.paths.index(path)]
        # If all records share a number, the last value written stays.
        points[:, layout.columns[:, column]] = x[:, own]
    lower, upper = layout.bounds
    return np.clip(points, lower, upper)
