"""Searches: the points from which the last descents of a fit begin.

Multiple shooting takes parameters from short windows that begin at measured states. A window
forgets what happened before it: its cost is nearly a parabola, whereas the cost of the whole record
of a chaotic motion, or of one without a known beginning, has many valleys.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.free import Layout
from jfric.fits.optimise.growing import SHARES, STEPS, can_grow, growing
from jfric.fits.optimise.growing import starts as choose_starts
from jfric.fits.optimise.levenberg_marquardt import levenberg_marquardt
from jfric.fits.residuals import windows
from jfric.fits.task import Setup, Task

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

    >>> jfric.Starts().word
    'starts'
    """

    word = "starts"
    is_global = False

    def points(self, task, count, seed):
        objective = task.objective
        return choose_starts(lambda x: objective.normal(x).cost, objective.layout, count, seed)


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
        found = levenberg_marquardt(
            lambda x, _: cut.normal(x), cut.layout, x0, max_iterations=2 * STEPS
        )
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
