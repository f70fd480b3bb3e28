"""The value of a quantity on a trajectory, and the scale for its error.

A quantity is one of :mod:`jfric.observables`. States at given times and at events are read from the
solution; all other quantities are reduced during the simulation, as in a sweep.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError, within
from jfric.results import observables as seen
from jfric.results.abstract_observables import Observable, is_of_motion, renamed
from jfric.results.columns import reactions_at_outputs
from jfric.results.grammar import observable
from jfric.results.pieces import Point
from jfric.results.quantity import OUTCOMES, Quantity, parse_quantity, resolve
from jfric.results.signals import Command, Reaction, Signal
from jfric.results.solution import Solution, rows_of
from jfric.results.status import Flag
from jfric.sweeps.observing import observe
from jfric.system.assembly import assemble
from jfric.system.control import command_places
from jfric.system.naming import get_parameter, set_parameters
from jfric.system.problem import Problem

COUNTS = ("event_count", "impact_count")


class Trajectory(NamedTuple):
    """Data for the evaluation of checks: a solution with outputs at :func:`needed_times` and at the
    end, and the values from :func:`reduced` by name."""

    problem: Problem
    solution: Solution
    reduced: Mapping[str, Any] = {}

    def at(self, times: np.ndarray) -> Trajectory:
        """The trajectory with a solution that has only these ``times`` as outputs."""
        chosen = np.isin(np.asarray(self.solution.ts), times)
        return self._replace(solution=rows_of(self.solution, chosen))


def needed_times(quantities: Iterable[Quantity]) -> set[float]:
    """Times at which a solution must be known to evaluate ``quantities``."""
    return {q.argument for q in quantities if q.kind == "at" and isinstance(q.argument, float)}


def reduced(
    problem: Problem, quantities: Iterable[Quantity], solver: Any
) -> Callable[[Problem], dict[str, Any]]:
    """A function that simulates such a problem for those of ``quantities`` that no solution holds:
    their values by name. It may be compiled."""
    plain, slopes = [], {}
    for q in quantities:
        if q.kind == "derivative":
            inner = resolve(parse_quantity(q.name), problem)
            slopes.setdefault(str(q.argument), {})[str(q)] = observable(problem, inner)
        elif q.kind not in OUTCOMES:
            plain.append(observable(problem, q))
    chosen = [o for o in plain if not _is_recorded(o, problem)]

    def values(problem: Problem) -> dict[str, Any]:
        found = dict(observe(problem, chosen, solver).values) if chosen else {}
        for path, own in slopes.items():
            found |= _slopes(problem, path, own, solver)
        return found

    return values


def _slopes(problem: Problem, path: str, own: Mapping[str, Observable], solver: Any) -> dict:
    """Derivatives of observables with respect to the parameter at ``path``, by their names."""
    if hasattr(solver, "adjoint"):
        solver = dataclasses.replace(solver, adjoint="forward")
    named = [renamed(o, name) for name, o in own.items()]

    def seen(x):
        return observe(set_parameters(problem, {path: x}), named, solver).values

    x = jnp.asarray(get_parameter(problem, path))
    found, slopes = jax.jvp(seen, (x,), (jnp.ones_like(x),))
    # The slope of a number that there is not would be zero.
    return {name: jnp.where(jnp.isnan(found[name]), jnp.nan, y) for name, y in slopes.items()}


def derivative(problem: Problem, text: str) -> Quantity:
    """The derivative that ``text`` names: a quantity, a slash and the path of a parameter.

    Raises :class:`jfric.ProblemError` for an unknown quantity or parameter."""
    if "/" not in text:
        raise ProblemError(f"derivative: found {text!r}, expected OBSERVABLE/PATH")
    with within("derivative: "):
        return resolve(parse_quantity(f"derivative({text})"), problem)


def evaluate(quantity: Quantity, trajectory: Trajectory) -> float:
    """Value of ``quantity``, its name in full; NaN where there is no such event."""
    if quantity.kind == "derivative":
        return float(trajectory.reduced[str(quantity)])
    if quantity.kind == "status":
        return float(trajectory.solution.status)
    if quantity.kind == "flag":
        return float(bool(int(trajectory.solution.flags) & Flag[quantity.name.upper()]))
    meaning = observable(trajectory.problem, quantity)
    if not _is_recorded(meaning, trajectory.problem):
        return float(trajectory.reduced[str(quantity)])
    solution, log = trajectory.solution, trajectory.solution.events.used()
    count = len(log.time)
    match meaning:
        case seen.EventCount(impacts=impacts):
            return float(np.sum(np.asarray(log.impact)) if impacts else log.count)
        case seen.LastEventTime():
            return float(log.time[count - 1]) if count else float("nan")
        case seen.EventTime(number=number, own=own):
            times = np.asarray(log.time)
            if own is not None:
                times = times[np.asarray(log.contact) == len(solution.names) + own]
            return float(times[number - 1]) if number <= len(times) else float("nan")
        case (
            seen.AtEvent(function=function, number=number)
            | seen.BeforeEvent(function=function, number=number)
        ):
            if number > count:
                return float("nan")
            before = isinstance(meaning, seen.BeforeEvent)
            return float(_at_events(function, log, before)[number - 1])
        case seen.Final(function=function):
            return float(_at_outputs(function, trajectory)[-1])
        case seen.AtTimes(function=function, times=(time,)):
            return float(_at_outputs(function, trajectory)[_row(quantity, time, solution)])
    raise ProblemError(f"found {str(quantity)!r}, which is no single number")


def scale(quantity: Quantity, expected: float, trajectory: Trajectory) -> float:
    """Scale of an error of ``quantity``: the expected value, or the peak of the component from
    which the quantity is taken, if that is larger; zero for counts."""
    if quantity.kind in (*COUNTS, *OUTCOMES):
        return 0.0
    if quantity.kind == "derivative":
        return abs(expected)
    function = getattr(observable(trajectory.problem, quantity), "function", None)
    if function is None or quantity.kind in ("integral", "impulse"):
        return abs(expected)
    values = [_at_outputs(function, trajectory)]
    if is_of_motion(function):
        log = trajectory.solution.events.used()
        values += [_at_events(function, log, before) for before in (False, True)]
    peaks = np.abs(np.concatenate(values))
    finite = peaks[np.isfinite(peaks)]
    return max(abs(expected), float(finite.max()) if finite.size else 0.0)


def _is_recorded(meaning: Observable, problem: Problem) -> bool:
    """Whether outputs or the log of events hold the quantity."""
    if isinstance(meaning, seen.Final) and any(e.stops for e in problem.section("event").values()):
        return False
    if isinstance(meaning, (seen.AtEvent, seen.BeforeEvent)):
        return is_of_motion(meaning.function)
    return isinstance(
        meaning, (seen.AtTimes, seen.Final, seen.EventCount, seen.EventTime, seen.LastEventTime)
    )


def _at_outputs(function: Callable[[Point], Any], trajectory: Trajectory) -> np.ndarray:
    problem, solution = trajectory.problem, trajectory.solution
    if isinstance(function, Signal) and function.field != "sliding_velocity":
        return np.asarray(getattr(solution, function.field))[:, function.index]
    if isinstance(function, Reaction):
        return np.asarray(reactions_at_outputs(problem, solution))[:, function.index]
    if isinstance(function, Command):
        column = list(command_places(problem).values()).index(function.path)
        return np.asarray(solution.commands)[:, column]
    mechanics = assemble(problem)

    def at(t, q, v, a, lambda_t, lambda_n, mode, segment, z):
        system = problem, mechanics
        return function(Point(t, q, v, a, lambda_t, lambda_n, mode, segment, *system, z=z))

    s = solution
    rows = (s.ts, s.q, s.v, s.a, s.lambda_t, s.lambda_n, s.mode, s.segment, s.z)
    return np.asarray(jax.vmap(at)(*rows))


def _at_events(function: Any, log: Any, before: bool) -> np.ndarray:
    field = "v_before" if before and function.field == "v" else function.field
    return np.asarray(getattr(log, field))[:, function.index]


def _row(quantity: Quantity, time: float, solution: Solution) -> int:
    ts = np.asarray(solution.ts)
    best = int(np.argmin(np.abs(ts - time)))
    if abs(ts[best] - time) > 1e-12 * max(1.0, abs(time)):
        raise ProblemError(f"{quantity}: the time lies outside the simulated span")
    return best
