"""Checks of numbers that are known only inside a run, as those that a sweep or a fit varies:
whether they are allowed at its start, and from when on a given normal force or friction limit is
negative, which ends the run."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.numerics.choice import select
from jfric.numerics.clock import sooner
from jfric.numerics.loops import keep
from jfric.results.status import Status
from jfric.system.bounds import numbers_hold
from jfric.system.first_negative import negative_from
from jfric.system.initial_gaps import starts_inside
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem


def status_of_numbers(problem: Problem, mechanics: Mechanics, t, until, q=None) -> Int[Array, ""]:
    """Status of a run from ``t`` to ``until`` [s] before it begins: the :class:`jfric.Status` of
    numbers that are not finite or not allowed, of an end that is not after the start, and of
    positions ``q`` (n,), where they are given, that penetrate; else ``OK``."""
    finite, inside = numbers_hold(problem)
    finite = finite & jnp.isfinite(t) & jnp.isfinite(until)
    status = jnp.asarray(int(Status.OK), jnp.int32)
    if q is not None:
        status = select(starts_inside(mechanics, t, q), int(Status.PENETRATION), status)
    status = select(inside & (until > t), status, int(Status.OUT_OF_BOUNDS))
    return select(finite, status, int(Status.NON_FINITE)).astype(jnp.int32)


def first_negative_force(mechanics: Mechanics, t, until) -> Float[Array, ""]:
    """Instant [s] between ``t`` and ``until`` from which on a given normal force is negative;
    infinite if none is."""
    return negative_from(mechanics.normal_forces, t, until).astype(mechanics.K.dtype)


def ending_at(moment, mechanics: Mechanics, until, call: Callable) -> Callable:
    """One pass ``(state, records, on, *shared)`` of a run that ends at ``moment`` [s].

    ``call(state, records, on, until, *shared)``: a pass of the solver; its third result gives the
    piece of the trajectory for the state after the pass.
    """

    def one_pass(state, records, on, *shared):
        if not mechanics.n_friction:
            new, records, piece = call(state, records, on, until, *shared)
            return new, records, lambda: piece(new)
        over = state.t >= moment
        # A pass needs time ahead, even where its result is not used.
        reach = select(over, until, sooner(until, moment))
        new, records, piece = call(state, records, on & ~over, reach, *shared)
        code = jnp.asarray(int(Status.NEGATIVE_FORCE), jnp.int32)
        new = keep(~over, new, eqx.tree_at(lambda s: s.status, state, code))
        return new, records, lambda: piece(new)

    return one_pass
