"""Tables of a system: elements and the coordinates they act on, parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.numerics.printing import Shown
from jfric.system.body import Link
from jfric.system.direction import Direction
from jfric.system.event import Event
from jfric.system.expression import Expression
from jfric.system.functions_of_state import functions_of
from jfric.system.naming import parameters, path_dimension

if TYPE_CHECKING:
    from jfric.system.problem import Problem


def elements_shown(problem: Problem) -> Shown:
    """All elements and the coordinates they act on."""
    rows = [
        (section, name, *_acts_and_settings(name, element))
        for section, group in problem.elements.items()
        for name, element in group.items()
    ]
    return Shown("Elements", ("section", "name", "acts on", "settings"), rows)


def _acts_and_settings(name: str, element: Any) -> tuple[str, str]:
    if isinstance(element, Link):
        return ", ".join(element.coordinates(name)), f"{element.joint} on {element.parent}"
    if isinstance(element, Event):
        acts = element.when if isinstance(element.when, str) else "a function"
        return acts, f"direction={element.direction}, action={element.action}"
    acts = []
    for field in ("direction", "normal", "tangent", "reaction"):
        direction = getattr(element, field, None)
        if isinstance(direction, Direction):
            text = _direction(direction)
            acts.append(text if field == "direction" else f"{field} {text}")
    for field, function in functions_of(element):
        acts.append(f"{field} = {function if isinstance(function, str) else '(Python)'}")
    law = getattr(element, "law", None)
    settings = [] if law is None else [f"law={type(law).__name__}"]
    fields = [field for field in ("release", "impact") if hasattr(element, field)]
    settings += [f"{field}={getattr(element, field)}" for field in fields]
    return ", ".join(acts), ", ".join(settings)


def _direction(direction: Direction) -> str:
    """A direction as text: ``x2 - x1``, ``0.6 x + 0.8 y``."""
    if direction.signs is not None:
        entries = dict(zip(direction.names, direction.signs, strict=True))
    else:
        entries = direction.coefficients or {}
    terms = [_term(name, value) for name, value in entries.items()]
    text = " ".join(terms).removeprefix("+ ")
    return f"-{text[2:]}" if text.startswith("- ") else text


def _term(name: str, value: object) -> str:
    if isinstance(value, Expression):
        return f"+ ({value.text}) {name}"
    number = float(np.asarray(value))
    size = "" if abs(number) == 1.0 else f"{abs(number):.6g} "
    return f"{'-' if number < 0 else '+'} {size}{name}"


def parameters_shown(problem: Problem) -> Shown:
    """Every parameter by the path that ``--set`` takes, with its value, its unit and, where it is
    computed from shared parameters, its formula."""
    rows = [(path, _value(x), *words) for path, (x, *words) in parameter_rows(problem).items()]
    return Shown("Parameters", ("path", ">value", "unit", "computed as"), rows)


def parameter_rows(problem: Problem) -> dict[str, tuple[Any, str, str]]:
    """Value, unit and formula of every parameter by its path."""
    rows, resolved = {}, parameters(problem.resolved())
    for path, value in parameters(problem).items():
        dimension = path_dimension(problem, path)
        unit = "" if dimension is None else dimension.unit
        formula = value.text if isinstance(value, Expression) else ""
        rows[path] = resolved[path], unit, formula
    return rows


def _value(value: object) -> str:
    """A parameter's value: a number or a list."""
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{float(array):.12g}"
    if array.size > 6:
        return f"{array.size} values, {array.min():.6g} to {array.max():.6g}"
    return "[" + ", ".join(f"{x:.6g}" for x in array.ravel()) + "]"
