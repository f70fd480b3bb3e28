"""Pictures of a mechanism at some instants, and animations; contact colours show the mode."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jfric.errors import ProblemError
from jfric.figures.mechanism_scene import Scene, scene
from jfric.figures.style import colour, key, label_axes, legend_outside, style_axes, titled
from jfric.results.solution import reached, reached_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from jfric.results.solution import Solution
    from jfric.system.problem import Problem

#: Colours of touching points by mode; the marks of open contacts are hollow.
MARKS = {
    "stick": "#e0a100",
    "slip+": "#2b7bba",
    "slip-": "#8e4fb0",
    "closed": "#2f9e44",
    "open": "#ffffff",
}
GREY = "#6b6b6b"
#: Longest animation [s], and fewest pictures in one; longer runs are shown faster.
LONGEST, FEWEST = 10.0, 25
#: A part of its way by which no coordinate differs any more at rest, and the part of the run for
#: which the rest is shown.
STILL, PAUSE = 1e-3, 0.05


def plot_mechanism(
    solution: Solution, problem: Problem, title: str = "", *, instants: int = 6
) -> Figure:
    """The bodies of ``problem`` at some instants of one trajectory, its ``solution``.

    ``instants``: number of evenly spaced pictures, until the motion has come to rest; ``title``:
    above them. Bodies are drawn as the hull of their points and the circles of their contacts, with
    the paths of their centres. Raises :class:`jfric.ProblemError` without bodies, or with a
    trajectory that holds no outputs.
    A falling rod::

        >>> rod = jfric.Body(2.0, 0.5, at=(0, 1), points={"left": (-0.8, 0), "right": (0.8, 0)})
        >>> elements = {"body": {"rod": rod}, "gravity": jfric.Gravity(10.0)}
        >>> falling = jfric.Problem([], elements, time=0.4)
        >>> solution = jfric.simulate(falling, ts=jnp.linspace(0.0, 0.4, 9))
        >>> figure = jfric.plot_mechanism(solution, falling, instants=3)
        >>> figure.axes[0].get_ylabel()
        'y [m]'
    """
    from matplotlib.figure import Figure

    solution = reached(solution)
    times = np.linspace(*_span(solution), instants)
    fine = scene(solution, problem, np.linspace(times[0], times[-1], 200))
    drawn, view = scene(solution, problem, times), view_of(fine)
    width, height = np.ptp(view, axis=0)
    columns = _columns(instants, width / height)
    rows = -(-instants // columns)
    panel = min(11.0 / columns, 3.4 * width / height)
    size = (panel * columns + 0.6, panel * height / width * rows + 0.35 * rows + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for k, axis in enumerate(axes):
        if k >= instants:
            axis.set_axis_off()
            continue
        _draw(axis, drawn, k, view)
        found = {x.body: x.corners.mean(axis=1) for x in fine.outlines if x.body >= 0}
        found |= {x.body: x.centre for x in fine.circles if x.body >= 0}
        for centre in found.values():
            axis.plot(*centre.T, color=GREY, lw=0.6, ls=":", zorder=1)
        axis.set_title(f"t = {times[k]:.4g} s", fontsize=9, loc="left")
        below, first = k >= instants - columns, k % columns == 0
        label_axes(axis, "x [m]" if below else "", "y [m]" if first else "")
    _legend(figure, [drawn, fine])
    return titled(figure, title)


def animate(
    solution: Solution,
    problem: Problem,
    path: str | os.PathLike[str],
    title: str = "",
    *,
    fps: int = 25,
) -> Path:
    """Write an animation (GIF) of one trajectory to ``path``, which is returned.

    The animation shows the bodies of ``problem`` as its ``solution`` moves them, under a ``title``,
    in real time with ``fps`` pictures per second, until the motion has come to rest; motions of
    more than ten seconds are shown faster.
    Raises :class:`jfric.ProblemError` without bodies, and for a ``path`` that exists or does not
    end in ``.gif``. After the example of :func:`jfric.plot_mechanism`::

        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "falling.gif"
        >>> jfric.animate(solution, falling, path, fps=10).read_bytes()[:6]
        b'GIF89a'
    """
    from matplotlib.animation import PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = require_gif(path)
    solution = reached(solution)
    drawn = scene(solution, problem, picture_times(*_span(solution), fps))
    view = view_of(drawn)
    width, height = np.ptp(view, axis=0)
    scale = min(8.0 / width, 6.0 / height)
    figure = Figure(
        figsize=(max(scale * width, 3.5) + 0.7, max(scale * height, 1.5) + 1.1),
        layout="constrained",
    )
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    _legend(figure, [drawn])
    titled(figure, title, 11.0)
    writer = PillowWriter(fps=fps)
    with writer.saving(figure, str(path), dpi=80):
        for k, t in enumerate(drawn.times):
            axis.clear()
            _draw(axis, drawn, k, view)
            axis.set_title(f"t = {t:.3f} s", fontsize=9, loc="left", family="monospace")
            writer.grab_frame()
    return path


def require_gif(path: str | os.PathLike[str]) -> Path:
    """``path`` as a path object; raises :class:`jfric.ProblemError` unless an animation can be
    written there."""
    path = Path(path)
    if path.suffix.lower() != ".gif":
        raise ProblemError(f"animate: found {path.name!r}, the name of an animation ends in .gif")
    if not path.parent.is_dir():
        raise ProblemError(f"animate: no folder {str(path.parent)!r}")
    if path.exists():
        raise ProblemError(f"animate: {str(path)!r} exists, results are never overwritten")
    return path


def picture_times(start: float, end: float, fps: float) -> np.ndarray:
    """Times [s] of the pictures of an animation with so many a second."""
    return np.linspace(start, end, max(round(min(end - start, LONGEST) * fps) + 1, FEWEST))


def _span(solution: Solution) -> tuple[float, float]:
    """Times [s] between which pictures are worth seeing: all, or until shortly after the bodies
    and the modes of their contacts have changed for the last time."""
    ts = np.asarray(solution.ts)
    if ts.size < 2:
        raise ProblemError(
            f"outputs: found {ts.size} that were reached, a picture of the motion needs two or more"
        )
    start, end = float(ts[0]), min(float(ts[-1]), reached_time(solution))
    q = np.asarray(solution.q)
    ways = np.ptp(q, axis=0)  # of what joints hold: rounding
    moves = (np.abs(q - q[-1]) > STILL * np.maximum(ways, 1e-9 * np.max(ways))).any(axis=-1)
    last = np.append(ts[1:][moves[:-1]][-1:], solution.events.used().time[-1:])
    return start, min(end, float(np.max(last, initial=start)) + PAUSE * (end - start))


def view_of(drawn: Scene) -> np.ndarray:
    """Corners (2, 2) of the part of the plane that is shown."""
    low, high = drawn.extent()
    size = max(float(np.max(high - low)), 1e-9)
    margin = 0.06 * size
    # The view is never narrower than a sixth of its length.
    narrow = np.maximum(size / 6.0 - (high - low), 0.0) / 2.0
    return np.stack([low - margin - narrow, high + margin + narrow])


def _columns(count: int, ratio: float) -> int:
    """Number of columns of panels that makes the page wider than high."""
    return min(range(1, count + 1), key=lambda n: abs(np.log(ratio * n / (-(-count // n)) / 1.6)))


def body_colour(body: int) -> str:
    """Colour of a body by its number, -1 for the ground."""
    return GREY if body < 0 else colour(body)


def _draw(axis: Axes, drawn: Scene, k: int, view: np.ndarray) -> None:
    """Draw the scene ``drawn`` at time number ``k``."""
    from matplotlib import patches
    from matplotlib.collections import LineCollection

    size = float(np.max(np.ptp(view, axis=0)))
    for start, along in drawn.lines:
        line, *strokes = ground(start, along, view)
        axis.add_collection(LineCollection(strokes, colors=GREY, linewidths=0.6, zorder=1))
        axis.plot(*line.T, color=GREY, lw=1.3, zorder=1)
    for start, along in drawn.guides:
        (x, y), (dx, dy) = start.tolist(), along.tolist()
        axis.axline((x, y), (x + dx, y + dy), color=GREY, lw=0.9, ls="-.", zorder=1)
    for circle in drawn.circles:
        x, y = circle.centre[k]
        style = {"fc": "none"} if circle.hollow else {"fc": body_colour(circle.body), "alpha": 0.25}
        axis.add_patch(patches.Circle((x, y), circle.radius, ec="none", lw=0.0, **style, zorder=2))
        edge = patches.Circle((x, y), circle.radius, fc="none", ec=body_colour(circle.body), lw=1.4)
        axis.add_patch(edge).set_zorder(3)
        if circle.body >= 0:
            c, s = np.cos(circle.angle[k]), np.sin(circle.angle[k])
            ends = [x, x + circle.radius * c], [y, y + circle.radius * s]
            axis.plot(*ends, color=body_colour(circle.body), lw=1.2, zorder=3)
    for outline in drawn.outlines:
        corners, ink = outline.corners[k], body_colour(outline.body)
        if len(corners) > 2:
            axis.add_patch(patches.Polygon(corners, fc=ink, alpha=0.25, lw=0.0, zorder=2))
            axis.add_patch(patches.Polygon(corners, fc="none", ec=ink, lw=1.4, zorder=3))
        elif len(corners) == 2:
            axis.plot(*corners.T, color=ink, lw=3.5, solid_capstyle="round", zorder=3)
        else:
            axis.plot(*corners.T, "s", mfc=ink, mec=ink, ms=13, alpha=0.35, zorder=3)
    for first, second in drawn.springs:
        axis.plot(*_zigzag(first[k], second[k], size).T, color=GREY, lw=1.0, zorder=4)
    for at, grounded in drawn.pins:
        if grounded:
            axis.plot(*at[k], marker="^", ms=11, mfc="#d0d0d0", mec=GREY, zorder=2)
        axis.plot(*at[k], "o", ms=5, mfc="white", mec="#222222", mew=1.1, zorder=5)
    for mark in drawn.marks:
        face, opened = MARKS.get(mark.modes[k], "#222222"), mark.modes[k] == "open"
        edge = "#aaaaaa" if opened else "#222222"
        size_ = 4.5 if opened else 7.0
        axis.plot(*mark.place[k], "o", ms=size_, mfc=face, mec=edge, mew=0.8, zorder=6)
    axis.set_xlim(*view[:, 0])
    axis.set_ylim(*view[:, 1])
    axis.set_aspect("equal")
    style_axes(axis)


def ground(start: np.ndarray, along: np.ndarray, view: np.ndarray) -> np.ndarray:
    """Strokes (n, 2, 2) of a line of the ground across the view, hatched on the side that is not
    free; the first is the line."""
    size = float(np.max(np.ptp(view, axis=0)))
    middle = start + along * ((view.mean(axis=0) - start) @ along)
    feet = middle + np.arange(-1.0, 1.0, 0.025)[:, None] * size * along
    under = np.array([along[1], -along[0]]) - along
    strokes = np.stack([feet, feet + 0.018 * size * under], axis=1)
    return np.concatenate([[[middle - size * along, middle + size * along]], strokes])


def _zigzag(first, second, size: float) -> np.ndarray:
    """Corners of a spring between two points."""
    way = second - first
    length = max(float(np.hypot(*way)), 1e-12)
    across = np.array([-way[1], way[0]]) / length * 0.015 * size
    steps = np.linspace(0.2, 0.8, 13)
    sides = np.where(np.arange(13) % 2, 1.0, -1.0)
    sides[[0, -1]] = 0.0
    inner = first + steps[:, None] * way + sides[:, None] * across
    return np.concatenate([[first], inner, [second]])


def _legend(figure: Figure, drawn: list[Scene]) -> None:
    found = {mode for x in drawn for mark in x.marks for mode in mark.modes}
    handles = [
        key(mode, marker="o", ls="", mfc=face, mec="#222222", ms=6)
        for mode, face in MARKS.items()
        if mode in found
    ]
    bodies = enumerate(drawn[0].bodies)
    handles += [key(name, color=body_colour(i), lw=3.0) for i, name in bodies]
    legend_outside(figure, handles, "lower right", 6, 8, handlelength=1.2)
