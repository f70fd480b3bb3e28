"""Formulas in quantities of a motion, bound to the problem that defines these quantities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jfric.errors import ProblemError, nearest, within
from jfric.results.pieces import Function
from jfric.results.signals import Signal, look_up
from jfric.system.description import state_axis
from jfric.system.event import event_labels
from jfric.system.formula import require_formula
from jfric.system.naming import find_path, parameters, path_dimension
from jfric.system.problem import Problem
from jfric.system.units import UnitError, dimensions_of, named


def bound(problem: Problem, where: str, what: str | Callable) -> Function:
    """Function of a point for ``what``, a text or itself such a function.

    Raises :class:`jfric.ProblemError`, with a message that starts with ``where``, for a text that
    is no formula in quantities of ``problem``.
    """
    if not isinstance(what, str):
        return what
    formula = require_formula(where, what, problem.parameters)
    found = {name: _quantity(problem, where, name)[0] for name in formula.names.values()}

    def call(point):
        return formula.value(lambda name: found[name](point), point.problem.parameters)

    return call


#: Parts of a problem whose numbers an event cannot change: they define start and geometry.
_FIXED = ("initial", "time", "parameters", "base", "body", "ground", "event", "matrices")


def target(problem: Problem, where: str, name: str) -> Signal | str:
    """Position, velocity or state with this ``name``, or the full path of a number of an element.

    A state is the velocity of a coordinate."""
    try:
        found = look_up(problem, name)[1]
    except ProblemError:
        found = None
    if isinstance(found, Signal) and found.of_motion:
        return found
    if isinstance(found, Signal) and found.field == "z":
        axis = state_axis(look_up(problem, name)[0].removeprefix("z."))
        if axis in problem.axes:
            return Signal("v", problem.axes.index(axis), found.unit)
    try:
        path = find_path(problem, name)
    except KeyError:
        path = ""
    fixed = path.startswith(tuple(f"{part}." for part in _FIXED)) or path.endswith(".gap")
    if path and not fixed:
        return path
    states = [axis for axis in problem.axes if axis not in problem.dofs]
    allowed = [*problem.dofs, *(f"v.{dof}" for dof in problem.dofs), *states]
    raise ProblemError(
        f"{where}: no position, velocity, state or number of an element {name!r} that an event can "
        f"change{nearest(name, [*allowed, *parameters(problem)])}; there are {', '.join(allowed)} "
        "and the paths of parameters (jfric show lists them)"
    )


def require_formulas(problem: Problem) -> None:
    """Raise :class:`jfric.ProblemError` for formulas of events that do not fit the problem."""
    for where, event in zip(event_labels(problem), problem.section("event").values(), strict=True):
        if isinstance(event.when, str):
            _measures(problem, f"{where}.when", event.when)
        for key, value in event.change if isinstance(event.change, tuple) else ():
            at = f"{where}.change.{key}"
            found = target(problem, at, key)
            if isinstance(found, str):
                measures = path_dimension(problem, found)
                unit = None if measures is None else measures.unit
            else:
                unit = found.unit
            measured = _measures(problem, at, value) if isinstance(value, str) else None
            if None not in (measured, unit) and measured != dimensions_of(unit):
                raise ProblemError(
                    f"{at}: found {value!r}{named(measured)}, expected one in {unit}"
                )


def _measures(problem: Problem, where: str, text: str) -> Any:
    formula = require_formula(where, text, problem.parameters)
    units = {name: _quantity(problem, where, name)[1] for name in formula.names.values()}
    if not formula.quantities and len(set(units.values())) < 2 and where.endswith(".when"):
        return None  # nothing to compare: units take long to import
    with within(f"{where}: {text!r} ", UnitError):
        return formula.dimensionality(units.__getitem__)


def _quantity(problem: Problem, where: str, name: str) -> tuple[Function, str]:
    """Quantity with this ``name``, and its unit."""
    if name == "t" and name not in problem.dofs:
        return (lambda point: point.t), "s"
    with within(f"{where}: "):
        found = look_up(problem, name)[1]
    return found, found.unit
