"""Contacts of a problem, including those that represent friction on a joint's reaction.

A bilateral constraint with friction is two contacts at one place, which push in opposite
directions. Which of them carries is decided as for any contacts, and its force is the normal force.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jfric.system.description import (
    AbstractProblem,
    is_state_axis,
    with_components,
    with_short_names,
)
from jfric.system.direction import kind
from jfric.system.elements import Contact, Gap
from jfric.system.joint import Joint

#: Names in results of the two sides of a joint with friction.
SIDES = ("positive", "negative")


@dataclass(frozen=True)
class Negative:
    """The negative of a function of time, positions and shared parameters."""

    function: Callable

    def __call__(self, *arguments: Any) -> Any:
        return -self.function(*arguments)


def unilateral_contacts(problem: AbstractProblem) -> dict[str, Contact]:
    """Unilateral contacts by their labels, in the solver's order: those of the description, both
    components of one with friction in a plane, then two for each joint with friction."""
    found = {}
    for label, contact in problem.labelled("contact").items():
        found |= with_components(label, contact)
    for label, joint in problem.labelled("joint").items():
        if joint.law is not None:
            for side, contact in zip(SIDES, _sides(joint), strict=True):
                found[f"{label}.{side}"] = contact
    for label, slider in problem.labelled("slider").items():
        if slider.law is not None:
            name = label if slider.turns else f"{label}.normal"
            for side in SIDES:
                found[f"{name}.{side}"] = Contact(
                    point=slider.point,
                    line=slider.line,
                    law=slider.law,
                    inside=side == "negative",
                )
    return found


def opposed_contacts(problem: AbstractProblem) -> tuple[tuple[int, int], ...]:
    """The two contacts of each joint with friction, by their indices among all contacts."""
    elements = [*problem.section("joint").values(), *problem.section("slider").values()]
    count = len(unilateral_contacts(problem))
    first = count - 2 * sum(x.law is not None for x in elements)
    return tuple((i, i + 1) for i in range(first, count, 2))


def normal_forces(problem: AbstractProblem) -> dict[str, int]:
    """Names of the normal forces and their indices among those of all unilateral contacts: both
    components of friction in a plane have one, that of the contact itself."""
    found, row = {}, 0
    for label, contact in problem.labelled("contact").items():
        found[label] = row
        row += len(contact.rows())
    others = list(unilateral_contacts(problem))[row:]
    return found | {label: row + i for i, label in enumerate(others)}


#: Unit of the sliding velocity of a contact, by that of its force.
SLIPS = {"N": "m/s", "N m": "rad/s", "A/s": "A"}


def force_unit(problem: AbstractProblem, contact: str, field: str = "tangent") -> str:
    """Unit of a contact's force: N m where its direction measures an angle, else N; A/s for what
    holds a current."""
    rows = problem.friction_rows() | unilateral_contacts(problem)
    element = (problem.labelled(*problem.elements, *problem.parts) | rows)[contact]
    direction = getattr(element, "direction", None) or getattr(element, field, None)
    if direction and any(map(is_state_axis, direction.names)):
        return "A/s"
    return "N m" if direction and kind(direction, problem.dofs) == "rotation" else "N"


def contact_units(problem: AbstractProblem) -> dict[str, str]:
    """Units of frictions, sliding velocities and normal forces of all contacts by their names."""
    found = {}
    for label in (*problem.friction_rows(), *unilateral_contacts(problem)):
        unit = force_unit(problem, label)
        found |= {f"lambda_t.{label}": unit, f"slip.{label}": SLIPS[unit]}
    for label in unilateral_contacts(problem):
        found[f"lambda_n.{label}"] = force_unit(problem, label, "normal")
    return with_short_names(found)


def _sides(joint: Joint) -> tuple[Contact, Contact]:
    (phi,) = joint.constraint
    opposite = f"-({phi})" if isinstance(phi, str) else Negative(phi)
    own = {"sliding": joint.sliding, "law": joint.law}
    return Contact(gap=Gap(phi), **own), Contact(gap=Gap(opposite), **own)
