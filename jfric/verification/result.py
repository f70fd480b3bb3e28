"""Outcome of one check."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from jfric.verification.evaluate import evaluate, scale

if TYPE_CHECKING:
    from jfric.config.quantity import Quantity
    from jfric.solution import Solution


@dataclass(frozen=True)
class Result:
    """One computed number beside its expected value; ``error`` and ``tolerance`` are absolute."""

    case: str
    quantity: str
    solver: str
    expected: float
    value: float
    error: float
    tolerance: float
    passed: bool
    source: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values; NaN becomes None, for JSON has none."""
        return {
            k: None if isinstance(v, float) and not math.isfinite(v) else v
            for k, v in asdict(self).items()
        }


def compare(
    quantity: Quantity,
    expected: float,
    solution: Solution,
    *,
    tolerance: float = 0.0,
    relative: float = 0.0,
    case: str = "",
    solver: str = "",
    source: str = "",
) -> Result:
    """Compare ``quantity`` with ``expected``, within ``tolerance`` or, where that is larger,
    ``relative`` times its scale (the expected time, or the peak of the component)."""
    value = evaluate(quantity, solution)
    allowed = tolerance
    if relative:
        allowed = max(allowed, relative * scale(quantity, expected, solution))
    return judged(case, label(quantity), solver, expected, value, allowed, source)


def judged(
    case: str,
    quantity: str,
    solver: str,
    expected: float,
    value: float,
    allowed: float,
    source: str = "",
) -> Result:
    """The outcome for a ``value`` that may be off by ``allowed``."""
    error = abs(value - expected)
    # Not `error > allowed`: NaN must fail.
    passed = bool(error <= allowed)
    return Result(case, quantity, solver, expected, value, error, allowed, passed, source)


def label(quantity: Quantity) -> str:
    """``u(1)``: the quantity with its time in at most ten digits."""
    text, time = str(quantity), quantity.argument
    return text.replace(repr(time), f"{time:.10g}") if isinstance(time, float) else text
