"""Dimensions that depend on more than a field: on the direction of an element, on two coordinates.

The classes of elements and laws state what their fields measure (:mod:`jfric.system.fields`); a
field without a statement takes any unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jfric.system.direction import Direction, kind
from jfric.system.fields import About
from jfric.system.units import DIMENSIONS, Dimension

#: The start of a degree of freedom.
START = {
    "q": About(("length", "angle")),
    "v": About(("velocity", "angular velocity")),
}
#: Entries of full matrices, where both coordinates, one of them, or none is a translation.
MATRICES = {
    "M": ("mass", "mass times length", "moment of inertia"),
    "C": ("damping", "impulse", "rotational damping"),
    "K": ("stiffness", "force", "rotational stiffness"),
}


def kind_of(element: Mapping[str, Any], field: About, dofs: Mapping[str, str]) -> str | None:
    """Kind of motion (translation or rotation) along which a field of an element is measured; None
    where that is not known. ``element``: its fields."""
    if element.get("point") is not None:
        return "translation"  # a contact between bodies
    along, plane = element.get(field.along), element.get("plane")
    if isinstance(plane, tuple) and plane and field.along != "normal":
        along = plane[0]  # sliding has one dimension along both directions
    if isinstance(along, str):
        return along
    return kind(along if isinstance(along, Direction) else None, dofs)


def power_dimension(power: int, of_kind: str | None) -> Dimension | None:
    """Dimension of a force divided by ``x^power``, where it is known."""
    if of_kind is None or of_kind == "rotation":
        return DIMENSIONS["torque"] if of_kind else None
    unit = f"N/m^{power}" if power > 1 else "N/m"
    return Dimension(f"coefficient of x^{power}", unit, f"5 k{unit}")


def matrix_dimension(name: str, first: str, second: str) -> Dimension:
    """Dimension of an entry of the matrix ``name``, by the kinds of its two coordinates."""
    return DIMENSIONS[MATRICES[name][(first == "rotation") + (second == "rotation")]]
