"""Which elements have functions of the state, and what these must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jfric.errors import ProblemError
from jfric.system.assembly import energies_of
from jfric.system.dependence import linear_in_velocities
from jfric.system.description import AbstractProblem
from jfric.system.elements import Gap, Joint, Lagrangian
from jfric.system.state_function import bound_to, is_rate, require_state_function

#: Functions of the state: field, units of what it measures, an example, whether of velocities.
_FUNCTIONS = {
    "kinetic": (("J",), "0.5*m*v.x^2", True),
    "potential": (("J",), "m*g*y", False),
    "dissipation": (("W",), "0.5*c*v.x^2", True),
    "gap": (("m", "rad"), "y - r", False),
    "constraint": (("m", "rad"), "x - l*cos(phi)", False),
    "sliding": (("m", "rad"), "x + r*phi", False),
}
#: Sections of elements that may have such functions.
SECTIONS_WITH_FUNCTIONS = ("lagrangian", "friction", "contact", "joint")


def functions_of(element: Any) -> list[tuple[str, Any]]:
    """Fields of an element that are functions of the state, and what they hold."""
    found = []
    for field in _FUNCTIONS:
        value = getattr(element, field, None)
        if isinstance(value, Gap):
            found.append((field, value.function))
        elif isinstance(value, tuple):
            several = len(value) > 1
            found += [(f"{field}[{i}]" if several else field, x) for i, x in enumerate(value, 1)]
        elif value is not None and field != "gap":
            found.append((field, value))
    return found


def require_functions(problem: AbstractProblem, known: Mapping[str, Any] | None = None) -> None:
    """Raise :class:`ProblemError` for energies, gaps and displacements that are no functions of the
    problem's state. ``known``: dimensions of shared parameters that have one."""
    for where, element in problem.labelled(*SECTIONS_WITH_FUNCTIONS).items():
        if isinstance(element, Joint) and not element.constraint:
            raise ProblemError(f"{where}.constraint: found none, at least one is needed")
        for field, what in functions_of(element):
            kind = field.partition("[")[0]
            units, example, velocities = _FUNCTIONS[kind]
            if kind == "sliding" and is_rate(what):
                units, velocities = ("m/s", "rad/s"), True
            require_state_function(
                problem,
                f"{where}.{field}",
                what,
                units,
                example,
                velocities=velocities,
                displaces=kind in ("gap", "sliding", "constraint"),
                known=known,
            )
            if field == "sliding" and velocities and not _is_linear(problem, what):
                raise ProblemError(f"{where}.sliding: {what!r} must be linear in velocities")
        if isinstance(element, Lagrangian):
            _lagrangian(problem, where, element)


def _is_linear(problem: AbstractProblem, what: Any) -> bool:
    return linear_in_velocities(bound_to(problem, what), len(problem.dofs))


def _lagrangian(problem: AbstractProblem, where: str, element: Lagrangian) -> None:
    if element.kinetic is None and element.potential is None and element.dissipation is None:
        raise ProblemError(f"{where}: found none of kinetic, potential and dissipation")
    if not energies_of(problem, element).is_quadratic():
        raise ProblemError(
            f"{where}.kinetic: must be quadratic in the velocities, found a mass matrix that "
            "depends on them"
        )
