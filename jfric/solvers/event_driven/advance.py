"""Advance of a pass: to the end of its step, or to the earliest event on the step."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.contact import rules
from jfric.numerics.choice import select
from jfric.numerics.isolation import with_root_derivative
from jfric.numerics.linear_algebra import matvec
from jfric.numerics.polynomials import horner_with_slope, pick
from jfric.numerics.tolerances import Instant, later, near, sooner
from jfric.results.modes import Mode
from jfric.solvers.event_driven.first_event import Found
from jfric.solvers.event_driven.flow_step import Step, Values
from jfric.solvers.event_driven.prepared import CLOSE, LANDINGS, Prepared, constants
from jfric.solvers.event_driven.state import State
from jfric.solvers.event_driven.transitions import Signs
from jfric.solvers.records import Records, slots_per_pass


class Advance(NamedTuple):
    """End of the motion on a step: the end of the step or the earliest event."""

    t: Float[Array, ""]
    t_rest: Float[Array, ""]
    #: End of the motion as a fraction of the step.
    s: Float[Array, ""]
    #: Motion and reactions at the end (reactions of the mode that ends).
    values: Values
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    q_scale: Float[Array, " n"]
    v_scale: Float[Array, " n"]
    #: Whether time advanced; otherwise ``h_max`` is tried next.
    accepted: Bool[Array, ""]
    h_max: Float[Array, ""]
    fired: Bool[Array, " g"]
    #: Values of the guards at the end, as in ``Found``.
    guards: Float[Array, " g"]
    grazing: Bool[Array, ""]
    #: Guard whose zero the next step lands on.
    landing: Bool[Array, " g"]


def held_exactly(prepared: Prepared, state: State, values: Values, signs: Signs) -> Values:
    """Motion without rounding error of bodies that contacts hold together.

    Two bodies that stick to each other get the same velocity. A body rests if its contact to the
    ground carries its limit but does not move because another contact sticks (redundant contacts).
    rests.
    """
    mechanics = prepared.mechanics
    q, v, a = values.q, values.v, values.a
    column = jnp.arange(mechanics.n)
    # Sliding in a plane has no guard of its velocity.
    along_lines = ~(prepared.frictionless | jnp.asarray(mechanics.in_plane, bool))
    null = rules.slides(state.mode) & signs.null[: prepared.nt] & along_lines
    own = np.zeros((mechanics.n, prepared.nt), bool)
    resting = [(i, c.tangent) for i, c in enumerate(mechanics.contacts) if c.belt is None]
    for i, tangent in resting:
        if tangent.single is not None:
            own[tangent.single, i] = True
    rests = jnp.any(own & (null | (state.mode == Mode.STICK))[None, :], axis=1)
    if not prepared.independent:
        q = select(rests, state.q, q)
        v, a = select(rests, 0.0, v), select(rests, 0.0, a)
    for i, tangent in resting:
        if (pair := tangent.pair) is None:
            continue
        for leader, follower in (pair, pair[::-1]):
            joined = (state.mode[i] == Mode.STICK) & ~rests[follower]
            at = joined & (column == follower)
            q = select(at, state.q + (q[leader] - state.q[leader]), q)
            v = select(at, v[leader], v)
            a = select(at, a[leader], a)
            # A body that follows one at rest is at rest for the next pair.
            rests = rests | (at & rests[leader])
    return values._replace(q=q, v=v, a=a)


def step_length(prepared: Prepared, state: State, records: Records, ts, target, natural):
    """Instant that the step may reach, and its length; derivatives do not pass through the choice
    of the length."""
    breaks = prepared.breakpoints
    t_end = target
    if breaks.shape[0]:
        # Of equal times a breakpoint counts: derivatives of later motion depend on it.
        following = jnp.min(select(breaks > state.t, breaks, jnp.inf))
        t_end = sooner(following, t_end)
    if prepared.nu:
        t_end = sooner(t_end, jnp.min(select(state.due > state.t, state.due, jnp.inf)))
    count = ts.shape[0]
    if count:
        last = records.written + slots_per_pass(count) - 1
        limit = select(last < count, ts[jnp.minimum(last, count - 1)], jnp.inf)
        t_end = select(limit > state.t, sooner(t_end, limit), t_end)
    free = jax.lax.stop_gradient(jnp.minimum(natural, state.h_max))
    remaining = (t_end - state.t) - state.t_rest
    # A step that lands on an event must not be stretched beyond the event to the end.
    reaches = remaining <= select(state.landing.any(), 1.0, 1.01) * free
    h = select(reaches, remaining, free)
    t, rest = later(state.t, state.t_rest, h)
    return Instant(select(reaches, t_end, t), select(reaches, 0.0, rest)), h


def advance(
    prepared: Prepared,
    state: State,
    step: Step,
    signs: Signs,
    end: Instant,
    natural,
    found: Found,
) -> Advance:
    """Move to the earliest event on a step, or to its end.

    ``found``: the events that the flow has found; ``end``: the end of the step.
    """
    s = found.s
    arrives = ~found.event & (s >= 1.0)
    t, rest = (
        select(arrives, a, b)
        for a, b in zip(end, later(state.t, state.t_rest, s * step.h), strict=True)
    )
    n = prepared.mechanics.n
    values = held_exactly(prepared, state, found.values, signs)
    return Advance(
        t=t,
        t_rest=rest,
        s=s,
        values=values,
        q=values.q,
        v=values.v,
        accepted=found.accepted,
        q_scale=found.largest[:n],
        v_scale=jnp.maximum(
            found.largest[n:], cancelled(prepared, state, step.unbalanced, natural)
        ),
        h_max=found.h_next,
        fired=found.fired,
        guards=found.guards,
        grazing=found.grazing,
        landing=jnp.zeros_like(found.fired),
    )


def on_breakpoint(prepared: Prepared, state: State, ahead: Advance) -> Advance:
    """Move an event that only rounding separates from the breakpoint ahead onto this breakpoint:
    nothing could be resolved on the step between them."""
    breaks = prepared.breakpoints
    if not breaks.shape[0]:
        return ahead
    still, rest, breaks = jax.lax.stop_gradient((ahead.t, ahead.t_rest, breaks))
    missing = (breaks - still) - rest
    near = jnp.abs(missing) <= 4 * jnp.finfo(still.dtype).eps * jnp.abs(still)
    near = near & (breaks > jax.lax.stop_gradient(state.t))
    at = jnp.max(select(near, breaks, -jnp.inf))
    is_near = jnp.any(near)
    moved = select(is_near, at - still, 0.0)
    return ahead._replace(t=ahead.t + moved, t_rest=select(is_near, 0.0, ahead.t_rest))


def at_the_end(prepared: Prepared, state: State, ahead: Advance) -> Advance:
    """Move an event or breakpoint that only rounding separates from the end of the run onto it.

    The final state is that of the motion before the event, and so are its derivatives: by the end
    they are rates of this motion, and the event's time, if it depends on parameters, has no part.
    """
    t, rest, last = jax.lax.stop_gradient((ahead.t, ahead.t_rest, prepared.last))
    arrives = near(last - rest, t) & (last > jax.lax.stop_gradient(state.t))
    missing = jnp.where(arrives, (prepared.last - ahead.t) - ahead.t_rest, 0.0)
    # Of value zero: what the modes hold exactly stays exact.
    missing = missing - jax.lax.stop_gradient(missing)
    q, v = shortly_after(ahead.q, ahead.v, ahead.values.a, 0.0, missing)
    return ahead._replace(
        t=jnp.where(arrives, prepared.last, ahead.t),
        t_rest=jnp.where(arrives, 0.0, ahead.t_rest),
        q=q,
        v=v,
    )


def cancelled(prepared: Prepared, state: State, unbalanced, natural):
    """Velocities (n,) whose rounding error, counted as zero, is that of forces that cancel: the
    velocity of a body that others hold consists of rounding errors alone."""
    c = constants(unbalanced.dtype)
    share = jnp.finfo(unbalanced.dtype).eps / c.zero
    return share * jnp.minimum(natural, prepared.end - state.start) * unbalanced


def land(prepared: Prepared, state: State, step: Step, signs: Signs, advance: Advance) -> Advance:
    """Reach an event by real steps: first shorten the step to it, then correct by Newton steps.

    The last correction leaves an error of third order in a length below ``CLOSE`` of the step. It
    carries the derivatives of the event time by the implicit function theorem.
    """
    landing = state.landing.any()
    guard = pick(step.guard_table, step.guard_rows, state.landing)
    value, slope = horner_with_slope(guard, jnp.ones((), guard.dtype))
    safe = jax.lax.stop_gradient(select(slope == 0, 1.0, slope))
    missing = jax.lax.stop_gradient(-value / safe * step.h)
    close = jnp.abs(missing) <= CLOSE * step.h
    close = close | (state.landings >= LANDINGS) | (slope >= 0)
    missing = select(jnp.abs(missing) <= 0.5 * step.h, missing, 0.0)
    frozen = jax.lax.stop_gradient(1.0 + missing / step.h)
    missing = (with_root_derivative(guard, frozen) - 1.0) * step.h
    arrives = landing & step.accepted & close
    end = held_exactly(prepared, state, step.split(prepared, jnp.sum(step.table, axis=0)), signs)
    q, v, a = end.q, end.v, end.a
    at_end = jnp.sum(step.guard_table, axis=0)
    at_end = at_end if step.guard_rows is None else matvec(step.guard_rows, at_end)
    # Change of the acceleration, for second derivatives.
    k = jnp.arange(step.table.shape[0], dtype=step.table.dtype)
    n = prepared.mechanics.n
    jerk = matvec(step.table[:, n : 2 * n].T, k * (k - 1.0)) / (step.h * step.h)
    q, v = shortly_after(q, v, a, jerk, missing)
    # The first detection of an event only shortens the step.
    found = ~landing & advance.accepted & advance.fired.any()
    passed = (advance.t - state.t) + (advance.t_rest - state.t_rest)
    approach = select(landing, step.h + missing, passed)
    approach = select(landing & ~step.accepted, step.h_next, approach)
    again = landing & step.accepted & ~close
    t, rest = later(state.t, state.t_rest, step.h + missing)
    return Advance(
        t=select(arrives, t, advance.t),
        t_rest=select(arrives, rest, advance.t_rest),
        s=select(arrives, 1.0, advance.s),
        values=jax.tree.map(lambda a, b: select(arrives, a, b), end, advance.values),
        q=select(arrives, q, advance.q),
        v=select(arrives, v, advance.v),
        q_scale=advance.q_scale,
        v_scale=advance.v_scale,
        accepted=select(landing, arrives, advance.accepted & ~found),
        h_max=jax.lax.stop_gradient(
            select(arrives, step.h_next, select(found | landing, approach, advance.h_max))
        ),
        fired=select(landing, state.landing & arrives, advance.fired & ~found),
        guards=select(arrives, at_end, advance.guards),
        grazing=advance.grazing & ~landing,
        landing=select(again, state.landing, advance.fired & found),
    )


def shortly_after(q, v, a, jerk, s):
    """Position and velocity a short time ``s`` later, to third and second order."""
    return q + s * (v + 0.5 * s * (a + s * jerk / 3.0)), v + s * (a + 0.5 * s * jerk)
