"""Figure of a friction curve found from measurements, with its band."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from jfric.figures.style import LINES, colour, new_figure, style_axes, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from jfric.fits.curve_fit import CurveFit

#: Number of speeds drawn in each direction.
POINTS = 400


def plot_friction_curve(
    found: CurveFit,
    *,
    level: float = 0.95,
    beside: Mapping[str, Callable[[np.ndarray, str], np.ndarray]] | None = None,
    title: str = "",
) -> Figure:
    """Figure of a friction curve that :func:`jfric.fit_curve` ``found``, under a ``title``.

    Coefficients over the sliding velocity, negative ones for the other direction, with the band
    that holds the true curve with probability ``level`` and the values at the knots.

    Speeds are spaced as knots are: evenly near zero, by their logarithm beyond the first knot.
    ``beside``: further curves by name, functions of speeds (m,) and ``"positive"`` or
    ``"negative"``. After the example of :func:`jfric.fit_curve`::

        >>> figure = jfric.plot_friction_curve(found)
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('sliding velocity', 'coefficient')
    """
    speeds = np.array([float(v) for v in found.law.speeds])
    at = speeds[1] * np.expm1(np.linspace(0.0, np.log1p(speeds[-1] / speeds[1]), POINTS))
    figure = new_figure(7.2, 4.2)
    axis = figure.subplots()
    for sign in (1.0, -1.0):
        _draw_side(axis, found, at, sign, level, beside or {})
    axis.set_xscale("symlog", linthresh=float(speeds[1]))
    axis.axvline(0.0, color="#000000", lw=0.6)
    axis.legend(frameon=False, fontsize=8)
    style_axes(axis, "sliding velocity", "coefficient")
    return titled(figure, title)


def _draw_side(
    axis: Axes, found: CurveFit, at: np.ndarray, sign: float, level: float, beside: Mapping
) -> None:
    """Draw the curve in one direction, with its band and the further curves ``beside``."""
    first, direction = sign > 0, "positive" if sign > 0 else "negative"
    band, knots = found.band(at, direction, level), found.knots(direction)
    axis.fill_between(
        sign * at,
        band.low,
        band.high,
        color=LINES[0],
        alpha=0.2,
        lw=0,
        label=f"{100 * level:g} % band" if first else None,
    )
    axis.plot(sign * at, band.mu, color=LINES[0], lw=1.6, label="curve" if first else None)
    axis.plot(sign * knots.v, knots.mu, "o", color=LINES[0], ms=4)
    for i, (name, curve) in enumerate(beside.items(), 1):
        axis.plot(
            sign * at,
            curve(at, direction),
            color=colour(i),
            lw=1.1,
            ls="--",
            label=name if first else None,
        )
