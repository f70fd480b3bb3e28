"""Refits as one batch: for resampled data (bootstrap), and for held values of a parameter (profile
likelihood)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from jfric.errors import ProblemError, require_one_of
from jfric.fits.free import full_path
from jfric.fits.optimise.descents import Outcome, levenberg_marquardt
from jfric.fits.recipe import Estimate
from jfric.fits.uncertainty.covariance import covariance
from jfric.fits.uncertainty.residual_series import bandwidth, residual_series
from jfric.numerics.printing import printable
from jfric.system.problem import Problem


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
