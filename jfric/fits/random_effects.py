"""Parameters that scatter from run to run: mean and scatter with the largest marginal likelihood.

Around a point ``x`` the cost of the data is ``g^T s + s^T H s/2`` for a step ``s``. The values
``theta_r`` of ``R`` runs are normal around a common mean with the standard deviation ``tau``. With
flat priors on the mean and on the common parameters, all unknowns but ``tau`` are integrated out
(restricted maximum likelihood)::

    -ln p(tau) = min_s [g^T s + s^T H s/2 + (x+s)^T K (x+s)/2] + (R-1) ln tau + ln det(H + K)/2

with ``K = (I - 1 1^T/R)/tau^2`` on the values of the runs. Source: N. M. Laird, J. H. Ware,
Random-effects models for longitudinal data, Biometrics 38 (1982); for nonlinear models, with a new
point after each round, M. J. Lindstrom, D. M. Bates, Nonlinear mixed effects models for repeated
measures data, Biometrics 46 (1990).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

#: Range of scatters that is searched, relative to the scatter of the values with their noise.
SEARCHED = (1e-3, 1e3)
#: Step of differences by the logarithm of a scatter, and largest standard deviation of this
#: logarithm.
STEP, WIDEST = 1e-2, 1.5
#: Scatters over which the errors of single runs are averaged.
GRID = 48


@dataclass(frozen=True)
class RandomEffects:
    """Cost of the data around ``x`` (P,), and the places ``groups`` (R,) of the runs' values of
    each parameter."""

    #: Number of unknown means of each group.
    unknown: ClassVar[int] = 1

    x: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    groups: Sequence[np.ndarray]

    def precision(self, tau: np.ndarray) -> np.ndarray:
        """Matrix ``K`` (P, P) of the prior."""
        K = np.zeros_like(self.hessian)
        for group, t in zip(self.groups, tau, strict=True):
            count = group.size
            K[np.ix_(group, group)] = (np.eye(count) - self.unknown / max(count, 1)) / t**2
        return K

    def covariance(self, tau: np.ndarray) -> np.ndarray:
        """Covariance (P, P) of all values for a known scatter and an unknown mean."""
        return np.linalg.inv(self.hessian + self.precision(tau))

    def best(self, tau: np.ndarray) -> np.ndarray:
        """The values (P,) with the largest density."""
        K = self.precision(tau)
        return self.x - np.linalg.solve(self.hessian + K, self.gradient + K @ self.x)

    def minus_log(self, log_tau: np.ndarray) -> float:
        """``-ln p`` of the scatters, up to a constant."""
        tau = np.exp(log_tau)
        K = self.precision(tau)
        total = self.hessian + K
        sign, size = np.linalg.slogdet(total)
        if sign <= 0:
            return np.inf
        step = -np.linalg.solve(total, self.gradient + K @ self.x)
        there = self.x + step
        data = self.gradient @ step + 0.5 * step @ self.hessian @ step
        known = sum((g.size - self.unknown) * t for g, t in zip(self.groups, log_tau, strict=True))
        return float(data + 0.5 * there @ K @ there + known + 0.5 * size)

    def bounds(self) -> list[tuple[float, float]]:
        """Logarithms of the scatters between which the best one is searched."""
        found = []
        for group in self.groups:
            own = self.hessian[group, group]
            noise = 1.0 / np.median(own) if np.median(own) > 0 else 0.0
            # Values drawn together to the mean have no scatter left, only noise.
            size = float(np.sqrt(np.var(self.x[group], ddof=1) + noise)) or 1e-300
            found.append((float(np.log(size * SEARCHED[0])), float(np.log(size * SEARCHED[1]))))
        return found

    def scatter(self) -> np.ndarray:
        """The scatter of each group with the largest marginal likelihood."""
        from scipy.optimize import minimize

        bounds = self.bounds()
        middle = np.array([low - np.log(SEARCHED[0]) for low, _ in bounds])
        found = [
            minimize(self.minus_log, middle + shift, bounds=bounds, method="L-BFGS-B")
            for shift in (0.0, -2.0, -5.0)
        ]
        return np.exp(min(found, key=lambda r: r.fun).x)

    def means(self, tau: np.ndarray) -> np.ndarray:
        """Common mean of each group."""
        best = self.best(tau)
        return np.array([best[g].mean() for g in self.groups])

    def mean_variances(self, tau: np.ndarray) -> np.ndarray:
        """Variance of each common mean: that of the mean of the runs, plus ``tau^2/R``."""
        C = self.covariance(tau)
        return np.array(
            [
                C[np.ix_(g, g)].sum() / g.size**2 + t**2 / g.size
                for g, t in zip(self.groups, tau, strict=True)
            ]
        )

    def scatter_covariance(self, tau: np.ndarray) -> np.ndarray:
        """Covariance of the logarithms of the scatters, from the curvature of the marginal
        likelihood; no standard deviation exceeds ``WIDEST``, for a flat likelihood."""
        log, unit = np.log(tau), STEP * np.eye(tau.size)
        H = np.zeros((tau.size, tau.size))
        f = self.minus_log
        for i, a in enumerate(unit):
            for j, b in enumerate(unit):
                H[i, j] = f(log + a + b) - f(log + a - b) - f(log - a + b) + f(log - a - b)
        values, vectors = np.linalg.eigh((H + H.T) / (8.0 * STEP**2))
        return (vectors / np.maximum(values, WIDEST**-2)) @ vectors.T

    def mean_degrees(self, tau: np.ndarray) -> np.ndarray:
        """Degrees of freedom of the variances of the means (Satterthwaite 1946)."""
        log = np.log(tau)
        # Derivatives of the variances by the logarithms of the scatters.
        rows = [
            self.mean_variances(np.exp(log + e)) - self.mean_variances(np.exp(log - e))
            for e in STEP * np.eye(tau.size)
        ]
        slopes = np.stack(rows, axis=1) / (2.0 * STEP)
        spread = np.einsum("ij,jk,ik->i", slopes, self.scatter_covariance(tau), slopes)
        with np.errstate(divide="ignore"):
            return np.maximum(2.0 * self.mean_variances(tau) ** 2 / spread, 1.0)

    def errors(self, tau: np.ndarray) -> np.ndarray:
        """Standard errors (P,) of all values.

        The covariance for the estimated scatter is increased by the changes of values and
        covariance under other scatters, one scatter after the other, weighted by their marginal
        likelihood: a scatter that is small by chance makes no run certain. All scatters are equally
        likely a priori (A. Gelman, Prior distributions for variance parameters in hierarchical
        models, Bayesian Analysis 1, 2006).
        """
        at, own = self.best(tau), np.diagonal(self.covariance(tau))
        total = own.copy()
        for j, (low, high) in enumerate(self.bounds()):
            grid = np.linspace(low, high, GRID)
            logs = np.tile(np.log(tau), (GRID, 1))
            logs[:, j] = grid
            density = np.array(
                [grid_j - self.minus_log(row) for grid_j, row in zip(grid, logs, strict=True)]
            )
            weight = np.exp(density - density.max())
            likely = np.flatnonzero(weight > 1e-6)
            weight = weight[likely] / weight[likely].sum()
            for w, row in zip(weight, logs[likely], strict=True):
                other = np.exp(row)
                moved = self.best(other) - at
                total += w * (np.diagonal(self.covariance(other)) - own + moved**2)
        return np.sqrt(np.maximum(total, own))

    def scatter_interval(self, tau: np.ndarray, j: int, level: float) -> tuple[float, float]:
        """Interval of one scatter by the profile of the marginal likelihood; it begins at zero if
        zero is not excluded."""
        from scipy.optimize import brentq, minimize
        from scipy.stats import chi2

        log, bounds = np.log(tau), self.bounds()
        others = [i for i in range(log.size) if i != j]

        def profile(value: float) -> float:
            if not others:
                return self.minus_log(np.array([value]))

            def rest(y):
                full = np.empty(log.size)
                full[j], full[others] = value, y
                return self.minus_log(full)

            return float(minimize(rest, log[others], bounds=[bounds[i] for i in others]).fun)

        limit = profile(log[j]) + 0.5 * float(chi2.ppf(level, 1))
        low, high = bounds[j]
        high += np.log(10.0)
        below = profile(low) - limit

        def crossing(a: float, b: float) -> float:
            place: Any = brentq(lambda v: profile(v) - limit, a, b)
            return float(np.exp(place))

        start = 0.0 if below <= 0.0 else crossing(low, float(log[j]))
        stop = np.inf if profile(high) <= limit else crossing(float(log[j]), high)
        return start, float(stop)


class Centred(RandomEffects):
    """Parameters that scatter around zero: ``K = I/tau^2``, and ``R ln tau`` in the likelihood."""

    unknown = 0
