"""Effects of sensors and drives on signals: gain and offset, delay, first-order filter.

A sensor shows ``gain * signal(t - delay) + offset`` behind a filter ``lag dy/dt + y = signal``; an
input acts ``delay`` later than it was recorded, behind such a filter. All of these are parameters
of a fit, by path: ``sensor.SIGNAL.gain``, ``.offset``, ``.delay`` [s], ``.lag`` [s];
``input.PATH.delay``, ``.lag``; ``delay`` [s] is common to all sensors. Derivatives are those of the
formulas below, exact for delays of any part of a sample.

Between samples a measured signal is a cubic (Hermite; slopes are those given, or by parabolas
through three samples). A filter takes its input as straight from sample to sample, and has already
settled on the first line when the record begins. An input that is held until the next sample keeps
the impulse of each sample: it is replaced by its mean from one sample to the next, after delay and
filter. The motion then differs from that under the true steps by the square of a sample's length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

#: Path of the delay of all sensors.
DELAY = "delay"
SENSOR_FIELDS = {"offset": 0.0, "gain": 1.0, "delay": 0.0, "lag": 0.0}
INPUT_FIELDS = {"delay": 0.0, "lag": 0.0}


def measurement_parameters(signals: Sequence[str], inputs: Sequence[str] = ()) -> dict[str, float]:
    """Parameters of the measurement, with the values that they have if they are not fitted."""
    return {
        **{f"sensor.{s}.{f}": x for s in signals for f, x in SENSOR_FIELDS.items()},
        **{f"input.{u}.{f}": x for u in inputs for f, x in INPUT_FIELDS.items()},
        DELAY: 0.0,
    }


def total_delay(signal: str, values: Mapping[str, Any]):
    """Delay of a sensor [s]; None if no delay is a parameter."""
    own = [values[p] for p in (DELAY, f"sensor.{signal}.delay") if p in values]
    return sum(own) if own else None


def shown(t, column, signal: str, values: Mapping[str, Any]):
    """Samples (m,) that the sensor of ``signal`` shows for values ``column`` (m,) of the signal at
    the times ``t`` (m,), without the delay of the sensor."""
    lag, gain, offset = (values.get(f"sensor.{signal}.{f}") for f in ("lag", "gain", "offset"))
    if lag is not None:
        column = filtered(t, column, lag)
    column = column if gain is None else gain * column
    return column if offset is None else column + offset


def acting(t, u, path: str, values: Mapping[str, Any], hold: str):
    """Samples (m,) of the input ``path`` as it acts, from its record ``u`` (m,) at times ``t``."""
    delay, lag = (values.get(f"input.{path}.{f}") for f in ("delay", "lag"))
    t = _even_behind(t)
    if hold == "zero":
        if delay is not None:
            u = _mean_of_delayed_steps(t, u, delay)
        return u if lag is None else _mean_of_filtered_steps(t, u, lag)
    if delay is not None:
        u = jnp.interp(t - delay, t, u)
    return u if lag is None else filtered(t, u, lag)


def at_times(times, t, values, rates=None):
    """A signal with ``values`` (m,) and ``rates`` at ``t`` (m,) at other ``times``; constant
    outside."""
    t = _even_behind(t)
    rate = slopes(t, values) if rates is None else rates
    i = jnp.clip(jnp.searchsorted(t, times, side="right") - 1, 0, t.shape[0] - 2)
    h = t[i + 1] - t[i]
    s = jnp.clip((times - t[i]) / h, 0.0, 1.0)
    rest = 1.0 - s
    return (
        rest**2 * ((1.0 + 2.0 * s) * values[i] + s * h * rate[i])
        + s**2 * ((1.0 + 2.0 * rest) * values[i + 1] - rest * h * rate[i + 1])
    )  # fmt: skip


def filtered(t, values, lag):
    """Solution of ``lag dy/dt + y = values``, straight between samples."""
    t = _even_behind(t)
    h = jnp.diff(t)
    slope = jnp.diff(values) / h
    decay = _decay(h, lag)
    # On a straight line the filter lags by ``lag`` and its initial state has decayed.
    offset = lag * slope

    def one(y, row):
        a, after, behind, decay = row
        y = after - behind + (y - (a - behind)) * decay
        return y, y

    first = values[0] - offset[0]
    _, rest = lax.scan(one, first, (values[:-1], values[1:], offset, decay))
    return jnp.concatenate([first[None], rest])


def _mean_of_delayed_steps(t, u, delay):
    """Means from each sample to the next of steps ``u``, ``delay`` later; before the first sample
    the input is ``u[0]``."""
    h = jnp.diff(t)
    # The integral of the steps is straight between samples.
    whole = jnp.concatenate([jnp.zeros((1,), u.dtype), jnp.cumsum(h * u[:-1])])

    def integral(times):
        before = u[0] * jnp.minimum(times - t[0], 0.0)
        behind = u[-1] * jnp.maximum(times - t[-1], 0.0)
        return before + behind + jnp.interp(times, t, whole)

    ends = jnp.append(t, t[-1] + h[-1]) - delay
    return jnp.diff(integral(ends)) / jnp.append(h, h[-1])


def _mean_of_filtered_steps(t, u, lag):
    """Means from each sample to the next of steps ``u`` after a filter that has settled."""
    h = jnp.diff(t, append=2.0 * t[-1:] - t[-2:-1])
    decay = _decay(h, lag)
    share = jnp.where(h > 0.0, lag * (1.0 - decay) / h, 0.0)

    def one(y, row):
        u, decay, share = row
        return u + (y - u) * decay, u + (y - u) * share

    return lax.scan(one, u[0], (u, decay, share))[1]


def _decay(h, lag):
    """``exp(-h/lag)``, with the limit 0 and the derivative 0 for zero lag."""
    has = lag > 0.0
    return jnp.where(has, jnp.exp(-h / jnp.where(has, lag, 1.0)), 0.0)


def slopes(t, values):
    """Slopes at the samples: those of the parabolas through them and their neighbours."""
    h, rise = jnp.diff(t), jnp.diff(values)
    rate = rise / h
    inner = (h[1:] * rate[:-1] + h[:-1] * rate[1:]) / (h[1:] + h[:-1])
    return jnp.concatenate([rate[:1], inner, rate[-1:]])


def _even_behind(t):
    """Times that go on increasing behind the end of a record, where they are infinite."""
    there = jnp.isfinite(t)
    last = jnp.max(jnp.where(there, t, -jnp.inf))
    count = jnp.sum(there)
    step = (last - t[0]) / jnp.maximum(count - 1, 1)
    return jnp.where(there, t, last + step * (jnp.arange(t.shape[0]) - count + 1))
