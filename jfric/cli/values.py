"""Values of options: parameters with values that may carry units, times, sections."""

from __future__ import annotations

from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.limits import OUTPUTS, TRAJECTORIES, parse_count
from jfric.statics.path_names import checked_path
from jfric.sweeps.ranges import SCALES, Range
from jfric.system.naming import find_path, path_dimension
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, UnitError, to_si

INTERVAL_FORM = "path=start:stop such as contact.mu=0:1.5"
VARY_FORM = "PATH=LOW:HIGH:COUNT[:log], or PATH=[A, B, ...]"


def split_vary(text: str, form: str, option: str = "--vary") -> tuple[str, str]:
    """Path and values of ``PATH=VALUES``; ``form`` describes the values in the message."""
    path, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not path or not values:
        raise ProblemError(f"{option}: found {text!r}, expected {form}")
    return path, values


def parse_number(problem: Problem, name: str, text: str, option: str = "--vary") -> float:
    """A value of the parameter with the full path ``name``, in SI units."""
    try:
        value = to_si(text.strip(), path_dimension(problem, name))
    except UnitError as error:
        raise ProblemError(f"{option} {name}: {error}") from None
    if not isinstance(value, float):
        raise ProblemError(f"{option} {name}: found {text!r}, expected a number, not an expression")
    return value


def parse_path(problem: Problem, text: str, option: str) -> str:
    """The full path of a parameter that a path follows."""
    try:
        return checked_path(problem, text)
    except ProblemError as error:
        raise ProblemError(f"{option}: {error}") from None


def parse_interval(problem: Problem, text: str, option: str = "--vary") -> dict[str, Any]:
    """``PATH=START:STOP``, where the values may carry units."""
    path, interval = split_vary(text, INTERVAL_FORM, option)
    ends = interval.split(":")
    if len(ends) != 2:
        raise ProblemError(f"{option}: found {text!r}, expected {INTERVAL_FORM}")
    name = parse_path(problem, path, option)
    start, stop = (parse_number(problem, name, end, option) for end in ends)
    return {"vary": name, "start": start, "stop": stop}


def parse_vary(
    problem: Problem, given: list[str], *, sampled: bool = False, option: str = "--vary"
) -> dict[str, Any]:
    """Parameters and their values from ``path=low:high:count[:log]`` or ``path=[a, b, ...]``.

    Sampled sweeps take ``path=low:high[:log]``. Quantities may carry their units.
    """
    result: dict[str, Any] = {}
    for text in given:
        form = "PATH=LOW:HIGH[:log]" if sampled else VARY_FORM
        path, values = split_vary(text, form, option)
        try:
            name = find_path(problem, path)
        except KeyError as error:
            raise ProblemError(f"{option}: {error.args[0]}") from None
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
        try:
            result[name] = Range(low, high, count, scale)
        except ProblemError as error:
            raise ProblemError(f"{option} {name}: {error}") from None
    return result


def numbers(values: Range | np.ndarray) -> np.ndarray:
    """The values of a parameter that :func:`parse_vary` gives."""
    return values.values(np.arange(values.count or 1)) if isinstance(values, Range) else values


def parse_times(text: str) -> int | np.ndarray:
    """A number of times, or the times of a list such as ``0.5, 20 ms`` in their order."""
    if text.strip().isdecimal():
        return parse_count(text, "--times", 2, OUTPUTS)
    try:
        values = [to_si(part.strip(), DIMENSIONS["time"]) for part in text.split(",")]
        return np.unique(np.array(values, float))
    except (UnitError, TypeError, ValueError) as error:
        raise ProblemError(f"--times: {error}") from None


def parse_time(text: str, option: str) -> float:
    """A time, with or without its unit, in seconds."""
    try:
        value = to_si(text, DIMENSIONS["time"])
    except UnitError as error:
        raise ProblemError(f"{option}: {error}") from None
    if not isinstance(value, float):
        raise ProblemError(f"{option}: found {text!r}, expected a time, not an expression")
    return value


def parse_section(text: str, option: str = "--section") -> str | float:
    """A name, or an interval with or without its unit."""
    number = text[:1].isdigit() or text[:1] in ".+-"
    return parse_time(text, option) if number else text


def to_seconds(text: str | None, option: str) -> float | None:
    """The time of an option in seconds; None without the option."""
    return None if text is None else parse_time(text, option)
