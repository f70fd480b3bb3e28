"""Figures of frequency responses: amplitude and phase, solid if stable, dashed if not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jfric.errors import ProblemError
from jfric.figures import style
from jfric.figures.orbit_figure import MARKERS, stability_handles, stretches
from jfric.periodic.cycle_quantities import CycleQuantity, parse_cycle_quantities
from jfric.periodic.response_result import FrequencyResponse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Panels of a figure.
MAX_PANELS = 12
#: How a figure is asked for other curves.
HOW = "jfric.plot_response(..., curves=[...])"
#: Pieces of a line between neighbouring points.
FINER = 8


def plot_response(
    response: FrequencyResponse,
    show: str | Sequence[str] | None = None,
    *,
    curves: Sequence[int] | None = None,
    phase: bool = True,
    title: str = "",
) -> Figure:
    """Figure of a frequency ``response`` under a ``title``.

    ``show``: quantities (``"x, rms.v.x"``), one column of panels each; by default the amplitude of
    the first degree of freedom. Below an amplitude or a harmonic stands its ``phase`` relative to
    the load. Solid lines: stable motions; dashed: unstable ones; special points are marked (see
    :class:`jfric.OrbitPoint`). Families have one colour for each curve, and at most
    eight curves: spread over the family, or those with the numbers ``curves``, from 0. Raises
    :class:`jfric.ProblemError` for an unknown quantity or number. After the example of
    :func:`jfric.frequency_response`::

        >>> [axes.get_ylabel() for axes in jfric.plot_response(response, "x").axes]
        ['amplitude of x [m]', 'phase of x [deg]']
    """
    chosen = parse_cycle_quantities(response.problem, [response.axes[0]] if show is None else show)
    if len(chosen) > MAX_PANELS:
        raise ProblemError(f"show: found {len(chosen)} quantities, at most {MAX_PANELS} fit")
    drawn = _drawn(len(response.curves), curves)
    below = [_phase_of(response, q) if phase else None for q in chosen]
    lines = 2 if any(below) else 1
    figure = style.new_figure(max(5.6 * len(chosen), 6.4), 4.4 if lines == 1 else 6.2)
    ratios = (2.0, 1.0)[:lines]
    axes = figure.subplots(lines, len(chosen), squeeze=False, sharex=True, height_ratios=ratios)
    for column, (upper, lower) in enumerate(zip(chosen, below, strict=True)):
        _panel(axes[0, column], response, upper, drawn)
        bottom: Axes = axes[0, column]
        if lines == 2:
            if lower is None:
                axes[1, column].set_visible(False)
                axes[0, column].tick_params(labelbottom=True)
            else:
                bottom = axes[1, column]
                _panel(bottom, response, lower, drawn)
        style.label_axes(bottom, "frequency of the load [rad/s]")
        if curves is None:
            style.only_some(axes[0, column], len(response.curves), HOW)
    _legend(figure, response, drawn)
    return style.titled(figure, title)


def _drawn(count: int, chosen: Sequence[int] | None) -> list[int]:
    """Numbers of the curves that are drawn."""
    if chosen is None:
        return np.unique(
            np.linspace(0, count - 1, min(count, style.MOST_CURVES)).astype(int)
        ).tolist()
    if len(chosen) > style.MOST_CURVES or not all(0 <= i < count for i in chosen):
        raise ProblemError(
            f"curves: found {list(chosen)}, give at most {style.MOST_CURVES} numbers below {count}"
        )
    return list(chosen)


def _phase_of(response: FrequencyResponse, q: CycleQuantity) -> CycleQuantity | None:
    if q.form not in ("amplitude", "harmonic"):
        return None
    order = "" if q.order is None else f"({q.order})"
    return parse_cycle_quantities(response.problem, [f"phase.{q.signal}{order}"])[0]


def _panel(axis: Axes, response: FrequencyResponse, q: CycleQuantity, drawn: Sequence[int]) -> None:
    for number, i in enumerate(drawn):
        curve = response.curves[i]
        if not len(curve):
            continue
        value = response.of_curve(i, [q])[:, 0]
        if q.form == "phase":
            known = np.unwrap(value)
            value = np.degrees(known - (2.0 * np.pi if known[0] > np.radians(1.0) else 0.0))
        for part in stretches(curve.stable):
            dash = "-" if curve.stable[part.stop - 1] else "--"
            x, y = rounded(curve.parameter[part], value[part])
            axis.plot(x, y, dash, color=style.colour(number), lw=1.5, zorder=3)
        for point in curve.special:
            if point.kind in MARKERS:
                marker, face, _ = MARKERS[point.kind]
                x, y = _place(curve.parameter, value, point.row, point.parameter)
                axis.plot(x, y, marker, color=face, ms=4.0, zorder=4)
    style.label_axes(axis, y=_label(q))
    if q.form == "phase":
        from matplotlib.ticker import MultipleLocator

        axis.yaxis.set_major_locator(MultipleLocator(45.0))
    elif q.form in ("amplitude", "harmonic"):
        axis.set_ylim(bottom=0.0)
    style.style_axes(axis)


def rounded(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A smooth line through points that lie far apart where the curve is nearly straight; the line
    is monotone between neighbours and so adds no peak."""
    from scipy.interpolate import PchipInterpolator

    steps = np.hypot(np.diff(x) / (np.ptp(x) or 1.0), np.diff(y) / (np.ptp(y) or 1.0))
    apart = np.append(True, steps > 0.0)
    x, y, along = x[apart], y[apart], np.append(0.0, np.cumsum(steps))[apart]
    if len(x) < 3:
        return x, y
    parts = np.arange(FINER * (len(x) - 1) + 1) / FINER
    places = np.interp(parts, np.arange(len(x)), along)
    both = PchipInterpolator(along, np.stack([x, y], axis=1))(places)
    return both[:, 0], both[:, 1]


def _place(parameter: np.ndarray, value: np.ndarray, row: int, there: float):
    """The place of a special point between its neighbouring rows, by frequency if possible."""
    last = min(row + 1, len(parameter) - 1)
    low, high = parameter[row], parameter[last]
    part = 0.5 if high == low else (there - low) / (high - low)
    part = float(np.clip(part, 0.0, 1.0))
    return there, value[row] + part * (value[last] - value[row])


def _label(q: CycleQuantity) -> str:
    if q.form == "phase":
        return f"phase of {q.signal} [deg]"
    name = f"amplitude of {q.signal}" if q.form == "amplitude" else q.text
    return f"{name} [{q.unit}]" if q.unit else name


def _legend(figure: Figure, response: FrequencyResponse, drawn: Sequence[int]) -> None:
    from matplotlib.lines import Line2D

    stable = np.concatenate([c.stable for c in response.curves])
    many = len(response.curves) > 1
    plain = "#444444" if many else style.LINES[0]
    kinds = {point.kind for _, point in response.special}
    style.legend_below(figure, stability_handles(stable, kinds, plain, 1.5), 5)
    if not many:
        return
    curves = [
        Line2D([], [], color=style.colour(number), lw=1.5, label=response.label(i))
        for number, i in enumerate(drawn)
    ]
    figure.axes[0].legend(handles=curves, loc="best", frameon=False, fontsize=8)
