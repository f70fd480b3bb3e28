"""Checks of the values of a sweep, before anything is computed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jfric.errors import ProblemError, within
from jfric.files.config import time_span
from jfric.solvers.base import AbstractSolver
from jfric.statics.path_names import checked_path
from jfric.sweeps.design import Design, Zip
from jfric.system.naming import parameters, with_numbers
from jfric.system.problem import Problem
from jfric.system.validation import validate

#: Largest number of corners of a box of parameters that are checked.
MAX_CORNERS = 64


def by_path(problem: Problem, vary: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the full paths of single numbers."""
    known: dict[str, Any] = parameters(problem)
    result = {}
    for path, values in dict(vary).items():
        with within("vary: "):
            name = checked_path(problem, str(path))
        if name in result:
            raise ProblemError(f"vary: found {name!r} twice")
        leaf = known[name]
        if np.ndim(leaf):
            raise ProblemError(
                f"vary: {name} is a list of {np.size(leaf)} numbers, only single numbers can be "
                "varied; let its entries refer to shared parameters"
            )
        result[name] = values
    return result


def check_values(problem: Problem, design: Design, solver: AbstractSolver) -> None:
    """Raise :class:`ProblemError` unless the corners of the box of parameters (for parallel lists
    the extreme values one by one) are valid systems that the solver can simulate."""
    corners: Iterable[Sequence[float]]
    if isinstance(design, Zip):
        rows: list[Sequence[float]] = []
        for column in design.columns:
            values = column.values(np.arange(column.count or 0))
            ends = {int(np.argmin(values)), int(np.argmax(values))}
            rows += [design.values(row, row + 1)[0].tolist() for row in ends]
        corners = rows
    else:
        corners = itertools.islice(itertools.product(*design.extremes()), MAX_CORNERS)
    for corner in corners:
        values = dict(zip(design.names, corner, strict=True))
        try:
            changed = with_numbers(problem, values)
            validate(changed)
            solver.require(changed)
            start, end = time_span(changed)
            solver.require_duration(end - start)
        except ProblemError as error:
            point = ", ".join(f"{k} = {v:g}" for k, v in values.items())
            raise ProblemError(f"vary: at {point}: {error}") from None
