"""Figures of a trajectory: motion and friction over time with phases, and phase portraits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jfric.figures.curves import ForceCurve, force_curves, force_points, motion_curve
from jfric.figures.style import colour, label_axes, new_figure, style_axes, titled, with_unit
from jfric.results.columns import column_units
from jfric.results.phases import Phase, phases
from jfric.results.solution import reached

if TYPE_CHECKING:
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


def plot(solution: Solution, problem: Problem, title: str = "") -> Figure:
    """Figure of one trajectory, the ``solution`` of ``problem``, under a ``title``.

    The panels are displacement, velocity and friction force over time with shaded phases and marked
    events, and the phase portrait. Systems with several contacts (or piecewise-linear elements) get
    one row of phases each.
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
    force_panels = list(dict.fromkeys((f.label, f.unit) for f in forces))
    kinds = _kinds(solution, problem)
    rows = 2 * len(kinds) + len(force_panels)
    heights = [2.0] * rows + ([0.35 + 0.28 * len(tracks)] if many else [])
    figure = new_figure(12.0, 0.9 + 1.0 * sum(heights), pad=0.05)
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights, width_ratios=(1.75, 1.0))
    axes = _time_axes(figure, grid, rows + many)
    row = 0
    for name, what in (("q", "displacement"), ("v", "velocity")):
        for kind, members in kinds.items():
            _motion(axes[row], solution, name, members)
            label = {"m": what, "rad": "angle" if name == "q" else "angular velocity"}[kind]
            unit = units[f"{name}.{solution.axes[members[0]]}"]
            label_axes(axes[row], y=with_unit(label, unit))
            row += 1
    for label, unit in force_panels:
        _forces(axes[row], solution, [f for f in forces if (f.label, f.unit) == (label, unit)])
        label_axes(axes[row], y=with_unit(label, unit))
        row += 1
    if not many:
        for axis in axes:
            _shade(axis, next(iter(tracks.values()), []))
    for axis in axes[:rows]:
        _ticks(axis, solution)
    if many:
        _draw_phases(axes[rows], tracks)
    _finish(axes, rows)
    _portraits(figure, grid, solution, kinds, units)
    _legend(figure, tracks, solution)
    return titled(figure, title, 13.0)


def _kinds(solution: Solution, problem: Problem) -> dict[str, list[int]]:
    kinds: dict[str, list[int]] = {}
    for i, axis in enumerate(solution.axes):
        unit = "rad" if problem.dofs.get(axis) == "rotation" else "m"
        kinds.setdefault(unit, []).append(i)
    return kinds


def _time_axes(figure: Figure, grid, count: int) -> list[Axes]:
    first = figure.add_subplot(grid[0, 0])
    return [first, *(figure.add_subplot(grid[i, 0], sharex=first) for i in range(1, count))]


def _motion(axis: Axes, solution: Solution, name: str, members: list[int]) -> None:
    for i in members:
        axis.plot(
            *motion_curve(solution, name, i),
            color=colour(i),
            lw=1.4,
            label=solution.axes[i],
            zorder=3,
        )
    _line_legend(axis, len(solution.axes) > 1)


def _forces(axis: Axes, solution: Solution, drawn: list[ForceCurve]) -> None:
    for number, line in enumerate(drawn):
        axis.plot(
            *force_points(solution, line), color=colour(number), lw=1.3, label=line.name, zorder=3
        )
    _line_legend(axis, len(drawn) > 1)


def _line_legend(axis: Axes, wanted: bool) -> None:
    if wanted:
        axis.legend(
            loc="center left",
            bbox_to_anchor=(1.005, 0.5),
            frameon=False,
            fontsize=8,
            handlelength=1.2,
            borderaxespad=0.2,
        )


def _mode_colour(label: str, labels: list[str]) -> str:
    if label in MODES:
        return MODES[label]
    return SEGMENTS[labels.index(label) % len(SEGMENTS)]


def _shade(axis: Axes, spans: list[Phase]) -> None:
    if len(spans) > MAX_TICKS:  # too narrow to be distinguished
        return
    labels = _other_labels({"": spans})
    for start, end, label in spans:
        axis.axvspan(start, end, color=_mode_colour(label, labels), alpha=0.45, lw=0, zorder=0)


def _other_labels(tracks: dict[str, list[Phase]]) -> list[str]:
    """Names of segments without a colour of their own, in a fixed order."""
    return sorted({p.label for spans in tracks.values() for p in spans if p.label not in MODES})


def _draw_phases(axis: Axes, tracks: dict[str, list[Phase]]) -> None:
    labels = _other_labels(tracks)
    for i, spans in enumerate(tracks.values()):
        for start, end, label in spans:
            axis.broken_barh(
                [(start, end - start)], (i - 0.4, 0.8), lw=0, color=_mode_colour(label, labels)
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
        style_axes(axis)
        axis.margins(x=0)
    for axis in axes[:-1]:
        axis.tick_params(labelbottom=False)
    label_axes(axes[-1], "time [s]")
    axes[0].figure.align_ylabels(axes[:rows])


def _portraits(figure: Figure, grid, solution: Solution, kinds, units) -> None:
    """Draw velocity over displacement, one panel for translations and one for rotations."""
    share = grid[:, 1].subgridspec(len(kinds), 1)
    for row, members in enumerate(kinds.values()):
        axis = figure.add_subplot(share[row])
        for i in members:
            _, q = motion_curve(solution, "q", i)
            _, v = motion_curve(solution, "v", i)
            axis.plot(q, v, color=colour(i), lw=1.2)
            axis.plot(q[:1], v[:1], "o", color=colour(i), ms=5, mfc="white", zorder=4)
            axis.plot(q[-1:], v[-1:], "o", color=colour(i), ms=5, zorder=4)
        name = solution.axes[members[0]]
        rotation = units[f"q.{name}"] == "rad"
        axis.set_title("phase portrait (○ start, ● end)", fontsize=9, loc="left")
        place = with_unit("angle" if rotation else "displacement", units[f"q.{name}"])
        rate = with_unit("angular velocity" if rotation else "velocity", units[f"v.{name}"])
        label_axes(axis, place, rate)
        style_axes(axis)
        # A legend would cover curves: the colours are those of the motion over time.
        axis.margins(0.06)


def _legend(figure: Figure, tracks: dict[str, list[Phase]], solution: Solution) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    others = _other_labels(tracks)
    found = {p.label for spans in tracks.values() for p in spans}
    alpha = 1.0 if len(tracks) > 1 else 0.45
    handles: list = [
        Patch(color=_mode_colour(x, others), alpha=alpha, label=x.replace("_", " "), lw=0)
        for x in [*MODES, *others]
        if x in found
    ]
    impact = np.asarray(solution.events.used().impact).astype(bool)
    marks = (("event", "#333333", not impact.all()), ("impact", "#c00000", impact.any()))
    if 0 < impact.size <= MAX_TICKS:
        handles += [
            Line2D([], [], color=ink, marker="|", ls="", ms=9, label=label)
            for label, ink, shown in marks
            if shown
        ]
    if handles:
        figure.legend(
            handles=handles,
            loc="outside upper right",
            ncols=len(handles),
            frameon=False,
            fontsize=9,
            handlelength=1.4,
            columnspacing=1.4,
        )
