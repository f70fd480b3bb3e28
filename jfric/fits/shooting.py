"""Multiple shooting: parameters from short windows that begin at measured states.

A window forgets what happened before it: its cost is nearly a parabola where that of the whole
record, of a chaotic motion or without a known beginning, has many valleys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.arrange import windows
from jfric.fits.optimise.growing import STEPS, growing
from jfric.fits.optimise.levenberg_marquardt import levenberg_marquardt
from jfric.fits.parameter_vector import Layout
from jfric.fits.recipe import Recipe
from jfric.fits.task import prepare
from jfric.system.problem import Problem

#: Windows of the shortest record, unless their length is given.
WINDOWS = 8


def shooting(
    recipe: Recipe, options: Mapping[str, Any], layout: Layout, count: int, seed: int
) -> np.ndarray:
    """At most ``count`` starts (n, P) for the whole records: where fits of windows end.

    ``options``: of :func:`jfric.fits.task.prepare`; ``window`` [s]: their length. Initial states
    are those of the first window; what else belongs to one experiment keeps its first value.
    """
    problem = recipe.problem
    system = problem if isinstance(problem, Problem) else getattr(problem, "problem", None)
    if options["residual"] != "output" or not isinstance(system, Problem):
        raise ProblemError(
            "search: 'shooting' cuts records of signals into windows, it needs residual='output' "
            "and a jfric.Problem; take search='global'"
        )
    missing = [dof for dof in system.axes for e in recipe.experiments if dof not in e.y]
    if missing:
        raise ProblemError(
            f"search: 'shooting' begins windows at measured positions, {missing[0]!r} is not "
            "measured; take search='global'"
        )
    shortest = min(float(np.ptp(e.t)) for e in recipe.experiments)
    length = options["window"] or shortest / WINDOWS
    cut = {**options, "residual": "windows", "window": length}
    free = {
        path: item
        for path, item in recipe.free.items()
        if not path.startswith("initial.") and not item.per_experiment
    }
    task = prepare(system, recipe.experiments, free, **cut)
    objective = task.objective
    x0 = growing(objective, count, seed)
    found = levenberg_marquardt(
        lambda x, _: objective.normal(x), objective.layout, x0, max_iterations=2 * STEPS
    )
    counts = [len(windows(e, system.axes, length)) for e in recipe.experiments]
    first = np.cumsum([0, *counts])[:-1]
    return _whole(layout, objective.layout, first, found.x[np.isfinite(found.cost)])


def _whole(layout: Layout, cut: Layout, first: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Parameters (n, P) of the whole records from those of windows; ``first`` (E,): the first
    window of each record."""
    points = np.tile(layout.init, (x.shape[0], 1))
    for column, path in enumerate(layout.paths):
        if path not in cut.paths:
            continue
        own = cut.columns[first, cut.paths.index(path)]
        # Where all records share a number, the last one that is written stays.
        points[:, layout.columns[:, column]] = x[:, own]
    lower, upper = layout.bounds
    return np.clip(points, lower, upper)
