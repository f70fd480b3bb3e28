"""Long-run covariance of autocorrelated series."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


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
