"""Parameter values of the trajectories of a sweep: a grid, parallel lists, or samples; of ranges
and lists, which are texts on the command line and in files.

Trajectories are numbered in the order of the table (last axis fastest), and their values are
computed from the number: there is no array of all of them.
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jfric.errors import ProblemError, require_no_text, require_one_of, within
from jfric.files.assignments import assigned, parse_number, parse_time
from jfric.files.config import time_span
from jfric.numerics.limits import TRAJECTORIES, parse_count, require_count, short
from jfric.solvers.base import AbstractSolver
from jfric.statics.path_names import checked_path
from jfric.system.naming import parameters, with_numbers
from jfric.system.problem import Problem
from jfric.system.validation import validate

SCALES = ("linear", "log")
VARY_FORM = "PATH=LOW:HIGH:COUNT[:log], or PATH=[A, B, ...]"


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


def parse_vary(
    problem: Problem, given: Sequence[str], *, sampled: bool = False, option: str = "--vary"
) -> dict[str, Any]:
    """Parameters and their values from ``path=low:high:count[:log]`` or ``path=[a, b, ...]``.

    Sampled sweeps take ``path=low:high[:log]``. Quantities may carry their units.
    """
    result: dict[str, Any] = {}
    form = "PATH=LOW:HIGH[:log]" if sampled else VARY_FORM
    for name, values in assigned(problem, given, form, option):
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


def parse_section(text: str, option: str = "--section") -> str | float:
    """A name, or an interval with or without its unit."""
    number = text[:1].isdigit() or text[:1] in ".+-"
    return parse_time(text, option) if number else text


METHODS = ("grid", "zip", "random", "sobol", "latin-hypercube")
SAMPLED = METHODS[2:]
#: Latin hypercubes are drawn as a whole.
LARGEST_HYPERCUBE = 20_000_000
#: Axis of trajectories that lie on no grid.
NUMBER_AXIS = "trajectory"


class Design(abc.ABC):
    """Names of the varied parameters, shape of the table, and the values of its trajectories."""

    method: str
    names: tuple[str, ...]
    #: Values of each parameter.
    columns: tuple[Range | Listed, ...]
    #: Axes of the table and their lengths.
    dims: tuple[str, ...]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of trajectories."""
        return math.prod(self.shape)

    @abc.abstractmethod
    def values(self, first: int, last: int) -> np.ndarray:
        """Values (last - first, parameters) of the trajectories ``first`` to ``last - 1``."""

    def extremes(self) -> list[tuple[float, float]]:
        """Smallest and largest value of each parameter."""
        return [column.extremes() for column in self.columns]

    def describe(self) -> dict[str, Any]:
        """Plain data that identifies the design."""
        vary = {n: x.describe() for n, x in zip(self.names, self.columns, strict=True)}
        return {"method": self.method, "vary": vary}


class Grid(Design):
    """Grid of all combinations: one axis for each parameter."""

    method = "grid"

    def __init__(self, columns: Mapping[str, Range | Listed]):
        self.names = self.dims = tuple(columns)
        self.columns = tuple(columns.values())
        self.shape = tuple(int(column.count or 0) for column in self.columns)

    def values(self, first: int, last: int) -> np.ndarray:
        index = np.unravel_index(np.arange(first, last), self.shape)
        columns = [column.values(i) for column, i in zip(self.columns, index, strict=True)]
        return np.stack(columns, axis=1).astype(float)


class Zip(Design):
    """Lists of equal length in parallel: the first value of each, the second of each ..."""

    method = "zip"

    def __init__(self, columns: Mapping[str, Range | Listed]):
        self.names = tuple(columns)
        self.columns = tuple(columns.values())
        self.dims = (self.names[0],) if len(self.names) == 1 else (NUMBER_AXIS,)
        self.shape = (int(self.columns[0].count or 0),)

    def values(self, first: int, last: int) -> np.ndarray:
        index = np.arange(first, last)
        return np.stack([c.values(index) for c in self.columns], axis=1).astype(float)


class Samples(Design):
    """Samples from a box: at random, by a Sobol sequence, or by a Latin hypercube."""

    columns: tuple[Range, ...]  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, ranges: Mapping[str, Range], method: str, count: int, seed: int):
        self.names, self.dims = tuple(ranges), (NUMBER_AXIS,)
        self.columns = tuple(ranges.values())
        self.method, self.seed = method, seed
        self.shape = (count,)
        self._hypercube: np.ndarray | None = None

    def values(self, first: int, last: int) -> np.ndarray:
        unit = self._unit(first, last)
        return np.stack([r.at(unit[:, i]) for i, r in enumerate(self.columns)], axis=1)

    def _unit(self, first: int, last: int) -> np.ndarray:
        from scipy.stats import qmc

        d = len(self.columns)
        if self.method == "random":
            # One draw of the generator for each number: any part can be drawn separately.
            generator = np.random.Generator(np.random.PCG64(self.seed).advance(first * d))
            return generator.random((last - first, d))
        if self.method == "sobol":
            sequence = qmc.Sobol(d, rng=self.seed)
            if first:
                sequence.fast_forward(first)
            import warnings

            with warnings.catch_warnings():
                # The balance properties are those of the whole sequence, not of a part.
                warnings.simplefilter("ignore", UserWarning)
                return sequence.random(last - first)
        if self._hypercube is None:
            self._hypercube = qmc.LatinHypercube(d, rng=self.seed).random(self.size)
        return self._hypercube[first:last]

    def describe(self):
        return super().describe() | {"samples": self.size, "seed": self.seed}


def make_design(
    vary: Mapping[str, Any], method: str = "grid", samples: int | None = None, seed: int = 0
) -> Design:
    """Design described by ``vary`` (parameter path to values) and ``method``.

    Raises :class:`ProblemError` for an unknown method, ranges without a number of values, lists
    of different lengths, and too many points.
    """
    require_one_of("method", method, METHODS)
    if not vary:
        raise ProblemError("vary: found no parameter, name at least one: friction.mu")
    if method in SAMPLED:
        return _samples(vary, method, samples, seed)
    if samples is not None:
        raise ProblemError(
            f"samples: found {samples}, but the method is {method!r}; samples belong to "
            + ", ".join(SAMPLED)
        )
    columns = {name: as_values(given, name) for name, given in vary.items()}
    for name, column in columns.items():
        if column.count is None:
            raise ProblemError(
                f"{name}: found a range without a number of values, which method {method!r} needs"
                f" ({name}=LOW:HIGH:COUNT, jfric.Range(low, high, count))"
            )
    if method == "grid":
        for name, column in columns.items():
            if isinstance(column, Listed):
                values = column.values(np.arange(column.count))
                if np.unique(values).size < values.size:
                    raise ProblemError(f"{name}: found a value twice, those of a grid must differ")
        count = math.prod(int(column.count or 0) for column in columns.values())
        require_count("vary: the number of combinations", count, 1, TRAJECTORIES)
        return Grid(columns)
    counts = {name: column.count for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{count} of {name}" for name, count in counts.items())
        raise ProblemError(f"vary: found {found} values, method 'zip' needs as many of each")
    return Zip(columns)


def _samples(vary: Mapping[str, Any], method: str, samples: int | None, seed: int) -> Samples:
    ranges = {}
    for name, given in vary.items():
        if isinstance(given, (tuple, list)) and len(given) == 2:
            given = Range(*given)
        if not isinstance(given, Range):
            raise ProblemError(
                f"{name}: method {method!r} draws from an interval, give two ends "
                f"({name}=LOW:HIGH, jfric.Range(low, high))"
            )
        if given.count is not None:
            raise ProblemError(
                f"{name}: found a range with {given.count} values, but method {method!r} draws "
                "'samples' points from an interval"
            )
        ranges[name] = given
    if samples is None or samples < 1:
        found = "none" if samples is None else samples
        raise ProblemError(f"samples: found {found}, method {method!r} needs at least 1")
    if seed < 0:
        raise ProblemError(f"seed: found {seed}, must not be negative")
    largest = {"latin-hypercube": LARGEST_HYPERCUBE}.get(method, TRAJECTORIES)
    if samples > largest:
        raise ProblemError(
            f"samples: found {short(samples)}, at most {largest} are possible with {method!r}"
        )
    return Samples(ranges, method, int(samples), int(seed))


#: Largest number of corners of a box of parameters that are checked.
MAX_CORNERS = 64


def by_path(problem: Problem, vary: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the full paths of single numbers."""
    known: dict[str, Any] = parameters(problem)
    result = {}
    for path, values in dict(vary).items():
        with within("vary: "):
            name = checked_path(problem, str(path))
        if name in result:
            raise ProblemError(f"vary: found {name!r} twice")
        leaf = known[name]
        if np.ndim(leaf):
            raise ProblemError(
                f"vary: {name} is a list of {np.size(leaf)} numbers, only single numbers can be "
                "varied; let its entries refer to shared parameters"
            )
        result[name] = values
    return result


def check_values(problem: Problem, design: Design, solver: AbstractSolver) -> None:
    """Raise :class:`ProblemError` unless the corners of the box of parameters (for parallel lists
    the extreme values one by one) are valid systems that the solver can simulate."""
    corners: Iterable[Sequence[float]]
    if isinstance(design, Zip):
        rows: list[Sequence[float]] = []
        for column in design.columns:
            values = column.values(np.arange(column.count or 0))
            ends = {int(np.argmin(values)), int(np.argmax(values))}
            rows += [design.values(row, row + 1)[0].tolist() for row in ends]
        corners = rows
    else:
        corners = itertools.islice(itertools.product(*design.extremes()), MAX_CORNERS)
    for corner in corners:
        values = dict(zip(design.names, corner, strict=True))
        with within(f"vary: at {', '.join(f'{k} = {v:g}' for k, v in values.items())}: "):
            changed = with_numbers(problem, values)
            validate(changed)
            solver.require(changed)
            start, end = time_span(changed)
            solver.require_duration(end - start)
