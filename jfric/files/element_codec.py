"""Elements in a file: tables with the fields of their classes, one alone or several by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jfric.files.function_codec  # noqa: F401 (forms of fields)
from jfric.files.codec import MISSING, Codec, Mistake, Place
from jfric.files.direction_codec import ATTACHMENT, DirectionCodec, Plane
from jfric.files.field_codecs import Fields
from jfric.files.law_codec import LawCodec
from jfric.files.scalar_codecs import Choice, Text
from jfric.files.table_codecs import Table, exactly_one
from jfric.system.direction import Direction
from jfric.system.elements import SECTIONS
from jfric.system.fields import about, admitted
from jfric.system.laws import LAWS, AbstractLaw
from jfric.system.naming import kind_of
from jfric.system.units import Dimension

#: Fields that are read first: the direction of an element decides the dimension of its numbers.
_FIRST = (DirectionCodec, Plane, Choice, Text)


class ElementCodec(Fields):
    """A table with the fields of an element, whose dimensions depend on its direction."""

    def __init__(self, cls: type, laws: Mapping[str, type[AbstractLaw]]) -> None:
        with_spin = "spin" in about(cls)
        law = LawCodec({name: x for name, x in laws.items() if with_spin or not x.spins})
        fields = admitted(cls)
        codecs: dict[str, Codec] = {f: law for f, x in fields.items() if AbstractLaw in x}
        codecs |= {"direction": ATTACHMENT} if Direction in fields.get("direction", ()) else {}
        super().__init__(cls, cls.__name__, inspect.getdoc(cls) or "", codecs=codecs)

    def unknown(self, name: str, value: Any, place: Place) -> str:
        section, alone = place.where, "." not in place.where
        if alone and isinstance(value, dict) and {"dof", "displacement"} & self.table.keys():
            return (
                f"a table among the fields of {section}; write one [{section}] with fields, "
                f"or only named ones such as [{section}.{name}]"
            )
        return super().unknown(name, value, place)

    def contradictions(self, raw: dict[str, Any], place: Place) -> Iterator[Mistake]:
        if self.codecs.get("direction") is not ATTACHMENT or {"sliding", "plane"} & raw.keys():
            return
        may_be_free = self.fields["direction"].default is None and "plane" not in self.fields
        if not may_be_free or raw.keys() & ATTACHMENT.forms:
            yield from exactly_one(raw, ATTACHMENT.forms, place)

    def read(self, raw: Any, place: Place) -> Any:
        given = {name: field.default for name, field in self.fields.items()}
        found: dict[str, Any] = {}
        for name in sorted(self.fields, key=lambda f: not isinstance(self.codecs[f], _FIRST)):
            value = self.codecs[name].take(
                raw, name, self._at(name, given, place), self.about[name]
            )
            if value is not MISSING:
                found[name] = given[name] = value
        return self.cls(**found)

    def measures(self, element: Any, place: Place) -> dict[str, Dimension | None]:
        """Dimensions of the fields of an element; None if unknown."""
        at = {name: self._at(name, vars(element), place) for name in self.fields}
        return {name: at[name].key(name, self.about[name]).measures for name in self.fields}

    def _at(self, name: str, given: Mapping[str, Any], place: Place) -> Place:
        return place._replace(kind=kind_of(given, self.about[name], place.system.dofs))


class Section(Table):
    """One element, or several by name."""

    def __init__(self, element: ElementCodec) -> None:
        self.element = element

    def is_flat(self, raw: dict[str, Any]) -> bool:
        """Whether a section is written as one element, not as a table of named ones."""
        fields = self.element.table
        return not raw or any(k in fields or not isinstance(v, dict) for k, v in raw.items())

    def mistakes(self, raw: Any, place: Place) -> Iterator[Mistake]:
        if not isinstance(raw, dict) or self.is_flat(raw):
            yield from self.element.mistakes(raw, place)
        else:
            for name, table in raw.items():
                yield from self.element.mistakes(table, place.key(name))

    def read(self, raw: Any, place: Place) -> dict[str, Any]:
        if self.is_flat(raw):
            return {place.where: self.element.read(raw, place)}
        return {name: self.element.read(table, place.key(name)) for name, table in raw.items()}

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        one = self.element.schema(definitions)
        return {"oneOf": [one, {"type": "object", "additionalProperties": one}]}


def is_python_only(cls: type) -> bool:
    """Whether elements of a class hold a function that no text stands for."""
    return (Callable,) in admitted(cls).values()


def element_codec(section: str) -> ElementCodec:
    """The codec of a section's elements."""
    return _codec(SECTIONS[section], tuple(LAWS.items()))


@functools.cache
def _codec(cls: type, laws: tuple[tuple[str, type[AbstractLaw]], ...]) -> ElementCodec:
    return ElementCodec(cls, dict(laws))
