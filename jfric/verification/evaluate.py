"""The value of a quantity on a solution, and the scale that its error is compared with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from jfric.errors import ProblemError, nearest

if TYPE_CHECKING:
    from jfric.config.quantity import Quantity
    from jfric.solution import Solution

_TIMED = {"position": "q", "velocity": "v", "acceleration": "a"}
_FINAL = {"final_position": "q", "final_velocity": "v"}
_AT_EVENT = {"event_position": "q", "event_velocity": "v", "event_velocity_before": "v_before"}
_FORCES = ("lambda_t", "lambda_n")
COUNTS = ("event_count", "impact_count")
TIMES = ("event_time", "end_time")


def needed_times(quantities: Iterable[Quantity]) -> set[float]:
    """Times at which a solution must be known to evaluate ``quantities``."""
    timed = (*_TIMED, *_FORCES)
    return {float(q.argument) for q in quantities if q.kind in timed and q.argument is not None}


def needs_outputs(quantities: Iterable[Quantity]) -> bool:
    """Whether some quantity is taken over all outputs of the run."""
    return any(q.kind in ("min", "max") for q in quantities)


def evaluate(quantity: Quantity, solution: Solution) -> float:
    """Value of ``quantity`` on one trajectory; NaN where it has no such event or output.

    ``solution`` must have been asked for at :func:`needed_times`; its last output is taken as the
    end. Raises :class:`ProblemError` for the name of no degree of freedom or contact.
    """
    kind, log = quantity.kind, solution.events
    count = min(int(log.count), log.time.shape[0])
    if kind == "event_count":
        return float(log.count)
    if kind == "impact_count":
        return float(np.sum(np.asarray(log.impact)[:count]))
    if kind == "end_time":
        return float(log.time[count - 1]) if count else float("nan")
    if kind == "event_time" or kind in _AT_EVENT:
        column = _axis(quantity, solution) if kind in _AT_EVENT else None
        row = int(quantity.argument or 0) - 1
        if not 0 <= row < count:
            return float("nan")
        if column is None:
            return float(log.time[row])
        return float(getattr(log, _AT_EVENT[kind])[row, column])
    if kind in ("min", "max"):
        values = _everywhere(solution, "q", _axis(quantity, solution))
        return float(values.min() if kind == "min" else values.max())
    return float(_column(quantity, solution)[_row(quantity, solution)])


def scale(quantity: Quantity, expected: float, solution: Solution) -> float:
    """What an error of ``quantity`` is relative to: the expected time, or the component's peak."""
    if quantity.kind in TIMES:
        return abs(expected)
    if quantity.kind in COUNTS:
        return 0.0
    if quantity.kind in _FORCES or quantity.kind == "acceleration":
        values = _column(quantity, solution)
    else:
        name = "v" if "velocity" in quantity.kind else "q"
        values = _everywhere(solution, name, _axis(quantity, solution))
    finite = np.abs(values[np.isfinite(values)])
    return max(abs(expected), float(finite.max()) if finite.size else 0.0)


def _everywhere(solution: Solution, name: str, column: int) -> np.ndarray:
    """All known values of a component: at the outputs and at the events."""
    log = solution.events
    count = min(int(log.count), log.time.shape[0])
    parts = [np.asarray(getattr(solution, name))[:, column]]
    parts.append(np.asarray(getattr(log, name))[:count, column])
    if name == "v":
        parts.append(np.asarray(log.v_before)[:count, column])
    return np.concatenate(parts)


def _column(quantity: Quantity, solution: Solution) -> np.ndarray:
    kind = quantity.kind
    if kind not in _FORCES:
        name = _TIMED.get(kind) or _FINAL[kind]
        return np.asarray(getattr(solution, name))[:, _axis(quantity, solution)]
    n_contacts = np.asarray(solution.lambda_t).shape[-1]
    values = np.asarray(getattr(solution, kind))
    names = solution.names[:n_contacts][n_contacts - values.shape[-1] :]
    return values[:, _contact(quantity, names)]


def _row(quantity: Quantity, solution: Solution) -> int:
    ts = np.asarray(solution.ts)
    if quantity.kind in _FINAL:
        return ts.size - 1
    time = float(quantity.argument or 0.0)
    best = int(np.argmin(np.abs(ts - time)))
    if abs(ts[best] - time) > 1e-12 * max(1.0, abs(time)):
        raise ProblemError(f"{quantity}: the time lies outside the simulated span")
    return best


def _axis(quantity: Quantity, solution: Solution) -> int:
    if quantity.name not in solution.axes:
        raise ProblemError(
            f"{quantity}: no degree of freedom {quantity.name!r}"
            f"{nearest(quantity.name, solution.axes)}; declared are {', '.join(solution.axes)}"
        )
    return solution.axes.index(quantity.name)


def _contact(quantity: Quantity, names: tuple[str, ...]) -> int:
    """A contact by its full name (``friction.pad``), its own name, or none if it is the only."""
    matches = [i for i, n in enumerate(names) if quantity.name in ("", n, n.rpartition(".")[2])]
    if len(matches) != 1:
        raise ProblemError(
            f"{quantity}: no single contact {quantity.name!r}{nearest(quantity.name, names)}; "
            f"there are {', '.join(names) or 'none'}"
        )
    return matches[0]
