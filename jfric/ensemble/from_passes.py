"""Observables from the passes of a solver: each moves along a curve that is known in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from jfric.ensemble.pieces import Piece
from jfric.ensemble.reductions import Reductions
from jfric.polynomials import powers
from jfric.solvers.event_driven.prepared import Prepared, prepare
from jfric.solvers.event_driven.recording import empty_records
from jfric.solvers.event_driven.solver import EventDriven, choose_pass
from jfric.solvers.event_driven.state import State, initial_state
from jfric.solvers.loops import keep, run_passes
from jfric.solvers.quasi_static.loading import knots
from jfric.solvers.quasi_static.passes import one_pass as load_pass
from jfric.solvers.quasi_static.recording import empty_records as empty_buffers
from jfric.solvers.quasi_static.solver import QuasiStatic, is_active
from jfric.solvers.quasi_static.state import State as StateAtRest
from jfric.solvers.quasi_static.state import initial_state as initial_state_at_rest
from jfric.status import Status
from jfric.system.forces import element_forces, force_keys
from jfric.system.mechanics import Mechanics, assemble
from jfric.system.problem import Problem

if TYPE_CHECKING:
    from jfric.ensemble.reduction import Observable


class Observed(NamedTuple):
    """Observables of one trajectory by name (not a number where it failed), and its outcome."""

    values: dict[str, Array]
    #: :class:`jfric.Status` code and :class:`jfric.Flag` bits.
    status: Int[Array, ""]
    flags: Int[Array, ""]
    #: Passes of the solver's loop.
    steps: Int[Array, ""]


def run_event_driven(
    problem: Problem,
    observables: tuple[Observable, ...],
    solver: EventDriven,
    budget=None,
    end=None,
) -> Observed:
    """One trajectory up to ``end`` [s] (by default the problem's), for
    at most ``budget`` passes (an array; by default the solver's)."""
    prepared = prepare(problem)
    mechanics = prepared.mechanics
    state = initial_state(problem, prepared)
    budget = jnp.asarray(solver.max_steps if budget is None else budget, jnp.int32)
    target = jnp.asarray(prepared.end if end is None else end, state.t.dtype)
    force = jnp.zeros((mechanics.n,), state.t.dtype)
    ts = jnp.zeros((0,), state.t.dtype)
    records = empty_records(prepared, 0, 0)
    one = choose_pass(solver, prepared)
    reductions = Reductions(observables)

    def active(s: State):
        return (s.status == int(Status.OK)) & (s.t < target) & (s.steps < budget)

    def body(s: State, carry, on):
        new, _, whole_step = one.call(s, records, ts, target, force, on)
        piece = _piece(problem, prepared, whole_step(), s, new)
        useful = on & ((new.t > s.t) | (piece.events > 0))
        return new, keep(useful, reductions.update(carry, piece), carry)

    carry = reductions.start(problem, mechanics, state.t.dtype)
    state, carry = run_passes(
        body,
        active,
        state,
        carry,
        max_steps=solver.max_steps,
        adjoint=solver.adjoint,
        packed=one.packed,
        given=prepared,
    )
    return _observed(reductions, carry, state, state.t < target, target)


def run_quasi_static(
    problem: Problem, observables: tuple[Observable, ...], solver: QuasiStatic, end=None
) -> Observed:
    """One load history up to ``end`` [s] (by default the problem's).

    Over an increment everything is a straight line: integrals are exact."""
    mechanics = assemble(problem)
    state = initial_state_at_rest(problem, mechanics)
    dtype = state.t.dtype
    target = jnp.asarray(problem.resolved().time.end if end is None else end, dtype)
    history = knots(mechanics, state.start, target, solver.increments)
    force, none = jnp.zeros((mechanics.n,), dtype), jnp.zeros((0,), dtype)
    records = empty_buffers(mechanics, 0, 0)
    reductions = Reductions(observables)

    def active(s: StateAtRest):
        return is_active(s, target) & (s.steps < solver.max_steps)

    def body(s: StateAtRest, carry, on):
        new, _, slip = load_pass(mechanics, history, s, records, none, target, force, on)
        piece = _increment(problem, mechanics, s, new, slip)
        # A load that jumps moves the system in no time.
        useful = on & ((new.t > s.t) | (piece.events > 0) | ~s.stage.on_line)
        return new, keep(useful, reductions.update(carry, piece), carry)

    carry = reductions.start(problem, mechanics, dtype)
    state, carry = run_passes(
        body, active, state, carry, max_steps=solver.max_steps, adjoint=solver.adjoint
    )
    return _observed(reductions, carry, state, ~state.ended, target)


def _observed(reductions: Reductions, carry, state, late, target) -> Observed:
    late = (state.status == int(Status.OK)) & late
    status = jnp.where(late, int(Status.MAX_STEPS), state.status)
    found = reductions.finish(carry, state.q, state.v, target - state.start)
    values = {n: jnp.where(status == int(Status.OK), x, jnp.nan) for n, x in found.items()}
    return Observed(values, status, state.flags, state.steps)


def _increment(
    problem: Problem, mechanics: Mechanics, old: StateAtRest, new: StateAtRest, slip
) -> Piece:
    """The straight way between two states."""
    nt = mechanics.n_contacts
    h = new.t - old.t
    events = new.event_count - old.event_count
    keys = list(force_keys(problem).values())
    rate = jnp.where(h > 0, (new.z - old.z) / jnp.where(h > 0, h, 1.0), 0.0)

    def line(a, b):
        return jnp.stack([a, b - a])

    def forces(s):
        # A support that jumps moves in proportion to the way, like the system.
        base = (s.z, rate)
        return element_forces(problem, mechanics, keys, s.t, s.q, new.v, new.segment, base)

    return Piece(
        t=old.t,
        end=new.t,
        h=h,
        q=line(old.q, new.q),
        v=new.v[None],
        a=jnp.zeros_like(new.v)[None],
        lambda_t=line(old.lambda_t, new.lambda_t),
        lambda_n=line(old.lambda_n, new.lambda_n),
        mode=new.recorded[:nt],
        segment=new.recorded[nt:],
        events_before=old.event_count,
        events=events,
        impacts=jnp.zeros_like(events),
        event_time=old.t,
        problem=problem,
        mechanics=mechanics,
        v_before=old.v,
        slip=slip,
        forces=line(forces(old), forces(new)) if keys else None,
    )


def _piece(problem: Problem, prepared: Prepared, step, old: State, new: State) -> Piece:
    """The part of ``step`` between two states, with its coefficients scaled to ``[0, 1]``."""
    nt = prepared.nt
    h = new.t - old.t
    # A step that was not taken may be infinitely long.
    moved = h > 0
    fraction = jnp.where(moved, h / jnp.where(moved, step.h, 1.0), 0.0)
    scale = powers(fraction, step.table.shape[0])[:, None]
    p = step.polynomials(prepared)

    events = new.event_count - old.event_count
    recorded = old.impacted & (old.due <= old.t)
    return Piece(
        t=old.t,
        end=new.t,
        h=h,
        q=p.q * scale,
        v=p.v * scale,
        a=p.a * scale,
        lambda_t=p.lambda_t * scale,
        lambda_n=p.lambda_n * scale,
        mode=new.recorded[:nt],
        segment=new.recorded[nt:],
        events_before=old.event_count,
        events=events,
        impacts=jnp.where(events > 0, jnp.sum(recorded, dtype=jnp.int32), 0),
        event_time=old.t,
        problem=problem,
        mechanics=prepared.mechanics,
        v_before=jnp.where(old.impacted.any(), old.v_before, old.v),
    )
