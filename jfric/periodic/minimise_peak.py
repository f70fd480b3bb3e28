"""``minimise_peak``: the parameter for which a resonance peak is as low as possible."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq

from jfric.errors import ProblemError, SimulationError
from jfric.numerics.continuation import halved, run
from jfric.numerics.limits import require_count
from jfric.numerics.printing import printable
from jfric.periodic.cycle_quantities import parse_cycle_quantities
from jfric.periodic.response import frequency_response
from jfric.periodic.response_peak import Curve, ResponsePeak, peak_at, scale_of
from jfric.periodic.response_result import FrequencyResponse
from jfric.statics.path_names import checked_path
from jfric.system.problem import Problem

#: Default number of values in the coarse search, and the largest one.
COUNT, MOST = 9, 10_000
#: Accuracy of the optimum, as a part of the interval, and largest number of halvings.
PLACED, HALVINGS = 1e-12, 60
#: Relative height by which a peak may be higher and still count as the same.
SAME = 1e-9


@printable
@dataclass(frozen=True)
class LowestPeak:
    """The optimum of :func:`minimise_peak`.

    ``path``: the parameter, ``parameter`` its value, ``peak`` the peak there. ``kind``:
    ``"stationary"`` where the derivative of the peak is zero; ``"equal peaks"`` where two peaks of
    the curve are equally high, so that the derivative jumps; ``"end"`` where the peak is lowest at
    an end of the interval. ``values`` and ``peaks`` (k,): results of the coarse search.
    Example: see :func:`jfric.minimise_peak`.
    """

    path: str
    parameter: float
    peak: ResponsePeak
    kind: Literal["stationary", "equal peaks", "end"]
    values: np.ndarray
    peaks: np.ndarray


def minimise_peak(
    problem: Problem,
    load: str,
    quantity: str,
    path: str,
    low: float,
    high: float,
    start: float,
    stop: float,
    *,
    count: int = COUNT,
    **options: Any,
) -> LowestPeak:
    """The value of the parameter ``path`` between ``low`` and ``high`` with the lowest peak.

    The peak is the largest value of ``quantity`` on the response of ``problem`` to ``load`` over
    frequencies from ``start`` to ``stop`` [rad/s], see :func:`jfric.frequency_response`, which
    takes the ``options``. A coarse search over ``count`` values shows where the lowest peak lies.
    Between the neighbours of that value the derivative of the peak is brought to zero, following
    the peak itself. The whole curve there confirms that no other peak is higher; otherwise the
    value at which both peaks are equal is found.

    Returns a :class:`jfric.LowestPeak`. Raises :class:`jfric.ProblemError` for bad input,
    :class:`jfric.SimulationError` where a curve of the coarse search is not complete.
    After the example of :func:`jfric.frequency_response`, a damper is best as strong as allowed::

        >>> best = jfric.minimise_peak(
        ...     linear, "load", "x", "damper.c", 0.2, 0.3, 0.9, 1.05, count=3
        ... )
        >>> best.kind, best.parameter, round(best.peak.value, 6)
        ('end', 0.3, 3.371478)
    """
    name = checked_path(problem, path)
    low, high = float(low), float(high)
    if not np.isfinite([low, high]).all() or not low < high:
        raise ProblemError(f"low, high: found {low:g} and {high:g}, needs low below high")
    require_count("count", count, 3, MOST)
    values = np.linspace(low, high, count)
    over = {name: values}
    family = frequency_response(problem, load, start, stop, over=over, **options)
    for i, curve in enumerate(family.curves):
        if not curve.complete:
            raise SimulationError(
                f"minimise_peak: the curve with {family.label(i)} is not complete: {curve.outcome}"
            )
    peaks = [family.peak(quantity, [name], i) for i in range(len(family.curves))]
    heights = np.asarray([p.value for p in peaks])
    best = int(np.argmin(heights))
    kept = {"path": name, "values": values, "peaks": heights}
    outward = {0: 1.0, count - 1: -1.0}.get(best)
    if outward is not None and not peaks[best].derivatives[name] * outward < 0.0:
        return LowestPeak(parameter=float(values[best]), peak=peaks[best], kind="end", **kept)
    bracket = float(values[max(best - 1, 0)]), float(values[min(best + 1, count - 1)])
    follow = _Peaks(family, quantity, name, float(values[best]), peaks[best], best)

    def whole(value: float) -> ResponsePeak:
        found = frequency_response(
            problem, load, start, stop, over={name: np.asarray([value])}, **options
        )
        return found.peak(quantity, [name])

    peak = follow.stationary(*bracket)
    if peak is not None and not whole(peak[0]).value > peak[1].value * (1.0 + SAME):
        return LowestPeak(parameter=peak[0], peak=peak[1], kind="stationary", **kept)
    value = _crossing(whole, name, *bracket)
    return LowestPeak(parameter=value, peak=whole(value), kind="equal peaks", **kept)


class _Peaks:
    """One peak, followed over a parameter."""

    def __init__(self, family: FrequencyResponse, quantity, name, value, peak, curve: int):
        (chosen,) = parse_cycle_quantities(family.problem, [quantity])
        row = family.curves[curve]
        near = np.argsort(np.abs(row.parameter - peak.frequency))[:5]
        scale = scale_of(peak.state, row.state[near], peak.frequency)
        self._curve = Curve.of(family.driven, chosen, [name], peak.begins, scale)
        self._known, self._name = {value: peak}, name

    def at(self, value: float) -> ResponsePeak:
        """The peak for a value of the parameter, followed from the nearest known one; raises
        :class:`ArithmeticError` where it is lost."""
        if value in self._known:
            return self._known[value]
        near = min(self._known, key=lambda other: abs(other - value))
        before = self._known[near]
        made = dataclasses.replace(self._curve, values=np.asarray([value]))
        first = made.at(np.append(before.state, before.frequency), None)
        spot = None if first is None else made.stationary(first)
        if first is None or spot is None:
            raise ArithmeticError
        found = peak_at(made, first, spot, dataclasses.replace(before, derivatives={}))
        if found.kind != "smooth":
            raise ArithmeticError
        self._known[value] = found
        return found

    def stationary(self, low: float, high: float) -> tuple[float, ResponsePeak] | None:
        """Value at which the derivative is zero, and the peak there; None if the peak is lost, or
        its derivative keeps its sign."""

        def slope(value: float) -> float:
            return self.at(value).derivatives[self._name]

        # The ends are reached in steps small enough to follow the peak.
        middle = next(iter(self._known))
        try:
            for end in (low, high):
                for part in (0.25, 0.5, 0.75, 1.0):
                    slope(middle + part * (end - middle))
            if not slope(low) < 0.0 < slope(high):
                return None
            place: Any = brentq(slope, low, high, xtol=PLACED * (high - low))
            return float(place), self.at(float(place))
        except ArithmeticError:
            return None


def _crossing(whole, name: str, low: float, high: float) -> float:
    """Value at which the derivative of the largest peak jumps through zero, by halving."""

    def falls(value: float) -> bool:
        slope = whole(value).derivatives[name]
        if np.isnan(slope):
            raise SimulationError(
                f"minimise_peak: the peak at {name} = {value:.9g} has no derivative, for events "
                "change right there"
            )
        return slope < 0.0

    low, high = run(halved(low, high, 1e2 * PLACED, 0.0, HALVINGS), falls)
    return 0.5 * (low + high)
