"""The table ``[statics]`` of a file: the parameter that a path or a limit load follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jfric.errors import ProblemError
from jfric.files.function_tables import number
from jfric.system.expression import Expression
from jfric.system.naming import find_path, path_dimension
from jfric.system.problem import Problem

if TYPE_CHECKING:
    from jfric.files import tables


def statics(table: tables.StaticsTable | None, problem: Problem) -> dict[str, Any]:
    """``vary``, ``start``, ``stop`` and, where given, ``seeds`` in SI units."""
    if table is None:
        return {}
    try:
        name = find_path(problem, table.vary)
    except KeyError as error:
        raise ProblemError(f"statics.vary: {error.args[0]}") from None
    measures = path_dimension(problem, name)

    def value(given: Any, where: str) -> float:
        found = number(given, f"statics.{where}", measures)
        if isinstance(found, Expression):
            raise ProblemError(
                f"statics.{where}: found the expression {given!r}, expected a number"
            )
        return float(found)

    result = {"vary": name, "start": value(table.start, "start"), "stop": value(table.stop, "stop")}
    if isinstance(table.seeds, int):
        return result | {"seeds": table.seeds}
    if table.seeds is not None:
        return result | {"seeds": [value(v, "seeds") for v in table.seeds]}
    return result
