"""Outcome of one check."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import jax

from jfric.errors import ProblemError, SimulationError
from jfric.numerics.printing import Shown
from jfric.results.status import Status
from jfric.verification.evaluate import Trajectory, evaluate, scale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from jfric.files.config import Check
    from jfric.results.quantity import Quantity


#: Errors that fail one job or check and leave the others alone: a refused system, a motion that is
#: not found, a program that this machine cannot compile or run.
NOT_RUN = (jax.errors.JaxRuntimeError, ProblemError, SimulationError)


@dataclass(frozen=True)
class Result:
    """One computed number and its expected value; ``error`` and ``tolerance`` are absolute."""

    case: str
    quantity: str
    solver: str
    expected: float
    value: float
    error: float
    tolerance: float
    passed: bool
    source: str

    @property
    def outcome(self) -> str:
        """Word for whether the value is within its tolerance."""
        return "passed" if self.passed else "FAILED"

    def as_dict(self) -> dict[str, Any]:
        """Plain values; NaN becomes None, because JSON has no NaN."""
        return {
            k: None if isinstance(v, float) and not math.isfinite(v) else v
            for k, v in asdict(self).items()
        }


def compare(
    quantity: Quantity,
    expected: float,
    trajectory: Trajectory,
    *,
    tolerance: float = 0.0,
    relative: float = 0.0,
    case: str = "",
    solver: str = "",
    source: str = "",
) -> Result:
    """Compare ``quantity`` with ``expected``, within ``tolerance`` or, where that is larger,
    ``relative`` times its scale (the expected time, or the peak of the component)."""
    value = evaluate(quantity, trajectory)
    allowed = tolerance
    if relative:
        allowed = max(allowed, relative * scale(quantity, expected, trajectory))
    name = label(quantity)
    ended = int(trajectory.solution.status) == Status.OK
    if quantity.kind == "stop_time" and math.isnan(value) and ended:
        name = f"{name} (nothing comes to rest)"
    return judged(case, name, solver, expected, value, allowed, source)


def judged(
    case: str,
    quantity: str,
    solver: str,
    expected: float,
    value: float,
    allowed: float,
    source: str = "",
) -> Result:
    """The outcome for a ``value`` with an allowed error."""
    error = abs(value - expected)
    # Not `error > allowed`: NaN must fail.
    passed = bool(error <= allowed)
    return Result(case, quantity, solver, expected, value, error, allowed, passed, source)


def each_judged(
    case: str,
    solver: str,
    checks: Iterable[Check],
    value: Callable[[Quantity], float],
) -> list[Result]:
    """The outcome of each check for its ``value``. A value that cannot be computed is a failed
    check, with one more row for each reason; the other checks are not affected."""
    found, reasons = [], {}
    for check in checks:
        try:
            number = value(check.quantity)
        except NOT_RUN as error:
            number = float("nan")
            reasons[str(error)] = error
        about = check.expected, number, check.allowed, check.source
        found.append(judged(case, str(check.quantity), solver, *about))
    return [*found, *(r for e in reasons.values() for r in not_run(case, solver, (), e))]


def whole(case: str, solver: str, quantity: str, value: float) -> Result:
    """A number about a whole trajectory that should be zero."""
    return Result(case, quantity, solver, 0.0, value, value, 0.0, value == 0.0, "")


def not_run(case: str, solver: str, checks: Iterable[Check], error: Exception) -> list[Result]:
    """All ``checks`` as failed, and one more row with the first line of the error."""
    nan = float("nan")
    failed = [
        judged(case, label(c.quantity), solver, c.expected, nan, c.allowed, c.source)
        for c in checks
    ]
    reason = str(error).strip().partition("\n")[0]
    return [*failed, whole(case, solver, f"did not run: {reason}", nan)]


def refused(case: str, reason: str) -> Result:
    """The line of a file that cannot be verified."""
    return whole(case, "", f"refused: {reason}", float("nan"))


def label(quantity: Quantity) -> str:
    """Label such as ``u(1)``: the quantity with its time in at most ten digits."""
    text, time = str(quantity), quantity.argument
    return text.replace(repr(time), f"{time:.10g}") if isinstance(time, float) else text


def checks_shown(results: Sequence[Result]) -> Shown:
    """Computed and expected values of one run."""
    columns = ("quantity", ">computed", ">expected", ">error", ">allowed", "", "source")
    rows = [(r.quantity, *_numbers(r), r.outcome, r.source) for r in results]
    return Shown("Checks", columns, rows)


def verification_shown(results: Sequence[Result]) -> Shown:
    """One row for each case and solver: passed checks, and the one nearest its tolerance."""
    columns = ("case", "solver", ">passed", "closest to its tolerance", ">error", ">allowed", "")
    groups: dict[tuple[str, str], list[Result]] = {}
    for r in results:
        groups.setdefault((r.case, r.solver), []).append(r)
    rows = []
    for names, group in groups.items():
        worst = max(group, key=_closeness)
        passed = f"{sum(r.passed for r in group)}/{len(group)}"
        rows.append((*names, passed, worst.quantity, *_numbers(worst)[2:], worst.outcome))
    return Shown("Verification", columns, rows)


def failures_shown(results: Sequence[Result]) -> Shown:
    """All failed checks of a verification in full."""
    columns = ("case", "solver", "quantity", ">value", ">expected", ">error", ">allowed")
    failed = [r for r in results if not r.passed]
    rows = [(r.case, r.solver, r.quantity, *_numbers(r)) for r in failed]
    return Shown("Failed checks", columns, rows)


def _numbers(result: Result) -> tuple[str, ...]:
    values = (f"{x:.10g}" for x in (result.value, result.expected))
    return *values, f"{result.error:.1e}", f"{result.tolerance:.1e}"


def _closeness(result: Result) -> tuple[bool, float]:
    if not result.passed:
        return True, result.error if math.isfinite(result.error) else math.inf
    return False, result.error / result.tolerance if result.tolerance else 0.0
