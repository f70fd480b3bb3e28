"""Data of a file in addition to the system: outputs, solver settings and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.numerics.tolerances import outside_span
from jfric.results.quantity import Quantity
from jfric.system.control import apart
from jfric.system.problem import Problem
from jfric.system.units import Dimension

if TYPE_CHECKING:
    from jfric.system.controller import Controller

#: Default number of evenly spaced outputs.
DEFAULT_OUTPUTS = 401


def time_span(problem: Problem) -> tuple[float, float]:
    """Start and end of the simulated time [s]."""
    time: Any = problem.resolved().time
    return float(time.start), float(time.end)


def outside(problem: Problem, times) -> np.ndarray:
    """Whether each of the ``times`` [s] lies outside of the simulated time."""
    time: Any = problem.resolved().time
    return outside_span(times, time.start, time.end)


@dataclass(frozen=True)
class Check:
    """A number that a correct solution has: ``|value - expected| <= tolerance``.

    Exactly one of ``tolerance`` (absolute, in the SI unit of the quantity) and ``relative`` (a
    fraction of ``|expected|``) is given. ``source`` says where ``expected`` comes from.
    """

    quantity: Quantity
    expected: float
    tolerance: float | None = None
    relative: float | None = None
    source: str = ""

    @property
    def allowed(self) -> float:
        """Largest error allowed, in the SI unit of the quantity."""
        if self.tolerance is not None:
            return self.tolerance
        return (self.relative or 0.0) * abs(self.expected)


@dataclass(frozen=True)
class Column:
    """A column of a file: ``SI value = factor * number + offset``.

    ``unit``: from the table, or else from the header of the file. ``measures``: dimension of the
    numbers, None if unknown. ``resolution``: step of the readings, in SI. ``wraps_at``: distance
    after which a position begins anew, in SI; 0 where it does not, None where the readings decide.
    """

    name: str
    factor: float = 1.0
    offset: float = 0.0
    unit: str = ""
    measures: Dimension | None = None
    resolution: float | None = None
    wraps_at: float | None = None


@dataclass(frozen=True)
class Measured:
    """Meaning of the columns of a file. ``records``: pattern of the names of several records in one
    file, whose columns are ``NAME/column``. Samples before ``start`` and after ``end`` [s] are left
    out. Without ``time`` rows are steady states, and ``u`` holds the settings of each row, by the
    paths of parameters. ``missing_inputs``: whether missing samples of inputs are refused
    (``"refuse"``) or replaced by the last one (``"hold"``). ``known``: numbers of records, by
    pattern of their names and path of the parameter. ``table``: the table as the file gives
    it. ``beside``: a second file of the same run."""

    time: Column | None
    y: Mapping[str, Column]
    u: Mapping[str, Column] = field(default_factory=dict)
    records: str | None = None
    start: float | None = None
    end: float | None = None
    missing_inputs: str = "refuse"
    known: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    table: Mapping[str, Any] = field(default_factory=dict)
    beside: Beside | None = None


@dataclass(frozen=True)
class Beside:
    """A second file of a run, from a device with a clock of its own. ``file``: its name, in which
    ``*`` stands for that of the first. ``join``: the quantity that both measure, by which the clock
    is found; it is left out of the record where ``keeps`` is false. ``columns``: their meaning."""

    file: str
    join: str
    keeps: bool
    columns: Measured

    def path(self, first: Path) -> Path:
        """Path of the second file of the run whose first file is ``first``."""
        return first.with_name(self.file.replace("*", first.stem))


@dataclass(frozen=True)
class Config:
    """A problem as read from a file, with the computations that the file asks for.

    ``outputs``: number of evenly spaced outputs from start to end, or the output times [s].
    ``solver``: the settings that the file gives, by name. ``statics``: the parameter that a path
    or a limit load follows (``vary``, ``start``, ``stop``, ``seeds``). ``periodic``: the periodic
    motion to be found, and the parameter over which it is followed.
    ``response``: the load and the frequencies of a frequency response, and its quantity.
    ``lyapunov``, ``basins``: how exponents and attractors are computed. ``fit``: free parameters of
    a fit. ``optimise``: unknowns and goals of an optimisation. ``controller``: of a system that
    :meth:`opened` has taken apart. ``path``: path of the file.
    """

    problem: Problem
    title: str = ""
    source: str = ""
    description: str = ""
    outputs: int | tuple[float, ...] = DEFAULT_OUTPUTS
    solver: Mapping[str, object] = field(default_factory=dict)
    statics: Mapping[str, Any] = field(default_factory=dict)
    periodic: Mapping[str, Any] = field(default_factory=dict)
    response: Mapping[str, Any] = field(default_factory=dict)
    lyapunov: Mapping[str, Any] = field(default_factory=dict)
    basins: Mapping[str, Any] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    path: str = ""
    data: Measured | None = None
    controller: Controller | None = None
    fit: Mapping[str, Any] = field(default_factory=dict)
    optimise: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The title, or the name of the file where it has none."""
        return self.title or Path(self.path).stem

    def opened(self) -> Config:
        """This content with the controller apart from the problem, for fits: there the samples of
        the record are those of the controller, and measured signals may replace it."""
        problem, controller = apart(self.problem)
        return replace(self, problem=problem, controller=controller)

    def times(self) -> np.ndarray:
        """Output times [s]."""
        if not isinstance(self.outputs, int):
            return np.asarray(self.outputs)
        return np.linspace(*time_span(self.problem), self.outputs)
