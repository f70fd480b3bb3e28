"""Profile likelihood: growth of the cost if one parameter is held and the others are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from jfric.errors import ProblemError, nearest
from jfric.fits.estimate import Estimate
from jfric.fits.full_paths import full_path
from jfric.fits.optimise.levenberg_marquardt import levenberg_marquardt
from jfric.fits.uncertainty.covariance import covariance
from jfric.numerics.printing import printable
from jfric.system.problem import Problem


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
        if name not in fit.names:
            raise ProblemError(
                f"profile: found {name!r}{nearest(name, fit.names)}, fitted are "
                + ", ".join(fit.names)
            )
    objective, layout = fit.objective, fit.objective.layout
    lower, upper = layout.bounds
    sd = (
        np.array([covariance(fit, "gauss-newton").standard_errors[n] for n in fit.names])
        if spread is None
        else np.asarray(spread, float)
    )
    sd = np.where(np.isfinite(sd), sd, upper - lower)
    steps = np.linspace(-width, width, points)
    start = np.tile(fit.vector, (len(chosen) * points, 1))
    held = np.zeros(start.shape, bool)
    for j, name in enumerate(chosen):
        i = fit.names.index(name)
        rows = slice(j * points, (j + 1) * points)
        start[rows, i] = np.clip(fit.vector[i] + steps * sd[i], lower[i], upper[i])
        held[rows, i] = True
    found = levenberg_marquardt(
        lambda x, _: objective.normal(x), layout, start, tolerance=1e-9, held=held
    )
    deviance = (2.0 * (found.cost - fit.cost)).reshape(len(chosen), points)
    result = {}
    for j, name in enumerate(chosen):
        i = fit.names.index(name)
        values, first = np.unique(start[j * points : (j + 1) * points, i], return_index=True)
        result[name] = Profile(name, values, deviance[j][first], float(fit.vector[i]))
    return result
