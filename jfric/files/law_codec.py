"""Friction laws in a file, with their numbers among those of their element, and their factors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jfric.files.codec import MISSING, Codec, Key, Place
from jfric.files.field_codecs import FORMS, Fields
from jfric.files.scalar_codecs import NUMBER, Choice
from jfric.files.table_codecs import Either, List, Record
from jfric.system.fields import About
from jfric.system.laws import LAWS, AbstractLaw, Directional, PerAxis
from jfric.system.position_factor import PeriodicFactor, SplineFactor

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
                    f"cannot be given beside {first}; allowed are {' and '.join(others)}"
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
