"""Checks of functions of time."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jfric.errors import ProblemError
from jfric.system.functions import PiecewiseLinear, Steps, Sum
from jfric.system.smallest_value import find_negative
from jfric.system.wrapped import Clipped, Until


def _terms(function: Any):
    """The terms of a function of time (or number), sums and functions made from others taken
    apart."""
    if isinstance(function, Sum):
        for term in function.terms:
            yield from _terms(term)
    elif isinstance(function, (Until, Clipped)):
        yield from _terms(function.function)
    else:
        yield function


def _function(where: str, function) -> None:
    if not isinstance(function, (Steps, PiecewiseLinear)):
        return
    times, values = np.asarray(function.times), np.asarray(function.values)
    extra = 1 if isinstance(function, Steps) else 0
    if not extra and times.size == 0:
        raise ProblemError(f"{where}.times: found none, at least one is needed")
    if times.ndim != 1 or values.shape != (times.size + extra,) or np.any(np.diff(times) <= 0):
        raise ProblemError(
            f"{where}.times: found {times.size} times and {values.size} values; "
            f"times must increase strictly and have {values.size - extra} entries"
        )


def _known_zeros(where: str, function, time) -> None:
    """Refuse a harmonic cut off at zero whose zeros are not known over the whole run."""
    if isinstance(function, Sum):
        for term in function.terms:
            _known_zeros(where, term, time)
    if isinstance(function, (Until, Clipped)):
        _known_zeros(where, function.function, time)
    if isinstance(function, Clipped) and function.periods:
        with jax.ensure_compile_time_eval():
            known = np.asarray(function.breakpoints())
        if known[0] > float(time.start) or known[-1] < float(time.end):
            raise ProblemError(
                f"{where}: the zeros of the clipped harmonic are known from {known[0]:g} s to "
                f"{known[-1]:g} s, which is not the whole run; give a later end or more periods"
            )


def _not_negative(where: str, function, time) -> None:
    """Refuse a normal force that is negative anywhere in the simulated time."""
    start, end = float(time.start), float(time.end)
    found = find_negative(function, start, end) if end > start else None
    if found is not None:
        raise ProblemError(
            f"{where}: found {found.value:g} at t = {found.t:g} s, must not be negative"
        )


def require_functions_of_time(where: str, section: str, element, time) -> None:
    """Raise :class:`ProblemError` for a function of time of ``element`` that is none, or negative
    where a force must not be."""
    given = {f: getattr(element, f, None) for f in ("N", "limit", "belt", "F", "displacement")}
    if isinstance(belts := given["belt"], tuple):
        given |= {"belt": None} | {f"belt[{i}]": belt for i, belt in enumerate(belts, 1)}
    for field, function in given.items():
        if isinstance(function, Sum) and not list(_terms(function)):
            raise ProblemError(f"{where}.{field}: found a sum without terms")
        for term in _terms(function):
            _function(f"{where}.{field}", term)
        if function is not None:
            _known_zeros(f"{where}.{field}", function, time)
        if field in ("N", "limit") and function is not None and section == "friction":
            _not_negative(f"{where}.{field}", function, time)
