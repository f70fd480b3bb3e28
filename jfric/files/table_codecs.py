"""Lists and tables in a file, and values of one of several types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from jfric.files.codec import Codec, Key, Mistake, Place, did_you_mean
from jfric.system.problem import Problem


class List(Codec):
    """A list, with a length from ``least`` to ``most`` if these are given."""

    words = "a list"

    def __init__(
        self,
        of: Codec,
        least: int = 0,
        most: int | None = None,
        *,
        words: str = "",
        missing: str = "",
        become: Callable[..., Any] | None = None,
    ) -> None:
        self.of, self.least, self.most = of, least, most
        self.words, self.missing = words or self.words, missing
        #: A class whose fields are the entries.
        self.become = become

    def takes(self, raw: Any) -> bool:
        return isinstance(raw, list)

    def holds(self, value: Any) -> bool:
        if self.become is not None:
            return type(value) is self.become
        return isinstance(value, (list, tuple))

    def example(self, place: Place) -> str:
        return self.missing or self.of.example(place)

    def mistakes(self, raw: Any, place: Place) -> Iterator[Mistake]:
        yield from super().mistakes(raw, place)
        if isinstance(raw, list):
            if self.most is not None and len(raw) > self.most:
                yield place.mistake(f"found {len(raw)} entries, needed are {self.most}")
            for i, entry in enumerate(raw):
                yield from self.of.mistakes(entry, place.entry(i))
            if len(raw) < self.least:
                yield place.mistake(f"found {len(raw)} entries, needed are {self.least}")

    def read(self, raw: Any, place: Place) -> Any:
        found = [self.of.read(entry, place.entry(i)) for i, entry in enumerate(raw)]
        return found if self.become is None else self.become(*found)

    def write(self, value: Any, place: Place) -> Any:
        if hasattr(value, "ndim"):
            return self.of.write(value, place)  # an array of numbers
        entries = value if self.become is None else vars(value).values()
        return [self.of.write(entry, place.entry(i)) for i, entry in enumerate(entries)]

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "array", "items": self.of.schema(definitions)}
        found |= {"minItems": self.least} if self.least else {}
        return found | ({} if self.most is None else {"maxItems": self.most})


#: Keys of a table that a message lists.
FEW = 5


class Table(Codec):
    """A table."""

    words = "a table"

    def takes(self, raw: Any) -> bool:
        return isinstance(raw, dict)

    def holds(self, value: Any) -> bool:
        return isinstance(value, Mapping)


class Names(Table):
    """A table with names of the user's choice, each with a value of one type."""

    def __init__(self, of: Codec) -> None:
        self.of = of

    def mistakes(self, raw: Any, place: Place) -> Iterator[Mistake]:
        yield from super().mistakes(raw, place)
        if isinstance(raw, dict):
            for name, value in raw.items():
                yield from self.of.mistakes(value, place.key(name))

    def read(self, raw: Any, place: Place) -> Any:
        return {name: self.of.read(value, place.key(name)) for name, value in raw.items()}

    def write(self, value: Any, place: Place) -> Any:
        return {name: self.of.write(x, place.key(name)) for name, x in dict(value).items()}

    def omits(self, value: Any, default: Any) -> bool:
        return value is None or value == {}

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.of.schema(definitions)}


class Either(Codec):
    """A value of one of several types; the first type gives the message if none fits."""

    def __init__(self, *options: Codec) -> None:
        self.options = options

    def option(self, raw: Any) -> Codec:
        """The codec for a value of a file."""
        return next((option for option in self.options if option.takes(raw)), self.options[0])

    def takes(self, raw: Any) -> bool:
        return self.option(raw).takes(raw)

    def expected(self, place: Place) -> str:
        return self.options[0].expected(place)

    def example(self, place: Place) -> str:
        return self.options[0].example(place)

    def mistakes(self, raw: Any, place: Place) -> Iterator[Mistake]:
        return self.option(raw).mistakes(raw, place)

    def read(self, raw: Any, place: Place) -> Any:
        return self.option(raw).read(raw, place)

    def write(self, value: Any, place: Place) -> Any:
        return next(x for x in reversed(self.options) if x.holds(value)).write(value, place)

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"oneOf": [option.schema(definitions) for option in self.options]}


class Record(Table):
    """A table whose keys are all known; exactly one of the keys ``one_of`` is given."""

    def __init__(
        self,
        name: str,
        meaning: str,
        keys: dict[str, Key],
        one_of: Collection[str] = (),
        *,
        words: str = "",
        hints: bool = False,
    ) -> None:
        self.name, self.meaning, self.table, self.one_of = name, meaning, keys, one_of
        few = f" with {', '.join(keys)}" if 0 < len(keys) <= FEW else ""
        self.words = words or f"a table{few}"
        #: Whether messages say what to give for a missing key.
        self.hints = hints

    def mistakes(self, raw: Any, place: Place) -> Iterator[Mistake]:
        yield from super().mistakes(raw, place)
        if not isinstance(raw, dict):
            return
        found = [*self._mistakes(raw, place)]
        yield from found or self.contradictions(raw, place)

    def _mistakes(self, raw: dict[str, Any], place: Place) -> Iterator[Mistake]:
        for name, key in self.table.items():
            at = place.key(name, key.about)
            if name in raw:
                yield from key.codec.mistakes(raw[name], at)
            elif key.needed:
                yield at.mistake("missing" + self.hint(key, at))
        for name, value in raw.items():
            if name not in self.table:
                sentence = self.unknown(name, value, place)
                yield Mistake(place.key(name).mistake(sentence).sentence, unknown=True)

    def hint(self, key: Key, place: Place) -> str:
        """Words that say what to give for a missing key."""
        return f"; give {key.codec.example(place)}" if self.hints else ""

    def unknown(self, name: str, value: Any, place: Place) -> str:
        """Sentence on a key that does not exist in the table."""
        return f"unknown field{did_you_mean(name, self.table)}, allowed are {', '.join(self.table)}"

    def contradictions(self, raw: dict[str, Any], place: Place) -> Iterator[Mistake]:
        """Mistakes in the combination of given keys."""
        if self.one_of:
            yield from exactly_one(raw, self.one_of, place)

    def read(self, raw: Any, place: Place) -> Any:
        return {
            name: key.codec.read(raw[name], place.key(name, key.about))
            for name, key in self.table.items()
            if name in raw
        }

    def write(self, value: Any, place: Place) -> Any:
        return {
            name: key.codec.write(value[name], place.key(name, key.about))
            for name, key in self.table.items()
            if name in value
        }

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        if self.name not in definitions:
            definitions[self.name] = {}  # the table may contain itself
            definitions[self.name] |= self.shape(definitions)
        return {"$ref": f"#/$defs/{self.name}"}

    def shape(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """JSON schema of the table itself."""
        needed = [name for name, key in self.table.items() if key.needed]
        return {
            "type": "object",
            "description": self.meaning,
            "additionalProperties": False,
            "properties": {name: key.schema(definitions) for name, key in self.table.items()},
            **({"required": needed} if needed else {}),
        }


class SettingsTable(Record):
    """A table of settings: the field of :class:`jfric.files.config.Config` with its name."""

    def of(self, raw: dict[str, Any], problem: Problem, where: str) -> Any:
        """Content of the table at ``where``, with numbers in SI units and full names of the
        ``problem``; raises :class:`jfric.ProblemError`."""
        return self.read(raw, Place(where))

    def kept(self, value: Any) -> dict[str, Any]:
        """The content as a table of a file."""
        return dict(value)


def exactly_one(raw: dict[str, Any], names: Collection[str], place: Place) -> Iterator[Mistake]:
    """The mistake of a table that gives none of ``names``, or several."""
    found = [name for name in names if name in raw]
    if len(found) != 1:
        given = " and ".join(found) or "none"
        yield place.mistake(f"found {given}, exactly one of {', '.join(names)} is needed")
