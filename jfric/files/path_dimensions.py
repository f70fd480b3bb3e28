"""What the parameters of a problem measure, by their full paths."""

from __future__ import annotations

from typing import Any

from jfric.files.dimensions import LAW_FIELDS, dimension, matrix_dimension
from jfric.system.direction import Direction, kind
from jfric.system.naming import function_paths, place
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, Dimension, rate_of

#: What the numbers of a function of time measure, where it is not what the function measures.
_OF_FUNCTIONS = {"omega": "angular velocity", "phase": "angle", "times": "time", "end": "time"}


def path_dimension(problem: Problem, name: str) -> Dimension | None:
    """What the parameter or function of time at a full path measures; None: not known."""
    section, *rest = function_paths(problem).get(name) or place(problem, name)
    if section == "time":
        return DIMENSIONS["time"]
    if section == "matrices":
        kinds = list(problem.dofs.values())
        if len(rest) == 3 and rest[1].isdigit() and rest[2].isdigit():
            return matrix_dimension(rest[0], kinds[int(rest[1])], kinds[int(rest[2])])
        return matrix_dimension(rest[0], kinds[0], kinds[0]) if len(set(kinds)) == 1 else None
    if section == "initial":
        return dimension("initial", rest[-1], problem.dofs[rest[0]])
    if section == "parameters":
        return None
    element, field = problem.section(section)[rest.pop(0)], rest[0]
    if len(rest) > 1 and rest[-1] in _OF_FUNCTIONS:
        return DIMENSIONS[_OF_FUNCTIONS[rest[-1]]]
    if (section, field) == ("friction", "position") and rest[1] not in ("period", "x"):
        return DIMENSIONS["pure number"]
    measures = _of_field(problem, section, element, rest)
    # The rate of a ramp; a state's own equation is its field ``rate``.
    return rate_of(measures) if len(rest) > 1 and rest[-1] == "rate" else measures


def _of_field(problem: Problem, section: str, element: Any, rest: list[str]) -> Dimension | None:
    """What a field of an element measures, where it acts."""
    field, plane = rest[0], getattr(element, "plane", None)
    slides = field == "belt" or field in LAW_FIELDS
    side = {"contact": "tangent" if slides else "normal"}.get(section, "direction")
    direction = getattr(element, side, None)
    if plane is not None and (slides or section == "friction"):
        # The third belt belongs to the spin.
        direction = element.spin if rest[:2] == ["belt", "2"] else plane[0]
        direction = direction if isinstance(direction, Direction) else None
    if getattr(element, "point", None) is not None:  # a contact between bodies
        return dimension(section, field, "translation")
    if section == "velocity":
        return dimension(section, field, element.kind)
    return dimension(section, field, kind(direction, problem.dofs))
