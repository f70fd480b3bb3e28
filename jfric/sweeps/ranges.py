"""Values of a varied parameter: a range, or a list."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jfric.errors import ProblemError, require_no_text, require_one_of
from jfric.numerics.limits import TRAJECTORIES, require_count

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
