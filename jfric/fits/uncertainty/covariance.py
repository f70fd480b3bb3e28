"""Covariance of the estimates from one linearisation at the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jfric.errors import ProblemError, require_one_of
from jfric.fits.objective import Squares
from jfric.fits.optimise.direct_search import Cloud
from jfric.fits.recipe import Estimate
from jfric.fits.uncertainty.noise_model import autoregressive_covariance
from jfric.fits.uncertainty.residual_series import bandwidth, long_run_covariance, residual_series
from jfric.numerics.printing import printable

Method = Literal["autoregressive", "hac", "gauss-newton"]
METHODS = ("autoregressive", "hac", "gauss-newton")
#: Uncertainty, as a part of the range of the bounds, above which a direction is not identified.
UNIDENTIFIED = 1.0
#: Largest logarithm of the factor to an end of an interval on a logarithmic scale.
LARGEST_POWER = 100.0
#: Standard deviation, in parts of the range, from which on points fill it.
FILLED = 0.2
#: Degrees of freedom above which Student's distribution is the normal one.
MANY_DEGREES = 1e6
#: Degrees of freedom below which intervals were seen to miss their level: docs/fits.md.
FEW_DEGREES = 6.0


@printable
@dataclass(frozen=True)
class Covariance:
    """Uncertainty of the estimates ``x`` (P,).

    ``matrix`` (P, P): as if there were no bounds, infinite on the diagonal for parameters that the
    data do not determine; NaN where the simulation fails. A parameter that has reached a bound does
    not count as known: otherwise the errors of the parameters that trade with it would be too small
    if its true value lies a little inside.
    """

    names: tuple[str, ...]
    x: np.ndarray
    matrix: np.ndarray
    method: str
    at_bound: np.ndarray
    log: np.ndarray
    bounds: tuple[np.ndarray, np.ndarray]
    #: Combinations of parameters that the data do not determine: parts of their ranges by name.
    unidentified: tuple[dict[str, float], ...] = ()
    #: Lags of the autocorrelation that were counted, for each experiment.
    lags: tuple[int, ...] = ()
    #: Degrees of freedom (P,) of the variances, infinite if these are taken as known.
    degrees: np.ndarray | None = None
    #: Order of the model of the noise, for each group of experiments that shares one.
    orders: tuple[int, ...] = ()
    #: Points around the estimate, whose quantiles are the intervals, where derivatives do not tell.
    cloud: Cloud | None = None
    #: Sentences on errors of the model, with which the matrix was widened, or lost its numbers.
    model_error: tuple[str, ...] = ()

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard error of each parameter; at a bound, the one without the bound."""
        return dict(zip(self.names, np.sqrt(np.diagonal(self.matrix)).tolist(), strict=True))

    @property
    def correlation(self) -> np.ndarray:
        """Correlation of the estimates (P, P)."""
        sd = np.sqrt(np.diagonal(self.matrix))
        with np.errstate(invalid="ignore"):
            return self.matrix / np.outer(sd, sd)

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float] | None]:
        """Intervals that hold the true values with probability ``level``.

        None for a parameter that the data do not determine. Intervals are symmetric on the scale of
        the parameter, with quantiles of Student's distribution for the degrees of freedom. For a
        parameter at a bound the interval begins there and reaches as far inside as without the
        bound; it holds the true value more often than ``level``.
        """
        if not 0.0 < level < 1.0:
            raise ProblemError(f"level: found {level:g}, must lie between 0 and 1")
        if self.cloud is not None:
            ends = (self.cloud.quantile(p) for p in (0.5 - 0.5 * level, 0.5 + 0.5 * level))
            pairs = zip(self.names, *ends, np.diagonal(self.matrix), strict=True)
            return {n: (float(a), float(b)) if np.isfinite(v) else None for n, a, b, v in pairs}
        known, x = np.isfinite(np.diagonal(self.matrix)), self.x
        off = self._quantiles(level) * np.sqrt(np.where(known, np.diagonal(self.matrix), 0.0))
        factor = np.exp(np.minimum(off / np.where(self.log, x, np.inf), LARGEST_POWER))
        low, high = np.where(self.log, (x / factor, x * factor), (x - off, x + off))
        low = np.where(self.at_bound < 0, self.bounds[0], low)
        high = np.where(self.at_bound > 0, self.bounds[1], high)
        pairs = zip(self.names, low.tolist(), high.tolist(), known, strict=True)
        return {name: (a, b) if there else None for name, a, b, there in pairs}

    def _quantiles(self, level: float) -> np.ndarray:
        from scipy.special import ndtri, stdtrit  # slow to import

        normal = float(ndtri(0.5 + 0.5 * level))
        if self.degrees is None:
            return np.full(self.x.size, normal)
        # Below one degree of freedom the tails of the distribution would be nothing but noise.
        found = stdtrit(np.clip(self.degrees, 1.0, MANY_DEGREES), 0.5 + 0.5 * level)
        return np.where(self.degrees > MANY_DEGREES, normal, found)

    def remarks(self) -> list[str]:
        """Remarks on intervals: bounds, undetermined directions, few independent samples."""
        said = []
        if self.cloud is not None:
            return self._on_cloud(self.cloud)
        said += self._on_bounds()
        for direction in self.unidentified:
            parts = ", ".join(f"{name} by {part:+.2f}" for name, part in direction.items())
            said.append(f"the data do not tell this change from none (parts of the range): {parts}")
        said += self.model_error
        # Errors of the model look like slow noise, but a longer record does not help them.
        if self.degrees is not None and not self.model_error:
            few = np.isfinite(np.diagonal(self.matrix)) & (self.degrees < FEW_DEGREES)
            if few.any():
                names = ", ".join(self.names[i] for i in np.flatnonzero(few))
                said.append(
                    f"the noise is slow compared with the record: the error of {names} is known as "
                    f"from {min(self.degrees[few]):.0f} independent samples; the intervals may be "
                    "off, a longer record helps"
                )
        return said

    def _on_bounds(self) -> list[str]:
        known, said = np.isfinite(np.diagonal(self.matrix)), []
        for text, at in reached_bounds(self.names, self.at_bound, self.bounds):
            own = ("its interval has one side", "no interval")
            then = (
                own if len(at) == 1 else ("their intervals have one side", "not all have intervals")
            )
            said.append(f"{text}: {then[0 if known[at].all() else 1]}")
        return said

    def _on_cloud(self, cloud: Cloud) -> list[str]:
        if not cloud.explained:
            return ["the residuals are far larger than noise: no intervals"]
        open_ = [
            n for n, v in zip(self.names, np.diagonal(self.matrix), strict=True) if v == np.inf
        ]
        said = [f"no value of {', '.join(open_)} fits much better than others"] if open_ else []
        if not cloud.settled:
            said.append("the search has not settled: intervals are where it ended, too wide")
        return said


def reached_bounds(
    names: Sequence[str], at_bound: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]
) -> list[tuple[str, list[int]]]:
    """Bounds (lower and upper, each (P,)) that parameters have reached, as texts with the places of
    the parameters; those of several records count as one."""
    places: dict[tuple[str, bool, float], list[int]] = {}
    for i in np.flatnonzero(at_bound):
        upper = bool(at_bound[i] > 0)
        key = names[int(i)].partition("[")[0], upper, float(bounds[upper][i])
        places.setdefault(key, []).append(int(i))
    found = []
    for (path, upper, bound), at in places.items():
        every = sum(name.partition("[")[0] == path for name in names)
        name, where = names[at[0]], ""
        if len(at) > 1:
            name, where = path, f" in {len(at)} of {every} records"
        found.append(
            (f"{name} is at its {'upper' if upper else 'lower'} bound {bound:g}{where}", at)
        )
    return found


def covariance(
    fit: Estimate, method: Method = "autoregressive", lags: int | None = None
) -> Covariance:
    """Covariance of the estimates of ``fit``.

    ``"autoregressive"``: ``H^-1 J^T Omega J H^-1`` with the covariance ``Omega`` of autoregressive
    noise, whose model is taken from the residuals; valid for white noise, too. See
    :mod:`jfric.fits.uncertainty.noise_model`. ``"gauss-newton"``: ``(J^T J)^-1`` of the weighted
    residuals, valid if they are independent. ``"hac"``: ``H^-1 S H^-1`` with the long-run
    covariance ``S`` of the scores (Newey and West 1987, Bartlett weights), for noise that also
    changes along the record; too small for short records; ``lags`` by Andrews (1991) by default.
    """
    require_one_of("method", method, METHODS)
    layout, objective, size = fit.objective.layout, fit.objective, fit.objective.layout.size
    if fit.cloud is not None:
        return _of_cloud(fit, fit.cloud)
    normal = objective.normal_at(fit.vector)
    hessian, ranges = normal.hessian, layout.ranges(fit.vector)
    # The simulation fails at the fit, or does not reach every sample.
    if not (np.isfinite(normal.cost) and np.all(np.isfinite(hessian))):
        return _made(fit, np.full((size, size), np.nan), method)
    values, vectors = np.linalg.eigh(hessian * np.outer(ranges, ranges))
    known = values > 1.0 / UNIDENTIFIED**2
    # Directions in parts of the ranges; directions that are not known carry no finite error.
    basis = vectors[:, known]
    inverse = (basis / values[known]) @ basis.T * np.outer(ranges, ranges)
    degrees, orders, counted = np.full(size, np.inf), (), ()
    if method == "gauss-newton" and isinstance(objective.loss, Squares):
        matrix = inverse
    elif method == "autoregressive":
        prior = layout.prior_terms(fit.vector)[2]
        found = autoregressive_covariance(list(residual_series(fit)), inverse, prior)
        matrix, degrees, orders = found
    else:
        matrix, counted = _by_scores(fit, method, lags, inverse, ranges)
    lost = np.any(np.abs(vectors[:, ~known]) > 0.05, axis=1)
    matrix[lost, lost] = np.inf
    directions = [
        {fit.names[j]: float(v[j]) for j in np.argsort(-np.abs(v)) if abs(v[j]) > 0.05}
        for v in vectors[:, ~known].T
    ]
    return _made(fit, matrix, method, tuple(directions), counted, degrees, orders)


def _made(fit: Estimate, matrix: np.ndarray, method: str, *rest, **more) -> Covariance:
    """The covariance of ``fit`` with its names, values and bounds."""
    layout = fit.objective.layout
    known = layout.at_bound(fit.vector), layout.log, layout.bounds
    return Covariance(fit.names, fit.vector, matrix, method, *known, *rest, **more)


def _of_cloud(fit: Estimate, cloud: Cloud) -> Covariance:
    """The covariance of points around the estimate; infinite for a parameter whose points fill its
    range, and for all where the residuals are no noise."""
    layout, matrix = fit.objective.layout, cloud.covariance.copy()
    lost = np.sqrt(np.diagonal(matrix)) > FILLED * layout.ranges(fit.vector)
    lost |= not cloud.explained
    matrix[lost, lost] = np.inf
    return _made(fit, matrix, "objective", cloud=cloud)


def _by_scores(
    fit: Estimate, method: str, lags: int | None, inverse: np.ndarray, ranges: np.ndarray
) -> tuple[np.ndarray, tuple[int, ...]]:
    """The covariance by that of the scores, and the lags that were counted."""
    layout, counted, samples = fit.objective.layout, [], 0
    size = layout.size
    middle = np.zeros((size, size))
    for series in residual_series(fit):
        rows = series.scores(size)
        chosen = bandwidth(rows * ranges) if lags is None else lags
        counted.append(0 if method == "gauss-newton" else min(chosen, rows.shape[0] - 1))
        middle += long_run_covariance(rows, counted[-1])
        samples += int(np.count_nonzero(series.used.any(axis=1)))
    middle += np.diag(layout.prior_terms(fit.vector)[2])
    return inverse @ middle @ inverse * (samples / max(samples - size, 1)), tuple(counted)
