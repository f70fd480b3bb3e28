"""Panels of a fit: simulated and measured signals, residuals, starts, compared laws.

Each panel is a separate picture, so that a page can place panels side by side or one below another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from jfric.figures.style import LINES, legend_below, style_axes
from jfric.fits.series import Series
from jfric.fits.uncertainty.autocorrelation import autocorrelation
from jfric.fits.uncertainty.residual_series import even_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jfric.fits.fit_result import FitResult

MEASURED, SIMULATED, RESIDUAL = "#9a9a9a", "#1f4e79", "#c0504d"
#: Most records drawn one below another; further ones are in the table only.
MAX_RECORDS = 6
#: Most parameters whose correlation is drawn.
MAX_PARAMETERS = 16
#: Most signals whose residuals are drawn, and number of bins of their means.
MAX_SIGNALS, BINS = 3, 24


class Panel(NamedTuple):
    """A picture, and a description of its content in words."""

    figure: Figure
    shows: str


def compared(found: Sequence[Series]) -> list[Panel]:
    """Simulated signals, with the band of new samples, over measured ones; residuals in time."""
    panels = []
    for s in found[:MAX_RECORDS]:
        made, axis = _panel()
        band = 1.96 * s.spread
        axis.plot(s.t, s.measured, color=MEASURED, lw=1.8, label="measured")
        axis.fill_between(
            s.t, s.predicted - band, s.predicted + band, color=SIMULATED, alpha=0.25, lw=0,
            label="95 % of new samples",
        )  # fmt: skip
        axis.plot(s.t, s.predicted, color=SIMULATED, lw=0.9, label="simulated")
        shows = f"{s.signal} of record {s.record}, simulated and measured"
        panels.append(_labelled(made, "t [s]", s.signal, shows))
        made, axis = _panel()
        axis.plot(s.t, s.residual, color=RESIDUAL, lw=0.7, label="simulated minus measured")
        for sign in (-1.0, 1.0):
            label = "95 % of new samples" if sign > 0 else None
            axis.plot(s.t, sign * band, color=SIMULATED, lw=0.9, ls="--", label=label)
        shows = f"residual of {s.signal} of record {s.record} in time"
        panels.append(_labelled(made, "t [s]", f"residual of {s.signal}", shows))
    return panels


def residuals(found: Sequence[Series]) -> list[Panel]:
    """Residuals of each signal by velocity, position and lag, and their distribution."""
    panels = []
    for signal in list(dict.fromkeys(s.signal for s in found))[:MAX_SIGNALS]:
        chosen = [s for s in found if s.signal == signal]
        for what in ("velocity", "position"):
            pairs = [(getattr(s, what), s.residual) for s in chosen if s.velocity is not None]
            if pairs:
                x, r = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
                panels.append(_scattered(what, signal, x, r))
        panels += [_by_lag(signal, chosen), _distribution(signal, chosen)]
    return panels


def _scattered(what: str, signal: str, x: np.ndarray, residual: np.ndarray) -> Panel:
    """Residuals over ``x`` (m,), and their means in bins with equal numbers of samples."""
    made, axis = _panel()
    axis.plot(x, residual, ".", ms=1.6, color=RESIDUAL, alpha=0.5)
    order = np.array_split(np.argsort(x, kind="stable"), min(BINS, max(x.size // 8, 1)))
    middle, mean = (np.array([np.mean(values[rows]) for rows in order]) for values in (x, residual))
    axis.plot(middle, mean, "o-", ms=2.5, lw=1.2, color=SIMULATED, label="mean of neighbours")
    axis.axhline(0.0, color="#333333", lw=0.6)
    return _labelled(made, what, f"residual of {signal}", f"residual of {signal} by {what}")


def _by_lag(signal: str, chosen: Sequence[Series]) -> Panel:
    longest = max(chosen, key=lambda s: s.t.size)
    # Missing samples keep their place, so that a lag is the same time everywhere.
    place, step = even_grid(longest.t)
    values = np.full(place[-1] + 1, np.nan)
    values[place] = longest.residual
    lags = min(400, values.size // 3)
    made, axis = _panel()
    axis.plot(step * np.arange(lags + 1), autocorrelation(values, lags), color=SIMULATED, lw=1.2)
    band = 1.96 / np.sqrt(longest.t.size)
    axis.axhspan(-band, band, color=MEASURED, alpha=0.4, lw=0, label="95 % of white noise")
    shows = f"autocorrelation of the residual of {signal}"
    return _labelled(made, "lag [s]", f"autocorrelation, {signal}", shows)


def _distribution(signal: str, chosen: Sequence[Series]) -> Panel:
    """Residuals over the standard deviation of new samples, with the normal distribution."""
    values = np.concatenate([s.residual / np.where(s.spread > 0, s.spread, 1.0) for s in chosen])
    made, axis = _panel()
    most = min(float(np.max(np.abs(values), initial=0.0)), 8.0) or 1.0
    edges = np.linspace(-most, most, 41)
    axis.hist(values, edges.tolist(), color=SIMULATED, alpha=0.7, density=True, label="residuals")
    x = np.linspace(-most, most, 200)
    normal = np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)
    axis.plot(x, normal, color=RESIDUAL, lw=1.2, label="normal")
    x_label = f"residual of {signal} / its standard deviation"
    return _labelled(made, x_label, "density", f"distribution of the residual of {signal}")


def correlations(result: FitResult) -> Panel | None:
    """Correlation of the estimates; None for fewer than two with a finite error."""
    found = result.covariance()
    known = np.flatnonzero(np.isfinite(np.diagonal(found.matrix)))[:MAX_PARAMETERS]
    if known.size < 2:
        return None
    table = found.correlation[np.ix_(known, known)]
    names = [found.names[i] for i in known]
    size = 2.2 + 0.5 * known.size
    made, axis = _panel(size + 1.5, size)
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
    return Panel(made, "correlation of the estimates")


def starts(result: FitResult) -> Panel:
    """Costs of all descents, best first: a broad step at the bottom means a frequent minimum."""
    made, axis = _panel()
    rows = [row for row in result.waterfall if np.isfinite(row["cost"])]
    cost = np.array([row["cost"] for row in rows])
    place = np.arange(1, cost.size + 1)
    axis.plot(place, cost, color=MEASURED, lw=1.0)
    outcomes = list(dict.fromkeys(row["outcome"] for row in rows))
    for colour, outcome in zip(LINES, outcomes, strict=False):
        own = np.array([row["outcome"] == outcome for row in rows])
        name = outcome.name.lower().replace("_", " ")
        axis.plot(place[own], cost[own], "o", ms=4.5, color=colour, label=name)
    if cost.size and cost.min() > 0 and cost.max() > 2.0 * cost.min():
        axis.set_yscale("log")
    elif cost.size and cost.max() > 0:
        # Nearly equal costs appear as a flat step, not as the rounding on a logarithmic axis.
        axis.set_ylim(0.0, 1.25 * cost.max())
    if cost.size < 12:
        axis.set_xticks(place)
    failed = len(result.waterfall) - len(rows)
    first = any(e.sigma is None for e in result.experiments)
    axis.set(
        xlabel=f"start ({failed} failed)" if failed else "start",
        ylabel="cost, before the noise was estimated" if first else "cost",
    )
    if outcomes:
        legend_below(made, axis.get_legend_handles_labels()[0])
    return Panel(made, "costs of the starts")


def _labelled(made: Figure, x: str, y: str, shows: str) -> Panel:
    """The panel of a picture with one pair of axes, with labels and legend."""
    (axis,) = made.axes
    axis.set(xlabel=x, ylabel=y)
    legend_below(made, axis.get_legend_handles_labels()[0])
    return Panel(made, shows)


def _panel(width: float = 5.2, height: float = 3.1) -> tuple[Figure, Axes]:
    made = Figure(figsize=(width, height), layout="constrained")
    axis = made.subplots()
    style_axes(axis)
    axis.xaxis.label.set_fontsize(9)
    axis.yaxis.label.set_fontsize(9)
    return made, axis
