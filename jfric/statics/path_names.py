"""Names of parameters that a path of equilibria follows."""

from __future__ import annotations

from jfric.errors import ProblemError
from jfric.system.expression import Expression
from jfric.system.naming import find_path, get_parameter
from jfric.system.problem import Problem


def checked_path(problem: Problem, path: str) -> str:
    """The full path of the parameter ``path``; raises :class:`ProblemError` where there is
    none, or it is computed from shared parameters."""
    try:
        name = find_path(problem, path)
    except KeyError as error:
        raise ProblemError(str(error.args[0])) from None
    value = get_parameter(problem, name)
    if isinstance(value, Expression):
        shared = ", ".join(f"parameters.{r}" for r in value.references)
        raise ProblemError(f"{name}: computed as {value.text!r}; vary {shared} instead")
    return name
