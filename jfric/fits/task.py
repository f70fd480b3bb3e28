"""A fit that is checked and put together, ready to be computed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jfric.errors import ProblemError, nearest
from jfric.fits.arrange import closed, sampled_or_whole, windowed
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.quantisation import Steps, steps_of
from jfric.fits.data.stacking import Data, labels, signals_of, stack
from jfric.fits.free import Free, check_free
from jfric.fits.full_paths import full_controller, full_experiment, full_free, full_signals
from jfric.fits.inverse_model import InverseModel, inverse_experiments
from jfric.fits.losses import LOSSES
from jfric.fits.model import AbstractModel, OutputModel
from jfric.fits.objective import Objective, weighted
from jfric.fits.parameter_vector import Layout, lay_out
from jfric.fits.steady_model import SteadyModel
from jfric.numerics.limits import SAMPLES, require_count
from jfric.solvers.base import require_solver
from jfric.solvers.event_driven.solver import EventDriven
from jfric.system.controller import Controller
from jfric.system.problem import Problem

#: What is compared with the data, by name: ``MODELS[name](problem, solver, hold)``.
MODELS: dict[str, Callable[..., AbstractModel]] = {
    "output": OutputModel,
    "steady": lambda problem, solver, hold: SteadyModel(problem, solver),
}


class Task:
    """A fit that is ready to be computed."""

    def __init__(self, experiments, objective: Objective, used, sigma, steps):
        self.experiments: tuple[Experiment, ...] = experiments
        self.objective = objective
        #: (E, m, k) Which samples count, and their noise; NaN where it is unknown.
        self.used: np.ndarray = used
        self.sigma: np.ndarray = sigma
        #: What the resolution of readings adds to the noise.
        self.steps: Steps = steps

    @property
    def noise_is_known(self) -> bool:
        """Whether every sample that counts has a given noise."""
        return bool(np.all(np.isfinite(self.sigma[self.used])))

    def estimate_noise(self, x: np.ndarray) -> None:
        """Set the weights of signals of unknown noise from the residuals at ``x`` (P,)."""
        objective = self.objective
        predicted = objective.linearise(x[None]).predicted[0]
        count = max(int(np.sum(self.used)), 1)
        free = max(count - objective.layout.size, 1)
        weight = objective.weight.copy()
        for j in range(self.used.shape[-1]):
            own = self.used[..., j] & ~np.isfinite(self.sigma[..., j])
            if not own.any():
                continue
            off = (predicted - objective.measured)[..., j][own]
            if objective.loss == "linear":
                size = np.sqrt(np.mean(off**2) * count / free)
            else:
                # Outliers do not move the median.
                size = 1.4826 * np.median(np.abs(off - np.median(off)))
            least = 1e-12 * max(float(np.max(np.abs(objective.measured[..., j][own]))), 1e-300)
            # Readings in steps leave no less than these do.
            rest = max(size**2 - float(np.mean(self.steps.variance[..., j][own])), least**2)
            noise = np.sqrt(rest + self.steps.counted[..., j])
            weight[..., j] = np.where(own, 1.0 / noise, weight[..., j])
        objective.weight = weight

    def noise(self) -> dict[str, float]:
        """Root mean square noise of each signal, as the weights have it."""
        weight = np.where(self.used, self.objective.weight, 1.0)
        return {
            name: float(np.sqrt(np.mean((1.0 / weight**2 - self.steps.more)[own, j])))
            for j, name in enumerate(self.objective.data.signals)
            if (own := self.used[..., j]).any()
        }


def prepare(
    problem: Problem | AbstractModel,
    experiments: Experiment | Sequence[Experiment],
    free: Mapping[str, Free],
    *,
    observe=None,
    residual: str | Callable = "output",
    loss: str = "linear",
    loss_scale: float = 1.0,
    solver: Any = None,
    hold: str = "zero",
    controller: Controller | None = None,
    window: float | None = None,
) -> Task:
    """Check everything that can be checked without computing, and put it together."""
    chosen = (experiments,) if isinstance(experiments, Experiment) else tuple(experiments)
    if not chosen or not all(isinstance(e, Experiment) for e in chosen):
        raise ProblemError(
            f"experiments: found {experiments!r}, needs a jfric.Experiment or a list of them"
        )
    if loss not in LOSSES:
        raise ProblemError(
            f"loss: found {loss!r}{nearest(loss, LOSSES)}, allowed are {', '.join(LOSSES)}"
        )
    system = problem if isinstance(problem, Problem) else getattr(problem, "problem", None)
    if isinstance(system, Problem):
        chosen = tuple(full_experiment(system, e) for e in chosen)
        free, observe = full_free(system, free), full_signals(system, observe)
        controller = full_controller(system, controller)
    controller = _remembering(controller, free)
    varying = [path for path, item in free.items() if isinstance(item, Free) and item.varies]
    if varying:
        raise ProblemError(
            f"free.{varying[0]}: values that vary around a common mean are found by "
            "jfric.fit_hierarchical"
        )
    if residual == "input" and isinstance(problem, Problem):
        problem, chosen, force = closed(problem, chosen, controller)
        residual, observe = "output", force if observe is None else observe
    elif residual == "windows" and isinstance(problem, Problem):
        simulated = sampled_or_whole(problem, chosen, solver, hold)
        chosen, free = windowed(problem, chosen, free, window)
        residual, problem = "output", simulated
    elif residual == "inverse" and isinstance(problem, Problem):
        chosen = tuple(inverse_experiments(problem, chosen, hold=hold))
        residual, observe, problem = "output", None, InverseModel(problem)
    signals = signals_of(chosen, observe)
    model, function = _model(problem, residual, solver, hold)
    model.check(chosen, signals)
    check_free(getattr(model, "problem", None), free)
    layout = _layout(model, chosen, free)
    first = [model.initial(e) for e in chosen]
    data, used, sigma = stack(chosen, signals, [s for s, _ in first], [x for _, x in first])
    _require_motion(chosen, data, used, sigma)
    steps = steps_of(chosen, signals, used)
    weight = _weights(data, used, sigma, steps)
    objective = Objective(model, data, layout, weight, function, loss, loss_scale)
    return Task(chosen, objective, used, sigma, steps)


def _remembering(controller: Controller | None, free: Mapping[str, Free]) -> Controller | None:
    """The controller with room for the longest delay that the fit may try."""
    item = free.get("controller.delay")
    if controller is None or not isinstance(item, Free):
        return controller
    require_count("free.controller.delay: its upper bound", math.ceil(item.upper), 0, SAMPLES)
    longest = max(controller.longest, math.ceil(item.upper))
    return dataclasses.replace(controller, longest=longest)


def _model(problem, residual, solver, hold) -> tuple[AbstractModel, Callable]:
    function = residual if callable(residual) else weighted
    if isinstance(problem, AbstractModel):
        return problem, function
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"problem: found {type(problem).__name__}, needs a jfric.Problem, such as "
            "jfric.load(FILE)"
        )
    name = "output" if callable(residual) else residual
    if name not in MODELS:
        allowed = (*MODELS, "input", "windows", "inverse")
        raise ProblemError(
            f"residual: found {name!r}{nearest(name, allowed)}, allowed are {', '.join(allowed)} "
            "and a function"
        )
    # A log of events is of no use here.
    solver = EventDriven(max_events=0) if solver is None else solver
    require_solver(solver)
    if solver.adjoint == "auto":
        # Jacobians are taken in forward mode, gradients of many parameters in reverse mode.
        solver = dataclasses.replace(solver, adjoint="forward")
    return MODELS[name](problem, solver, hold), function


def _layout(model: AbstractModel, experiments, free: Mapping[str, Free]) -> Layout:
    defaults = {path: np.array([model.default(path, e) for e in experiments]) for path in free}
    return lay_out(free, defaults, labels(experiments))


def _require_motion(experiments, data: Data, used: np.ndarray, sigma: np.ndarray) -> None:
    """A signal of unknown noise that never changes says neither what moves nor what is noise."""
    y = np.asarray(data.y)
    for j, name in enumerate(data.signals):
        own = used[..., j]
        if not own.any() or np.isfinite(sigma[..., j][own]).any():
            continue
        values = [y[e, ..., j][own[e]] for e in range(len(experiments)) if own[e].any()]
        if all(np.all(v == v[0]) for v in values):
            raise ProblemError(
                f"y.{name}: found {values[0][0]:g} at all of {int(own.sum()):,} samples, nothing "
                "moves; is it the right column? (give sigma where a standstill was measured)"
            )


def _weights(data: Data, used: np.ndarray, sigma: np.ndarray, steps: Steps) -> np.ndarray:
    """``1/sigma``; where the noise is unknown, one over the spread of the signal."""
    y = np.asarray(data.y)
    spread = np.array([np.std(y[..., j][used[..., j]]) or 1.0 for j in range(y.shape[-1])])
    known = np.sqrt(np.where(np.isfinite(sigma), sigma, 1.0) ** 2 + steps.counted)
    return np.where(used, 1.0 / np.where(np.isfinite(sigma), known, spread), 0.0)
