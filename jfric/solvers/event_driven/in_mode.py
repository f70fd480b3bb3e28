"""Values that passes in one mode share: large systems compute them once for many passes."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.contact.shared_loads import Sharing
from jfric.numerics.loops import Shared, once
from jfric.solvers.event_driven.held_by_others import held_at_rest, held_by_others
from jfric.solvers.event_driven.mode_equations import ModeEquations, mode_equations
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State
from jfric.solvers.event_driven.transitions import compliances
from jfric.system.piecewise import Inner


class InMode(NamedTuple):
    """Values that passes in one mode share.

    ``rests``: contacts that static limits hold, see :func:`held_at_rest`; ``natural``: longest
    sensible step [s]; ``compliance``: accelerations of sliding caused by unit frictions, with the
    other reactions following.
    """

    mode: Int[Array, " nt"]
    inner: Inner
    rests: Bool[Array, " nt"]
    sharing: Sharing | None
    equations: ModeEquations
    natural: Float[Array, ""]
    compliance: Float[Array, " nt"]


def in_mode(prepared: Prepared, frozen: Prepared, flow, state: State, on=True) -> InMode:
    """Shared values for the mode of ``state``; ``frozen``: ``prepared`` as a constant of
    derivatives; ``on``: whether the trajectory is still running."""
    rests = held_at_rest(prepared, state)
    held = held_by_others(prepared, state.mode, state.t) | rests
    equations = mode_equations(prepared, state.mode, state.inner, held, state.sharing)
    if not (flow.lowered or prepared.many):
        # Few numbers: the compiler would recompute them at each of their uses.
        equations = once(equations, on)
    still, now = jax.lax.stop_gradient(equations), state
    if prepared.mechanics.varying is not None:
        now = jax.lax.stop_gradient(state)
    natural, compliance = flow.natural_step(frozen, still, now), compliances(prepared, still.P)
    return InMode(state.mode, state.inner, rests, state.sharing, equations, natural, compliance)


def shared_by_passes(prepared: Prepared, flow) -> Shared | None:
    """Values that passes share; None for small systems, or if they vary with time or position."""
    if not prepared.many or prepared.driven:
        return None

    def holds(made: InMode, state: State):
        now = state.mode, state.inner, held_at_rest(prepared, state), state.sharing
        same = jax.tree.map(lambda x, y: jnp.all(x == y), made[: len(now)], now)
        return jnp.all(jnp.stack(jax.tree.leaves(same)))

    frozen = jax.lax.stop_gradient(prepared)
    return Shared(functools.partial(in_mode, prepared, frozen, flow), holds)
