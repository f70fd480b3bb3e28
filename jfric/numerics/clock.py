"""Time as a number and what rounding leaves out of it.

A flight that is repeated has the same length every time: rounding it to what time resolves would
shift all later impacts to the same side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float


class Instant(NamedTuple):
    """The instant ``t + rest``; ``t`` is the number nearest to it."""

    t: Float[Array, ""]
    rest: Float[Array, ""]


def later(t, rest, s) -> Instant:
    """The instant a time ``s`` after ``t + rest``; exact but for the rounding of ``rest + s``.

    Source: D. E. Knuth, The Art of Computer Programming, volume 2, section 4.2.2, theorem B.
    """
    passed = s + rest
    after = t + passed
    back = after - t
    return Instant(after, (t - (after - back)) + (passed - back))


def outside_span(times, start: Any, end: Any) -> np.ndarray:
    """Which ``times`` lie before ``start`` or behind ``end``, beyond the rounding of these two."""
    kinds = [np.asarray(x).dtype for x in (start, end)]
    eps = max(np.finfo(kind if kind.kind == "f" else float).eps for kind in kinds)
    first, last = float(start), float(end)
    slack = 4 * eps * max(abs(first), abs(last))
    times = np.asarray(times, dtype=float)
    return np.asarray((times < first - slack) | (times > last + slack))
