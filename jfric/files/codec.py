"""Codecs: representations of the values of one type in a file; those of numbers, texts and choices.

A codec finds mistakes in the shape of a value (``mistakes``), reads it, writes it, and gives its
JSON schema. The shape of a whole file is checked before any of its values is read.
"""

from __future__ import annotations

import abc
import math
import operator
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jax.core import Tracer

from jfric.errors import ProblemError, close_matches, quoted, within
from jfric.system.expression import Expression
from jfric.system.fields import POWERS, About
from jfric.system.naming import power_dimension
from jfric.system.units import Dimension, UnitError, expected, to_si

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


class Number(Codec):
    """A number in SI units, a quantity (``"5 kN/m"``), or an expression (``"$m*$g"``) unless it
    ``refuses`` expressions with a sentence on what is needed."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses

    def takes(self, raw: Any) -> bool:
        is_number = isinstance(raw, (int, float, str)) and not isinstance(raw, bool)
        return is_number and not (isinstance(raw, int) and abs(raw) > 1e300)

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"anyOf": [{"type": "number"}, {"type": "string"}]}

    def expected(self, place: Place) -> str:
        return expected(place.measures)

    def read(self, raw: Any, place: Place) -> Any:
        with place.within(UnitError):
            found = to_si(raw, place.measures)
        if self.refuses and isinstance(found, Expression):
            raise place.error(f"found the expression {raw!r}, {self.refuses}")
        return found

    def write(self, value: Any, place: Place) -> Any:
        if isinstance(value, str):
            return value  # the text of a file
        if isinstance(value, Expression):
            return value.text
        if isinstance(value, Tracer):
            raise place.error("a value being traced by jax cannot be written to a file")
        return np.asarray(value, dtype=float).tolist()


NUMBER = Number()
#: A number without expressions.
PLAIN = Number("expected a number")


class Limit(NamedTuple):
    """A limit of a number: in words, in a JSON schema, and as a test of a number."""

    words: str
    schema: str
    holds: Callable[[Any, float], bool]


LIMITS = {
    "above": Limit("greater than", "exclusiveMinimum", operator.gt),
    "at_least": Limit("at least", "minimum", operator.ge),
    "below": Limit("less than", "exclusiveMaximum", operator.lt),
    "at_most": Limit("at most", "maximum", operator.le),
}


class Real(Codec):
    """A real number without a unit, within ``limits``: above, at_least, below, at_most."""

    words, kind = "a number", "number"

    def __init__(self, **limits: int | float) -> None:
        self.limits = limits

    def takes(self, raw: Any) -> bool:
        try:
            return NUMBER.takes(raw) and isinstance(float(raw), float)
        except ValueError:
            return False

    def expected(self, place: Place) -> str:
        return self.words

    def mistakes(self, raw: Any, place: Place) -> Iterator[Mistake]:
        if not self.takes(raw):
            unit = " in SI units, without a unit" if isinstance(raw, str) else ""
            words = self.words + unit * (self.kind == "number")
            yield place.mistake(f"found {describe(raw)}, expected {words}")
            return
        value, must = self.read(raw, place), ""
        for name, limit in self.limits.items():
            found = LIMITS[name]
            must = must or ("" if found.holds(value, limit) else f"{found.words} {limit:g}")
        must = "finite" if isinstance(value, float) and not math.isfinite(value) else must
        if must:
            yield place.mistake(f"found {describe(raw)}, must be {must}")

    def read(self, raw: Any, place: Place) -> Any:
        return float(raw)

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"type": self.kind} | {LIMITS[k].schema: limit for k, limit in self.limits.items()}


class Whole(Real):
    """A whole number within ``limits``; if not ``strict``, it may be written as ``1e6``."""

    words, kind = "a whole number", "integer"

    def __init__(self, *, strict: bool = False, **limits: int | float) -> None:
        super().__init__(**limits)
        self.strict = strict

    def takes(self, raw: Any) -> bool:
        if isinstance(raw, int):
            return not isinstance(raw, bool)
        return not self.strict and super().takes(raw) and float(raw).is_integer()

    def read(self, raw: Any, place: Place) -> int:
        return raw if isinstance(raw, int) else int(float(raw))


class Text(Codec):
    """A text; ``missing``: advice if there is none."""

    words = "a text"

    def __init__(self, words: str = "", missing: str = "") -> None:
        self.words = words or self.words
        self.missing = missing or self.words

    def takes(self, raw: Any) -> bool:
        return isinstance(raw, str)

    def holds(self, value: Any) -> bool:
        return isinstance(value, str)

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"type": "string"}

    def example(self, place: Place) -> str:
        return self.missing


class Flag(Codec):
    """True or false; the default is not written."""

    words = "true or false"

    def takes(self, raw: Any) -> bool:
        return isinstance(raw, bool)

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"type": "boolean"}

    def omits(self, value: Any, default: Any) -> bool:
        return value == default


class Choice(Codec):
    """One of a few words."""

    def __init__(self, *options: str) -> None:
        self.options = options

    def takes(self, raw: Any) -> bool:
        return isinstance(raw, str) and raw in self.options

    def mistakes(self, raw: Any, place: Place) -> Iterator[Mistake]:
        if not self.takes(raw):
            allowed = ", ".join(map(repr, self.options))
            near = did_you_mean(str(raw), self.options)
            yield place.mistake(f"found {describe(raw)}{near}, allowed are {allowed}")

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.options)}


class ReadError(Exception):
    """Error with the reason why a file cannot be read, in a few words."""


def read_text(path: Path) -> str:
    """The text of a file in UTF-8; raises :class:`ReadError`."""
    try:
        # Devices such as /dev/zero have no end; pipes have one.
        if stat.S_ISCHR(path.stat().st_mode):
            raise ReadError("cannot read the file (it is a device)")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ReadError("not a text file in UTF-8") from None
    except OSError as error:
        raise ReadError(f"cannot read the file ({error.strerror})") from None
    except ValueError:  # a zero byte in the name
        raise ReadError("cannot read the file (no valid name)") from None
