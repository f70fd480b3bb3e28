"""Codecs of the fields of elements, laws and functions of time, by the declarations of fields; of
directions, and the dimension of the elongation along them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any

from jfric.errors import nearest
from jfric.files.codec import MISSING, NUMBER, Choice, Codec, Flag, Key, Number, Place, Text, Whole
from jfric.files.table_codecs import Either, List, Names, Record
from jfric.numerics import limits
from jfric.system.direction import Direction, along, between, measure, vector
from jfric.system.elements import Along, is_formula
from jfric.system.fields import About, about, admitted, words_of


class Formula(Text):
    """A text for a function; Python functions cannot be in a file."""

    def write(self, value: Any, place: Place) -> str:
        if not isinstance(value, str):
            raise place.error("a Python function cannot be written to a file")
        return value


class FormulaNumber(Number):
    """A formula, or a number in place of it."""

    def read(self, raw: Any, place: Place) -> Any:
        return raw

    def write(self, value: Any, place: Place) -> str:
        return FORMULA.write(value, place)


class Formulas(Names):
    """Formulas by name; in Python pairs, or one function that returns all values."""

    def write(self, value: Any, place: Place) -> Any:
        is_several = isinstance(value, tuple)
        return super().write(value, place) if is_several else FORMULA.write(value, place)


class OneOrSeveral(Either):
    """A formula, or a list of them; one alone is written without the list."""

    def write(self, value: Any, place: Place) -> Any:
        found = [FORMULA.write(x, place) for x in value]
        return found[0] if len(found) == 1 else found


class Gap(Number):
    """A number along the normal of a contact; without one it may be a formula."""

    def take(self, table: dict[str, Any], name: str, place: Place, about: About) -> Any:
        is_formula = isinstance(table.get(name), str) and not {"normal", "point"} & table.keys()
        return table[name] if is_formula else super().take(table, name, place, about)

    def write(self, value: Any, place: Place) -> Any:
        function = getattr(value, "function", None)
        return super().write(value, place) if function is None else FORMULA.write(function, place)


FORMULA = Formula()
_TRIPLE = List(NUMBER, 3, 3, missing="three numbers such as [0, 0, 0.3]")
_PAIR = List(NUMBER, 2, 2, missing="two numbers such as [0.5, 0]")
#: Codecs by the form that a field declares; modules with their own types add theirs.
FORMS: dict[str, Codec] = {
    "number": NUMBER,
    "list": List(Number("lists hold numbers only")),
    "numbers": List(NUMBER),
    "pair": _PAIR,
    "pairs": Names(_PAIR),
    "triple": _TRIPLE,
    "triples": Names(_TRIPLE),
    "inertia": List(NUMBER, 6, 6, missing="six numbers: Jxx, Jyy, Jzz, Jxy, Jxz, Jyz"),
    "gap": Gap(),
    "formula": FORMULA,
    "formula or several": OneOrSeveral(FORMULA, List(FORMULA)),
    "formulas": Formulas(FormulaNumber()),
    "name": Text(),
    "text": Text(missing="a point such as 'rod.tip'"),
    "names": OneOrSeveral(Text(), List(Text())),
    "texts": List(Text(), 2, 2, missing="two points such as ['rod.tip', 'ground']"),
    "bodies": List(Text(), 2, 2, missing="two bodies such as ['wheel', 'pinion']"),
    "corners": List(Text(), missing="corners such as ['box.a', 'box.b', 'box.c']"),
    "line": Either(Text(missing="a line such as 'ground'"), List(Text(), 2, 2)),
    "flag": Flag(),
    "count": Whole(strict=True, at_least=1, at_most=limits.PARTS),
}
#: Codecs by the class that the annotation of a field admits.
CLASSES: dict[type, Codec] = {}


def codec_of(options: tuple[Any, ...], field: About, form: str = "number") -> Codec:
    """The codec of a field whose annotation admits ``options``; ``form``: the default form."""
    if field.form is not None:
        return FORMS[field.form]
    if words := words_of(options):
        return Choice(*words)
    return next((codec for cls, codec in CLASSES.items() if cls in options), FORMS[form])


def _needed(field: dataclasses.Field) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _plain_default(field: dataclasses.Field) -> Any:
    """The default of a field if it is a number, a text or a flag."""
    plain = isinstance(field.default, (int, float, str)) and field.default != math.inf
    return field.default if plain else None


class Fields(Record):
    """A table with the fields of a class.

    ``meanings``: of its keys; ``more``: keys that are no fields; ``form``: of fields that do not
    declare one; ``without``: fields that are not in files."""

    def __init__(
        self,
        cls: type,
        name: str,
        meaning: str = "",
        meanings: Mapping[str, str] | None = None,
        more: Mapping[str, Key] | None = None,
        *,
        one_of: Collection[str] = (),
        form: str = "number",
        without: Collection[str] = (),
        codecs: Mapping[str, Codec] | None = None,
    ) -> None:
        self.cls, self.about, options = cls, about(cls), admitted(cls)
        self.fields = {f.name: f for f in dataclasses.fields(cls) if f.name not in without}
        self.codecs = {f: codec_of(options[f], self.about[f], form) for f in self.fields}
        self.codecs |= codecs or {}
        keys: dict[str, Key] = {}
        for f, field in self.fields.items():
            key = Key(self.codecs[f], "", _plain_default(field), _needed(field), self.about[f])
            keys |= self.codecs[f].keys(f, key)
        keys |= more or {}
        for k, words in (meanings or {}).items():
            keys |= {k: keys[k]._replace(meaning=words)} if k in keys else {}
        super().__init__(name, meaning, keys, one_of, hints=True)

    def holds(self, value: Any) -> bool:
        return type(value) is self.cls

    def read(self, raw: Any, place: Place) -> Any:
        found = {f: self.codecs[f].take(raw, f, place, self.about[f]) for f in self.fields}
        return self.cls(**{f: value for f, value in found.items() if value is not MISSING})

    def write(self, value: Any, place: Place) -> Any:
        found: dict[str, Any] = {}
        for f, field in self.fields.items():
            own = getattr(value, f)
            if not self.codecs[f].omits(own, field.default):
                found |= self.codecs[f].put(own, f, place, self.about[f])
        return found


_WORDS = "a degree of freedom such as 'u'"
_NAME, _ENDS, _VECTOR = Text(_WORDS), List(Text(_WORDS), 2, 2), Names(NUMBER)


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
    {"between": Key(_ENDS, "a pair of them, from the first to the second", needed=True)},
)


class DirectionCodec(Either):
    """A name, a pair of names, or a table with names and coefficients."""

    def __init__(self) -> None:
        super().__init__(_NAME, _ENDS, _ALONG, _BETWEEN, _VECTOR)

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
            "between": Key(_ENDS, pair),
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
