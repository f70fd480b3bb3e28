"""One pass of the quasi-static solver: settle the modes, or advance to the next breakpoint."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.contact import rules
from jfric.contact.pivoting import flip_limit, select_flips, start_pivoting
from jfric.results.modes import Mode
from jfric.results.status import Flag, Status
from jfric.solvers.quasi_static.guards import following, guards
from jfric.solvers.quasi_static.increment import increment
from jfric.solvers.quasi_static.loading import target
from jfric.solvers.quasi_static.recording import shown, write_outputs
from jfric.solvers.quasi_static.state import State
from jfric.solvers.records import Records, write_events
from jfric.system.mechanics import Mechanics


class Passed(NamedTuple):
    """State after a pass, the buffers, and the path that each contact slid."""

    state: State
    records: Records
    slip: Float[Array, " nt"]


def one_pass(
    mechanics: Mechanics, times, state: State, records: Records, ts, until, force, on
) -> Passed:
    """One pass from ``state``; buffers are written only where ``on``.

    ``times``: knots of the load history; ``until``: time that the pass does not go beyond;
    ``force`` (n,): extra constant force.
    """
    goal = target(mechanics, times, state.stage, state.t, until)
    goal = goal._replace(given=goal.given._replace(f=goal.given.f + force))
    step = increment(mechanics, state, goal)
    found = guards(mechanics, state, step)
    # The choice of the next mode has no derivative; the place of the breakpoint has one.
    signs = found.signs
    mode, segment = following(mechanics, state, signs)
    changes = jnp.concatenate([mode != state.mode, segment != state.segment])
    settled = ~changes.any()

    # Not settled: change modes at this instant.
    nt = mechanics.n_contacts
    flips, _, pivoting = select_flips(changes, state.pivoting)

    # Settled: go to the earliest breakpoint, or to the target.
    fractions = found.fraction
    earliest = jnp.min(fractions, initial=2.0)
    breaks = earliest < 1.0
    fraction = jnp.where(breaks, earliest, 1.0)
    arrives = ~breaks
    t_new = jnp.where(arrives, goal.t, state.t + fraction * (goal.t - state.t))
    elapsed = goal.t - state.t
    v = jnp.where(elapsed > 0, step.q / jnp.where(elapsed > 0, elapsed, 1.0), 0.0)
    status = _status(state, step, settled, pivoting, nt)
    moves = settled & (status == int(Status.OK))

    modes = shown(mechanics, state)
    changed = on & settled & state.settled & (modes != state.recorded)
    records, total = write_events(
        records,
        changed,
        state.t,
        state.recorded,
        modes,
        jnp.zeros_like(changed),
        state.q,
        v,
        state.v,
        state.event_count,
    )
    ends = moves & arrives & goal.ends_stage
    stage = jax.tree.map(
        lambda a, b: jnp.where(ends, a, b), state.stage.following(times.shape[0] - 1), state.stage
    )
    q = state.q + fraction * step.q
    new = State(
        t=jnp.where(moves, t_new, state.t),
        q=jnp.where(moves, q, state.q),
        v=jnp.where(moves, v, state.v),
        lambda_t=jnp.where(moves, state.lambda_t + fraction * step.lambda_t, state.lambda_t),
        lambda_n=jnp.where(moves, state.lambda_n + fraction * step.lambda_n, state.lambda_n),
        normal=jnp.where(moves, state.normal + fraction * step.normal, state.normal),
        z=jnp.where(moves, state.z + fraction * step.z, state.z),
        q_scale=jnp.maximum(state.q_scale, jax.lax.stop_gradient(jnp.abs(q))),
        mode=jnp.where(flips[:nt] & ~settled, mode, state.mode),
        segment=jnp.where(flips[nt:] & ~settled, segment, state.segment),
        recorded=jnp.where(settled, modes, state.recorded),
        settled=state.settled | settled,
        start=state.start,
        stage=stage,
        ended=state.ended | (ends & goal.ends_history),
        pivoting=jax.tree.map(lambda a, b: jnp.where(settled, a, b), start_pivoting(), pivoting),
        status=status,
        flags=state.flags | jnp.where(settled, _remarks(state, step, signs, changed), 0),
        steps=state.steps + 1,
        event_count=total,
    )
    records = write_outputs(records, ts, state, step, fraction, new, modes, on & moves)
    return Passed(new, records, jnp.where(moves, fraction * step.slip, 0.0))


def _status(state: State, step, settled, pivoting, nt: int):
    cycles = ~settled & (pivoting.flips > flip_limit(nt + state.segment.shape[0]))
    code = jnp.where(cycles | (settled & step.unstable), int(Status.INCONSISTENT), state.status)
    code = jnp.where(step.free & (settled | cycles), int(Status.SINGULAR), code)
    finite = jnp.isfinite(jnp.sum(step.q) + jnp.sum(step.lambda_t) + jnp.sum(step.lambda_n))
    return jnp.where(finite, code, int(Status.NON_FINITE)).astype(jnp.int32)


def _remarks(state: State, step, signs: rules.GuardSign, changed):
    nt = state.mode.shape[0]
    first, second = (rules.GuardSign(*(x[k : k + nt] for x in signs)) for k in (0, nt))
    # A contact that slid until a load turned carries its limit as it stops: no decision.
    stuck = state.recorded[:nt] == Mode.STICK
    edge = rules.is_tie(state.mode, first, second) & (stuck | first.null | second.null)
    flags = jnp.where(edge.any() & step.loaded & ~step.redundant, int(Flag.TIE), 0)
    flags = flags | jnp.where(step.redundant, int(Flag.REDUNDANT), 0)
    several = jnp.sum(changed, dtype=jnp.int32) > 1
    return (flags | jnp.where(several, int(Flag.SIMULTANEOUS), 0)).astype(jnp.int32)
