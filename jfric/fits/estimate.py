"""A fit as data, from which measures of uncertainty and files are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from jfric.fits.data.experiment import Experiment
from jfric.fits.objective import Linearisation, Objective
from jfric.fits.optimise.descents import Outcome
from jfric.fits.optimise.direct_search import Cloud
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


@dataclass
class Estimate:
    """The fields of a :class:`jfric.FitResult`, from which its methods are computed."""

    names: tuple[str, ...]
    vector: np.ndarray
    cost: float
    outcome: Outcome
    at_bound: np.ndarray
    waterfall: list[dict[str, Any]]
    sigma: Mapping[str, float]
    experiments: tuple[Experiment, ...]
    objective: Objective = field(repr=False)
    seed: int = 0
    remarks: tuple[str, ...] = ()
    recipe: Recipe | None = field(default=None, repr=False)
    cloud: Cloud | None = field(default=None, repr=False)

    def linearised(self) -> Linearisation:
        """Predictions (E, m, k), residuals, derivatives and status at the fit."""
        return self.objective.linearised_at(self.vector)
