"""The peak of a response curve: the place where a quantity is stationary, and its derivatives.

On a curve ``F(x, w; p) = 0`` of orbits, with the quantity ``A(x, w; p)``, the peak is where
``dA/ds = A_x x' + A_w w' = 0`` along the unit tangent ``(x', w')``, which is regular at a fold. As
``A`` is stationary along the curve, its change with a parameter is ``A_u du + A_p dp`` for any
``du`` with ``F_u du = -F_p dp``: the envelope theorem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import brentq

from jfric.errors import ProblemError
from jfric.numerics.printing import printable
from jfric.periodic.cycle_quantities import CycleQuantity, Driven, with_slopes
from jfric.periodic.linearised import UNDECIDED
from jfric.periodic.newton import EQUAL, LAST_STEP, RESIDUAL
from jfric.periodic.orbit import none_grows
from jfric.periodic.path import ResponseCurve
from jfric.periodic.path_kernel import direction_of
from jfric.statics.path_names import checked_path
from jfric.system.naming import get_parameter, set_parameters

#: Rounds of Newton's method on a plane across the curve.
ROUNDS = 12
#: First distance along the curve at which a peak is bracketed, and the largest one, in sizes of the
#: motion and of the frequency; and the accuracy of the peak's place.
NEAR, FAR, PLACED = 1e-3, 1.0, 1e-13
#: Distance along the curve below which an orbit that is not found is given up.
SHORTEST = 1e-8
#: Relative size of the slope at a change of its sign, compared with its neighbours, above which the
#: curve has a corner.
CORNER = 1e-4


@printable
@dataclass(frozen=True)
class ResponsePeak:
    """The largest value of a quantity on a response curve.

    ``frequency`` [rad/s] and ``value`` of the ``quantity``; ``derivatives``: of the value by
    parameters, by path;
    ``begins`` [s] and ``state`` (2n,): start of the orbit; ``stable``. ``kind``: ``"smooth"`` where
    the quantity is stationary on the curve; ``"corner"`` where events change exactly at the largest
    value, and ``"end"`` where the curve ends there, both without derivatives; ``"none"`` for a
    curve without points. Example: see :func:`jfric.frequency_response`.
    """

    quantity: str
    frequency: float
    value: float
    kind: Literal["smooth", "corner", "end", "none"]
    begins: float = float("nan")
    state: np.ndarray = field(default_factory=lambda: np.zeros(0))
    stable: bool = False
    derivatives: dict[str, float] = field(default_factory=dict)


class Spot(NamedTuple):
    """An orbit near a peak: ``x`` = state and frequency (2n + 1,), the value, its slope along the
    scaled unit ``tangent`` (2n + 1,), and the derivatives of the end of the cycle and the value by
    ``x`` and the parameters."""

    x: np.ndarray
    value: float
    slope: float
    tangent: np.ndarray
    slopes: np.ndarray


@dataclass(frozen=True)
class Curve:
    """Orbits near a row of a curve that begin at ``begins`` [s], and derivatives there. ``paths``:
    parameters by which derivatives are requested, with their ``values``; ``scale``: sizes of state
    and frequency."""

    driven: Driven
    quantity: CycleQuantity
    paths: tuple[str, ...]
    begins: float
    scale: np.ndarray
    values: np.ndarray

    @staticmethod
    def of(driven: Driven, quantity, paths: Sequence[str], begins: float, scale) -> Curve:
        """The curve at the parameters of the problem."""
        own = [float(np.asarray(get_parameter(driven.problem, path))) for path in paths]
        return Curve(driven, quantity, tuple(paths), begins, scale, np.asarray(own))

    def at(self, x: np.ndarray, tangent: np.ndarray | None) -> Spot | None:
        """The orbit near ``x`` on the plane across the curve through ``x``; None if there is
        none."""
        size, n, last = len(x), len(x) - 1, False
        paths = (self.driven.drive.path, *self.paths)
        for _ in range(ROUNDS):
            numbers = np.concatenate([x, self.values])
            found, slopes = with_slopes(self.driven, self.quantity, paths, self.begins, numbers)
            if not (np.isfinite(found).all() and np.isfinite(slopes).all()):
                return None
            off = (found[:n] - x[:n]) / self.scale[:n]
            rows = self._rows(slopes)
            # Without a direction, the one in which the frequency changes.
            along = direction_of(rows, np.eye(size)[n] if tangent is None else tangent)[0]
            if last and np.max(np.abs(off)) <= RESIDUAL:
                slope = float(slopes[n, :size] @ (self.scale * along))
                return Spot(x, float(found[n]), slope, along, slopes)
            tangent = along if tangent is None else tangent
            across = np.vstack([rows, tangent]), np.append(-off, 0.0)
            step = np.linalg.lstsq(*across, rcond=UNDECIDED)[0]
            # The remaining error is the square of this step.
            last = bool(np.max(np.abs(step)) <= LAST_STEP)
            x = x + step * self.scale
            # A state within rounding of the end of the cycle is set to that end: a contact may
            # stick.
            near = np.abs(x[:n] - found[:n]) <= EQUAL * self.scale[:n]
            x = np.append(np.where(near, found[:n], x[:n]), x[n])
        return None

    def _rows(self, slopes: np.ndarray) -> np.ndarray:
        """Scaled derivatives (2n, 2n + 1) of the condition of an orbit by state and frequency."""
        n, size = len(self.scale) - 1, len(self.scale)
        return (slopes[:n, :size] - np.eye(n, size)) * self.scale / self.scale[:n, None]

    def derivatives(self, spot: Spot) -> dict[str, float]:
        """Derivatives of the value at a stationary point by the parameters ``paths``."""
        n, size = len(spot.x) - 1, len(spot.x)
        rows = np.vstack([self._rows(spot.slopes), spot.tangent])
        right = -spot.slopes[:n, size:] / self.scale[:n, None]
        right = np.vstack([right, np.zeros(right.shape[1])])
        moved = np.linalg.lstsq(rows, right, rcond=UNDECIDED)[0] * self.scale[:, None]
        total = spot.slopes[n, :size] @ moved + spot.slopes[n, size:]
        return dict(zip(self.paths, total.tolist(), strict=True))

    def stationary(self, first: Spot) -> Spot | None:
        """The place near ``first`` where the value is stationary; None if there is none near. At a
        corner the slope is not zero."""
        if first.slope == 0.0:
            return first
        side = np.sign(first.slope)
        known = {0.0: first}

        def slope(s: float) -> float:
            if s not in known:
                # Continue from the nearest known orbit, in small parts.
                near = min(known, key=lambda other: abs(other - s))
                x = first.x + s * first.tangent * self.scale
                guess = known[near].x + (s - near) * known[near].tangent * self.scale
                across = first.tangent @ ((x - guess) / self.scale)
                found = self.at(guess + across * first.tangent * self.scale, first.tangent)
                if found is None:
                    raise _LostError
                known[s] = found
            spot = known[s]
            return spot.slope * float(np.sign(spot.tangent @ first.tangent))

        inside, step = 0.0, side * NEAR
        while True:
            try:
                if slope(inside + step) * side <= 0.0:
                    break
            except _LostError:
                step *= 0.25
                if abs(step) < SHORTEST:
                    return None
                continue
            inside, step = inside + step, 2.0 * step
            if abs(inside) > FAR:
                return None
        try:
            s: Any = brentq(slope, inside, inside + step, xtol=PLACED)
        except _LostError:
            return None
        slope(s)
        return known[s]


class _LostError(Exception):
    """Error for an orbit that was not found."""


def scale_of(state: np.ndarray, states: np.ndarray, frequency: float) -> np.ndarray:
    """Sizes of the state and the frequency along a curve."""
    sizes = np.max(np.abs(states), axis=0, initial=0.0) if len(states) else np.abs(state)
    n = len(state) // 2
    for part in (slice(0, n), slice(n, None)):
        largest = np.max(sizes[part], initial=0.0)
        sizes[part] = np.maximum(sizes[part], 1e-3 * largest if largest > 0 else 1.0)
    return np.append(sizes, abs(frequency))


def largest_peak(
    driven: Driven,
    curve: ResponseCurve,
    quantity: CycleQuantity,
    values: np.ndarray,
    by: Sequence[str],
) -> ResponsePeak:
    """The peak of a curve, from the ``values`` (r,) at its rows."""
    paths = [checked_path(driven.problem, path) for path in by]
    nothing = dict.fromkeys(paths, float("nan"))
    if driven.drive.path in paths:
        raise ProblemError(f"by: found {driven.drive.path}, along which the peak is stationary")
    if not len(curve) or not np.isfinite(values).any():
        return ResponsePeak(quantity.text, float("nan"), float("nan"), "none", derivatives=nothing)
    rows = [int(row) for row in _candidates(values)]
    found = [_located(driven, curve, quantity, values, paths, row) for row in rows]
    return max(found, key=lambda peak: peak.value)


def _candidates(values: np.ndarray) -> np.ndarray:
    """Rows whose value may belong to the largest peak: values change little between rows."""
    known = np.where(np.isfinite(values), values, -np.inf)
    left, right = np.append(-np.inf, known[:-1]), np.append(known[1:], -np.inf)
    peaks = np.flatnonzero((known >= left) & (known > right))
    peaks = peaks[np.argsort(-known[peaks])]
    beside = np.maximum(np.abs(known - left), np.abs(known - right))
    spread = np.where(np.isfinite(beside), beside, 0.0)[peaks]
    return peaks[known[peaks] + spread >= known[peaks[0]]][:4]


def _located(driven: Driven, curve, quantity, values, paths, row: int) -> ResponsePeak:
    near = slice(max(row - 2, 0), row + 3)
    scale = scale_of(curve.state[row], curve.state[near], curve.parameter[row])
    begins = float(curve.begins[row])
    problem = set_parameters(driven.problem, curve.values) if curve.values else driven.problem
    made = Curve.of(driven._replace(problem=problem), quantity, paths, begins, scale)
    first = made.at(np.append(curve.state[row], curve.parameter[row]), None)
    here = ResponsePeak(
        quantity=quantity.text,
        frequency=float(curve.parameter[row]),
        value=float(values[row]),
        kind="end" if row in (0, len(curve) - 1) else "corner",
        begins=begins,
        state=curve.state[row],
        stable=bool(curve.stable[row]),
        derivatives=dict.fromkeys(paths, float("nan")),
    )
    if first is None:
        return here
    spot = made.stationary(first)
    low, high = sorted((curve.parameter[0], curve.parameter[-1]))
    if spot is None or (here.kind == "end" and not low <= spot.x[-1] <= high):
        return here
    return peak_at(made, first, spot, here)


def peak_at(made: Curve, first: Spot, spot: Spot, here: ResponsePeak) -> ResponsePeak:
    """The peak at ``spot``, found from ``first``."""
    n = len(spot.x) - 1
    smooth = abs(spot.slope) <= max(CORNER * abs(first.slope), 1e-9 * abs(spot.value))
    monodromy = spot.slopes[:n, :n]
    return ResponsePeak(
        quantity=here.quantity,
        frequency=float(spot.x[-1]),
        value=spot.value,
        kind="smooth" if smooth else "corner",
        begins=here.begins,
        state=spot.x[:n],
        stable=bool(none_grows(np.max(np.abs(np.linalg.eigvals(monodromy))))),
        derivatives=made.derivatives(spot) if smooth else here.derivatives,
    )
