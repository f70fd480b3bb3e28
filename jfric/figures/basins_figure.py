"""Figures of basins of attraction: a colour for each attractor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.errors import ProblemError
from jfric.figures import style
from jfric.periodic.basins import FAILED, UNRECOGNISED, Basins
from jfric.sweeps.design import NUMBER_AXIS

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

#: Colours of failed runs and of motions without an attractor; lighter colours for basins, on which
#: the dots of their attractors are visible.
FAILED_COLOUR, NONE_COLOUR = "#c00000", "#222222"
LIGHT = 0.45
#: Number of attractors with an entry of their own in the legend.
MOST_LISTED = 12
MAX_SCATTERED = 20_000


def plot_basins(basins: Basins, *, title: str = "") -> Figure:
    """Figure of ``basins`` over two parameters: a colour for each attractor, shares in the legend.

    Dots are the attractors, where the axes are positions or velocities of the start. Black: not
    recognised; red: failed, or a start inside a contact. Samples: one dot each. ``title``: above
    the figure. The figure belongs to no window; save it with ``figure.savefig(path)``. Raises
    :class:`jfric.ProblemError` unless the basins have two parameters.
    After the example of :func:`jfric.basins`, over two parameters::

        >>> starts = {"initial.x.q": [-1.5, -0.5, 0.5, 1.5], "initial.x.v": [0.0, 0.1]}
        >>> found = jfric.basins(magnets, starts, section=1.0, progress=False)
        >>> figure = jfric.plot_basins(found)
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('initial.x.q [m]', 'initial.x.v [m/s]')
    """
    from matplotlib.colors import ListedColormap

    names = [str(n) for n in basins.table.attrs["parameters"]]
    if len(names) != 2:
        raise ProblemError(
            f"basins: found {len(names)} parameters ({', '.join(names)}), a figure has two"
        )
    figure = style.new_figure(9.0, 5.6)
    axis = figure.subplots()
    count, drawn = len(basins.attractors), ""
    colours = [FAILED_COLOUR, NONE_COLOUR, *(_light(style.colour(i)) for i in range(count))]
    x, y = (np.asarray(basins.table[n]) for n in names)
    if basins.dims == (NUMBER_AXIS,):
        part = style.some_rows(basins.labels.size, MAX_SCATTERED)
        drawn = style.some_of(part.size, basins.labels.size, "starts ")
        chosen = [colours[label + 1] for label in basins.labels[part]]
        axis.scatter(x[part], y[part], c=chosen, s=3, lw=0, rasterized=True)
    else:
        axis.pcolormesh(
            x,
            y,
            basins.labels.T + 1,
            cmap=ListedColormap(colours),
            vmin=-0.5,
            vmax=len(colours) - 0.5,
            shading="nearest",
            rasterized=True,
        )
    _mark(axis, basins, names, (x.min(), x.max(), y.min(), y.max()))
    handles = _shares(basins, colours[2:])
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=9)
    units = (str(basins.table[name].attrs.get("units", "")) for name in names)
    style.label_axes(axis, *map(style.with_unit, names, units))
    style.style_axes(axis, grid=False)
    return style.titled(figure, ", ".join(text for text in (title, drawn) if text), 11.0)


def _shares(basins: Basins, colours: list) -> list[Patch]:
    """Entries of the legend: attractors in their ``colours``, other labels, and all shares."""
    from matplotlib.patches import Patch

    handles = [
        Patch(color=colours[i], label=_named(i + 1, a.period, a.share))
        for i, a in enumerate(basins.attractors[:MOST_LISTED])
    ]
    others = basins.attractors[MOST_LISTED:]
    if others:
        rest = sum(a.share for a in others)
        handles.append(Patch(color="#ffffff", label=f"{len(others)} more: {rest:.1%}"))
    for label, own, words in (
        (UNRECOGNISED, NONE_COLOUR, "not recognised"),
        (FAILED, FAILED_COLOUR, "failed, or no start"),
    ):
        if np.any(basins.labels == label):
            handles.append(Patch(color=own, label=f"{words}: {basins.share(label)[0]:.1%}"))
    return handles


def _light(dark: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(1.0 - (1.0 - LIGHT) * (1.0 - c) for c in to_rgb(dark))


def _named(number: int, period: int, share: float) -> str:
    return f"{number}: period {period}, {share:.1%}"


def _mark(axis: Any, basins: Basins, names: list[str], box: tuple[float, ...]) -> None:
    """Draw the points of the attractors if the axes are a position and its velocity."""
    states = {f"initial.{dof}.{x}": (x, i) for i, dof in enumerate(basins.axes) for x in "qv"}
    if any(name not in states for name in names):
        return
    (along, i), (across, j) = (states[name] for name in names)
    for number, attractor in enumerate(basins.attractors[:MOST_LISTED]):
        point = float(getattr(attractor, along)[i]), float(getattr(attractor, across)[j])
        if box[0] <= point[0] <= box[1] and box[2] <= point[1] <= box[3]:
            axis.plot(*point, "o", color=style.colour(number), mec="#ffffff", ms=8, zorder=3)
