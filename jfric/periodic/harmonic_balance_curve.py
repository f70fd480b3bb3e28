"""A curve of solutions of harmonic balance over a parameter, folds included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

#: Steps along the curve, in the units of the unknowns: first and smallest.
FIRST, SMALLEST = 0.005, 1e-6
#: Newton steps below which the next step is longer, and above which it is shorter.
FEW, MANY = 5, 15
#: Cosine of the angle between two tangents; the curve bends in between where it is less.
BEND = 0.7
#: Steps to a fold, and what the tangent's part along the parameter is below there.
FOLD_STEPS, UPRIGHT = 60, 1e-10

Ended = Literal["stop", "start", "max_points", "stalled"]


class Spot(NamedTuple):
    """A solution as plain numbers: unknowns, parameter, and the tangent of both."""

    y: np.ndarray
    p: float
    dy: np.ndarray
    dp: float
    residual: float
    converged: bool
    iterations: int


class Curve(NamedTuple):
    """Solutions along the curve, those at folds, and how it ended."""

    spots: list[Spot]
    folds: list[Spot]
    ended: Ended


#: ``correct(y, p, dy, dp)``: the solution on the plane through a place at right angles to a way.
Correct = Callable[[np.ndarray, float, np.ndarray, float], Spot]


def follow(
    correct: Correct,
    first: Spot,
    stop: float,
    unit: Callable[[np.ndarray], np.ndarray],
    *,
    largest: float,
    max_points: int,
) -> Curve:
    """From the solution ``first`` on to where the parameter is ``stop``, or back at the start.

    ``unit``: of the unknowns at a solution, infinite for those that do not count. ``largest`` step.
    """
    start, span = first.p, abs(stop - first.p)
    side = np.sign(stop - start)
    spots, folds = [_towards(first, side)], []
    size = min(FIRST, largest)
    while len(spots) < max_points:
        here = spots[-1]
        scale = unit(here.y)
        way = _unit_way(here, scale, span)
        p = here.p + size * way[1]
        over = (p - stop) * side >= 0.0
        back = (p - start) * side < 0.0
        if over or back:
            # The last point lies on the border, which the curve meets at an angle.
            border = stop if over else start
            part = (border - here.p) / way[1]
            end = correct(here.y + part * way[0], border, np.zeros_like(here.y), side)
            if _is_next(end, here, way, scale, span) or size <= SMALLEST:
                if end.converged:
                    spots.append(end)
                return Curve(spots, folds, "stop" if over else "start")
            size *= 0.5
            continue
        found = correct(here.y + size * way[0], p, *way)
        if not _is_next(found, here, way, scale, span):
            size *= 0.5
            if size < SMALLEST:
                return Curve(spots, folds, "stalled")
            continue
        if found.dp * here.dp < 0.0 and (fold := _fold(correct, here, way, size, found)):
            folds.append(fold)
        spots.append(found)
        grows = found.iterations <= FEW
        size = min(size * (1.5 if grows else 0.7 if found.iterations > MANY else 1.0), largest)
    return Curve(spots, folds, "max_points")


def _towards(spot: Spot, side: float) -> Spot:
    turned = side if spot.dp >= 0 else -side
    return spot._replace(dy=turned * spot.dy, dp=turned * spot.dp)


def _unit_way(spot: Spot, scale: np.ndarray, span: float) -> tuple[np.ndarray, float]:
    length = np.sqrt(np.sum((spot.dy / scale) ** 2) + (spot.dp / span) ** 2)
    return spot.dy / length, spot.dp / length


def _is_next(
    found: Spot, here: Spot, way: tuple[np.ndarray, float], scale: np.ndarray, span: float
) -> bool:
    if not found.converged:
        return False
    after = _unit_way(found, scale, span)
    cosine = np.sum(after[0] / scale * way[0] / scale) + after[1] * way[1] / span**2
    moved = np.sqrt(np.sum(((found.y - here.y) / scale) ** 2) + ((found.p - here.p) / span) ** 2)
    # What nonsmooth laws bend is passed by short steps, where the angle no longer counts.
    return bool(abs(cosine) > BEND or moved < 100 * SMALLEST)


def _fold(
    correct: Correct, here: Spot, way: tuple[np.ndarray, float], size: float, found: Spot
) -> Spot | None:
    """Where the tangent has no part along the parameter, between two solutions (regula falsi)."""
    low, high = (0.0, here.dp), (size, found.dp)
    best = None
    for count in range(FOLD_STEPS):
        s = low[0] - low[1] * (high[0] - low[0]) / (high[1] - low[1])
        if count % 4 == 3:
            s = 0.5 * (low[0] + high[0])
        best = correct(here.y + s * way[0], here.p + s * way[1], *way)
        if not best.converged:
            return None
        if abs(best.dp) <= UPRIGHT * abs(here.dp) or high[0] - low[0] <= 1e-13 * size:
            break
        if best.dp * low[1] > 0.0:
            low = (s, best.dp)
        else:
            high = (s, best.dp)
    return best
