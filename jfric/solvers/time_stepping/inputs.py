"""Functions of time at the steps: loads, normal forces, belts and moving supports.

They do not depend on the motion and are evaluated for many steps at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.numerics.linear_algebra import matmul, matvec
from jfric.solvers.time_stepping.prepared import Scheme, is_negative
from jfric.system.mechanics import Mechanics


class StepInputs(NamedTuple):
    """Inputs of one step, independent of the motion. Rows (m,): tangents, then normals."""

    t: Float[Array, ""]
    #: Impulse of loads and supports over the step.
    impulse: Float[Array, " n"]
    #: Prescribed ``W v`` of contacts that stick or are closed, at the start and at the end.
    before: Float[Array, " m"]
    after: Float[Array, " m"]
    #: Impulse of the given normal forces.
    normal: Float[Array, " nf"]
    #: Whether one of these forces is negative at an end of the step, where the laws of friction do
    #: not apply.
    negative: Bool[Array, ""]
    #: Gaps for ``q = 0`` at the start.
    gap: Float[Array, " nu"]
    #: Parts of the supports in the elongation of piecewise-linear elements, and in its rate.
    stretch: Float[Array, " ns"]
    stretch_rate: Float[Array, " ns"]


class Table(NamedTuple):
    """Means over the steps of a block of ``s^j``, and of ``cos(w s)`` and ``sin(w s)``, with ``s``
    the time since the start of the block and ``w`` the frequencies of one load. (L,) each."""

    powers: list
    waves: list


def load_tables(mechanics: Mechanics, scheme: Scheme, h, count: int) -> list[Table | None]:
    """Tables of the loads for blocks of ``count`` steps; None for loads with breakpoints.

    Sines are the most expensive part of a step with few numbers. By their addition theorem those at
    the start of a block suffice; the rounding of the angle is unchanged, the sum adds less than
    1e-15 of the amplitude.
    """
    start = h * jnp.arange(count, dtype=mechanics.K.dtype)

    def mean(function):
        if scheme.middle:
            return function(start + 0.5 * h)
        return scheme.theta * function(start + h) + (1.0 - scheme.theta) * function(start)

    def table(load):
        if load.breakpoints().shape[0]:
            return None
        polynomial, harmonics = load.components(jnp.zeros((), h.dtype))
        return Table(
            powers=[mean(lambda s, j=j: s**j) for j in range(len(polynomial))],
            waves=[
                (mean(lambda s, w=w: jnp.cos(w * s)), mean(lambda s, w=w: jnp.sin(w * s)))
                for _, _, w in harmonics
            ],
        )

    return [table(load) for load in mechanics.load_functions]


def load_means(mechanics: Mechanics, tables: list[Table | None], times) -> list:
    """Means (L,) of the loads with a table over the steps of a block that begin at ``times`` (L,);
    None for the others."""
    known = []
    for load, table in zip(mechanics.load_functions, tables, strict=True):
        if table is None:
            known.append(None)
            continue
        polynomial, harmonics = load.components(times[0])
        value = jnp.zeros(times.shape, mechanics.K.dtype)
        for p, power in zip(polynomial, table.powers, strict=True):
            value = value + p * power
        for (amplitude, angle, _), (c, s) in zip(harmonics, table.waves, strict=True):
            # Kept out of the sum over the steps, where they would be evaluated for each step.
            sine, cosine = jax.lax.optimization_barrier((jnp.sin(angle), jnp.cos(angle)))
            value = value + amplitude * (sine * c + cosine * s)
        known.append(value)
    return known


def block_inputs(mechanics: Mechanics, scheme: Scheme, means: list, times, h, force) -> StepInputs:
    """Inputs (L, ...) of the steps that begin at ``times`` (L,); ``means``: of their loads."""
    return jax.vmap(lambda t, means: step_inputs(mechanics, scheme, t, h, force, means))(
        times, means
    )


def block_pushes(
    mechanics: Mechanics, inputs: StepInputs, means: list, h, force, push
) -> Float[Array, "L n"]:
    """Products ``push @ impulse`` (n,) of a block's steps, with few operations for each number."""
    if mechanics.base_functions or any(x is None for x in means):
        return matmul(inputs.impulse, push.T)
    constant = h * matvec(push, mechanics.f0 + force)
    pushed = jnp.broadcast_to(constant, (inputs.t.shape[0], constant.shape[0]))
    for value, direction in zip(means, mechanics.load_directions, strict=True):
        pushed = pushed + value[:, None] * (h * matvec(push, direction))[None, :]
    return pushed


def step_inputs(
    mechanics: Mechanics, scheme: Scheme, t, h, force, known: Sequence | None = None
) -> StepInputs:
    """Inputs of the step from ``t`` to ``t + h`` under an extra constant ``force`` (n,).

    ``known``: means of loads where they are known, None for the others.

    Values at the ends are limits from inside the step: a load that jumps at the end of a step acts
    from the next one on.
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

    known = known or [None] * len(mechanics.load_functions)

    def given(t):
        dtype = mechanics.K.dtype
        loads = [
            jnp.asarray(load(t) if x is None else x, dtype)
            for load, x in zip(mechanics.load_functions, known, strict=True)
        ]
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
        negative=_negative(mechanics, first) | _negative(mechanics, last),
        gap=mechanics.gap0 + matvec(mechanics.W_N_base, start),
        stretch=matvec(piecewise.base_directions, z),
        stretch_rate=matvec(piecewise.base_directions, z_dot),
    )


def _negative(mechanics: Mechanics, t):
    """Whether a given normal force is negative at ``t``. Validation refuses concrete numbers; this
    check covers sweeps and derivatives."""
    result = jnp.asarray(False)
    for force in mechanics.normal_forces:
        result = result | is_negative(force(t), force.magnitude(t))
    return jax.lax.stop_gradient(result)


def _prescribed(mechanics: Mechanics, t):
    _, z_dot = mechanics.base_motion(t)
    belts = mechanics.belt_velocities(t)
    return jnp.concatenate([belts, -matvec(mechanics.W_N_base, z_dot)])
