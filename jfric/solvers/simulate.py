"""``simulate``: the loop around any solver."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jfric.compilation import quick_options
from jfric.errors import ProblemError
from jfric.limits import require_sizes, require_step
from jfric.solution import Solution
from jfric.solvers.event_driven.recording import slots_per_pass
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.sensitivities import with_sensitivities, without_derivatives
from jfric.system.expression import Expression
from jfric.system.problem import Problem


def simulate(
    problem: Problem,
    solver: Any = None,
    *,
    ts=None,
    start: Any = None,
    end=None,
) -> Solution:
    """Simulate ``problem`` from its start (or from ``start``) to its end time (or ``end`` [s]).

    ``ts`` (m,) [s]: increasing output times inside the span; without them the solution holds
    events and the final state only. ``solver``: :class:`jfric.EventDriven` (the default),
    :class:`jfric.MoreauJean`, :class:`jfric.Midpoint`, :class:`jfric.StabilisedMidpoint`,
    :class:`jfric.QuasiStatic`, :class:`jfric.Smoothed`. ``start``: ``solution.final`` of an
    earlier run of the same solver. Compiled once for each structure of the problem; works under
    ``jit``, ``vmap``, ``jvp`` and ``grad`` (for many parameters: ``adjoint="reverse"``). Numerical
    trouble is ``solution.status``, never an exception. Derivatives through changes of mode are
    exact with :class:`jfric.EventDriven` only: time stepping misses how switching times move, at
    any step, and says so in ``solution.differentiable``.
    """
    solver = solver if solver is not None else EventDriven()
    if not hasattr(solver, "require"):
        raise ProblemError(f"solver: found {solver!r}, must be a solver such as EventDriven()")
    _check_start(solver, start)
    require_span(problem, ts, start, end)
    _require_countable(problem, solver, start, end)
    solver.require(problem)
    # Numbers as arrays: another value is no reason to compile anew.
    end = float(end) if isinstance(end, int) else end
    solver, end = jax.tree.map(
        lambda x: jnp.asarray(x) if isinstance(x, float) else x, (solver, end)
    )
    arguments = (problem, solver, ts, start, end)
    # A traced call is a part of somebody else's program, who chooses how it is compiled.
    traced = any(isinstance(x, Tracer) for x in jax.tree.leaves((arguments, jnp.zeros(()) + 0.0)))
    quick = solver.compile_quickly and not traced
    return _quick_simulate()(*arguments) if quick else _simulate(*arguments)


def _check_start(solver: Any, start: Any) -> None:
    """Refuse a state that another kind of solver left."""
    if start is None or isinstance(start, solver.state_type):
        return
    found = type(start).__module__.removeprefix("jfric.solvers.").split(".")[0].replace("_", "-")
    raise ProblemError(
        f"start: found a {type(start).__name__} ({found}), must be solution.final of an earlier "
        f"run with {type(solver).__name__}"
    )


def _require_countable(problem: Problem, solver: Any, start: Any, end) -> None:
    """Refuse more steps and events than can be counted, where they are concrete numbers."""
    require_sizes(solver)
    first = problem.time.start if start is None else start.t
    last = problem.time.end if end is None else end
    dt = getattr(solver, "dt", None)
    if dt is None or any(isinstance(x, (Tracer, Expression)) for x in (dt, first, last)):
        return
    if np.size(first) == np.size(last) == 1:
        require_step(dt, float(last) - float(first))


def require_span(problem: Problem, ts, start: Any, end) -> None:
    """Refuse an end or output times that cannot be met, where they are concrete numbers."""
    first = problem.time.start if start is None else start.t
    last = problem.time.end if end is None else end
    values = (first, last) if ts is None else (ts, first, last)
    if any(isinstance(x, (Tracer, Expression)) for x in values):
        return
    if np.size(first) != 1 or np.size(last) != 1:
        return
    if not float(last) > float(first):
        raise ProblemError(
            f"end: found {float(last):g} s, must be later than the start at {float(first):g} s"
        )
    if ts is None:
        return
    times = np.asarray(ts, dtype=float)
    if times.ndim != 1:
        raise ProblemError(f"ts: found an array of shape {times.shape}, needs one axis of times")
    if np.any(np.diff(times) < 0):
        raise ProblemError("ts: found times that decrease, must increase")
    repeated = int(np.max(np.unique(times, return_counts=True)[1], initial=0))
    if repeated > (slots := slots_per_pass(times.size)):
        raise ProblemError(f"ts: found a time {repeated} times, at most {slots} are allowed")
    slack = (
        4 * np.finfo(np.asarray(last).dtype if np.asarray(last).dtype.kind == "f" else float).eps
    )
    slack *= max(abs(float(first)), abs(float(last)))
    outside = (times < float(first) - slack) | (times > float(last) + slack)
    if np.any(outside):
        raise ProblemError(
            f"ts: found {times[outside][0]:g} s, must lie between the start at "
            f"{float(first):g} s and the end at {float(last):g} s"
        )


def _solve(problem, solver, ts, start, end):
    arguments = (problem, solver, ts, start, end)
    match getattr(solver, "adjoint", None):
        case "auto":
            return with_sensitivities(_run, *arguments, plain=_run_plain)
        case "none":
            return without_derivatives(_run, *arguments)
    return _run(*arguments)


def _run(problem, solver, ts, start, end):
    return solver.solve(problem, ts, start, end)


def _run_plain(problem, solver, *rest):
    return _run(problem, dataclasses.replace(solver, adjoint="none"), *rest)


_simulate = eqx.filter_jit(_solve)


@functools.cache
def _quick_simulate():
    options = quick_options()
    return eqx.filter_jit(_solve, compiler_options=options) if options else _simulate  # pyright: ignore
