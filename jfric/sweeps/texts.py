"""Values of parameters, times and sections as texts, on the command line and in files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jfric.errors import ProblemError, within
from jfric.numerics.limits import TRAJECTORIES, parse_count
from jfric.sweeps.ranges import SCALES, Range
from jfric.system.naming import find_path, path_dimension
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, UnitError, to_si

VARY_FORM = "PATH=LOW:HIGH:COUNT[:log], or PATH=[A, B, ...]"


def split_vary(text: str, form: str, option: str = "--vary") -> tuple[str, str]:
    """Path and values of ``PATH=VALUES``; ``form`` describes the values in the message."""
    path, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not path or not values:
        raise ProblemError(f"{option}: found {text!r}, expected {form}")
    return path, values


def parse_number(problem: Problem, name: str, text: str, option: str = "--vary") -> float:
    """A value of the parameter with the full path ``name``, in SI units."""
    with within(f"{option} {name}: ", UnitError):
        value = to_si(text.strip(), path_dimension(problem, name))
    if not isinstance(value, float):
        raise ProblemError(f"{option} {name}: found {text!r}, expected a number, not an expression")
    return value


def parse_vary(
    problem: Problem, given: Sequence[str], *, sampled: bool = False, option: str = "--vary"
) -> dict[str, Any]:
    """Parameters and their values from ``path=low:high:count[:log]`` or ``path=[a, b, ...]``.

    Sampled sweeps take ``path=low:high[:log]``. Quantities may carry their units.
    """
    result: dict[str, Any] = {}
    for text in given:
        form = "PATH=LOW:HIGH[:log]" if sampled else VARY_FORM
        path, values = split_vary(text, form, option)
        with within(f"{option}: ", KeyError):
            name = find_path(problem, path)
        if name in result:
            raise ProblemError(f"{option}: found {name!r} twice")
        if values.startswith("["):
            parts = values.strip("[]").split(",")
            result[name] = np.array([parse_number(problem, name, part, option) for part in parts])
            continue
        parts = [part.strip() for part in values.split(":")]
        scale = parts.pop() if parts[-1] in SCALES else "linear"
        if len(parts) != (2 if sampled else 3):
            raise ProblemError(f"{option} {name}: found {values!r}, expected {form}")
        low, high = (parse_number(problem, name, part, option) for part in parts[:2])
        count = None
        if not sampled:
            where = f"{option} {name}: its number of values"
            count = parse_count(parts[2], where, 1, TRAJECTORIES)
        with within(f"{option} {name}: "):
            result[name] = Range(low, high, count, scale)
    return result


def numbers(values: Range | np.ndarray) -> np.ndarray:
    """The values of a parameter that :func:`parse_vary` gives."""
    return values.values(np.arange(values.count or 1)) if isinstance(values, Range) else values


def parse_time(text: str, option: str) -> float:
    """A time, with or without its unit, in seconds."""
    with within(f"{option}: ", UnitError):
        value = to_si(text, DIMENSIONS["time"])
    if not isinstance(value, float):
        raise ProblemError(f"{option}: found {text!r}, expected a time, not an expression")
    return value


def parse_section(text: str, option: str = "--section") -> str | float:
    """A name, or an interval with or without its unit."""
    number = text[:1].isdigit() or text[:1] in ".+-"
    return parse_time(text, option) if number else text
