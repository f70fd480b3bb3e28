"""``fit``: find parameters of a problem from experiments."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from jfric.errors import ProblemError, nearest
from jfric.identify.arrange import closed, sampled_or_whole, windowed
from jfric.identify.data import Data, labels, signals_of, stack
from jfric.identify.descent import descend
from jfric.identify.direct_search import direct_search
from jfric.identify.experiment import Experiment
from jfric.identify.free import Free, check_free
from jfric.identify.layout import Layout, lay_out
from jfric.identify.levenberg_marquardt import Lanes, Outcome, levenberg_marquardt
from jfric.identify.losses import LOSSES
from jfric.identify.model import AbstractModel, OutputModel
from jfric.identify.objective import Objective, weighted
from jfric.identify.recipe import Recipe
from jfric.identify.result import FitResult
from jfric.identify.starts import nearby
from jfric.identify.starts import starts as choose_starts
from jfric.limits import SAMPLES, STARTS, require_count
from jfric.solvers.base import require_solver
from jfric.solvers.event_driven.solver import EventDriven
from jfric.system.controller import Controller
from jfric.system.problem import Problem

#: What is compared with the data, by name: ``MODELS[name](problem, solver, hold)``.
MODELS: dict[str, Callable[..., AbstractModel]] = {"output": OutputModel}

Optimiser = Literal["levenberg-marquardt", "l-bfgs", "adam", "direct"]
OPTIMISERS = get_args(Optimiser)
#: Fits after the first where the noise is unknown: weights and parameters settle together.
NOISE_ROUNDS = 2


def fit(
    problem: Problem | AbstractModel,
    experiments: Experiment | Sequence[Experiment],
    free: Mapping[str, Free],
    *,
    observe: str | Sequence[str] | None = None,
    residual: str | Callable = "output",
    loss: str = "linear",
    loss_scale: float = 1.0,
    starts: int = 8,
    solver: Any = None,
    hold: str = "zero",
    controller: Controller | None = None,
    window: float | None = None,
    optimiser: Optimiser = "levenberg-marquardt",
    max_iterations: int | None = None,
    learning_rate: float = 0.02,
    batch: int | None = None,
    seed: int = 0,
) -> FitResult:
    """Values of the ``free`` parameters for which ``problem`` reproduces the ``experiments`` best.

    Minimises half the sum of ``rho(r^2)`` with ``r = (predicted - measured)/sigma`` by
    Levenberg-Marquardt from several ``starts`` at once, with exact derivatives through all changes
    of mode. Where the cost jumps (a changing number of impacts) a search without derivatives goes
    on from there, and the result says so.

    ``free``: parameters by path, of the problem or of the measurement (``sensor.SIGNAL.offset``,
    ``sensor.SIGNAL.gain``, ``delay`` [s]); initial states are ``initial.DOF.q`` and ``.v``.
    ``observe``: measured signals to compare, all by default. ``residual``: ``"output"`` compares
    simulated with measured signals; ``"input"`` simulates the loop closed by ``controller`` and
    compares its force with the measured one; ``"windows"`` cuts the records into windows of
    ``window`` [s] (1 s unless given), each with a free initial state; a function
    ``(predicted, measured, weight) -> residuals`` of arrays (m, k) compares as it likes; a problem
    may be replaced by an :class:`AbstractModel`.
    ``loss``: ``"linear"``, ``"huber"``, ``"soft_l1"`` or ``"cauchy"``, the last three count
    residuals above ``loss_scale`` less. ``solver``: of the simulation,
    :class:`jfric.EventDriven` by default; :class:`jfric.Smoothed` has smooth, biased derivatives.
    ``hold``: measured inputs between samples, ``"zero"`` or ``"linear"``. ``optimiser``:
    ``"levenberg-marquardt"``; ``"l-bfgs"`` or ``"adam"`` for many parameters, the latter with
    ``learning_rate`` and, for many experiments, looking at ``batch`` of them in each step;
    ``"direct"`` uses no derivatives. ``max_iterations`` of the optimiser: 60, or 200 of the last
    three.

    Raises :class:`jfric.ProblemError` for what cannot be fitted. Numerical trouble of a start is
    its outcome in ``result.waterfall``.
    """
    task = prepare(
        problem, experiments, free, observe=observe, residual=residual, loss=loss,
        loss_scale=loss_scale, solver=solver, hold=hold, controller=controller, window=window,
    )  # fmt: skip
    recipe = Recipe(
        problem,
        (experiments,) if isinstance(experiments, Experiment) else tuple(experiments),
        dict(free),
        {
            "observe": observe, "residual": residual, "loss": loss, "loss_scale": loss_scale,
            "starts": starts, "solver": solver, "hold": hold, "controller": controller,
            "window": window, "optimiser": optimiser, "max_iterations": max_iterations,
            "learning_rate": learning_rate, "batch": batch, "seed": seed,
        },
    )  # fmt: skip
    require_count("starts", starts, 1, STARTS)
    if seed < 0:
        raise ProblemError(f"seed: found {seed}, must not be negative")
    if optimiser not in OPTIMISERS:
        raise ProblemError(
            f"optimiser: found {optimiser!r}{nearest(optimiser, OPTIMISERS)}, allowed are "
            + ", ".join(OPTIMISERS)
        )
    objective = task.objective

    def minimise(x0: np.ndarray) -> Lanes:
        if optimiser == "levenberg-marquardt":
            return levenberg_marquardt(
                lambda x, _: objective.normal(x),
                objective.layout,
                x0,
                max_iterations=max_iterations or 60,
            )
        if optimiser == "direct":
            return _direct(objective, x0, max_iterations or 200, seed)
        return descend(
            objective,
            x0,
            optimiser,
            max_iterations=max_iterations or 200,
            learning_rate=learning_rate,
            batch=batch,
            seed=seed,
        )

    result = solve(task, minimise, starts=starts, seed=seed)
    result.recipe = recipe
    return result


def solve(
    task: Task, minimise: Callable[[np.ndarray], Lanes], *, starts: int, seed: int
) -> FitResult:
    """The fit of a task: from several starts, then around the best, then with the noise known.

    ``minimise``: from starts (B, P) to where they end."""
    objective, layout = task.objective, task.objective.layout
    x0 = choose_starts(lambda x: objective.normal(x).cost, layout, starts, seed)
    lanes = minimise(x0)
    waterfall = _waterfall(layout, x0, lanes)
    best = np.argmin(lanes.cost)
    if starts > 1 and np.isfinite(lanes.cost[best]):
        x0 = nearby(lambda x: objective.normal(x).cost, layout, lanes.x[best], starts, seed)
        again = minimise(x0)
        waterfall = sorted(waterfall + _waterfall(layout, x0, again), key=lambda w: w["cost"])
        if np.min(again.cost) < lanes.cost[best]:
            lanes, best = again, np.argmin(again.cost)
    if not task.noise_is_known or objective.loss != "linear":
        for _ in range(NOISE_ROUNDS):
            if not np.isfinite(lanes.cost[best]):
                break
            task.estimate_noise(lanes.x[best])
            lanes, best = minimise(lanes.x[best][None]), 0
    vector, cost, remarks = lanes.x[best], float(lanes.cost[best]), ()
    if lanes.outcome[best] == Outcome.STALLED:
        vector, cost, remarks = _refine(objective, vector, cost, seed)
    return FitResult(
        names=layout.names,
        vector=vector,
        cost=cost,
        outcome=Outcome(int(lanes.outcome[best])),
        at_bound=layout.at_bound(vector),
        remarks=remarks,
        waterfall=waterfall,
        sigma=task.noise(),
        experiments=task.experiments,
        objective=objective,
        seed=seed,
    )


def _refine(objective: Objective, x: np.ndarray, cost: float, seed: int):
    """What a search without derivatives finds where no step lowers the cost: (P,), cost, remark."""
    found, least, generations = direct_search(
        lambda x: objective.normal(x).cost, objective.layout, x, seed=seed
    )
    return (
        found,
        least,
        (
            "the cost jumps or has a kink at its minimum: a search without derivatives "
            f"({generations} generations) lowered it by {cost - least:.2g}; intervals from "
            "derivatives do not hold there, take those of the bootstrap",
        ),
    )


def _direct(objective: Objective, x0: np.ndarray, generations: int, seed: int) -> Lanes:
    """Every start by a search without derivatives."""
    layout = objective.layout
    found = [
        direct_search(
            lambda x: objective.normal(x).cost,
            layout,
            x,
            seed=seed + i,
            generations=generations,
            width=0.2,
        )
        for i, x in enumerate(x0)
    ]
    x, cost = np.stack([f[0] for f in found]), np.array([f[1] for f in found])
    used = np.array([f[2] for f in found])
    outcome = np.where(used < generations, Outcome.CONVERGED, Outcome.MAX_ITERATIONS)
    outcome[~np.isfinite(cost)] = Outcome.FAILED
    return Lanes(layout.coordinates(x), x, cost, outcome, used)


def _waterfall(layout: Layout, x0: np.ndarray, lanes: Lanes) -> list[dict[str, Any]]:
    """What became of each start, best first."""
    return [
        {
            "start": dict(zip(layout.names, x0[i].tolist(), strict=True)),
            "values": dict(zip(layout.names, lanes.x[i].tolist(), strict=True)),
            "cost": float(lanes.cost[i]),
            "outcome": Outcome(int(lanes.outcome[i])),
            "iterations": int(lanes.iterations[i]),
        }
        for i in np.argsort(lanes.cost, kind="stable")
    ]


class Task:
    """A fit that is ready to be computed."""

    def __init__(self, experiments, objective: Objective, used, sigma):
        self.experiments: tuple[Experiment, ...] = experiments
        self.objective = objective
        #: (E, m, k) Which samples count, and their noise; not a number where it is unknown.
        self.used: np.ndarray = used
        self.sigma: np.ndarray = sigma

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
            weight[..., j] = np.where(own, 1.0 / max(size, least), weight[..., j])
        objective.weight = weight

    def noise(self) -> dict[str, float]:
        """Root mean square noise of each signal, as the weights have it."""
        weight = self.objective.weight
        return {
            name: float(np.sqrt(np.mean(1.0 / weight[..., j][self.used[..., j]] ** 2)))
            for j, name in enumerate(self.objective.data.signals)
            if self.used[..., j].any()
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
    controller = _remembering(controller, free)
    if residual == "input" and isinstance(problem, Problem):
        problem, chosen, force = closed(problem, chosen, controller)
        residual, observe = "output", force if observe is None else observe
    elif residual == "windows" and isinstance(problem, Problem):
        chosen, free = windowed(problem, chosen, free, window)
        residual, problem = "output", sampled_or_whole(problem, chosen, solver, hold)
    signals = signals_of(chosen, observe)
    model, function = _model(problem, residual, solver, hold)
    model.check(chosen, signals)
    check_free(getattr(model, "problem", None), free)
    layout = _layout(model, chosen, free)
    first = [model.initial(e) for e in chosen]
    data, used, sigma = stack(chosen, signals, [s for s, _ in first], [x for _, x in first])
    weight = _weights(data, used, sigma)
    objective = Objective(model, data, layout, weight, function, loss, loss_scale)
    return Task(chosen, objective, used, sigma)


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
        allowed = (*MODELS, "input", "windows")
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


def _weights(data: Data, used: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """``1/sigma``; where the noise is unknown, one over the spread of the signal."""
    y = np.asarray(data.y)
    spread = np.array([np.std(y[..., j][used[..., j]]) or 1.0 for j in range(y.shape[-1])])
    return np.where(used, 1.0 / np.where(np.isfinite(sigma), sigma, spread), 0.0)
