"""Usual units, read without a package; dimensionality of all quantities."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import NamedTuple

#: Base dimensions in the order of messages.
_BASES = ("[mass]", "[length]", "[time]", "[current]", "[temperature]")


class Measure(NamedTuple):
    """Dimensionality of a quantity: powers of base dimensions, in their order, without zeros."""

    powers: tuple[tuple[str, float], ...]

    def times(self, other: Measure, power: int | float = 1) -> Measure:
        """Dimensionality of a product with ``other`` to a ``power``."""
        found = dict(self.powers)
        for name, own in other.powers:
            found[name] = found.get(name, 0) + power * own
        order = sorted(found, key=lambda k: (*(k != base for base in _BASES), k))
        return Measure(tuple((k, found[k]) for k in order if found[k]))

    def __pow__(self, power: float) -> Measure:
        return Measure(()).times(self, power)

    def __str__(self) -> str:
        shown = [(k, f"{k} ** {abs(x):g}" if abs(x) != 1 else k, x) for k, x in self.powers]
        over = " * ".join(text for _, text, x in shown if x > 0)
        under = "".join(f" / {text}" for _, text, x in shown if x < 0)
        return f"{over or 1}{under}" if shown else "dimensionless"


#: Usual units: power of ten to SI base units, and powers of mass, length, time, current and
#: temperature. Texts of these are read without the package pint, whose import takes longer than
#: everything else on the way from a file to a problem.
SYMBOLS: dict[str, tuple[int, tuple[int, ...]]] = {
    "rad": (0, ()),
    "cm": (-2, (0, 1)),
    "K": (0, (0, 0, 0, 0, 1)),
    **{
        prefix + name: (power + (-3 if name == "g" else 0), powers)
        for prefix, power in (("", 0), ("k", 3), ("M", 6), ("m", -3), ("u", -6))
        for name, powers in {
            "m": (0, 1),
            "g": (1,),
            "s": (0, 0, 1),
            "A": (0, 0, 0, 1),
            "N": (1, 1, -2),
            "J": (1, 2, -2),
            "W": (1, 2, -3),
            "Pa": (1, -1, -2),
            "Hz": (0, 0, -1),
            "V": (1, 2, -3, -1),
            "ohm": (1, 2, -3, -2),
            "H": (1, 2, -2, -2),
        }.items()
    },
}
#: A usual unit in a product, with the sign before it.
_USUAL_FACTOR = re.compile(r"([*/ ]?)([A-Za-z]+)(?:(?:\^|\*\*)(\d)(?!\d))?")


def usual_unit(text: str) -> tuple[Decimal, Measure] | None:
    """Factor and dimensionality of degrees or a product of usual units; None for other texts."""
    if text == "deg":
        return Decimal(repr(math.radians(1.0))), Measure(())
    text = text[1:] if text.startswith("1/") else text
    ten, measure, end, allowed = 0, Measure(()), 0, ("", "/")
    for factor in _USUAL_FACTOR.finditer(text):
        sign, name, power = factor.groups()
        if factor.start() != end or name not in SYMBOLS or sign not in allowed:
            return None
        (own, powers), end = SYMBOLS[name], factor.end()
        times = int(power or 1) * (-1 if sign == "/" else 1)
        ten += times * own
        measure = measure.times(Measure(tuple(zip(_BASES, powers, strict=False))), times)
        # After a quotient a blank can be read in two ways.
        allowed = ("*", "/") if "/" in text[:end] else ("*", "/", " ")
    return (Decimal(repr(float(f"1e{ten}"))), measure) if end == len(text) else None
