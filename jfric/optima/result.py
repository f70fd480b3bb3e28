"""Result of an optimisation, judged in the exact motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jfric.numerics.printing import Shown, printable, short
from jfric.results.status import NOT_DIFFERENTIABLE, Status
from jfric.system.problem import Problem

#: Violation of a constraint, as a part of its change over the ranges, that still counts as none.
FEASIBLE = 1e-10


@printable
@dataclass(frozen=True)
class Optimum:
    """The best values that :func:`jfric.optimise` found.

    ``values``: numbers and lists by path [SI]; ``problem``: the problem with them. ``objective``,
    ``observed`` (by name), ``violations`` (by the text of the constraint, zero where it holds),
    ``status`` and ``flags`` are those of a fresh run of the event-driven motion at these values,
    whatever solver the search used. ``feasible``: whether that run reached its end and each
    violation is less than 1e-10 of the change of its constraint over the ranges of the unknowns.
    ``converged``: whether it is feasible, and the engine ended by its own rule. ``message``: that
    of the engine. ``stationarity``: largest part of the gradient of the objective, over the ranges
    and in units of its size at the start, that the constraints and bounds do not take up: zero at a
    smooth optimum, NaN after a search without derivatives. ``starts``: the outcome of each start.
    ``derivatives`` and ``motions``: how many runs with and without derivatives the search took, and
    ``seconds`` [s] how long, compilation included.
    ``remarks``: what to know about the derivatives. Example: see :func:`jfric.optimise`.
    """

    problem: Problem
    values: dict[str, Any]
    objective: float
    observed: dict[str, float]
    violations: dict[str, float]
    status: int
    flags: int
    feasible: bool
    converged: bool
    message: str
    stationarity: float
    starts: tuple[dict[str, Any], ...]
    derivatives: int
    motions: int
    seconds: float
    remarks: tuple[str, ...]

    @property
    def violation(self) -> float:
        """The largest violation of a constraint."""
        return max(self.violations.values(), default=0.0)

    @property
    def differentiable(self) -> bool:
        """Whether no event at which derivatives may not exist occurs in the motion found."""
        return not self.flags & int(NOT_DIFFERENTIABLE)

    def _shown(self) -> Shown:
        how = "converged" if self.converged else "not converged"
        how = how if self.feasible else "not feasible"
        rows = [("objective", f"{self.objective:.10g}")]
        for path, value in self.values.items():
            several = np.ndim(value) > 0
            rows.append((path, short(value) if several else f"{float(value):.10g}"))
        rows += [(f"violation of {text}", f"{x:.3g}") for text, x in self.violations.items()]
        rows.append(("status", Status(self.status).name.lower()))
        runs = f"{self.derivatives} runs with derivatives, {self.motions} without"
        rows.append(("search", f"{runs}, {self.seconds:.3g} s; {self.message}"))
        return Shown(f"Optimum: {how}", (), rows, "; ".join(self.remarks))
