"""Batches of fits: of many data sets of one plan of measurement, of resampled data (bootstrap), and
for held values of a parameter (profile likelihood).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from jfric.errors import ProblemError, require_one_of
from jfric.fits.data.experiment import Experiment
from jfric.fits.free import Free, full_path
from jfric.fits.objective import Objective, chunk_of, weighted
from jfric.fits.optimise.descents import Members, Outcome, levenberg_marquardt
from jfric.fits.optimise.searches import global_sample
from jfric.fits.recipe import Estimate, prepare
from jfric.fits.uncertainty.covariance import covariance
from jfric.fits.uncertainty.residual_series import bandwidth, residual_series
from jfric.numerics.printing import printable
from jfric.system.problem import Problem


@printable
@dataclass(frozen=True)
class BatchFit:
    """Estimates from many data sets.

    ``estimates``, ``standard_errors`` (B, P): values of the free parameters ``names`` and their
    Gauss-Newton standard errors; ``cost``, ``outcome``, ``iterations`` (B,).
    """

    names: tuple[str, ...]
    estimates: np.ndarray
    standard_errors: np.ndarray
    #: Gauss-Newton covariance of each (B, P, P).
    covariance: np.ndarray
    cost: np.ndarray
    outcome: np.ndarray
    iterations: np.ndarray
    #: Measured values of each member (B, E, m, k), and the objective of all fits.
    measured: np.ndarray
    objective: Objective


def fit_batch(
    problem: Problem,
    experiments: Experiment | Sequence[Experiment],
    free: Mapping[str, Free],
    samples: Mapping[str, Float[np.ndarray, "B m"]] | Sequence[Mapping[str, np.ndarray]],
    *,
    starts: int = 64,
    max_iterations: int = 60,
    seed: int = 0,
    **options: Any,
) -> BatchFit:
    """Fit ``B`` data sets that share times, inputs, initial states and noise of ``experiments``.

    ``problem``, ``free``, ``max_iterations``, ``seed``: as in :func:`jfric.fit`. ``samples``:
    measured values (B, m) of each signal, for each experiment. Predictions do not depend on
    measured values, so ``starts`` points are simulated once for all data sets, and each data set
    starts at the point that suits it best. After the fits every data set also tries the results of
    the others. ``options``: those of :func:`jfric.fit`; the noise has to be given.
    Two data sets, of two coefficients of friction::

        >>> t = jnp.linspace(0.1, 2.0, 20)
        >>> measured = [
        ...     jfric.simulate(jfric.set_parameters(problem, {"friction.mu": mu}), ts=t).q[:, 0]
        ...     for mu in (0.1, 0.2)
        ... ]
        >>> data = jfric.Experiment(t, y={"u": measured[0]}, sigma=1e-3)
        >>> free = {"friction.mu": jfric.Free(0.05, 0.3)}
        >>> found = jfric.fit_batch(problem, data, free, {"u": jnp.stack(measured)}, starts=4)
        >>> found.estimates.round(6).tolist()
        [[0.1], [0.2]]
    """
    task = prepare(problem, experiments, free, **options)
    objective, layout = task.objective, task.objective.layout
    if objective.residual is not weighted:
        raise ProblemError("residual: a batch of fits compares signals as they are measured")
    if not task.noise_is_known:
        raise ProblemError("sigma: a batch of fits needs the noise of every signal")
    measured = _measured(task.experiments, objective, samples)
    points = layout.init[None]
    if starts > 1:
        points = np.concatenate([points, global_sample(layout, starts - 1, seed)])

    # One compiled program for all data sets.
    chunk = chunk_of(measured.shape[0])

    def fitted(x, members) -> Members:
        def own(x, which):
            return objective.normal(x, measured[members[which]], chunk=chunk)

        return levenberg_marquardt(own, layout, x, max_iterations=max_iterations)

    found = fitted(points[_best(objective, points, measured, chunk)], np.arange(len(measured)))
    other = _best(objective, found.x, measured, chunk)
    members = np.flatnonzero((other != np.arange(other.size)) & (starts > 1))
    if members.size:
        again = fitted(found.x[other[members]], members)
        better = ~(again.cost >= found.cost[members])
        for name in ("z", "x", "cost", "outcome", "iterations"):
            getattr(found, name)[members[better]] = getattr(again, name)[better]
    return _result(objective, found, measured, chunk)


def _result(objective: Objective, found: Members, measured: np.ndarray, chunk: int) -> BatchFit:
    """The estimates with their Gauss-Newton covariance, NaN where a fit failed."""
    layout = objective.layout
    hessian = objective.normal(found.x, measured, chunk=chunk).hessian
    good = np.isfinite(found.cost)
    eye = np.eye(layout.size)
    covariance = np.linalg.pinv(np.where(good[:, None, None], hessian, eye), hermitian=True)
    covariance[~good] = np.nan
    return BatchFit(
        layout.names,
        found.x,
        np.sqrt(np.einsum("bii->bi", covariance)),
        covariance,
        found.cost,
        np.array([Outcome(int(o)) for o in found.outcome]),
        found.iterations,
        measured,
        objective,
    )


def _measured(experiments, objective: Objective, samples) -> np.ndarray:
    tables = [samples] if isinstance(samples, Mapping) else list(samples)
    if len(tables) != len(experiments):
        raise ProblemError(
            f"samples: found {len(tables)} tables for {len(experiments)} experiments, must be as "
            "many"
        )
    counts = {np.shape(values)[0] for table in tables for values in table.values()}
    if len(counts) != 1:
        raise ProblemError(f"samples: found {sorted(counts)} data sets, must be as many of all")
    measured = np.repeat(objective.measured[None], counts.pop(), axis=0)
    for e, (experiment, table) in enumerate(zip(experiments, tables, strict=True)):
        for j, name in enumerate(objective.data.signals):
            if name not in experiment.y:
                continue
            if name not in table:
                raise ProblemError(f"samples: found no {name!r}, which the experiment measures")
            values = np.asarray(table[name], float)
            size = experiment.t.size
            if values.ndim != 2 or values.shape[1] != size:
                raise ProblemError(
                    f"samples.{name}: found shape {values.shape}, needs (data sets, {size})"
                )
            measured[:, e, :size, j] = values
    return np.where(objective.weight > 0, measured, 0.0)


def _best(objective: Objective, points, measured, chunk: int) -> np.ndarray:
    """For each data set, the number of the point (of ``points`` (N, P)) with the least cost."""
    if points.shape[0] == 1:
        return np.zeros(measured.shape[0], int)
    weight, predicted = objective.weight, objective.predict(points, chunk)
    w = np.where(weight > 0, weight * predicted, 0.0).reshape(points.shape[0], -1)
    y = (weight * measured).reshape(measured.shape[0], -1)
    squares = np.einsum("nm,nm->n", w, w)
    failed = ~np.isfinite(squares)
    squares[failed], w[failed] = np.inf, 0.0
    return np.argmin(squares - 2.0 * y @ w.T, axis=1)


@printable
@dataclass(frozen=True)
class Bootstrap:
    """Estimates (n, P) from resampled data; refits that failed are left out and counted."""

    names: tuple[str, ...]
    estimates: np.ndarray
    failed: int
    #: Length of the resampled blocks of residuals; None if experiments were resampled.
    block: int | None

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard deviation of the estimates."""
        spread = np.std(self.estimates, axis=0, ddof=1)
        return dict(zip(self.names, spread.tolist(), strict=True))

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Percentile intervals of the estimates."""
        tail = 0.5 * (1.0 - level)
        low, high = np.quantile(self.estimates, [tail, 1.0 - tail], axis=0)
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        return dict(zip(self.names, pairs, strict=True))


def bootstrap(
    fit: Estimate,
    count: int = 200,
    *,
    resample: Literal["blocks", "experiments"] = "blocks",
    block: int | None = None,
    seed: int = 0,
) -> Bootstrap:
    """Repeat ``fit`` for ``count`` resampled data sets.

    ``"blocks"``: residuals of each experiment in moving blocks of ``block`` samples (Kuensch 1989;
    by default from their autocorrelation, 1 without autocorrelation), added to the
    prediction. ``"experiments"``: experiments drawn with replacement; values that belong to one
    experiment have no meaning there.
    """
    require_one_of("resample", resample, ("blocks", "experiments"))
    rng = np.random.default_rng(seed)
    objective = fit.objective
    measured, weight = None, None
    if resample == "experiments":
        runs = objective.weight.shape[0]
        if runs < 2:
            raise ProblemError("resample: found 1 experiment, at least 2 are needed to draw from")
        drawn = rng.multinomial(runs, np.full(runs, 1.0 / runs), size=count)
        weight = objective.weight * np.sqrt(drawn)[:, :, None, None]
        block = None
    else:
        measured, block = _resampled(fit, count, block, rng)

    def normal(x, members):
        own, counts = (a if a is None else a[members] for a in (measured, weight))
        return objective.normal(x, own, counts)

    start = np.tile(fit.vector, (count, 1))
    found = levenberg_marquardt(normal, objective.layout, start)
    good = np.isin(found.outcome, (Outcome.CONVERGED, Outcome.STALLED))
    return Bootstrap(fit.names, found.x[good], int(np.sum(~good)), block)


def _resampled(fit: Estimate, count: int, block: int | None, rng):
    """Measured values (n, E, m, k) of resampled residuals, and the length of blocks."""
    objective = fit.objective
    predicted = fit.linearised().predicted
    used = objective.weight > 0
    residuals = np.where(used, objective.measured - predicted, 0.0)
    if block is None:
        # A block has to cover the correlation: twice the window of the covariance estimate.
        block = max(1, 2 * max(bandwidth(s.scores(fit.vector.size)) for s in residual_series(fit)))
    measured = np.repeat(objective.measured[None], count, axis=0)
    for e in range(used.shape[0]):
        rows = np.flatnonzero(used[e].any(axis=1))
        length = min(block, rows.size)
        whole = -(-rows.size // length)
        first = rng.integers(0, rows.size, size=(count, whole))
        # Blocks continue at the start of the record, so that each residual is drawn equally often.
        index = (first[:, :, None] + np.arange(length)).reshape(count, -1)[:, : rows.size]
        own = residuals[e][rows]
        own = own - own.mean(axis=0)
        free = max(rows.size - fit.vector.size / used.shape[0], 1.0)
        own = own * np.sqrt(rows.size / free)
        drawn = own[index % rows.size]
        measured[:, e, rows] = np.where(used[e][rows], predicted[e][rows] + drawn, 0.0)
    return measured, block


@printable
@dataclass(frozen=True)
class Profile:
    """Deviance ``2 (cost - least cost)`` of one parameter at ``values``, the others fitted."""

    name: str
    values: np.ndarray
    deviance: np.ndarray
    #: Estimate of the parameter.
    estimate: float

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Interval in which the deviance stays below the quantile of chi-squared with one degree of
        freedom.

        None if the deviance does not reach it on both sides within the profile: the data do not
        bound the parameter.
        """
        from scipy.interpolate import PchipInterpolator  # slow to import

        # The square of a normal variable has this distribution.
        limit = float(NormalDist().inv_cdf(0.5 + 0.5 * level))
        # The signed root is nearly a straight line.
        root = np.sign(self.values - self.estimate) * np.sqrt(np.maximum(self.deviance, 0.0))
        good = np.isfinite(root)
        values, root = self.values[good], np.maximum.accumulate(root[good])
        keep = np.r_[True, np.diff(root) > 0]
        values, root = values[keep], root[keep]
        if root.size < 2 or root[0] > -limit or root[-1] < limit:
            return None
        inverse = PchipInterpolator(root, values)
        return float(inverse(-limit)), float(inverse(limit))


def profile(
    fit: Estimate,
    names: Sequence[str] | None = None,
    *,
    points: int = 13,
    width: float = 3.0,
    spread: Sequence[float] | None = None,
) -> dict[str, Profile]:
    """Profiles of parameters (all by default) at ``points`` values, as one batch.

    The values reach ``width`` standard errors (Gauss-Newton, or ``spread``) to both sides, at most
    to the bounds. The residuals are taken as independent.
    """
    problem = getattr(fit.objective.model, "problem", None)
    chosen = fit.names if names is None else tuple(names)
    if isinstance(problem, Problem):
        chosen = tuple(full_path(problem, name) for name in chosen)
    for name in chosen:
        require_one_of("profile", name, fit.names, "fitted are")
    objective, layout = fit.objective, fit.objective.layout
    lower, upper = layout.bounds
    if spread is None:
        spread = [covariance(fit, "gauss-newton").standard_errors[name] for name in fit.names]
    sd = np.where(np.isfinite(spread), spread, upper - lower)
    places = [fit.names.index(name) for name in chosen]
    tried = np.linspace(-width, width, points)[:, None] * sd + fit.vector
    tried = np.clip(tried, lower, upper).T[places]
    held = np.repeat(np.eye(layout.size, dtype=bool)[places], points, axis=0)
    start = np.where(held, tried.reshape(-1, 1), fit.vector)
    found = levenberg_marquardt(
        lambda x, _: objective.normal(x), layout, start, tolerance=1e-9, held=held
    )
    deviance = (2.0 * (found.cost - fit.cost)).reshape(tried.shape)
    result = {}
    for name, i, own, cost in zip(chosen, places, tried, deviance, strict=True):
        values, first = np.unique(own, return_index=True)
        result[name] = Profile(name, values, cost[first], float(fit.vector[i]))
    return result
