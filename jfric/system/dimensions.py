"""Dimensions of fields, on degrees of freedom that translate or rotate.

The classes of elements and laws say what their fields measure; a field that says nothing takes any
unit.
"""

from __future__ import annotations

import functools

from jfric.system.elements import SECTIONS
from jfric.system.fields import TURNING, About, about
from jfric.system.laws import LAWS
from jfric.system.units import DIMENSIONS, Dimension

#: Fields of friction laws, in any element that has a law.
LAW_FIELDS: dict[str, About] = functools.reduce(lambda x, law: about(law) | x, LAWS.values(), {})
#: What a list of such coefficients says that it measures.
COEFFICIENTS = "coefficients"
#: What the start of a degree of freedom measures.
_START = {"q": "length", "v": "velocity"}

#: Entries of full matrices: both coordinates translate, one of them, none.
MATRICES = {
    "M": ("mass", "mass times length", "moment of inertia"),
    "C": ("damping", "impulse", "rotational damping"),
    "K": ("stiffness", "force", "rotational stiffness"),
}


def dimension(section: str, field: str, of_kind: str | None) -> Dimension | None:
    """Dimension of the field ``section.field``; None where the dimension is not checked."""
    if section == "initial":
        measures = _START.get(field)
        names = None if measures is None else (measures, TURNING[measures])
    else:
        # Laws of other packages may have fields of the same names.
        own = about(SECTIONS[section]) if section in SECTIONS else {}
        names = (own.get(field) or LAW_FIELDS.get(field) or About()).measures
    if names is None or names[0] not in DIMENSIONS or (of_kind is None and names[0] != names[1]):
        return None
    return DIMENSIONS[names[of_kind == "rotation"]]


def list_dimensions(
    section: str, field: str, of_kind: str | None, count: int
) -> list[Dimension | None]:
    """Dimensions of ``count`` numbers in a list, the same but for coefficients of powers."""
    names = about(SECTIONS[section])[field].measures
    if names is not None and names[0] == COEFFICIENTS:
        return [_coefficient(power, of_kind) for power in range(1, count + 1)]
    return [dimension(section, field, of_kind)] * count


def _coefficient(power: int, of_kind: str | None) -> Dimension | None:
    """Dimension of a force divided by ``x^power``, where it is known."""
    if of_kind is None or of_kind == "rotation":
        return DIMENSIONS["torque"] if of_kind else None
    unit = f"N/m^{power}" if power > 1 else "N/m"
    return Dimension(f"coefficient of x^{power}", unit, f"5 k{unit}")


def matrix_dimension(name: str, first: str, second: str) -> Dimension:
    """Dimension of an entry of the matrix ``name``, by the kinds of its two coordinates."""
    return DIMENSIONS[MATRICES[name][(first == "rotation") + (second == "rotation")]]
