"""Friction laws without kinks.

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

from typing import Literal, get_args

import jax.numpy as jnp
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
