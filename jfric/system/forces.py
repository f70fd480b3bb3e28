"""Generalised forces at a state, contacts left out."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.system.mechanics import Mechanics


def applied_force(mechanics: Mechanics, t, q, v, segment=None) -> Float[Array, " n"]:
    """``f(t, q, v)`` (n,) [N, N m]: springs, dampers, moving supports, loads, nonlinear elements
    and piecewise-linear ones in ``segment`` (ns,), by default that of the elongations.

    Contact and friction forces are not part of it.
    """
    f = mechanics.f0 - mechanics.K @ q - mechanics.C @ v
    z, z_dot = mechanics.base_motion(t)
    f = f + mechanics.K_base @ z + mechanics.C_base @ z_dot
    for direction, load in zip(mechanics.load_directions, mechanics.load_functions, strict=True):
        f = f + direction * load(t)
    for element in mechanics.nonlinear:
        f = f + element.force(mechanics.axes, t, q, v)
    piecewise = mechanics.piecewise
    if piecewise.count:
        x = piecewise.directions @ q + piecewise.base_directions @ z
        rate = piecewise.directions @ v + piecewise.base_directions @ z_dot
        if segment is None:
            segment = piecewise.segment_at(x, rate)
        k, c, offset = (piecewise.at(segment, name) for name in ("k", "c", "f"))
        f = f - piecewise.directions.T @ (k * x + c * rate + offset)
    return f


def sliding_friction(mechanics: Mechanics, gamma, normal) -> Float[Array, " nt"]:
    """Friction forces (nt,) of sliding contacts: ``-mu_d(|gamma_T|) N sign(gamma_T)``.

    ``gamma`` (nt,): sliding velocities, zero where a contact sticks (its force is then no
    function of the state, and zero is returned); ``normal`` (nt,): normal forces.
    """
    forces = []
    for law, g, n in zip(mechanics.laws, gamma, normal, strict=True):
        positive, negative = law.kinetic(jnp.abs(g))
        forces.append(jnp.where(g > 0, -positive * n, jnp.where(g < 0, negative * n, 0.0)))
    return jnp.stack(forces) if forces else jnp.zeros((0,))
