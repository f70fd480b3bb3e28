"""Table ``[fit]``: the free parameters of a fit of the system."""

from __future__ import annotations

from typing import Any

from jfric.errors import ProblemError
from jfric.files.codec import Key, Place
from jfric.files.scalar_codecs import Choice, Flag, Number
from jfric.files.table_codecs import List, Names, Record
from jfric.system.naming import find_path, path_dimension
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, Dimension

_NUMBER = Number("needs a number")
_FREE = Record(
    "FreeTable",
    "Settings of a parameter that a fit may change: bounds, and how its values are chosen.",
    {
        "between": Key(List(_NUMBER, 2, 2), "lower and upper bound", needed=True),
        "init": Key(_NUMBER, "first start"),
        "scale": Key(
            Choice("log", "linear"),
            "scale of starts and steps; log where the lower bound is positive",
        ),
        "prior": Key(List(_NUMBER, 2, 2), "mean and standard deviation of what is known already"),
        "each": Key(Flag(), "whether every record has a value of its own", False),
        "varies": Key(
            Flag(),
            "whether the values of the records scatter around a common mean, which is found with "
            "their scatter",
            False,
        ),
    },
)
FIT = Record(
    "FitTable",
    "Parameters that `jfric fit` and `jfric compare` are free to change.",
    {"free": Key(Names(_FREE), "parameters by path, {between = [LOW, HIGH]}")},
)


def fit_settings(raw: dict[str, Any], problem: Problem) -> dict[str, Any]:
    """Arguments of :class:`jfric.Free` by path, in SI, and the table of the file itself."""
    if not raw.get("free"):
        raise ProblemError(
            'fit.free: missing; give what is free, such as "friction.limit" = {between = ["1 N", '
            '"100 N"]}'
        )
    free = {path: _free(item, path, problem) for path, item in raw["free"].items()}
    return {"free": free, "table": raw}


def _free(raw: dict[str, Any], path: str, problem: Problem) -> dict[str, Any]:
    place = Place(f"fit.free.{path}", inside=free_dimension(problem, path))
    given = _FREE.read(raw, place)
    low, high = given["between"]
    found: dict[str, Any] = {
        "lower": low,
        "upper": high,
        "scale": given.get("scale", "log" if low > 0.0 else "linear"),
        "per_experiment": given.get("each", False),
        "varies": given.get("varies", False),
    }
    found |= {"init": given["init"]} if "init" in given else {}
    return found | ({"prior": tuple(given["prior"])} if "prior" in given else {})


def free_dimension(problem: Problem, path: str) -> Dimension | None:
    """Dimension of the numbers at a path of a fit. Delays and lags are in seconds; other values of
    a sensor, an input or the controller have None, and the fit checks their names."""
    try:
        return path_dimension(problem, find_path(problem, path))
    except KeyError:
        word = path.partition(".")[0]
        late = path in ("delay", "controller.lag") or (
            word in ("sensor", "input") and path.endswith((".delay", ".lag"))
        )
        return DIMENSIONS["time"] if late else None
