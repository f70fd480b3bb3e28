"""Codecs of the fields of elements, laws and functions of time, by the declarations of fields."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any

from jfric.files.codec import MISSING, Codec, Key, Place
from jfric.files.scalar_codecs import NUMBER, Choice, Flag, Number, Text, Whole
from jfric.files.table_codecs import Either, List, Names, Record
from jfric.numerics import limits
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
