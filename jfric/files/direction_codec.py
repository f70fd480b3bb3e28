"""Directions in a file, and the dimension of the elongation along them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from jfric.errors import nearest
from jfric.files.codec import MISSING, Key, Place
from jfric.files.field_codecs import CLASSES, FORMS, FORMULA
from jfric.files.scalar_codecs import NUMBER, Text
from jfric.files.table_codecs import Either, List, Names, Record
from jfric.system.direction import Direction, along, between, measure, vector
from jfric.system.elements import Along, is_formula
from jfric.system.fields import About

_WORDS = "a degree of freedom such as 'u'"
_NAME, _PAIR, _VECTOR = Text(_WORDS), List(Text(_WORDS), 2, 2), Names(NUMBER)


class OneKey(Record):
    """A table that its only key tells from others."""

    def takes(self, raw: Any) -> bool:
        return isinstance(raw, dict) and not self.table.keys().isdisjoint(raw)


_ALONG = OneKey(
    "Along",
    "One degree of freedom or base.",
    {"dof": Key(_NAME, "a degree of freedom, or the name of a base", needed=True)},
)
_BETWEEN = OneKey(
    "Between",
    'From the first to the second; "ground" stands still.',
    {"between": Key(_PAIR, "a pair of them, from the first to the second", needed=True)},
)


class DirectionCodec(Either):
    """A name, a pair of names, or a table with names and coefficients."""

    def __init__(self) -> None:
        super().__init__(_NAME, _PAIR, _ALONG, _BETWEEN, _VECTOR)

    def read(self, raw: Any, place: Place) -> Direction:
        if isinstance(self.option(raw), OneKey):
            ((_, raw),) = raw.items()
        known = (*place.system.dofs, *place.system.bases)
        if isinstance(raw, str):
            if raw == "ground":
                raise place.error("found 'ground', which stands still; give a degree of freedom")
            _require(raw, place, known)
            return along(raw)
        if isinstance(raw, list):
            for name in raw:
                _require(name, place, (*known, "ground"))
            if raw[0] == raw[1]:
                raise place.error(f"found {raw[0]!r} twice, the two ends must differ")
            return between(*raw)
        if not raw:
            raise place.error(f"found no coefficients; declared are {', '.join(known)}")
        for name in raw:
            _require(name, place, known)
        coefficients = _VECTOR.read(raw, place)
        dofs, lengths = place.system.dofs, place.system.lengths
        return vector(coefficients, measure(raw, coefficients, place.where, dofs, lengths))

    def write(self, value: Direction, place: Place) -> Any:
        names, signs = value.names, value.signs
        if signs is None:
            found = _VECTOR.write(value.coefficients or {}, place)
            return {n: _with_unit(found[n], n, value, place) for n in names}
        if signs == (1,):
            return names[0]
        if signs == (-1,):
            return {"between": [names[0], "ground"]}
        if signs in ((-1, 1), (1, -1)):
            return {"between": list(names if signs[0] < 0 else names[::-1])}
        return {n: float(s) for n, s in zip(names, signs, strict=True)}


def _require(name: str, place: Place, known: Collection[str]) -> None:
    if name not in known:
        raise place.error(
            f"no degree of freedom {name!r}{nearest(name, known)}; declared are {', '.join(known)}"
        )


def _with_unit(value: Any, name: str, direction: Direction, place: Place) -> Any:
    """A coefficient with a unit that shows the dimension of the elongation."""
    unit = {"translation": "m", "rotation": "/m"}.get(direction.measures or "")
    told = place.system.dofs.get(name, "") == direction.measures
    return value if unit is None or told or not isinstance(value, float) else f"{value!r} {unit}"


class Attachment(DirectionCodec):
    """The direction in which an element acts, in one of three keys."""

    #: Keys of which exactly one is given.
    forms = ("dof", "between", "direction")

    def keys(self, name: str, key: Key) -> dict[str, Key]:
        pair = (
            "the pair of degrees of freedom between which it acts, from the first to the second; "
            '"ground" stands still'
        )
        other = "any other direction, {a = 1, b = -0.5}; a coefficient with a unit is a lever arm"
        return {
            "dof": Key(_NAME, "the degree of freedom on which it acts"),
            "between": Key(_PAIR, pair),
            "direction": Key(self, other),
        }

    def take(self, table: dict[str, Any], name: str, place: Place, about: About) -> Any:
        given = next((form for form in self.forms if form in table), None)
        return MISSING if given is None else self.read(table[given], place.key(given, about))

    def put(self, value: Any, name: str, place: Place, about: About) -> dict[str, Any]:
        found = self.write(value, place.key(name, about))
        if isinstance(found, str):
            return {"dof": found}
        return found if "between" in found else {"direction": found}


class Plane(List):
    """Two directions."""

    def read(self, raw: Any, place: Place) -> Any:
        return tuple(super().read(raw, place))


class FreeDirection(DirectionCodec):
    """A direction, or a displacement or a velocity as a formula."""

    def read(self, raw: Any, place: Place) -> Any:
        return raw if is_formula(raw) else super().read(raw, place)

    def write(self, value: Any, place: Place) -> Any:
        if isinstance(value, Along):
            return FORMULA.write(value.function, place)
        return super().write(value, place)


class Forces(Either):
    """The name of an element, or names with factors."""

    def write(self, value: Any, place: Place) -> Any:
        return DIRECTION.write(value, place)


DIRECTION, ATTACHMENT = DirectionCodec(), Attachment()
CLASSES[Direction] = DIRECTION
FORMS |= {
    "plane": Plane(DIRECTION, 2, 2),
    "plane or formulas": Plane(FreeDirection(), 2, 2),
    "elements": Forces(Text(), _VECTOR),
}
