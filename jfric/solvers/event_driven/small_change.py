"""A small change that goes along with a Runge-Kutta step, see :mod:`jfric.solvers.generic_change`.

An explicit step takes a new one, in which all that is near is excited: what decays fast must be
resolved, too, or the step would let it grow. An implicit step damps it: there a change goes along
from step to step, begins anew where a mode ends, and what has decayed counts no longer.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.numerics.linear_algebra import matvec
from jfric.numerics.runge_kutta import Stages
from jfric.solvers.event_driven.mode_equations import ModeEquations
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.generic_change import generic_change

#: Error of a change that is as much as one of the motion: steps that resolve a motion in all that
#: is near it stay as they are.
ALLOWED = 100.0
#: Part of what forces would cause if they did not cancel, below which nothing is resolved.
UNRESOLVED = 1e-3


def change_error(
    prepared: Prepared, equations: ModeEquations, change: Float[Array, " y"], moved: Stages, h
) -> Float[Array, ""]:
    """Error of how a ``change`` has ``moved``, relative to what is allowed at its own size.

    One with implicit steps counts as no smaller than it began. Where a derivative does not exist,
    it has no error.
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
    return jax.lax.stop_gradient(jnp.where(jnp.isfinite(relative), relative, 0.0))


def change_after(
    prepared: Prepared, before: Float[Array, " y"], end, goes_on: Bool[Array, ""], moves
) -> Float[Array, " y"]:
    """The change that goes along with the next implicit step: what the last one, if it ``moves``,
    made of the one ``before`` where its mode ``goes_on``, else a new one."""
    new = generic_change(prepared.inertia_scale)
    end = jnp.where(jnp.all(jnp.isfinite(end)), end, new)
    return jax.lax.stop_gradient(jnp.where(goes_on, jnp.where(moves, end, before), new))
