"""Figures of a bias: distance over the width of smoothing or the stiffness of bristles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jfric.figures.style import LINES, style_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jfric.solvers.bias_of_bristles import BristleBias
    from jfric.solvers.bias_of_smoothing import SmoothingBias


def bias_figure(bias: SmoothingBias, title: str = "") -> Figure:
    """Largest distance of each degree of freedom and creep of each contact over the smoothing
    width, with the slope of first order, and the steps of the integrator."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    drawn = [(f"distance {axis}", bias.distance[:, i], "o-") for i, axis in enumerate(bias.axes)]
    drawn += [(f"creep {name}", bias.creep[:, i], "s--") for i, name in enumerate(bias.contacts)]
    for i, (label, values, style) in enumerate(drawn):
        known = np.where(values > 0, values, np.nan)
        left.loglog(bias.widths, known, style, color=LINES[i % len(LINES)], ms=4, label=label)
    widths = np.array([bias.widths.min(), bias.widths.max()])
    top = np.nanmax(np.concatenate([values for _, values, _ in drawn]))
    left.loglog(widths, 0.3 * top * widths / widths[1], ":", color="#555555", label="first order")
    left.set_xlabel("smoothing width [m/s or rad/s]")
    left.set_ylabel("largest distance, creep in stick [m or rad]")
    left.legend(frameon=False, fontsize=8)
    right.loglog(bias.widths, bias.steps, "o-", color=LINES[0], ms=4, label="smoothed")
    right.axhline(bias.exact_steps, color=LINES[1], ls="--", label="event-driven (passes)")
    right.set_xlabel("smoothing width [m/s or rad/s]")
    right.set_ylabel("steps")
    right.legend(frameon=False, fontsize=8)
    return _titled(figure, title)


def bristle_figure(bias: BristleBias, title: str = "") -> Figure:
    """Largest distance of each degree of freedom from the set-valued motion over the stiffness of
    bristles, with the slope of first order in its inverse, and the steps that it takes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, axis in enumerate(bias.axes):
        values = np.where(bias.distance[:, i] > 0, bias.distance[:, i], np.nan)
        left.loglog(bias.sigma0, values, "o-", color=LINES[i % len(LINES)], ms=4, label=axis)
    ends = np.array([bias.sigma0.min(), bias.sigma0.max()])
    top = np.nanmax(bias.distance)
    left.loglog(ends, 0.3 * top * ends[0] / ends, ":", color="#555555", label="first order")
    left.set_ylabel("largest distance [m or rad]")
    right.loglog(bias.sigma0, bias.steps, "o-", color=LINES[0], ms=4, label="bristles (steps)")
    right.axhline(bias.exact_steps, color=LINES[1], ls="--", label="set-valued law (passes)")
    right.set_ylabel("steps")
    for axis in (left, right):
        axis.set_xlabel("stiffness of the bristles [N/m or N m/rad]")
        axis.legend(frameon=False, fontsize=8)
    return _titled(figure, title)


def _titled(figure: Figure, title: str) -> Figure:
    for axis in figure.axes:
        style_axes(axis)
    if title:
        figure.suptitle(title, fontsize=12, fontweight="bold", x=0.012, ha="left")
    return figure
