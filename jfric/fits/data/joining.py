"""Repairs of what loggers do to a record, and two recordings of one run made one record.

Loggers let angles begin anew after a turn, repeat times, and give columns times of their own. Two
recordings, by devices with clocks of their own, measure one signal. The second clock shows
``t' = (t - shift)/(1 + drift)``; a shift at which the signal of both correlates best is a start,
and least squares give shift and drift within the step of the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from jfric.errors import ProblemError, require_one_of
from jfric.fits.data.experiment import Experiment

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


#: Least part of the shorter recording that both have in common.
COMMON = 0.5
#: Least correlation of the signal in both.
LEAST = 0.7
#: Samples to which signals are thinned for the search, and for the least squares.
MOST = 200_000
#: How much farther from one another correlation at least is, and as a multiple of the best one.
APART, TIMES = 2e-3, 2.0


class Clock(NamedTuple):
    """``t = shift + (1 + drift) t'`` of the times ``t'`` of a second clock [s], and the correlation
    of the signal in both."""

    shift: float
    drift: float
    correlation: float


def join_records(first: Experiment, second: Experiment, signal: str) -> Experiment:
    """One record of two recordings ``first`` and ``second`` of a run, on the clock of the first.

    ``signal`` is the quantity or input that both measure, in any unit and with any offset. Shift
    [s] and drift of the second clock are found by it. The result has the samples of the first while
    both run. Other quantities of the second lie on straight lines between its samples, its inputs
    hold their last value; a remark in ``meta["remarks"]`` gives the clock. Raises
    :class:`jfric.ProblemError` for a signal that one lacks, that correlates too little, or that
    repeats itself so that several shifts fit.
    A scope that was started 0.25 s after the drive::

        >>> t = jnp.linspace(0.0, 4.0, 401)
        >>> drive = jfric.Experiment(t, y={"x": jnp.sin(3.0 * t**2)})
        >>> late = t[:300]
        >>> data = {"x": jnp.sin(3.0 * (late + 0.25) ** 2), "a.x": late}
        >>> both = jfric.join_records(drive, jfric.Experiment(late, y=data), "x")
        >>> round(float(both.t[0]), 3), both.y["a.x"][:2].round(3).tolist()
        (0.25, [0.0, 0.01])
    """
    one, other = (_samples(e, signal, where) for e, where in ((first, "first"), (second, "second")))
    clock = clock_of(*one, *other, signal)
    own = clock.shift + (1.0 + clock.drift) * second.t
    # The first sample of the second may lie on one of the first, but for rounding.
    slack = 1e-3 * float(np.median(np.diff(first.t)))
    inside = (first.t >= own[0] - slack) & (first.t <= own[-1] + slack)
    t = first.t[inside]
    y = {k: np.where(_mask(first, k), v, np.nan)[inside] for k, v in first.y.items()}
    u = {k: v[inside] for k, v in (first.u or {}).items()}
    near = np.clip(t, own[0], own[-1])
    for name, values in second.y.items():
        if name not in (*y, *u):
            y[name] = at_times(near, own, np.where(_mask(second, name), values, np.nan), held=False)
    for name, values in (second.u or {}).items():
        if name not in (*y, *u):
            u[name] = at_times(near, own, values, held=True)
    there = {k: np.isfinite(v) for k, v in y.items()}
    said = (
        f"the clock of {second.name or 'the second record'} was found by {signal}: t = "
        f"{clock.shift:.6g} s + {1.0 + clock.drift:.8g} t', correlation {clock.correlation:.4g}"
    )

    def merged(name: str):
        return {**(getattr(second, name) or {}), **(getattr(first, name) or {})} or None

    joined = Experiment(
        t,
        u,
        y,
        sigma=merged("sigma"),
        x0=first.x0 if inside[0] else None,
        mask=None if all(m.all() for m in there.values()) else there,
        meta=first.meta,
        resolution=merged("resolution"),
    )
    return joined.with_remarks(*second.remarks, said)


def clock_of(t, x, other_t, other_x, signal: str) -> Clock:
    """The clock of the samples ``other_x`` of the ``signal`` [s] by samples ``x`` of the first."""
    dt = min(float(np.median(np.diff(a))) for a in (t, other_t))
    dt = max(dt, max(np.ptp(t), np.ptp(other_t)) / MOST)
    a, b = _even(t, x, dt), _even(other_t, other_x, dt)
    r, lags = _correlation(a, b)
    best = int(np.argmax(r))
    if not r[best] >= LEAST:
        raise ProblemError(
            f"{signal}: found a correlation of at most {r[best]:.3f} between both records, "
            f"{LEAST:g} is needed to find the clock"
        )
    again = _other_peak(r, best)
    if again is not None:
        raise ProblemError(
            f"{signal}: shifts of {lags[best] * dt:.6g} s and {lags[again] * dt:.6g} s fit equally "
            "well, because the signal repeats itself; a record from rest on tells them apart"
        )
    return _refined(t, x, other_t, other_x, lags[best] * dt + t[0] - other_t[0], dt)


def _even(t, x, dt: float) -> np.ndarray:
    found = np.interp(np.arange(t[0], t[-1] + 0.5 * dt, dt), t, x)
    return found - found.mean()


def _correlation(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " m"]):
    """Correlation of the common parts of ``a`` and of ``b`` shifted by each lag, and the lags."""
    from scipy import signal  # slow to import

    lags = signal.correlation_lags(a.size, b.size)
    ones = np.ones(a.size), np.ones(b.size)

    def sums(one, other):
        return signal.correlate(one, other, method="fft")

    count = np.maximum(np.round(sums(*ones)), 1.0)
    of_a, of_b = sums(a, ones[1]), sums(ones[0], b)
    spread = [
        np.maximum(square - total**2 / count, 0.0)
        for square, total in ((sums(a**2, ones[1]), of_a), (sums(ones[0], b**2), of_b))
    ]
    # Parts that hardly move correlate by chance.
    moves = (spread[0] > 1e-2 * np.sum(a**2)) & (spread[1] > 1e-2 * np.sum(b**2))
    used = moves & (count >= COMMON * min(a.size, b.size))
    with np.errstate(divide="ignore", invalid="ignore"):
        r = (sums(a, b) - of_a * of_b / count) / np.sqrt(spread[0] * spread[1])
    return np.where(used, r, -1.0), lags


def _other_peak(r: np.ndarray, best: int) -> int | None:
    """Another lag with nearly the best correlation."""
    from scipy import signal

    peaks, _ = signal.find_peaks(r, height=1.0 - TIMES * (1.0 - r[best]) - APART)
    for peak in sorted(peaks, key=lambda i: -r[i]):
        low, high = sorted((int(peak), best))
        # Noise makes several tops of one peak.
        if low != high and r[low:high].min() < r[best] - 0.05:
            return int(peak)
    return None


def _refined(t, x, other_t, other_x, shift: float, dt: float) -> Clock:
    """Shift and drift by least squares of the first signal on the second, with gain and offset."""
    from scipy import optimize

    inside = (t >= shift + other_t[0]) & (t <= shift + other_t[-1])
    t, x = t[inside][:: 1 + t.size // MOST], x[inside][:: 1 + t.size // MOST]
    middle, length = t.mean(), max(np.ptp(t), dt)

    def others(p):
        now = middle + p[0] * dt + (1.0 + p[1] * dt / length) * (other_t + shift - middle)
        return np.interp(t, now, other_x)

    def left(p):
        z = others(p)
        z, w = z - z.mean(), x - x.mean()
        return w - (w @ z) / (z @ z) * z

    found = optimize.least_squares(left, np.zeros(2), diff_step=1e-2, x_scale="jac").x
    drift = float(found[1] * dt / length)
    start = middle + found[0] * dt + (1.0 + drift) * (shift - middle)
    return Clock(float(start), drift, float(np.corrcoef(x, others(found))[0, 1]))


def _samples(e: Experiment, signal: str, where: str) -> tuple[np.ndarray, np.ndarray]:
    measured = {**(e.u or {}), **e.y}
    require_one_of("signal", signal, measured, f"the {where} record has")
    used = _mask(e, signal) & np.isfinite(measured[signal])
    if not np.ptp(measured[signal][used]) > 0.0:
        raise ProblemError(f"{signal}: the {where} record never changes, no clock follows from it")
    return e.t[used], measured[signal][used]


def _mask(e: Experiment, name: str) -> np.ndarray:
    return np.asarray((e.mask or {}).get(name, np.ones(e.t.size, bool)))
