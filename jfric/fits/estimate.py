"""Protocol of a fit for measures of uncertainty and files, which need no other part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from jfric.fits.data.experiment import Experiment
from jfric.fits.objective import Linearisation, Objective
from jfric.fits.optimise.levenberg_marquardt import Outcome
from jfric.fits.optimise.stepped import Cloud
from jfric.fits.recipe import Recipe


class HasResiduals(Protocol):
    """Something with residuals at one point of an objective."""

    @property
    def objective(self) -> Objective:
        """The objective."""
        ...

    def linearised(self) -> Linearisation:
        """Predictions, residuals and derivatives there."""
        ...


@runtime_checkable
class Estimate(Protocol):
    """The part of a :class:`jfric.FitResult` that its methods are computed from."""

    names: tuple[str, ...]
    vector: np.ndarray
    cost: float
    outcome: Outcome
    at_bound: np.ndarray
    waterfall: list[dict[str, Any]]
    sigma: Mapping[str, float]
    experiments: tuple[Experiment, ...]
    objective: Objective
    remarks: tuple[str, ...]
    recipe: Recipe | None
    cloud: Cloud | None

    def linearised(self) -> Linearisation:
        """Predictions, residuals and derivatives at the estimate."""
        ...
