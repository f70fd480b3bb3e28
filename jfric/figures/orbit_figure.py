"""Figures of paths of periodic motions: solid lines if stable, dashed lines if not."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jfric.errors import ProblemError
from jfric.figures.style import label_axes, legend_below, panel_grid, style_axes, titled, with_unit
from jfric.periodic.path import OrbitKind, OrbitPath
from jfric.results.grammar import as_observables
from jfric.system.naming import path_dimension

if TYPE_CHECKING:
    from collections.abc import Set

    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: Marker, colour and label of each kind of special point.
MARKERS: dict[OrbitKind, tuple[str, str, str]] = {
    "fold": ("s", "#c0504d", "fold"),
    "flip": ("^", "#7b4ea3", "flip"),
    "torus": ("v", "#b8860b", "torus"),
    "branch point": ("X", "#3a7d44", "branch point"),
    "hopf": ("D", "#1f6f8b", "hopf (equilibrium)"),
    "event change": ("o", "#222222", "event change"),
    "dead end": ("x", "#222222", "dead end"),
}
#: Largest number of panels that is readable.
MAX_PANELS = 12


def plot_orbits(
    path: OrbitPath, show: str | Sequence[str] | None = None, *, title: str = ""
) -> Figure:
    """Figure of a ``path`` of periodic motions over its parameter, under a ``title``.

    ``show``: observables over a period (``"max.x, rms.v.x"``), one panel each; by default the
    largest positions. Solid lines: stable motions; dashed: unstable ones; special points are marked
    (see :class:`jfric.OrbitPoint`). Raises :class:`jfric.ProblemError` for an unknown observable.
    After the example of :func:`jfric.continue_orbit`::

        >>> figure = jfric.plot_orbits(path)
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('friction.mu', 'max.x [m]')
    """
    chosen = [f"max.{axis}" for axis in path.axes[:MAX_PANELS]] if show is None else show
    values = path.observe(chosen)
    if len(values) > MAX_PANELS:
        raise ProblemError(f"show: found {len(values)} observables, at most {MAX_PANELS} fit")
    problem = path.orbits.problem
    dimension = path_dimension(problem, path.name)
    over = with_unit(path.name, dimension.unit if dimension else "")
    units = [observable.unit for observable in as_observables(problem, chosen)]
    figure, axes = panel_grid(len(values), 4.8, 3.3, 0.8)
    for axis, unit, (name, value) in zip(axes, units, values.items(), strict=False):
        for part in stretches(path.stable):
            stable = bool(path.stable[part.stop - 1])
            style = "-" if stable else "--"
            axis.plot(path.parameter[part], value[part], style, color="#1f4e79", lw=1.6, zorder=3)
        for point in path.special:
            if point.kind in MARKERS:
                marker, colour, _ = MARKERS[point.kind]
                place = float(value[point.row])
                axis.plot(point.parameter, place, marker, color=colour, ms=4.5, zorder=4)
        label_axes(axis, over, with_unit(name, unit))
        style_axes(axis)
    legend_below(figure, stability_handles(path.stable, {point.kind for point in path.special}))
    return titled(figure, title)


def stretches(stable: np.ndarray) -> list[slice]:
    """Stretches of one stability, each beginning where the one before ends."""
    cuts = [0, *(np.flatnonzero(stable[1:] != stable[:-1]) + 1).tolist(), len(stable)]
    return [slice(max(a - 1, 0), b) for a, b in itertools.pairwise(cuts) if b > a]


def stability_handles(
    stable: np.ndarray, kinds: Set[OrbitKind], colour: str = "#1f4e79", width: float = 1.6
) -> list[Line2D]:
    """Entries of a legend: kinds of lines and of special points that a figure has."""
    from matplotlib.lines import Line2D

    lines = [("-", "stable", stable.any()), ("--", "unstable", not stable.all())]
    handles = [
        Line2D([], [], ls=style, color=colour, lw=width, label=label)
        for style, label, used in lines
        if used
    ]
    return handles + [
        Line2D([], [], ls="", marker=marker, color=marked, ms=4.5, label=label)
        for kind, (marker, marked, label) in MARKERS.items()
        if kind in kinds
    ]
