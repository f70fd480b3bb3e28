"""Checks of a file: their quantities, resolved with the names of the problem."""

from __future__ import annotations

import math
from typing import Any

from jfric.errors import require_one_of
from jfric.files.codec import Key, Place
from jfric.files.config import Check, outside, time_span
from jfric.files.scalar_codecs import PLAIN, Real, Text
from jfric.files.table_codecs import List, Record
from jfric.results.quantity import (
    OUTCOMES,
    PERIODIC_KINDS,
    STATIC_KINDS,
    Quantity,
    parse_quantity,
    resolve,
)
from jfric.results.signals import look_up
from jfric.results.status import Status
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, Dimension

CHECKS = List(
    Record(
        "CheckTable",
        "A number that a correct solution has.",
        {
            "quantity": Key(
                Text(), "the number that is checked, by the name it has in sweeps", needed=True
            ),
            "expected": Key(PLAIN, "its value", needed=True),
            "tolerance": Key(Real(at_least=0), "allowed error, absolute, in SI units; or relative"),
            "relative": Key(Real(at_least=0), "allowed error as a part of the value; or tolerance"),
            "source": Key(Text(), "where the value is from", ""),
        },
        ("tolerance", "relative"),
    ),
    words="a list of tables; write [[check]]",
)


def checks(raw: list[dict[str, Any]], problem: Problem) -> tuple[Check, ...]:
    """The checks in a file; raises :class:`jfric.ProblemError` for wrong ones."""
    return tuple(_check(table, Place("check").entry(i), problem) for i, table in enumerate(raw))


def _check(raw: dict[str, Any], place: Place, problem: Problem) -> Check:
    given, at = raw["quantity"], place.key("quantity")
    with at.within():
        quantity = resolve(parse_quantity(given), problem)
    if quantity.argument == "t":
        raise at.error(f"found {given!r}, a check takes one time")
    if isinstance(quantity.argument, float) and outside(problem, quantity.argument):
        start, end = time_span(problem)
        raise at.error(f"found {given!r}, the time must lie between {start:g} s and {end:g} s")
    if quantity.kind == "status" and isinstance(raw.get("expected"), str):
        raw = raw | {"expected": _status(raw["expected"], place)}
    found = CHECKS.of.read(raw, place._replace(inside=_dimension(quantity, problem)))
    if not math.isfinite(found["expected"]):
        raise place.key("expected").error(f"found {found['expected']}, must be finite")
    return Check(**found | {"quantity": quantity})


def _status(word: str, place: Place) -> int:
    """The number of a status by its name."""
    names = {status.name.lower(): int(status) for status in Status}
    require_one_of(place.key("expected").where, word, names)
    return names[word]


def _dimension(quantity: Quantity, problem: Problem) -> Dimension | None:
    if quantity.kind in ("event_time", "last_event_time", "stop_time"):
        return DIMENSIONS["time"]
    if quantity.kind in ("event_count", "impact_count", "stick_fraction", *OUTCOMES):
        return DIMENSIONS["pure number"]
    no_unit = "integral", "impulse", "dissipated", "derivative"
    if quantity.kind in (*STATIC_KINDS, *PERIODIC_KINDS, *no_unit):
        return None
    unit = look_up(problem, quantity.name)[1].unit.replace(" ", "*")
    return next((d for d in DIMENSIONS.values() if d.unit == unit), None)
