"""Small change that is integrated along with a Runge-Kutta step, see
:mod:`jfric.solvers.states`.

An explicit step takes a new change, which excites all motions near the actual one: those that decay
fast must be resolved, too, or the step would let them grow. An implicit step damps them. There a
change is carried on from step to step and begins again where a mode ends; motions that have decayed
no longer count.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matvec
from jfric.numerics.runge_kutta import Stages
from jfric.solvers.event_driven.mode_equations import ModeEquations
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.states import generic_change

#: Error of a change that weighs as much as one of the motion: steps that resolve the motion and all
#: motions close to it stay as they are.
ALLOWED = 100.0
#: Fraction of the effect of forces, if they did not cancel, below which nothing is resolved.
UNRESOLVED = 1e-3


def change_error(
    prepared: Prepared, equations: ModeEquations, change: Float[Array, " y"], moved: Stages, h
) -> Float[Array, ""]:
    """Error of the result ``moved`` of a small ``change``, relative to that allowed at its size.

    With implicit steps a change counts as no smaller than it began. Where a derivative does not
    exist, its error is zero.
    """
    n = prepared.mechanics.n
    size = jnp.maximum(jnp.abs(change), jnp.abs(moved.end))
    if prepared.implicit:
        size = jnp.maximum(size, jnp.abs(generic_change(prepared.inertia_scale)))
    K, C = jnp.abs(equations.K), jnp.abs(equations.C)
    forces = matvec(K, size[:n]) + matvec(C, size[n:])
    unbalanced = matvec(prepared.mechanics.inverse_size, forces)
    rate = jnp.maximum(jnp.max(jnp.abs(moved.slopes[:, n:]), axis=0), UNRESOLVED * unbalanced)
    v_scale = jnp.maximum(size[n:], h * rate)
    q_scale = jnp.maximum(size[:n], h * v_scale)
    scale = jnp.maximum(jnp.concatenate([q_scale, v_scale]), jnp.finfo(h.dtype).tiny)
    relative = jnp.max(jnp.abs(moved.error) / scale) / ALLOWED
    return jax.lax.stop_gradient(select(jnp.isfinite(relative), relative, 0.0))


def change_after(
    prepared: Prepared, before: Float[Array, " y"], end, goes_on: Bool[Array, ""], moves
) -> Float[Array, " y"]:
    """Small change for the next implicit step: the result ``end`` of the last step if it ``moves``,
    the one ``before`` if it does not, and a new one where the mode does not go on."""
    new = generic_change(prepared.inertia_scale)
    end = select(jnp.all(jnp.isfinite(end)), end, new)
    return jax.lax.stop_gradient(select(goes_on, select(moves, end, before), new))
