"""Table ``[fit]``: what a fit of the system is free to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jfric.errors import ProblemError
from jfric.files.function_tables import number
from jfric.system.expression import Expression
from jfric.system.naming import find_path, path_dimension
from jfric.system.units import DIMENSIONS, Dimension

if TYPE_CHECKING:
    from jfric.files import data_tables
    from jfric.system.problem import Problem


def fit_settings(table: data_tables.FitTable | None, problem: Problem) -> dict[str, Any]:
    """Arguments of :class:`jfric.Free` by path, in SI, and the table as the file gives it."""
    if table is None:
        return {}
    if not table.free:
        raise ProblemError(
            'fit.free: missing; give what is free, such as "friction.limit" = {between = ["1 N", '
            '"100 N"]}'
        )
    free = {path: _free(item, path, problem) for path, item in table.free.items()}
    return {"free": free, "table": table.model_dump(exclude_unset=True)}


def _free(item: data_tables.FreeTable, path: str, problem: Problem) -> dict[str, Any]:
    where, measures = f"fit.free.{path}", free_dimension(problem, path)

    def plain(value: Any, key: str) -> float:
        found = number(value, f"{where}.{key}", measures)
        if isinstance(found, Expression):
            raise ProblemError(f"{where}.{key}: found {value!r}, needs a number")
        return float(found)

    low, high = (plain(x, "between") for x in item.between)
    found: dict[str, Any] = {
        "lower": low,
        "upper": high,
        "scale": item.scale or ("log" if low > 0.0 else "linear"),
        "per_experiment": item.each,
        "varies": item.varies,
    }
    if item.init is not None:
        found["init"] = plain(item.init, "init")
    if item.prior is not None:
        found["prior"] = tuple(plain(x, "prior") for x in item.prior)
    return found


def free_dimension(problem: Problem, path: str) -> Dimension | None:
    """Dimension of the numbers at a path of a fit; None where it is not known: of a sensor, an
    input or the controller, whose names the fit checks, except for delays and lags in seconds."""
    try:
        return path_dimension(problem, find_path(problem, path))
    except KeyError:
        word = path.partition(".")[0]
        late = path in ("delay", "controller.lag") or (
            word in ("sensor", "input") and path.endswith((".delay", ".lag"))
        )
        return DIMENSIONS["time"] if late else None
