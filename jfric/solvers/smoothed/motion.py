"""Equations of motion with smoothed laws: one vector field, no modes."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.contact import rules
from jfric.results.modes import Mode
from jfric.solvers.smoothed.contact import normal_forces
from jfric.solvers.smoothed.friction import BREAKAWAY, friction_forces
from jfric.solvers.states import Local
from jfric.system.forces import applied_force, normal_forces_at
from jfric.system.mechanics import Mechanics


class Settings(NamedTuple):
    """Settings of smoothing, and an extra force; arrays, so that derivatives pass through."""

    width: Float[Array, ""]
    stiffness: Float[Array, ""]
    damping: Float[Array, " nu"]
    #: Extra constant force.
    force: Float[Array, " n"]


def local(mechanics: Mechanics, settings: Settings, curve: str, t, q, v) -> Local:
    """Accelerations, reactions and modes at ``(t, q, v)`` under smoothed laws."""
    z, z_dot = mechanics.base_motion(t)
    piecewise = mechanics.piecewise
    x = piecewise.directions @ q + piecewise.base_directions @ z
    rate = piecewise.directions @ v + piecewise.base_directions @ z_dot
    segment = piecewise.segment_at(x, rate)
    f = applied_force(mechanics, t, q, v, segment) + settings.force
    lambda_n = normal_forces(mechanics, t, q, v, settings.stiffness, settings.damping)
    given = normal_forces_at(mechanics, t, q, v, segment)
    normal_force = jnp.concatenate([given, lambda_n])
    gamma = mechanics.sliding_velocities(t, v)
    lambda_t = friction_forces(mechanics, gamma, normal_force, settings.width, curve)
    f = f + mechanics.R_T.T @ lambda_t + mechanics.W_N.T @ lambda_n
    if mechanics.reacting:
        rates = mechanics.rates_by_contacts(t, q, v, lambda_t, lambda_n, gamma)
        f = f + mechanics.reaction_to_rates(rates)
    return Local(
        a=mechanics.M_inverse @ f,
        lambda_t=lambda_t,
        lambda_n=lambda_n,
        mode=_modes(mechanics, settings, t, q, gamma),
        segment=piecewise.shown(segment),
    )


def _modes(mechanics: Mechanics, settings: Settings, t, q, gamma) -> Int[Array, " nt"]:
    """Modes in the sense of the exact law: creep below the width counts as stick."""
    widths = jnp.asarray(
        [BREAKAWAY if law.drops_at_onset else 1.0 for law in mechanics.laws], gamma.dtype
    )
    frictionless = np.asarray(mechanics.frictionless, bool)
    mode = rules.closed_mode(frictionless, gamma, widths * settings.width)
    mode = rules.reported_mode(frictionless, mode)
    if mechanics.n_unilateral:
        nf = mechanics.n_friction
        is_open = mechanics.gaps(t, q) >= 0
        mode = mode.at[nf:].set(jnp.where(is_open, Mode.OPEN, mode[nf:]))
    return mode.astype(jnp.int32)
