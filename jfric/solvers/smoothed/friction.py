"""Friction laws without kinks, and contact that is a stiff spring and a damper.

With ``x = gamma_T / width`` and a curve ``s`` that rises from -1 to 1::

    lambda_T = -mu(v) N s(x),   v = sqrt(gamma_T^2 + width^2) - width

    tanh     s = tanh(x)
    arctan   s = (2/pi) arctan(pi x / 2)
    sqrt     s = x / sqrt(1 + x^2)

All curves have slope 1 at zero. ``mu(v)`` is the law's own curve for sliding, so that Stribeck's
becomes smooth as well. Where the limit in stick exceeds this curve at zero velocity (static and
kinetic coefficients), a smooth peak of the height ``mu_s`` at the breakaway velocity replaces the
step::

    ... - (mu_s - mu_d s(10)) N (x/10) exp((1 - (x/10)^2)/2)

(the Stribeck curve of MathWorks Simscape, block Translational Friction, with the breakaway
velocity at ten widths). Nothing sticks under such a law: it creeps.
"""

from __future__ import annotations

import functools
from typing import Literal, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.system.laws import AbstractLaw
from jfric.system.mechanics import Mechanics

Curve = Literal["tanh", "arctan", "sqrt"]
CURVES: tuple[str, ...] = get_args(Curve)
#: Breakaway velocity over the width.
BREAKAWAY = 10.0


def curve(name: str, x):
    """The curve ``s`` at ``x``."""
    if name == "tanh":
        return jnp.tanh(x)
    if name == "arctan":
        return 2.0 / jnp.pi * jnp.arctan(0.5 * jnp.pi * x)
    return x / jnp.sqrt(1.0 + x * x)


def friction_force(law: AbstractLaw, gamma, normal, width, name: str):
    """Friction force [N] at the sliding velocity ``gamma`` under the normal force ``normal``."""
    x = gamma / width
    s = curve(name, x)
    # Of the order of the velocity itself beyond the width, and smooth at zero.
    speed = width * (jnp.sqrt(1.0 + x * x) - 1.0)
    # A law with different coefficients for the two directions changes from one to the other.
    towards = 0.5 * (1.0 + s)

    def blend(pair):
        return pair[1] + towards * (pair[0] - pair[1])

    coefficient = blend(law.kinetic(speed)) * s
    if law.drops_at_onset:
        r = x / BREAKAWAY
        held = blend(law.static()) - blend(law.kinetic(jnp.zeros_like(speed))) * curve(
            name, BREAKAWAY
        )
        coefficient = coefficient + held * r * jnp.exp(0.5 * (1.0 - r * r))
    return -coefficient * normal


def friction_forces(
    mechanics: Mechanics, gamma: Float[Array, " nt"], normal: Float[Array, " nt"], width, name: str
) -> Float[Array, " nt"]:
    """Friction forces of all contacts."""
    forces = [
        friction_force(law, gamma[i], normal[i], width, name)
        for i, law in enumerate(mechanics.laws)
    ]
    return jnp.stack(forces) if forces else jnp.zeros((0,), gamma.dtype)


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
    """Damping [N s/m] of each unilateral contact with the given ``stiffness`` [N/m].

    ``c`` follows from the coefficient of restitution ``e`` of the contact::

        c = 2 zeta sqrt(k m_eff),   1/m_eff = w_N^T M^-1 w_N
        e = exp(-2 zeta/sqrt(1 - zeta^2) arccos(zeta))          zeta < 1
        e = exp(-2 zeta/sqrt(zeta^2 - 1) arccosh(zeta))         zeta > 1

    (T. Schwager, T. Poeschel, "Coefficient of restitution and linear-dashpot model revisited",
    Granular Matter 9, 2007: the contact ends when the force is zero). No finite damper gives e = 0;
    coefficients below the smallest value of the table are replaced by this value, 0.0093.
    """
    W = mechanics.W_N
    inverse_mass = jnp.sum((W @ mechanics.M_inverse) * W, axis=1)
    return 2.0 * damping_ratio(mechanics.e) * jnp.sqrt(stiffness / inverse_mass)


def normal_forces(
    mechanics: Mechanics, t, q, v, stiffness, damping: Float[Array, " nu"]
) -> Float[Array, " nu"]:
    """Normal forces ``max(0, k d + c dd/dt)`` of unilateral contacts at penetrations ``d > 0``."""
    if not mechanics.n_unilateral:
        return jnp.zeros((0,), q.dtype)
    _, z_dot = mechanics.base_motion(t)
    gap = mechanics.gaps(t, q)
    rate = mechanics.W_N @ v + mechanics.W_N_base @ z_dot
    force = -stiffness * gap - damping * rate
    return jnp.where(gap < 0, jnp.maximum(force, 0.0), 0.0)
