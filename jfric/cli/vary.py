"""The option ``--vary``: a parameter, and values that may carry units."""

from __future__ import annotations

from jfric.errors import ProblemError
from jfric.files.path_dimensions import path_dimension
from jfric.system.problem import Problem
from jfric.system.units import UnitError, to_si


def split_vary(text: str, form: str, option: str = "--vary") -> tuple[str, str]:
    """Path and values of ``PATH=VALUES``; ``form`` says in the message how the values look."""
    path, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not path or not values:
        raise ProblemError(f"{option}: found {text!r}, expected {form}")
    return path, values


def vary_number(problem: Problem, name: str, text: str, option: str = "--vary") -> float:
    """A value of the parameter with the full path ``name``, in SI units."""
    try:
        value = to_si(text.strip(), path_dimension(problem, name))
    except UnitError as error:
        raise ProblemError(f"{option} {name}: {error}") from None
    if not isinstance(value, float):
        raise ProblemError(f"{option} {name}: found {text!r}, expected a number, not an expression")
    return value
