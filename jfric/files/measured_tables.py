"""Tables ``[data]`` and ``[controller]``: how columns of measured files map to a system."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from jfric.errors import ProblemError, nearest
from jfric.files.config import Column, Measured
from jfric.files.function_tables import number
from jfric.numerics.limits import SAMPLES
from jfric.system.controller import Controller
from jfric.system.expression import Expression
from jfric.system.naming import find_function, path_dimension
from jfric.system.units import DIMENSIONS, Dimension

if TYPE_CHECKING:
    from jfric.files import data_tables
    from jfric.system.problem import Problem


def measured(table: data_tables.DataTable, problem: Problem) -> Measured:
    """The table ``[data]``; raises :class:`jfric.ProblemError`."""
    time = DIMENSIONS["time"]
    if not table.y:
        raise ProblemError('data.y: missing; give a measured quantity such as u = "column"')

    times = table.time
    steady = times is None
    for name in ("start", "end"):
        if steady and getattr(table, name) is not None:
            raise ProblemError(f"data.{name}: found one without data.time; rows are steady states")
    if steady and not table.u:
        raise ProblemError(
            "data.time: missing; give the column of the times, or in data.u what was set in each "
            'row, such as "load.F.omega", where rows are steady states'
        )

    def instant(name: str) -> float | None:
        value = getattr(table, name)
        return None if value is None else _plain(value, f"data.{name}", time, problem)

    def columns(letter: str) -> dict[str, Column]:
        given = {find_function(problem, k) or k: c for k, c in getattr(table, letter).items()}
        return {
            k: _column(c, f"data.{letter}.{k}", _measures(problem, k), problem)
            for k, c in given.items()
        }

    return Measured(
        time=None if times is None else _column(times, "data.time", time, problem),
        y=columns("y"),
        u=columns("u"),
        records=table.records,
        start=instant("start"),
        end=instant("end"),
        missing_inputs=table.missing_inputs,
        table=table.model_dump(exclude_unset=True),
    )


def controller(table: data_tables.ControllerTable, problem: Problem) -> Controller:
    """The table ``[controller]``; its numbers may use shared parameters."""
    words = ("reads", "drives", "on", "mean")
    values: dict[str, Any] = {
        k: v
        if k in words
        else _plain(v, f"controller.{k}", DIMENSIONS["time"] if k == "lag" else None, problem)
        for k, v in table.given().items()
    }
    values["drives"] = find_function(problem, values["drives"]) or values["drives"]
    delay = float(values.get("delay", 0.0))
    if not 0.0 <= delay <= SAMPLES:
        raise ProblemError(
            f"controller.delay: found {delay:g}, must lie between 0 and {SAMPLES} samples"
        )
    if not values.get("lag", 0.0) >= 0.0:
        raise ProblemError(f"controller.lag: found {values['lag']:g} s, must not be negative")
    if not values.get("limit", math.inf) > 0.0:
        raise ProblemError(f"controller.limit: found {values['limit']:g}, must be positive")
    return Controller(**values, longest=max(3, int(delay) + 1))


def _column(
    value: str | data_tables.ColumnTable, where: str, measures: Dimension | None, problem: Problem
) -> Column:
    if isinstance(value, str):
        return Column(value, measures=measures)
    unit = value.unit
    # A unit may carry a factor: "35.15 N" is the force of one volt.
    text = unit if unit[:1].isdigit() or unit[:1] in "+-." else f"1 {unit}"
    factor = _plain(text, f"{where}.unit", measures, problem) if unit else 1.0
    if factor == 0.0:
        raise ProblemError(f"{where}.unit: found {unit!r}, must not be zero")
    offset = _plain(value.offset, f"{where}.offset", measures, problem)
    step = None
    if value.resolution is not None:
        step = _plain(value.resolution, f"{where}.resolution", measures, problem)
        if not step > 0.0:
            raise ProblemError(f"{where}.resolution: found {step:g}, must be positive")
    return Column(value.column, factor, offset, unit, measures, step)


def _plain(value: Any, where: str, measures: Dimension | None, problem: Problem) -> float:
    found = number(value, where, measures)
    if isinstance(found, Expression):
        try:
            found = float(found.value(problem.parameters))
        except KeyError as error:
            name = str(error.args[0])
            raise ProblemError(
                f"{where}: no parameter {name!r}{nearest(name, problem.parameters)}"
            ) from None
    if not math.isfinite(found) and where != "controller.limit":
        raise ProblemError(f"{where}: found {found}, must be finite")
    return found


def _measures(problem: Problem, name: str) -> Dimension | None:
    """Dimension of the quantity ``name``: a position, velocity or function of time; or None."""
    word, _, signal = name.partition("(")[0].partition(".")
    if name == "period":
        return DIMENSIONS["time"]
    if word == "phase":
        return DIMENSIONS["angle"]
    if word in ("amplitude", "mean"):
        return _measures(problem, signal)
    prefix, _, dof = name.rpartition(".")
    rotates = problem.dofs.get(dof) == "rotation"
    kinds = {
        "": ("length", "angle"),
        "v": ("velocity", "angular velocity"),
        "controller": ("length", "angle"),
    }
    if dof in problem.dofs and prefix in ("", "v"):
        return DIMENSIONS[kinds[prefix][rotates]]
    if name == "controller.reference":
        return None
    try:
        return path_dimension(problem, name)
    except (KeyError, IndexError):
        return None
