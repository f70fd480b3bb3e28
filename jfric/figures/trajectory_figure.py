"""Figures of a trajectory: motion and friction over time with phases, and phase portraits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jfric.errors import require_one_of
from jfric.figures import style
from jfric.figures.curves import Phase, force_curves, force_points, motion_curve, phases
from jfric.results.columns import column_units
from jfric.results.solution import reached

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from jfric.results.solution import Solution
    from jfric.system.problem import Problem

MODES = {
    "stick": "#f2c14e",
    "slip+": "#9ecae1",
    "slip-": "#c6b3d9",
    "slip": "#9ecae1",
    "open": "#d9d9d9",
    "closed": "#a8d5a2",
    "free": "#d9d9d9",
}
SEGMENTS = ("#f4a582", "#92c5de", "#b8e186", "#d1b5e0", "#fddbc7")
#: Number of ticks over time above which they would blacken the axis.
MAX_TICKS = 400
#: How a figure is asked for other curves.
HOW = "jfric.plot(..., show=[...])"


def plot(
    solution: Solution, problem: Problem, title: str = "", *, show: Sequence[str] | None = None
) -> Figure:
    """Figure of one trajectory, the ``solution`` of ``problem``, under a ``title``.

    Displacement, velocity and friction force over time with the phases shaded and the events
    marked, and the phase portrait. Systems with several contacts (or piecewise-linear elements) get
    one row of phases each. A panel has at most eight curves, the first ones; ``show``: names of
    degrees of freedom and contacts to draw instead. Raises :class:`jfric.ProblemError` for others.
    The figure belongs to no window; save it with ``figure.savefig(path)``::

        >>> solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 4.0, 5))
        >>> figure = jfric.plot(solution, problem, "A block on a spring")
        >>> [axes.get_xlabel() for axes in figure.axes[-2:]]
        ['time [s]', 'displacement [m]']
    """
    solution = reached(solution)
    units = column_units(problem, solution)
    tracks = {name: phases(solution, i) for i, name in enumerate(solution.names)}
    many = len(tracks) > 1
    forces = force_curves(solution, problem)
    dofs, contacts = _chosen(show, solution.axes, [f.name for f in forces])
    forces = [f for f in forces if f.name in contacts]
    force_panels = list(dict.fromkeys((f.label, f.unit) for f in forces))
    kinds = _kinds(solution, problem, dofs)
    drawn = sorted(i for members in kinds.values() for i in members[: style.MOST_CURVES])
    # A colour belongs to one name.
    inks = {i: style.colour(number) for number, i in enumerate(drawn)}
    tints = {f.name: style.colour(number) for number, f in enumerate(forces, len(inks))}
    rows = 2 * len(kinds) + len(force_panels)
    heights = [2.0] * rows + ([0.35 + 0.28 * len(tracks)] if many else [])
    figure = style.new_figure(12.0, 0.9 + 1.0 * sum(heights), pad=0.05)
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights, width_ratios=(1.75, 1.0))
    first = figure.add_subplot(grid[0, 0])
    axes = [first, *(figure.add_subplot(grid[i, 0], sharex=first) for i in range(1, rows + many))]
    row = 0
    for name, what in (("q", "displacement"), ("v", "velocity")):
        for kind, members in kinds.items():
            moved = [
                (solution.axes[i], inks[i], motion_curve(solution, name, i))
                for i in members[: style.MOST_CURVES]
            ]
            _lines(axes[row], moved, 1.4, len(members), named=len(solution.axes) > 1)
            label = {"m": what, "rad": "angle" if name == "q" else "angular velocity"}[kind]
            unit = units[f"{name}.{solution.axes[members[0]]}"]
            style.label_axes(axes[row], y=style.with_unit(label, unit))
            row += 1
    for label, unit in force_panels:
        members = [f for f in forces if (f.label, f.unit) == (label, unit)]
        first = members[: style.MOST_CURVES]
        pulls = [(f.name, tints[f.name], force_points(solution, f)) for f in first]
        _lines(axes[row], pulls, 1.3, len(members), named=len(members) > 1)
        style.label_axes(axes[row], y=style.with_unit(label, unit))
        row += 1
    if not many:
        for axis in axes:
            _shade(axis, next(iter(tracks.values()), []))
    for axis in axes[:rows]:
        _ticks(axis, solution)
    if many:
        _draw_phases(axes[rows], tracks)
    _finish(axes, rows)
    _portraits(figure, grid, solution, kinds, units, inks)
    _legend(figure, tracks, solution)
    return style.titled(figure, title, 13.0)


def _chosen(show: Sequence[str] | None, *groups: Sequence[str]) -> list[Sequence[str]]:
    """Names to draw of each group: those of ``show``, all of a group that it does not mention."""
    known = [name for names in groups for name in names]
    for name in show or ():
        require_one_of("show", name, known, "there are")
    return [[name for name in names if name in (show or ())] or names for names in groups]


def _kinds(solution: Solution, problem: Problem, chosen: Sequence[str]) -> dict[str, list[int]]:
    kinds: dict[str, list[int]] = {}
    for i, axis in enumerate(solution.axes):
        if axis in chosen:
            unit = "rad" if problem.dofs.get(axis) == "rotation" else "m"
            kinds.setdefault(unit, []).append(i)
    return kinds


def _lines(
    axis: Axes, curves: Sequence[tuple[str, str, tuple]], width: float, count: int, *, named: bool
) -> None:
    """Draw ``curves``: name, colour, times and values; these are the first of ``count``. Their
    names are shown where ``named``."""
    for name, ink, points in curves:
        axis.plot(*points, color=ink, lw=width, label=name, zorder=3)
    style.only_some(axis, count, HOW)
    if named:
        axis.legend(
            loc="center left",
            bbox_to_anchor=(1.005, 0.5),
            frameon=False,
            fontsize=8,
            handlelength=1.2,
            borderaxespad=0.2,
        )


def mode_colour(label: str, labels: list[str]) -> str:
    """Colour of a mode, or of a segment by its place among ``labels``."""
    if label in MODES:
        return MODES[label]
    return SEGMENTS[labels.index(label) % len(SEGMENTS)]


def _shade(axis: Axes, spans: list[Phase]) -> None:
    if len(spans) > MAX_TICKS:  # too narrow to be distinguished
        return
    labels = _other_labels({"": spans})
    for start, end, label in spans:
        axis.axvspan(start, end, color=mode_colour(label, labels), alpha=0.45, lw=0, zorder=0)


def _other_labels(tracks: dict[str, list[Phase]]) -> list[str]:
    """Names of segments without a colour of their own, in a fixed order."""
    return sorted({p.label for spans in tracks.values() for p in spans if p.label not in MODES})


def _draw_phases(axis: Axes, tracks: dict[str, list[Phase]]) -> None:
    labels = _other_labels(tracks)
    for i, spans in enumerate(tracks.values()):
        for start, end, label in spans:
            axis.broken_barh(
                [(start, end - start)], (i - 0.4, 0.8), lw=0, color=mode_colour(label, labels)
            )
    axis.set_yticks(range(len(tracks)), list(tracks), fontsize=8)
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(tracks) - 0.5, -0.5)
    axis.grid(visible=False)


def _ticks(axis: Axes, solution: Solution) -> None:
    """Draw events as ticks along the top edge; impacts are longer and red."""
    log = solution.events.used()
    time, impact = np.asarray(log.time), np.asarray(log.impact).astype(bool)
    if not 0 < time.size <= MAX_TICKS:
        return
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.07 * (high - low))  # room for the ticks
    transform = axis.get_xaxis_transform()
    axis.vlines(time[~impact], 0.955, 1.0, color="#333333", lw=0.8, transform=transform, zorder=4)
    axis.vlines(time[impact], 0.93, 1.0, color="#c00000", lw=1.1, transform=transform, zorder=4)


def _finish(axes: list[Axes], rows: int) -> None:
    for axis in axes:
        style.style_axes(axis)
        axis.margins(x=0)
    for axis in axes[:-1]:
        axis.tick_params(labelbottom=False)
    style.label_axes(axes[-1], "time [s]")
    axes[0].figure.align_ylabels(axes[:rows])


def _portraits(
    figure: Figure, grid, solution: Solution, kinds, units, inks: dict[int, str]
) -> None:
    """Velocity over displacement, one panel for translations and one for rotations."""
    share = grid[:, 1].subgridspec(len(kinds), 1)
    for row, members in enumerate(kinds.values()):
        axis = figure.add_subplot(share[row])
        for i in members[: style.MOST_CURVES]:
            _, q = motion_curve(solution, "q", i)
            _, v = motion_curve(solution, "v", i)
            axis.plot(q, v, color=inks[i], lw=1.2)
            axis.plot(q[:1], v[:1], "o", color=inks[i], ms=5, mfc="white", zorder=4)
            axis.plot(q[-1:], v[-1:], "o", color=inks[i], ms=5, zorder=4)
        name = solution.axes[members[0]]
        rotation = units[f"q.{name}"] == "rad"
        axis.set_title("phase portrait (○ start, ● end)", fontsize=9, loc="left")
        place = style.with_unit("angle" if rotation else "displacement", units[f"q.{name}"])
        rate = style.with_unit("angular velocity" if rotation else "velocity", units[f"v.{name}"])
        style.style_axes(axis, place, rate)
        # A legend would cover curves: the colours are those of the motion over time.
        axis.margins(0.06)


def _legend(figure: Figure, tracks: dict[str, list[Phase]], solution: Solution) -> None:
    from matplotlib.patches import Patch

    others = _other_labels(tracks)
    found = {p.label for spans in tracks.values() for p in spans}
    alpha = 1.0 if len(tracks) > 1 else 0.45
    handles: list = [
        Patch(color=mode_colour(x, others), alpha=alpha, label=x.replace("_", " "), lw=0)
        for x in [*MODES, *others]
        if x in found
    ]
    impact = np.asarray(solution.events.used().impact).astype(bool)
    marks = (("event", "#333333", not impact.all()), ("impact", "#c00000", impact.any()))
    if 0 < impact.size <= MAX_TICKS:
        handles += [
            style.key(label, color=ink, marker="|", ls="", ms=9)
            for label, ink, shown in marks
            if shown
        ]
    if handles:
        spaces: dict = {"handlelength": 1.4, "columnspacing": 1.4}
        style.legend_outside(figure, handles, "upper right", len(handles), **spaces)
