"""How far a pass in scalars advances: see :mod:`jfric.solvers.event_driven.advance`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.loops import once
from jfric.results.modes import Mode
from jfric.solvers.event_driven.advance import cancelled, grazes, resolvable, shortly_after
from jfric.solvers.event_driven.clock import Instant, later
from jfric.solvers.event_driven.constants import CLOSE, LANDINGS, SMALLEST_FRACTION, constants
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.scalar_isolation import choose, isolate, with_derivatives
from jfric.solvers.event_driven.scalar_rows import dot
from jfric.solvers.event_driven.scalar_series import value, value_and_slope
from jfric.solvers.event_driven.scalar_step import End, ScalarStep, Start
from jfric.solvers.event_driven.state import State


class Ahead(NamedTuple):
    """Where a step ends; see :class:`jfric.solvers.event_driven.advance.Advance`."""

    t: Float[Array, ""]
    t_rest: Float[Array, ""]
    s: Float[Array, ""]
    q: list
    v: list
    #: Basis functions at the end.
    w: list
    q_scale: list
    v_scale: list
    accepted: Bool[Array, ""]
    h_max: Float[Array, ""]
    fired: list
    grazing: Bool[Array, ""]
    landing: list


class Ends(NamedTuple):
    """The mode of a step, its end and the longest sensible step."""

    mode: Int[Array, ""]
    end: Instant
    natural: Float[Array, ""]


def advance(prepared, state: State, x: ScalarStep, signs, ends: Ends, on, derivatives) -> Ahead:
    """Isolate the earliest event on the step and move there, or to its end."""
    mode, end, natural = ends
    h = x.h
    watched = x.watched(signs)
    found = once(isolate(watched, constants(h.dtype), on), on)
    reference = jnp.minimum(natural, prepared.end - state.start)
    smallest = h <= SMALLEST_FRACTION * reference
    # Too short to resolve further: see the other pass.
    crossed = [
        d & ~g.null & ((value(g.coefficients, jnp.ones_like(h)) < 0) | (g.order == 0))
        for d, g in zip(found.undecided, watched, strict=True)
    ]
    crossed = [crossed[0], crossed[1] & ~crossed[0]]
    gives_up = ~found.decided & smallest & ~(found.near & resolvable(state.t, h))
    event = jnp.where(gives_up, crossed[0] | crossed[1], found.root <= 1.0)
    fired = [jnp.where(gives_up, a, b) & event for a, b in zip(crossed, found.guard, strict=True)]
    earliest = jnp.where(gives_up, 1.0, found.root)
    place = earliest
    order = jnp.where(fired[0], watched[0].order, watched[1].order)
    guard = choose(fired[0], watched[0].coefficients, watched[1].coefficients, order)
    impact = fired[0] & (mode == Mode.OPEN)
    touch = event & ~impact & once(grazes(guard, earliest, found.resolution), on)
    if derivatives:
        place = with_derivatives(choose(fired[0], x.guards[0], x.guards[1], order), earliest)
    s = once(jnp.where(event, place, 1.0), on)
    # Zeros far inside the step are located again on a shorter one, for full precision.
    coarse = event & (earliest < 1.0 / 64) & ~smallest
    accepted = x.accepted & (found.decided | gives_up) & ~coarse
    retry = jnp.where(coarse & found.decided, 4.0 * earliest, found.retry) * h
    retry = jnp.where(x.accepted, retry, x.h_next)
    t, rest = (
        jnp.where(event, a, b)
        for a, b in zip(later(state.t, state.t_rest, s * h), end, strict=True)
    )
    grown = jnp.maximum(16.0 * s * h, jnp.where(event, 0.0, 16.0 * h))
    q, v, w = x.at(s)
    q, v = _held_exactly(prepared, state, mode, q, v)
    grown = jnp.minimum(grown, x.h_next)
    return Ahead(
        t=t,
        t_rest=rest,
        s=s,
        q=q,
        v=v,
        w=w,
        q_scale=x.q_scale,
        v_scale=[
            jnp.maximum(a, cancelled(prepared, state, b, natural))
            for a, b in zip(x.v_scale, x.unbalanced, strict=True)
        ],
        accepted=accepted,
        h_max=jax.lax.stop_gradient(jnp.where(accepted, grown, retry)),
        fired=fired,
        grazing=gives_up | touch,
        landing=[jnp.zeros_like(f) for f in fired],
    )


def land(
    prepared: Prepared, state: State, x: ScalarStep, end: End, start: Start, ahead: Ahead
) -> Ahead:
    """Reach an event by real steps; see :func:`jfric.solvers.event_driven.advance.land`."""
    h = x.h
    landing = state.landing[0] | state.landing[1]
    guard = choose(state.landing[0], x.guards[0], x.guards[1], jnp.zeros((), jnp.int32))
    at_end, slope = jax.lax.stop_gradient(value_and_slope(guard, jnp.ones_like(h)))
    missing = -at_end / jnp.where(slope == 0, 1.0, slope) * h
    close = (jnp.abs(missing) <= CLOSE * h) | (state.landings >= LANDINGS) | (slope >= 0)
    missing = jnp.where(jnp.abs(missing) <= 0.5 * h, missing, 0.0)
    missing = (with_derivatives(guard, 1.0 + missing / h) - 1.0) * h
    arrives = landing & x.accepted & close
    q, v = _held_exactly(prepared, state, start.mode, end.q, end.v)
    z = [*q, *v, *end.w]
    a = [dot(row, z) for row in start.y.a]
    moved = zip(q, v, a, end.jerk, strict=True)
    q, v = zip(*(shortly_after(*x, missing) for x in moved), strict=True)
    found = ~landing & ahead.accepted & (ahead.fired[0] | ahead.fired[1])
    passed = (ahead.t - state.t) + (ahead.t_rest - state.t_rest)
    approach = jnp.where(landing, h + missing, passed)
    approach = jnp.where(landing & ~x.accepted, x.h_next, approach)
    again = landing & x.accepted & ~close

    def chosen(arrived: Sequence, otherwise: list) -> list:
        return [jnp.where(arrives, a, b) for a, b in zip(arrived, otherwise, strict=True)]

    t, rest = later(state.t, state.t_rest, h + missing)
    return ahead._replace(
        t=jnp.where(arrives, t, ahead.t),
        t_rest=jnp.where(arrives, rest, ahead.t_rest),
        s=jnp.where(arrives, 1.0, ahead.s),
        q=chosen(q, ahead.q),
        v=chosen(v, ahead.v),
        w=chosen(end.w, ahead.w),
        accepted=jnp.where(landing, arrives, ahead.accepted & ~found),
        h_max=jax.lax.stop_gradient(
            jnp.where(arrives, x.h_next, jnp.where(found | landing, approach, ahead.h_max))
        ),
        fired=[
            jnp.where(landing, aim & arrives, fired & ~found)
            for aim, fired in zip(list(state.landing), ahead.fired, strict=True)
        ],
        grazing=ahead.grazing & ~landing,
        landing=[
            jnp.where(again, aim, fired & found)
            for aim, fired in zip(list(state.landing), ahead.fired, strict=True)
        ],
    )


def _held_exactly(prepared: Prepared, state: State, mode, q: list, v: list):
    """Two bodies that stick to each other move as one, without rounding error."""
    (pair,) = prepared.mechanics.pair_tangent
    if pair is None or prepared.mechanics.belts[0] is not None:
        return q, v
    leader, follower = pair
    joined = mode == Mode.STICK
    moved = state.q[follower] + (q[leader] - state.q[leader])
    q, v = list(q), list(v)
    q[follower] = jnp.where(joined, moved, q[follower])
    v[follower] = jnp.where(joined, v[leader], v[follower])
    return q, v
