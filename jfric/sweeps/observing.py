"""Simulation of one trajectory that is reduced to observables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jax.numpy as jnp

from jfric.numerics.compilation import single_options
from jfric.results.abstract_observables import own_run
from jfric.results.status import Status
from jfric.solvers.base import AbstractSolver, differentiable, require_solver
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.simulation import call_compiled, require_span, warn_without_time
from jfric.sweeps.from_outputs import run_with_outputs
from jfric.sweeps.from_passes import Observed, run_with_pieces
from jfric.system.model import build
from jfric.system.problem import Problem

if TYPE_CHECKING:
    from jfric.results.abstract_observables import Observable


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
    """Result of :func:`observe` for at most ``budget`` passes (an array; by default the solver's).

    Solvers without polynomials have no budget: they run to their end, and so do runs by an
    observable itself.
    """
    own = own_run(observables)
    if own is not None:
        value, *outcome = own.measured(problem.resolved(), solver, end)
        ok = outcome[0] == int(Status.OK)
        return Observed({own.name: jnp.where(ok, value, jnp.nan)}, *outcome)
    if solver.has_polynomials:
        return run_with_pieces(problem, observables, solver, budget, end)
    values, status, solution = run_with_outputs(problem, observables, solver, end)
    return Observed(values, status, solution.flags, solution.steps)
