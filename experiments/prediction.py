"""Errors of a fit on the records that it was fitted to, and on another one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import stack
from jfric.fits.fit_result import FitResult
from jfric.fits.free import full_experiment
from jfric.fits.objective import Objective
from jfric.system.problem import Problem


def relative_error(result: FitResult, experiment: Experiment | None = None) -> float:
    """``|predicted - measured| / |measured|`` over the fitted records, or over another record,
    predicted with the fitted values and its own initial state."""
    objective = result.objective
    if experiment is not None:
        objective = _on(result, experiment)
    predicted = objective.linearised_at(result.vector).predicted
    measured, used = np.asarray(objective.measured), objective.weight > 0
    return float(np.linalg.norm((predicted - measured)[used]) / np.linalg.norm(measured[used]))


def _on(result: FitResult, experiment: Experiment) -> Objective:
    """The objective of a fit with the data of another experiment."""
    fitted = result.objective
    layout = fitted.layout
    if np.any(layout.columns != layout.columns[0]):
        raise ProblemError("free: parameters of single experiments cannot predict another one")
    problem = getattr(fitted.model, "problem", None)
    if isinstance(problem, Problem):
        experiment = full_experiment(problem, experiment)
    start, x0 = fitted.model.initial(experiment)
    data, used, _ = stack([experiment], fitted.data.signals, [start], [x0])
    return Objective(
        fitted.model, data, replace(layout, columns=layout.columns[:1]), used.astype(float)
    )
