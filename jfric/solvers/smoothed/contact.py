"""Unilateral contact without kinks: a stiff spring and a damper that only push.

    lambda_N = max(0, k d + c dd/dt)  where the penetration d = -g_N is positive

The damper follows from the coefficient of restitution ``e`` of the contact::

    c = 2 zeta sqrt(k m_eff),   1/m_eff = w_N^T M^-1 w_N
    e = exp(-2 zeta/sqrt(1 - zeta^2) arccos(zeta))          zeta < 1
    e = exp(-2 zeta/sqrt(zeta^2 - 1) arccosh(zeta))         zeta > 1

(T. Schwager, T. Poeschel, "Coefficient of restitution and linear-dashpot model revisited",
Granular Matter 9, 2007: the contact ends when the force is zero). No finite damper gives e = 0;
coefficients below the smallest value of the table are replaced by this value, 0.0093.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.system.mechanics import Mechanics

#: Largest damping ratio, for e = 0.
MAX_DAMPED = 5.0


@functools.cache
def _table() -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of restitution, increasing, and their damping ratios."""
    zeta = np.concatenate([[0.0], np.geomspace(1e-3, MAX_DAMPED, 400)])
    zeta = zeta[np.abs(zeta - 1.0) > 1e-6]
    below = zeta < 1.0
    inside = np.where(below, zeta, 0.5)
    outside = np.where(below, 2.0, zeta)
    exponent = np.where(
        below,
        inside / np.sqrt(1.0 - inside**2) * np.arccos(inside),
        outside / np.sqrt(outside**2 - 1.0) * np.arccosh(outside),
    )
    return np.exp(-2.0 * exponent)[::-1], zeta[::-1]


def damping_ratio(e):
    """Damping ratio ``zeta`` that gives the coefficient of restitution ``e``."""
    restitution, zeta = _table()
    return jnp.interp(e, jnp.asarray(restitution), jnp.asarray(zeta))


def damper(mechanics: Mechanics, stiffness) -> Float[Array, " nu"]:
    """Damping [N s/m] of each unilateral contact with the given ``stiffness`` [N/m]."""
    W = mechanics.W_N
    inverse_mass = jnp.sum((W @ mechanics.M_inverse) * W, axis=1)
    return 2.0 * damping_ratio(mechanics.e) * jnp.sqrt(stiffness / inverse_mass)


def normal_forces(
    mechanics: Mechanics, t, q, v, stiffness, damping: Float[Array, " nu"]
) -> Float[Array, " nu"]:
    """Normal forces of the unilateral contacts."""
    if not mechanics.n_unilateral:
        return jnp.zeros((0,), q.dtype)
    _, z_dot = mechanics.base_motion(t)
    gap = mechanics.gaps(t, q)
    rate = mechanics.W_N @ v + mechanics.W_N_base @ z_dot
    force = -stiffness * gap - damping * rate
    return jnp.where(gap < 0, jnp.maximum(force, 0.0), 0.0)
