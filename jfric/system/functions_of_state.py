"""Functions of the state in elements, and checks of these functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jfric.errors import ProblemError
from jfric.system.assembly import energies_of
from jfric.system.contacts import contact_units
from jfric.system.description import AbstractProblem, element_label
from jfric.system.elements import Along, Gap, Lagrangian
from jfric.system.linkage import Joint
from jfric.system.state_function import bound_to, is_rate, linear_in_velocities
from jfric.system.state_function_checks import (
    require_kinetic,
    require_state_function,
    require_velocities,
)
from jfric.system.states import state_units
from jfric.system.units import UnitError, dimensions_of

#: Fields with functions of the state: their units, an example, whether they take velocities.
_FUNCTIONS = {
    "kinetic": (("J",), "0.5*m*v.x^2", True),
    "potential": (("J",), "m*g*y", False),
    "dissipation": (("W",), "0.5*c*v.x^2", True),
    "gap": (("m", "rad"), "y - r", False),
    "constraint": (("m", "rad"), "x - l*cos(phi)", False),
    "sliding": (("m", "rad"), "x + r*phi", False),
    "plane": (("m", "rad"), "x + r*phi", False),
}
#: Sections of elements that may have such functions.
_SECTIONS = ("lagrangian", "friction", "contact", "joint")


def functions_of(element: Any) -> list[tuple[str, Any]]:
    """Fields of an element that hold functions of the state, and these functions."""
    found = []
    for field in _FUNCTIONS:
        value = getattr(element, field, None)
        if isinstance(value, Gap):
            found.append((field, value.function))
        elif field == "plane":
            entries = value if isinstance(value, tuple) else ()
            entries = [(i, x) for i, x in enumerate(entries, 1) if isinstance(x, Along)]
            found += [(f"plane[{i}]", x.function) for i, x in entries]
        elif isinstance(value, tuple):
            several = len(value) > 1
            found += [(f"{field}[{i}]" if several else field, x) for i, x in enumerate(value, 1)]
        elif value is not None and field != "gap":
            found.append((field, value))
    return found


def require_functions(problem: AbstractProblem, known: Mapping[str, Any] | None = None) -> None:
    """Raise :class:`ProblemError` for energies, gaps and displacements that are no functions of the
    problem's state. ``known``: dimensions of the shared parameters that have one."""
    require_velocities(problem, known)
    for where, element in problem.labelled(*_SECTIONS).items():
        if isinstance(element, Joint) and not element.constraint:
            raise ProblemError(f"{where}.constraint: found none, at least one is needed")
        for field, what in functions_of(element):
            kind = field.partition("[")[0]
            units, example, velocities = _FUNCTIONS[kind]
            rate = kind in ("sliding", "plane", "constraint") and is_rate(what)
            if rate:
                units, velocities = ("m/s", "rad/s"), True
            require_state_function(
                problem,
                f"{where}.{field}",
                what,
                units,
                example,
                velocities=velocities,
                displaces=kind in ("gap", "sliding", "plane", "constraint"),
                known=known,
            )
            if rate and not linear_in_velocities(bound_to(problem, what), len(problem.dofs)):
                raise ProblemError(f"{where}.{field}: {what!r} must be linear in velocities")
            if rate and isinstance(element, Joint) and element.law is not None:
                raise ProblemError(
                    f"{where}.mu: found friction on a joint that holds no position "
                    f"({what!r}), which no solver can represent; give friction a normal force of "
                    "its own in a section friction"
                )
        if isinstance(element, Lagrangian):
            require_kinetic(problem, where, element)
            if element.kinetic is element.potential is element.dissipation is None:
                raise ProblemError(f"{where}: found none of kinetic, potential and dissipation")
            if not energies_of(problem, element).is_quadratic():
                raise ProblemError(
                    f"{where}.kinetic: must be quadratic in the velocities, found a mass matrix "
                    "that depends on them"
                )
    _states(problem, known)
    units = {n: unit for n, unit in state_units(problem).items() if n in problem.states()}
    for where, element in problem.labelled("force").items():
        require_state_function(
            problem,
            f"{where}.F",
            element.F,
            ("N", "N*m"),
            "C/(gap - x)^2",
            velocities=True,
            known=known,
            states=units,
        )


def _states(problem: AbstractProblem, known: Mapping[str, Any] | None) -> None:
    """Raise :class:`ProblemError` for a state with a wrong name, unit, rate or force."""
    units = {n: unit for n, unit in state_units(problem).items() if n in problem.states()}
    for name, element in problem.section("state").items():
        where = element_label("state", name)
        if name in problem.labelled():
            raise ProblemError(f"{where}: {name!r} is the name of another element; rename it")
        try:
            dimensions_of(element.unit)
        except UnitError as error:
            raise ProblemError(f"{where}.unit: {error}") from None
        if (element.force is None) != (element.direction is None):
            found, missing = ("direction", "force")
            if element.direction is None:
                found, missing = missing, found
            raise ProblemError(
                f"{where}: {found} is given without {missing}; give both, or neither for a state "
                "that only others use"
            )
        per_second = f"({element.unit})/s" if element.unit else "1/s"
        fields: list[tuple[str, Any, tuple[str, ...], str]]
        fields = [("rate", element.rate, (per_second,), "-z.p/T")]
        if element.force is not None:
            fields.append(("force", element.force, ("N", "N*m"), "A*z.p"))
        for field, what, allowed, example in fields:
            require_state_function(
                problem,
                f"{where}.{field}",
                what,
                allowed,
                example,
                velocities=True,
                known=known,
                states=units,
                contacts=contact_units(problem) if field == "rate" else None,
            )
