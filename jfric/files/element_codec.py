"""Elements in a file: tables with the fields of their classes, one alone or several by name; with
the numbers of their friction laws, and their factors, among these fields."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jfric.files.function_codec  # noqa: F401 (forms of fields)
from jfric.files.codec import MISSING, NUMBER, Choice, Codec, Key, Mistake, Place, Text
from jfric.files.field_codecs import ATTACHMENT, FORMS, DirectionCodec, Fields, Plane
from jfric.files.table_codecs import Either, List, Record, Table, exactly_one
from jfric.system.direction import Direction
from jfric.system.elements import SECTIONS
from jfric.system.fields import About, about, admitted
from jfric.system.laws import LAWS, AbstractLaw, Directional, PerAxis
from jfric.system.naming import kind_of
from jfric.system.position_factor import PeriodicFactor, SplineFactor
from jfric.system.units import Dimension

#: Meanings of the keys of laws, in every section that takes a law.
_MEANINGS = {
    "mu": "coefficient of Coulomb's law",
    "mu_s": "coefficient in stick",
    "mu_d": "coefficient in sliding; with Stribeck and velocity weakening that of fast sliding",
    "v_s": "velocity over which the coefficient falls from mu_s to mu_d",
    "exponent": "exponent of v/v_s in Stribeck's law",
    "mu_v": "increase of the coefficient with the sliding velocity",
    "peak": "static limit over mu_s, where it exceeds that of sliding",
    "speeds": "sliding velocities at the knots of a friction curve, beginning with 0",
    "curve": "coefficients at these knots, or {positive = [...], negative = [...]}",
    "monotone": "whether the curve turns only where its values at the knots do",
}


def _directional(name: str, meaning: str, what: str, form: str) -> Fields:
    meanings = {
        "positive": f"{what} where the sliding velocity is positive",
        "negative": f"{what} where it is negative",
    }
    return Fields(Directional, name, meaning, meanings, form=form)


#: One number, one for each sign of sliding, or one for each direction of a plane.
FORMS["coefficient"] = Either(
    NUMBER,
    _directional(
        "DirectionalTable", "A coefficient for each direction of sliding.", "coefficient", "number"
    ),
    List(NUMBER, 2, 2, become=PerAxis),
)
#: Values at the knots of a curve, for both directions of sliding or for each.
FORMS["knots"] = Either(
    FORMS["numbers"],
    _directional(
        "DirectionalKnots",
        "Values of a curve at its knots, for each direction of sliding.",
        "values",
        "numbers",
    ),
)


class LawCodec(Codec):
    """A law, recognised by its keys; ``law``: its name, if the keys do not identify it."""

    def __init__(self, laws: Mapping[str, type[AbstractLaw]]) -> None:
        self.laws = laws
        self.fields = {name: Fields(cls, name, form="coefficient") for name, cls in laws.items()}

    def takes(self, raw: Any) -> bool:
        raise NotImplementedError  # a law has several keys

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def keys(self, name: str, key: Key) -> dict[str, Key]:
        found: dict[str, Key] = {}
        for law in self.fields.values():
            found = law.table | found
        order = dict.fromkeys(k for law in self.fields.values() for k in law.table)
        keys = {
            k: found[k]._replace(meaning=_MEANINGS.get(k, ""), needed=False, default=None)
            for k in order
        }
        return keys | {
            "law": Key(Choice(*self.laws), "the law, where the fields fit more than one")
        }

    def take(self, table: dict[str, Any], name: str, place: Place, about: About) -> Any:
        every = {key for law in self.fields.values() for key in law.table}
        given, chosen = every & table.keys(), table.get("law")
        if not given and chosen is None:
            return MISSING
        candidates = self.laws if chosen is None else {chosen: self.laws[chosen]}
        law = self._pick(given, candidates)
        if law is None:
            forms = ", or ".join(" and ".join(self._required(name)) for name in candidates)
            raise place.error(
                f"found {', '.join(sorted(given)) or 'no coefficient'}, "
                f"a friction law needs {forms}"
            )
        return self.fields[law].read(table, place)

    def _pick(self, keys: set[str], candidates: Mapping[str, Any]) -> str | None:
        """The first law that has all of ``keys`` and needs no others."""
        known = {name: self.fields[name].table for name in candidates}
        fits = (n for n, table in known.items() if {*self._required(n)} <= keys <= table.keys())
        return next(fits, None)

    def _required(self, law: str) -> list[str]:
        return [name for name, key in self.fields[law].table.items() if key.needed]

    def put(self, value: Any, name: str, place: Place, about: About) -> dict[str, Any]:
        names = {cls: name for name, cls in LAWS.items()}
        if type(value) not in names:
            raise place.error(
                f"the law {type(value).__name__} is not in jfric.system.laws.LAWS and cannot be "
                "written to a file"
            )
        law = names[type(value)]
        found = self.fields[law].write(value, place)
        return found if self._pick({*found}, self.laws) == law else found | {"law": law}


class PositionFactor(Record):
    """A factor on friction: of a period with harmonics, or through values at knots."""

    def __init__(self) -> None:
        meanings = {
            "period": "displacement after which the factor repeats itself",
            "cosine": "cosines of the factor 1 + ..., those of the period first",
            "sine": "its sines",
            "x": "displacements at the knots of a factor, which is constant beyond them",
            "factor": "factors at these knots",
        }
        self.forms = [Fields(cls, "", "", meanings) for cls in (PeriodicFactor, SplineFactor)]
        keys = {k: key._replace(needed=False) for f in self.forms for k, key in f.table.items()}
        super().__init__("PositionTable", str(self.__doc__), keys, ("period", "x"))

    def read(self, raw: Any, place: Place) -> Any:
        form = self.forms["x" in raw]
        first, *others = form.table
        for key in raw:
            if key not in form.table:
                raise place.key(key).error(
                    f"cannot be given together with {first}; allowed are {' and '.join(others)}"
                )
        if first == "x" and "factor" not in raw:
            raise place.key("factor").error("is missing; give one for each of x")
        return form.read(raw, place)

    def write(self, value: Any, place: Place) -> Any:
        for form in self.forms:
            if form.holds(value):
                return {k: x for k, x in form.write(value, place).items() if x != []}
        raise place.error(f"a {type(value).__name__} cannot be written to a file")


FORMS["factor"] = PositionFactor()


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
