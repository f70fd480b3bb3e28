"""Outcomes of checks, tables of them, and JUnit XML, which continuous-integration servers read."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from jfric.errors import ProblemError, SimulationError
from jfric.files.config import Check
from jfric.numerics.printing import Shown
from jfric.results.quantity import Quantity
from jfric.results.status import Status
from jfric.verification.evaluate import Trajectory, evaluate, scale

#: Errors that fail one job or check and leave the others alone: a refused system, a motion that is
#: not found, a program that this machine cannot compile or run.
NOT_RUN = (jax.errors.JaxRuntimeError, ProblemError, SimulationError)
#: Characters that XML 1.0 cannot hold.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True)
class Result:
    """One computed number and its expected value; ``tolerance`` is absolute."""

    case: str
    quantity: str
    solver: str
    expected: float
    value: float
    tolerance: float
    source: str = ""

    @property
    def error(self) -> float:
        """Distance of the value from the expected one."""
        return abs(self.value - self.expected)

    @property
    def passed(self) -> bool:
        """Whether the value is within its tolerance."""
        # Not `error > tolerance`: NaN must fail.
        return bool(self.error <= self.tolerance)

    @property
    def outcome(self) -> str:
        """Word for whether the value is within its tolerance."""
        return "passed" if self.passed else "FAILED"

    def as_dict(self) -> dict[str, Any]:
        """Plain values; NaN becomes None, because JSON has no NaN."""
        names = "case", "quantity", "solver", "expected", "value", "error", "tolerance", "passed"
        found = {name: getattr(self, name) for name in (*names, "source")}
        return {
            k: None if isinstance(v, float) and not math.isfinite(v) else v
            for k, v in found.items()
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
    return Result(case, name, solver, expected, value, allowed, source)


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
        found.append(Result(case, str(check.quantity), solver, *about))
    return [*found, *(r for e in reasons.values() for r in not_run(case, solver, (), e))]


def whole(case: str, solver: str, quantity: str, value: float) -> Result:
    """A number about a whole trajectory that should be zero."""
    return Result(case, quantity, solver, 0.0, value, 0.0)


def not_run(case: str, solver: str, checks: Iterable[Check], error: Exception) -> list[Result]:
    """All ``checks`` as failed, and one more row with the first line of the error."""
    nan = float("nan")
    failed = [
        Result(case, label(c.quantity), solver, c.expected, nan, c.allowed, c.source)
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
    rows = []
    for names, group in _groups(results).items():
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


def _groups(results: Sequence[Result]) -> dict[tuple[str, str], list[Result]]:
    """The results of each case by each solver."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for r in results:
        groups.setdefault((r.case, r.solver), []).append(r)
    return groups


def write_junit(path: Path, results: Sequence[Result], seconds: float) -> None:
    """Write one test case for each check, one suite for each case and solver."""
    failures = sum(not r.passed for r in results)
    root = ET.Element(
        "testsuites",
        name="jfric verify",
        tests=str(len(results)),
        failures=str(failures),
        time=f"{seconds:.3f}",
    )
    for (case, solver), group in _groups(results).items():
        failed = sum(not r.passed for r in group)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=_clean(f"{case} {solver}"),
            tests=str(len(group)),
            failures=str(failed),
        )
        for r in group:
            test = ET.SubElement(
                suite, "testcase", classname=_clean(f"{case}.{solver}"), name=_clean(r.quantity)
            )
            if not r.passed:
                message = (
                    f"{r.quantity}: {r.value!r} instead of {r.expected!r}, "
                    f"error {r.error:.3g} exceeds {r.tolerance:.3g}"
                )
                ET.SubElement(test, "failure", message=_clean(message)).text = _clean(r.source)
    ET.indent(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
