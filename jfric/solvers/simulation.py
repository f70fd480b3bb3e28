"""Simulation of a problem with any solver."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jfric.errors import ProblemError, require_no_text, warn
from jfric.numerics.by_batch import NO_REVERSE
from jfric.numerics.compilation import Options, no_options, quick_options, single_options
from jfric.numerics.kept_programs import Kept
from jfric.numerics.limits import EVENTS, require_count, require_sizes
from jfric.numerics.tolerances import outside_span
from jfric.numerics.tracing import collecting_later, is_traced
from jfric.results.dense import DEFAULT_PIECES
from jfric.results.solution import Solution
from jfric.solvers.base import AbstractSolver, differentiable, require_solver
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.records import slots_per_pass
from jfric.solvers.states import AbstractState
from jfric.system.expression import Expression
from jfric.system.model import build
from jfric.system.problem import Problem


def simulate(
    problem: Problem,
    solver: AbstractSolver | None = None,
    *,
    ts=None,
    start: AbstractState | None = None,
    end=None,
    dense: bool | int = False,
) -> Solution:
    """Simulate ``problem`` from its start (or from ``start``) to its end time (or ``end`` [s]).

    ``ts`` (m,) [s]: increasing output times inside the span; without them the solution contains
    events and the final state only. ``solver``: :class:`jfric.EventDriven` (the default),
    :class:`jfric.MoreauJean`, :class:`jfric.Midpoint`, :class:`jfric.StabilisedMidpoint`,
    :class:`jfric.QuasiStatic`, :class:`jfric.Smoothed` or any other :class:`jfric.AbstractSolver`.
    ``start``: ``solution.final`` of an earlier run of the same solver. ``dense``: whether to keep
    the data that :meth:`jfric.Solution.evaluate` needs, or the number of pieces (smooth parts of
    steps; by default 1,024) to reserve; solvers without polynomials interpolate the outputs. The
    program is compiled once for each structure of the problem and works under ``jit``, ``vmap``,
    ``jvp`` and ``grad`` (for many parameters: ``adjoint="reverse"``). Numerical trouble is reported
    in ``solution.status``, never as an exception. Derivatives through changes of mode are exact
    with :class:`jfric.EventDriven` only: time stepping misses the change of switching times, at any
    step, and reports it in ``solution.differentiable``. Raises :class:`jfric.ProblemError` for what
    the solver cannot represent, and for times outside the span. The problem of
    :class:`jfric.Problem` slides seven times and then sticks at 0.32 m::

        >>> solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 4.0, 5)).check()
        >>> solution.q.shape, int(solution.events.count), round(float(solution.q[-1, 0]), 12)
        ((5, 1), 7, 0.32)
        >>> jfric.Mode(int(solution.mode[-1, 0])).name
        'STICK'
    """
    problem = build(problem)
    solver = solver if solver is not None else EventDriven()
    require_solver(solver)
    if start is not None:
        solver.require_start(start)
    require_span(problem, ts, start, end)
    if end is None and ts is None:
        warn_without_time(problem)
    _require_countable(problem, solver, start, end)
    pieces = _pieces(solver, ts, dense)
    solver.require(problem)
    end = float(end) if isinstance(end, int) else end
    return call_compiled(_solve, solver, end, problem, ts, start, pieces, options=single_options)


def call_compiled(
    function: Callable[..., Any],
    solver: AbstractSolver,
    end,
    *arguments,
    options: Callable[[], Options] = quick_options,
) -> Any:
    """Result of ``function(solver, end, *arguments)``, compiled once for each structure, with
    ``options`` if the solver asks for quick compilation."""
    # Numbers become arrays: another value is then no reason to compile again.
    numbers = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, float) else x, (solver, end))
    arguments = (*numbers, *arguments)
    # A traced call is part of another program, whose owner chooses how it is compiled.
    if not solver.compile_quickly or is_traced(arguments):
        options = no_options
    with collecting_later():
        try:
            return _compiled(function, options)(*arguments)
        except ValueError as error:
            # JAX names no setting of the solver.
            if "does not support reverse-mode" not in str(error):
                raise
            raise ProblemError(NO_REVERSE.format(repr(solver.adjoint))) from None


def _pieces(solver: AbstractSolver, ts, dense: bool | int) -> int:
    """Number of pieces of dense output to reserve space for."""
    if dense is False:
        return 0
    pieces = DEFAULT_PIECES if dense is True else dense
    require_count("dense", pieces, 1, EVENTS)
    if not solver.has_polynomials and (ts is None or np.shape(ts)[0] < 2):
        raise ProblemError(
            f"dense: the solver {solver.label} has no polynomials between its steps; give ts, two "
            "outputs or more, between which to interpolate"
        )
    return pieces


def _require_countable(problem: Problem, solver: AbstractSolver, start: Any, end) -> None:
    """Refuse more steps and events than can be counted, where they are concrete numbers."""
    require_sizes(solver)
    first = problem.time.start if start is None else start.t
    last = problem.time.end if end is None else end
    numbers = (*jax.tree.leaves(solver), first, last)
    if any(isinstance(x, (Tracer, Expression)) for x in numbers):
        return
    if np.size(first) == np.size(last) == 1:
        solver.require_duration(float(last) - float(first))


def warn_without_time(problem: Problem) -> None:
    """Warn of the default duration of a motion for which no time is given."""
    if not problem.time.given:
        warn("time: none is given, the motion is computed for 1 s; give Problem(..., time=4.0)")


def require_span(problem: Problem, ts, start: Any, end) -> None:
    """Refuse an end or output times that cannot be reached, where they are concrete numbers."""
    require_no_text("end", end)
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
    outside = outside_span(times, first, last)
    if np.any(outside):
        known = problem.time.given or end is not None or start is not None
        default = "" if known else ", which holds where no time= is given"
        raise ProblemError(
            f"ts: found {times[outside][0]:g} s, must lie between the start at "
            f"{float(first):g} s and the end at {float(last):g} s{default}"
        )


def _solve(solver, end, problem, ts, start, pieces):
    def run(solver, problem, ts, start, end):
        return solver.solve(problem, ts, start, end, dense=pieces)

    return differentiable(run, solver, problem, ts, start, end)


@functools.cache
def _compiled(function: Callable[..., Any], options: Callable[[], Options]) -> Kept:
    return Kept(function, options=options)
