"""Figure of the eigenvalues of steady sliding over a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jfric.figures.style import colour, label_axes, new_figure, style_axes, titled
from jfric.periodic.steady_sliding import NEUTRAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jfric.periodic.flutter import FlutterPath


def plot_flutter(path: FlutterPath, *, title: str = "") -> Figure:
    """Figure of frequencies (above) and growth rates (below) over a parameter, under a ``title``.

    ``path``: a result of :func:`jfric.flutter`. Each colour follows one mode; dots are where small
    motions grow, dashed lines where stability changes. After the example of :func:`jfric.flutter`::

        >>> figure = jfric.plot_flutter(found)
        >>> [axis.get_ylabel() for axis in figure.axes]
        ['frequency [rad/s]', 'growth rate [1/s]']
    """
    figure = new_figure(7.0, 6.0)
    above, below = figure.subplots(2, 1, sharex=True)
    rates, frequencies = np.real(path.eigenvalues), np.imag(path.eigenvalues)
    grows = rates > NEUTRAL * np.nanmax(np.abs(path.eigenvalues))
    for k in range(path.eigenvalues.shape[1]):
        for axis, values in ((above, frequencies), (below, rates)):
            axis.plot(path.parameter, values[:, k], color=colour(k), lw=1.6)
            dots = np.where(grows[:, k], values[:, k], np.nan)
            axis.plot(path.parameter, dots, "o", color=colour(k), ms=2.5)
    for axis in (above, below):
        for onset in path.onsets:
            axis.axvline(onset.parameter, color="#555555", lw=0.9, ls="--")
        style_axes(axis)
    for onset in path.onsets:
        above.annotate(
            f" {onset.parameter:.6g}",
            (onset.parameter, 1.0),
            xycoords=("data", "axes fraction"),
            fontsize=8,
            va="top",
        )
    below.axhline(0.0, color="#000000", lw=0.6)
    label_axes(above, y="frequency [rad/s]")
    label_axes(below, x=path.name, y="growth rate [1/s]")
    return titled(figure, title)
