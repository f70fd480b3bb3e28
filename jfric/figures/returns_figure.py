"""Figure of a bifurcation diagram: returns to a section over a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jfric.errors import ProblemError
from jfric.figures.style import LINES, new_figure, style_axes, with_unit
from jfric.figures.sweep_figure import chosen_names
from jfric.sweeps.table import OUTCOME

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

#: Name of the axis of returns, and size of their dots.
RETURNS, DOT = "return", 1.5


def plot_returns(
    data: xarray.Dataset, observe: Sequence[str] | None = None, *, title: str = ""
) -> Figure:
    """Figure of a bifurcation diagram: each return a dot over the parameter, under a ``title``.

    ``data``: a table of :func:`jfric.bifurcation_diagram`; ``observe``: the quantities to draw, one
    panel each (default: all). Raises :class:`jfric.ProblemError` for a table without returns and
    for unknown names. After the example of :func:`jfric.bifurcation_diagram`::

        >>> figure = jfric.plot_returns(table)
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('load.F.omega', 'x [m]')
    """
    known = [str(n) for n in data.data_vars if n not in OUTCOME and RETURNS in data[n].dims]
    if not known:
        raise ProblemError(f"data: found no quantity with the axis {RETURNS!r}")
    names = chosen_names(known, observe)
    (path,) = (str(d) for d in data["status"].dims)
    figure = new_figure(9.0, max(1.0 + 3.4 * len(names), 4.0))
    panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    for axis, name in zip(panels, names, strict=True):
        values = data[name].transpose(path, RETURNS)
        x = np.repeat(np.asarray(data[path]), values.sizes[RETURNS])
        axis.plot(x, np.asarray(values).ravel(), ".", color=LINES[0], ms=DOT, rasterized=True)
        axis.set_ylabel(with_unit(name, values.attrs.get("units", "")))
        style_axes(axis)
    panels[-1].set_xlabel(path)
    if title:
        figure.suptitle(title)
    return figure
