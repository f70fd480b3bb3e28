"""``fit``: estimation of the parameters of a problem from experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jfric.fits.data.experiment import Experiment
from jfric.fits.fit_result import FitResult
from jfric.fits.free import Free
from jfric.fits.losses import AbstractLoss
from jfric.fits.minimise import Watch
from jfric.fits.model import AbstractModel
from jfric.fits.optimise.levenberg_marquardt import AbstractOptimiser
from jfric.fits.optimise.searches import AbstractSearch
from jfric.fits.recipe import Recipe
from jfric.fits.residuals import AbstractResidual
from jfric.system.problem import Problem


def fit(
    problem: Problem | AbstractModel,
    experiments: Experiment | Sequence[Experiment],
    free: Mapping[str, Free],
    *,
    observe: str | Sequence[str] | None = None,
    residual: AbstractResidual | Callable | None = None,
    loss: AbstractLoss | None = None,
    search: AbstractSearch | None = None,
    starts: int = 8,
    optimiser: AbstractOptimiser | None = None,
    solver: Any = None,
    hold: str = "zero",
    seed: int = 0,
    watch: Watch | None = None,
    **words: Any,
) -> FitResult:
    """Values of the ``free`` parameters for which ``problem`` reproduces the ``experiments`` best.

    Minimises half the sum of ``rho(r^2)`` with ``r = (predicted - measured)/sigma`` by
    Levenberg-Marquardt from several ``starts`` at once, with exact derivatives through all changes
    of mode. If the cost jumps (a changing number of impacts), a search without derivatives
    continues from there, and a remark of the result says so. Where finite changes of the cost are
    not those that derivatives foresee (stiction in a sampled loop), a search without derivatives
    finds the parameters, and intervals are ranges of the cost itself.

    ``free``: parameters by path, of the problem or of the measurement (``sensor.SIGNAL.offset``,
    ``.gain``, ``.delay`` and ``.lag`` [s], the time constant of a first-order filter;
    ``input.PATH.delay`` and ``.lag`` of a measured input; ``delay`` of all sensors); initial states
    are ``initial.DOF.q`` and ``.v``.
    ``observe``: measured signals to compare, all by default. The first kind of each setting is the
    default. ``residual``: :class:`jfric.Outputs` compares simulated signals,
    :class:`jfric.ClosedLoop` the force of a controller, :class:`jfric.Windows` signals in short
    windows, each with a free initial state, :class:`jfric.InverseDynamics` forces, without
    simulation, :class:`jfric.SteadyStates` periodic motions with rows of
    :func:`jfric.steady_states`; a function ``(predicted, measured, weight) -> residuals`` of arrays
    (m, k) defines another comparison of outputs. ``problem`` may be an :class:`AbstractModel`,
    which itself defines the comparison. ``loss``: :class:`jfric.Squares`, or :class:`jfric.Huber`,
    :class:`jfric.SoftL1` and :class:`jfric.Cauchy`, for which large residuals count less.
    ``search``: :class:`jfric.Starts` descends from the best of a small sample, ``starts`` at once;
    :class:`jfric.Global` uses a sample four times as large on growing parts of the records, where
    there are fewer local minima; :class:`jfric.Shooting` first fits windows from measured states,
    for chaotic motions and unknown initial states. ``optimiser``:
    :class:`jfric.LevenbergMarquardt`; :class:`jfric.LBFGS` and :class:`jfric.Adam` for many
    parameters or experiments; :class:`jfric.DirectSearch` uses no derivatives. ``solver``: of the
    simulation, :class:`jfric.EventDriven` by default; :class:`jfric.Smoothed` has smooth, biased
    derivatives. ``hold``: measured inputs between samples, ``"zero"`` or ``"linear"``. ``seed``: of
    the starts and samples. ``watch(stage, iteration, most, cost, values)`` is called after each
    iteration with the least cost so far and the free parameters by name. ``words``: the old
    spelling of settings (``residual="windows"``, ``window``), which a warning translates.

    Raises :class:`jfric.ProblemError` for a problem or data that cannot be fitted. A start that
    fails numerically has its outcome in ``result.waterfall``. Source of the optimiser: K. Madsen,
    H. B. Nielsen,
    O. Tingleff, Methods for non-linear least squares problems (2004). A fit of the problem of
    :class:`jfric.Problem` to positions at 20 times::

        >>> t = jnp.linspace(0.1, 2.0, 20)
        >>> data = jfric.Experiment(t, y={"u": jfric.simulate(problem, ts=t).q[:, 0]}, sigma=1e-3)
        >>> result = jfric.fit(problem, data, {"friction.mu": jfric.Free(0.05, 0.3)}, starts=1)
        >>> {name: round(x, 9) for name, x in result.values.items()}
        {'friction.mu': 0.1}
    """
    recipe = Recipe.of(
        problem, experiments, free,
        observe=observe, residual=residual, loss=loss, search=search, starts=starts,
        optimiser=optimiser, solver=solver, hold=hold, seed=seed, **words,
    )  # fmt: skip
    return FitResult.of(recipe, watch)
