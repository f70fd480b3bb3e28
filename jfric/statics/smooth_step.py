"""One step along a branch in fixed modes, with the first change of mode inside it.

Between two points the state is a cubic polynomial through values and derivatives at both ends; the
true state in the middle gives its error. Margins are such cubics as well: their Bernstein
coefficients prove that there is no zero; otherwise the first zero is located on the branch itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jfric.statics.branch_point import BranchPoint
from jfric.statics.reading import AT_CHANGE

#: Largest error of the cubic in the middle of a step, relative to the magnitude of the numbers.
TOLERANCE = 1e-6
_NEWTON = 60
#: Moves of a zero that rounding errors may cause, as a part of the parameter.
ROUNDED = 1e-11

At = Callable[[float], BranchPoint]


class Outcome(NamedTuple):
    """Points of an accepted step, the last one at its end; ``crossing``: a margin is zero there.

    The list is empty if the step was too long.
    """

    points: list[BranchPoint]
    crossing: bool


def smooth_step(at: At, first: BranchPoint, h: float) -> Outcome:
    """The step from ``first`` by ``h``, or up to the first zero of a margin; ``at``: the point of
    the branch at a value of the parameter."""
    p = float(first.p)
    last, middle = at(p + h), at(p + 0.5 * h)
    if not _smooth(first, middle, last, h):
        return Outcome([], crossing=False)
    coefficients = _bernstein(first.margin, first.rate, last.margin, last.rate, h)
    zero = 1e-13 * np.maximum(first.margin_size, last.margin_size)
    doubt = np.abs(middle.margin - coefficients @ np.array([1, 3, 3, 1]) / 8)
    # A margin that is zero at the start leaves zero or stays there.
    begins = np.abs(first.margin) <= AT_CHANGE * first.margin_size
    low = np.min(
        coefficients - doubt[:, None], axis=1, initial=np.inf, where=~begins[:, None] | _LATER
    )
    suspects = [int(i) for i in np.flatnonzero(first.used & (low < -zero))]
    roots = {i: r for i in suspects if (r := _root(coefficients[i], bool(begins[i]))) is not None}
    if not roots:
        return _checked([middle, last], crossing=False)
    earliest = min(roots, key=lambda i: roots[i])
    crossing = _locate(at, first, last, earliest, p + roots[earliest] * h)
    if crossing is None:
        return _checked([middle, last], crossing=False)
    before = at(0.5 * (p + float(crossing.p)))
    return _checked([before, crossing], crossing=True)


def _checked(points: list[BranchPoint], *, crossing: bool) -> Outcome:
    """The outcome, or a refusal if an earlier zero was skipped."""
    for point in points:
        if np.any(point.used & (point.margin < -AT_CHANGE * point.margin_size)):
            return Outcome([], crossing=False)
    return Outcome(points, crossing)


#: All Bernstein coefficients but the first.
_LATER = np.array([False, True, True, True])


def _smooth(first: BranchPoint, middle: BranchPoint, last: BranchPoint, h: float) -> bool:
    if not all(np.all(np.isfinite(point.x)) for point in (middle, last)):
        return False
    if not first.turn == middle.turn == last.turn:
        return False
    predicted = 0.5 * (first.x + last.x) + h * (first.dx - last.dx) / 8
    size = np.maximum(first.size, last.size)
    return bool(
        np.all(np.abs(predicted - middle.x) <= TOLERANCE * np.maximum(size, np.max(size) * 1e-6))
    )


def _bernstein(g0, d0, g1, d1, h: float) -> np.ndarray:
    """Coefficients (g, 4) of the cubic with values ``g`` and derivatives ``d`` at both ends."""
    return np.stack([g0, g0 + h * d0 / 3, g1 - h * d1 / 3, g1], axis=1)


def _root(b: np.ndarray, begins: bool) -> float | None:
    """First zero in (0, 1] at which the cubic falls below zero, apart from a known one at 0."""
    if begins:
        # Division by s leaves a quadratic with the same further zeros.
        b = np.array([3 * b[1], 1.5 * b[2], b[3]])
        power = np.array([b[0] - 2 * b[1] + b[2], 2 * (b[1] - b[0]), b[0]])
    else:
        power = np.array(
            [
                b[3] - 3 * b[2] + 3 * b[1] - b[0],
                3 * (b[2] - 2 * b[1] + b[0]),
                3 * (b[1] - b[0]),
                b[0],
            ]
        )
    roots = np.roots(power) if np.any(power) else np.zeros(0)
    real = np.sort(roots.real[np.abs(roots.imag) <= 1e-9])
    falling = [s for s in real if 0.0 < s <= 1.0 + 1e-9 and np.polyval(np.polyder(power), s) <= 0]
    if falling:
        return min(float(falling[0]), 1.0)
    return 1.0 if b[-1] < 0 else None


def _locate(
    at: At, first: BranchPoint, last: BranchPoint, i: int, guess: float
) -> BranchPoint | None:
    """The point where margin ``i`` is zero, by Newton's method within the step."""
    low, high = sorted((float(first.p), float(last.p)))
    size, p, before = max(abs(low), abs(high)), guess, np.inf
    for _ in range(_NEWTON):
        point = at(p)
        if not np.isfinite(point.rate[i]) or point.rate[i] == 0.0:
            return None
        change = -point.margin[i] / point.rate[i]
        following = min(max(float(p + change), low), high)
        move = abs(following - p)
        # Rounding errors of a margin may move its zero back and forth.
        done = move <= 4 * np.finfo(float).eps * size or before <= move <= ROUNDED * size
        if done:
            return at(following)
        p, before = following, move
    return None
