"""One trajectory reduced to observables, by any solver.

A solver with polynomials passes its pieces to the observables. Other solvers compute values at
given times, between which this module interpolates; their extrema also include the states before
and after each event, as friction reverses a motion there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jfric.numerics.compilation import single_options
from jfric.numerics.loops import keep, run_passes
from jfric.numerics.printing import printable
from jfric.results import observables as seen
from jfric.results.abstract_observables import (
    Observable,
    OfMaximum,
    Reductions,
    is_of_motion,
    own_run,
)
from jfric.results.columns import forces_at_outputs
from jfric.results.pieces import CURVES, Piece
from jfric.results.solution import Solution
from jfric.results.status import Flag, Status
from jfric.solvers.base import AbstractSolver, differentiable, one_sided, require_solver
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.records import empty_records
from jfric.solvers.simulation import call_compiled, require_span, warn_without_time
from jfric.system.assembly import assemble
from jfric.system.control import driven
from jfric.system.forces import force_keys
from jfric.system.mechanics import Mechanics
from jfric.system.model import build
from jfric.system.problem import Problem
from jfric.system.start import started


@printable
class Observed(NamedTuple):
    """Observables of one trajectory by name (NaN where it failed), and its outcome."""

    values: dict[str, Array]
    #: :class:`jfric.Status` code and :class:`jfric.Flag` bits.
    status: Int[Array, ""]
    flags: Int[Array, ""]
    #: Passes of the solver's loop.
    steps: Int[Array, ""]


def _with_pieces(
    problem: Problem, observables: tuple[Observable, ...], solver: AbstractSolver, budget, end
) -> Observed:
    """Observables from the passes of a solver that has polynomials."""
    problem = driven(started(problem))
    prepared = solver.prepare(problem, end)
    mechanics = prepared.mechanics
    target = jnp.asarray(prepared.end if end is None else end, mechanics.K.dtype)
    state = solver.begin(problem, prepared, target)
    first, dtype = state.t, state.t.dtype
    budget = jnp.asarray(solver.max_steps if budget is None else budget, jnp.int32)
    force, none = jnp.zeros((mechanics.n,), dtype), jnp.zeros((0,), dtype)
    records = empty_records(mechanics)
    one = solver.next_pass(problem, prepared, state, none, target, force)
    reductions = Reductions(observables)
    nothing = reductions.start(problem, mechanics, dtype)
    times = jnp.asarray(_asked_times(observables), dtype)
    may_stop = reductions.enough(nothing) is not None

    def stopped(s):
        return (s.flags & int(Flag.STOPPED)) != 0

    def active(s):
        goes_on = (s.status == int(Status.OK)) & solver.unfinished(prepared, s, target)
        goes_on = goes_on & (s.steps < budget)
        return goes_on & ~stopped(s) if may_stop else goes_on

    def body(s, carry, on, *common):
        new, _, piece = one.call(s, records, on, *common)
        new = one_sided(solver, s, new, target, times)
        assert piece is not None
        piece = piece()
        carry = keep(on & piece.useful, reductions.update(carry, piece), carry)
        if may_stop:
            flag = jnp.where(reductions.enough(carry), int(Flag.STOPPED), 0)
            new = eqx.tree_at(lambda s: s.flags, new, new.flags | flag.astype(new.flags.dtype))
        return new, carry

    # Extremes and integrals of polynomials are many scalars: without kernels arrays compile faster.
    scalars = one.kernels or not reductions.of_polynomials
    state, carry = run_passes(
        body,
        active,
        state,
        nothing,
        max_steps=solver.max_steps,
        adjoint=solver.adjoint,
        given=prepared,
        constants=one.constants if scalars else None,
        kernels=one.kernels,
        scalar_buffers=True,
        shared=one.shared,
    )
    status = solver.outcome(prepared, state, target)
    if may_stop:
        status = jnp.where(stopped(state), state.status, status)
    # A user event, or an observable, may have ended the run earlier.
    last = state.t if problem.section("event") or may_stop else target
    found = reductions.finish(carry, state.q, state.v, last - first)
    values = {n: jnp.where(status == int(Status.OK), x, jnp.nan) for n, x in found.items()}
    return Observed(values, status, state.flags, state.steps)


#: Outputs along a path, in addition to the requested times.
OUTPUTS = 1001
#: Observables of changes of mode, which come from the log.
OF_EVENTS = (
    seen.AtEvent,
    seen.BeforeEvent,
    seen.EventCount,
    seen.EventTime,
    seen.LastEventTime,
    seen.StopTime,
)


class _Pieces(NamedTuple):
    """Many pieces (p, ...) of one system, without it, and masks of those that were reached and have
    known forces."""

    all: Piece
    reached: Bool[Array, " p"]
    complete: Bool[Array, " p"]


def _with_outputs(
    problem: Problem, observables: tuple[Observable, ...], solver: AbstractSolver, end: Any = None
) -> Observed:
    """Observables from the outputs of a solver without polynomials, and from its log of events."""
    problem = problem.resolved()
    mechanics = assemble(problem)
    end = problem.time.end if end is None else end
    logged = [o for o in observables if isinstance(_reduced_by(o), OF_EVENTS)]
    extrema = [o for o in observables if is_extreme(o)]
    grouped = {id(o) for o in (*logged, *extrema)}
    along = [o for o in observables if id(o) not in grouped]
    ts = _times(problem, [*extrema, *along], end)
    solution = solver.solve(problem, ts, None, end)
    path = _path(solution, forces_at_outputs(problem, solution))
    log, before = (_log(solution, problem, mechanics, before=b) for b in (False, True))
    found = {}
    for group, pieces in (
        (along, path),
        (extrema, _joined(path, log, before)),
        (logged, _in_order(_joined(log, path))),
    ):
        reductions = Reductions(group)
        carry = reductions.start(problem, mechanics, solution.final.q.dtype)
        if group and pieces.reached.shape[0]:
            carry = _reduced(reductions, carry, pieces, problem, mechanics)
        duration = end - problem.time.start
        found |= reductions.finish(carry, solution.final.q, solution.final.v, duration)
    # Without observables of events it does not matter whether the log was full.
    full = (solution.status == int(Status.MAX_EVENTS)) & (not logged)
    status = jnp.where(full, int(Status.OK), solution.status)
    ok = status == int(Status.OK)
    values = {o.name: jnp.where(ok, found[o.name], jnp.nan) for o in observables}
    return Observed(values, status, solution.flags, solution.steps)


def needs_log(observable: Observable) -> bool:
    """Whether an observable is of changes of mode, or of a part that an event bounds."""
    windowed = isinstance(observable, seen.During) and observable.of_events
    return windowed or isinstance(_reduced_by(observable), OF_EVENTS)


def is_extreme(observable: Observable) -> bool:
    """Whether an observable is an extreme value, which may occur at an event."""
    return isinstance(_reduced_by(observable), (seen.Amplitude, OfMaximum))


def _reduced_by(observable: Observable) -> Observable:
    """The observable itself, or the one that a window restricts."""
    return observable.observed if isinstance(observable, seen.During) else observable


def _reduced(
    reductions: Reductions, carry, pieces: _Pieces, problem: Problem, mechanics: Mechanics
):
    def update(carry, values):
        piece, on, complete = values
        new = reductions.update(carry, piece._replace(problem=problem, mechanics=mechanics))

        def chosen(a, b):
            # Values that need forces are unknown at an event.
            return jnp.where(on & (complete | ~jnp.isnan(a)), a, b)

        return jax.tree.map(chosen, new, carry), None

    return jax.lax.scan(update, carry, pieces)[0]


def _times(problem: Problem, observables: Sequence[Observable], end):
    """Output times for the solver; None where the last state suffices."""
    if all(isinstance(o, seen.Final) and is_of_motion(o.function) for o in observables):
        return None
    start, end = jnp.asarray(problem.time.start), jnp.asarray(end)
    ts = start + jnp.linspace(0.0, 1.0, OUTPUTS) * (end - start)
    # Times outside keep their place, without a value.
    extra = jnp.clip(jnp.asarray(sorted(set(_asked_times(observables))), ts.dtype), start, end)
    return jnp.sort(jnp.concatenate([ts, extra]))


def _asked_times(observables: Sequence[Observable]) -> list:
    """Times at which observables read a value, or begin and end to count."""
    return [t for o in observables if isinstance(o, (seen.AtTimes, seen.During)) for t in o.times]


def _path(solution: Solution, forces) -> _Pieces:
    """Pieces between outputs: cubics through positions and velocities, and straight lines."""
    t, q, v = solution.ts, solution.q, solution.v
    h = jnp.diff(t)
    length = h[:, None]
    rise = jnp.diff(q, axis=0)
    start, end = length * v[:-1], length * v[1:]
    cubic = [q[:-1], start, 3.0 * rise - 2.0 * start - end, start + end - 2.0 * rise]

    def line(y):
        return jnp.stack([y[:-1], jnp.diff(y, axis=0)], axis=1)

    log = solution.events
    happened = jnp.arange(log.time.shape[0]) < log.count
    before = jnp.sum(happened & (log.time <= t[:-1, None]), axis=1, dtype=jnp.int32)
    pieces = Piece(
        t=t[:-1],
        end=t[1:],
        h=h,
        q=jnp.stack(cubic, axis=1),
        v=line(v),
        a=line(solution.a),
        lambda_t=line(solution.lambda_t),
        lambda_n=line(solution.lambda_n),
        mode=solution.mode[1:],
        segment=solution.segment[1:],
        events_before=before,
        events=jnp.zeros_like(before),
        impacts=jnp.zeros_like(before),
        event_time=t[1:],
        v_before=v[:-1],
        forces=line(forces),
        z=line(solution.z) if solution.states else None,
        **_NO_SYSTEM,
    )
    reached = jnp.isfinite(q[1:].sum(axis=1)) & (h > 0)
    return _Pieces(pieces, reached, jnp.ones_like(reached))


#: The system of many pieces, which is that of each of them, is added last.
_NO_SYSTEM: dict[str, Any] = {"problem": None, "mechanics": None}


def _log(solution: Solution, problem: Problem, mechanics: Mechanics, *, before: bool) -> _Pieces:
    """Pieces of zero length, one for each change of mode: the state after it, or ``before`` it."""
    e = solution.events
    size, nd = e.time.shape[0], mechanics.n_dofs
    number = jnp.arange(size, dtype=jnp.int32)
    nt, nu = mechanics.n_contacts, mechanics.n_unilateral

    def unknown(width):
        return jnp.full((size, 1, width), jnp.nan, e.q.dtype)

    pieces = Piece(
        t=e.time,
        end=e.time,
        h=jnp.zeros_like(e.time),
        q=e.q[:, None, :nd],
        v=(e.v_before if before else e.v)[:, None, :nd],
        a=unknown(nd),
        lambda_t=unknown(nt),
        lambda_n=unknown(nu),
        mode=jnp.full((size, nt), -1, jnp.int32),
        segment=jnp.full((size, mechanics.piecewise.count), -1, jnp.int32),
        events_before=number,
        events=jnp.ones_like(number),
        impacts=e.impact.astype(jnp.int32),
        event_time=e.time,
        v_before=e.v_before[:, :nd],
        forces=unknown(len(force_keys(problem))),
        z=unknown(len(mechanics.states)) if mechanics.states else None,
        **_NO_SYSTEM,
    )
    reached = number < e.count
    return _Pieces(pieces, reached, jnp.zeros_like(reached))


def _joined(*parts: _Pieces) -> _Pieces:
    """All pieces one after the other, with curves padded to the same number of coefficients."""
    names = [name for name in CURVES if getattr(parts[0].all, name) is not None]
    most = {k: max(getattr(p.all, k).shape[1] for p in parts) for k in names}

    def padded(k: str, x: Array) -> Array:
        return jnp.pad(x, ((0, 0), (0, most[k] - x.shape[1]), (0, 0)))

    curves = [{k: padded(k, getattr(p.all, k)) for k in names} for p in parts]
    filled = [p._replace(all=p.all._replace(**c)) for p, c in zip(parts, curves, strict=True)]
    return jax.tree.map(lambda *x: jnp.concatenate(x), *filled)


def _in_order(pieces: _Pieces) -> _Pieces:
    """Pieces sorted by time; at equal times they keep their order."""
    order = jnp.argsort(jnp.where(pieces.reached, pieces.all.t, jnp.inf), stable=True)
    return jax.tree.map(lambda x: x[order], pieces)


def observe(
    problem: Problem,
    observables: str | Sequence[str | Observable] | Mapping[str, Observable | str],
    solver: AbstractSolver | None = None,
    *,
    times=None,
    end=None,
) -> Observed:
    """Simulate one trajectory of ``problem`` and return only its observables.

    ``observables``: names such as ``"final.u"`` (see :data:`jfric.results.quantity.GRAMMAR`) or
    :class:`jfric.observables.Observable` objects. ``times`` (m,) [s]: those of ``"u(t)"``. ``end``
    [s]: end of the run, by default the problem's end time. ``solver``: any. Works under ``jit``,
    ``vmap``, ``jvp`` and ``grad`` (for many parameters: ``adjoint="reverse"``). Extrema and
    integrals are exact over the trajectory with solvers that have polynomials (the event-driven and
    the quasi-static one); with others they come from 1,001 outputs and the events. Raises
    :class:`jfric.ProblemError` for an unknown observable and for an end before the start. With the
    problem of :class:`jfric.Problem`::

        >>> found = jfric.observe(problem, "max.u, dissipated, stop_time")
        >>> {name: round(float(x), 9) for name, x in sorted(found.values.items())}
        {'dissipated': 224.0, 'max.u': 0.56, 'stop_time': 3.110018057}
    """
    from jfric.results.grammar import as_observables

    problem = build(problem)
    chosen = tuple(as_observables(problem, observables, times, end))
    solver = solver if solver is not None else EventDriven()
    require_solver(solver)
    solver.require(problem)
    require_span(problem, None, None, end)
    if end is None and own_run(chosen) is None:
        warn_without_time(problem)
    end = jnp.asarray(problem.resolved().time.end if end is None else end, jnp.result_type(float))
    try:
        hash(chosen)
    except TypeError:
        # User-defined observables without a hash: each call compiles its own program.
        return _observe(solver, end, problem, chosen)
    return call_compiled(_observe, solver, end, problem, chosen, options=single_options)


def _observe(solver, end, problem, chosen) -> Observed:
    def reduced(solver, problem, end):
        return run(problem, chosen, solver, end=end)

    return differentiable(reduced, solver, problem, end)


def run(
    problem: Problem,
    observables: tuple[Observable, ...],
    solver: AbstractSolver,
    budget=None,
    end=None,
) -> Observed:
    """Result of :func:`observe` up to ``end`` [s] (by default the problem's), for at most
    ``budget`` passes (an array; by default the solver's).

    Solvers without polynomials have no budget: they run to their end, and so do runs by an
    observable itself.
    """
    own = own_run(observables)
    if own is not None:
        value, *outcome = own.measured(problem.resolved(), solver, end)
        ok = outcome[0] == int(Status.OK)
        return Observed({own.name: jnp.where(ok, value, jnp.nan)}, *outcome)
    if solver.has_polynomials:
        return _with_pieces(problem, observables, solver, budget, end)
    return _with_outputs(problem, observables, solver, end)
