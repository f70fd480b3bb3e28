"""Panels of the certainty of a fit: profiles of the cost, and pairs of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from jfric.figures.fit_figures import MEASURED, RESIDUAL, SIMULATED, Panel
from jfric.figures.style import legend_below, some_of, some_rows, style_axes

if TYPE_CHECKING:
    from jfric.fits.fit_result import FitResult
    from jfric.fits.uncertainty.posterior import Posterior
    from jfric.fits.uncertainty.profile import Profile

#: Most parameters drawn in pairs, and most samples of a posterior in each panel.
MAX_CORNER, MAX_SCATTERED = 6, 5_000
#: Radii of the ellipses that hold 50 and 95 % of a normal distribution in two dimensions.
ELLIPSES = (1.1774, 2.4477)
#: Deviance at the ends of 95 % intervals.
LIMIT = 3.8415


def profiles(found: Mapping[str, Profile]) -> list[Panel]:
    """Deviance over each parameter, the others fitted, with the parabola of a linear model."""
    panels = []
    for name, profile in found.items():
        good = np.isfinite(profile.deviance)
        x, deviance = profile.values[good], profile.deviance[good]
        if x.size < 3:
            continue
        made = Figure(figsize=(5.2, 3.1), layout="constrained")
        axis = made.subplots()
        style_axes(axis)
        off = x - profile.estimate
        near = np.argsort(np.abs(off))[1:5]
        # The curvature at the estimate, from the nearest points.
        bend = float(np.sum(deviance[near] * off[near] ** 2) / (np.sum(off[near] ** 4) or 1.0))
        fine = np.linspace(x[0], x[-1], 200)
        axis.plot(
            fine, bend * (fine - profile.estimate) ** 2, color=MEASURED, lw=1.2, ls="--",
            label="parabola",
        )  # fmt: skip
        axis.plot(x, deviance, "o-", ms=3.5, lw=1.2, color=SIMULATED, label="profile")
        axis.axhline(LIMIT, color=RESIDUAL, lw=0.9, label="95 %, independent samples")
        axis.set(xlabel=name, ylabel="deviance", ylim=(-0.3, 3.0 * LIMIT))
        legend_below(made, axis.get_legend_handles_labels()[0])
        panels.append(Panel(made, f"profile of {name}"))
    return panels


def corner(result: FitResult, posterior: Posterior | None = None) -> Panel | None:
    """Densities of the parameters and their pairs: the normal ones of the covariance, and samples
    of the posterior, if any; None if no parameter has a finite error."""
    covariance = result.covariance()
    known = np.flatnonzero(np.isfinite(np.diagonal(covariance.matrix)))[:MAX_CORNER]
    if known.size == 0:
        return None
    count, names = known.size, [result.names[i] for i in known]
    matrix, centre = covariance.matrix[np.ix_(known, known)], result.vector[known]
    drawn = None if posterior is None else posterior.samples.reshape(-1, len(result.names))
    drawn = None if drawn is None else drawn[:, known]
    size = max(5.2, 1.6 * count + 0.8)
    made = Figure(figsize=(size, 0.85 * size if count > 1 else 3.1), layout="constrained")
    axes = made.subplots(count, count, squeeze=False)
    sd = np.sqrt(np.diagonal(matrix))
    reach = 4.0 * sd
    if drawn is not None:
        # Nearly all samples are visible, however far they lie.
        reach = np.maximum(reach, np.quantile(np.abs(drawn - centre), 0.999, axis=0))
        some = some_rows(len(drawn), MAX_SCATTERED)
    for i in range(count):
        for j in range(count):
            axis = axes[i, j]
            if j > i:
                axis.set_axis_off()
                continue
            style_axes(axis, grid=False)
            axis.tick_params(labelsize=7)
            axis.locator_params(nbins=3)
            axis.ticklabel_format(useOffset=False, style="plain")
            axis.set_xlim(centre[j] - reach[j], centre[j] + reach[j])
            if i == j:
                own = None if drawn is None else drawn[:, i]
                _density(axis, centre[i], sd[i], reach[i], own)
            else:
                own = None if drawn is None else drawn[some][:, [j, i]]
                _pair(axis, centre[[j, i]], matrix[np.ix_([j, i], [j, i])], own)
                axis.set_ylim(centre[i] - reach[i], centre[i] + reach[i])
            if i == count - 1:
                axis.set_xlabel(names[j], fontsize=8)
                for label in axis.get_xticklabels():
                    label.set(rotation=30, ha="right")
            else:
                axis.tick_params(labelbottom=False)
            if j == 0 and i > 0:
                axis.set_ylabel(names[i], fontsize=8)
            elif j > 0 and i != j:
                axis.tick_params(labelleft=False)
    what = "normal approximation"
    if drawn is not None:
        part = some_of(min(len(drawn), MAX_SCATTERED), len(drawn), "")
        what = f"samples ({part}) and {what}" if part else f"samples and {what}"
    return Panel(made, f"parameters against each other: {what}")


def _pair(axis, centre: np.ndarray, matrix: np.ndarray, drawn: np.ndarray | None) -> None:
    """Draw samples of two parameters, and the ellipses of their covariance."""
    if drawn is not None:
        x, y = drawn.T
        axis.plot(x, y, ".", ms=1.0, color=MEASURED, alpha=0.3, rasterized=True)
    circle = np.linspace(0.0, 2.0 * np.pi, 100)
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    for radius in ELLIPSES:
        x, y = radius * root @ np.stack([np.cos(circle), np.sin(circle)])
        axis.plot(centre[0] + x, centre[1] + y, color=SIMULATED, lw=1.0)
    axis.plot(*centre, "+", color=RESIDUAL, ms=6)


def _density(axis, centre: float, sd: float, reach: float, drawn: np.ndarray | None) -> None:
    x = np.linspace(centre - reach, centre + reach, 200)
    normal = np.exp(-0.5 * ((x - centre) / sd) ** 2) / (sd * np.sqrt(2.0 * np.pi))
    if drawn is not None:
        edges = np.linspace(x[0], x[-1], 33)
        axis.hist(drawn, edges.tolist(), density=True, color=MEASURED, alpha=0.6)
    axis.plot(x, normal, color=SIMULATED, lw=1.2)
    axis.axvline(centre, color=RESIDUAL, lw=0.8)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
