"""Entries of a settled pass in the event log, and flags that the decisions of a pass set."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jfric.contact import rules
from jfric.contact.reactions import no_coupling, reaction_operator
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.numerics.loops import where_any
from jfric.results.modes import Mode
from jfric.results.status import Flag
from jfric.solvers.event_driven.advance import Advance
from jfric.solvers.event_driven.in_mode import held_by_others
from jfric.solvers.event_driven.prepared import Prepared, constants
from jfric.solvers.event_driven.state import (
    State,
    relative_velocities,
    unlogged,
    velocity_tolerance,
)
from jfric.solvers.event_driven.transitions import Signs, at_breakpoint, reported_modes
from jfric.solvers.records import Records, write_events


class Logged(NamedTuple):
    """Modes as recorded, events so far, and events at this instant that no other one causes."""

    modes: Int[Array, " c"]
    total: Int[Array, ""]
    count: Int[Array, ""]


def log_changes(prepared, state: State, records: Records, signs: Signs, waits, on, own=None):
    """Log the changes since the last settled pass, except of contacts that wait.

    ``own`` (e,): user events that fired, by the side from which they come.
    """
    shown = jnp.concatenate(
        [
            reported_modes(prepared, state.mode, signs),
            prepared.mechanics.piecewise.shown(state.segment),
        ]
    )
    elements = jnp.zeros(state.segment.shape, bool)
    impacted = jnp.concatenate([state.impacted, elements])
    waits = jnp.concatenate([waits, elements])
    shown = select(waits, state.recorded, shown)
    changed = on & ~waits & ((state.settled & (shown != state.recorded)) | impacted)
    for _, *others in prepared.mechanics.planes:
        changed = changed.at[np.asarray(others)].set(False)
    v_before = select(unlogged(state), state.v_before, state.v)
    caused = turned_by_impact(prepared, state, shown, v_before)
    caused = caused | changed_together(prepared, changed & ~impacted)
    count = jnp.sum(changed & (impacted | ~caused), dtype=jnp.int32)
    old, new = state.recorded, shown
    if own is not None:
        changed = jnp.concatenate([changed, on & (own != 0)])
        old, new = (
            jnp.concatenate([x, (side * own > 0).astype(x.dtype)])
            for x, side in ((old, 1), (new, -1))
        )
        impacted = jnp.concatenate([impacted, own > 1])
    records, total = write_events(
        records,
        changed,
        state.t,
        old,
        new,
        impacted,
        state.q,
        state.v,
        v_before,
        state.event_count,
    )
    return records, Logged(shown, total, count)


def turned_by_impact(prepared: Prepared, state: State, shown, v_before) -> Bool[Array, " c"]:
    """Contacts that slide before and after an impact, and piecewise-linear elements whose rate is
    not zero before and after it: the impact causes their changes."""
    nt, d = prepared.nt, prepared.mechanics.piecewise.directions
    if not prepared.nu:
        return jnp.zeros((nt + d.shape[0],), bool)
    small = velocity_tolerance(prepared, state.t, state.v_scale)[:nt]
    small = jnp.concatenate(
        [small, constants(small.dtype).zero * matvec(jnp.abs(d), state.v_scale)]
    )
    _, z_dot = prepared.mechanics.base_motion(state.t)
    bases = matvec(prepared.mechanics.piecewise.base_directions, z_dot)

    def moves(v):
        sliding = relative_velocities(prepared, state.t, v)[:nt]
        return jnp.abs(jnp.concatenate([sliding, matvec(d, v) + bases])) > small

    slid = rules.slides(state.recorded[:nt]) & rules.slides(shown[:nt])
    slid = jnp.concatenate([slid, jnp.ones(d.shape[:1], bool)])
    return state.impacted.any() & slid & moves(v_before) & moves(state.v)


def changed_together(prepared: Prepared, changed: Bool[Array, " c"]) -> Bool[Array, " c"]:
    """Contacts among those that ``changed`` whose sliding velocity follows from those of others,
    as of feet of one body: they begin and stop to slide together, which is no coincidence."""
    nt = prepared.nt
    rubs = changed[:nt] & ~prepared.frictionless
    if nt < 2 or prepared.independent:
        return jnp.zeros_like(changed)

    def following():
        active = jnp.pad(rubs, (0, prepared.nu))
        D = matmul(prepared.WM, prepared.W.T)
        how = {"independent": False, "size": prepared.D_size, "forces": False}
        found = reaction_operator(D, active, no_coupling(D.dtype), **how)
        return rubs & found.dependent[:nt]

    found = where_any(jnp.sum(rubs) > 1, following, jnp.zeros((nt,), bool))
    return jnp.pad(found, (0, changed.shape[0] - nt))


def _slides_at_once(prepared, state: State, signs: Signs) -> Bool[Array, ""]:
    """Whether a motion starts with equal velocities of two bodies that slide at once: a body that
    is faster at first slides the other way. Of bodies at rest this is not by coincidence."""
    mechanics, nt = prepared.mechanics, prepared.nt
    meets = rules.slides(state.mode) & (signs.order[:nt] > 0) & (state.t == state.start)
    speed = matvec(jnp.abs(mechanics.W_T), jnp.abs(state.v))
    speed = speed + jnp.abs(mechanics.belt_velocities(state.t))
    return jnp.any(meets & (speed > velocity_tolerance(prepared, state.t, state.v_scale)[:nt]))


def remarks(prepared, state: State, signs: Signs, equations, ahead: Advance):
    """Flags that follow from the decisions of a pass."""
    nt, redundant = prepared.nt, equations.redundant
    full = jnp.zeros((nt,), bool)
    if state.sharing is not None and state.sharing.tight is not None:
        # A contact that carries its limit by construction is at the edge only if another one is.
        tight = jnp.pad(state.sharing.tight, (0, signs.order.shape[0] - 2 * nt))
        order = select(tight, 0, signs.order)
        signs = signs._replace(order=order, null=signs.null & ~tight)
        full = tight[:nt] | tight[nt : 2 * nt]
    first, second = signs.of(slice(nt)), signs.of(slice(nt, 2 * nt))
    edge = rules.is_tie(state.mode, first, second)
    if nt > 1 and not prepared.independent:
        # Forces that are not unique may stand at limits that others could relieve.
        def alone():
            carries = edge | (full & edge.any())
            freed = select(carries, Mode.SLIP_POS, state.mode)
            return carries & ~held_by_others(prepared, freed, state.t)

        edge = where_any(edge.any() & redundant, alone, edge)
    flags = select(redundant, int(Flag.REDUNDANT), 0)
    flags = flags | select(edge.any(), int(Flag.TIE), 0)
    # Where a function of time has a breakpoint, a change before it moves an event differently than
    # after it.
    breaks = ahead.fired[: 2 * nt].any() & at_breakpoint(prepared, ahead.t)
    flags = flags | select(ahead.grazing | breaks, int(Flag.GRAZING), 0)
    if state.sharing is not None and prepared.nu:
        # A clearance however small would take the force by which contacts press each other.
        tight, preload = state.sharing
        if preload is not None:
            pressed = preload[nt:] != 0
        else:
            assert tight is not None
            pressed = tight.reshape(2, nt)[:, prepared.nf :]
            if equations.null is not None:
                # Feet of one body share friction, but their normal forces are unique.
                free = jnp.abs(equations.null[nt:]) > constants(equations.null.dtype).zero ** 0.5
                pressed = pressed & jnp.any(free, axis=1)[None]
        flags = flags | select(jnp.any(pressed), int(Flag.ONE_SIDED), 0)
    flags = flags | select(_slides_at_once(prepared, state, signs), int(Flag.ONE_SIDED), 0)
    piecewise = prepared.mechanics.piecewise
    if piecewise.tables:
        stays = signs.null[2 * nt :][: 2 * piecewise.count].reshape(2, -1).T
        bends = (state.t == state.start) & jnp.any(stays & piecewise.kinks(state.segment))
        flags = flags | select(bends, int(Flag.ONE_SIDED), 0)
    return flags
