"""Functions of time in a file, and sampled functions from separate files."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

from jfric.files.codec import (
    NUMBER,
    Choice,
    Codec,
    Key,
    Number,
    Place,
    ReadError,
    Text,
    Whole,
    read_text,
)
from jfric.files.field_codecs import CLASSES, FORMS, Fields
from jfric.files.table_codecs import Either, List, Record
from jfric.system.derived_functions import Clipped, Until
from jfric.system.expression import Expression
from jfric.system.fields import About, about
from jfric.system.functions import (
    AbstractFunction,
    Constant,
    Harmonic,
    PiecewiseLinear,
    Ramp,
    Steps,
    Sum,
)
from jfric.system.units import UnitError, unit_factor

_TIME, _FREQUENCY = About(("time", "time")), About(("frequency", "frequency"))
_UNITS = {
    "unit": Key(Text(), "unit of the values, where they are bare numbers"),
    "time_unit": Key(Text(), "unit of the times, where they are bare numbers"),
}
_SAMPLED = {"times": "times, increasing", "values": "values, one for each time"}


def numbers(values: list[Any], place: Place, unit: str | None) -> list[float]:
    """Numbers of a list in SI units; numbers without a unit are in ``unit``, if given."""
    if unit is None:
        return FORMS["list"].read(values, place)
    with place.within(UnitError):
        factor = unit_factor(unit, place.measures)
    return [
        FORMS["list"].read([value], place)[0]
        if isinstance(value, str)
        else float(Decimal(repr(float(value))) * factor)
        for value in values
    ]


class ConstantCodec(Number):
    """A number, which stands for a constant."""

    def holds(self, value: Any) -> bool:
        return type(value) is Constant

    def read(self, raw: Any, place: Place) -> Constant:
        return Constant(super().read(raw, place))

    def write(self, value: Any, place: Place) -> Any:
        return super().write(value.value, place)


class Forms(Record):
    """A table with one key: the form of a function of time."""

    def holds(self, value: Any) -> bool:
        return type(value) is not Constant

    def read(self, raw: Any, place: Place) -> AbstractFunction:
        ((form, table),) = raw.items()
        return self.table[form].codec.read(table, place.key(form))

    def write(self, value: Any, place: Place) -> Any:
        for form, key in self.table.items():
            if key.codec.holds(value):
                return {form: key.codec.write(value, place)}
        raise place.error(
            f"the function of time {type(value).__name__} cannot be written to a file"
        )


class Belts(List):
    """A velocity for each direction of a plane; the third belongs to the spin."""

    def read(self, raw: Any, place: Place) -> Any:
        turning = place._replace(kind="rotation")
        places = [place.entry(0), place.entry(1), turning.entry(2)]
        return [self.of.read(x, at) for x, at in zip(raw, places, strict=False)]


class Terms(List):
    """The terms of a sum."""

    def holds(self, value: Any) -> bool:
        return isinstance(value, Sum)

    def read(self, raw: Any, place: Place) -> Sum:
        return Sum(super().read(raw, place))

    def write(self, value: Any, place: Place) -> Any:
        return super().write(value.terms, place)


class Sampled(Fields):
    """Values at times; numbers without a unit may have a common one."""

    def read(self, raw: Any, place: Place) -> AbstractFunction:
        at = {f: place.key(f, self.about[f]) for f in self.fields}
        times = numbers(raw["times"], at["times"], raw.get("time_unit"))
        values = numbers(raw["values"], at["values"], raw.get("unit"))
        extra = self.cls is Steps
        if len(values) != len(times) + extra:
            before = " (the value before the first time comes first)" if extra else ""
            raise at["values"].error(
                f"found {len(values)} values for {len(times)} times, "
                f"needed are {len(times) + extra}{before}"
            )
        if not increase(times):
            raise at["times"].error(f"found {times}, times must increase strictly")
        return self.cls(times, values)


def increase(times: list[float]) -> bool:
    """Whether each of the times is later than the one before it."""
    return all(b > a for a, b in itertools.pairwise(times))


class Samples(Record):
    """A file with two columns, time and value."""

    def holds(self, value: Any) -> bool:
        return False  # the values at times are written instead

    def read(self, raw: Any, place: Place) -> AbstractFunction:
        rows = _rows(place.system.folder / raw["file"], place.key("file"))
        at = place.key("time_unit", _TIME)
        times = numbers([r[0] for r in rows], at, raw.get("time_unit"))
        values = numbers([r[1] for r in rows], place.key("unit"), raw.get("unit"))
        if len(times) < 2 or not increase(times):
            raise place.key("file").error(
                f"{str(place.system.folder / raw['file'])!r}: needed are at least two rows with "
                "strictly increasing times"
            )
        if raw.get("hold") == "zero-order":
            return Steps(times[1:], values)
        return PiecewiseLinear(times, values)


def _rows(path: Path, place: Place) -> list[list[float]]:
    """Times and values of a file with two columns; a first line without numbers is a header."""
    try:
        text = read_text(path)
    except ReadError as error:
        reason = str(error).removeprefix("cannot read the file (").removesuffix(")")
        raise place.error(f"cannot read {str(path)!r} ({reason})") from None
    rows: list[list[float]] = []
    lines = [(i, line.split("#")[0].strip()) for i, line in enumerate(text.splitlines(), 1)]
    lines = [(i, line) for i, line in lines if line]
    for i, line in lines:
        columns = line.replace(";", ",").replace("\t", ",").split(",")
        columns = columns if len(columns) > 1 else line.split()
        try:
            row = [float(c) for c in columns]
        except ValueError:
            row = []
            if i == lines[0][0]:
                continue
        if len(row) != 2:
            raise place.error(
                f"{str(path)!r} line {i}: found {line!r}, needed are two numbers, time and value"
            )
        rows.append(row)
    return rows


class Wave(Fields):
    """A sine, whose ``omega`` may be given as a frequency."""

    def read(self, raw: Any, place: Place) -> Harmonic:
        if "omega" in raw:
            return super().read(raw, place)
        at = place.key("frequency", _FREQUENCY)
        found = super().read(raw | {"omega": 0.0}, place)
        frequency = NUMBER.read(raw["frequency"], at)
        with at.within(ValueError):
            is_text = isinstance(frequency, Expression)
            omega = Expression(f"2*pi*({frequency.text})") if is_text else 2.0 * math.pi * frequency
        return Harmonic(found.amplitude, omega, found.phase)


class Cut(Record):
    """A function cut off at zero."""

    def holds(self, value: Any) -> bool:
        return isinstance(value, Clipped)

    def read(self, raw: Any, place: Place) -> Clipped:
        found = super().read(raw, place)
        with place.within():
            return Clipped(**found)

    def write(self, value: Any, place: Place) -> Any:
        periods = {"periods": value.periods} if value.periods else {}
        return {"function": FUNCTION.write(value.function, place.key("function"))} | periods


FUNCTION = CLASSES[AbstractFunction] = Either(ConstantCodec())
FORMS["functions"] = List(FUNCTION)
FORMS["belt"] = Either(FUNCTION, Belts(FUNCTION, 2, 3))
_WAVE = Wave(
    Harmonic,
    "Harmonic",
    "amplitude * sin(omega t + phase), omega = 2 pi frequency.",
    {"amplitude": "amplitude, in the unit of what it stands for", "phase": "phase [rad]"},
    {
        "omega": Key(
            NUMBER, "angular frequency [rad/s]; or frequency", about=about(Harmonic)["omega"]
        ),
        "frequency": Key(NUMBER, "frequency [Hz]; or omega", about=_FREQUENCY),
    },
    one_of=("omega", "frequency"),
)
_SAMPLES = Samples(
    "Samples",
    "A file with two columns, time and value.",
    {
        "file": Key(Text(), "path of the file, relative to that of the system", needed=True),
        "hold": Key(Choice("linear", "zero-order"), "what holds between samples", "linear"),
        **_UNITS,
    },
)
_CUT = Cut(
    "ClippedTable",
    "max(0, function); a harmonic needs end [s] or a number of periods.",
    {
        "function": Key(FUNCTION, "the function that is cut off at zero", needed=True),
        "end": Key(
            Number("needed is a number"),
            "time up to which a harmonic is followed [s]; or periods",
            about=_TIME,
        ),
        "periods": Key(Whole(above=0), "periods for which a harmonic is followed; or end"),
    },
)
_LINES = "Straight lines through (times, values), constant outside."
_STEPS = "Piecewise constant: the value before the first time comes first."
_FORMS: dict[str, tuple[Codec, str]] = {
    "steps": (Sampled(Steps, "Steps", _STEPS, _SAMPLED, _UNITS), "piecewise constant"),
    "linear": (
        Sampled(PiecewiseLinear, "Linear", _LINES, _SAMPLED, _UNITS),
        "straight lines through points",
    ),
    "ramp": (
        Fields(
            Ramp,
            "RampTable",
            "value + rate t, without an end.",
            {
                "rate": "its unit per second, such as 2 mm/s for a displacement",
                "value": "value at the time 0",
            },
        ),
        "a straight line without an end",
    ),
    "table": (_SAMPLES, "samples in a file"),
    "harmonic": (_WAVE, "a sine"),
    "sum": (Terms(FUNCTION), "the sum of several functions"),
    "until": (
        Fields(
            Until,
            "UntilTable",
            "A function up to the time end, a value after it.",
            {
                "function": "the function before the end",
                "end": "the time up to which it counts [s]",
                "after": "the value from then on",
            },
        ),
        "a function that ends",
    ),
    "clipped": (_CUT, "a function cut off at zero"),
}
#: Forms of functions of time, each a class whose fields describe its content.
FUNCTIONS = Forms(
    "FunctionTable",
    "A function of time: exactly one of the keys.",
    {form: Key(codec, meaning) for form, (codec, meaning) in _FORMS.items()},
    _FORMS,
)
FUNCTION.options = (*FUNCTION.options, FUNCTIONS)
