"""One trajectory, reduced to observables while it is simulated."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from jfric.ensemble.from_outputs import run_with_outputs
from jfric.ensemble.pieces import Piece
from jfric.ensemble.reductions import Reductions
from jfric.solvers.event_driven.polynomials import powers
from jfric.solvers.event_driven.prepared import Prepared, prepare
from jfric.solvers.event_driven.recording import empty_records
from jfric.solvers.event_driven.solver import EventDriven, choose_pass
from jfric.solvers.event_driven.state import State, initial_state
from jfric.solvers.loops import keep, run_passes
from jfric.solvers.sensitivities import with_sensitivities, without_derivatives
from jfric.status import Status
from jfric.system.problem import Problem

if TYPE_CHECKING:
    from jfric.ensemble.observables import Observable


class Observed(NamedTuple):
    """Observables of one trajectory by name (not a number where it failed), and its outcome."""

    values: dict[str, Array]
    #: :class:`jfric.Status` code and :class:`jfric.Flag` bits.
    status: Int[Array, ""]
    flags: Int[Array, ""]
    #: Passes of the solver's loop.
    steps: Int[Array, ""]


def observe(
    problem: Problem,
    observables: str | Sequence[str | Observable] | Mapping[str, Observable],
    solver: Any = None,
    *,
    times=None,
) -> Observed:
    """Simulate one trajectory and return its observables; nothing else is kept.

    ``observables``: names such as ``"final.u"`` (see :data:`jfric.ensemble.grammar.GRAMMAR`) or
    :class:`jfric.observables.Observable` objects. ``times`` (m,) [s]: those of ``"u(t)"``. Works
    under ``jit``, ``vmap``, ``jvp`` and ``grad`` (for many parameters:
    ``EventDriven(adjoint="reverse")``). ``solver``: any; with other solvers than the event-driven
    one paths are interpolated between 1,001 outputs. Raises :class:`jfric.ProblemError` for an
    unknown observable.
    """
    from jfric.ensemble.grammar import as_observables

    chosen = as_observables(problem, observables, times)
    solver = solver if solver is not None else EventDriven()
    solver.require(problem)
    if not isinstance(solver, EventDriven):
        return run(problem, tuple(chosen), solver)
    plain = dataclasses.replace(solver, adjoint="none")

    def reduced(solver):
        return lambda problem: run(problem, tuple(chosen), solver)

    match solver.adjoint:
        case "auto":
            return with_sensitivities(reduced(solver), problem, plain=reduced(plain))
        case "none":
            return without_derivatives(reduced(plain), problem)
    return run(problem, tuple(chosen), solver)


def run(
    problem: Problem, observables: tuple[Observable, ...], solver: Any, budget=None
) -> Observed:
    """Like :func:`observe`, for at most ``budget`` passes (an array; by default the solver's).

    Solvers other than the event-driven one have no passes to count: all or nothing.
    """
    if not isinstance(solver, EventDriven):
        values, solution = run_with_outputs(problem, observables, solver)
        return Observed(values, solution.status, solution.flags, solution.steps)
    prepared = prepare(problem)
    mechanics = prepared.mechanics
    state = initial_state(problem, prepared)
    budget = jnp.asarray(solver.max_steps if budget is None else budget, jnp.int32)
    target = jnp.asarray(prepared.end, state.t.dtype)
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
    late = (state.status == int(Status.OK)) & (state.t < target)
    status = jnp.where(late, int(Status.MAX_STEPS), state.status)
    found = reductions.finish(carry, state.q, state.v, target - state.start)
    values = {n: jnp.where(status == int(Status.OK), x, jnp.nan) for n, x in found.items()}
    return Observed(values, status, state.flags, state.steps)


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
    )
