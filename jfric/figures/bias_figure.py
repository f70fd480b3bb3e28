"""Figure of a smoothing bias: distance and creep over the width, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jfric.figures.style import LINES, style_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    for axis in (left, right):
        style_axes(axis)
    if title:
        figure.suptitle(title, fontsize=12, fontweight="bold", x=0.012, ha="left")
    return figure
