"""Rounding: thresholds below which a number counts as zero when a contact is decided, by
precision, and time with the remainder that rounding leaves out."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float


class Tolerances(NamedTuple):
    """Thresholds for one floating-point type; all of them are relative."""

    #: Values below ``zero`` times the sum of their contributions count as zero.
    zero: float
    #: Rounding errors of values that are known to be zero, in units of ``zero``: they accumulate.
    known: float
    #: Relative velocities beyond this fraction of their contributions are no rounding errors: the
    #: partner's velocity has jumped.
    jump: float
    #: Pivots of a unit diagonal down to ``-pivot`` come from rounding in redundant rows.
    pivot: float
    #: Fraction of the energy at an impact below which a gain is a rounding error.
    energy: float
    #: Excess over a limit of friction by which a predicted force must pass it.
    excess: float
    #: Impacts of several contacts that follow each other within this fraction of the time since the
    #: start, with velocities below ``chatter_velocity`` times the largest so far, are the end of an
    #: accumulating sequence. Gaps of such flights are lost in rounding; the neglected part is of
    #: second order.
    chatter_time: float
    chatter_velocity: float
    #: Gaps beyond this fraction of the value that counts as zero are no rounding errors of an
    #: impact that was located where it happened.
    late: float


DOUBLE = Tolerances(1e-12, 1e5, 1e-6, 1e-8, 1e-9, 1e-6, 1e-8, 1e-7, 1e-2)
SINGLE = Tolerances(2e-5, 100.0, 2e-3, 1e-4, 1e-5, 1e-4, 1e-4, 1e-3, 5e-2)

#: Rounding errors of a sum of some dozen terms, in units of the machine epsilon.
ROUNDINGS = 64
#: Relative pivot below which an equation counts as a consequence of others, unless the precision
#: needs more.
REDUNDANT = 1e-9
#: Sliding faster than this multiple of the fastest approach does not end in an impact.
FAST = 1e4


def tolerances(dtype) -> Tolerances:
    """Tolerances for ``dtype``."""
    return DOUBLE if jnp.finfo(dtype).bits >= 64 else SINGLE


def tolerance_of(dtype, wanted: float) -> float:
    """The relative tolerance ``wanted``, or that of the precision where this is larger."""
    return max(wanted, ROUNDINGS * float(jnp.finfo(dtype).eps))


class Instant(NamedTuple):
    """The instant ``t + rest``; ``t`` is the nearest floating-point number."""

    t: Float[Array, ""]
    rest: Float[Array, ""]


def later(t, rest, s) -> Instant:
    """Instant at a time ``s`` after ``t + rest``; exact except for the rounding of ``rest + s``.

    A repeated flight has the same length every time: if it were rounded to the resolution of time,
    all later impacts would be shifted to the same side.
    Source: D. E. Knuth, The Art of Computer Programming, volume 2, section 4.2.2, theorem B.
    """
    passed = s + rest
    after = t + passed
    back = after - t
    return Instant(after, (t - (after - back)) + (passed - back))


def sooner(t: Float[Array, "*k"], other) -> Float[Array, "*k"]:
    """The earlier of two times; of equal ones the first, with its derivatives (those of a minimum
    would be the mean of both)."""
    return jnp.where(t <= other, t, other)


def near(times: Float[Array, "*k"], t) -> Bool[Array, "*k"]:
    """Mask of ``times`` that only rounding separates from ``t``."""
    return jnp.abs(times - t) <= ROUNDINGS * jnp.finfo(times.dtype).eps * jnp.abs(t)


def outside_span(times, start: Any, end: Any) -> np.ndarray:
    """Mask of ``times`` before ``start`` or after ``end``, beyond the rounding of these two."""
    kinds = [np.asarray(x).dtype for x in (start, end)]
    eps = max(np.finfo(kind if kind.kind == "f" else float).eps for kind in kinds)
    first, last = float(start), float(end)
    slack = 4 * eps * max(abs(first), abs(last))
    times = np.asarray(times, dtype=float)
    return np.asarray((times < first - slack) | (times > last + slack))
