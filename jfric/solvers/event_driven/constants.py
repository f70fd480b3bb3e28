"""Numerical constants of the event-driven solver, by precision."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp


class Constants(NamedTuple):
    """Orders and thresholds for one floating-point type."""

    #: Order of the Taylor form of the exact flow.
    order: int
    #: Largest step times the spectral scale of the mode; theta^(p+1)/(p+1)! is below rounding.
    theta: float
    #: Degree up to which guards enter the certificate; the rest is bounded.
    certificate_order: int
    #: Values below ``zero`` times the sum of their contributions count as zero.
    zero: float
    #: Rounding errors of what is known to be zero, in units of ``zero``: they come a long way.
    known: float
    #: Rounding error of a polynomial's coefficients relative to the sum of their magnitudes.
    rounding: float
    #: Newton steps on a bracketed root.
    newton: int
    #: Impacts of several contacts that follow each other within this fraction of the time since the
    #: start, with velocities below ``chatter_velocity`` times the largest so far, are the end of an
    #: accumulating sequence. Gaps of such flights drown in rounding; what is neglected is of
    #: second order.
    chatter_time: float
    chatter_velocity: float


_DOUBLE = Constants(28, 3.4, 18, 1e-12, 1e5, 4e-15, 4, 1e-8, 1e-7)
_SINGLE = Constants(14, 2.2, 12, 2e-5, 100.0, 2e-6, 4, 1e-4, 1e-3)

#: Leading coefficients of a guard that may vanish before it counts as identically zero.
LEADING = 5
#: A step is not halved below this fraction of the natural step to resolve nearby crossings.
SMALLEST_FRACTION = 1e-7
#: Newton steps, each a real step of the flow, to land on an event.
LANDINGS = 6
#: Remaining time to an event, relative to the step, below which it is reached without another step:
#: what is neglected is of third order in it.
CLOSE = 1e-6


def constants(dtype) -> Constants:
    """Constants for ``dtype``."""
    return _DOUBLE if jnp.finfo(dtype).bits >= 64 else _SINGLE
