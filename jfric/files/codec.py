"""A codec: representation of the values of one type in a file.

A codec finds mistakes in the shape of a value (``mistakes``), reads it, writes it, and gives its
JSON schema. The shape of a whole file is checked before any of its values is read.
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from jfric.errors import ProblemError, close_matches, quoted, within
from jfric.system.fields import POWERS, About
from jfric.system.naming import power_dimension
from jfric.system.units import Dimension

#: Result of a codec of several keys if a file has none of them.
MISSING: Any = object()


class System(NamedTuple):
    """Names that values of a file refer to, and the folder of its other files."""

    dofs: Mapping[str, str] = {}
    bases: Collection[str] = ()
    #: Shared parameters that were given with a unit.
    lengths: Collection[str] = ()
    folder: Path = Path()


class Place(NamedTuple):
    """Path of a value in a file, and the dimension of its numbers there."""

    where: str = ""
    about: About = About()
    #: Whether the value belongs to a translation or a rotation; None if unknown.
    kind: str | None = "translation"
    #: Dimension of the value of which this one is a part.
    inside: Dimension | None = None
    system: System = System()

    @property
    def measures(self) -> Dimension | None:
        """Dimension of the numbers here; None if unknown."""
        return self.about.dimension(self.kind, self.inside)

    def key(self, name: str, about: About | None = None) -> Place:
        """The place of a key; ``about`` describes its value if it differs from this one."""
        where = f"{self.where}.{name}" if self.where else name
        if about is None:
            return self._replace(where=where)
        return self._replace(where=where, about=about, inside=self.measures)

    def entry(self, index: int) -> Place:
        """The place of an entry of a list; messages count from 1."""
        place = self._replace(where=f"{self.where}[{index + 1}]")
        if self.about.measures != (POWERS, POWERS):
            return place
        return place._replace(about=About(), inside=power_dimension(index + 1, self.kind))

    def error(self, sentence: str) -> ProblemError:
        """Error with a sentence about the value at this place."""
        return ProblemError(f"{self.where}: {sentence}")

    def within(self, *kinds: type[Exception]) -> AbstractContextManager[None]:
        """Block whose errors, those of ``kinds`` as well, are about the value at this place."""
        return within(f"{self.where}: ", *kinds)

    def mistake(self, sentence: str) -> Mistake:
        """Mistake in the shape of the value at this place."""
        return Mistake(f"{self.where}: {sentence}" if self.where else sentence)


class Mistake(NamedTuple):
    """One sentence about the shape of a file. Unknown keys come before keys that are missing."""

    sentence: str
    unknown: bool = False


def describe(value: Any) -> str:
    """A value of a file in words."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a number of {value.bit_length()} bits"  # too long for Python to write
    return str(value)


def did_you_mean(found: str, allowed: Iterable[str]) -> str:
    """`` (did you mean 'mu'?)`` for the nearest of ``allowed``, or nothing."""
    names = list(allowed)
    close = close_matches(found, names)
    # Short names have no useful ratio of similarity: take a name with the same beginning.
    close = close or [n for n in names if found and n.lower().startswith(found.lower())][:1]
    return f" (did you mean {close[0]!r}?)" if close else ""


class Codec(abc.ABC):
    """Representation of one type in a file; values stand as they are unless a class differs."""

    #: Words for the values that are allowed.
    words: str = "a value"

    @abc.abstractmethod
    def takes(self, raw: Any) -> bool:
        """Whether a value of a file is of this type, whatever its content."""

    def holds(self, value: Any) -> bool:
        """Whether a value of a problem is written by this codec."""
        return True

    @abc.abstractmethod
    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """JSON schema of the values; separate tables go to ``definitions``."""

    def expected(self, place: Place) -> str:
        """Words for what a value must be."""
        return self.words

    def example(self, place: Place) -> str:
        """Words that say what to give for a missing value."""
        return self.expected(place)

    def mistakes(self, raw: Any, place: Place) -> Iterator[Mistake]:
        """Mistakes in the shape of a value."""
        if not self.takes(raw):
            yield place.mistake(f"found {describe(raw)}, expected {self.expected(place)}")

    def read(self, raw: Any, place: Place) -> Any:
        """The object for a value of a good shape; raises :class:`jfric.ProblemError`."""
        return raw

    def write(self, value: Any, place: Place) -> Any:
        """The value as plain tables, lists, numbers and texts."""
        return list(value) if isinstance(value, tuple) else value

    def omits(self, value: Any, default: Any) -> bool:
        """Whether a value is not written at all."""
        return value is None

    def keys(self, name: str, key: Key) -> dict[str, Key]:
        """Keys of a table for the field ``name`` of a class; ``key``: the key of a single one."""
        return {name: key}

    def take(self, table: dict[str, Any], name: str, place: Place, about: About) -> Any:
        """The field ``name`` of a class, from the table at ``place``, or :data:`MISSING`."""
        return self.read(table[name], place.key(name, about)) if name in table else MISSING

    def put(self, value: Any, name: str, place: Place, about: About) -> dict[str, Any]:
        """The keys of the table at ``place`` that represent the field ``name``."""
        return {name: self.write(value, place.key(name, about))}


class Key(NamedTuple):
    """A key of a table: its type, its meaning, and its default."""

    codec: Codec
    meaning: str = ""
    default: Any = None
    needed: bool = False
    about: About = About()

    @property
    def units(self) -> list[str]:
        """Units along a translation and along a rotation; empty if every unit is allowed."""
        kinds = ("translation", "rotation")
        return sorted({d.unit or "1" for k in kinds if (d := self.about.dimension(k))})

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """JSON schema of the value."""
        found, units = self.codec.schema(definitions), " or ".join(self.units)
        unit = f"[{units}]" if units and "[" not in self.meaning else ""
        description = f"{self.meaning} {unit}".strip()
        found |= {"description": description} if description else {}
        return found if self.default is None else found | {"default": self.default}
