"""Numbers, texts, flags and choices in a file."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jax.core import Tracer

from jfric.files.codec import Codec, Mistake, Place, describe, did_you_mean
from jfric.system.expression import Expression
from jfric.system.units import UnitError, expected, to_si


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


#: Limits of a number: in words, in a JSON schema, and as a test of a number.
_LIMITS: dict[str, tuple[str, str, Callable[[Any, float], bool]]] = {
    "above": ("greater than", "exclusiveMinimum", operator.gt),
    "at_least": ("at least", "minimum", operator.ge),
    "below": ("less than", "exclusiveMaximum", operator.lt),
    "at_most": ("at most", "maximum", operator.le),
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
            words, _, holds = _LIMITS[name]
            must = must or ("" if holds(value, limit) else f"{words} {limit:g}")
        must = "finite" if isinstance(value, float) and not math.isfinite(value) else must
        if must:
            yield place.mistake(f"found {describe(raw)}, must be {must}")

    def read(self, raw: Any, place: Place) -> Any:
        return float(raw)

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"type": self.kind} | {_LIMITS[k][1]: limit for k, limit in self.limits.items()}


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
