"""Quantities with units as text, converted to numbers in SI base units."""

from __future__ import annotations

import functools
import math
import re
from decimal import Decimal, DecimalException
from typing import Any, NamedTuple

from jfric.errors import quoted
from jfric.system.expression import LONGEST, WORDS, Expression

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*([A-Za-zµμΩ°%].*|/\s*[A-Za-z].*)?\s*")
#: Numbers and words of a text, for telling arithmetic from a quantity with a unit.
_TOKEN = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|([^\W\d]\w*)|[-+*/(). ]+|(.)")
#: What a unit may be made of: names, and after a power a number of at most two digits. Longer
#: exponents, and powers of powers, may be computed for ever.
_LONGEST_UNIT = 100
_EXPONENT = r"[-+]?\d{1,2}(?:\.\d{1,4})?"
_SUPERSCRIPT = "⁰¹²³⁴-⁹"
_UNIT = re.compile(
    rf"(?:1?\s*/)?(?:(?!\d)(?:(?![{_SUPERSCRIPT}])\w)+'?|[°%µμΩ]|\s|[*/()]"
    rf"|(?:\^|\*\*)\s*(?:{_EXPONENT}|\(\s*{_EXPONENT}\s*(?:/\s*\d{{1,2}}\s*)?\))(?!\s*(?:\^|\*\*|\d))"
    rf"|[⁺⁻]?[{_SUPERSCRIPT}]{{1,2}}(?![{_SUPERSCRIPT}]))+"
)


class Dimension(NamedTuple):
    """What a field measures: its name, its SI unit and a text that a user may copy."""

    name: str
    unit: str
    example: str


#: Dimensions by name. Angles count as pure numbers, but are named apart for the messages.
DIMENSIONS = {
    d.name: d
    for d in (
        Dimension("pure number", "", "0.3"),
        Dimension("angle", "rad", "30 deg"),
        Dimension("angular velocity", "rad/s", "2 rad/s"),
        Dimension("frequency", "Hz", "2 Hz"),
        Dimension("time", "s", "4 s"),
        Dimension("length", "m", "10 mm"),
        Dimension("velocity", "m/s", "0.2 m/s"),
        Dimension("inverse length", "1/m", "2 /m"),
        Dimension("inverse velocity", "s/m", "0.1 s/m"),
        Dimension("inverse angular velocity", "s/rad", "0.1 s/rad"),
        Dimension("acceleration", "m/s^2", "9.81 m/s^2"),
        Dimension("mass", "kg", "5 kg"),
        Dimension("moment of inertia", "kg*m^2", "0.5 kg*m^2"),
        Dimension("force", "N", "1.5 kN"),
        Dimension("torque", "N*m", "20 N*m"),
        Dimension("stiffness", "N/m", "5 kN/m"),
        Dimension("rotational stiffness", "N*m/rad", "50 N*m/rad"),
        Dimension("damping", "N*s/m", "20 N*s/m"),
        Dimension("rotational damping", "N*m*s/rad", "0.1 N*m*s/rad"),
        Dimension("drag", "kg/m", "0.5 kg/m"),
        Dimension("rotational drag", "kg*m^2", "0.5 kg*m^2"),
        Dimension("mass times length", "kg*m", "0.5 kg*m"),
        Dimension("impulse", "N*s", "2 N*s"),
    )
}


class UnitError(ValueError):
    """A text that is no quantity of the expected kind; the message starts with ``found``."""


@functools.cache
def _registry():
    import pint  # slow to import: only where a text with a unit occurs

    return pint.UnitRegistry()


@functools.cache
def _unit(text: str) -> tuple[Decimal, Any]:
    """Factor to SI base units and dimensionality of a unit; raises :class:`UnitError`."""
    if text and (len(text) > _LONGEST_UNIT or not _UNIT.fullmatch(text)):
        raise UnitError(f"found the unknown unit {quoted(text)}")
    registry = _registry()
    try:
        unit = registry.parse_units(f"1{text}" if text.startswith("/") else text)
        factor = registry.Quantity(1.0, unit).to_base_units().magnitude
        offset = registry.Quantity(0.0, unit).to_base_units().magnitude
    except Exception as error:  # pint lets exceptions of its tokenizer through as well
        raise UnitError(f"found the unknown unit {quoted(text)}") from error
    if not (math.isfinite(factor) and factor > 0.0):
        raise UnitError(f"found the unit {quoted(text)}, which has no finite value in SI units")
    if offset != 0.0:
        raise UnitError(f"found {text!r}, a unit with an offset, which is not supported")
    return Decimal(repr(float(factor))), unit.dimensionality


@functools.cache
def dimensions_of(unit: str) -> Any:
    """What ``unit`` measures, for comparison; raises :class:`UnitError`."""
    return _unit(unit)[1]


@functools.cache
def named(what: Any) -> str:
    """`` (a force)`` for a known dimension, else its formula."""
    for dimension in DIMENSIONS.values():
        if dimensions_of(dimension.unit) == what:
            article = "an" if dimension.name[0] in "aei" else "a"
            return f" ({article} {dimension.name})"
    return f" ({what})"


def expected(dimension: Dimension | None) -> str:
    """``a stiffness such as '5 kN/m'``."""
    if dimension is None:
        return "a number or a quantity such as '5 kN'"
    article = "an" if dimension.name[0] in "aei" else "a"
    example = dimension.example if not dimension.unit else repr(dimension.example)
    return f"{article} {dimension.name} such as {example}"


def unit_factor(unit: str, dimension: Dimension | None) -> Decimal:
    """SI base units in one ``unit``; raises :class:`UnitError` if it is not of ``dimension``."""
    factor, dimensionality = _unit(unit)
    if dimension is None:
        return factor
    # Hz, rad/s and rpm are all 1/s for pint: a factor of 2 pi would be lost without a word.
    if dimension.name == "angular velocity" and re.search(r"hertz|Hz|cycle", unit):
        raise UnitError(f"found {unit!r} (a frequency), expected {expected(dimension)}")
    if dimension.name == "frequency" and re.search(r"rad|deg|rev|rpm|°|turn", unit):
        raise UnitError(f"found {unit!r} (an angular velocity), expected {expected(dimension)}")
    if dimensionality != dimensions_of(dimension.unit):
        raise UnitError(f"found {unit!r}{named(dimensionality)}, expected {expected(dimension)}")
    return factor


def has_unit(value: float | int | str) -> bool:
    """Whether a valid field's value carries a unit that is not a pure number or an angle."""
    try:
        return measured(value, ("pure number",)) not in (None, "pure number")
    except UnitError:
        return True


def dimensionality(value: float | int | str) -> Any:
    """What a valid field's value measures by its unit; None without a unit."""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) and "$" not in value else None
    unit = (match.group(2) or "").strip() if match else ""
    return _unit(unit)[1] if unit and not _is_arithmetic(str(value)) else None


def measured(value: float | int | str, allowed: tuple[str, ...]) -> str | None:
    """Which of the ``allowed`` dimensions a field's value has, by its unit; None without a unit.

    Raises :class:`UnitError` for a unit of another dimension.
    """
    found = dimensionality(value)
    if found is None:
        return None
    for name in allowed:
        if found == dimensions_of(DIMENSIONS[name].unit):
            return name
    unit = str(_QUANTITY.fullmatch(str(value)).group(2)).strip()  # pyright: ignore
    wanted = " or ".join(expected(DIMENSIONS[name]) for name in allowed)
    raise UnitError(f"found {unit!r}{named(found)}, expected {wanted}")


def per_second(unit: str) -> str:
    """The unit of a rate: ``m/s`` for ``m``, ``m/s^2`` for ``m/s``, ``1/s`` for a pure number."""
    return f"{unit}^2" if unit.endswith("/s") else f"{unit or 1}/s"


def rate_of(measures: Dimension | None) -> Dimension | None:
    """What the rate of a quantity measures; None: not known."""
    if measures is None:
        return None
    return Dimension(
        f"{measures.name} per time", per_second(measures.unit), per_second(measures.example)
    )


def to_si(value: float | int | str, dimension: Dimension | None = None) -> float | Expression:
    """A field's value in SI base units: a number as it is, ``"5 kN/m"`` as 5000.0.

    Arithmetic without a unit (``"2*pi/3"``) is a number; a text with ``$`` is an
    :class:`Expression` in shared parameters. ``dimension=None`` takes any unit.

    Raises :class:`UnitError`.
    """
    if not isinstance(value, str):
        return float(value)
    if "$" in value:
        try:
            return Expression(value)
        except ValueError as error:
            raise UnitError(f"{error}") from None
    match = _QUANTITY.fullmatch(value)
    if _is_arithmetic(value):
        try:
            return float(Expression(value).value({}))
        except ValueError:
            match = match if "pi" in value else None  # "5 pi" is a quantity
    if match is None:
        raise UnitError(
            f"found {quoted(value)}, which is no quantity; expected {expected(dimension)}"
        )
    number, unit = match.group(1), (match.group(2) or "").strip()
    factor = unit_factor(unit, dimension) if unit else Decimal(1)
    try:
        # Decimal arithmetic: "1.1 mm" becomes the float nearest to 0.0011.
        result = float(Decimal(number) * factor)
    except DecimalException:
        result = math.inf
    if not math.isfinite(result):
        raise UnitError(f"found {quoted(value)}, which is no finite number")
    return result


def _is_arithmetic(text: str) -> bool:
    """Whether ``text`` holds nothing but numbers, operations and the words of expressions, and
    more than one number: ``1/sqrt(2)``, but not ``5 m``."""
    if len(text) > LONGEST or re.fullmatch(rf"\s*{_NUMBER}\s*", text):
        return False
    found = list(_TOKEN.finditer(text))
    names = [m.group(1) for m in found if m.group(1)]
    return not any(m.group(2) for m in found) and WORDS.issuperset(names)
