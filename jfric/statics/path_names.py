"""Names and intervals of parameters that paths follow."""

from __future__ import annotations

import numpy as np

from jfric.errors import ProblemError, require_no_text, within
from jfric.system.expression import Expression
from jfric.system.naming import find_path, get_parameter, set_parameters
from jfric.system.problem import Problem
from jfric.system.validation import validate


def checked_path(problem: Problem, path: str, what: str = "vary") -> str:
    """The full path of the parameter ``path``; raises :class:`ProblemError` if there is none, or if
    it is computed from shared parameters, with ``what`` to do to these instead."""
    with within("", KeyError):
        name = find_path(problem, path)
    value = get_parameter(problem, name)
    if isinstance(value, Expression):
        shared = ", ".join(f"parameters.{r}" for r in value.references)
        raise ProblemError(f"{name}: computed as {value.text!r}; {what} {shared} instead")
    return name


def checked_interval(problem: Problem, name: str, start: float, stop: float) -> tuple[float, float]:
    """The ends of an interval of the parameter ``name``; raises :class:`ProblemError` if they are
    equal or not allowed for it."""
    for end in (start, stop):
        require_no_text("start, stop", end)
    start, stop = float(start), float(stop)
    if not np.isfinite([start, stop]).all() or start == stop:
        raise ProblemError(f"stop: found {stop:g}, must differ from start ({start:g})")
    for value in (start, stop):
        validate(set_parameters(problem, {name: value}))
    return start, stop
