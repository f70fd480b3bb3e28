"""``fit``: estimation of the parameters of a problem from experiments, and its result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.batch import Bootstrap, Profile, bootstrap, profile
from jfric.fits.data.experiment import Experiment, remarks_of
from jfric.fits.data.stacking import labels
from jfric.fits.free import Free
from jfric.fits.minimise import Watch, solve
from jfric.fits.model import AbstractModel
from jfric.fits.objective import AbstractLoss
from jfric.fits.optimise.descents import AbstractOptimiser
from jfric.fits.optimise.searches import AbstractSearch
from jfric.fits.plausibility import remarks, unexplained
from jfric.fits.recipe import Estimate, Recipe
from jfric.fits.residuals import AbstractResidual
from jfric.fits.serialise import from_json, to_json
from jfric.fits.uncertainty.covariance import Covariance, Method, covariance
from jfric.fits.uncertainty.model_error import ModelError, model_error, widened
from jfric.fits.uncertainty.posterior import Posterior, sample
from jfric.numerics.printing import printable
from jfric.system.problem import Problem


@printable
@dataclass
class FitResult(Estimate):
    """Values of the free parameters and the data needed to judge them.

    ``names`` (P,): free numbers, ``PATH`` or ``PATH[EXPERIMENT]``; ``vector`` (P,): their values;
    ``at_bound`` (P,): -1 at the lower bound, 1 at the upper one, 0 inside. ``cost``: half the sum
    of squared weighted residuals, priors included. ``outcome``: why the search ended;
    ``waterfall``: starts, where they ended, costs and outcomes, best first. ``sigma``: standard
    deviation of the noise for each signal, given or estimated from the residuals. ``experiments``,
    ``objective``, ``seed``: the fitted data, their cost and the seed; ``recipe``: the arguments of
    the fit, with which it can be repeated. ``remarks``: on how the minimum was reached. ``cloud``:
    points around the values, from which intervals follow where parameters act in steps.
    :meth:`covariance`, :meth:`bootstrap`, :meth:`profile` and :meth:`sample` give the uncertainty.
    Example: see :func:`jfric.fit`.
    """

    @staticmethod
    def of(recipe: Recipe, watch: Watch | None = None) -> FitResult:
        """The computed fit with the arguments ``recipe``; ``watch`` as for :func:`jfric.fit`."""
        task, best = solve(recipe, watch)
        cloud, predicted = best.cloud, task.objective.predict(best.vector[None])[0]
        if cloud is not None:
            far = unexplained(task.objective, task.experiments, predicted)
            cloud = cloud._replace(explained=not far)
        return FitResult(
            names=task.objective.layout.names,
            vector=best.vector,
            cost=best.cost,
            outcome=best.outcome,
            at_bound=task.objective.layout.at_bound(best.vector),
            remarks=(
                *best.remarks,
                *remarks(task, best.vector, predicted, recipe.search),
                *remarks_of(task.experiments),
            ),
            waterfall=best.waterfall,
            sigma=task.noise(),
            experiments=task.experiments,
            objective=task.objective,
            seed=recipe.seed,
            recipe=recipe,
            cloud=cloud,
        )

    @property
    def values(self) -> dict[str, float]:
        """Values of the free parameters by name."""
        return dict(zip(self.names, self.vector.tolist(), strict=True))

    def covariance(self, method: Method = "autoregressive", lags: int | None = None) -> Covariance:
        """Covariance of the estimates, see :func:`jfric.fits.uncertainty.covariance.covariance`,
        widened to errors of the model."""
        return widened(covariance(self, method, lags), self.model_error)

    @functools.cached_property
    def model_error(self) -> ModelError:
        """Errors of the model that the residuals show; see
        :mod:`jfric.fits.uncertainty.model_error`."""
        return model_error(self)

    def intervals(
        self, level: float = 0.95, method: Method = "autoregressive"
    ) -> dict[str, tuple[float, float] | None]:
        """Intervals that hold the true values with probability ``level``; None at a bound and
        where the data do not determine the parameter."""
        return self.covariance(method).intervals(level)

    def bootstrap(self, count: int = 200, **options) -> Bootstrap:
        """Fits of resampled data; see :func:`jfric.fits.batch.bootstrap`."""
        return bootstrap(self, count, **options)

    def profile(self, names: Sequence[str] | None = None, **options) -> dict[str, Profile]:
        """Profile likelihoods; see :func:`jfric.fits.batch.profile`."""
        return profile(self, names, **options)

    def sample(self, count: int = 1000, **options) -> Posterior:
        """Posterior samples; see :func:`jfric.fits.uncertainty.posterior.sample`."""
        return sample(self, count, **options)

    def to_json(self) -> str:
        """The fit with its data as JSON text; :meth:`from_json` reads it."""
        return to_json(self, self.covariance())

    @staticmethod
    def from_json(text: str) -> FitResult:
        """The fit that :meth:`to_json` wrote."""
        return FitResult(**from_json(text))

    def refit(self) -> FitResult:
        """Result of this fit computed again, with equal arguments and starts."""
        if self.recipe is None:
            raise ProblemError("refit: found a result without its arguments")
        return FitResult.of(self.recipe)

    def __str__(self) -> str:
        found = self.covariance()
        intervals = found.intervals()
        width = max(len(name) for name in self.names)
        lines = [f"{self.outcome.message}; 95 % intervals ({found.method})"]
        for name, value in self.values.items():
            pair = intervals[name]
            shown = f"[{pair[0]:.6g}, {pair[1]:.6g}]" if pair else "no interval"
            lines.append(f"{name:{width}}  {value:.6g}  {shown}")
        return "\n".join([*lines, *found.remarks(), *self.remarks])


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


class Series(NamedTuple):
    """One signal of one record: the samples that count, measured and predicted."""

    record: str
    signal: str
    t: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    position: np.ndarray | None
    velocity: np.ndarray | None
    #: The degree of freedom that both are of, the first one that was measured.
    dof: str | None
    #: Standard deviation of a new sample: of the prediction, with the estimates, and of the noise.
    spread: np.ndarray

    @property
    def residual(self) -> np.ndarray:
        """Predicted minus measured."""
        return self.predicted - self.measured


def series(result: FitResult) -> list[Series]:
    """All signals of all records at the fit."""
    linearised = result.linearised()
    predicted, spread = linearised.predicted, _spread(result, linearised.jacobian)
    weight, measured = result.objective.weight, np.asarray(result.objective.measured)
    found = []
    for i, (e, label) in enumerate(
        zip(result.experiments, labels(result.experiments), strict=True)
    ):
        dof = next((name for name in e.y if "." not in name), None)
        q = None if dof is None else e.y[dof]
        v = None if q is None else np.gradient(q, e.t)
        for j, signal in enumerate(result.objective.data.signals):
            used = weight[i, : e.t.size, j] > 0
            if not np.any(used):
                continue
            seen, foreseen, error = (
                x[i, : e.t.size, j][used] for x in (measured, predicted, spread)
            )
            at, along = (None if x is None else x[used] for x in (q, v))
            found.append(Series(label, signal, e.t[used], seen, foreseen, at, along, dof, error))
    return found


def _spread(result: FitResult, jacobian: np.ndarray) -> np.ndarray:
    """Standard deviation of new samples (E, m, k), zero where unknown; estimates without a finite
    error are taken as exact."""
    weight, layout = result.objective.weight, result.objective.layout
    sigma = np.where(weight > 0, 1.0 / np.where(weight > 0, weight, 1.0), 0.0)
    if jacobian.shape[:3] != weight.shape:  # a user's own residual
        return sigma
    matrix = result.covariance().matrix
    known = np.isfinite(np.diagonal(matrix))
    matrix = np.where(np.outer(known, known) & np.isfinite(matrix), matrix, 0.0)
    variance = np.stack(
        [
            np.einsum("mkl,ln,mkn->mk", own, matrix[np.ix_(columns, columns)], own, optimize=True)
            for own, columns in zip(jacobian, layout.columns, strict=True)
        ]
    )
    return sigma * np.sqrt(1.0 + np.maximum(variance, 0.0))
