"""Residuals of a fit as series in time, with their derivatives by the parameters, and how they
correlate."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from jfric.fits.objective import HasPoint, Objective


def long_run_covariance(series: Float[np.ndarray, "m p"], lags: int) -> Float[np.ndarray, "p p"]:
    """Long-run covariance ``G_0 + sum_l (1 - l/(lags + 1)) (G_l + G_l^T)``.

    ``G_l = sum_t s_t s_(t-l)^T``. By Newey and West (1987), times the number of samples; positive
    semi-definite.
    """
    total = series.T @ series
    for lag in range(1, lags + 1):
        product = series[lag:].T @ series[:-lag]
        total = total + (1.0 - lag / (lags + 1)) * (product + product.T)
    return total


def bandwidth(series: Float[np.ndarray, "m p"]) -> int:
    """Lags for Bartlett weights by Andrews (1991, eq. 6.4) from a first-order autoregression of
    each column."""
    count = series.shape[0]
    if count < 4:
        return 0
    top, bottom = 0.0, 0.0
    for column in series.T:
        before, after = column[:-1], column[1:]
        power = before @ before
        if power == 0.0:
            continue
        rho = float(np.clip(before @ after / power, -0.99, 0.99))
        variance = float(np.mean((after - rho * before) ** 2))
        top += 4.0 * rho**2 * variance**2 / ((1 - rho) ** 6 * (1 + rho) ** 2)
        bottom += variance**2 / (1 - rho) ** 4
    if not (bottom > 0.0 and np.isfinite(top + bottom)):
        return 0
    return int(min(np.floor(1.1447 * (top / bottom * count) ** (1 / 3)), count // 4))


def autocorrelation(values: Float[np.ndarray, " m"], lags: int) -> Float[np.ndarray, " l"]:
    """Autocorrelation at the lags 0 to ``lags``; NaN marks missing samples, whose pairs are
    replaced by the mean of the others."""
    there = np.isfinite(values)
    centred = np.where(there, values - np.mean(values[there]), 0.0)
    power = centred @ centred
    if power == 0.0:
        return np.r_[1.0, np.zeros(lags)]
    size, present = values.size, there.astype(float)
    found = []
    for lag in range(lags + 1):
        pairs = present[lag:] @ present[: size - lag]
        # Without missing samples this factor is one.
        scale = (size - lag) / size * there.sum() / pairs if pairs else 0.0
        found.append(scale * (centred[lag:] @ centred[: size - lag]) / power)
    return np.array(found)


#: Distance from a grid, in parts of its step, up to which times count as evenly spaced.
ON_GRID = 0.25
#: Most rows of a grid per sample: above that, gaps are not filled up.
LONGEST_GRID = 4


@dataclass(frozen=True)
class ResidualSeries:
    """Weighted residuals of one experiment and their derivatives, in order of time.

    ``psi`` (m, k): residuals as they enter the gradient, zero where ``used`` (m, k) is false.
    ``jacobian`` (m, k, L): by the parameters at ``columns`` (L,) of the vector of the fit. ``step``
    [s]: time from row to row.
    """

    psi: Float[np.ndarray, "m k"]
    jacobian: Float[np.ndarray, "m k L"]
    columns: Int[np.ndarray, " L"]
    used: Bool[np.ndarray, "m k"]
    step: float

    def scores(self, size: int) -> Float[np.ndarray, "m P"]:
        """Gradient of the cost sample by sample, for ``size`` parameters."""
        found = np.zeros((self.psi.shape[0], size))
        # A parameter may stand in two columns.
        np.add.at(found.T, self.columns, np.einsum("mk,mkl->lm", self.psi, self.jacobian))
        return found


def residual_series(fit: HasPoint) -> list[ResidualSeries]:
    """The residuals of ``fit`` by experiment."""
    _, r, jacobian, _ = fit.linearised()
    return series_of(fit.objective, r, jacobian, fit.objective.layout.columns)


def series_of(objective: Objective, r, jacobian, columns) -> list[ResidualSeries]:
    """Residuals ``r`` (E, m, k) and their derivatives (E, m, k, L) by the parameters at ``columns``
    (E, L) as series.

    Missing samples are rows that do not count, so that a lag is the same time everywhere. Gaps in
    evenly spaced times are such rows, too.
    """
    loss = objective.loss
    psi = np.asarray(loss.rho(jnp.asarray((r / loss.scale) ** 2))[1]) * r
    weight, times = objective.weight, np.asarray(objective.data.t)
    found = []
    for e, own in enumerate(columns):
        t = times[e][np.isfinite(times[e])]
        if psi.shape[1:] == weight.shape[1:]:
            used = weight[e] > 0
            rows = np.flatnonzero(used[: t.size].any(axis=1))
            inside = slice(rows[0], rows[-1] + 1) if rows.size else slice(0, 0)
            place, step = even_grid(t[inside])
        else:  # a user's own residual: its rows may be anything
            inside, step = slice(None), float("nan")
            used = np.ones(psi[e].shape, bool)
            place = np.arange(used.shape[0])
        size = int(place[-1]) + 1 if place.size else 0
        parts = []
        for values in (psi[e], jacobian[e], used):
            filled = np.zeros((size, *values.shape[1:]), values.dtype)
            filled[place] = values[inside]
            parts.append(filled)
        found.append(ResidualSeries(parts[0], parts[1], own, parts[2], step))
    return found


def even_grid(t: np.ndarray) -> tuple[np.ndarray, float]:
    """Rows of the samples on an even grid, and its step; without such a grid every sample is the
    next row."""
    every = np.arange(t.size)
    if t.size < 3:
        return every, float(np.ptp(t)) if t.size else float("nan")
    step = float(np.median(np.diff(t)))
    # Step by step, so that a small error of the clock does not add up.
    jumps = np.diff(t) / step
    rows = np.rint(jumps)
    if np.any(np.abs(jumps - rows) > ON_GRID) or np.any(rows < 1):
        return every, step
    place = np.r_[0, np.cumsum(rows)].astype(int)
    return (place, step) if place[-1] < LONGEST_GRID * t.size else (every, step)


def correlation_time(fit: HasPoint) -> float:
    """Ratio of the number of samples of the residuals to the number of independent ones: one plus
    twice the sum of their autocorrelations up to the first that is not positive."""
    residuals, weight = fit.linearised().residuals, fit.objective.weight
    if residuals.shape != weight.shape:  # a user's residual function
        return 1.0
    products: Float[np.ndarray, " m"] = np.zeros(residuals.shape[1])
    for e in range(residuals.shape[0]):
        for k in range(residuals.shape[2]):
            r = np.where(weight[e, :, k] > 0, residuals[e, :, k], 0.0)
            spectrum = np.fft.rfft(r, 2 * r.size)
            products += np.fft.irfft(spectrum * spectrum.conj())[: r.size]
    if not products[0] > 0.0:
        return 1.0
    rho = products[1:] / products[0]
    negative = np.flatnonzero(rho <= 0.0)
    return float(1.0 + 2.0 * rho[: negative[0] if negative.size else rho.size].sum())


def cost_of_data(
    fit: HasPoint, places: Int[np.ndarray, " k"]
) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, "P P"]]:
    """Gradient and Gauss-Newton matrix at a fit without the priors of the parameters at ``places``,
    as if there were only as many samples as independent ones."""
    _, slope, information = fit.objective.layout.prior_terms(fit.vector)
    normal = fit.objective.normal_at(fit.vector)
    gradient, hessian = normal.gradient.copy(), normal.hessian.copy()
    gradient[places] -= slope[places]
    hessian[places, places] -= information[places]
    share = 1.0 / correlation_time(fit)
    return share * gradient, share * hessian
