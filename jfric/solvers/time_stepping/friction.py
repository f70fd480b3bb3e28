"""Which coefficients of friction hold on a step: static or kinetic."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.complementarity.closed_form import Coefficients
from jfric.modes import Mode
from jfric.solvers.time_stepping.prepared import Prepared

#: Solutions of a step's contact problem until static and kinetic coefficients are settled.
PASSES = 3


def coefficients(prepared: Prepared, speed: Float[Array, " nt"]) -> Coefficients:
    """Coefficients (nt,) of all contacts, the kinetic ones at sliding speeds ``speed >= 0``."""
    laws = prepared.mechanics.laws
    static = [law.static() for law in laws]
    kinetic = [law.kinetic(speed[i]) for i, law in enumerate(laws)]
    dtype = prepared.h.dtype

    def column(pairs, side):
        return jnp.stack([jnp.asarray(p[side], dtype) for p in pairs])

    return Coefficients(
        column(static, 0), column(static, 1), column(kinetic, 0), column(kinetic, 1)
    )


def next_limits(mode, direction, holds, released):
    """Contacts (nt,) that take static coefficients in the next pass, and those that may not.

    ``direction``: sign of sliding so far, 0 for a contact that stuck. One that was held and slides
    after all takes the kinetic coefficient for good; one whose sliding would reverse within the
    step is held first.
    """
    slides = (mode == Mode.SLIP_POS) | (mode == Mode.SLIP_NEG)
    released = released | (holds & slides)
    against = ((direction > 0) & (mode == Mode.SLIP_NEG)) | (
        (direction < 0) & (mode == Mode.SLIP_POS)
    )
    return (holds | against) & ~released, released
