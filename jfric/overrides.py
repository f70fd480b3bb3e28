"""Parameters given on the command line: ``path=value``, where the value may carry its unit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from jfric.errors import ProblemError
from jfric.system.expression import Expression
from jfric.system.naming import find_path, parameters, set_parameters
from jfric.system.validation import validate

if TYPE_CHECKING:
    from jfric.config.units import Dimension
    from jfric.system.problem import Problem

#: What the numbers of a function of time measure, where it is not what the function measures.
_OF_FUNCTIONS = {"omega": "angular velocity", "phase": "angle", "times": "time"}


def apply_overrides(problem: Problem, assignments: Iterable[str]) -> Problem:
    """``problem`` with every ``path=value`` applied; the result is validated.

    Raises :class:`ProblemError` naming the nearest valid path, or what is wrong with the value.
    """
    values = {}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals or not path.strip() or not text.strip():
            raise ProblemError(
                f"--set: found {assignment!r}, expected path=value such as friction.mu=0.2"
            )
        try:
            name = find_path(problem, path.strip())
        except KeyError as error:
            raise ProblemError(f"--set: {error.args[0]}") from None
        values[name] = _value(problem, name, text.strip())
    if not values:
        return problem
    try:
        changed = set_parameters(problem, values)
    except ValueError as error:
        raise ProblemError(f"--set: {error}") from None
    validate(changed)
    return changed


def _value(problem: Problem, name: str, text: str) -> float | np.ndarray:
    from jfric.config.units import UnitError, to_si

    dimension = path_dimension(problem, name)
    parts = text.strip("[]").split(",") if text.startswith("[") else [text]
    try:
        numbers = [to_si(part.strip(), dimension) for part in parts]
    except UnitError as error:
        raise ProblemError(f"--set {name}: {error}") from None
    if any(isinstance(x, Expression) for x in numbers):
        raise ProblemError(f"--set {name}: found {text!r}, expected a number, not an expression")
    leaf = parameters(problem)[name]
    shape: tuple[int, ...] = () if isinstance(leaf, Expression) else np.shape(leaf)
    found = np.asarray(numbers, float) if text.startswith("[") else np.asarray(numbers[0], float)
    if found.shape != shape:
        wanted = f"a list of {shape[0]} numbers, [a, b, ...]" if shape else "one number"
        raise ProblemError(f"--set {name}: found {text!r}, expected {wanted}")
    return found


def path_dimension(problem: Problem, name: str) -> Dimension | None:
    """What the parameter at a canonical path measures; None where it is not known."""
    from jfric.config.dimensions import LAW_FIELDS, dimension, kind, matrix_dimension
    from jfric.config.units import DIMENSIONS

    section, *rest = name.split(".")
    if section == "time":
        return DIMENSIONS["time"]
    if section == "matrices":
        kinds = list(problem.dofs.values())
        if len(rest) == 3 and rest[1].isdigit() and rest[2].isdigit():
            return matrix_dimension(rest[0], kinds[int(rest[1])], kinds[int(rest[2])])
        return matrix_dimension(rest[0], kinds[0], kinds[0]) if len(set(kinds)) == 1 else None
    if section == "initial":
        dof = rest[0] if len(problem.initial) > 1 else next(iter(problem.initial))
        return dimension("initial", rest[-1], problem.dofs[dof])
    group = problem.section(section)
    if not group:
        return None
    element = next(iter(group.values())) if len(group) == 1 else group[rest.pop(0)]
    field = rest[0]
    if len(rest) > 1 and rest[-1] in _OF_FUNCTIONS:
        return DIMENSIONS[_OF_FUNCTIONS[rest[-1]]]
    slides = field == "belt" or field in LAW_FIELDS
    side = {"contact": "tangent" if slides else "normal"}.get(section, "direction")
    direction = getattr(element, side, None)
    return dimension(section, field, kind(direction, problem.dofs))
