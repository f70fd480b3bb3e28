"""Tests of residuals as noise: whiteness, dependence on the motion and the inputs, repeats.

Noise may have any colour, so a correlation in time alone accuses no model. Noise does not depend on
the motion, though, nor on the inputs, and it differs from one repetition of a record to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from jfric.fits.data.experiment import Experiment
from jfric.fits.inverse_model import MOTION
from jfric.fits.objective import Linearisation, Objective
from jfric.fits.uncertainty.noise_model import Sandwich, autoregressive_covariance
from jfric.fits.uncertainty.residual_series import ResidualSeries, autocorrelation, series_of

#: Lags of the test of whiteness, and those of the dependence on the motion, in samples.
LAGS, DELAYS = 20, (0, 1, 2, 4, 8, 16)
#: Records that repeat each other, from which on their common part is told from noise.
REPEATS = 3
#: Root mean square difference of equal inputs, as a part of their spread.
EQUAL = 0.05


class Dependence(NamedTuple):
    """p-value of a dependence, and part of the squared residuals that it takes up."""

    p: float
    share: float


def whiteness(series: Sequence[ResidualSeries]) -> float:
    """p-value of residuals as white noise, of the least white signal, times the number of signals.

    Source: G. M. Ljung, G. E. P. Box, Biometrika 65 (1978), with pairs of samples of all series.
    """
    from scipy.special import chdtrc

    signals, least = (series[0].psi.shape[1] if series else 0), 1.0
    for j in range(signals):
        power, count = 0.0, 0
        products, pairs = np.zeros(LAGS), np.zeros(LAGS)
        for s in series:
            used = s.used[:, j]
            e = np.where(used, s.psi[:, j], 0.0)
            power, count = power + float(e @ e), count + int(used.sum())
            for lag in range(1, min(LAGS, e.size - 1) + 1):
                products[lag - 1] += e[lag:] @ e[:-lag]
                pairs[lag - 1] += np.count_nonzero(used[lag:] & used[:-lag])
        there = pairs > 0
        if not power > 0.0 or count < 2 * LAGS:
            continue
        mean = products[there] / pairs[there] / (power / count)
        statistic = float(np.sum(pairs[there] * mean**2 * (count + 2) / count))
        least = min(least, float(chdtrc(np.count_nonzero(there), statistic)))
    return min(1.0, least * max(signals, 1))


def wald(off: Float[np.ndarray, " g"], matrix: Float[np.ndarray, "g g"], degrees: float) -> float:
    """p-value of estimates ``off`` as those of zeros, with their covariance, whose variances have
    so many degrees of freedom."""
    from scipy.special import fdtrc

    size = np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
    z = off / size
    statistic = float(z @ np.linalg.pinv(matrix / np.outer(size, size), rcond=1e-10) @ z) / z.size
    return float(fdtrc(z.size, float(np.clip(degrees, 1.0, 1e6)), max(statistic, 0.0)))


def dependences(
    objective: Objective, found: Linearisation, active: Bool[np.ndarray, " P"]
) -> dict[str, Dependence]:
    """Dependence of the residuals on the predicted motion and on each input, up to lags of 16
    samples, in addition to the derivatives by the ``active`` parameters; p-values are those of all
    these tests together."""
    # Forces of inverse dynamics hold the noise of all that they are computed from.
    measured = any(path.partition(".")[0] == MOTION for path in objective.data.u)
    drivers = {} if measured else _drivers(objective, found)
    tested = {name: _dependence(objective, found, active, d) for name, d in drivers.items()}
    return {name: Dependence(min(1.0, p * len(tested)), s) for name, (p, s) in tested.items()}


def _drivers(objective: Objective, found: Linearisation) -> dict[str, np.ndarray]:
    """Signals (E, m) by name on which residuals may depend, in parts of its spread."""
    data = objective.data
    t = np.asarray(data.t)
    there = np.isfinite(t)
    raw = {f"input {path}": np.asarray(u) for path, u in data.u.items()}
    raw |= {f"size of the {name}": np.abs(u) for name, u in raw.items()}
    for j, signal in enumerate(data.signals):
        values = found.predicted[..., j]
        predicted = np.where(there & np.isfinite(values), values, 0.0)
        rate = np.zeros(t.shape)
        for e, own in enumerate(there):
            if own.sum() > 2:
                rate[e, own] = np.gradient(predicted[e, own], t[e, own])
        raw |= {signal: predicted, f"rate of {signal}": rate}
    drivers = {}
    for name, values in raw.items():
        off = np.where(there, values - np.mean(values[there]), 0.0)
        size = float(np.sqrt(np.mean(off[there] ** 2)))
        if size > 0.0 and np.isfinite(size):
            drivers[name] = off / size
    # A curve of friction or of a spring leaves what is odd, but not straight.
    curved = {f"cube of {k}": x**3 for k, x in drivers.items() if "input" not in k}
    return drivers | curved


def _dependence(objective, found: Linearisation, active, driver: np.ndarray) -> Dependence:
    used, P = objective.weight > 0, active.size
    k = used.shape[-1]
    columns = np.zeros((*used.shape, k * len(DELAYS)))
    for i, lag in enumerate(DELAYS):
        late = np.zeros(driver.shape)
        late[:, lag:] = driver[:, : driver.shape[1] - lag]
        for j in range(k):
            columns[:, :, j, i * k + j] = late * used[..., j]
    jacobian = np.concatenate([found.jacobian, columns], axis=-1)
    own = np.arange(P, P + columns.shape[-1])
    places = np.concatenate(
        [objective.layout.columns, np.repeat(own[None], used.shape[0], axis=0)], axis=1
    )
    series = series_of(objective, found.residuals, jacobian, places)
    keep = np.concatenate([active, np.ones(own.size, bool)])
    return taken_up(series, keep, np.arange(keep.size) >= P)[0]


def taken_up(
    series: Sequence[ResidualSeries], keep: Bool[np.ndarray, " P"], tested: Bool[np.ndarray, " P"]
) -> tuple[Dependence, np.ndarray]:
    """The part of the residuals that the parameters ``tested`` among those of ``keep`` take up, and
    the changes of these parameters."""
    off, covariance, left = _regressed(series, keep)
    before = _regressed(series, keep & ~tested)[2]
    matrix = covariance.matrix[np.ix_(tested, tested)]
    p = wald(off[tested], matrix, float(np.min(covariance.degrees[tested])))
    return Dependence(p, 1.0 - left / before if before > 0.0 else 0.0), off[tested]


def _regressed(
    series: Sequence[ResidualSeries], keep: Bool[np.ndarray, " P"]
) -> tuple[np.ndarray, Sandwich, float]:
    """Least squares of the residuals by the parameters ``keep``: their changes (P,), the covariance
    under autoregressive noise, and the sum of the squares that are left."""
    size = keep.size
    hessian, gradient = np.zeros((size, size)), np.zeros(size)
    for s in series:
        J = s.jacobian.reshape(-1, s.columns.size)
        np.add.at(hessian, np.ix_(s.columns, s.columns), J.T @ J)
        np.add.at(gradient, s.columns, J.T @ s.psi.ravel())
    inverse = inverse_of(hessian, keep)
    off = -inverse @ gradient
    left = [replace(s, psi=s.psi + s.jacobian @ off[s.columns]) for s in series]
    squares = sum(float(np.sum(s.psi**2)) for s in left)
    return off, autoregressive_covariance(left, inverse), squares


def inverse_of(hessian: Float[np.ndarray, "P P"], keep: Bool[np.ndarray, " P"]) -> np.ndarray:
    """The inverse for the parameters ``keep``, zero for the others."""
    i = np.flatnonzero(keep)
    scale = np.sqrt(np.maximum(np.diagonal(hessian)[i], 1e-300))
    found = np.zeros_like(hessian)
    part = np.linalg.pinv(hessian[np.ix_(i, i)] / np.outer(scale, scale), rcond=1e-13)
    found[np.ix_(i, i)] = part / np.outer(scale, scale)
    return found


def repeated(records: Sequence[Experiment], objective: Objective, residuals) -> Dependence | None:
    """The part of the residuals (E, m, k) that is common to records which repeat each other: same
    times, inputs and start; None where fewer than three do.

    With ``e_i`` for record ``i`` of ``n`` the mean over the records has the variance ``s^2/n`` if
    there is no common part, with ``s^2`` from the differences between records; F has as many
    degrees of freedom as there are independent samples in ``(e_i)``.
    """
    from scipy.special import fdtrc

    same = _repeats(records)
    if len(same) < REPEATS or residuals.shape != objective.weight.shape:
        return None
    used: np.ndarray = np.all(objective.weight[same] > 0, axis=0)
    n, found = len(same), []
    for j, rows in enumerate(used.T):
        e = residuals[same][:, rows, j]
        if rows.sum() < 2 * LAGS:
            continue
        mean = e.mean(axis=0)
        between = (e - mean) * np.sqrt(n / (n - 1.0))
        noise, common = float(np.mean(between**2)), float(np.mean(mean**2))
        r = np.mean([autocorrelation(x, min(200, x.size // 4)) for x in between], axis=0)
        free = rows.sum() / max(1.0 + 2.0 * float(np.sum(r[1:] ** 2)), 1.0)
        p = float(fdtrc(free, (n - 1) * free, n * common / noise)) if noise > 0.0 else 0.0
        share = (common - noise / n) / max(float(np.mean(e**2)), 1e-300)
        found.append(Dependence(min(1.0, p * used.shape[1]), max(share, 0.0)))
    return min(found, default=None)


def _repeats(records: Sequence[Experiment]) -> list[int]:
    """Places of the largest set of records with the same times, inputs, numbers and start."""

    def alike(a: Experiment, b: Experiment) -> bool:
        tables = ((a.u or {}, b.u or {}), ({"t": a.t - a.t[0]}, {"t": b.t - b.t[0]}))
        return all(_close(x, y) for x, y in tables) and (a.known, str(a.x0)) == (b.known, str(b.x0))

    sets = [[i for i, b in enumerate(records) if alike(a, b)] for a in records]
    return max(sets, key=len) if sets else []


def _close(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> bool:
    """Whether tables of samples are equal but for a small part of their spread, such as noise."""
    return a.keys() == b.keys() and all(
        a[k].shape == b[k].shape
        and np.sqrt(np.mean((a[k] - b[k]) ** 2)) <= EQUAL * float(np.std(a[k]))
        for k in a
    )
