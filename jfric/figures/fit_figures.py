"""Figures of a fit: simulated beside measured, residuals, starts, compared laws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from jfric.figures.style import style_axes
from jfric.fits.series import Series
from jfric.fits.uncertainty.autocorrelation import autocorrelation
from jfric.fits.uncertainty.residual_series import even_grid

if TYPE_CHECKING:
    from jfric.fits.fit_result import FitResult

MEASURED, SIMULATED, RESIDUAL, OTHER = "#9a9a9a", "#1f4e79", "#c0504d", "#3a7d44"
#: Records drawn one below the other; the others are in the table only.
MAX_RECORDS = 6
#: Parameters whose correlation is drawn.
MAX_PARAMETERS = 16


def compared(found: Sequence[Series]) -> Figure:
    """Simulated, with the band of new samples, against measured, and residuals, by record."""
    shown = found[:MAX_RECORDS]
    made, axes = _grid(11.0, 2.6 * len(shown), len(shown), 2)
    for row, s in zip(axes, shown, strict=True):
        row[0].plot(s.t, s.measured, color=MEASURED, lw=1.6, label="measured")
        row[0].plot(s.t, s.predicted, color=SIMULATED, lw=0.8, label="simulated")
        low, high = (s.predicted + sign * 1.96 * s.spread for sign in (-1.0, 1.0))
        row[0].fill_between(s.t, low, high, color=SIMULATED, alpha=0.25, lw=0, label="95 %")
        for sign in (-1.0, 1.0):
            row[1].plot(s.t, sign * 1.96 * s.spread, color=SIMULATED, lw=0.7, ls="--")
        row[0].set_ylabel(s.signal)
        row[0].set_title(s.record, fontsize=9, loc="left")
        row[1].plot(s.t, s.residual, color=RESIDUAL, lw=0.7)
        row[1].set_ylabel("residual")
        for axis in row:
            axis.set_xlabel("t [s]")
    axes[0, 0].legend(frameon=False, fontsize=8)
    return made


def residuals(found: Sequence[Series]) -> Figure:
    """Residuals against velocity and position, their distribution and autocorrelation."""
    signal = found[0].signal
    chosen = [s for s in found if s.signal == signal]
    made, axes = _grid(11.0, 6.0, 2, 2)
    for s in chosen:
        if s.velocity is not None and s.position is not None:
            axes[0, 0].plot(s.velocity, s.residual, ".", ms=1.2, color=RESIDUAL, alpha=0.5)
            axes[0, 1].plot(s.position, s.residual, ".", ms=1.2, color=RESIDUAL, alpha=0.5)
    axes[0, 0].set(xlabel="velocity", ylabel=f"residual {signal}")
    axes[0, 1].set(xlabel="position", ylabel=f"residual {signal}")
    longest = max(chosen, key=lambda s: s.t.size)
    # Missing samples keep their place: a lag is the same time everywhere.
    place, step = even_grid(longest.t)
    values = np.full(place[-1] + 1, np.nan)
    values[place] = longest.residual
    lags = min(400, values.size // 3)
    axes[1, 0].plot(step * np.arange(lags + 1), autocorrelation(values, lags), color=SIMULATED)
    band = 1.96 / np.sqrt(longest.t.size)
    axes[1, 0].axhspan(-band, band, color=MEASURED, alpha=0.4, lw=0, label="white noise, 95 %")
    axes[1, 0].legend(frameon=False, fontsize=8)
    axes[1, 0].set(xlabel="lag [s]", ylabel="autocorrelation")
    axes[1, 1].hist(np.concatenate([s.residual for s in chosen]), 60, color=SIMULATED)
    axes[1, 1].set(xlabel=f"residual {signal}", ylabel="samples")
    return made


def correlations(result: FitResult) -> Figure | None:
    """Correlation of the estimates; None for fewer than two with a finite error."""
    found = result.covariance()
    known = np.flatnonzero(np.isfinite(np.diagonal(found.matrix)))[:MAX_PARAMETERS]
    if known.size < 2:
        return None
    table = found.correlation[np.ix_(known, known)]
    names = [found.names[i] for i in known]
    size = 2.2 + 0.5 * known.size
    made, axes = _grid(size + 1.5, size, 1, 1)
    axis = axes[0, 0]
    axis.grid(False)
    image = axis.imshow(table, vmin=-1.0, vmax=1.0, cmap="RdBu_r")
    axis.set_xticks(range(known.size), names, fontsize=8, rotation=40, ha="right")
    axis.set_yticks(range(known.size), names, fontsize=8)
    for i, row in enumerate(table):
        for j, value in enumerate(row):
            dark = abs(value) > 0.6
            axis.text(
                j, i, f"{value:.2f}", ha="center", va="center", fontsize=7,
                color="white" if dark else "#333333",
            )  # fmt: skip
    made.colorbar(image, ax=axis, shrink=0.8)
    return made


def starts(result: FitResult) -> Figure:
    """Costs of all starts, best first."""
    made, axes = _grid(5.4, 2.8, 1, 1)
    costs = [row["cost"] for row in result.waterfall]
    finite = [c for c in costs if np.isfinite(c)]
    axes[0, 0].plot(np.arange(1, len(finite) + 1), finite, "o-", color=SIMULATED)
    if finite and min(finite) > 0:
        axes[0, 0].set_yscale("log")
    failed = len(costs) - len(finite)
    axes[0, 0].set(xlabel=f"start ({failed} failed)" if failed else "start", ylabel="cost")
    return made


def _grid(width: float, height: float, rows: int, columns: int):
    made = Figure(figsize=(width, height), layout="constrained")
    axes = made.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        style_axes(axis)
    return made, axes
