"""Friction in pins in a fixed mode: reactions of joints, which follow from friction torques.

``L``: reactions of contacts by forces; ``sliding`` (nf,): ratio of friction to its limit, as in
:class:`jfric.solvers.event_driven.mode_equations.ModeEquations`.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.contact import rules
from jfric.numerics.linear_algebra import matmul
from jfric.system.mechanics import Mechanics


def _by_torques(here: Mechanics, L: Float[Array, "m n"]) -> Float[Array, "k 2 k"]:
    """Reactions of the pins by unit torques in them."""
    assert here.tied is not None
    assert here.pins is not None
    torques, R = here.R_T[here.pins.at].T, jnp.concatenate([here.R_T, here.W_N])
    forces = torques + matmul(R.T, matmul(L, torques))
    return here.pins.of(-matmul(here.tied.force, matmul(here.tied.MJ.T, forces)))


def limits_of_pins(here: Mechanics, L, sliding, joint: Float[Array, " e"]) -> Float[Array, " nf"]:
    """Limits ``r |R|`` of the pins, zeros for all other friction elements; ``joint``: reactions of
    all joints without the friction of pins that slide."""
    assert here.pins is not None
    ratio, free, pins = sliding[here.pins.at], here.pins.of(joint), here.pins
    found = rules.sliding_limits(free, _by_torques(here, L), ratio, pins.radius)
    return jnp.zeros_like(sliding).at[pins.at].set(found)


def pins_are_unique(here: Mechanics, L, sliding) -> Bool[Array, ""] | bool:
    """Whether reactions and friction of the pins are unique: joints are not redundant, and torques
    change the reactions by less than the reactions from which the torques follow."""
    if here.pins is None or here.tied is None:
        return True
    ratio, radius = sliding[here.pins.at], here.pins.radius
    unique = rules.limits_are_unique(_by_torques(here, L), ratio, radius)
    return unique & ~here.tied.redundant
