"""Contacts that carry their limit of friction, but do not slide because others stick.

No law determines how two supports under one rigid body share a load. One that has reached its limit
goes on carrying this limit while the other takes the rest: stick lasts as long as any admissible
forces hold the body. As the contact at its limit does not slide, this limit is the static one.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.reactions import spanned
from jfric.numerics.isolation import LEADING
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.solvers.event_driven.constants import constants
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State


def held_by_others(prepared: Prepared, mode: Int[Array, " nt"], t) -> Bool[Array, " nt"]:
    """Closed contacts in a sliding mode whose sliding velocity the sticking ones keep at zero."""
    nt = prepared.nt
    nobody = jnp.zeros((nt,), bool)
    if nt < 2 or prepared.independent:
        return nobody
    active = prepared.active_rows(mode)
    D = prepared.D
    if prepared.own_WM is not None:
        # Whether others decide a sliding velocity is a matter of directions, not of reactions.
        D = matmul(prepared.own_WM, prepared.W.T)
    inside, weights = jax.lax.stop_gradient(spanned(D, active, prepared.D_size))
    held = rules.slides(mode) & inside[:nt] & ~prepared.frictionless
    held = held & ~jnp.asarray(prepared.mechanics.in_plane)
    if any((*prepared.mechanics.belts, *prepared.mechanics.base_functions)):
        demanded, size = jax.lax.stop_gradient(_prescribed(prepared, t))
        caused = matmul(demanded, weights.T) - demanded
        size = matmul(size, jnp.abs(weights).T) + size
        still = jnp.abs(caused) <= constants(size.dtype).zero * size
        held = held & still.all(axis=0)[:nt]
    return held


def held_at_rest(prepared: Prepared, state: State) -> Bool[Array, " nt"]:
    """Contacts in a sliding mode that were at rest at this instant. Their static limits hold until
    all other modes have been tried and the contacts move nevertheless.

    The friction of a contact that slides is lower. If this lower friction were used at once, others
    would have to let go of a body that admissible forces hold, and the order of the contacts would
    decide the outcome.
    """
    nt = prepared.nt
    if not prepared.releases:
        return jnp.zeros((nt,), bool)
    rested = rules.slides(state.mode) & (state.known[:nt] >= 1) & ~state.released
    return rested & ~prepared.frictionless & ~jnp.asarray(prepared.mechanics.in_plane)


def _prescribed(prepared: Prepared, t) -> tuple[Float[Array, "l m"], Float[Array, "l m"]]:
    """Derivatives at ``t`` of the velocities that belts and bases prescribe, and their sizes."""
    mechanics = prepared.mechanics
    values, sizes = [], []
    for k in range(LEADING):
        base = [(f.derivative(t, k + 1), f.size(t, k + 1)) for f in mechanics.base_functions]
        belt = [
            (0.0, 0.0) if f is None else (f.derivative(t, k), f.size(t, k)) for f in mechanics.belts
        ]
        value, size = (_row(prepared, [x[i] for x in belt]) for i in (0, 1))
        if base:
            rate, largest = (jnp.stack([jnp.asarray(x[i]) for x in base]) for i in (0, 1))
            value = value - matvec(prepared.W_base, rate)
            size = size + matvec(jnp.abs(prepared.W_base), largest)
        values.append(value)
        sizes.append(size)
    return jnp.stack(values), jnp.stack(sizes)


def _row(prepared: Prepared, of_belts: list) -> Float[Array, " m"]:
    dtype = prepared.D.dtype
    entries = [jnp.asarray(x, dtype) for x in of_belts]
    return jnp.concatenate([jnp.stack(entries), jnp.zeros((prepared.nu,), dtype)])
