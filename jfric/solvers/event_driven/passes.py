"""One pass of the event-driven solver: settle the modes, or advance to the next event.

``advance``, ``isolate``, ``transition``, ``record`` happen in every pass under masks, so that a
batch of trajectories never waits for one of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.pivoting import start_pivoting
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import eliminate, matvec
from jfric.numerics.loops import either, once, when_any
from jfric.results.status import Flag, Status
from jfric.solvers.event_driven.advance import (
    Advance,
    advance,
    at_the_end,
    held_exactly,
    land,
    on_breakpoint,
    step_length,
)
from jfric.solvers.event_driven.changes import (
    Changed,
    Choice,
    Start,
    Verdict,
    after_impact,
    changed,
    choose,
)
from jfric.solvers.event_driven.event_log import Logged, log_changes, remarks
from jfric.solvers.event_driven.first_event import resolvable
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.impacts import ImpactLimits
from jfric.solvers.event_driven.in_mode import InMode, in_mode, one_motion
from jfric.solvers.event_driven.inputs import given, tangled, with_late_jumps
from jfric.solvers.event_driven.mode_equations import project, put_back
from jfric.solvers.event_driven.planes import first_step, longest_step, stop
from jfric.solvers.event_driven.prepared import VANISHING, Prepared, constants
from jfric.solvers.event_driven.small_change import change_after
from jfric.solvers.event_driven.state import (
    State,
    Watch,
    elongations,
    modes_at,
    prescribed_velocities,
    regions_at,
    unlogged,
    with_sides,
)
from jfric.solvers.event_driven.transitions import (
    Signs,
    arrived_unseen,
    at_breakpoint,
    break_away,
    known_after,
    predict,
    release_after_jump,
    reported_modes,
    several_at_zero,
)
from jfric.solvers.event_driven.user_events import (
    Decision,
    Seen,
    decide,
    penetrates,
    see,
    watch_after,
    with_signs,
)
from jfric.solvers.records import Records, write_outputs
from jfric.system.bounds import numbers_hold
from jfric.system.functions import powers_of_time
from jfric.system.naming import with_numbers


def one_pass(
    prepared: Prepared,
    flow,
    state: State,
    records: Records,
    ts,
    target,
    force,
    on,
    common: InMode | None = None,
    *,
    limits: ImpactLimits,
) -> tuple[State, Records, Callable[[], Step]]:
    """State after one pass, records, and a function that gives the step on whose first part the
    state moved (if it did).

    Buffers are written only where ``on``. ``target``: time that the pass does not go beyond;
    ``force`` (n,): extra constant force. ``common``: values that passes in this mode share, if they
    exist already. ``limits``: settings of the solver.
    """
    start = _start(prepared, flow, state, force, on, common)
    prepared, state, events = start.prepared, start.state, start.prepared.events
    longest, moving = start.common.natural, with_late_jumps(prepared, start.common.equations, state)
    now, pieces = (prepared, start.common.equations, start.given, moving), None
    if prepared.mechanics.planes:
        pieces = flow.pieces(*now, force, start.still)
        longest = jnp.minimum(longest, longest_step(pieces.quiet))
    reach, h = step_length(prepared, state, records, ts, target, longest)
    # A trajectory that has ended idles with a harmless step: a step of length zero would lead to
    # undefined values in reverse mode.
    h = select(on, h, 1.0)
    begun = flow.step(*now, h, force, start.still, pieces)
    if begun.later is None:
        begun = begun.judged_once(on)
    choice = choose(start, begun, on)
    settled, step, seen = choice.settled, begun, None
    if events is not None:
        order = constants(state.q.dtype).order
        step = begun.completed((settled | choice.restart) & on, order)
        seen = see(events, prepared, flow, state, step, choice.signs)

    # The results of all three outcomes; masks choose among them.
    step, ahead = _look_ahead(start, flow, reach, begun, step, choice, seen, on)
    found = changed(start, begun, choice, on)
    verdict = Verdict(state.status, state.flags, state.energy_gained)
    if prepared.nu:
        found, verdict = after_impact(start, begun, choice, found, verdict, target, limits)

    # ``settles``: the modes are settled, and no user event changes the state.
    settles, goes_on, decision = settled, ahead.accepted, None
    if events is not None and seen is not None:
        decision = decide(events, state, seen, settled)
        settles = settled & ~decision.changes
        goes_on = goes_on & ~decision.changes & ~decision.stops
    own, waits = None if decision is None else decision.logged, state.due > state.t
    records, logged = log_changes(prepared, state, records, choice.signs, waits, settles & on, own)
    unique, verdict = _one_motion(start, begun, step, choice, verdict)
    moves = settled & goes_on & unique
    records = _with_outputs(start, records, ts, step, choice.signs, ahead, moves & on)
    verdict = _judged(start, begun, step, choice, ahead, unique, verdict)
    verdict = verdict.flagged(Flag.SIMULTANEOUS, logged.count > 1)
    verdict = verdict.flagged(Flag.SIMULTANEOUS, moves & on & tangled(prepared.mechanics, state.t))
    guess = _guess(start, begun, choice, ahead)
    happens = Happens(settles=settles, moves=moves, changes=jnp.asarray(False), watch=state.watch)
    if decision is not None and seen is not None:
        happens, verdict = _watched(start, choice, seen, decision, ahead, logged, happens, verdict)
        found, watch, verdict = _after_events(start, seen, decision, found, happens.watch, verdict)
        happens = happens._replace(watch=watch)
    new = _next_state(start, begun, choice, found, ahead, guess, happens, verdict, logged)
    return new, records, lambda: step


class Happens(NamedTuple):
    """Outcome of a pass: modes are settled, and the state moves or a user event changes it (at most
    one of the two)."""

    settles: Bool[Array, ""]
    moves: Bool[Array, ""]
    changes: Bool[Array, ""]
    watch: Watch | None


class Guess(NamedTuple):
    """Modes to try first after a motion: the guard that ended the motion usually tells them."""

    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    anchor: Float[Array, "e N"]
    known: Int[Array, " g"]


def _start(prepared: Prepared, flow, state: State, force, on, common: InMode | None) -> Start:
    """The system at this instant, in the mode of ``state``."""
    anywhere, assembled = prepared, prepared.in_regions(state.region)
    prepared = assembled.at(state.t, state.q, state.v)
    state = release_after_jump(prepared, state, prescribed_velocities(prepared, state.t))
    if flow.looks_first:
        state = break_away(prepared, state, force)
    frozen = jax.lax.stop_gradient(prepared)
    if common is None:
        common = in_mode(prepared, frozen, flow, state, on)
    g = given(prepared, common.equations, state.t)
    velocity, gap = matvec(g.velocity, g.w), matvec(g.gap, g.w)
    q, v = project(prepared, common.equations, state, velocity, gap)
    projected = eqx.tree_at(lambda s: (s.q, s.v), state, (q, v))
    still = frozen, *jax.lax.stop_gradient((common.equations, projected))
    return Start(anywhere, assembled, prepared, common, g, state, projected, still)


def _look_ahead(
    start: Start, flow, reach, begun: Step, step: Step, choice: Choice, seen: Seen | None, on
) -> tuple[Step, Advance]:
    """The step with its polynomials, and where the motion on it ends."""
    prepared, state, natural = start.prepared, start.state, start.common.natural
    watched, judged, refine = step, choice.signs, None
    if seen is not None:
        watched, judged, refine = seen.step, with_signs(choice.signs, seen), seen.refine
    breaks = at_breakpoint(start.still[0], reach.t) if prepared.breakpoints.shape[0] else None

    def move(watched: Step, degree: int = 0) -> Advance:
        found = flow.first_event(
            prepared, state, watched, judged, natural, on, refine, degree, breaks
        )
        ahead = advance(prepared, state, watched, judged, reach, natural, found)
        if flow.lands and prepared.n_watched:
            ahead = land(prepared, state, watched, judged, ahead)
        if prepared.mechanics.planes:
            ahead = stop(prepared, state, ahead, natural)
        ahead = at_the_end(prepared, state, on_breakpoint(prepared, state, ahead))
        q, v = put_back(start.assembled, state, ahead.t, ahead.q, ahead.v)
        return ahead._replace(q=q, v=v)

    if begun.later is None:
        return step, once(move(watched), on)
    if step.later is None:
        return step, when_any(choice.settled & on, functools.partial(move, watched))
    # Half of the steps of many contacts are so short that few coefficients suffice, provided that
    # all terms of polynomial loads are among them.
    c, later = constants(state.q.dtype), begun.later

    def along(order: int):
        found = later(order)
        missing = ((0, c.order - order), (0, 0))
        table, guards = (jnp.pad(x, missing) for x in found[:2])
        return move(begun.with_later(found), c.order), (table, guards, found[2])

    long, short = (functools.partial(along, order) for order in (c.order, c.short_order))
    moving = choice.settled & on
    is_long = moving & (begun.h > c.short * natural)
    if powers_of_time(prepared.mechanics.functions()) + 1 > c.short_order:
        is_long = moving
    ahead, found = when_any(moving, lambda: either(is_long, long, short))
    return begun.with_later(found), ahead


def _one_motion(
    start: Start, begun: Step, step: Step, choice: Choice, verdict: Verdict
) -> tuple[Bool[Array, ""], Verdict]:
    """Whether there is exactly one motion; otherwise none is reported."""
    prepared, equations = start.prepared, start.common.equations
    frozen, quiet, still = start.still
    unique = equations.unique & rules.is_unique(begun.smallest_pivot(equations.pivot))
    if prepared.shares:
        one, several = one_motion(frozen, still, quiet, step, choice.signs)
        unique = unique & one
        verdict = verdict.flagged(Flag.REDUNDANT, choice.settled & several)
    return unique, verdict


def _with_outputs(
    start: Start, records: Records, ts, step: Step, signs: Signs, ahead: Advance, moves
) -> Records:
    """Records with the outputs that lie on the motion of this pass."""
    prepared, state, piecewise = start.prepared, start.state, start.prepared.mechanics.piecewise

    def output(s):
        values = held_exactly(prepared, state, step.at(prepared, s), signs)
        q, v = put_back(start.assembled, state, state.t + s * step.h, values.q, values.v)
        z = piecewise.elongations(state.inner, values.elongation)
        return jnp.concatenate([q, v, *values[2:5], z])

    modes, segments = reported_modes(prepared, state.mode, signs), piecewise.shown(state.segment)
    return write_outputs(records, ts, output, state, step.h, ahead.t, modes, segments, moves)


def _judged(
    start: Start, begun: Step, step: Step, choice: Choice, ahead: Advance, unique, verdict: Verdict
) -> Verdict:
    """Verdict with the status and flags of this pass."""
    prepared, state, settled = start.prepared, start.state, choice.settled
    equations, (frozen, _, still) = start.common.equations, start.still
    mechanics, signs = prepared.mechanics, choice.signs
    in_vain = choice.in_vain
    verdict = verdict.ended(Status.INCONSISTENT, in_vain | (settled & ~unique))
    verdict = verdict.flagged(Flag.NO_MODE, in_vain)
    if mechanics.pins is None:
        verdict = verdict.flagged(Flag.SEVERAL_MOTIONS, settled & ~unique)
    remarked = select(settled, remarks(prepared, state, signs, equations, ahead), 0)
    verdict = verdict._replace(flags=verdict.flags | remarked)
    verdict = verdict.flagged(Flag.GRAZING, arrived_unseen(frozen, still, signs))
    # Only steps of a Runge-Kutta flow are refused for their error: where even those are that no
    # longer move time, none would be taken.
    lost = settled & ~step.accepted & ~resolvable(prepared.end - state.start, step.h)
    verdict = verdict.ended(Status.STALLED, lost)
    if mechanics.has_edges:
        # Slid into a singular point: the normal force grows beyond bounds.
        gone = lost & (begun.smallest_pivot(equations.pivot) < VANISHING)
        verdict = verdict.ended(Status.INCONSISTENT, gone)
        verdict = verdict.flagged(Flag.NO_MODE, gone)
    if mechanics.varying is not None:
        # A sweep may vary numbers so that a mass vanishes or becomes negative.
        pivot = eliminate(jax.lax.stop_gradient(mechanics.M), 0.0).pivot
        verdict = verdict.ended(Status.INCONSISTENT, ~(pivot > 0))
    if mechanics.tied is not None:
        tied = jax.lax.stop_gradient(mechanics.tied)
        fails = tied.fails(still.v, still.q_scale, still.v_scale)
        verdict = verdict.ended(Status.INCONSISTENT, fails)
        verdict = verdict.flagged(Flag.REDUNDANT, settled & mechanics.tied.redundant)
    looked = jnp.sum(begun.leading if begun.later is not None else step.table[-1])
    looked = looked + jnp.sum(ahead.v)
    return verdict.ended(Status.NON_FINITE, ~jnp.isfinite(jax.lax.stop_gradient(looked)))


def _guess(start: Start, begun: Step, choice: Choice, ahead: Advance) -> Guess:
    """The modes to which the guard that ends the motion leads."""
    prepared, state, signs = start.prepared, start.state, choice.signs
    (frozen, equations, still), nt = start.still, prepared.nt
    fired = ahead.fired[: prepared.n_guards]
    stays = ahead.grazing | at_breakpoint(frozen, ahead.t)
    reached = jax.lax.stop_gradient((fired, ahead.guards))
    stays = stays | several_at_zero(frozen, still, begun, *reached)
    mode, segment = predict(
        frozen,
        start.common.compliance,
        state,
        jax.lax.stop_gradient(ahead.values),
        fired,
        stays,
        equations.redundant,
    )
    # A guard that vanished identically is still zero, and so is the one that fired.
    kept = eqx.tree_at(lambda s: s.known, state, (fired | signs.null).astype(jnp.int32))
    slid = rules.slides(state.mode)
    known = known_after(frozen, kept, mode, segment, slid & fired[:nt], kept.known)
    moved = elongations(prepared, ahead.t, ahead.q)
    anchor = prepared.mechanics.piecewise.anchored(state.inner, segment, moved)
    return Guess(mode, segment, anchor, known)


def _watched(
    start: Start,
    choice: Choice,
    seen: Seen,
    decision: Decision,
    ahead: Advance,
    logged: Logged,
    happens: Happens,
    verdict: Verdict,
) -> tuple[Happens, Verdict]:
    """State of the user events after the pass, and the flags that they set."""
    prepared, state, settles = start.prepared, start.state, happens.settles
    assert prepared.events is not None
    jumps = decision.changes | (~choice.settled & choice.transition.impact)
    own = ahead.fired[prepared.n_guards :]
    watch = watch_after(state, seen, decision, own, ahead.s, settles, happens.moves, jumps)
    verdict = verdict.flagged(Flag.STOPPED, decision.stops)
    verdict = verdict.flagged(Flag.GRAZING, decision.passes)
    verdict = verdict.flagged(Flag.ONE_SIDED, decision.starts)
    several = jnp.sum(logged.count + jnp.sum(decision.logged != 0, dtype=jnp.int32)) > 1
    changing = prepared.events.mask(lambda e: e.changes)
    several = several & jnp.any((decision.logged != 0) & changing)
    verdict = verdict.flagged(Flag.SIMULTANEOUS, settles & several)
    return happens._replace(changes=decision.changes, watch=watch), verdict


def _after_events(
    start: Start, seen: Seen, decision: Decision, found: Changed, watch, verdict: Verdict
) -> tuple[Changed, Watch, Verdict]:
    """State after the changes by user events, with modes as at the start of a run."""
    anywhere, prepared, state = start.anywhere, start.prepared, start.state
    assert prepared.events is not None
    changes, piecewise = decision.changes, prepared.mechanics.piecewise
    q, v, numbers = jax.lax.cond(
        changes,
        functools.partial(prepared.events.changed, seen.point, decision.fires, watch.numbers),
        lambda: (state.q, state.v, watch.numbers),
    )
    if numbers:
        allowed = numbers_hold(with_numbers(prepared.events.problem, numbers))
        verdict = verdict.ended(Status.NON_FINITE, changes & ~allowed[0])
        verdict = verdict.ended(Status.OUT_OF_BOUNDS, changes & ~allowed[1])
    verdict = verdict.ended(Status.PENETRATION, changes & penetrates(anywhere, state.t, q))
    verdict = verdict.ended(Status.ACCUMULATION, decision.accumulates)
    x, new = (elongations(prepared, state.t, y) for y in (state.q, q))
    jumped = with_sides(prepared, state.t, q, v, piecewise.restarted(state.inner, x, new))
    sizes = jax.lax.stop_gradient((jnp.abs(q), jnp.abs(v)))
    begins = found._replace(
        q=q,
        v=v,
        q_scale=jnp.maximum(found.q_scale, sizes[0]),
        v_scale=sizes[1],
        mode=modes_at(anywhere, state.t, q, v),
        segment=jumped.segment,
        anchor=jumped.anchor,
        region=regions_at(anywhere, q),
        known=jnp.zeros_like(found.known),
        v_before=select(unlogged(state), found.v_before, state.v),
    )
    found = jax.tree.map(lambda x, y: select(changes, x, y), begins, found)
    return found, watch._replace(numbers=numbers), verdict


def _next_state(
    start: Start,
    begun: Step,
    choice: Choice,
    found: Changed,
    ahead: Advance,
    guess: Guess,
    happens: Happens,
    verdict: Verdict,
    logged: Logged,
) -> State:
    """State after the pass, chosen by its outcome."""
    prepared, state, settled = start.prepared, start.state, choice.settled
    settles, moves, _, watch = happens
    arrived = ahead.fired[: 2 * prepared.nt].any()
    if prepared.events is not None:
        own = ahead.fired[prepared.n_guards :]
        arrived = arrived | jnp.any(own & prepared.events.mask(lambda e: e.changes or e.stops))

    def chosen(after_motion, at_rest, after_change):
        return select(moves, after_motion, select(settles, at_rest, after_change))

    mode, sharing = chosen(guess.mode, state.mode, found.mode), choice.sharing
    if sharing is not None:
        # In other modes other reactions are undetermined.
        stays = jnp.all(mode == state.mode)
        sharing = jax.tree.map(lambda x: select(stays, x, jnp.zeros_like(x)), sharing)
    change = state.change
    if change is not None and begun.change is not None:
        stays = jnp.all(guess.mode == state.mode) & jnp.all(guess.segment == state.segment)
        goes_on = settles & ~(moves & ~(stays & (ahead.s >= 1.0)))
        change = change_after(prepared, change, begun.change, goes_on, moves)
    waits, impacts = state.due > state.t, ~settled & choice.transition.impact
    time, speed = jax.lax.stop_gradient((state.t, jnp.abs(state.v)))
    return State(
        t=chosen(ahead.t, state.t, found.t),
        t_rest=select(moves, ahead.t_rest, state.t_rest),
        q=chosen(ahead.q, state.q, found.q),
        v=chosen(ahead.v, state.v, found.v),
        q_scale=select(moves, ahead.q_scale, found.q_scale),
        v_scale=select(moves, ahead.v_scale, jnp.maximum(state.v_scale, found.v_scale)),
        mode=mode,
        sharing=sharing,
        segment=chosen(guess.segment, state.segment, found.segment),
        anchor=chosen(guess.anchor, state.anchor, found.anchor),
        region=select(settles, state.region, found.region),
        recorded=select(settles, logged.modes, state.recorded),
        settled=state.settled | settles,
        h_max=select(settles, ahead.h_max, first_step(prepared, state, choice.flips & ~settled)),
        pivoting=jax.tree.map(
            lambda a, b: select(settled, a, b), start_pivoting(), choice.pivoting
        ),
        known=chosen(guess.known, state.known, found.known),
        arrived=moves & arrived,
        landing=select(settles, ahead.landing, False),
        landings=select(settles & ahead.landing.any(), state.landings + 1, 0),
        impacted=select(settles, found.impacted & waits, found.impacted),
        v_before=select(settles, state.v_before, found.v_before),
        energy_gained=verdict.energy_gained,
        due=found.due,
        last_impact=select(impacts, time, state.last_impact),
        fastest=jnp.maximum(state.fastest, speed[None, :]),
        start=state.start,
        status=verdict.status.astype(jnp.int32),
        flags=verdict.flags.astype(jnp.int32),
        steps=state.steps + 1,
        event_count=select(settles, logged.total, state.event_count),
        watch=watch,
        released=choice.released & ~moves & ~happens.changes,
        change=change,
    )
