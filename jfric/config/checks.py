"""Checks of a file: their quantities resolved against the problem's names."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from jfric.config.config import Check, time_span
from jfric.config.dimensions import dimension, kind
from jfric.config.functions import number
from jfric.config.quantity import STATIC_KINDS, Quantity, parse_quantity
from jfric.config.units import DIMENSIONS, Dimension
from jfric.errors import ProblemError, nearest
from jfric.system.direction import Direction
from jfric.system.expression import Expression
from jfric.system.problem import Problem

if TYPE_CHECKING:
    from jfric.config import tables

#: Kinds that are the position or the velocity of a degree of freedom.
_POSITIONS = ("position", "event_position", "final_position", "min", "max")
_VELOCITIES = ("velocity", "event_velocity", "event_velocity_before", "final_velocity")


def check(table: tables.CheckTable, where: str, problem: Problem) -> Check:
    """The check that ``table`` describes; raises :class:`jfric.ProblemError`."""
    try:
        quantity = resolve(parse_quantity(table.quantity), problem)
    except ProblemError as error:
        raise ProblemError(f"{where}.quantity: {error}") from None
    if isinstance(quantity.argument, float):
        start, end = time_span(problem)
        if not start <= quantity.argument <= end:
            raise ProblemError(
                f"{where}.quantity: found {table.quantity!r}, the time must lie between "
                f"{start:g} s and {end:g} s"
            )
    expected = number(table.expected, f"{where}.expected", _dimension(quantity, problem))
    if not isinstance(expected, Expression) and not math.isfinite(expected):
        raise ProblemError(f"{where}.expected: found {expected}, must be finite")
    if isinstance(expected, Expression):
        raise ProblemError(
            f"{where}.expected: found the expression {table.expected!r}, expected a number"
        )
    return Check(quantity, expected, table.tolerance, table.relative, table.source)


def resolve(quantity: Quantity, problem: Problem) -> Quantity:
    """``quantity`` with a name that exists: contacts get the name that solutions use.

    Raises :class:`jfric.ProblemError` for an unknown or ambiguous name.
    """
    if quantity.kind in ("lambda_n", "lambda_t"):
        sections = ("contact",) if quantity.kind == "lambda_n" else ("friction", "contact")
        names = _contact_names(problem, sections)
        if not names:
            raise ProblemError(f"found {str(quantity)!r}, but there is no such contact")
        if not quantity.name:
            labels = list(dict.fromkeys(names.values()))
            if len(labels) > 1:
                raise ProblemError(
                    f"found {str(quantity)!r}, the name is missing; contacts are "
                    f"{', '.join(labels)}"
                )
            return dataclasses.replace(quantity, name=labels[0])
        if quantity.name not in names:
            raise ProblemError(
                f"no contact {quantity.name!r}{nearest(quantity.name, names)}; contacts are "
                f"{', '.join(dict.fromkeys(names.values()))}"
            )
        return dataclasses.replace(quantity, name=names[quantity.name])
    if quantity.kind in STATIC_KINDS:
        return dataclasses.replace(quantity, name=_static_name(quantity, problem))
    if quantity.name and quantity.name not in problem.dofs:
        raise ProblemError(
            f"no degree of freedom {quantity.name!r}{nearest(quantity.name, problem.dofs)}; "
            f"declared are {', '.join(problem.dofs)}"
        )
    return quantity


def _static_name(quantity: Quantity, problem: Problem) -> str:
    force, _, contact = quantity.name.partition(".")
    if force in ("lambda_n", "lambda_t"):
        return f"{force}.{resolve(Quantity(force, contact), problem).name}"
    if quantity.name == "parameter" and quantity.kind in ("limit", "special"):
        return quantity.name
    return quantity.name and resolve(Quantity("position", quantity.name), problem).name


def _contact_names(problem: Problem, sections: tuple[str, ...]) -> dict[str, str]:
    """Every way to name a contact, to the name that solutions use."""
    result: dict[str, str] = {}
    for section in sections:
        group = problem.section(section)
        for name in group:
            label = section if len(group) == 1 else f"{section}.{name}"
            result[label] = result[f"{section}.{name}"] = label
            result.setdefault(name, label)
    return result


def _dimension(quantity: Quantity, problem: Problem) -> Dimension | None:
    if quantity.kind in ("event_time", "end_time"):
        return DIMENSIONS["time"]
    if quantity.kind in ("event_count", "impact_count"):
        return DIMENSIONS["pure number"]
    if quantity.kind in _POSITIONS:
        return dimension("initial", "q", problem.dofs[quantity.name])
    if quantity.kind in _VELOCITIES:
        return dimension("initial", "v", problem.dofs[quantity.name])
    if quantity.kind in STATIC_KINDS:
        return None
    if quantity.kind == "acceleration":
        is_rotation = problem.dofs[quantity.name] == "rotation"
        return None if is_rotation else DIMENSIONS["acceleration"]
    return dimension("load", "F", kind(_side(quantity, problem), problem.dofs))


def _side(quantity: Quantity, problem: Problem) -> Direction | None:
    section, _, name = quantity.name.partition(".")
    group = problem.section(section)
    element: Any = group[name] if name else next(iter(group.values()))
    if section == "friction":
        return element.direction
    return element.normal if quantity.kind == "lambda_n" else element.tangent
