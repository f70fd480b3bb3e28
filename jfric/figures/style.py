"""One style for all figures: colours of lines, and axes without a frame."""

from __future__ import annotations

from colorsys import hsv_to_rgb
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: Colours that colour-blind readers can tell apart.
LINES = ("#1f4e79", "#c0504d", "#3a7d44", "#7b4ea3", "#b8860b", "#2a9d9d", "#8c564b", "#555555")

#: Curves of a panel, of which more could not be told apart; panels of a figure that are readable.
MOST_CURVES, MOST_PANELS = 8, 12


def style_axes(axis: Axes, x: str = "", y: str = "", *, grid: bool = True) -> None:
    """Light grid, no frame at the top and right, small labels; ``x``, ``y``: what the axes show."""
    label_axes(axis, x, y)
    if grid:
        axis.grid(visible=True, which="major", color="#000000", alpha=0.12, lw=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)


def new_figure(width: float, height: float, pad: float = 0.06) -> Figure:
    """A figure of this size [inches] that belongs to no window; ``pad``: between rows of axes."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=pad)
    return Figure(figsize=(width, height), layout=layout)


def panel_grid(
    count: int, width: float, height: float, margin: float
) -> tuple[Figure, Sequence[Axes]]:
    """A figure with ``count`` panels of this size [inches], three in a row; ``margin``: height of
    the space above and below the panels."""
    columns = min(3, count)
    lines = -(-count // columns)
    figure = new_figure(width * columns, margin + height * lines)
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, list(axes[:count])


def label_axes(axis: Axes, x: str = "", y: str = "") -> None:
    """Set the labels of the axes that are not empty."""
    for text, put in ((x, axis.set_xlabel), (y, axis.set_ylabel)):
        if text:
            put(text, fontsize=9)


def titled(figure: Figure, title: str, size: float = 12.0) -> Figure:
    """``figure`` with its ``title`` above it, unless that is empty."""
    if title:
        figure.suptitle(title, fontsize=size, fontweight="bold", x=0.012, ha="left")
    return figure


def colour(number: int) -> str:
    """Colour of a line by its number, none of them twice: those of ``LINES``, then further hues."""
    if number < len(LINES):
        return LINES[number]
    # By the golden ratio: each new hue is far from all before it.
    found = hsv_to_rgb(0.618034 * number % 1.0, 0.85, (0.85, 0.6, 0.72)[number % 3])
    return "#" + "".join(f"{round(255 * part):02x}" for part in found)


def only_some(axis: Axes, count: int, how: str) -> None:
    """Say above a panel that it shows ``MOST_CURVES`` of so many curves, and how to ask for others;
    nothing where it shows all."""
    if count > MOST_CURVES:
        said = f"{count - MOST_CURVES} of {count} not drawn; choose with {how}"
        axis.set_title(said, fontsize=8, loc="left")


def with_unit(name: str, unit: str) -> str:
    """``force [N·m]``: a name with its unit, if it has one."""
    pretty = unit.replace("*", "·").replace("N m", "N·m").replace("^2", "²")
    return f"{name} [{pretty}]" if unit else name


def require_panels(count: int, what: str) -> None:
    """Raise :class:`jfric.ProblemError` for more panels than are readable."""
    if count > MOST_PANELS:
        raise ProblemError(f"show: found {count} {what}, at most {MOST_PANELS} fit")


def key(label: str, **look: Any) -> Line2D:
    """An entry of a legend: a line, or a marker without one, that looks so."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **look)


def some_rows(count: int, most: int) -> np.ndarray:
    """Numbers of at most ``most`` of ``count`` rows, in order, and equal in every figure.

    The rows are chosen at random, because every n-th point of a sequence that fills a space evenly
    lies in a part of that space.
    """
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False))


def some_of(shown: int, count: int, what: str) -> str:
    """``5,000 of 100,000 drawn`` if a figure does not show all; otherwise empty."""
    return f"{shown:,} of {count:,} {what}drawn" if shown < count else ""


def legend_below(figure: Figure, handles: Sequence[Artist], most: int = 8) -> None:
    """A legend under all axes, with at most this many entries in a row."""
    legend_outside(figure, handles, "lower center", most, handlelength=3.0)


def legend_outside(
    figure: Figure, handles: Sequence[Artist], side: str, most: int, size: int = 9, **style: Any
) -> None:
    """A legend next to all axes, at this side, with at most so many entries in a row, fewer where
    the figure is narrow."""
    letters = max((len(str(handle.get_label())) for handle in handles), default=0)
    # Widths are in sizes of the font: a letter takes 0.55, gaps around an entry 3.
    entry = (0.55 * letters + 3.0 + style.get("handlelength", 2.0)) * size / 72.0
    columns = min(len(handles), most, max(int(figure.get_figwidth() / entry), 1))
    about: Any = {"loc": f"outside {side}", "ncols": columns, "frameon": False, "fontsize": size}
    figure.legend(handles=list(handles), **about, **style)
