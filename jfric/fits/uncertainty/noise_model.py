"""Covariance of estimates under autoregressive noise, whose model is taken from the residuals.

The noise is taken as ``n_t = A_1 n_(t-1) + ... + A_p n_(t-p) + w_t``, where several signals may
depend on each other; the order has the least information criterion (Hurvich and Tsai 1989), the
coefficients are those of least squares. Residuals are ``e = (I - J (J^T J)^-1 J^T) n``: the fit
removes part of the noise, most of it where the noise is slow. The mean of the removed part follows
from the model and is added to the products ``e_(t-i) e_(t-j)`` of the least squares, until the
model no longer changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from jfric.fits.uncertainty.residual_series import ResidualSeries

#: Rounds in which the noise that the fit removed is added again, and the change that ends them.
ROUNDS, SETTLED = 8, 1e-3
#: Samples from which on an experiment has its own model; shorter experiments share one.
OWN_MODEL = 200
#: Highest order, as a multiple of the decimal logarithm of the number of samples, and the number of
#: rows that each coefficient needs.
ORDERS, ROWS = 8, 10


class Autoregression(NamedTuple):
    """Coefficients (p, k, k) of past values, and covariance (k, k) of the innovations."""

    coefficients: Float[np.ndarray, "p k k"]
    innovations: Float[np.ndarray, "k k"]

    def transfer(self, size: int) -> Float[np.ndarray, "f k k"]:
        """Transfer function from innovations to noise, ``(I - sum_l A_l exp(-i w l))^-1``, at the
        frequencies of a real transform of ``size``."""
        k = self.innovations.shape[0]
        taps = np.fft.rfft(np.concatenate([np.eye(k)[None], -self.coefficients]), size, axis=0)
        return 1.0 / taps if k == 1 else np.linalg.inv(taps)


class Sandwich(NamedTuple):
    """Covariance (P, P) of the estimates, degrees of freedom (P,) of their variances, and the
    order of each model."""

    matrix: np.ndarray
    degrees: np.ndarray
    orders: tuple[int, ...]


def autoregressive_covariance(
    series: Sequence[ResidualSeries],
    inverse: Float[np.ndarray, "P P"],
    prior: Float[np.ndarray, " P"] | None = None,
) -> Sandwich:
    """``H^-1 (J^T Omega J + prior) H^-1`` with the covariance ``Omega`` of autoregressive noise.

    ``inverse``: ``H^-1``; ``prior``: information of priors, part of ``H``. Degrees of freedom are
    those of Satterthwaite (1946): twice the square of a variance over its own variance, which
    follows from that of the coefficients.
    """
    size = inverse.shape[0]
    known = np.zeros((size, size)) if prior is None else np.diag(prior)
    groups = [_Group(g) for g in _by_clock(series)]
    spread = inverse
    for _ in range(ROUNDS):
        total = known + sum(g.middle(size) for g in groups)
        spread = inverse @ total @ inverse
        if sum(g.match(inverse, spread) for g in groups) < SETTLED * len(groups):
            break
    variance = np.zeros(size)
    for group in groups:
        variance += group.variance_of_variance(inverse)
    own = np.diagonal(spread)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        degrees = np.where(variance > 0.0, 2.0 * own**2 / variance, np.inf)
    return Sandwich(spread, degrees, tuple(g.order for g in groups))


def _by_clock(series: Sequence[ResidualSeries]) -> list[list[ResidualSeries]]:
    """Experiments that have one model together."""
    groups: dict[object, list[ResidualSeries]] = {}
    for i, s in enumerate(part for one in series for part in _together(one)):
        if s.used.any():
            long = np.count_nonzero(s.used.any(axis=1)) >= OWN_MODEL
            groups.setdefault(i if long else f"{s.step:.2g}", []).append(s)
    return list(groups.values())


def _together(series: ResidualSeries) -> list[ResidualSeries]:
    """The series itself, or one series for each signal if its signals are hardly ever sampled
    together, with the samples in sequence."""
    used = series.used
    if 2 * np.count_nonzero(used.all(axis=1)) >= np.count_nonzero(used.any(axis=1)):
        return [series]
    return [
        replace(
            series,
            psi=series.psi[rows, j : j + 1],
            jacobian=series.jacobian[rows, j : j + 1],
            used=used[rows, j : j + 1],
        )
        for j, rows in enumerate(used.T)
        if rows.any()
    ]


class _Group:
    """Series of one model, and the model."""

    def __init__(self, series: Sequence[ResidualSeries]):
        self.series = series
        self.k = series[0].psi.shape[1]
        self.samples = sum(int(np.count_nonzero(s.used.any(axis=1))) for s in series)
        from scipy.fft import next_fast_len

        # Twice the length, so that the ends of a record do not meet.
        sizes = [max(2 * s.psi.shape[0], 16) for s in series]
        self.sizes: list[int] = [next_fast_len(x, real=True) for x in sizes]  # pyright: ignore
        self.spectra = [
            np.fft.rfft(s.jacobian, n, axis=0) for s, n in zip(series, self.sizes, strict=True)
        ]
        self.order = self._chosen_order()
        self.rows = [_complete(s.used, self.order) for s in series]
        self.count = sum(int(np.count_nonzero(r)) for r in self.rows)
        psi = [s.psi[:, :, None] for s in series]
        self.observed = self._products(psi, psi)
        self.model = self._least_squares(self.observed)
        self.filtered: list[np.ndarray] = []

    def _chosen_order(self) -> int:
        """The order of least corrected information criterion, on rows that all orders share."""
        k = self.k
        highest = min(int(ORDERS * np.log10(max(self.samples, 2))), self.samples // (5 * k))
        while highest:
            rows = [_complete(s.used, highest) for s in self.series]
            count = sum(int(np.count_nonzero(r)) for r in rows)
            if count >= ROWS * (highest + 1) * k:
                break
            highest -= 1
        else:
            return 0
        whole = np.zeros(((highest + 1) * k,) * 2)
        for s, r in zip(self.series, rows, strict=True):
            lagged = _lagged(s.psi, highest)[r[highest:]]
            whole += lagged.T @ lagged
        values = []
        for order in range(highest + 1):
            size = (order + 1) * k
            model = _solved(whole[:size, :size], k, count)
            free = k * (k * order + (k + 1) / 2)
            spare = count * k - free - 1
            # Innovations of a lower order have fewer degrees of freedom; here they are based on all
            # rows.
            part = k * np.log(max(count - order * k, 1) / count)
            size = np.linalg.slogdet(model.innovations)[1] + part
            values.append(count * size + 2.0 * free * count * k / spare if spare > 0 else np.inf)
        return int(np.argmin(values))

    def _products(self, left, right) -> Float[np.ndarray, "n n"]:
        """``sum_t l_(t-i) r_(t-j)^T``, blocks (i, j) for ``i, j = 0 ... p``, over complete rows;
        ``left`` and ``right`` (m, k, L) for each series, summed over the last axis."""
        total = np.zeros(((self.order + 1) * self.k,) * 2)
        for a, b, r in zip(left, right, self.rows, strict=True):
            for i in range(a.shape[2]):
                own = [_lagged(x[:, :, i], self.order)[r[self.order :]] for x in (a, b)]
                total += own[0].T @ own[1]
        return total

    def _least_squares(self, products) -> Autoregression:
        found = _solved(products, self.k, self.count)
        # Noise decays within the record.
        largest, limit = _slowest(found), 1.0 - 1.0 / self.samples
        if largest > limit:
            powers = (limit / largest) ** np.arange(1, self.order + 1)
            found = found._replace(coefficients=found.coefficients * powers[:, None, None])
        return found

    def middle(self, size: int) -> Float[np.ndarray, "P P"]:
        """``J^T Omega J``."""
        total = np.zeros((size, size))
        self.filtered = []
        for s, n, spectrum in zip(self.series, self.sizes, self.spectra, strict=True):
            b = self.model.transfer(n)
            density = b @ self.model.innovations @ np.conj(np.swapaxes(b, 1, 2))
            own = np.fft.irfft(density @ spectrum, n, axis=0)[: s.psi.shape[0]]
            own = own * s.used[:, :, None]
            self.filtered.append(own)
            part = np.einsum("mkl,mkn->ln", s.jacobian, own)
            np.add.at(total, np.ix_(s.columns, s.columns), 0.5 * (part + part.T))
        return total

    def match(self, inverse, spread) -> float:
        """Adapt the model to the residuals found; returns the relative change."""
        left, right = [], []
        for s, own in zip(self.series, self.filtered, strict=True):
            local = np.ix_(s.columns, s.columns)
            left.append(s.jacobian)
            right.append(own @ inverse[local] - 0.5 * s.jacobian @ spread[local])
        taken = self._products(left, right)
        before = self.model
        self.model = self._least_squares(self.observed + taken + taken.T)
        change = np.abs(self.model.innovations - before.innovations).max()
        change /= np.abs(before.innovations).max() or 1.0
        if self.order:
            change += np.abs(self.model.coefficients - before.coefficients).max()
        return float(change)

    def variance_of_variance(self, inverse) -> Float[np.ndarray, " P"]:
        """Variance of this group's part of the variance of each estimate, by the delta method:
        ``cov(vec A) = Gamma^-1 x Sigma/m``, and innovations scatter like a normal sample."""
        size, p, k = inverse.shape[0], self.order, self.k
        model = self.model
        slope = np.zeros((size, p, k, k))
        weight = np.zeros((size, k, k))
        for s, n, spectrum in zip(self.series, self.sizes, self.spectra, strict=True):
            b = model.transfer(n)
            w = spectrum @ inverse[s.columns]  # (f, k, P)
            u = np.conj(np.swapaxes(b, 1, 2)) @ w
            z = b @ model.innovations @ u
            fold = np.full(w.shape[0], 2.0)
            fold[0] = 1.0
            if n % 2 == 0:
                fold[-1] = 1.0
            weight += np.einsum("f,fap,fbp->pab", fold / n, np.conj(u), u, optimize=True).real
            if p:
                cross = np.einsum("fap,fbp->fpab", np.conj(u), z)
                # sum_f exp(-i w l) c(f) over all frequencies, over n: the lag l read backwards.
                back = np.fft.irfft(cross, n, axis=0)
                slope += 2.0 * np.moveaxis(back[-np.arange(1, p + 1)], 0, 1)
        scatter = weight @ model.innovations
        variance = 2.0 * np.einsum("pab,pba->p", scatter, scatter) / self.count
        if p:
            gamma = _toeplitz(_autocovariance(model, p - 1))
            rows = np.moveaxis(slope, 2, 1).reshape(size, k, p * k)
            solved = np.linalg.solve(gamma, np.swapaxes(rows, 1, 2))
            variance += np.einsum("pai,pib,ab->p", rows, solved, model.innovations) / self.count
        return variance


def _complete(used: Bool[np.ndarray, "m k"], order: int) -> Bool[np.ndarray, " m"]:
    """Whether each row exists together with ``order`` rows before it."""
    whole: np.ndarray = np.all(used, axis=1)
    found = whole.copy()
    for lag in range(1, order + 1):
        found[lag:] &= whole[:-lag]
    found[:order] = False
    return found


def _lagged(values: Float[np.ndarray, "m k"], order: int) -> Float[np.ndarray, "r n"]:
    """Rows ``(v_t, v_(t-1), ..., v_(t-order))`` from the first one that is complete."""
    m = values.shape[0]
    return np.concatenate([values[order - i : max(m - i, order - i)] for i in range(order + 1)], 1)


def _solved(products: Float[np.ndarray, "n n"], k: int, count: int) -> Autoregression:
    """Least squares of the first ``k`` rows by the others; ``count``: number of summed rows."""
    products = 0.5 * (products + products.T)
    order = products.shape[0] // k - 1
    if not order:
        return Autoregression(np.zeros((0, k, k)), _definite(products / max(count, 1)))
    right, past = products[k:, :k], products[k:, k:]
    stacked = np.linalg.lstsq(past, right, rcond=1e-13)[0].T
    rest = (products[:k, :k] - stacked @ right) / max(count - order * k, 1)
    coefficients = np.stack(np.split(stacked, order, axis=1))
    return Autoregression(coefficients, _definite(0.5 * (rest + rest.T)))


def _toeplitz(autocovariance: Float[np.ndarray, "l k k"]) -> Float[np.ndarray, "n n"]:
    """Covariance of as many past values as there are lags; block (i, j) has the lag j - i."""
    lags = autocovariance.shape[0]
    blocks = [
        [autocovariance[j - i] if j >= i else autocovariance[i - j].T for j in range(lags)]
        for i in range(lags)
    ]
    return np.block(blocks) if lags else np.zeros((0, 0))


def _definite(matrix: np.ndarray) -> np.ndarray:
    """``matrix`` with no eigenvalue below a small part of the largest."""
    values, vectors = np.linalg.eigh(matrix)
    least = 1e-10 * max(float(np.abs(values).max()), 1e-300)
    return (vectors * np.maximum(values, least)) @ vectors.T


def _autocovariance(model: Autoregression, lags: int) -> Float[np.ndarray, "l k k"]:
    """Autocovariance at the lags 0 to ``lags``, ``E n_t n_(t-l)^T``."""
    size = 256
    roots = _slowest(model)
    # Long enough that the ends of the circle do not meet.
    while size < 2**20 and (size < 8 * lags or roots**size > 1e-8):
        size *= 2
    b = model.transfer(size)
    density = b @ model.innovations @ np.conj(np.swapaxes(b, 1, 2))
    return np.fft.irfft(density, size, axis=0)[: lags + 1]


def _slowest(model: Autoregression) -> float:
    order, k, _ = model.coefficients.shape
    if not order:
        return 0.0
    companion = np.zeros((order * k, order * k))
    companion[:k] = np.concatenate(model.coefficients, axis=1)
    companion[k:, :-k] = np.eye((order - 1) * k)
    return float(np.max(np.abs(np.linalg.eigvals(companion))))
