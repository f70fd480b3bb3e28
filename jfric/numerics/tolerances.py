"""Thresholds below which a number counts as zero when a contact is decided, by precision."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp


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
