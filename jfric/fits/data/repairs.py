"""Repairs of what loggers do to a record: angles that begin anew after a turn, repeated times,
columns with times of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

#: Names of the dimensions of positions, which may be wrapped.
POSITIONS = ("angle", "length")
#: Bits of encoders and counters whose readings begin anew.
BITS = range(8, 33)
#: Most that a step behind a jump may be, as a multiple of the largest other step.
LIKE = 3.0


def unwrapped(
    values: Float[np.ndarray, " m"], angles: Sequence[float]
) -> tuple[np.ndarray, str] | None:
    """Readings without the jumps of a position that begins anew, and a remark; None where it does
    not. ``angles``: what one unit of the readings may be in radians, empty if it is no angle.

    It begins anew after a turn, if it is an angle, or after ``2^n`` steps of an encoder that gives
    whole numbers. All readings lie within one such period, jumps are longer than
    half of it, and the motion goes on behind a jump as it does elsewhere.
    """
    there = np.flatnonzero(np.isfinite(values))
    x = values[there]
    if x.size < 3:
        return None
    jump = float(np.max(np.abs(np.diff(x))))
    periods = [(2.0 * np.pi / abs(angle), "every turn") for angle in angles]
    if np.all(x == np.round(x)):
        reached = max(x.max() + 1.0, 2.0 * -x.min(), 2.0 * (x.max() + 1.0) * (x.min() < 0.0))
        bits = int(np.ceil(np.log2(max(reached, 1.0))))
        if bits in BITS:
            periods.append((2.0**bits, f"every 2^{bits} steps"))
    for period, said in periods:
        if not period / 2 < jump or np.ptp(x) > period * (1.0 + 1e-3):
            continue
        smooth = np.unwrap(x, period=period)
        steps, jumps = np.abs(np.diff(smooth)), np.abs(np.diff(x)) > period / 2
        if steps[jumps].max() <= LIKE * steps[~jumps].max(initial=0.0):
            found = values.astype(float).copy()
            found[there] = smooth
            return found, f"begins anew {said}, {jumps.sum():,} times: it was unwrapped"
    return None


def first_of_each(t: Float[np.ndarray, " m"], values: Float[np.ndarray, " m"]) -> np.ndarray:
    """The first number at each of the times ``t``, which do not fall; NaN where there is none."""
    starts = np.flatnonzero(np.r_[True, np.diff(t) > 0])
    order = np.where(np.isfinite(values), np.arange(t.size), t.size)
    chosen = np.minimum.reduceat(order, starts)
    return np.where(chosen < t.size, values[np.minimum(chosen, t.size - 1)], np.nan)


def at_times(t, own, values, *, held: bool) -> np.ndarray:
    """``values`` at the times ``own`` brought to the times ``t``: the last one if ``held``, else on
    straight lines; NaN where there is none. The first held one counts a step earlier as well."""
    there = np.isfinite(own) & np.isfinite(values)
    if not there.any():
        return np.full(t.shape, np.nan)
    own, values = own[there], values[there]
    if not held:
        own, first = np.unique(own, return_index=True)
        return np.interp(t, own, values[first], left=np.nan, right=np.nan)
    # Written times are rounded.
    slack = 1e-9 * max(np.ptp(own), np.ptp(t))
    steps = np.asarray(np.diff(np.unique(own)), float)
    step = float(np.median(steps)) if steps.size else 0.0
    found = values[np.maximum(np.searchsorted(own, t + slack, side="right") - 1, 0)]
    return np.where(t >= own[0] - step - slack, found, np.nan)
