"""Directions from the tables of a file, and what the elongation along them measures."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from jfric.errors import ProblemError, nearest
from jfric.files.function_tables import number
from jfric.system.direction import Direction, along, between, measure, vector


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
    return vector(coefficients, measure(value, coefficients, at, dofs, lengths))


def _require(name: str, where: str, known: Collection[str]) -> None:
    if name not in known:
        raise ProblemError(
            f"{where}: no degree of freedom {name!r}{nearest(name, known)}; "
            f"declared are {', '.join(known)}"
        )
