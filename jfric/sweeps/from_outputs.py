"""One trajectory of any solver, reduced to observables from its outputs and its log of events.

The event-driven and the quasi-static solver pass their pieces to the observables and do not need
this module. Other solvers compute values at given times, between which this module interpolates.
Extrema also include the states before and after each event, as friction reverses a motion there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jfric.results import observables as seen
from jfric.results.abstract_observables import Observable, OfMaximum, is_of_motion
from jfric.results.columns import forces_at_outputs
from jfric.results.pieces import Piece
from jfric.results.reductions import Reductions
from jfric.results.solution import Solution
from jfric.results.status import Status
from jfric.solvers.base import AbstractSolver
from jfric.system.assembly import assemble
from jfric.system.forces import force_keys
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem

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
#: Fields of a piece that are polynomials.
_CURVES = ("q", "v", "a", "lambda_t", "lambda_n", "forces", "z")


class _Pieces(NamedTuple):
    """Fields of many pieces, and masks of those that were reached and have known forces."""

    fields: dict[str, Any]
    reached: Bool[Array, " p"]
    complete: Bool[Array, " p"]


def run_with_outputs(
    problem: Problem, observables: tuple[Observable, ...], solver: AbstractSolver, end: Any = None
):
    """Values of the observables by name, the status, and the underlying solution."""
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
    return {o.name: jnp.where(ok, found[o.name], jnp.nan) for o in observables}, status, solution


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
        fields, on, complete = values
        new = reductions.update(carry, Piece(problem=problem, mechanics=mechanics, **fields))

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
    asked = [t for o in observables if isinstance(o, (seen.AtTimes, seen.During)) for t in o.times]
    # Times outside keep their place, without a value.
    extra = jnp.clip(jnp.asarray(sorted(set(asked)), ts.dtype), start, end)
    return jnp.sort(jnp.concatenate([ts, extra]))


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

    none = jnp.zeros(h.shape, jnp.int32)
    log = solution.events
    happened = jnp.arange(log.time.shape[0]) < log.count
    before = jnp.sum(happened & (log.time <= t[:-1, None]), axis=1, dtype=jnp.int32)
    fields = {
        "t": t[:-1],
        "end": t[1:],
        "h": h,
        "q": jnp.stack(cubic, axis=1),
        "v": line(v),
        "a": line(solution.a),
        "lambda_t": line(solution.lambda_t),
        "lambda_n": line(solution.lambda_n),
        "mode": solution.mode[1:],
        "segment": solution.segment[1:],
        "events_before": before,
        "events": none,
        "impacts": none,
        "event_time": t[1:],
        "v_before": v[:-1],
        "forces": line(forces),
    }
    if solution.states:
        fields["z"] = line(solution.z)
    reached = jnp.isfinite(q[1:].sum(axis=1)) & (h > 0)
    return _Pieces(fields, reached, jnp.ones_like(reached))


def _log(solution: Solution, problem: Problem, mechanics: Mechanics, *, before: bool) -> _Pieces:
    """Pieces of zero length, one for each change of mode: the state after it, or ``before`` it."""
    e = solution.events
    size, nd = e.time.shape[0], mechanics.n_dofs
    number = jnp.arange(size, dtype=jnp.int32)
    nt, nu = mechanics.n_contacts, mechanics.n_unilateral

    def constant(y):
        return y[:, None]

    def unknown(width):
        return jnp.full((size, 1, width), jnp.nan, e.q.dtype)

    fields = {
        "t": e.time,
        "end": e.time,
        "h": jnp.zeros_like(e.time),
        "q": constant(e.q[:, :nd]),
        "v": constant((e.v_before if before else e.v)[:, :nd]),
        "a": unknown(nd),
        "lambda_t": unknown(nt),
        "lambda_n": unknown(nu),
        "mode": jnp.full((size, nt), -1, jnp.int32),
        "segment": jnp.full((size, mechanics.piecewise.count), -1, jnp.int32),
        "events_before": number,
        "events": jnp.ones_like(number),
        "impacts": e.impact.astype(jnp.int32),
        "event_time": e.time,
        "v_before": e.v_before[:, :nd],
        "forces": unknown(len(force_keys(problem))),
    }
    if mechanics.states:
        fields["z"] = unknown(len(mechanics.states))
    reached = number < e.count
    return _Pieces(fields, reached, jnp.zeros_like(reached))


def _joined(*parts: _Pieces) -> _Pieces:
    """All pieces one after the other, with curves padded to the same number of coefficients."""

    def curves(name: str) -> list[Array]:
        found = [p.fields[name] for p in parts]
        most = max(x.shape[1] for x in found)
        return [jnp.pad(x, ((0, 0), (0, most - x.shape[1]), (0, 0))) for x in found]

    fields = {
        name: jnp.concatenate(curves(name) if name in _CURVES else [p.fields[name] for p in parts])
        for name in parts[0].fields
    }
    reached, complete = (
        jnp.concatenate([getattr(p, name) for p in parts]) for name in ("reached", "complete")
    )
    return _Pieces(fields, reached, complete)


def _in_order(pieces: _Pieces) -> _Pieces:
    """Pieces sorted by time; at equal times they keep their order."""
    order = jnp.argsort(jnp.where(pieces.reached, pieces.fields["t"], jnp.inf), stable=True)
    return jax.tree.map(lambda x: x[order], pieces)
