"""``fit``: find parameters of a problem from experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jfric.fits.data.experiment import Experiment
from jfric.fits.fit_result import FitResult
from jfric.fits.free import Free
from jfric.fits.minimise import Optimiser, Search, Watch
from jfric.fits.model import AbstractModel
from jfric.fits.recipe import Recipe
from jfric.system.controller import Controller
from jfric.system.problem import Problem


def fit(
    problem: Problem | AbstractModel,
    experiments: Experiment | Sequence[Experiment],
    free: Mapping[str, Free],
    *,
    observe: str | Sequence[str] | None = None,
    residual: str | Callable = "output",
    loss: str = "linear",
    loss_scale: float = 1.0,
    search: Search = "starts",
    schedule: Sequence[float] | None = None,
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
    watch: Watch | None = None,
) -> FitResult:
    """Values of the ``free`` parameters for which ``problem`` reproduces the ``experiments`` best.

    Minimises half the sum of ``rho(r^2)`` with ``r = (predicted - measured)/sigma`` by
    Levenberg-Marquardt from several ``starts`` at once, with exact derivatives through all changes
    of mode. Where the cost jumps (a changing number of impacts) a search without derivatives goes
    on from there, and the result says so.

    ``free``: parameters by path, of the problem or of the measurement (``sensor.SIGNAL.offset``,
    ``.gain``, ``.delay`` and ``.lag`` [s], the time constant of a first-order filter;
    ``input.PATH.delay`` and ``.lag`` of a measured input; ``delay`` of all sensors); initial states
    are ``initial.DOF.q`` and ``.v``.
    ``observe``: measured signals to compare, all by default. ``residual``: ``"output"`` compares
    simulated with measured signals; ``"input"`` simulates the loop closed by ``controller`` and
    compares its force with the measured one; ``"windows"`` cuts the records into windows of
    ``window`` [s] (1 s unless given), each with a free initial state; ``"inverse"`` compares forces
    that the measured motion needs with the measured ones, without simulation; ``"steady"`` compares
    periodic motions with rows of :func:`jfric.steady_states`; a function
    ``(predicted, measured, weight) -> residuals`` of arrays (m, k) compares as it likes; a problem
    may be replaced by an :class:`AbstractModel`.
    ``search``: ``"starts"`` descends from the best of a small sample; ``"global"`` from the best of
    one four times as large on growing parts of the records, where there are fewer local minima;
    ``"shooting"`` before that on windows of ``window`` [s] (an eighth of the record) from measured
    states, for chaotic motions and unknown initial states. ``schedule``: lengths of the parts [s],
    the whole comes last.
    ``loss``: ``"linear"``, ``"huber"``, ``"soft_l1"`` or ``"cauchy"``, the last three count
    residuals above ``loss_scale`` less. ``solver``: of the simulation,
    :class:`jfric.EventDriven` by default; :class:`jfric.Smoothed` has smooth, biased derivatives.
    ``hold``: measured inputs between samples, ``"zero"`` or ``"linear"``. ``optimiser``:
    ``"levenberg-marquardt"``; ``"l-bfgs"`` or ``"adam"`` for many parameters, the latter with
    ``learning_rate`` and, for many experiments, looking at ``batch`` of them in each step;
    ``"direct"`` uses no derivatives. ``max_iterations`` of the optimiser: 60, or 200 of the last
    three. ``seed``: of the starts and samples. ``watch(stage, iteration, most, cost, values)`` is
    told after each iteration how far the search has come: the least cost, and the free parameters
    by name.

    Raises :class:`jfric.ProblemError` for what cannot be fitted. Numerical trouble of a start is
    its outcome in ``result.waterfall``. Source of the optimiser: K. Madsen, H. B. Nielsen,
    O. Tingleff, Methods for non-linear least squares problems (2004). With the problem of
    :class:`jfric.Problem`, from positions at 20 times::

        >>> t = jnp.linspace(0.1, 2.0, 20)
        >>> data = jfric.Experiment(t, y={"u": jfric.simulate(problem, ts=t).q[:, 0]}, sigma=1e-3)
        >>> result = jfric.fit(problem, data, {"friction.mu": jfric.Free(0.05, 0.3)}, starts=1)
        >>> {name: round(x, 9) for name, x in result.values.items()}
        {'friction.mu': 0.1}
    """
    recipe = Recipe(
        problem,
        (experiments,) if isinstance(experiments, Experiment) else tuple(experiments),
        dict(free),
        {
            "observe": observe, "residual": residual, "loss": loss, "loss_scale": loss_scale,
            "search": search,
            "schedule": None if schedule is None else np.ravel(np.asarray(schedule)).tolist(),
            "starts": starts, "solver": solver, "hold": hold, "controller": controller,
            "window": window, "optimiser": optimiser, "max_iterations": max_iterations,
            "learning_rate": learning_rate, "batch": batch, "seed": seed,
        },
    )  # fmt: skip
    return FitResult.of(recipe, watch)
