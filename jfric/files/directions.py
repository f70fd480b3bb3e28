"""Directions from the tables of a file, and what the elongation along them measures."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from jfric.errors import ProblemError, nearest
from jfric.files.function_tables import number
from jfric.system.direction import Direction, Measure, along, between, vector
from jfric.system.expression import Expression
from jfric.system.units import UnitError, measured

#: Kind of a degree of freedom, to what its coefficient may measure, to what their product is.
_ELONGATIONS: dict[str, dict[str, Measure]] = {
    "translation": {"pure number": "translation", "inverse length": "rotation"},
    "rotation": {"pure number": "rotation", "length": "translation"},
}
#: On a base, whose kind is that of what it is joined to.
_EITHER = ("pure number", "length", "inverse length")


def direction(
    field: str,
    given: Mapping[str, Any],
    where: str,
    dofs: Mapping[str, str],
    known: Collection[str],
    lengths: Collection[str],
) -> Direction | None:
    """The direction that an element's table gives in ``field``, None where it gives none.

    ``known``: degrees of freedom and bases; ``lengths``: shared parameters with a unit. Raises
    :class:`jfric.ProblemError`.
    """
    if field == "direction" and ("dof" in given or "between" in given):
        field = "dof" if "dof" in given else "between"
    value = given.get(field)
    at = f"{where}.{field}"
    if value is None:
        return None
    if not isinstance(value, (str, list, dict)):  # {dof = "y"} or {between = ["a", "b"]}
        ((_, value),) = value.given().items()
    if isinstance(value, str):
        if value == "ground":
            raise ProblemError(
                f"{at}: found 'ground', which stands still; give a degree of freedom"
            )
        _require(value, at, known)
        return along(value)
    if isinstance(value, list):
        for name in value:
            _require(name, at, (*known, "ground"))
        if value[0] == value[1]:
            raise ProblemError(f"{at}: found {value[0]!r} twice, the two ends must differ")
        return between(*value)
    if not value:
        raise ProblemError(f"{at}: found no coefficients; declared are {', '.join(known)}")
    for name in value:
        _require(name, at, known)
    coefficients = {name: number(v, f"{at}.{name}", None) for name, v in value.items()}
    return vector(coefficients, _measure(value, coefficients, at, dofs, lengths))


def _require(name: str, where: str, known: Collection[str]) -> None:
    if name not in known:
        raise ProblemError(
            f"{where}: no degree of freedom {name!r}{nearest(name, known)}; "
            f"declared are {', '.join(known)}"
        )


def _measure(
    given: Mapping[str, Any],
    coefficients: Mapping[str, Any],
    where: str,
    dofs: Mapping[str, str],
    lengths: Collection[str],
) -> Measure | None:
    """What the elongation is where units of the coefficients say it, and not the degrees of
    freedom: a lever arm on an angle gives a length."""
    found: dict[str, Measure] = {}
    for name, value in given.items():
        try:
            what = measured(value, tuple(_ELONGATIONS.get(dofs.get(name, ""), _EITHER)))
        except UnitError as error:
            raise ProblemError(f"{where}.{name}: {error}") from None
        if what is not None and name in dofs:
            found[name] = _ELONGATIONS[dofs[name]][what]
    if len(set(found.values())) > 1:
        first, second = found, [n for n in found if found[n] != next(iter(found.values()))]
        raise ProblemError(
            f"{where}: the units of {next(iter(first))!r} and {second[0]!r} give a length and an "
            "angle, all terms must be the same"
        )
    kinds = {dofs[n] for n in given if n in dofs}
    if found:
        measure = next(iter(found.values()))
        return None if kinds == {measure} else measure
    if len(kinds) != 1:
        return None
    # The unit of a product of shared parameters is not followed.
    unknown = any(
        isinstance(x, Expression) and not set(x.references).isdisjoint(lengths)
        for x in coefficients.values()
    )
    return "unknown" if unknown else None
