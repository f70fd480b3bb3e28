"""Residuals of a fit as series in time, with their derivatives by the parameters."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from jfric.fits.estimate import HasResiduals
from jfric.fits.objective import Objective

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


def residual_series(fit: HasResiduals) -> list[ResidualSeries]:
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
