"""Functions of time from their tables, and sampled functions from files."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from jfric.errors import ProblemError
from jfric.files.reading import ReadError, read_text
from jfric.system.derived_functions import Clipped, Until
from jfric.system.expression import Expression
from jfric.system.functions import (
    AbstractFunction,
    Constant,
    Harmonic,
    PiecewiseLinear,
    Ramp,
    Steps,
    Sum,
)
from jfric.system.units import (
    DIMENSIONS,
    Dimension,
    UnitError,
    rate_of,
    to_si,
    unit_factor,
)

if TYPE_CHECKING:
    from jfric.files import tables

_TIME = DIMENSIONS["time"]


def number(value: float | str, where: str, measures: Dimension | None) -> float | Expression:
    """A field's value in SI; raises :class:`jfric.ProblemError` with the field's path."""
    try:
        return to_si(value, measures)
    except UnitError as error:
        raise ProblemError(f"{where}: {error}") from None


def numbers(
    values: list,
    where: str,
    measures: Dimension | None,
    unit: str | None = None,
    *,
    first: int = 1,
) -> list[float]:
    """A list of numbers in SI; bare ones are in ``unit`` where it is given.

    Errors count the entries from ``first``.
    """
    try:
        factor = unit_factor(unit, measures) if unit is not None else Decimal(1)
    except UnitError as error:
        raise ProblemError(f"{where}: {error}") from None
    result = []
    for i, value in enumerate(values, first):
        at = f"{where}[{i}]"
        if unit is not None and not isinstance(value, str):
            result.append(_scaled(value, factor))
            continue
        si = number(value, at, measures)
        if isinstance(si, Expression):
            raise ProblemError(f"{at}: found the expression {value!r}, lists hold numbers only")
        result.append(si)
    return result


def _scaled(value: float, factor: Decimal) -> float:
    return float(Decimal(repr(float(value))) * factor)


def function(
    value: float | str | tables.FunctionTable,
    where: str,
    measures: Dimension | None,
    folder: Path,
) -> AbstractFunction:
    """A function of time; paths of files are relative to ``folder``."""
    if isinstance(value, (int, float, str)):
        return Constant(number(value, where, measures))
    ((form, table),) = value.given().items()
    where = f"{where}.{form}"
    if form == "sum":
        return Sum(
            [function(v, f"{where}[{i + 1}]", measures, folder) for i, v in enumerate(table)]
        )
    if form == "until":
        return _until(table, where, measures, folder)
    if form == "clipped":
        return _clipped(table, where, measures, folder)
    if form == "ramp":
        start = number(table.value, f"{where}.value", measures)
        return Ramp(number(table.rate, f"{where}.rate", rate_of(measures)), start)
    if form == "harmonic":
        return _harmonic(table, where, measures)
    if form == "table":
        times, values = _samples(folder / table.file, where, measures, table)
        if table.hold == "zero-order":
            return _of_samples(Steps, times[1:], values)
        return _of_samples(PiecewiseLinear, times, values)
    times = numbers(table.times, f"{where}.times", _TIME, table.time_unit)
    values = numbers(table.values, f"{where}.values", measures, table.unit)
    extra = form == "steps"
    if len(values) != len(times) + extra:
        before = " (the value before the first time comes first)" if extra else ""
        raise ProblemError(
            f"{where}.values: found {len(values)} values for {len(times)} times, "
            f"needed are {len(times) + extra}{before}"
        )
    if not all(b > a for a, b in itertools.pairwise(times)):
        raise ProblemError(f"{where}.times: found {times}, times must increase strictly")
    return _of_samples(Steps if extra else PiecewiseLinear, times, values)


def _until(table: tables.UntilTable, where: str, measures: Dimension | None, folder: Path) -> Until:
    inner = function(table.function, f"{where}.function", measures, folder)
    end = number(table.end, f"{where}.end", _TIME)
    return Until(inner, end, number(table.after, f"{where}.after", measures))


def _clipped(
    table: tables.ClippedTable, where: str, measures: Dimension | None, folder: Path
) -> Clipped:
    inner = function(table.function, f"{where}.function", measures, folder)
    end = None if table.end is None else number(table.end, f"{where}.end", _TIME)
    if isinstance(end, Expression):
        raise ProblemError(f"{where}.end: found the expression {table.end!r}, needed is a number")
    try:
        return Clipped(inner, end=end, periods=table.periods)
    except ProblemError as error:
        raise ProblemError(f"{where}: {error}") from None


def _of_samples(cls: type, times: list[float], values: list[float]) -> AbstractFunction:
    return cls(times, values)


def _harmonic(table: tables.Harmonic, where: str, measures: Dimension | None) -> Harmonic:
    if table.omega is not None:
        omega = number(table.omega, f"{where}.omega", DIMENSIONS["angular velocity"])
    else:
        assert table.frequency is not None  # the table holds exactly one of both
        omega = number(table.frequency, f"{where}.frequency", DIMENSIONS["frequency"])
        if isinstance(omega, Expression):
            omega = _times_two_pi(omega, f"{where}.frequency")
        else:
            omega = 2.0 * math.pi * omega
    return Harmonic(
        number(table.amplitude, f"{where}.amplitude", measures),
        omega,
        number(table.phase, f"{where}.phase", DIMENSIONS["angle"]),
    )


def _times_two_pi(value: Expression, where: str) -> Expression:
    try:
        return Expression(f"2*pi*({value.text})")
    except ValueError as error:  # at the limit of size
        raise ProblemError(f"{where}: {error}") from None


def _samples(
    path: Path, where: str, measures: Dimension | None, table: tables.Samples
) -> tuple[list[float], list[float]]:
    """Times and values of a file with two columns; a first line that is no numbers is a header."""
    try:
        text = read_text(path)
    except ReadError as error:
        reason = str(error).removeprefix("cannot read the file (").removesuffix(")")
        raise ProblemError(f"{where}.file: cannot read {str(path)!r} ({reason})") from None
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
            raise ProblemError(
                f"{where}.file: {str(path)!r} line {i}: found {line!r}, "
                "needed are two numbers, time and value"
            )
        rows.append(row)
    times = numbers([r[0] for r in rows], f"{where}.time_unit", _TIME, table.time_unit)
    values = numbers([r[1] for r in rows], f"{where}.unit", measures, table.unit)
    if len(times) < 2 or not all(b > a for a, b in itertools.pairwise(times)):
        raise ProblemError(
            f"{where}.file: {str(path)!r}: needed are at least two rows with "
            "strictly increasing times"
        )
    return times, values
