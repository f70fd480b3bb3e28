"""How far a pass advances: to the end of its step, or to the earliest event on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.contact import rules
from jfric.numerics.linear_algebra import matvec
from jfric.numerics.polynomials import horner_with_slope, pick, with_derivatives
from jfric.numerics.tolerances import ROUNDINGS
from jfric.results.modes import Mode
from jfric.solvers.event_driven.clock import Instant, later
from jfric.solvers.event_driven.constants import CLOSE, LANDINGS, SMALLEST_FRACTION, constants
from jfric.solvers.event_driven.flow_step import Step, Values
from jfric.solvers.event_driven.isolation import isolate, watched_zero, with_root_derivative
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State
from jfric.solvers.event_driven.transitions import Signs
from jfric.solvers.records import Records, slots_per_pass


class Advance(NamedTuple):
    """Where a step ends: at its end or at the earliest event."""

    t: Float[Array, ""]
    t_rest: Float[Array, ""]
    #: End of the motion as a fraction of the step.
    s: Float[Array, ""]
    #: Everything there (the reactions of the mode that ends).
    values: Values
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    q_scale: Float[Array, " n"]
    v_scale: Float[Array, " n"]
    #: Whether time advanced; otherwise ``h_max`` is tried next.
    accepted: Bool[Array, ""]
    h_max: Float[Array, ""]
    fired: Bool[Array, " g"]
    grazing: Bool[Array, ""]
    #: Guard whose zero the next step lands on.
    landing: Bool[Array, " g"]


def held_exactly(prepared: Prepared, state: State, values: Values, signs: Signs) -> Values:
    """Motion without rounding error of bodies that contacts hold together.

    Two bodies that stick to each other get the same velocity. A body whose contact to the ground
    carries its limit, but does not move because another contact sticks (redundant contacts),
    rests.
    """
    mechanics = prepared.mechanics
    q, v, a = values.q, values.v, values.a
    column = jnp.arange(mechanics.n)
    null = rules.slides(state.mode) & signs.null[: prepared.nt] & ~prepared.frictionless
    own = np.zeros((mechanics.n, prepared.nt), bool)
    for i, dof in enumerate(mechanics.single_tangent):
        if dof is not None and mechanics.belts[i] is None:
            own[dof, i] = True
    rests = jnp.any(own & (null | (state.mode == Mode.STICK)), axis=1)
    if not prepared.independent:
        q = jnp.where(rests, state.q, q)
        v, a = jnp.where(rests, 0.0, v), jnp.where(rests, 0.0, a)
    for i, pair in enumerate(mechanics.pair_tangent):
        if pair is None or mechanics.belts[i] is not None:
            continue
        for leader, follower in (pair, pair[::-1]):
            joined = (state.mode[i] == Mode.STICK) & ~rests[follower]
            at = joined & (column == follower)
            q = jnp.where(at, state.q + (q[leader] - state.q[leader]), q)
            v = jnp.where(at, v[leader], v)
            a = jnp.where(at, a[leader], a)
            # A body that follows one at rest is at rest for the next pair.
            rests = rests | (at & rests[leader])
    return values._replace(q=q, v=v, a=a)


def step_length(prepared: Prepared, state: State, records: Records, ts, target, natural):
    """Instant that the step may reach, and its length; only the choice of length is frozen."""
    breaks = prepared.breakpoints
    t_end = target
    if breaks.shape[0]:
        t_end = jnp.minimum(t_end, jnp.min(jnp.where(breaks > state.t, breaks, jnp.inf)))
    if prepared.nu:
        t_end = jnp.minimum(t_end, jnp.min(jnp.where(state.due > state.t, state.due, jnp.inf)))
    count = ts.shape[0]
    if count:
        last = records.written + slots_per_pass(count) - 1
        limit = jnp.where(last < count, ts[jnp.minimum(last, count - 1)], jnp.inf)
        t_end = jnp.where(limit > state.t, jnp.minimum(t_end, limit), t_end)
    free = jax.lax.stop_gradient(jnp.minimum(natural, state.h_max))
    remaining = (t_end - state.t) - state.t_rest
    reaches = remaining <= 1.01 * free
    h = jnp.where(reaches, remaining, free)
    t, rest = later(state.t, state.t_rest, h)
    return Instant(jnp.where(reaches, t_end, t), jnp.where(reaches, 0.0, rest)), h


def resolvable(t, h) -> Bool[Array, ""]:
    """Whether a step of length ``h`` is far beyond the rounding of time."""
    return h > ROUNDINGS * jnp.finfo(h.dtype).eps * jnp.abs(t)


def advance(
    prepared: Prepared,
    state: State,
    step: Step,
    signs: Signs,
    end: Instant,
    natural,
    *,
    refine: Callable | None = None,
    apart: bool = False,
    degree: int = 0,
) -> Advance:
    """Isolate the earliest event on a step and move there, or to the end of the step.

    ``end``: the end of the step. A step that the certificate cannot decide is not
    accepted; a shorter one follows. ``refine(fired, s)``: a better place of the zero found.
    ``apart``, ``degree``: as in :func:`jfric.solvers.event_driven.isolation.isolate`.
    """
    c = constants(step.table.dtype)
    order = jnp.where(signs.null, 0, signs.order)
    if step.leading.shape[1]:
        still = jax.lax.stop_gradient(step)
        others = jnp.zeros((order.shape[0] - prepared.nt,), bool)
        bounced = (state.mode == Mode.OPEN) & (state.known[: prepared.nt] > 0)
        bounced = jnp.concatenate([bounced, others])
        found = isolate(
            still.guard_table,
            order,
            still.remainder,
            watched_zero(still.leading, still.zero, signs.null),
            rows=still.guard_rows,
            null=signs.null,
            stays=rules.may_stay_at_zero(signs.of(slice(None)), bounced),
            certificate_order=c.certificate_order,
            degree=degree,
            rounding=c.rounding,
            newton=c.newton,
            apart=apart,
        )
        last = jnp.sum(still.guard_table, axis=0)
        rows = still.guard_rows
        at_end = last if rows is None else matvec(rows, last)
        reference = jnp.minimum(natural, prepared.end - state.start)
        smallest = step.h <= SMALLEST_FRACTION * reference
        # Too short to resolve further: a guard that comes so near to zero counts as reaching it;
        # one that starts there only if it is negative at the end.
        crossed = found.undecided & ~signs.null & ((at_end < 0) | (order == 0))
        gives_up = ~found.decided & smallest & ~(found.near & resolvable(state.t, step.h))
        event = jnp.where(gives_up, jnp.any(crossed), found.root <= 1.0)
        first = jnp.arange(crossed.shape[0]) == jnp.argmax(crossed)
        fired = jnp.where(gives_up, crossed & first, found.guard) & event
        earliest = jnp.where(gives_up, 1.0, found.root)
        guard = pick(step.guard_table, step.guard_rows, fired)
        known = jnp.arange(guard.shape[0]) < jnp.sum(jnp.where(fired, order, 0))
        guard = jnp.where(known, 0.0, guard)
        s = with_root_derivative(guard, earliest)
        s = jnp.where(event, s if refine is None else refine(fired, s), 1.0)
        # Zeros far inside the step are located again on a shorter one, for full precision.
        coarse = event & (earliest < 1.0 / 64) & ~smallest
        accepted = step.accepted & (found.decided | gives_up) & ~coarse
        # Impacts get slower and slower where they accumulate; a gap that turns is one that closes.
        nt = prepared.nt
        impact = jnp.any(fired[:nt] & (state.mode == Mode.OPEN))
        grazing = gives_up | (event & ~impact & grazes(found.chosen, earliest, found.resolution))
        retry = jnp.where(coarse & found.decided, 4.0 * earliest, found.retry) * step.h
        there = jnp.where(gives_up, last, found.values)
    else:
        s = jnp.ones((), step.table.dtype)
        event, accepted = jnp.asarray(False), step.accepted
        fired, grazing = jnp.zeros((0,), bool), jnp.asarray(False)
        retry = step.h_next
    retry = jnp.where(step.accepted, retry, step.h_next)
    t, rest = (
        jnp.where(event, a, b)
        for a, b in zip(later(state.t, state.t_rest, s * step.h), end, strict=True)
    )
    grown = jnp.minimum(16.0 * s * step.h, step.h_next)
    grown = jnp.maximum(grown, jnp.where(event, 0.0, 16.0 * step.h))
    n = prepared.mechanics.n
    if step.leading.shape[1] and step.guard_table is step.table and refine is None:
        # What the search for the zero has evaluated, with its derivatives.
        values = step.split(prepared, with_derivatives(step.table, s, there))
    else:
        values = step.at(prepared, s)
    values = held_exactly(prepared, state, values, signs)
    largest = jax.lax.stop_gradient(jnp.sum(jnp.abs(step.table[:, : 2 * n]), axis=0))
    return Advance(
        t=t,
        t_rest=rest,
        s=s,
        values=values,
        q=values.q,
        v=values.v,
        accepted=accepted,
        q_scale=largest[:n],
        v_scale=jnp.maximum(largest[n:], cancelled(prepared, state, step.unbalanced, natural)),
        h_max=jax.lax.stop_gradient(jnp.where(accepted, jnp.minimum(grown, step.h_next), retry)),
        fired=fired,
        grazing=grazing,
        landing=jnp.zeros_like(fired),
    )


def cancelled(prepared: Prepared, state: State, unbalanced, natural):
    """Velocities (n,) whose rounding errors, counted as zero, are those of forces that cancel: a
    body that others hold has a velocity of rounding errors alone."""
    c = constants(unbalanced.dtype)
    share = jnp.finfo(unbalanced.dtype).eps / c.zero
    return share * jnp.minimum(natural, prepared.end - state.start) * unbalanced


def grazes(guard, s, resolution) -> Bool[Array, ""]:
    """Whether a guard that is zero at ``s`` turns there, as far as can be resolved."""
    rates = [k * guard[k] for k in range(1, len(guard))]
    slope, curvature = jax.lax.stop_gradient(horner_with_slope(rates, s))
    return rules.turns_at_zero(slope, curvature, resolution)


def land(prepared: Prepared, state: State, step: Step, signs: Signs, advance: Advance) -> Advance:
    """Reach an event by real steps: first shorten the step to it, then correct by Newton steps.

    What the last correction leaves is of third order in a length below ``CLOSE`` of the step; it
    carries the derivatives of the event time by the implicit function theorem.
    """
    landing = state.landing.any()
    guard = pick(step.guard_table, step.guard_rows, state.landing)
    value, slope = horner_with_slope(guard, jnp.ones((), guard.dtype))
    safe = jax.lax.stop_gradient(jnp.where(slope == 0, 1.0, slope))
    missing = jax.lax.stop_gradient(-value / safe * step.h)
    close = jnp.abs(missing) <= CLOSE * step.h
    close = close | (state.landings >= LANDINGS) | (slope >= 0)
    missing = jnp.where(jnp.abs(missing) <= 0.5 * step.h, missing, 0.0)
    frozen = jax.lax.stop_gradient(1.0 + missing / step.h)
    missing = (with_root_derivative(guard, frozen) - 1.0) * step.h
    arrives = landing & step.accepted & close
    end = held_exactly(prepared, state, step.split(prepared, jnp.sum(step.table, axis=0)), signs)
    q, v, a = end.q, end.v, end.a
    # Change of the acceleration, for second derivatives.
    k = jnp.arange(step.table.shape[0], dtype=step.table.dtype)
    n = prepared.mechanics.n
    jerk = matvec(step.table[:, n : 2 * n].T, k * (k - 1.0)) / (step.h * step.h)
    q, v = shortly_after(q, v, a, jerk, missing)
    # The first look at an event only shortens the step.
    found = ~landing & advance.accepted & advance.fired.any()
    passed = (advance.t - state.t) + (advance.t_rest - state.t_rest)
    approach = jnp.where(landing, step.h + missing, passed)
    approach = jnp.where(landing & ~step.accepted, step.h_next, approach)
    again = landing & step.accepted & ~close
    t, rest = later(state.t, state.t_rest, step.h + missing)
    return Advance(
        t=jnp.where(arrives, t, advance.t),
        t_rest=jnp.where(arrives, rest, advance.t_rest),
        s=jnp.where(arrives, 1.0, advance.s),
        values=jax.tree.map(lambda a, b: jnp.where(arrives, a, b), end, advance.values),
        q=jnp.where(arrives, q, advance.q),
        v=jnp.where(arrives, v, advance.v),
        q_scale=advance.q_scale,
        v_scale=advance.v_scale,
        accepted=jnp.where(landing, arrives, advance.accepted & ~found),
        h_max=jax.lax.stop_gradient(
            jnp.where(arrives, step.h_next, jnp.where(found | landing, approach, advance.h_max))
        ),
        fired=jnp.where(landing, state.landing & arrives, advance.fired & ~found),
        grazing=advance.grazing & ~landing,
        landing=jnp.where(again, state.landing, advance.fired & found),
    )


def shortly_after(q, v, a, jerk, s):
    """Position and velocity a short time ``s`` later, to third and second order."""
    return q + s * (v + 0.5 * s * (a + s * jerk / 3.0)), v + s * (a + 0.5 * s * jerk)
