"""Figures of a bias: distance over the width of smoothing or the stiffness of bristles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jfric.figures.style import LINES, colour, new_figure, style_axes, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from jfric.solvers.bias import BristleBias, SmoothingBias


def bias_figure(bias: SmoothingBias, title: str = "") -> Figure:
    """Largest distance of each degree of freedom and creep of each contact over the smoothing
    width, with the slope of first order and the steps of the integrator."""
    curves = [(f"distance {axis}", bias.distance[:, i], "o-") for i, axis in enumerate(bias.axes)]
    curves += [(f"creep {name}", bias.creep[:, i], "s--") for i, name in enumerate(bias.contacts)]
    figure, (left, right) = _panels("smoothing width [m/s or rad/s]")
    left.set_ylabel("largest distance, creep in stick [m or rad]")
    _distances(left, bias.widths, curves, lambda width: width / bias.widths.max())
    _steps(right, bias.widths, bias.steps, "smoothed", bias.exact_steps, "event-driven (passes)")
    return titled(figure, title)


def bristle_figure(bias: BristleBias, title: str = "") -> Figure:
    """Largest distance of each degree of freedom from the set-valued motion over the stiffness of
    bristles, with the slope of first order in its inverse and the number of steps."""
    curves = [(axis, bias.distance[:, i], "o-") for i, axis in enumerate(bias.axes)]
    figure, (left, right) = _panels("stiffness of the bristles [N/m or N m/rad]")
    left.set_ylabel("largest distance [m or rad]")
    _distances(left, bias.sigma0, curves, lambda sigma0: bias.sigma0.min() / sigma0)
    passes = bias.exact_steps, "set-valued law (passes)"
    _steps(right, bias.sigma0, bias.steps, "bristles (steps)", *passes)
    return titled(figure, title)


def _panels(x: str) -> tuple[Figure, Sequence[Axes]]:
    figure = new_figure(10.0, 4.2)
    axes = figure.subplots(1, 2)
    for axis in axes:
        axis.set_xlabel(x)
        style_axes(axis)
    return figure, axes


def _distances(
    axis: Axes,
    x: np.ndarray,
    curves: Sequence[tuple[str, np.ndarray, str]],
    first_order: Callable[[np.ndarray], np.ndarray],
) -> None:
    """Draw ``curves`` over ``x`` (label, values and style) and the slope of first order."""
    for i, (label, values, style) in enumerate(curves):
        known = np.where(values > 0, values, np.nan)
        axis.loglog(x, known, style, color=colour(i), ms=4, label=label)
    ends = np.array([x.min(), x.max()])
    top = np.nanmax(np.concatenate([values for _, values, _ in curves]))
    axis.loglog(ends, 0.3 * top * first_order(ends), ":", color="#555555", label="first order")
    axis.legend(frameon=False, fontsize=8)


def _steps(
    axis: Axes, x: np.ndarray, steps: np.ndarray, label: str, exact: int, other: str
) -> None:
    axis.loglog(x, steps, "o-", color=LINES[0], ms=4, label=label)
    axis.axhline(exact, color=LINES[1], ls="--", label=other)
    axis.set_ylabel("steps")
    axis.legend(frameon=False, fontsize=8)
