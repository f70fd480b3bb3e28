"""User events within a pass: evaluated on the step, decided at an instant.

The value that an event watches becomes a polynomial on the step, like a guard. A function that is
affine in time, motion and reactions is the same combination of their polynomials. Any other
function is interpolated at Chebyshev nodes, and the certificate holds up to a bound estimated from
the last coefficients and from values between the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters.partial_eval import dce_jaxpr
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.numerics.choice import select
from jfric.numerics.isolation import LEADING
from jfric.numerics.linear_algebra import diagonal_of, matvec
from jfric.numerics.polynomials import horner, nodes_and_fit, powers, through_ends
from jfric.numerics.tolerances import ROUNDINGS, tolerances
from jfric.results.formulas import UserEvents
from jfric.results.pieces import Point
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.prepared import Prepared, constants
from jfric.solvers.event_driven.state import State, Watch, elongations, unlogged
from jfric.solvers.event_driven.transitions import Signs, reported_modes

#: Rounding errors of an interpolant's coefficients, in units of those of the interpolated values.
INTERPOLATED = 32.0
#: Fraction of a step by which the zero of an interpolant may differ from that of the function.
NEAR = 1e-2


class Seen(NamedTuple):
    """Result of :func:`see`: polynomials of the events, positive at first, and their signs.

    ``orientation`` (e,): 1 where an event's function is positive or stays zero, -1 where it is
    negative. ``exact``: whether the value at the start is known to rounding, which is relative to
    ``here``; changes on the step are relative to ``scale``. ``columns``: the polynomials without
    orientation. ``refine(fired, s)``: corrects a zero of an interpolant to one of the function;
    None where all are exact.
    """

    orientation: Int[Array, " e"]
    signs: rules.GuardSign
    exact: Bool[Array, " e"]
    here: Float[Array, " e"]
    scale: Float[Array, " e"]
    columns: Float[Array, "p e"]
    point: Point
    step: Step
    refine: Callable | None


def see(events: UserEvents, prepared: Prepared, flow, state: State, step: Step, signs: Signs):
    """User events on a step; the step in the result contains them after the guards."""
    curves = _curves(prepared, state, step)
    mode = reported_modes(prepared, state.mode, signs)
    piecewise = prepared.mechanics.piecewise
    segment = piecewise.shown(state.segment)

    def point(x) -> Point:
        sizes = (1, *(part.shape[1] for part in step.polynomials(prepared)[:5]))
        t, q, v, a, lambda_t, lambda_n = jnp.split(x, np.cumsum(sizes)[:-1])
        system = events.problem, prepared.mechanics
        x = elongations(prepared, t[0], q)[piecewise.tables :]
        z = piecewise.elongations(state.inner, x)
        z = jnp.concatenate([z, v[prepared.mechanics.n_dofs :]])
        return Point(t[0], q, v, a, lambda_t, lambda_n, mode, segment, *system, z=z)

    def values(x):
        return events.values(point(x))

    affine = np.asarray([_is_affine(values, curves[0], i) for i in range(events.count)])
    slopes = jax.jacrev(values)(curves[0])
    columns = jnp.concatenate([values(curves[0])[None], curves[1:] @ slopes.T])
    still = jax.lax.stop_gradient((prepared, state, step, slopes, curves))
    others = _sizes(*still[:3], still[4])
    now = jnp.maximum(jnp.abs(still[4][0]), others)
    changes = _changes(prepared, state, step, others)
    moving = jnp.maximum(jnp.sum(jnp.abs(still[4][1:]), axis=0), changes)
    last = jnp.abs(still[4][-1]) + jnp.abs(still[4][-2]) / (16.0 if flow.lands else 1.0)
    remainder = jnp.abs(still[3]) @ last
    if not affine.all():
        end = curves[0, 0] + step.h
        unit = jnp.finfo(end.dtype).eps * jnp.maximum(jnp.abs(curves[0, 0]), jnp.abs(end))
        found, error = _interpolated(values, curves, end - unit)
        columns = select(affine, columns, found)
        remainder = select(affine, remainder, error)
    columns_now = jax.lax.stop_gradient(columns)
    factor = select(affine, 1.0, INTERPOLATED)
    # The size of the terms on the whole step does not bound the value at its start.
    here = factor * (jnp.abs(still[3]) @ now + jnp.abs(columns_now[0]))
    since = factor * (jnp.abs(still[3]) @ moving + jnp.sum(jnp.abs(columns_now[1:]), axis=0))
    scale = here + since
    # The first derivative is exact, but that of an interpolant only relative to the whole.
    first = factor * (jnp.abs(still[3]) @ jnp.maximum(jnp.abs(still[4][1]), changes))
    leading = columns_now[:LEADING].at[1].set(still[4][1] @ still[3].T)
    watch = state.watch
    assert watch is not None
    unit, count = ROUNDINGS * jnp.finfo(scale.dtype).eps, flow.zero(scale.dtype)
    limits = tolerances(scale.dtype)
    small, rounded = count * here, unit * jnp.maximum(watch.largest, here)
    # A value that an impact or a change moved is known to rounding, and no longer zero.
    moved = jnp.abs(leading[0] - watch.value) > rounded
    near = limits.known * small
    exact = moved | (watch.exact & (jnp.abs(leading[0]) <= near))
    zero = select(exact, unit * here, small)
    zero = jnp.stack([zero, count * first, *[count * select(affine, since, scale)] * (LEADING - 2)])
    known = watch.known & ~moved & (jnp.abs(leading[0]) <= jnp.maximum(rounded, near))
    sign = rules.guard_sign(leading, zero, known=known.astype(jnp.int32))
    orientation = select(sign.violated, -1, 1)
    # A value that starts at zero, or is known there, has only the errors of the motion since then.
    begins = sign.order >= 1
    missing = constants(scale.dtype).rounding * select(affine & begins, since, scale)
    if flow.lands:
        missing = select(exact | begins, missing + count * since, count * scale)
    remainder = remainder + missing
    joined = _behind(
        step, orientation[None] * columns, orientation[None] * leading, zero, remainder
    )

    def refine(fired, s):
        return _refined(values, curves, fired[-events.count :] & ~affine, s)

    positive = sign._replace(violated=jnp.zeros_like(sign.violated))
    refine_ = None if affine.all() or flow.lands else refine
    seen = orientation, positive, exact, here, scale
    return Seen(*seen, columns_now, point(curves[0]), joined, refine_)


def with_signs(signs: Signs, seen: Seen) -> Signs:
    """Signs of the guards, followed by those of the user events."""
    order, null, violated = (
        jnp.concatenate(pair) for pair in zip(signs[:3], seen.signs, strict=True)
    )
    return signs._replace(order=order, null=null, violated=violated)


class Decision(NamedTuple):
    """Decision about the user events at an instant at which the modes are settled."""

    #: Whether an event came to zero, whether from the right side, and from which side (0: none).
    arrived: Bool[Array, " e"]
    fires: Bool[Array, " e"]
    logged: Int[Array, " e"]
    changes: Bool[Array, ""]
    stops: Bool[Array, ""]
    #: Which events change the state, when each last did, and whether one does again in no time.
    changing: Bool[Array, " e"]
    changed: Float[Array, " e"]
    accumulates: Bool[Array, ""]
    #: Whether a value passes through zero from rest after its event's own change, and whether one
    #: does so at the start, or from a start that is not quite at zero: none of these fires.
    passes: Bool[Array, ""]
    starts: Bool[Array, ""]


def decide(events: UserEvents, state: State, seen: Seen, settled) -> Decision:
    """Events that fire: those that were away from zero before this instant, and no longer are."""
    watch, t = state.watch, jax.lax.stop_gradient(state.t)
    assert watch is not None
    now = select(seen.signs.order >= 1, 0, seen.orientation)
    arrived = settled & (watch.side != 0) & (now != watch.side)
    up = events.mask(lambda e: e.direction != "down")
    down = events.mask(lambda e: e.direction != "up")
    fires = arrived & select(watch.side < 0, up, down)
    changing = fires & events.mask(lambda e: e.changes)
    changes = jnp.any(changing)
    soon = tolerances(t.dtype).chatter_time * (t - jax.lax.stop_gradient(state.start))
    # A value that has not left zero since then is back below its resolution.
    near = (watch.changed > -jnp.inf) & ~watch.far
    accumulates = jnp.any(changing & ((t - watch.changed < soon) | near))
    logged = select(fires, watch.side, watch.pending)
    stops = settled & ~changes & jnp.any((logged != 0) & events.mask(lambda e: e.stops))
    changed = select(changing, t, watch.changed)
    order = select(seen.signs.null, 0, seen.signs.order)
    through = (order >= 2) & (watch.pending * seen.orientation < 0)
    passes = settled & jnp.any(through & events.mask(lambda e: e.changes))
    through = (order >= 1) & (seen.columns[0] * seen.orientation < 0)
    starts = settled & ~state.settled & jnp.any(through)
    # If it began just before zero, the motion would fire the event at once.
    begins = (watch.side == 0) & ~watch.known & (watch.pending == 0) & (order >= 1)
    begins = begins & select(seen.orientation > 0, up, down) & (state.t == state.start)
    starts = starts | (settled & jnp.any(begins & events.mask(lambda e: e.changes or e.stops)))
    found = arrived, fires, logged, changes, stops, changing, changed, accumulates
    return Decision(*found, passes, starts)


def watch_after(
    state: State, seen: Seen, decision: Decision, fired, s, settles, moves, jumps
) -> Watch:
    """State of the user events after a pass. ``fired`` (e,): events whose zero ends the motion of
    this pass, at ``s`` of its step; ``settles``: whether the changes at this instant were logged;
    ``jumps``: whether they change positions or velocities."""
    watch = state.watch
    assert watch is not None
    side = select(decision.arrived, 0, watch.side)
    # A touch fires where it can no longer be distinguished from zero: it has left zero once it is
    # farther away. A value moved by a change leaves at once: it may come back from any height.
    zero = select(seen.signs.order >= 1, 2.0 * jnp.abs(seen.columns[0]), 0.0)
    zero = jnp.maximum(zero, ROUNDINGS * jnp.finfo(zero.dtype).eps * watch.largest)
    near = select(decision.arrived, select(decision.changes, 0.0, zero), watch.near)
    until = _until(seen.columns, jax.lax.stop_gradient(s))
    left = (near == 0) | (jnp.max(jnp.abs(until), axis=0) > near)
    after = select(seen.signs.null | ((side == 0) & ~left), 0, seen.orientation)
    pending = select(settles, 0, decision.logged)
    # A value that counts as zero at the start of a motion still does where this ends at zero.
    kept = select(seen.signs.order >= 1, watch.largest, 0.0)
    resolution = ROUNDINGS * jnp.finfo(until.dtype).eps * seen.here
    leaves = moves & (jnp.max(seen.orientation[None] * until, axis=0) > resolution)
    far = ~decision.changing & (watch.far | leaves)
    return Watch(
        side=select(moves, after, side).astype(jnp.int32),
        pending=pending.astype(jnp.int32),
        count=watch.count + (settles & (decision.logged != 0)).astype(jnp.int32),
        known=select(moves, fired, watch.known),
        largest=select(moves, jnp.maximum(seen.scale, kept), jnp.maximum(watch.largest, seen.here)),
        value=select(jumps, seen.columns[0], select(moves, jnp.nan, watch.value)),
        exact=select(decision.arrived, decision.changes, seen.exact),
        near=near,
        changed=decision.changed,
        far=far,
        stopped=watch.stopped | decision.stops,
        q_before=select(unlogged(state), watch.q_before, state.q),
        numbers=watch.numbers,
    )


def _until(columns: Float[Array, "p e"], s) -> Float[Array, "n e"]:
    """Values of each polynomial at nodes between 0 and ``s``."""
    nodes, _ = nodes_and_fit(columns.dtype.name)
    at = jnp.asarray(np.vander(nodes, columns.shape[0], increasing=True), columns.dtype)
    return at @ (columns * powers(s, columns.shape[0])[:, None])


def penetrates(prepared: Prepared, t, q) -> Bool[Array, ""]:
    """Whether bodies penetrate each other by more than rounding."""
    if not prepared.nu:
        return jnp.asarray(False)
    mechanics = prepared.mechanics.at(t, q, jnp.zeros_like(q))
    size = jnp.abs(mechanics.gap0) + matvec(jnp.abs(mechanics.W_N), jnp.abs(q))
    z, _ = mechanics.base_motion(t)
    size = size + matvec(jnp.abs(mechanics.W_N_base), jnp.abs(z))
    limits = tolerances(q.dtype)
    return jnp.any(mechanics.gaps(t, q) < -limits.known * limits.zero * size)


def _curves(prepared: Prepared, state: State, step: Step) -> Float[Array, "p x"]:
    """Polynomials of time, position, velocity, acceleration, friction and normal forces."""
    index = jnp.arange(step.table.shape[0])
    time = select(index == 0, state.t, select(index == 1, step.h, 0.0))
    return jnp.concatenate([time[:, None], *step.polynomials(prepared)[:5]], axis=1)


def _sizes(prepared: Prepared, state: State, step: Step, curves) -> Float[Array, " x"]:
    """Reference sizes for rounding errors of the curves, in addition to the curves' own values."""
    n = prepared.mechanics.n
    count = curves.shape[1] - 1 - 3 * n
    force = jnp.sum(diagonal_of(prepared.mechanics.M) * step.unbalanced)
    return jnp.concatenate(
        [
            jnp.zeros((1,), curves.dtype),
            state.q_scale,
            state.v_scale,
            step.unbalanced,
            jnp.full((count,), force),
        ]
    )


def _changes(prepared: Prepared, state: State, step: Step, others) -> Float[Array, " x"]:
    """Reference sizes for rounding errors of the curves' changes on the step, in addition to the
    changes themselves."""
    n, h = prepared.mechanics.n, step.h
    speed = h * (state.v_scale + 0.5 * h * step.unbalanced)
    return others.at[1 : 1 + 2 * n].set(jnp.concatenate([speed, h * step.unbalanced]))


def _is_affine(values: Callable, x, i: int) -> bool:
    """Whether the derivative of the value ``i`` does not depend on the point of evaluation."""
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    tangent = jax.make_jaxpr(lambda x, dx: jax.jvp(lambda x: values(x)[i], (x,), (dx,))[1])
    used = dce_jaxpr(tangent(like, like).jaxpr, [True])[1]
    return not used[0]


def _interpolated(values: Callable, curves, end) -> tuple[Float[Array, "p e"], Float[Array, " e"]]:
    """Polynomials through the values at Chebyshev nodes, and a bound on their truncation error.

    Functions of time are evaluated just before ``end``, where they may jump.
    """
    nodes, fit = nodes_and_fit(curves.dtype.name)
    between = 0.5 * (nodes[1:] + nodes[:-1])

    def sampled(s):
        x = jnp.asarray(np.vander(s, curves.shape[0], increasing=True), curves.dtype) @ curves
        return jax.vmap(values)(x.at[:, 0].min(end))

    at = sampled(nodes)
    found = through_ends(jnp.asarray(fit) @ at, at)
    still = jax.lax.stop_gradient(found)
    missed = jnp.asarray(np.vander(between, len(nodes), increasing=True), found.dtype) @ still
    missed = jnp.max(jnp.abs(jax.lax.stop_gradient(sampled(between)) - missed), axis=0)
    # The last two coefficients of Chebyshev's polynomials.
    d = len(nodes) - 1
    tail = jnp.abs(still[-1]) / 4.0 + jnp.abs(still[-2] + 0.5 * d * still[-1])
    missing = jnp.zeros((curves.shape[0] - len(nodes), found.shape[1]), found.dtype)
    return jnp.concatenate([found, missing]), 4.0 * missed + 16.0 * tail / 2.0 ** (2 * d - 3)


def _refined(values: Callable, curves, fired, s):
    """Zero near ``s`` of the function itself, by Newton's method; the last two steps give the
    derivatives of its place."""
    chosen = fired.astype(curves.dtype)

    def along(s):
        return jnp.sum(chosen * values(horner(curves, s)))

    def newton(s):
        value, slope = jax.jvp(along, (s,), (jnp.ones_like(s),))
        step = -value / select(slope == 0, 1.0, slope)
        return s + select(jnp.abs(jax.lax.stop_gradient(step)) <= NEAR, step, 0.0)

    found = jax.lax.stop_gradient(newton(newton(jax.lax.stop_gradient(s))))
    return select(jnp.any(fired), newton(newton(found)), s)


def _behind(step: Step, columns, leading, zero, remainder) -> Step:
    """``step`` with further guards, given as polynomials."""
    rows = step.guard_rows
    if rows is not None:
        count = columns.shape[1]
        old = jnp.pad(rows, ((0, 0), (0, count)))
        new = jnp.pad(jnp.eye(count, dtype=rows.dtype), ((0, 0), (rows.shape[1], 0)))
        rows = jnp.concatenate([old, new])
    return step._replace(
        guard_table=jnp.concatenate([step.guard_table, columns], axis=1),
        guard_rows=rows,
        leading=jnp.concatenate([step.leading, leading], axis=1),
        zero=jnp.concatenate([step.zero, zero], axis=1),
        remainder=jnp.concatenate([step.remainder, remainder]),
    )
