"""Checks of a file: their quantities resolved against the problem's names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jfric.errors import ProblemError
from jfric.files.config import Check, outside, time_span
from jfric.files.function_tables import number
from jfric.results.quantity import PERIODIC_KINDS, STATIC_KINDS, Quantity, parse_quantity, resolve
from jfric.results.signals import look_up
from jfric.system.expression import Expression
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, Dimension

if TYPE_CHECKING:
    from jfric.files import tables


def check(table: tables.CheckTable, where: str, problem: Problem) -> Check:
    """The check that ``table`` describes; raises :class:`jfric.ProblemError`."""
    try:
        quantity = resolve(parse_quantity(table.quantity), problem)
    except ProblemError as error:
        raise ProblemError(f"{where}.quantity: {error}") from None
    if quantity.argument == "t":
        raise ProblemError(f"{where}.quantity: found {table.quantity!r}, a check takes one time")
    if isinstance(quantity.argument, float) and outside(problem, quantity.argument):
        start, end = time_span(problem)
        raise ProblemError(
            f"{where}.quantity: found {table.quantity!r}, the time must lie between "
            f"{start:g} s and {end:g} s"
        )
    expected = number(table.expected, f"{where}.expected", _dimension(quantity, problem))
    if not isinstance(expected, Expression) and not math.isfinite(expected):
        raise ProblemError(f"{where}.expected: found {expected}, must be finite")
    if isinstance(expected, Expression):
        raise ProblemError(
            f"{where}.expected: found the expression {table.expected!r}, expected a number"
        )
    return Check(quantity, expected, table.tolerance, table.relative, table.source)


def _dimension(quantity: Quantity, problem: Problem) -> Dimension | None:
    if quantity.kind in ("event_time", "last_event_time", "stop_time"):
        return DIMENSIONS["time"]
    if quantity.kind in ("event_count", "impact_count", "stick_fraction"):
        return DIMENSIONS["pure number"]
    if quantity.kind in (*STATIC_KINDS, *PERIODIC_KINDS, "integral", "impulse", "dissipated"):
        return None
    unit = look_up(problem, quantity.name)[1].unit.replace(" ", "*")
    return next((d for d in DIMENSIONS.values() if d.unit == unit), None)
