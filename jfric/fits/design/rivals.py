"""Two laws as one model, whose mixture is a parameter: a design for it tells the laws apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import Data
from jfric.fits.free import Free
from jfric.fits.model import AbstractModel, Prediction
from jfric.fits.objective import failed
from jfric.system.problem import Problem

#: Path of the share of the rival in the predictions, and its range around none of it.
SHARE, RANGE = "rival.share", Free(-1.0, 1.0, init=0.0, scale="linear")


class Rivals(AbstractModel):
    """``(1 - s) y + s y_r`` with the predictions ``y`` of a law and ``y_r`` of its rival.

    ``s`` is the parameter ``rival.share``. Its standard deviation at zero, with all parameters of
    the law free, is the reciprocal of the number of standard errors by which an experiment rejects
    the rival (A. C. Atkinson, Biometrika 59, 1972). The rival has its own numbers except those of
    the ``inputs``.
    """

    law: AbstractModel
    rival: AbstractModel
    inputs: tuple[str, ...] = eqx.field(static=True)

    @property
    def problem(self) -> Problem:
        """The problem of the law, which completes paths."""
        return self.law.problem  # pyright: ignore[reportAttributeAccessIssue]

    def check(self, experiments: Sequence[Experiment], signals: Sequence[str]) -> None:
        for model in (self.law, self.rival):
            model.check(experiments, signals)

    def default(self, path: str, experiment: Experiment) -> float:
        return 0.0 if path == SHARE else self.law.default(path, experiment)

    def initial(self, experiment: Experiment) -> tuple[float, dict[str, float]]:
        return self.law.initial(experiment)

    def simulate_outputs(self, values: Mapping[str, Array], data: Data) -> Prediction:
        own = {path: x for path, x in values.items() if path != SHARE}
        law = self.law.simulate_outputs(own, data)
        given = {path: x for path, x in own.items() if path in self.inputs}
        rival = self.rival.simulate_outputs(given, data)
        y = law.y + values.get(SHARE, jnp.zeros(())) * (rival.y - law.y)
        return Prediction(y, jnp.where(failed(law.status), law.status, rival.status))
