"""Values of options: intervals of parameters, and times."""

from __future__ import annotations

from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.limits import OUTPUTS, parse_count
from jfric.statics.path_names import checked_path
from jfric.sweeps.texts import parse_number, parse_time, split_vary
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, UnitError, to_si

INTERVAL_FORM = "path=start:stop such as contact.mu=0:1.5"


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


def parse_times(text: str) -> int | np.ndarray:
    """A number of times, or the times of a list such as ``0.5, 20 ms`` in their order."""
    if text.strip().isdecimal():
        return parse_count(text, "--times", 2, OUTPUTS)
    try:
        values = [to_si(part.strip(), DIMENSIONS["time"]) for part in text.split(",")]
        return np.unique(np.array(values, float))
    except (UnitError, TypeError, ValueError) as error:
        raise ProblemError(f"--times: {error}") from None


def to_seconds(text: str | None, option: str) -> float | None:
    """The time of an option in seconds; None without the option."""
    return None if text is None else parse_time(text, option)
