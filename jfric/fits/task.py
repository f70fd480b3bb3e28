"""A fit that is checked and complete, ready to be computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import Data, ReadingNoise, labels, signals_of, stack, steps_of
from jfric.fits.free import Free, check_free, full_experiment, full_free, full_signals, lay_out
from jfric.fits.model import AbstractModel
from jfric.fits.objective import AbstractLoss, Objective, Squares
from jfric.fits.residuals import AbstractResidual, Outputs, Posed, Simulation
from jfric.system.problem import Problem


@dataclass(frozen=True)
class Setup:
    """The cost of a fit: the compared data and the free parameters; see :func:`jfric.fit`."""

    problem: Problem | AbstractModel
    experiments: tuple[Experiment, ...]
    free: Mapping[str, Free]
    residual: AbstractResidual
    loss: AbstractLoss
    observe: Any = None
    solver: Any = None
    hold: str = "zero"

    @property
    def system(self) -> Problem | None:
        """The problem, or that of the model; None if a model has none."""
        found = self.problem
        found = found if isinstance(found, Problem) else getattr(found, "problem", None)
        return found if isinstance(found, Problem) else None

    def task(self) -> Task:
        """The fit, after all checks that need no computation."""
        model, chosen, free, observe = self._posed()
        signals = signals_of(chosen, observe)
        # Rows of forces and steady states are no records any more.
        for path in (
            () if model.takes_known else (p for e in self.experiments for p in e.known or {})
        ):
            raise ProblemError(f"known.{path}: only fits that simulate take numbers of one record")
        model.check(chosen, signals)
        check_free(getattr(model, "problem", None), free)
        defaults = {path: np.array([model.default(path, e) for e in chosen]) for path in free}
        layout = lay_out(free, defaults, labels(chosen))
        first = [model.initial(e) for e in chosen]
        own = with_known(model, chosen, free, [x for _, x in first])
        data, used, sigma = stack(chosen, signals, [s for s, _ in first], own)
        steps = steps_of(chosen, signals, used)
        _require_motion(chosen, data, used, np.where(steps.variance > 0.0, 0.0, sigma))
        weight = _weights(data, used, sigma, steps)
        objective = Objective(model, data, layout, weight, self.residual.compare, self.loss)
        return Task(self, tuple(chosen), objective, used, sigma, steps)

    def _posed(self) -> Posed:
        """The model and its records, with full paths."""
        chosen, free, observe = self.experiments, self.free, self.observe
        if not chosen or not all(isinstance(e, Experiment) for e in chosen):
            raise ProblemError(
                f"experiments: found {chosen!r}, needs a jfric.Experiment or a list of them"
            )
        system = self.system
        if system is not None:
            chosen = tuple(full_experiment(system, e) for e in chosen)
            free, observe = full_free(system, free), full_signals(system, observe)
        varying = [path for path, item in free.items() if isinstance(item, Free) and item.varies]
        if varying:
            raise ProblemError(
                f"free.{varying[0]}: values that vary around a common mean are found by "
                "jfric.fit_hierarchical"
            )
        if isinstance(self.problem, AbstractModel):
            beside = {
                "residual": not isinstance(self.residual, Outputs),
                "solver": self.solver is not None,
                "hold": self.hold != "zero",
            }
            for field in (field for field, given in beside.items() if given):
                raise ProblemError(
                    f"{field}: found {getattr(self, field)!r} together with a "
                    f"{type(self.problem).__name__}, which has its own; leave it out, or give the "
                    "problem instead of the model"
                )
            return Posed(self.problem, chosen, free, observe)
        if not isinstance(self.problem, Problem):
            raise ProblemError(
                f"problem: found {type(self.problem).__name__}, needs a jfric.Problem, such as "
                "jfric.load(FILE)"
            )
        simulation = Simulation(self.solver, self.hold)
        return self.residual.pose(self.problem, chosen, free, observe, simulation)


@dataclass(eq=False)
class Task:
    """A fit that is ready to be computed."""

    setup: Setup
    #: Records as they are compared, possibly pieces of those of the setup.
    experiments: tuple[Experiment, ...]
    objective: Objective
    #: (E, m, k) Which samples count, and their noise; NaN where it is unknown.
    used: np.ndarray
    sigma: np.ndarray
    #: Noise that the resolution of readings adds.
    steps: ReadingNoise

    @property
    def noise_is_known(self) -> bool:
        """Whether every sample that counts has a given noise."""
        return bool(np.all(np.isfinite(self.sigma[self.used])))

    def estimate_noise(self, x: np.ndarray) -> None:
        """Set the weights of signals of unknown noise from the residuals at ``x`` (P,)."""
        objective = self.objective
        predicted = objective.linearised_at(x).predicted
        count = max(int(np.sum(self.used)), 1)
        free = max(count - objective.layout.size, 1)
        weight = objective.weight.copy()
        for j in range(self.used.shape[-1]):
            own = self.used[..., j] & ~np.isfinite(self.sigma[..., j])
            if not own.any():
                continue
            off = (predicted - objective.measured)[..., j][own]
            if isinstance(objective.loss, Squares):
                size = np.sqrt(np.mean(off**2) * count / free)
            else:
                # Outliers do not move the median.
                size = 1.4826 * np.median(np.abs(off - np.median(off)))
            least = 1e-12 * max(float(np.max(np.abs(objective.measured[..., j][own]))), 1e-300)
            # The residuals contain the noise of readings in steps.
            rest = max(size**2 - float(np.mean(self.steps.variance[..., j][own])), least**2)
            noise = np.sqrt(rest + self.steps.counted[..., j])
            weight[..., j] = np.where(own, 1.0 / noise, weight[..., j])
        objective.weight = weight

    def noise(self) -> dict[str, float]:
        """Root mean square noise of each signal, from the weights."""
        weight = np.where(self.used, self.objective.weight, 1.0)
        return {
            name: float(np.sqrt(np.mean((1.0 / weight**2 - self.steps.more)[own, j])))
            for j, name in enumerate(self.objective.data.signals)
            if (own := self.used[..., j]).any()
        }


def with_known(model: AbstractModel, experiments, free, own) -> list[dict[str, float]]:
    """Values of each experiment by path: its initial state in ``own`` and its known numbers, where
    an experiment without them has those of the problem."""
    paths = dict.fromkeys(path for e in experiments for path in e.known or {})
    for path in paths:
        if path in free:
            raise ProblemError(f"known.{path}: found a number and a free parameter, take one away")
    return [
        {**x, **{p: (e.known or {}).get(p, x.get(p, model.default(p, e))) for p in paths}}
        for e, x in zip(experiments, own, strict=True)
    ]


def _require_motion(experiments, data: Data, used: np.ndarray, sigma: np.ndarray) -> None:
    """Refuse a signal of unknown noise that never changes: it shows neither motion nor noise."""
    y = np.asarray(data.y)
    for j, name in enumerate(data.signals):
        own = used[..., j]
        if not own.any() or np.isfinite(sigma[..., j][own]).any():
            continue
        values = [y[e, ..., j][own[e]] for e in range(len(experiments)) if own[e].any()]
        if all(np.all(v == v[0]) for v in values):
            raise ProblemError(
                f"y.{name}: found {values[0][0]:g} at all of {int(own.sum()):,} samples, nothing "
                "moves; is it the right column? (give sigma or resolution where a standstill was "
                "measured)"
            )


def _weights(data: Data, used: np.ndarray, sigma: np.ndarray, steps: ReadingNoise) -> np.ndarray:
    """Weights ``1/sigma``; if the noise is unknown, one over the spread of the signal."""
    y = np.asarray(data.y)
    spread = np.array([np.std(y[..., j][used[..., j]]) or 1.0 for j in range(y.shape[-1])])
    known = np.sqrt(np.where(np.isfinite(sigma), sigma, 1.0) ** 2 + steps.counted)
    return np.where(used, 1.0 / np.where(np.isfinite(sigma), known, spread), 0.0)
