"""Two recordings of one run, by devices with clocks of their own, as one record.

Both measure one signal. The second clock shows ``t' = (t - shift)/(1 + drift)``; a shift at which
the signal of both correlates best is a start, and least squares give shift and drift within the
step of the samples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from jfric.errors import ProblemError, nearest
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.repairs import at_times

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
    if signal not in measured:
        raise ProblemError(
            f"signal: found {signal!r}{nearest(signal, measured)}, the {where} record has "
            + ", ".join(measured)
        )
    used = _mask(e, signal) & np.isfinite(measured[signal])
    if not np.ptp(measured[signal][used]) > 0.0:
        raise ProblemError(f"{signal}: the {where} record never changes, no clock follows from it")
    return e.t[used], measured[signal][used]


def _mask(e: Experiment, name: str) -> np.ndarray:
    return np.asarray((e.mask or {}).get(name, np.ones(e.t.size, bool)))
