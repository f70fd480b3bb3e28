"""The tables ``[periodic]`` and ``[response]`` of a file: which periodic motion is looked for, and
over what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jfric.errors import ProblemError
from jfric.files.function_tables import number
from jfric.system.expression import Expression
from jfric.system.naming import find_path, path_dimension
from jfric.system.problem import Problem
from jfric.system.states import state_units
from jfric.system.units import DIMENSIONS, Dimension

if TYPE_CHECKING:
    from jfric.files import tables


def periodic(table: tables.PeriodicTable | None, problem: Problem) -> dict[str, Any]:
    """Settings that the table ``[periodic]`` gives, in SI units."""
    if table is None:
        return {}
    found: dict[str, Any] = {
        key: value
        for key in ("section", "cycles", "segments", "harmonics")
        if (value := getattr(table, key)) is not None
    }
    time = DIMENSIONS["time"]
    if table.period is not None:
        found["period"] = _value(table.period, "period", time)
    if table.transient is not None:
        # A number of periods where loads have one, else a time.
        given = _value(table.transient, "transient", time)
        found["transient"] = int(given) if given.is_integer() else given
    if table.state is not None:
        found["state"] = _state(table.state, problem)
    if table.vary is None:
        for key in ("start", "stop"):
            if getattr(table, key) is not None:
                raise ProblemError(
                    f"periodic.{key}: found one without vary, which names the parameter"
                )
        return found
    try:
        name = find_path(problem, table.vary)
    except KeyError as error:
        raise ProblemError(f"periodic.vary: {error.args[0]}") from None
    measures = path_dimension(problem, name)
    for key in ("start", "stop"):
        if getattr(table, key) is None:
            raise ProblemError(f"periodic.{key}: not given, vary needs both start and stop")
        found[key] = _value(getattr(table, key), key, measures)
    return found | {"vary": name}


def response(table: tables.ResponseTable | None) -> dict[str, Any]:
    """Settings that the table ``[response]`` gives, in SI units."""
    if table is None:
        return {}
    measures = DIMENSIONS["angular velocity"]
    ends = {k: _value(getattr(table, k), k, measures, "response") for k in ("start", "stop")}
    found = {"load": table.load, **ends}
    return found if table.quantity is None else found | {"quantity": table.quantity}


def _state(given: list[Any], problem: Problem) -> list[float]:
    """Positions, velocities, then states of elements."""
    kinds, states = list(problem.dofs.values()), state_units(problem)
    if len(given) != 2 * len(kinds) + len(states):
        behind = "".join(f", then z.{name}" for name in states)
        raise ProblemError(
            f"periodic.state: found {len(given)} numbers, needs {len(kinds)} positions and "
            f"{len(kinds)} velocities{behind}"
        )
    units = {"translation": ("m", "m/s"), "rotation": ("rad", "rad/s")}
    names = [units[kind][i] for i in (0, 1) for kind in kinds] + list(states.values())
    every = {d.unit: d for d in DIMENSIONS.values()}
    return [
        _value(x, f"state[{i + 1}]", every.get(unit))
        for i, (x, unit) in enumerate(zip(given, names, strict=True))
    ]


def _value(given: Any, where: str, measures: Dimension | None, table: str = "periodic") -> float:
    found = number(given, f"{table}.{where}", measures)
    if isinstance(found, Expression):
        raise ProblemError(f"{table}.{where}: found the expression {given!r}, expected a number")
    return float(found)
