"""One pass of the event-driven solver: settle the modes, or advance to the next event.

``advance``, ``isolate``, ``transition``, ``record`` happen in every pass under masks, so that a
batch of trajectories never waits for one of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from jfric.contact import rules
from jfric.contact.pivoting import flip_limit, rearrangement, select_flips, start_pivoting
from jfric.numerics.linear_algebra import eliminate, matvec
from jfric.numerics.loops import either, once, when_any, where_any
from jfric.results.status import Flag, Status
from jfric.solvers.event_driven.advance import (
    advance,
    held_exactly,
    land,
    on_breakpoint,
    step_length,
)
from jfric.solvers.event_driven.constants import VANISHING, constants
from jfric.solvers.event_driven.drift import put_back
from jfric.solvers.event_driven.event_log import log_changes, remarks
from jfric.solvers.event_driven.first_event import resolvable
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.impacts import ImpactLimits, impact, no_impact
from jfric.solvers.event_driven.in_mode import InMode, in_mode
from jfric.solvers.event_driven.inputs import given
from jfric.solvers.event_driven.mode_equations import project
from jfric.solvers.event_driven.planes import all_components, first_step, stop
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.regions import after_move, next_regions, only_regions
from jfric.solvers.event_driven.reported_modes import reported_modes
from jfric.solvers.event_driven.small_change import change_after
from jfric.solvers.event_driven.state import (
    State,
    elongations,
    modes_at,
    prescribed_velocities,
    regions_at,
    unlogged,
    with_sides,
)
from jfric.solvers.event_driven.transitions import (
    RESTARTS,
    arrived_unseen,
    at_breakpoint,
    break_away,
    guard_signs,
    known_after,
    modes_from_rest,
    next_modes,
    one_motion,
    predict,
    release_after_jump,
    several_at_zero,
    share_loads,
)
from jfric.solvers.event_driven.user_events import decide, penetrates, see, watch_after, with_signs
from jfric.solvers.records import Records, write_outputs
from jfric.system.basis import powers_of_time


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
    """The state after one pass, and what gives the step on whose first part it moved (if it did).

    Buffers are written only where ``on``. ``target``: time not to be passed; ``force`` (n,):
    extra constant force. ``common``: what passes in this mode share, if it was made. ``limits``:
    settings of the solver.
    """
    anywhere, assembled = prepared, prepared.in_regions(state.region)
    prepared = assembled.at(state.t, state.q, state.v)
    state = release_after_jump(prepared, state, prescribed_velocities(prepared, state.t))
    if flow.looks_first:
        state = break_away(prepared, state, force)
    if common is None:
        common = in_mode(prepared, flow, state, on)
    equations, natural = common.equations, common.natural
    g = given(prepared, equations, state.t)
    unprojected = state
    q, v = project(prepared, equations, state, matvec(g.velocity, g.w), matvec(g.gap, g.w))
    state = eqx.tree_at(lambda s: (s.q, s.v), state, (q, v))
    # Decisions have no derivatives; what they are made from is frozen, or the compiler would
    # carry the tangents along.
    still = jax.lax.stop_gradient((prepared, equations, state))
    longest = natural
    if planes := prepared.mechanics.planes:
        longest = jnp.minimum(longest, flow.longest_step(prepared, equations, g, state, force))
    reach, h = step_length(prepared, state, records, ts, target, longest)
    breaks = at_breakpoint(still[0], reach.t) if prepared.breakpoints.shape[0] else None
    # A trajectory that has ended idles with a harmless step: a zero one would send undefined
    # values into reverse mode.
    h = jnp.where(on, h, 1.0)
    begun = flow.step(prepared, equations, g, state, h, force)
    if begun.later is None:
        begun = begun.judged_once(on)
    signs = once(guard_signs(prepared, begun, state, equations.dependent, on), on)
    transition = once(next_modes(still[0], still[2], signs), on)
    settled, region = ~transition.violated.any(), state.region
    regions = None
    if prepared.mechanics.polygons:
        regions = once(next_regions(still[0], still[2], signs), on)
        settled, region = settled & ~regions.any, regions.region

    nt, events = prepared.nt, prepared.events
    lets_go, released = jnp.asarray(False), state.released
    if prepared.releases:
        # All are tried at rest, some move all the same: friction of these drops.
        moving = common.rests & ~signs.null[:nt]
        lets_go = settled & moving.any()
        settled, released = settled & ~lets_go, released | (moving & lets_go)
    # Independent friction alone has positive principal minors: pivoting ends. Cones have none.
    coupled = nt > 1 and not planes and not (prepared.nu == 0 and prepared.independent)
    flips, restart, pivoting = select_flips(
        transition.violated, state.pivoting, restarts=RESTARTS * coupled
    )
    pivoting = jax.tree.map(
        lambda a, b: jnp.where(lets_go, a, b),
        start_pivoting()._replace(flips=pivoting.flips),
        pivoting,
    )
    sharing, rearranged = state.sharing, jnp.asarray(False)
    if sharing is not None:
        sharing, rearranged = share_loads(still[0], still[2], still[1], begun, signs, transition)
        flips, restart = flips & ~rearranged, restart & ~rearranged
        pivoting = rearrangement(state.pivoting, pivoting, rearranged)
    if regions is not None:
        flips, restart = flips & ~regions.any, restart & ~regions.any
        transition, pivoting = only_regions(regions, transition, pivoting)
    flips = all_components(prepared, flips)
    c = constants(state.q.dtype)
    step, judged, refine, seen = begun, signs, None, None
    if events is not None:
        step = begun.completed((settled | restart) & on, c.order)
    watched = step
    if events is not None:
        seen = see(events, prepared, flow, state, step, signs)
        watched, judged, refine = seen.step, with_signs(signs, seen), seen.refine

    # What each of the three outcomes would give; the masks below choose.
    def move(watched, degree: int = 0):
        found = flow.first_event(
            prepared, state, watched, judged, natural, on, refine, degree, breaks
        )
        ahead = advance(prepared, state, watched, judged, reach, natural, found)
        if flow.lands and prepared.n_watched:
            ahead = land(prepared, state, watched, judged, ahead)
        if planes:
            ahead = stop(prepared, state, ahead, natural)
        ahead = on_breakpoint(prepared, state, ahead)
        q, v = put_back(assembled, state, ahead.t, ahead.q, ahead.v)
        return ahead._replace(q=q, v=v)

    if begun.later is None:
        ahead = once(move(watched), on)
    elif step.later is None:
        ahead = when_any(settled & on, functools.partial(move, watched))
    else:
        # Half of the steps of many contacts are so short that few coefficients are not zero, if
        # those of polynomial loads are among them.
        def along(order: int):
            found = begun.later(order)
            missing = ((0, c.order - order), (0, 0))
            table, guards = (jnp.pad(x, missing) for x in found[:2])
            return move(begun.with_later(found), c.order), (table, guards, found[2])

        long, short = (functools.partial(along, order) for order in (c.order, c.short_order))
        moving = settled & on
        is_long = moving & (h > c.short * natural)
        if powers_of_time(prepared.mechanics.functions()) + 1 > c.short_order:
            is_long = moving
        ahead, found = when_any(moving, lambda: either(is_long, long, short))
        step = begun.with_later(found)
    fired, own = ahead.fired, None
    if events is not None:
        fired, own = fired[: prepared.n_guards], fired[prepared.n_guards :]
    mode = jnp.where(flips[:nt], transition.mode, state.mode)
    segment = jnp.where(flips[nt:], transition.segment, state.segment)
    if coupled:

        def propose():
            start = begun.completed(restart & on, c.order), g
            return modes_from_rest(still[0], still[2], jax.lax.stop_gradient(start), signs, restart)

        proposed = where_any(restart, propose, mode) if prepared.many else propose()
        mode = jnp.where(restart, proposed, mode)
        segment = jnp.where(restart, state.segment, segment)
    nobody = jnp.zeros((nt,), bool)
    known = known_after(still[0], state, mode, segment, nobody, signs.order)
    if sharing is not None and sharing.preload is not None:
        # Another preload makes other limits.
        known = known.at[: 2 * nt].set(jnp.where(rearranged, 0, known[: 2 * nt]))
    if regions is not None:
        mode, known = after_move(still[0], regions, mode, known)
    # A mode that does not last leaves the state as it was: a start from rest keeps its
    # derivatives with respect to the start velocity.
    t_new, q_new, v_new = state.t, unprojected.q, unprojected.v
    v_before = state.v_before
    v_scale = jax.lax.stop_gradient(jnp.abs(v_new))
    impacted, due = state.impacted, state.due
    waits = due > state.t
    status, flags, energy_gained = state.status, state.flags, state.energy_gained
    if prepared.nu:
        hits = transition.impact
        # Skipped where no trajectory of the batch hits anything.
        jump = jax.lax.cond(
            hits,
            lambda: impact(
                prepared,
                state,
                begun,
                transition.touching,
                signs.null[nt + prepared.nf : 2 * nt],
                matvec(g.gap, g.w),
                limits.accumulation,
            ),
            lambda: no_impact(prepared, state),
        )
        t_new = jnp.where(hits, jump.t, t_new)
        v_new = jnp.where(hits, jump.v, v_new)
        v_scale = jnp.where(hits, jump.v_scale, v_scale)
        q_new = jnp.where(hits, jump.q, q_new)
        mode = jnp.where(hits, jump.mode, mode)
        touching = jnp.concatenate([jnp.zeros((prepared.nf,), bool), transition.touching])
        after = rules.known_after_impact(state.mode, jump.mode, touching, state.known[nt : 2 * nt])
        after = jnp.concatenate([*after, state.known[2 * nt :]])
        known = jnp.where(hits, after, known)
        first = ~(state.impacted & ~waits).any()
        if state.watch is not None:
            first = first & jnp.all(state.watch.pending == 0)
        v_before = jnp.where(hits & first, state.v, v_before)
        impacted = jnp.where(hits, state.impacted | jump.impacted, impacted)
        # What lies behind the end is recorded at once.
        due = jnp.where(hits & jump.impacted, jnp.where(jump.due < target, jump.due, -jnp.inf), due)
        flags = flags | jnp.where(hits & jump.zeno, int(Flag.ZENO), 0)
        flags = flags | jnp.where(hits & jump.shared, int(Flag.SIMULTANEOUS), 0)
        flags = flags | jnp.where(hits & jump.unannounced, int(Flag.ONE_SIDED), 0)
        gains = hits & (jump.gained > 0)
        if limits.gain:
            flags = flags | jnp.where(gains, int(Flag.ENERGY_GAIN), 0)
        else:
            status = jnp.where(gains, int(Status.IMPACT_ENERGY), status)
        energy_gained = energy_gained + jnp.where(gains, jump.gained, 0.0)
        status = jnp.where(hits & ~jump.solved, int(Status.INCONSISTENT), status)

    # ``settles``: the modes are settled, and no event of the user's own changes the state.
    settles, goes_on, decision, own_rows = settled, ahead.accepted, None, None
    if events is not None and seen is not None:
        decision = decide(events, state, seen, settled)
        own_rows = decision.logged
        settles = settled & ~decision.changes
        goes_on = goes_on & ~decision.changes & ~decision.stops
    records, logged = log_changes(prepared, state, records, signs, waits, settles & on, own_rows)
    # Where no motion or more than one follows, none is reported.
    unique = equations.unique & rules.is_unique(begun.smallest_pivot(equations.pivot))
    if prepared.shares:
        one, several = one_motion(still[0], still[2], still[1], step, signs)
        unique = unique & one
        flags = flags | jnp.where(settled & several, int(Flag.REDUNDANT), 0)
    moves = settled & goes_on & unique

    piecewise = prepared.mechanics.piecewise

    def output(s):
        values = held_exactly(prepared, state, step.at(prepared, s), signs)
        q, v = put_back(assembled, state, state.t + s * step.h, values.q, values.v)
        z = piecewise.elongations(state.inner, values.elongation)
        return jnp.concatenate([q, v, *values[2:5], z])

    records = write_outputs(
        records,
        ts,
        output,
        state,
        h,
        ahead.t,
        reported_modes(prepared, state.mode, signs),
        piecewise.shown(state.segment),
        moves & on,
    )
    cycles = ~settled & (pivoting.flips > flip_limit(nt + state.segment.shape[0]))
    status = jnp.where(cycles | (settled & ~unique), int(Status.INCONSISTENT), status)
    flags = flags | jnp.where(cycles, int(Flag.NO_MODE), 0)
    if prepared.mechanics.pins is None:
        flags = flags | jnp.where(settled & ~unique, int(Flag.SEVERAL_MOTIONS), 0)
    flags = flags | jnp.where(settled, remarks(prepared, state, signs, equations, ahead), 0)
    unseen = arrived_unseen(still[0], still[2], signs)
    flags = flags | jnp.where(unseen, int(Flag.GRAZING), 0)
    if prepared.mechanics.has_edges:
        lost = settled & ~step.accepted & ~resolvable(prepared.end - state.start, step.h)
        # Slid into a singular point: the normal force grows beyond bounds.
        gone = lost & (begun.smallest_pivot(equations.pivot) < VANISHING)
        status = jnp.where(lost, int(Status.STALLED), status)
        status = jnp.where(gone, int(Status.INCONSISTENT), status)
        flags = flags | jnp.where(gone, int(Flag.NO_MODE), 0)
    if prepared.mechanics.varying is not None:
        # Numbers that a sweep varies may leave no mass, or a negative one.
        pivot = eliminate(jax.lax.stop_gradient(prepared.mechanics.M), 0.0).pivot
        status = jnp.where(pivot > 0, status, int(Status.INCONSISTENT))
    tied = prepared.mechanics.tied
    if tied is not None:
        frozen, motion = jax.lax.stop_gradient(tied), still[2]
        fails = frozen.fails(motion.v, motion.q_scale, motion.v_scale)
        status = jnp.where(fails, int(Status.INCONSISTENT), status)
        flags = flags | jnp.where(settled & tied.redundant, int(Flag.REDUNDANT), 0)
    looked = jnp.sum(begun.leading if begun.later is not None else step.table[-1])
    looked = looked + jnp.sum(ahead.v)
    finite = jnp.isfinite(jax.lax.stop_gradient(looked))
    status = jnp.where(finite, status, int(Status.NON_FINITE))
    flags = flags | jnp.where(logged.count > 1, int(Flag.SIMULTANEOUS), 0)

    # The fired guard usually tells what comes next.
    guessed, moved_on = predict(
        still[0],
        common.compliance,
        state,
        jax.lax.stop_gradient(ahead.values),
        fired,
        ahead.grazing
        | at_breakpoint(still[0], ahead.t)
        | several_at_zero(still[0], still[2], begun, *jax.lax.stop_gradient((fired, ahead.guards))),
        still[1].redundant,
    )
    slid = rules.slides(state.mode)
    kept = eqx.tree_at(lambda s: s.known, state, (fired | signs.null).astype(jnp.int32))
    known_guess = known_after(still[0], kept, guessed, moved_on, slid & fired[:nt], kept.known)
    # Where springs in series with sliders begin anew.
    x = elongations(prepared, state.t, state.q)
    anchor = piecewise.anchored(state.inner, segment, x)
    moved = elongations(prepared, ahead.t, ahead.q)
    anchor_ahead = piecewise.anchored(state.inner, moved_on, moved)

    q_scale, watch = state.q_scale, state.watch
    changed_by_events = jnp.asarray(False)
    if decision is not None and watch is not None:
        assert events is not None
        assert seen is not None
        jumps = decision.changes | (~settled & transition.impact)
        watch = watch_after(state, seen, decision, own, ahead.s, settles, moves, jumps)
        flags = flags | jnp.where(decision.stops, int(Flag.STOPPED), 0)
        flags = flags | jnp.where(decision.passes, int(Flag.GRAZING), 0)
        flags = flags | jnp.where(decision.starts, int(Flag.ONE_SIDED), 0)
        several = jnp.sum(logged.count + jnp.sum(decision.logged != 0)) > 1
        several = several & jnp.any((decision.logged != 0) & events.mask(lambda e: e.changes))
        flags = flags | jnp.where(settles & several, int(Flag.SIMULTANEOUS), 0)
        changes = changed_by_events = decision.changes
        q, v = jax.lax.cond(
            changes,
            functools.partial(events.changed, seen.point, decision.fires),
            lambda: (state.q, state.v),
        )
        inside = changes & penetrates(anywhere, state.t, q)
        status = jnp.where(inside, int(Status.PENETRATION), status)
        status = jnp.where(decision.accumulates, int(Status.ACCUMULATION), status)
        # Modes as at the start of a run.
        v_before = jnp.where(changes & ~unlogged(state), state.v, v_before)
        q_new, v_new = jnp.where(changes, q, q_new), jnp.where(changes, v, v_new)
        mode = jnp.where(changes, modes_at(anywhere, state.t, q, v), mode)
        region = jnp.where(changes, regions_at(anywhere, q), region)
        jumped = piecewise.restarted(state.inner, x, elongations(prepared, state.t, q))
        jumped = with_sides(prepared, state.t, q, v, jumped)
        segment = jnp.where(changes, jumped.segment, segment)
        anchor = jnp.where(changes, jumped.anchor, anchor)
        known = jnp.where(changes, 0, known)
        sizes = jax.lax.stop_gradient((jnp.abs(q), jnp.abs(v)))
        q_scale = jnp.where(changes, jnp.maximum(q_scale, sizes[0]), q_scale)
        v_scale = jnp.where(changes, sizes[1], v_scale)

    arrived = fired[: 2 * nt].any()
    if own is not None and events is not None:
        arrived = arrived | jnp.any(own & events.mask(lambda e: e.changes))
    next_mode = jnp.where(moves, guessed, jnp.where(settles, state.mode, mode))
    if sharing is not None:
        # In other modes other reactions are open.
        stays = jnp.all(next_mode == state.mode)
        sharing = jax.tree.map(lambda x: jnp.where(stays, x, jnp.zeros_like(x)), sharing)
    fresh, change = start_pivoting(), state.change
    if change is not None and begun.change is not None:
        stays = jnp.all(guessed == state.mode) & jnp.all(moved_on == state.segment)
        goes_on = settles & ~(moves & ~(stays & (ahead.s >= 1.0)))
        change = change_after(prepared, change, begun.change, goes_on, moves)
    new = State(
        t=jnp.where(moves, ahead.t, jnp.where(settles, state.t, t_new)),
        t_rest=jnp.where(moves, ahead.t_rest, state.t_rest),
        q=jnp.where(moves, ahead.q, jnp.where(settles, state.q, q_new)),
        v=jnp.where(moves, ahead.v, jnp.where(settles, state.v, v_new)),
        q_scale=jnp.where(moves, ahead.q_scale, q_scale),
        v_scale=jnp.where(moves, ahead.v_scale, jnp.maximum(state.v_scale, v_scale)),
        mode=next_mode,
        sharing=sharing,
        segment=jnp.where(moves, moved_on, jnp.where(settles, state.segment, segment)),
        anchor=jnp.where(moves, anchor_ahead, jnp.where(settles, state.anchor, anchor)),
        region=jnp.where(settles, state.region, region),
        recorded=jnp.where(settles, logged.modes, state.recorded),
        settled=state.settled | settles,
        h_max=jnp.where(settles, ahead.h_max, first_step(prepared, state, flips & ~settled)),
        pivoting=jax.tree.map(lambda a, b: jnp.where(settled, a, b), fresh, pivoting),
        known=jnp.where(
            # A guard that vanished identically is still zero; so is the one that fired.
            moves,
            known_guess,
            jnp.where(settles, state.known, known),
        ),
        arrived=moves & arrived,
        landing=jnp.where(settles, ahead.landing, False),
        landings=jnp.where(settles & ahead.landing.any(), state.landings + 1, 0),
        impacted=jnp.where(settles, impacted & waits, impacted),
        v_before=jnp.where(settles, state.v_before, v_before),
        energy_gained=energy_gained,
        due=due,
        last_impact=jnp.where(
            ~settled & transition.impact, jax.lax.stop_gradient(state.t), state.last_impact
        ),
        fastest=jnp.maximum(state.fastest, jax.lax.stop_gradient(jnp.abs(state.v))[None, :]),
        start=state.start,
        status=status.astype(jnp.int32),
        flags=flags.astype(jnp.int32),
        steps=state.steps + 1,
        event_count=jnp.where(settles, logged.total, state.event_count),
        watch=watch,
        released=released & ~moves & ~changed_by_events,
        change=change,
    )
    return new, records, lambda: step
