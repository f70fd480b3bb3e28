"""Model of windows in which a controller's force and the motion under the measured force count."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import jax.numpy as jnp
from jaxtyping import Array

from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import Data
from jfric.fits.model import AbstractModel, Motion, Prediction
from jfric.fits.sampled_model import SampledModel
from jfric.results.status import Status
from jfric.system.problem import Problem


class LoopAndWindowsModel(AbstractModel):
    """The force of a loop that follows the measured reference, and the motion under the measured
    force, of one system from one initial state.

    ``closed``: with the controller, whose force is predicted; ``opened``: without one, predicts all
    other signals. Both read the same experiment, which has the measured force among ``u`` and
    ``y``."""

    takes_known = True

    closed: SampledModel
    opened: SampledModel

    @property
    def problem(self) -> Problem:
        return self.opened.problem

    def check(self, experiments: Sequence[Experiment], signals: Sequence[str]) -> None:
        for model in (self.closed, self.opened):
            model.check(experiments, signals)

    @property
    def is_long(self) -> bool:
        return True

    def refined(self) -> LoopAndWindowsModel:
        return dataclasses.replace(self, closed=self.closed.refined(), opened=self.opened.refined())

    def motion(self, values: Mapping[str, Array], data: Data) -> Motion | None:
        return self.opened.motion(values, data)

    def default(self, path: str, experiment: Experiment) -> float:
        return self.closed.default(path, experiment)

    def initial(self, experiment: Experiment) -> tuple[float, dict[str, float]]:
        return self.opened.initial(experiment)

    def simulate_outputs(self, values: Mapping[str, Array], data: Data) -> Prediction:
        assert self.closed.controller is not None
        closed, opened = (m.simulate_outputs(values, data) for m in (self.closed, self.opened))
        own = jnp.array([name == self.closed.controller.drives for name in data.signals])
        status = jnp.where(closed.status == int(Status.OK), opened.status, closed.status)
        return Prediction(jnp.where(own, closed.y, opened.y), status)
