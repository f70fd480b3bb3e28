"""Parameters and times as texts of the command line: ``path=value``, with or without units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from jfric.errors import ProblemError, within
from jfric.system.expression import Expression
from jfric.system.naming import find_path, parameters, path_dimension, with_numbers
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, UnitError, to_si
from jfric.system.validation import validate


def split_assignment(text: str, form: str, option: str) -> tuple[str, str]:
    """Path and values of ``PATH=VALUES``; ``form`` describes them in the message."""
    path, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not path or not values:
        raise ProblemError(f"{option}: found {text!r}, expected {form}")
    return path, values


def assigned(
    problem: Problem, given: Iterable[str], form: str, option: str
) -> Iterator[tuple[str, str]]:
    """Full path of a parameter and the text of its values, for each of the ``PATH=VALUES``.

    Raises :class:`ProblemError` that names the nearest valid path, and for a path given twice.
    """
    found = set()
    for text in given:
        path, values = split_assignment(text, form, option)
        with within(f"{option}: ", KeyError):
            name = find_path(problem, path)
        if name in found:
            raise ProblemError(f"{option}: found {name!r} twice")
        found.add(name)
        yield name, values


def parse_number(problem: Problem, name: str, text: str, option: str = "--vary") -> float:
    """A value of the parameter with the full path ``name``, in SI units."""
    with within(f"{option} {name}: ", UnitError):
        value = to_si(text.strip(), path_dimension(problem, name))
    if not isinstance(value, float):
        raise ProblemError(f"{option} {name}: found {text!r}, expected a number, not an expression")
    return value


def parse_time(text: str, option: str) -> float:
    """A time, with or without its unit, in seconds."""
    with within(f"{option}: ", UnitError):
        value = to_si(text, DIMENSIONS["time"])
    if not isinstance(value, float):
        raise ProblemError(f"{option}: found {text!r}, expected a time, not an expression")
    return value


def apply_overrides(problem: Problem, assignments: Iterable[str]) -> Problem:
    """``problem`` with every ``path=value`` applied; the result is validated.

    Raises :class:`ProblemError` that names the nearest valid path, or the mistake in the value.
    """
    form = "path=value such as friction.mu=0.2"
    values = {n: _value(problem, n, x) for n, x in assigned(problem, assignments, form, "--set")}
    if not values:
        return problem
    with within("--set: ", ValueError):
        changed = with_numbers(problem, values)
    validate(changed)
    return changed


def _value(problem: Problem, name: str, text: str) -> np.ndarray:
    several = text.startswith("[")
    parts = text.strip("[]").split(",") if several else [text]
    numbers = np.asarray([parse_number(problem, name, part, "--set") for part in parts])
    leaf = parameters(problem)[name]
    shape: tuple[int, ...] = () if isinstance(leaf, Expression) else np.shape(leaf)
    found = np.asarray(numbers if several else numbers[0])
    if found.shape != shape:
        wanted = f"a list of {shape[0]} numbers, [a, b, ...]" if shape else "one number"
        raise ProblemError(f"--set {name}: found {text!r}, expected {wanted}")
    return found
