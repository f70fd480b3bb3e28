"""Figures of a structure: the undeformed and the deformed mesh, as Janovsky (2015), figure 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jfric.errors import ProblemError
from jfric.figures.style import label_axes, style_axes, titled
from jfric.structures.structure import Structure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#1f4e79", "#b8860b")


def plot_structure(
    structure: Structure, displacements, *, magnify: float | None = None, title: str = ""
) -> Figure:
    """Nodes and grid lines, undeformed and with ``displacements`` (n,) magnified (by default such
    that the largest is a twentieth of the structure's size)."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    if structure.nodes is None or structure.dofs is None or structure.body is None:
        raise ProblemError("nodes: the structure has no coordinates, it cannot be drawn")
    u = np.asarray(displacements)
    moved = np.where(structure.dofs >= 0, u[np.maximum(structure.dofs, 0)], 0.0)
    size, largest = np.ptp(structure.nodes, axis=0).max(), np.abs(moved).max()
    if magnify is None:
        magnify = 0.05 * size / largest if largest > 0 else 1.0
    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for axis, scale in zip(axes, (0.0, magnify), strict=True):
        for body in np.unique(structure.body):
            chosen = structure.body == body
            place = structure.nodes[chosen] + scale * moved[chosen]
            lines = LineCollection(
                _grid_lines(structure.nodes[chosen], place),
                colors=COLOURS[int(body) % 2],
                linewidths=0.7,
            )
            axis.add_collection(lines)
        axis.autoscale()
        axis.set_aspect("equal")
        label_axes(axis, "x [m]")
        style_axes(axis, grid=False)
    label_axes(axes[0], y="y [m]")
    axes[0].set_title("undeformed", fontsize=9, loc="left")
    axes[1].set_title(f"deformed, displacements times {magnify:.3g}", fontsize=9, loc="left")
    return titled(figure, title)


def _grid_lines(nodes: np.ndarray, place: np.ndarray) -> list[np.ndarray]:
    """Lines of the grid through the undeformed ``nodes``, drawn at ``place``."""
    lines = []
    for axis in (0, 1):
        for value in np.unique(nodes[:, axis].round(12)):
            on = np.flatnonzero(np.isclose(nodes[:, axis], value))
            lines.append(place[on[np.argsort(nodes[on, 1 - axis])]])
    return lines
