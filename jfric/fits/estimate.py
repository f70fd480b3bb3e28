"""A fit as data, from which measures of uncertainty and files are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from jfric.fits.data.experiment import Experiment
from jfric.fits.objective import Linearisation, Objective
from jfric.fits.optimise.direct_search import Cloud
from jfric.fits.optimise.levenberg_marquardt import Outcome
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
    """Values of the free parameters and the data needed to judge them; see
    :class:`jfric.FitResult`."""

    names: tuple[str, ...]
    vector: np.ndarray
    #: Half the sum of squared weighted residuals, priors included.
    cost: float
    outcome: Outcome
    #: -1: at its lower bound, 1: at its upper bound, 0: inside.
    at_bound: np.ndarray
    #: Starts, where they ended, costs and outcomes, best first.
    waterfall: list[dict[str, Any]]
    #: Standard deviation of the noise for each signal: given, or estimated from the residuals.
    sigma: Mapping[str, float]
    experiments: tuple[Experiment, ...]
    objective: Objective = field(repr=False)
    seed: int = 0
    #: Remarks on how the minimum was reached.
    remarks: tuple[str, ...] = ()
    #: The arguments of the fit, with which it can be repeated.
    recipe: Recipe | None = field(default=None, repr=False)
    #: Points around the values, from which intervals follow where parameters act in steps.
    cloud: Cloud | None = field(default=None, repr=False)

    def linearised(self) -> Linearisation:
        """Predictions (E, m, k), residuals, derivatives and status at the fit."""
        return self.objective.linearised_at(self.vector)
