"""A curve of solutions of harmonic balance over a parameter, folds included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, cast

import numpy as np

from jfric.numerics.continuation import TOO_MANY, Advance, Lengths, Trial, run, steps, zero

#: Steps along the curve, in the units of the unknowns: first and smallest.
FIRST, SMALLEST = 0.005, 1e-6
#: Numbers of Newton steps below which the next step is longer, and above which it is shorter.
FEW, MANY = 5, 15
#: Cosine of the angle between two tangents below which the curve bends too much in one step.
BEND = 0.7
#: Accuracy of folds, as a part of a step.
LOCATED = 1e-13

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


#: ``correct(y, p, dy, dp)``: the solution on the plane through ``(y, p)`` normal to ``(dy, dp)``.
Correct = Callable[[np.ndarray, float, np.ndarray, float], Spot]


class _Ahead:
    """The curve ahead of the solution ``here``, along its tangent, which has unit length in the
    units ``scale`` and ``span`` of the unknowns and the parameter."""

    def __init__(self, correct: Correct, here: Spot, scale: np.ndarray, span: float):
        self._correct, self._here, self._scale, self._span = correct, here, scale, span
        norm = self._length(here.dy, here.dp)
        self.dy, self.dp = here.dy / norm, here.dp / norm

    def _length(self, dy: np.ndarray, dp: float) -> float:
        return float(np.sqrt(np.sum((dy / self._scale) ** 2) + (dp / self._span) ** 2))

    def at(self, s: float) -> Spot:
        """The solution on the plane at the distance ``s``."""
        return self._correct(
            self._here.y + s * self.dy, self._here.p + s * self.dp, self.dy, self.dp
        )

    def at_parameter(self, p: float, side: float) -> Spot:
        """The solution at a value of the parameter."""
        y = self._here.y + (p - self._here.p) / self.dp * self.dy
        return self._correct(y, p, np.zeros_like(y), side)

    def leads_to(self, found: Spot) -> bool:
        """Whether the solution ``found`` is the next one on the curve."""
        cosine = np.sum(found.dy / self._scale * self.dy / self._scale)
        cosine = (cosine + found.dp * self.dp / self._span**2) / self._length(found.dy, found.dp)
        # Short steps pass the kinks that nonsmooth laws make: no angle counts there.
        near = self._length(found.y - self._here.y, found.p - self._here.p) < 100 * SMALLEST
        return found.converged and bool(abs(cosine) > BEND or near)


def follow(
    correct: Correct,
    first: Spot,
    stop: float,
    unit: Callable[[np.ndarray], np.ndarray],
    *,
    largest: float,
    max_points: int,
) -> Curve:
    """Solutions from ``first`` to the point where the parameter is ``stop``, or back at the start.

    ``unit``: of the unknowns at a solution, infinite for those that do not count. ``largest``:
    longest step.
    """
    start, span, side = first.p, abs(stop - first.p), np.sign(stop - first.p)
    turned = side if first.dp >= 0 else -side
    first = first._replace(dy=turned * first.dy, dp=turned * first.dp)
    spots, folds = [first], []

    def step(trial: Trial) -> Advance:
        here, size = trial.here, trial.size
        ahead = _Ahead(correct, here, unit(here.y), span)
        p = here.p + size * ahead.dp
        over = (p - stop) * side >= 0.0
        if over or (p - start) * side < 0.0:
            # The last point lies on the border, which the curve meets at an angle.
            end = ahead.at_parameter(stop if over else start, side)
            if size > 2.0 * SMALLEST and not ahead.leads_to(end):
                return Advance(None, 0.5 * size)
            if end.converged:
                spots.append(end)
            return Advance(None, ended="stop" if over else "start")
        found = ahead.at(size)
        if not ahead.leads_to(found):
            return Advance(None, 0.5 * size)
        if found.dp * here.dp < 0.0:
            # At a fold the tangent has no part along the parameter.
            search = zero((0.0, here.dp), (size, found.dp), LOCATED * size)
            fold = ahead.at(run(search, lambda s: ahead.at(s).dp))
            folds.extend([fold] if fold.converged else [])
        spots.append(found)
        factor = 1.5 if found.iterations <= FEW else 0.7 if found.iterations > MANY else 1.0
        return Advance(found, factor * size)

    ended = run(steps(first, FIRST, Lengths(largest, SMALLEST), max_points - 1), step)
    return Curve(spots, folds, cast(Ended, "max_points" if ended == TOO_MANY else ended))
