"""Factors on friction that depend on position, from their tables and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jfric.errors import ProblemError
from jfric.files.function_tables import number
from jfric.system.position_factor import AbstractPositionFactor, PeriodicFactor, SplineFactor
from jfric.system.units import Dimension

if TYPE_CHECKING:
    from jfric.files.law_tables import PositionTable


def position_factor(
    table: PositionTable, where: str, measures: Dimension | None
) -> AbstractPositionFactor:
    """The factor that ``table`` describes; raises :class:`jfric.ProblemError`."""
    given = table.given()
    fields = ("period", "cosine", "sine") if "period" in given else ("x", "factor")
    for field in given:
        if field not in fields:
            raise ProblemError(
                f"{where}.{field}: cannot be given beside {fields[0]}; allowed are "
                f"{' and '.join(fields[1:])}"
            )
    if "x" in given and "factor" not in given:
        raise ProblemError(f"{where}.factor: is missing; give one for each of x")

    def values(field: str) -> tuple:
        known = measures if field == "x" else None
        return tuple(
            number(value, f"{where}.{field}[{i}]", known)
            for i, value in enumerate(given.get(field, ()), 1)
        )

    if "x" in given:
        return SplineFactor(values("x"), values("factor"))
    period = number(given["period"], f"{where}.period", measures)
    return PeriodicFactor(period, values("cosine"), values("sine"))


def position_table(factor: Any, where: str, written: Any) -> dict[str, Any]:
    """The table of a factor, each number as ``written`` makes it; raises
    :class:`jfric.ProblemError` for one of a class of your own."""
    if isinstance(factor, PeriodicFactor):
        found = {"period": written(factor.period, where)}
        lists = {"cosine": factor.cosine, "sine": factor.sine}
    elif isinstance(factor, SplineFactor):
        found, lists = {}, {"x": factor.x, "factor": factor.factor}
    else:
        raise ProblemError(f"{where}: a {type(factor).__name__} cannot be written to a file")
    return found | {key: [written(v, where) for v in of] for key, of in lists.items() if of}
