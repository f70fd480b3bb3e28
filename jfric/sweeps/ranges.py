"""Values of a varied parameter: a range, or a list; and their texts, in commands and files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jfric.errors import ProblemError, require_no_text, require_one_of, within
from jfric.numerics.limits import TRAJECTORIES, parse_count, require_count
from jfric.system.naming import find_path, path_dimension
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, UnitError, to_si

SCALES = ("linear", "log")


@dataclass(frozen=True)
class Range:
    """``count`` values from ``low`` to ``high``, both included [SI units].

    The values are evenly spaced, or in geometric progression with ``scale="log"``. Without
    ``count`` a range is an interval for samples::

        >>> jfric.Range(1.0, 100.0, 3, scale="log").values(jnp.arange(3)).round(9).tolist()
        [1.0, 10.0, 100.0]
    """

    low: float
    high: float
    count: int | None = None
    scale: str = "linear"

    def __post_init__(self):
        for end in (self.low, self.high):
            require_no_text("range", end)
        low, high = float(self.low), float(self.high)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ProblemError(f"range: found {low:g} to {high:g}, both ends must be finite")
        require_one_of("scale", self.scale, SCALES)
        if self.scale == "log" and not (low > 0 and high > 0):
            raise ProblemError(
                f"range: found {low:g} to {high:g}, a log scale needs two positive ends"
            )
        if self.count is not None:
            require_count("range: its number of values", self.count, 1, TRAJECTORIES)

    def at(self, fraction: np.ndarray) -> np.ndarray:
        """Values at fractions of the range."""
        if self.scale == "log":
            low, high = math.log(self.low), math.log(self.high)
            ends = sorted((self.low, self.high))
            return np.clip(np.exp(low + fraction * (high - low)), ends[0], ends[1])
        return self.low + fraction * (self.high - self.low)

    def values(self, index: np.ndarray) -> np.ndarray:
        """Values by their index; the ends are exact."""
        assert self.count is not None
        last = max(self.count - 1, 1)
        values = self.at(index / last)
        return np.where(index == last, self.high, np.where(index == 0, self.low, values))

    def extremes(self) -> tuple[float, float]:
        """Smallest and largest value."""
        low, high = sorted((float(self.low), float(self.high)))
        return (float(self.low), float(self.low)) if self.count == 1 else (low, high)

    def describe(self) -> dict[str, Any]:
        """Plain data that identifies the values."""
        return {**vars(self), "low": float(self.low), "high": float(self.high)}


class Listed:
    """List of given values."""

    def __init__(self, values: np.ndarray):
        self._values = values
        self.count = values.size

    def values(self, index: np.ndarray) -> np.ndarray:
        """Values by their index."""
        return self._values[index]

    def extremes(self) -> tuple[float, float]:
        """Smallest and largest value."""
        return float(self._values.min()), float(self._values.max())

    def describe(self) -> dict[str, Any]:
        """Plain data that identifies the values."""
        import hashlib

        digest = hashlib.sha256(np.ascontiguousarray(self._values).tobytes()).hexdigest()
        return {"count": self.count, "sha256": digest}


def as_values(given: Any, name: str) -> Range | Listed:
    """A range or a list of numbers as values of the parameter ``name``."""
    if isinstance(given, (Range, Listed)):
        return given
    try:
        values = np.asarray(given, float)
    except (TypeError, ValueError):
        raise ProblemError(
            f"{name}: found {given!r}, expected numbers or jfric.Range(low, high, count)"
        ) from None
    values = np.atleast_1d(values)
    if values.ndim != 1 or not values.size:
        raise ProblemError(
            f"{name}: found an array of shape {values.shape}, expected one axis of values"
        )
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise ProblemError(f"{name}: found {values[wrong][0]}, values must be finite")
    return Listed(values)


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
