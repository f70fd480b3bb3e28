"""What a fit returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jfric.identify.experiment import Experiment
from jfric.identify.levenberg_marquardt import Outcome
from jfric.identify.objective import Linearisation, Objective


@dataclass
class FitResult:
    """Values of the free parameters and everything needed to judge them.

    ``names`` (P,): free numbers, ``PATH`` or ``PATH[EXPERIMENT]``. ``vector`` (P,): their values.
    """

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
    #: How the minimum was reached, where that needs to be said.
    remarks: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, float]:
        """Values by name."""
        return dict(zip(self.names, self.vector.tolist(), strict=True))

    def linearised(self) -> Linearisation:
        """Predictions, residuals and derivatives at the fit, by experiment."""
        found = self.objective.linearise(self.vector[None])
        return Linearisation(*(a[0] for a in found))
