"""Formulas in quantities of a motion, bound to the problem that defines these quantities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jfric.errors import ProblemError, nearest
from jfric.results.pieces import Function
from jfric.results.signals import Signal, look_up
from jfric.system.event import event_labels
from jfric.system.formula import require_formula
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


def target(problem: Problem, where: str, name: str) -> Signal:
    """Position or velocity with this ``name``."""
    try:
        found = look_up(problem, name)[1]
    except ProblemError:
        found = None
    if isinstance(found, Signal) and found.of_motion:
        return found
    allowed = [*problem.dofs, *(f"v.{dof}" for dof in problem.dofs)]
    raise ProblemError(
        f"{where}: no position or velocity {name!r}{nearest(name, allowed)}; there are "
        f"{', '.join(allowed)}"
    )


def require_formulas(problem: Problem) -> None:
    """Raise :class:`jfric.ProblemError` for formulas of events that do not fit the problem."""
    for where, event in zip(event_labels(problem), problem.section("event").values(), strict=True):
        if isinstance(event.when, str):
            _measures(problem, f"{where}.when", event.when)
        for key, value in event.change if isinstance(event.change, tuple) else ():
            at = f"{where}.change.{key}"
            unit = target(problem, at, key).unit
            measured = _measures(problem, at, value) if isinstance(value, str) else None
            if measured is not None and measured != dimensions_of(unit):
                raise ProblemError(
                    f"{at}: found {value!r}{named(measured)}, expected one in {unit}"
                )


def _measures(problem: Problem, where: str, text: str) -> Any:
    formula = require_formula(where, text, problem.parameters)
    units = {name: _quantity(problem, where, name)[1] for name in formula.names.values()}
    if not formula.quantities and len(set(units.values())) < 2 and where.endswith(".when"):
        return None  # nothing to compare: units take long to import
    try:
        return formula.dimensionality(units.__getitem__)
    except UnitError as error:
        raise ProblemError(f"{where}: {text!r} {error}") from None


def _quantity(problem: Problem, where: str, name: str) -> tuple[Function, str]:
    """Quantity with this ``name``, and its unit."""
    if name == "t" and name not in problem.dofs:
        return (lambda point: point.t), "s"
    try:
        found = look_up(problem, name)[1]
    except ProblemError as error:
        raise ProblemError(f"{where}: {error}") from None
    return found, found.unit
