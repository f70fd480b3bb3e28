"""Modes as users see them."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Int

from jfric.modes import Mode
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.transitions import Signs


def reported_modes(prepared: Prepared, mode, signs: Signs) -> Int[Array, " nt"]:
    """A contact held by others slides with zero velocity at the edge of its cone: it sticks. A
    frictionless contact is closed."""
    nt = prepared.nt
    slips = (mode == Mode.SLIP_POS) | (mode == Mode.SLIP_NEG)
    held = slips & signs.null[:nt] & ~prepared.slippery
    shown = jnp.where(held, Mode.STICK, mode)
    frictionless = slips & prepared.slippery
    return jnp.where(frictionless, Mode.CLOSED, shown).astype(jnp.int32)
