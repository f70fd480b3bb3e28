"""The option ``--vary`` and its like: a parameter, and values that may carry units."""

from __future__ import annotations

from typing import Any

from jfric.errors import ProblemError
from jfric.statics.path_names import checked_path
from jfric.system.naming import path_dimension
from jfric.system.problem import Problem
from jfric.system.units import UnitError, to_si

INTERVAL_FORM = "path=start:stop such as contact.mu=0:1.5"


def split_vary(text: str, form: str, option: str = "--vary") -> tuple[str, str]:
    """Path and values of ``PATH=VALUES``; ``form`` says in the message how the values look."""
    path, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not path or not values:
        raise ProblemError(f"{option}: found {text!r}, expected {form}")
    return path, values


def vary_number(problem: Problem, name: str, text: str, option: str = "--vary") -> float:
    """A value of the parameter with the full path ``name``, in SI units."""
    try:
        value = to_si(text.strip(), path_dimension(problem, name))
    except UnitError as error:
        raise ProblemError(f"{option} {name}: {error}") from None
    if not isinstance(value, float):
        raise ProblemError(f"{option} {name}: found {text!r}, expected a number, not an expression")
    return value


def parse_interval(problem: Problem, text: str, option: str = "--vary") -> dict[str, Any]:
    """``PATH=START:STOP``, where the values may carry units."""
    path, interval = split_vary(text, INTERVAL_FORM, option)
    ends = interval.split(":")
    if len(ends) != 2:
        raise ProblemError(f"{option}: found {text!r}, expected {INTERVAL_FORM}")
    try:
        name = checked_path(problem, path)
    except ProblemError as error:
        raise ProblemError(f"{option}: {error}") from None
    start, stop = (vary_number(problem, name, end, option) for end in ends)
    return {"vary": name, "start": start, "stop": stop}
