"""Figures of a sweep: curves over one parameter, maps over two, scatter matrices of samples; and of
returns to a section over a parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.errors import ProblemError, require_one_of
from jfric.figures import style
from jfric.results.status import Status
from jfric.sweeps.design import NUMBER_AXIS
from jfric.sweeps.table import OUTCOME

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAILED = "#c00000"
COLOURS = "viridis"
#: Number of points above which a curve is drawn by the extreme values in bins.
MAX_POINTS = 20_000
BINS = 4_000
#: Number of points along an axis above which a map is drawn at every second, third ... of them.
MAX_PIXELS = 2_000
#: Most points of a scatter matrix; histograms contain all rows.
MAX_SCATTERED = 5_000
MAX_IN_MATRIX = 8
#: Name of the axis of returns, and size of their dots.
RETURNS, DOT = "return", 1.5


def plot_sweep(data: xarray.Dataset, observe: Sequence[str] | None = None) -> Figure:
    """Figure of the results ``data`` of a sweep; ``observe``: the observables to draw (all).

    One axis gives curves, two give maps, more give maps over the two longest axes at the middle of
    the others, and samples give a scatter matrix. Failed trajectories are marked red. The figure
    belongs
    to no window; save it with ``figure.savefig(path)``. Raises :class:`ProblemError` for an unknown
    observable. Two coefficients of friction::

        >>> table = jfric.sweep(problem, {"friction.mu": [0.1, 0.2]}, "max.u", progress=False)
        >>> figure = jfric.plot_sweep(table)
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('friction.mu', 'max.u [m]')
    """
    known = [str(n) for n in data.data_vars if n not in OUTCOME]
    names = _chosen_names(in_order(known, data.attrs.get("observables")), observe)
    axes = [str(d) for d in data["status"].dims]
    if axes == [NUMBER_AXIS]:
        return _scatter_matrix(data, names)
    slices = {}
    if len(axes) > 2:
        longest = sorted(axes, key=lambda d: -data.sizes[d])[:2]
        slices = {d: data.sizes[d] // 2 for d in axes if d not in longest}
    # Further axes are taken at their middle values, so that a panel has at most two.
    panels = [(name, data[name].isel(slices)) for name in names]
    status = np.asarray(data["status"].isel(slices))
    figure = _figure(len(panels), wide=len(axes) == 1)
    columns = 1 if len(axes) == 1 else min(len(panels), 2)
    grid = figure.add_gridspec(math.ceil(len(panels) / columns), columns)
    for i, (name, values) in enumerate(panels):
        axis = figure.add_subplot(grid[i // columns, i % columns])
        _panel(figure, axis, data, name, values, status, style.colour(i))
    if columns == 1:
        figure.align_ylabels()
    _title(figure, data, status, slices)
    return figure


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
    known = [str(n) for n in data.data_vars if RETURNS in data[n].dims]
    if not known:
        raise ProblemError(f"data: found no quantity with the axis {RETURNS!r}")
    names = _chosen_names(known, observe)
    (path,) = (str(d) for d in data["status"].dims)
    figure = style.new_figure(9.0, max(1.0 + 3.4 * len(names), 4.0))
    panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    for axis, name in zip(panels, names, strict=True):
        values = data[name].transpose(path, RETURNS)
        x = np.repeat(np.asarray(data[path]), values.sizes[RETURNS])
        axis.plot(x, np.asarray(values).ravel(), ".", color=style.LINES[0], ms=DOT, rasterized=True)
        axis.set_ylabel(_label(values, name))
        style.style_axes(axis)
    panels[-1].set_xlabel(path)
    if title:
        figure.suptitle(title)
    return figure


def _chosen_names(known: Sequence[str], observe: Sequence[str] | None) -> list[str]:
    """Names of the observables to draw: ``observe``, or all that are ``known``."""
    for name in observe or ():
        require_one_of("observe", name, known, "the results hold")
    return list(observe or known)


def in_order(names: list[str], wanted: Any) -> list[str]:
    """Names of a table in the requested order, not in that of the store."""
    order = list(wanted if wanted is not None else ())
    return sorted(names, key=lambda n: order.index(n) if n in order else len(order))


def _figure(panels: int, *, wide: bool) -> Figure:
    rows = panels if wide else math.ceil(panels / 2)
    width = 9.0 if wide or panels == 1 else 12.0
    height = 1.0 + (2.6 if wide else 4.2) * rows
    return style.new_figure(width, max(height, 4.0))


def _panel(
    figure: Figure,
    axis: Axes,
    data: xarray.Dataset,
    name: str,
    values: Any,
    status: np.ndarray,
    ink: str,
) -> None:
    dims = [str(d) for d in values.dims]
    if len(dims) > 2:
        # A map of trajectories shows the last value at each point.
        values = values.isel({dims[-1]: -1})
        name = f"{name} at {dims[-1]} = {float(values[dims[-1]]):g}"
        dims = dims[:2]
    failed = _failed(status)
    if len(dims) == 1:
        _curve(axis, data[dims[0]], np.asarray(values), failed, ink)
        style.label_axes(axis, y=_label(values, name))
    else:
        shown = failed if failed.ndim == 2 else np.broadcast_to(failed[:, None], values.shape)
        _map(figure, axis, (data[dims[0]], data[dims[1]]), values, shown, name)
    style.style_axes(axis)
    axis.tick_params(which="minor", labelsize=8)
    if len(dims) == 2:
        axis.grid(visible=False)


def _failed(status: np.ndarray) -> np.ndarray:
    """Whether each trajectory was computed and failed."""
    return status > int(Status.OK)


def _curve(axis: Axes, along: Any, values: np.ndarray, failed: np.ndarray, ink: str) -> None:
    x = np.asarray(along)
    order = np.argsort(x, kind="stable")
    x, values, failed = x[order], values[order], failed[order]
    marker = "." if x.size < 60 else ""
    axis.plot(*_thinned(x, values), color=ink, lw=1.2, marker=marker)
    if failed.any():
        axis.plot(
            x[failed],
            np.full(int(failed.sum()), 0.015),
            "|",
            color=FAILED,
            ms=9,
            transform=axis.get_xaxis_transform(),
            label=f"failed ({int(failed.sum()):,})",
        )
        axis.legend(frameon=False, fontsize=8, loc="best")
    if _is_geometric(x):
        axis.set_xscale("log")
    # The axis covers all swept values, also those without a number to draw.
    axis.set_xlim(x[0], x[-1] if x[-1] > x[0] else None)
    style.label_axes(axis, _label(along))


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A long curve reduced to its extremes in bins, each at its place, so that no spike is lost."""
    if x.size <= MAX_POINTS:
        return x, y
    kept = []
    for part in np.array_split(np.arange(x.size), BINS):
        finite = part[np.isfinite(y[part])]
        if finite.size:
            ends = {int(finite[np.argmin(y[finite])]), int(finite[np.argmax(y[finite])])}
            kept.extend(sorted(ends | {int(part[0]), int(part[-1])}))
        else:
            kept.append(int(part[0]))
    return x[kept], y[kept]


def _map(
    figure: Figure, axis: Axes, along: tuple[Any, Any], values: Any, failed: np.ndarray, name: str
) -> None:
    """Draw a map: the first axis of the table to the right, the second one upwards."""
    orders = [np.argsort(np.asarray(a), kind="stable") for a in along]
    steps = [max(n // MAX_PIXELS, 1) for n in values.shape]
    kept = [order[::step] for order, step in zip(orders, steps, strict=True)]
    x, y = (np.asarray(a)[rows] for a, rows in zip(along, kept, strict=True))
    z = np.asarray(values[kept[0], kept[1]], float)
    # A failed point is visible wherever it lies.
    bad = failed[np.ix_(*orders)]
    for i, step in enumerate(steps):
        bad = np.logical_or.reduceat(bad, np.arange(0, bad.shape[i], step), axis=i)
    if np.isfinite(z).any():
        mesh = axis.pcolormesh(_edges(x), _edges(y), z.T, cmap=COLOURS, rasterized=True)
        bar = figure.colorbar(mesh, ax=axis)
        bar.ax.tick_params(labelsize=8)
        bar.outline.set_visible(False)  # type: ignore[operator]
    if bad.any():
        from matplotlib.colors import ListedColormap

        marked = np.where(bad, 1.0, np.nan)
        axis.pcolormesh(
            _edges(x), _edges(y), marked.T, cmap=ListedColormap([FAILED]), rasterized=True
        )
    for values_, scale in ((x, axis.set_xscale), (y, axis.set_yscale)):
        if _is_geometric(values_):
            scale("log")
    style.label_axes(axis, _label(along[0]), _label(along[1]))
    drawn = style.some_of(z.size, values.size, "points ")
    title = ", ".join(t for t in (_label(values, name), drawn) if t)
    axis.set_title(title, fontsize=10, loc="left")


def _edges(x: np.ndarray) -> np.ndarray:
    """Borders of the cells around increasing points."""
    if x.size == 1:
        half = 0.5 * abs(x[0]) or 0.5
        return np.array([x[0] - half, x[0] + half])
    if _is_geometric(x):
        return np.exp(_edges(np.log(x)))
    middle = 0.5 * (x[1:] + x[:-1])
    return np.concatenate([[2 * x[0] - middle[0]], middle, [2 * x[-1] - middle[-1]]])


def _is_geometric(x: np.ndarray) -> bool:
    """Whether points are in geometric progression over more than a factor of 3."""
    if x.size < 3 or x[0] <= 0 or x[-1] / x[0] < 3.0:
        return False
    ratio = np.diff(np.log(x))
    return bool(np.all(np.abs(ratio - ratio[0]) <= 1e-6 * np.abs(ratio[0])))


def _label(values: Any, name: str = "") -> str:
    """The name of a column of the table, or another ``name`` for it, with its unit."""
    return style.with_unit(name or str(values.name), str(values.attrs.get("units", "")))


def _scatter_matrix(data: xarray.Dataset, names: list[str]) -> Figure:
    """Matrix of panels, each parameter and observable over each other; histograms on the
    diagonal."""
    parameters = in_order(
        [str(c) for c in data.coords if data[c].dims == (NUMBER_AXIS,)],
        data.attrs.get("parameters"),
    )
    scalars = [n for n in names if data[n].ndim == 1]
    shown = (parameters + scalars)[:MAX_IN_MATRIX]
    rows = style.some_rows(data.sizes[NUMBER_AXIS], MAX_SCATTERED)
    columns = {n: np.asarray(data[n], float) for n in shown}
    status = np.asarray(data["status"])
    failed = _failed(status[rows])
    count = len(shown)
    figure = _figure(1, wide=True)
    figure.set_size_inches(1.2 + 2.0 * count, 1.2 + 2.0 * count)
    axes = figure.subplots(count, count, squeeze=False)
    size = float(np.clip(4000.0 / max(failed.size, 1), 1.0, 12.0))
    for i, row in enumerate(shown):
        for j, column in enumerate(shown):
            axis = axes[i, j]
            if i == j:
                finite = columns[row][np.isfinite(columns[row])]
                axis.hist(finite, bins=30, color=style.LINES[0], alpha=0.7)
                axis.set_yticks([])
            else:
                x, y = columns[column][rows], columns[row][rows]
                axis.scatter(
                    x[~failed], y[~failed], s=size, color=style.LINES[0], lw=0, rasterized=True
                )
                if row in parameters and column in parameters:
                    axis.scatter(
                        x[failed], y[failed], s=2 * size, color=FAILED, lw=0, rasterized=True
                    )
            style.style_axes(axis)
            axis.tick_params(labelsize=6, labelbottom=i == count - 1, labelleft=j == 0 and i > 0)
            if i == count - 1:
                axis.set_xlabel(_label(data[column]), fontsize=8)
            if j == 0:
                axis.set_ylabel(_label(data[row]), fontsize=8)
    figure.align_ylabels(axes[:, 0])
    _title(figure, data, status, {}, style.some_of(rows.size, status.size, ""))
    return figure


def _title(
    figure: Figure,
    data: xarray.Dataset,
    status: np.ndarray,
    slices: dict[str, int],
    drawn: str = "",
) -> None:
    """Add a title; ``drawn``: the visible part of the points, if not all are drawn."""
    text = [str(data.attrs.get("title", ""))]
    text += [f"{d} = {float(data[d][i]):g}" for d, i in slices.items()]
    failed, missing = int(_failed(status).sum()), int((status < 0).sum())
    text += [f"{failed:,} of {status.size:,} failed (red)"] if failed else []
    text += [f"{missing:,} not computed"] if missing else []
    text += [drawn]
    style.titled(figure, ", ".join(t for t in text if t), 11.0)
