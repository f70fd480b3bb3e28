"""One trajectory of any solver, reduced to observables from its outputs and its log of events.

The event-driven solver hands its polynomials to the observables and needs none of this. Other
solvers compute values at given times; what lies between two of them is interpolated.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jfric.ensemble.observables import (
    AtEvent,
    AtTimes,
    EventCount,
    EventTime,
    Final,
    Observable,
    StopTime,
    is_of_motion,
)
from jfric.ensemble.pieces import Piece
from jfric.ensemble.reductions import Reductions
from jfric.solution import Solution
from jfric.status import Status
from jfric.system.mechanics import Mechanics, assemble
from jfric.system.problem import Problem

#: Outputs that a path is made of, beside the times that are asked for.
OUTPUTS = 1001
#: Observables of changes of mode, which come from the log.
OF_EVENTS = (AtEvent, EventCount, EventTime, StopTime)


def run_with_outputs(problem: Problem, observables: tuple[Observable, ...], solver: Any):
    """Values of the observables by name, and the solution they were made from."""
    problem = problem.resolved()
    mechanics = assemble(problem)
    logged = Reductions([o for o in observables if isinstance(o, OF_EVENTS)])
    along = Reductions([o for o in observables if not isinstance(o, OF_EVENTS)])
    ts = _times(problem, along.all)
    solution = solver.solve(problem, ts, None, None)
    dtype = solution.final.q.dtype
    carries = []
    for reductions, pieces in ((along, _path(solution)), (logged, _log(solution, mechanics))):
        carry = reductions.start(problem, mechanics, dtype)

        def update(carry, values, reductions=reductions):
            on, values = values
            piece = Piece(problem=problem, mechanics=mechanics, **values)
            new = reductions.update(carry, piece)
            return jax.tree.map(lambda a, b: jnp.where(on, a, b), new, carry), None

        if reductions.all and pieces[0].shape[0]:
            carry, _ = jax.lax.scan(update, carry, pieces)
        carries.append((reductions, carry))
    duration = problem.time.end - problem.time.start
    found = {}
    for reductions, carry in carries:
        found |= reductions.finish(carry, solution.final.q, solution.final.v, duration)
    ok = solution.status == int(Status.OK)
    return {o.name: jnp.where(ok, found[o.name], jnp.nan) for o in observables}, solution


def _times(problem: Problem, observables: tuple[Observable, ...]):
    """Times at which the solver is asked for values; None where the last state is enough."""
    if all(isinstance(o, Final) and is_of_motion(o.function) for o in observables):
        return None
    start, end = jnp.asarray(problem.time.start), jnp.asarray(problem.time.end)
    ts = start + jnp.linspace(0.0, 1.0, OUTPUTS) * (end - start)
    asked = [t for o in observables if isinstance(o, AtTimes) for t in o.times]
    # Times outside keep their place, and no value.
    extra = jnp.clip(jnp.asarray(sorted(set(asked)), ts.dtype), start, end)
    return jnp.sort(jnp.concatenate([ts, extra]))


def _path(solution: Solution) -> tuple[Any, dict[str, Any]]:
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
    reached = jnp.isfinite(q[1:].sum(axis=1)) & (h > 0)
    return reached, {
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
        "events_before": none,
        "events": none,
        "impacts": none,
        "event_time": t[1:],
    }


def _log(solution: Solution, mechanics: Mechanics) -> tuple[Any, dict[str, Any]]:
    """A piece of no length for each change of mode."""
    e = solution.events
    size = e.time.shape[0]
    number = jnp.arange(size, dtype=jnp.int32)
    nt, nu = mechanics.n_contacts, mechanics.n_unilateral

    def constant(y):
        return y[:, None]

    def unknown(width):
        return jnp.full((size, 1, width), jnp.nan, e.q.dtype)

    return number < e.count, {
        "t": e.time,
        "end": e.time,
        "h": jnp.zeros_like(e.time),
        "q": constant(e.q),
        "v": constant(e.v),
        "a": unknown(mechanics.n),
        "lambda_t": unknown(nt),
        "lambda_n": unknown(nu),
        "mode": jnp.full((size, nt), -1, jnp.int32),
        "segment": jnp.full((size, mechanics.piecewise.count), -1, jnp.int32),
        "events_before": number,
        "events": jnp.ones_like(number),
        "impacts": e.impact.astype(jnp.int32),
        "event_time": e.time,
    }
