"""A pass in scalars: one contact, few degrees of freedom.

The same decisions, steps and records as :mod:`jfric.solvers.event_driven.passes`, written out
number by number: a batch of trajectories then consists of long vectors instead of many small
matrices.
It has derivatives in forward mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from jfric.contact import rules
from jfric.contact.pivoting import flip_limit, select_flips, start_pivoting
from jfric.numerics.loops import once
from jfric.results.modes import Mode
from jfric.results.status import Flag, Status
from jfric.solvers.event_driven.advance import held_exactly, step_length
from jfric.solvers.event_driven.exact_flow import longest_step
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.impacts import ImpactLimits
from jfric.solvers.event_driven.one_contact_advance import Ends, advance, land
from jfric.solvers.event_driven.one_contact_modes import (
    End,
    Now,
    impact,
    next_mode,
    predict,
    relative_velocities,
    release_after_jump,
)
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.scalar_equations import (
    Operators,
    guard_rows,
    motion,
    operators,
    projected,
    reaction,
    with_exact_rows,
)
from jfric.solvers.event_driven.scalar_given import scalar_given
from jfric.solvers.event_driven.scalar_step import ScalarStep, Start
from jfric.solvers.event_driven.scalar_taylor import taylor_step
from jfric.solvers.event_driven.state import State
from jfric.solvers.event_driven.transitions import Signs as AllSigns
from jfric.solvers.event_driven.transitions import at_breakpoint
from jfric.solvers.records import Records, write_events, write_outputs

#: Written-out equations grow with the square of the number of degrees of freedom.
MAX_DOFS = 3


def is_one_contact(prepared: Prepared) -> bool:
    """Whether this pass applies; decided from the structure of the problem alone.

    Reactions must be linear in forces: not those of a unilateral contact whose coefficients depend
    on the sliding velocity.
    """
    mechanics = prepared.mechanics
    return (
        mechanics.n <= MAX_DOFS
        and prepared.nt == 1
        and prepared.independent
        and not any(mechanics.redirected)
        and (prepared.nf == 1 or mechanics.laws[0].velocity_independent)
        and mechanics.piecewise.count == 0
    )


class Invariants(NamedTuple):
    """What stays the same during a run: operators, and those of the magnitudes."""

    signed: Operators
    absolute: Operators


def invariants(prepared: Prepared) -> Invariants:
    """Computed once before the loop."""
    return Invariants(*operators(prepared))


class Flow(NamedTuple):
    """How the motion in one mode is found."""

    #: ``step(prepared, start, state, h, on, frozen)``.
    step: Callable[..., ScalarStep]
    #: Longest step over the longest that a Taylor series allows.
    share: float = 1.0
    #: Forces that depend on the motion, see :class:`jfric.solvers.event_driven.scalar_given.Basis`.
    others: int = 0


TAYLOR = Flow(taylor_step)


def one_contact_pass(
    prepared: Prepared,
    fixed: Invariants,
    state: State,
    records: Records,
    ts,
    target,
    force,
    on,
    *,
    flow: Flow,
    derivatives: bool,
    limits: ImpactLimits,
) -> tuple[State, Records, Callable[[], Step]]:
    """Like :func:`jfric.solvers.event_driven.passes.one_pass`; ``derivatives``: whether there will
    be any (in forward mode)."""
    frozen = _frozen if derivatives else (lambda tree: tree)
    signed, absolute = fixed
    g = scalar_given(prepared, state.t, force, flow.others)
    mode, known = release_after_jump(prepared, signed, g, state)
    X = reaction(prepared, mode)
    q_kept, v_kept = list(state.q), list(state.v)
    q, v = projected(prepared, signed, g, X, mode, q_kept, v_kept)
    y = motion(prepared, signed, g, X, magnitude=False)
    y = y._replace(a=with_exact_rows(prepared, mode, y.a, g))
    rows = guard_rows(prepared, signed, g, y, mode, magnitude=False)
    natural = flow.share * jax.lax.stop_gradient(_natural_step(prepared, y.a))
    reach, h = step_length(prepared, state, records, ts, target, natural)
    h = jnp.where(on, h, 1.0)
    q, v, y, rows, h = once((q, v, y, rows, h), on)
    start = Start(mode, g, X, y, rows, absolute, q, v)
    x = flow.step(prepared, start, state, h, on, frozen)

    # Decisions have no derivatives; what they are made from is frozen.
    leading = frozen(x.leading)
    of_force = [mode == Mode.STICK, mode != Mode.OPEN]
    found = [
        rules.guard_sign(leading[i], x.zero[i], known=known[i], of_force=of_force[i])
        for i in (0, 1)
    ]
    codes = once([x.code() for x in found], on)
    first, second = signs = [rules.GuardSign.from_code(code) for code in codes]
    relative = frozen(relative_velocities(signed, g, v, list(state.v_scale)))
    transition = once(next_mode(prepared, mode, signs, relative), on)
    violated = transition.mode != mode
    settled = ~violated

    ends = Ends(mode, reach, natural)
    ahead = once(advance(prepared, state, x, signs, ends, on, derivatives), on)
    if x.end is not None:
        ahead = once(land(prepared, state, x, x.end, start, ahead), on)

    # What a change of mode gives.
    flips, _, pivoting = select_flips(violated[None], state.pivoting)
    following = jnp.where(flips[0], transition.mode, mode)
    flipped = rules.known_zeros(mode, following, known, at_rest=False)
    q_new, v_new = q_kept, v_kept
    v_before, v_scale = state.v_before, [jnp.abs(u) for u in v_kept]
    impacted, due = state.impacted[0], state.due[0]
    waits = due > state.t
    status, flags, energy_gained = state.status, state.flags, state.energy_gained
    if prepared.nu:
        hits = transition.hits
        fall = x.leading[0][2] / (h * h)
        now = Now(mode, q, v, fall)
        jump = impact(prepared, signed, g, state, now, transition.touching, limits.accumulation)
        v_new = [jnp.where(hits, a, b) for a, b in zip(jump.v, v_new, strict=True)]
        v_scale = [jnp.where(hits, a, b) for a, b in zip(jump.v_scale, v_scale, strict=True)]
        q_new = [jnp.where(hits, a, b) for a, b in zip(jump.q, q_new, strict=True)]
        following = jnp.where(hits, jump.mode, following)
        after = rules.known_after_impact(mode, jump.mode, transition.touching, known[1])
        flipped = [jnp.where(hits, k, z) for k, z in zip(after, flipped, strict=True)]
        v_before = jnp.where(hits & ~impacted, jnp.stack(v), v_before)
        impacted = jnp.where(hits, impacted | jump.hitting, impacted)
        # What lies behind the end is recorded at once.
        due = jnp.where(hits, jnp.where(jump.due < target, jump.due, -jnp.inf), due)
        flags = flags | jnp.where(hits & jump.zeno, int(Flag.ZENO), 0)
        gains = hits & (jump.gained > 0)
        if limits.gain:
            flags = flags | jnp.where(gains, int(Flag.ENERGY_GAIN), 0)
        else:
            status = jnp.where(gains, int(Status.IMPACT_ENERGY), status)
        energy_gained = energy_gained + jnp.where(gains, jump.gained, 0.0)
        status = jnp.where(hits & ~jump.solved, int(Status.INCONSISTENT), status)
    v_scale = jax.lax.stop_gradient(v_scale)

    # Record what changed since the last settled pass.
    q_here, v_here = jnp.stack(q), jnp.stack(v)
    reported = rules.reported_mode(prepared.only_kind.frictionless, mode, first.null)[None]
    shown = jnp.where(waits, state.recorded, reported)
    changed = (state.settled & (shown != state.recorded)) | state.impacted
    changed = settled & on & ~waits & changed
    records, total = write_events(
        records,
        changed,
        state.t,
        state.recorded,
        shown,
        state.impacted,
        q_here,
        v_here,
        jnp.where(state.impacted.any(), state.v_before, v_here),
        state.event_count,
    )
    # Where no motion or more than one follows, none is reported.
    unique = rules.is_unique(X.pivot) & ~jnp.asarray(X.blocked)
    moves = settled & ahead.accepted & unique
    if ts.shape[0]:
        step = x.whole()
        held = eqx.tree_at(lambda s: (s.q, s.v, s.mode), state, (q_here, v_here, mode[None]))
        nothing = jnp.zeros((prepared.W.shape[0],), jnp.int32)
        orders, null, violations = (jnp.stack(parts) for parts in zip(*signs, strict=True))
        as_arrays = AllSigns(orders, null, violations, nothing)
        records = write_outputs(
            records,
            ts,
            lambda s: held_exactly(prepared, held, step.at(prepared, s), as_arrays),
            state,
            h,
            ahead.t,
            reported,
            state.segment,
            moves & on,
        )
    cycles = ~settled & (pivoting.flips > flip_limit(1))
    status = jnp.where(cycles, int(Status.INCONSISTENT), status)
    status = jnp.where(settled & ~unique, int(Status.INCONSISTENT), status)
    edge = rules.is_tie(mode, first.null, second.null)
    remarks = jnp.where(edge, int(Flag.TIE), 0) | jnp.where(ahead.grazing, int(Flag.GRAZING), 0)
    unseen = rules.arrives_unseen(mode, first, known[0]) & ~at_breakpoint(prepared, state)
    flags = flags | jnp.where(settled, remarks, 0) | jnp.where(unseen, int(Flag.GRAZING), 0)
    # Comparisons hide what is NaN: all that they look at is added up.
    finite = jnp.isfinite(jax.lax.stop_gradient(sum(ahead.v) + x.looked))
    status = jnp.where(finite, status, int(Status.NON_FINITE))

    # The fired guard usually tells what comes next.
    end = End(ahead.q, ahead.v, ahead.w, ahead.fired)
    guess = predict(*frozen((prepared, signed, X, y, g, mode, end)))
    kept = [
        (fired | sign.null).astype(jnp.int32)
        for fired, sign in zip(ahead.fired, signs, strict=True)
    ]
    at_rest = rules.slides(mode) & ahead.fired[0]
    known_guess = rules.known_zeros(mode, guess, kept, at_rest)

    def chosen(moved, stayed, changed):
        return jnp.where(moves, moved, jnp.where(settled, stayed, changed))

    fresh = start_pivoting()
    new = State(
        t=jnp.where(moves, ahead.t, state.t),
        t_rest=jnp.where(moves, ahead.t_rest, state.t_rest),
        q=jnp.stack([chosen(*z) for z in zip(ahead.q, q, q_new, strict=True)]),
        v=jnp.stack([chosen(*z) for z in zip(ahead.v, v, v_new, strict=True)]),
        q_scale=jnp.where(moves, jnp.stack(ahead.q_scale), state.q_scale),
        v_scale=jnp.where(
            moves, jnp.stack(ahead.v_scale), jnp.maximum(state.v_scale, jnp.stack(v_scale))
        ),
        mode=chosen(guess, mode, following)[None].astype(jnp.int32),
        segment=state.segment,
        recorded=jnp.where(settled, shown, state.recorded),
        settled=state.settled | settled,
        h_max=jnp.where(settled, ahead.h_max, state.h_max),
        pivoting=jax.tree.map(lambda a, b: jnp.where(settled, a, b), fresh, pivoting),
        known=jnp.stack([chosen(*z) for z in zip(known_guess, known, flipped, strict=True)]),
        landing=jnp.where(settled, jnp.stack(ahead.landing), False),
        landings=jnp.where(settled & jnp.stack(ahead.landing).any(), state.landings + 1, 0),
        impacted=jnp.where(settled, impacted & waits, impacted)[None],
        v_before=jnp.where(settled, state.v_before, v_before),
        energy_gained=energy_gained,
        due=due[None],
        last_impact=state.last_impact,
        fastest=state.fastest,
        start=state.start,
        status=status.astype(jnp.int32),
        flags=flags.astype(jnp.int32),
        steps=state.steps + 1,
        event_count=jnp.where(settled, total, state.event_count),
    )
    return new, records, x.whole


def _natural_step(prepared: Prepared, a):
    """See :func:`jfric.solvers.event_driven.exact_flow.natural_step`."""
    n, d = prepared.mechanics.n, prepared.inertia_scale

    def norm(first):
        rows = [
            sum(jnp.abs(a[i][first + j]) * (d[i] / d[j] if i != j else 1.0) for j in range(n))
            for i in range(n)
        ]
        return functools.reduce(jnp.maximum, rows)

    return longest_step(prepared, norm(0), norm(n))


def _frozen(tree):
    """Without derivatives."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.lax.stop_gradient(arrays), rest)
