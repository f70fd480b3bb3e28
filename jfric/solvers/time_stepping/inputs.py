"""Functions of time at the steps: loads, normal forces, belts and moving supports.

They do not depend on the motion and are evaluated for many steps at once.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.linear_algebra import matvec
from jfric.solvers.time_stepping.scheme import Scheme
from jfric.system.mechanics import Mechanics


class StepInputs(NamedTuple):
    """What is given on one step. Rows (m,): tangents, then normals."""

    t: Float[Array, ""]
    #: Impulse of loads and supports over the step.
    impulse: Float[Array, " n"]
    #: Prescribed ``W v`` of contacts that stick or are closed, at the start and at the end.
    before: Float[Array, " m"]
    after: Float[Array, " m"]
    #: Impulse of the given normal forces.
    normal: Float[Array, " nf"]
    #: Gaps for ``q = 0`` at the start.
    gap: Float[Array, " nu"]
    #: Parts of the supports in the elongation of piecewise-linear elements, and in its rate.
    stretch: Float[Array, " ns"]
    stretch_rate: Float[Array, " ns"]


def step_inputs(mechanics: Mechanics, scheme: Scheme, t, h, force) -> StepInputs:
    """Inputs of the step from ``t`` to ``t + h`` under an extra constant ``force`` (n,).

    Values at the ends are limits from inside the step: a load that jumps at the end of a step
    acts from the next one on.
    """
    eps = 4 * jnp.finfo(t.dtype).eps
    slack = eps * jnp.maximum(jnp.abs(t), jnp.abs(t + h))
    first, last = t + slack, t + h - slack

    def mean(function):
        if scheme.middle:
            return function(t + 0.5 * h)
        at_end = function(last)
        return jax.tree.map(
            lambda a, b: scheme.theta * a + (1.0 - scheme.theta) * b, at_end, function(first)
        )

    def given(t):
        dtype = mechanics.K.dtype
        loads = [jnp.asarray(load(t), dtype) for load in mechanics.load_functions]
        loads = jnp.stack(loads) if loads else jnp.zeros((0,), dtype)
        normal = [jnp.asarray(force(t), dtype) for force in mechanics.normal_forces]
        normal = jnp.stack(normal) if normal else jnp.zeros((0,), dtype)
        return loads, normal, *mechanics.base_motion(t)

    loads, normal, z, z_dot = mean(given)
    applied = mechanics.f0 + force
    applied = applied + matvec(mechanics.load_directions.T, loads)
    applied = applied + matvec(mechanics.K_base, z) + matvec(mechanics.C_base, z_dot)
    start, _ = mechanics.base_motion(t)
    piecewise = mechanics.piecewise
    return StepInputs(
        t=t,
        impulse=h * applied,
        before=_prescribed(mechanics, first),
        after=_prescribed(mechanics, last),
        normal=h * normal,
        gap=mechanics.gap0 + matvec(mechanics.W_N_base, start),
        stretch=matvec(piecewise.base_directions, z),
        stretch_rate=matvec(piecewise.base_directions, z_dot),
    )


def _prescribed(mechanics: Mechanics, t):
    _, z_dot = mechanics.base_motion(t)
    belts = mechanics.belt_velocities(t)
    return jnp.concatenate([belts, -matvec(mechanics.W_N_base, z_dot)])
