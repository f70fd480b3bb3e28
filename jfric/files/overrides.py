"""Parameters given on the command line: ``path=value``, where the value may carry its unit."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from jfric.errors import ProblemError, within
from jfric.system.expression import Expression
from jfric.system.naming import find_path, parameters, path_dimension, with_numbers
from jfric.system.problem import Problem
from jfric.system.units import UnitError, to_si
from jfric.system.validation import validate


def apply_overrides(problem: Problem, assignments: Iterable[str]) -> Problem:
    """``problem`` with every ``path=value`` applied; the result is validated.

    Raises :class:`ProblemError` that names the nearest valid path, or the mistake in the value.
    """
    values = {}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals or not path.strip() or not text.strip():
            raise ProblemError(
                f"--set: found {assignment!r}, expected path=value such as friction.mu=0.2"
            )
        with within("--set: ", KeyError):
            name = find_path(problem, path.strip())
        if name in values:
            raise ProblemError(f"--set: found {name!r} twice")
        values[name] = _value(problem, name, text.strip())
    if not values:
        return problem
    with within("--set: ", ValueError):
        changed = with_numbers(problem, values)
    validate(changed)
    return changed


def _value(problem: Problem, name: str, text: str) -> float | np.ndarray:
    dimension = path_dimension(problem, name)
    parts = text.strip("[]").split(",") if text.startswith("[") else [text]
    with within(f"--set {name}: ", UnitError):
        numbers = [to_si(part.strip(), dimension) for part in parts]
    if any(isinstance(x, Expression) for x in numbers):
        raise ProblemError(f"--set {name}: found {text!r}, expected a number, not an expression")
    leaf = parameters(problem)[name]
    shape: tuple[int, ...] = () if isinstance(leaf, Expression) else np.shape(leaf)
    found = np.asarray(numbers, float) if text.startswith("[") else np.asarray(numbers[0], float)
    if found.shape != shape:
        wanted = f"a list of {shape[0]} numbers, [a, b, ...]" if shape else "one number"
        raise ProblemError(f"--set {name}: found {text!r}, expected {wanted}")
    return found
