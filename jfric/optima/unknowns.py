"""Unknowns of an optimisation: numbers, and whole lists of numbers, of a problem by their paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jfric.errors import ProblemError, within
from jfric.fits.free import Free, Layout, check_free, on_scale
from jfric.statics.path_names import checked_path
from jfric.system.bounds import INCREASING, bounds_of
from jfric.system.naming import parameters
from jfric.system.problem import Problem

#: Least distance of neighbours in a list that increases, as a part of its range.
APART = 1e-6


class Place(NamedTuple):
    """Where the numbers of one path stand in the vector: its first one, and how many there are;
    None for a single number."""

    path: str
    first: int
    count: int | None


@dataclass(frozen=True)
class Unknowns:
    """Free numbers as a vector of ``P``, part of the ``L`` numbers at the free paths.

    ``layout``: names, bounds (infinite where there are none), scales and the first start of the
    free numbers; ``columns`` (P,): their places among all. Numbers whose bounds are equal are
    not free: ``given`` (L,) has their values.
    """

    places: tuple[Place, ...]
    layout: Layout
    columns: np.ndarray
    given: np.ndarray

    def whole(self, x: np.ndarray) -> np.ndarray:
        """All numbers (L,) from the free ones (P,)."""
        found = self.given.copy()
        found[self.columns] = x
        return found

    @property
    def scale(self) -> np.ndarray:
        """Change (P,) of each number that counts as large, on its own scale: the range between
        its bounds, or else its size at the start."""
        layout = self.layout
        size = np.abs(on_scale(layout.init, layout.log))
        size = np.where(layout.log, np.maximum(size, 1.0), size)
        width = layout.high - layout.low
        return np.where(np.isfinite(width), width, np.where(size > 0.0, size, 1.0))

    def scaled(self, x: np.ndarray) -> np.ndarray:
        """Coordinates (P,) of free numbers: their logarithms where they have that scale, in units
        of :attr:`scale`."""
        return on_scale(x, self.layout.log) / self.scale

    def unscaled(self, y: np.ndarray) -> np.ndarray:
        """Free numbers (P,) from coordinates, within their bounds up to the last digit."""
        w = y * self.scale
        log, (low, high) = self.layout.log, self.layout.bounds
        return np.clip(np.where(log, np.exp(np.where(log, w, 0.0)), w), low, high)

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """Derivatives (P,) of the free numbers by their coordinates."""
        return self.scale * np.where(self.layout.log, x, 1.0)

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the coordinates, each (P,)."""
        return self.layout.low / self.scale, self.layout.high / self.scale

    def order(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows ``A`` (r, L) and distances ``b`` (r,) with ``A x >= b`` for lists that increase."""
        rows, least = [], []
        for path, first, count in self.places:
            if count is None or path.rpartition(".")[2] not in INCREASING:
                continue
            span = np.ptp(self.given[first : first + count])
            for i in range(first, first + count - 1):
                row = np.zeros(self.given.size)
                row[i], row[i + 1] = -1.0, 1.0
                rows.append(row)
                least.append(APART * span)
        return np.asarray(rows).reshape(-1, self.given.size), np.asarray(least)


def by_path(places: tuple[Place, ...], x: Any) -> dict[str, Any]:
    """Numbers and lists by path, for all numbers ``x`` (L,)."""
    return {
        path: x[first] if count is None else x[first : first + count]
        for path, first, count in places
    }


def read_unknowns(problem: Problem, free: Mapping[str, Any]) -> Unknowns:
    """The unknowns that ``free`` names.

    Raises :class:`jfric.ProblemError` for a path that is unknown, found twice or computed, and for
    bounds that hold no value.
    """
    if not isinstance(free, Mapping) or not free:
        raise ProblemError("free: found nothing, give numbers by path: {'time.end': (0.5, 2.0)}")
    known, places, columns = parameters(problem), [], []
    for path, item in free.items():
        with within("free: "):
            name = checked_path(problem, str(path), "free")
        if any(place.path == name for place in places):
            raise ProblemError(f"free: found {name!r} twice")
        own = np.asarray(known[name], float)
        if own.ndim > 1:
            raise ProblemError(f"free: {name} is a matrix, free numbers and lists of numbers")
        count = own.size if own.ndim else None
        places.append(Place(name, sum(len(c[0]) for c in columns), count))
        columns.append(_read(problem, name, item, own))
    start, low, high, log, fixed = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return _laid_out(tuple(places), start, low, high, log.astype(bool), fixed.astype(bool))


def _read(problem: Problem, name: str, item: Any, own: np.ndarray) -> tuple[np.ndarray, ...]:
    """Starts, bounds, whether scales are logarithmic and whether numbers are fixed, of one path."""
    shape, log = (max(own.size, 1),), False
    if isinstance(item, Free):
        check_free(problem, {name: item})
        low, high, start = item.lower, item.upper, item.init
        log = item.scale == "log"
    elif isinstance(item, tuple) and len(item) == 2:
        (low, high), start = item, None
    else:
        bounds = bounds_of(name)
        low, high, start = bounds.low, bounds.high, item
    try:
        low, high = (np.broadcast_to(np.asarray(x, float), shape) for x in (low, high))
        start = np.broadcast_to(np.asarray(own if start is None else start, float), shape)
    except (TypeError, ValueError):
        numbers = "a number" if not own.ndim else f"{own.size} numbers or one for all"
        raise ProblemError(
            f"free.{name}: found {item!r}, needs (lower, upper), a start, or jfric.Free(lower, "
            f"upper); each is {numbers}"
        ) from None
    if np.isnan([low, high, start]).any() or not np.all(low <= high):
        raise ProblemError(f"free.{name}: found {item!r}, lower must not be above upper")
    wrong = bounds_of(name).message(float(low.min()), float(high.max()))
    if wrong and isinstance(item, (tuple, Free)):
        raise ProblemError(
            f"free.{name}: found the bounds {low.min():g} and {high.max():g}, {wrong}"
        )
    inside = np.clip(start, low, high)
    if np.isfinite([low, high]).all():
        middle = np.sqrt(low * high) if log else 0.5 * (low + high)
        inside = np.where(inside == start, start, middle)
    return inside, low, high, np.full(shape, log), low == high


def _laid_out(places, start, low, high, log, fixed) -> Unknowns:
    names = []
    for path, _, count in places:
        names += [path] if count is None else [f"{path}({i + 1})" for i in range(count)]
    columns = np.flatnonzero(~fixed)
    if not columns.size:
        raise ProblemError("free: every number has equal bounds, nothing is free")

    layout = Layout(
        names=tuple(names[i] for i in columns),
        paths=tuple(names[i] for i in columns),
        columns=np.arange(columns.size)[None],
        low=on_scale(low[columns], log[columns]),
        high=on_scale(high[columns], log[columns]),
        log=log[columns],
        init=start[columns],
        prior=np.full((columns.size, 2), np.nan),
    )
    return Unknowns(places, layout, columns, start)
