"""Values of fields as they stand in a file: numbers, laws, functions of time."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jax.core import Tracer

from jfric.errors import ProblemError
from jfric.system.derived_functions import Clipped, Until
from jfric.system.expression import Expression
from jfric.system.functions import (
    AbstractFunction,
    Constant,
    Harmonic,
    PiecewiseLinear,
    Ramp,
    Steps,
    Sum,
)
from jfric.system.laws import AbstractLaw, Directional, PerAxis


def law_values(law: AbstractLaw, where: str) -> dict[str, Any]:
    """Fields of a law, and its name where they do not tell it."""
    from jfric.files.build import pick_law
    from jfric.system.laws import LAWS

    names = {cls: name for name, cls in LAWS.items()}
    if type(law) not in names:
        raise ProblemError(
            f"{where}: the law {type(law).__name__} is not in jfric.system.laws.LAWS "
            "and cannot be written to a file"
        )
    result: dict[str, Any] = {}
    for field in dataclasses.fields(law):
        value = getattr(law, field.name)
        if value is None or value is False:
            continue
        if isinstance(value, Directional):
            value = inline_table(
                {k: _at_knots(getattr(value, k), where) for k in ("positive", "negative")}
            )
        elif isinstance(value, PerAxis):
            value = [as_written(x, where) for x in (value.first, value.second)]
        elif value is not True:
            value = _at_knots(value, where)
        result[field.name] = value
    if pick_law(set(result), LAWS) is not type(law):
        result["law"] = names[type(law)]
    return result


def _at_knots(value: Any, where: str) -> Any:
    """A number, or those at the knots of a curve."""
    if isinstance(value, tuple):
        return [as_written(x, where) for x in value]
    return as_written(value, where)


def function_values(function: AbstractFunction, where: str) -> Any:
    """A number, or a function of time as an inline table."""
    match function:
        case Constant():
            return as_written(function.value, where)
        case Steps() | PiecewiseLinear():
            form = "steps" if isinstance(function, Steps) else "linear"
            fields = ("times", "values")
        case Ramp():
            form, fields = "ramp", ("rate", "value")
        case Harmonic():
            form, fields = "harmonic", ("amplitude", "omega", "phase")
        case Until():
            fields = {f: as_written(getattr(function, f), where) for f in ("end", "after")}
            inner = {"function": function_values(function.function, where)}
            return inline_table({"until": inner | fields})
        case Clipped():
            periods = {"periods": function.periods} if function.periods else {}
            inner = {"function": function_values(function.function, where)}
            return inline_table({"clipped": inner | periods})
        case Sum():
            return inline_table({"sum": [function_values(term, where) for term in function.terms]})
        case _:
            raise ProblemError(
                f"{where}: the function of time {type(function).__name__} cannot be "
                "written to a file"
            )
    return inline_table({form: {f: as_written(getattr(function, f), where) for f in fields}})


def inline_table(values: dict[str, Any]):
    """A table within a line, and those within it."""
    import tomlkit

    table = tomlkit.inline_table()
    for key, value in values.items():
        table[key] = inline_table(value) if type(value) is dict else value
    return table


def as_written(value: Any, where: str) -> Any:
    """Numbers, or the text of an expression; ``where``: for the message alone."""
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, Tracer):
        raise ProblemError(f"{where}: a value being traced by jax cannot be written to a file")
    return np.asarray(value, dtype=float).tolist()


def matrix_rows(value: Any) -> list:
    """Rows of numbers and expressions."""
    if isinstance(value, (tuple, list)):
        return [[as_written(entry, "matrices") for entry in row] for row in value]
    return as_written(value, "matrices")


def is_zero(value: Any) -> bool:
    """Whether a value is known to be zero."""
    return not isinstance(value, Expression) and bool(np.all(np.asarray(value) == 0.0))
