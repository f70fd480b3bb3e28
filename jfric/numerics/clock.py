"""Time as a number and the remainder that rounding leaves out.

A repeated flight has the same length every time: if it were rounded to the resolution of time, all
later impacts would be shifted to the same side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.numerics.tolerances import ROUNDINGS


class Instant(NamedTuple):
    """The instant ``t + rest``; ``t`` is the nearest floating-point number."""

    t: Float[Array, ""]
    rest: Float[Array, ""]


def later(t, rest, s) -> Instant:
    """Instant at a time ``s`` after ``t + rest``; exact except for the rounding of ``rest + s``.

    Source: D. E. Knuth, The Art of Computer Programming, volume 2, section 4.2.2, theorem B.
    """
    passed = s + rest
    after = t + passed
    back = after - t
    return Instant(after, (t - (after - back)) + (passed - back))


def sooner(t: Float[Array, ""], other) -> Float[Array, ""]:
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
