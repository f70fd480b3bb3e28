"""Numbers and quantities with units as text, converted to numbers in SI base units.

The grammar is the same for files, the command line and Python: numbers, units, ``+ - * /``, ``^``
or ``**``, brackets, ``pi`` and the functions of an :class:`jfric.Expression`. Signs between a
number and its unit, or two units, may be left out; products and quotients are computed from left
to right::

    5 kN/m    30 deg    1/3 kg*m^2    1/(4*pi^2)    0.2**2/12*kg*m^2    3 mm + 0.2 cm
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Sequence
from decimal import Decimal, DecimalException
from typing import Any, NamedTuple

from jfric.errors import quoted
from jfric.system.expression import LONGEST, WORDS, Expression
from jfric.system.usual_units import Measure, usual_unit

_DIGITS = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
#: One number, perhaps with a unit, is read with all its decimals. Everything else is computed.
_QUANTITY = re.compile(rf"\s*([+-]?{_DIGITS})\s*([A-Za-zµμΩ°%].*|/\s*[A-Za-z].*)?\s*")
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{_DIGITS})|(?P<name>[^\W\d]\w*|[°%])|(?P<sign>\*\*|[-+*/^()])|(?P<other>\S))"
)
#: A unit consists of names and, after a power, a number of at most two digits. Longer exponents,
#: and powers of powers, could take forever to compute.
_LONGEST_UNIT = 100
_EXPONENT = r"[-+]?\d{1,2}(?:\.\d{1,4})?"
_HIGHEST = 99
_SUPERSCRIPT = "⁰¹²³⁴-⁹"
_UNIT = re.compile(
    rf"(?:1?\s*/)?(?:(?!\d)(?:(?![{_SUPERSCRIPT}])\w)+'?|[°%µμΩ]|\s|[*/()]"
    rf"|(?:\^|\*\*)\s*(?:{_EXPONENT}|\(\s*{_EXPONENT}\s*(?:/\s*\d{{1,2}}\s*)?\))(?!\s*(?:\^|\*\*|\d))"
    rf"|[⁺⁻]?[{_SUPERSCRIPT}]{{1,2}}(?![{_SUPERSCRIPT}]))+"
)
#: Units that a message may propose for one with other capitals.
_USUAL = (
    *("mm", "cm", "m", "km", "g", "kg", "t", "ms", "s", "min", "h", "N", "kN", "MN"),
    *("Pa", "kPa", "MPa", "GPa", "J", "kJ", "W", "Hz", "kHz", "rad", "deg", "rpm"),
)


class Dimension(NamedTuple):
    """Physical dimension of a field: name, SI unit and a text that a user may copy."""

    name: str
    unit: str
    example: str


#: Dimensions by name. Angles count as pure numbers, but have their own names in messages.
DIMENSIONS = {
    d.name: d
    for d in (
        Dimension("pure number", "", "0.3"),
        Dimension("coefficient of friction", "", "0.3"),
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
        Dimension("inverse force", "1/N", "0.01 /N"),
        Dimension("inverse torque", "1/(N*m)", "0.01 /(N*m)"),
        Dimension("voltage", "V", "24 V"),
        Dimension("current", "A", "2 A"),
        Dimension("resistance", "ohm", "1.5 ohm"),
        Dimension("inductance", "H", "2 mH"),
        Dimension("temperature", "K", "293.15 K"),
        Dimension("inverse temperature", "1/K", "0.0039 /K"),
        Dimension("heat capacity", "J/K", "40 J/K"),
        Dimension("thermal resistance", "K/W", "3 K/W"),
        Dimension("force constant", "N/A", "12 N/A"),
        Dimension("torque constant", "N*m/A", "0.05 N*m/A"),
        Dimension("back-EMF constant", "V*s/m", "12 V*s/m"),
        Dimension("angular back-EMF constant", "V*s/rad", "0.05 V*s/rad"),
    )
}


class UnitError(ValueError):
    """A text that is no quantity of the expected kind; the message starts with ``found``."""


@functools.cache
def _registry():
    import pint  # slow to import: only where a text with a less usual unit occurs

    # Without pint's cache of its tables on disk: it is not safe when several processes start
    # together, and reading the tables takes 0.1 s.
    return pint.UnitRegistry()


@functools.cache
def _unit(text: str) -> tuple[Decimal, Measure]:
    """Factor to SI base units and dimensionality of a unit; raises :class:`UnitError`."""
    if text and (len(text) > _LONGEST_UNIT or not _UNIT.fullmatch(text)):
        raise _unknown(text)
    usual = usual_unit(text)
    if usual is not None:
        return usual
    registry = _registry()
    try:
        unit = registry.parse_units(f"1{text}" if text.startswith("/") else text)
        factor = registry.Quantity(1.0, unit).to_base_units().magnitude
        offset = registry.Quantity(0.0, unit).to_base_units().magnitude
    except Exception as error:  # pint lets exceptions of its tokenizer through as well
        raise _unknown(text) from error
    if not (math.isfinite(factor) and factor > 0.0):
        raise UnitError(f"found the unit {quoted(text)}, which has no finite value in SI units")
    if offset != 0.0:
        raise UnitError(f"found {text!r}, a unit with an offset, which is not supported")
    dimensionality: dict[str, Any] = dict(unit.dimensionality)
    powers = Measure(tuple(dimensionality.items()))
    return Decimal(repr(float(factor))), Measure(()).times(powers)


def _unknown(unit: str) -> UnitError:
    """The error for an unknown unit, with one that may be meant."""
    usual = {name.lower(): name for name in _USUAL}
    for meant in (
        re.sub(r"\b([kmM]?N|kg)(?=[^\W\d_])", r"\1*", unit),
        re.sub(r"[^\W\d_]+", lambda m: usual.get(m[0].lower(), m[0]), unit),
        re.sub(r"(?<=[^\W\d_])(?=\d)", "^", unit).replace(".", "*"),
        unit.lower(),
    ):
        if len(unit) > _LONGEST_UNIT or meant == unit or not _UNIT.fullmatch(meant):
            continue
        try:
            _registry().parse_units(meant)
        except Exception:  # as in _unit
            continue
        return UnitError(f"found the unknown unit {unit!r} (did you mean {meant!r}?)")
    return UnitError(f"found the unknown unit {quoted(unit)}")


@functools.cache
def dimensions_of(unit: str) -> Measure:
    """Dimensionality of ``unit``, for comparison; raises :class:`UnitError`."""
    return _unit(unit)[1]


@functools.cache
def named(what: Any) -> str:
    """Text `` (a force)`` for a known dimension, else one with its formula."""
    for dimension in DIMENSIONS.values():
        if dimensions_of(dimension.unit) == what:
            article = "an" if dimension.name[0] in "aei" else "a"
            return f" ({article} {dimension.name})"
    return f" ({what})"


def expected(dimension: Dimension | None) -> str:
    """Text for messages, like ``a stiffness such as '5 kN/m'``."""
    if dimension is None:
        return "a number or a quantity such as '5 kN'"
    article = "an" if dimension.name[0] in "aei" else "a"
    example = dimension.example if not dimension.unit else repr(dimension.example)
    return f"{article} {dimension.name} such as {example}"


def unit_factor(unit: str, dimension: Dimension | None) -> Decimal:
    """SI base units in one ``unit``; raises :class:`UnitError` if it is not of ``dimension``."""
    factor, dimensionality = _unit(unit)
    _require(unit, dimensionality, dimension)
    return factor


def _require(unit: str, dimensionality: Any, dimension: Dimension | None) -> None:
    """Raise :class:`UnitError` for a unit, or a text with units, whose dimensionality is not that
    of ``dimension``."""
    if dimension is None:
        return
    # Hz, rad/s and rpm are all 1/s for pint: a factor of 2 pi would be lost silently.
    if dimension.name == "angular velocity" and re.search(r"hertz|Hz|cycle", unit):
        raise UnitError(f"found {unit!r} (a frequency), expected {expected(dimension)}")
    if dimension.name == "frequency" and re.search(r"rad|deg|rev|rpm|°|turn", unit):
        raise UnitError(f"found {unit!r} (an angular velocity), expected {expected(dimension)}")
    if dimensionality != dimensions_of(dimension.unit):
        force = dimension.name == "coefficient of friction" and dimensionality == dimensions_of("N")
        hint = "; if you know the force, write it without unit, and N = '1 N'" if force else ""
        raise UnitError(
            f"found {unit!r}{named(dimensionality)}, expected {expected(dimension)}{hint}"
        )


class _Read(NamedTuple):
    """A text that was read: value in SI units, text with the unit, and dimensionality (None
    without a unit)."""

    value: float
    unit: str = ""
    dimensionality: Any = None


def _read(text: str, dimension: Dimension | None = None) -> _Read:
    """The number or quantity that ``text`` holds; raises :class:`UnitError`."""
    plain = _QUANTITY.fullmatch(text)
    unit = (plain[2] or "").strip() if plain else ""
    if plain is None or (unit and not _UNIT.fullmatch(unit)):
        found = _computed(text)
        if found is None and plain is not None:
            raise _unknown(unit)
        if found is None:
            comma = re.search(r"\d,\d", text)
            hint = " (a number has a point, not a comma)" if comma else ""
            raise UnitError(
                f"found {quoted(text)}, which is no quantity{hint}; expected {expected(dimension)}"
            )
    else:
        factor, dimensionality = _unit(unit) if unit else (Decimal(1), None)
        try:
            # Decimal arithmetic: "1.1 mm" becomes the float nearest to 0.0011.
            value = float(Decimal(plain[1]) * factor)
        except DecimalException:
            value = math.inf
        found = _Read(value, unit, dimensionality)
    if found.unit:
        _require(found.unit, found.dimensionality, dimension)
    if not math.isfinite(found.value):
        raise UnitError(f"found {quoted(text)}, which is no finite number")
    return found


def _computed(text: str) -> _Read | None:
    """Result of ``text`` as arithmetic with numbers and units; None where it cannot be read.

    Raises :class:`UnitError` where ``text`` can be read in two ways, adds different dimensions, or
    applies a function other than ``sqrt`` to a quantity with a unit."""
    units: dict[str, tuple[Decimal, Any]] = {}
    written: list[str] = []
    before, divided = "(", False
    for token in _TOKEN.finditer(text.rstrip()) if len(text) <= LONGEST else ():
        kind, what = token.lastgroup, token[token.lastgroup or 0]
        ends = before[0] in ")°%" or before[0].isalnum() or before[0] == "."
        if kind == "other" or (kind == "number" and ends):
            return None
        if ends and (kind == "name" or (what == "(" and before not in WORDS)):
            if units and divided and what not in WORDS:
                raise UnitError(
                    f"found {quoted(text)}, which can be read in two ways; put brackets round "
                    f"what {what!r} belongs to"
                )
            written.append("*")
        if kind == "name" and what not in WORDS:
            try:
                units[f"_unit{len(units)}"] = _unit(what)
            except UnitError:
                return None
            written.append(f"$_unit{len(units) - 1}")
        else:
            written.append("**" if what == "^" else what)
        if what not in WORDS and what not in ("**", "^") and kind != "number":
            divided = what == "/"
        before = what
    if not any(part[0].isdigit() or part[0] == "." or part in WORDS for part in written):
        return None
    try:
        expression = Expression("".join(written))
        value = expression.value({k: float(factor) for k, (factor, _) in units.items()})
        body, names = expression.tree
        measures = measure_of(body, [units[n][1] for n in names], bare=dimensions_of(""))
    except (ValueError, ArithmeticError) as error:
        if isinstance(error, UnitError):
            raise UnitError(f"found {quoted(text)}, which {error}") from None
        return None
    if measures is UNKNOWN or isinstance(value, complex):
        return None
    return _Read(float(value), text.strip(), measures) if units else _Read(float(value))


#: Dimensionality of a number without a unit, and one that is not known.
BARE, UNKNOWN = "bare", None


def is_known(what: Any) -> bool:
    """Whether a dimensionality is known."""
    return what is not BARE and what is not UNKNOWN


def measure_of(node: ast.expr, known: Sequence[Any], bare: Any = BARE) -> Any:
    """Dimensionality of an expression (:attr:`jfric.Expression.tree`), with the dimensionalities
    ``known`` of its parameters and ``bare`` of numbers. Raises :class:`UnitError` where different
    dimensions are added, or a function other than ``sqrt`` takes a quantity with a unit."""
    match node:
        case ast.Name(id=name) if name.rpartition("_")[2].isdecimal():
            return known[int(name.rpartition("_")[2])]
        case ast.UnaryOp():
            return measure_of(node.operand, known, bare)
        case ast.Call():
            inside = measure_of(node.args[0], known, bare)
            pure = dimensions_of("")
            if isinstance(node.func, ast.Name) and node.func.id == "sqrt":
                return inside**0.5 if is_known(inside) else inside
            if is_known(inside) and inside != pure:
                raise UnitError(f"found {ast.unparse(node.func)} of something with a unit")
            return pure
        case ast.BinOp(op=ast.Pow()):
            base, power = measure_of(node.left, known, bare), _constant(node.right)
            if not is_known(base):
                return base
            return UNKNOWN if power is None or abs(power) > _HIGHEST else base**power
        case ast.BinOp():
            a, b = measure_of(node.left, known, bare), measure_of(node.right, known, bare)
            if isinstance(node.op, ast.Add | ast.Sub):
                sides = [x for x in (a, b) if is_known(x)]
                if len(sides) == 2 and a != b:
                    raise UnitError(f"adds{named(a)} and{named(b)}")
                return sides[0] if sides else (a if a is b else UNKNOWN)
            if a is UNKNOWN or b is UNKNOWN:
                return UNKNOWN
            if b is BARE:
                return a
            power = 1 if isinstance(node.op, ast.Mult) else -1
            return (Measure(()) if a is BARE else a).times(b, power)
    return bare


def _constant(node: ast.expr) -> float | None:
    """Value of an exponent; None where it has parameters."""
    try:
        power = float(Expression(ast.unparse(node)).value({}))
    except ValueError:
        return None
    return int(power) if power == int(power) else power


def has_unit(value: float | int | str) -> bool:
    """Whether a valid field's value carries a unit that is not a pure number or an angle."""
    return dimensionality(value) not in (None, dimensions_of(""))


def dimensionality(value: float | int | str) -> Any:
    """Dimensionality of a valid field's value by its unit; None without a unit."""
    return _read(value).dimensionality if isinstance(value, str) and "$" not in value else None


def measured(value: float | int | str, allowed: tuple[str, ...]) -> str | None:
    """Name of the ``allowed`` dimension of a field's value, by its unit; None without a unit.

    Raises :class:`UnitError` for a unit of another dimension.
    """
    found = _read(value) if isinstance(value, str) and "$" not in value else _Read(0.0)
    if not found.unit:
        return None
    for name in allowed:
        if found.dimensionality == dimensions_of(DIMENSIONS[name].unit):
            return name
    wanted = " or ".join(expected(DIMENSIONS[name]) for name in allowed)
    raise UnitError(f"found {found.unit!r}{named(found.dimensionality)}, expected {wanted}")


def per_second(unit: str) -> str:
    """The unit of a rate: ``m/s`` for ``m``, ``m/s^2`` for ``m/s``, ``1/s`` for a pure number."""
    return f"{unit}^2" if unit.endswith("/s") else f"{unit or 1}/s"


def rate_of(measures: Dimension | None) -> Dimension | None:
    """Dimension of the rate of a quantity of dimension ``measures``; None: not known."""
    if measures is None:
        return None
    return Dimension(
        f"{measures.name} per time", per_second(measures.unit), per_second(measures.example)
    )


def to_si(value: float | int | str, dimension: Dimension | None = None) -> float | Expression:
    """A field's value in SI base units: a number as it is, ``"5 kN/m"`` as 5000.0.

    A text with ``$`` is an :class:`Expression` in shared parameters, without units.
    ``dimension=None`` takes any unit.

    Raises :class:`UnitError`.
    """
    if not isinstance(value, str):
        return float(value)
    if "$" not in value:
        return _read(value, dimension).value
    try:
        return Expression(value)
    except ValueError as error:
        raise UnitError(f"{error}") from None
