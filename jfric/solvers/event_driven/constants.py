"""Numerical constants of the event-driven solver, by precision."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from jfric.numerics.tolerances import DOUBLE, SINGLE


class Constants(NamedTuple):
    """Orders and thresholds for one floating-point type."""

    #: Order of the Taylor form of the exact flow.
    order: int
    #: Largest step times the spectral scale of the mode; theta^(p+1)/(p+1)! is below rounding.
    theta: float
    #: Order for steps up to this fraction of the longest, with the same remainder.
    short_order: int
    short: float
    #: Degree up to which guards enter the certificate; the rest is bounded.
    certificate_order: int
    #: As in :class:`jfric.numerics.tolerances.Tolerances`.
    zero: float
    #: Rounding error of a polynomial's coefficients relative to the sum of their magnitudes.
    rounding: float
    #: Newton steps on a bracketed root.
    newton: int


_DOUBLE = Constants(28, 3.4, 8, 0.01, 18, DOUBLE.zero, 4e-15, 4)
_SINGLE = Constants(14, 2.2, 8, 0.2, 12, SINGLE.zero, 2e-6, 4)

#: A step is not halved below this fraction of the natural step to resolve nearby crossings.
SMALLEST_FRACTION = 1e-7
#: Fraction of a contact's inertia below which friction has consumed it, if steps are too small.
VANISHING = 1e-3
#: Newton steps, each a real step of the flow, to land on an event.
LANDINGS = 6
#: Remaining time to an event, relative to the step, below which the event is reached without
#: another step: the neglected part is of third order in it.
CLOSE = 1e-6


def constants(dtype) -> Constants:
    """Constants for ``dtype``."""
    return _DOUBLE if jnp.finfo(dtype).bits >= 64 else _SINGLE
