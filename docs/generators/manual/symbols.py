"""Symbols of elements between two places of a sketch, drawn from left to right."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#000000"
_LINE = {"color": INK, "lw": 1.1, "solid_capstyle": "round", "solid_joinstyle": "round"}
#: Half of the height of a symbol.
SIZE = 0.16


def line(axis: Axes, x, y, **style) -> None:
    """Draw a line through points."""
    axis.plot(x, y, **{**_LINE, **style})


def spring(axis: Axes, left: float, right: float, y: float) -> None:
    """A zigzag."""
    a, b = left + 0.22 * (right - left), right - 0.22 * (right - left)
    x = np.linspace(a, b, 12)
    offsets = SIZE * np.where(np.arange(12) % 2, 1.0, -1.0)
    offsets[[0, -1]] = 0.0
    line(axis, [left, *x, right], [y, *(y + offsets), y])


def nonlinear_spring(axis: Axes, left: float, right: float, y: float) -> None:
    """A spring with an arrow across."""
    spring(axis, left, right, y)
    middle, half = 0.5 * (left + right), 0.3
    arrow(axis, middle - half, y - 1.5 * SIZE, middle + half, y + 1.5 * SIZE)


def damper(axis: Axes, left: float, right: float, y: float) -> None:
    """A piston in a cup."""
    middle = 0.5 * (left + right)
    a, b = middle - 0.2, middle + 0.2
    line(axis, [left, a], [y, y])
    line(axis, [b, a, a, b], [y + SIZE, y + SIZE, y - SIZE, y - SIZE])
    line(axis, [middle + 0.06] * 2, [y - 0.75 * SIZE, y + 0.75 * SIZE])
    line(axis, [middle + 0.06, right], [y, y])


def slider(axis: Axes, left: float, right: float, y: float) -> None:
    """A block that rubs on a rough plate."""
    middle, half = 0.5 * (left + right), 0.22
    line(axis, [left, middle - 1.3 * half], [y - SIZE, y - SIZE])
    line(axis, [middle - 1.3 * half, middle + 1.3 * half], [y - SIZE, y - SIZE])
    for x in np.linspace(middle - 1.2 * half, middle + 1.2 * half, 7):
        line(axis, [x, x - 0.06], [y - SIZE, y - SIZE - 0.08], lw=0.7)
    block = [middle - half, middle + half, middle + half, middle - half, middle - half]
    line(axis, block, [y - SIZE, y - SIZE, y + 0.6 * SIZE, y + 0.6 * SIZE, y - SIZE])
    line(axis, [middle + half, right], [y, y])


def spring_and_slider(axis: Axes, left: float, right: float, y: float) -> None:
    """A spring in series with a slider."""
    middle = left + 0.52 * (right - left)
    slider(axis, left, middle, y)
    spring(axis, middle, right, y)


def gap_spring(axis: Axes, left: float, right: float, y: float) -> None:
    """A spring with clearance at its second end."""
    middle = left + 0.62 * (right - left)
    other = middle + np.copysign(0.14, right - left)
    spring(axis, left, middle, y)
    for x in (middle, other):
        line(axis, [x, x], [y - SIZE, y + SIZE])
    line(axis, [other, right], [y, y])


def contact(axis: Axes, left: float, right: float, y: float) -> None:
    """Two plates with a gap between them."""
    middle = 0.5 * (left + right)
    for x in (middle - 0.07, middle + 0.07):
        line(axis, [x, x], [y - 1.2 * SIZE, y + 1.2 * SIZE], lw=1.8)
    line(axis, [left, middle - 0.07], [y, y])
    line(axis, [middle + 0.07, right], [y, y])


def motor(axis: Axes, left: float, right: float, y: float) -> None:
    """The circle of a rotor with the letter M, and the two wires of its circuit."""
    from matplotlib.patches import Circle

    middle, radius = 0.5 * (left + right), 1.15 * SIZE
    line(axis, [left, middle - radius], [y, y])
    line(axis, [middle + radius, right], [y, y])
    for x in (middle - 0.4 * radius, middle + 0.4 * radius):
        line(axis, [x, x], [y - 0.9 * radius, y - 1.5 * radius])
        axis.plot([x], [y - 1.6 * radius], "o", ms=2.5, mfc="none", color=INK, mew=0.9)
    axis.add_patch(Circle((middle, y), radius, fill=False, ec=INK, lw=1.1))
    axis.text(middle, y, "M", fontsize=8, ha="center", va="center", color=INK)


def box(axis: Axes, left: float, right: float, y: float) -> None:
    """A box, for all other elements."""
    middle, half = 0.5 * (left + right), 0.26
    line(axis, [left, middle - half], [y, y])
    corners = [middle - half, middle + half, middle + half, middle - half, middle - half]
    line(axis, corners, [y - SIZE, y - SIZE, y + SIZE, y + SIZE, y - SIZE])
    line(axis, [middle + half, right], [y, y])


def ground(axis: Axes, x: float, y: float, side: int) -> None:
    """A piece of the ground whose free side is to the right (``side`` 1) or to the left (-1)."""
    line(axis, [x, x], [y - 0.26, y + 0.26], lw=1.4)
    for foot in np.linspace(y - 0.24, y + 0.2, 6):
        line(axis, [x, x - 0.1 * side], [foot + 0.06, foot - 0.02], lw=0.7)


def arrow(axis: Axes, x0: float, y0: float, x1: float, y1: float, ends: str = "-|>") -> None:
    """Draw an arrow from one place to another."""
    axis.annotate(
        "",
        (x1, y1),
        (x0, y0),
        arrowprops={"arrowstyle": ends, "color": INK, "lw": 1.2, "shrinkA": 0, "shrinkB": 0},
    )


Symbol = Callable[["Axes", float, float, float], None]
#: Symbols by the names that the classes of elements give them.
SYMBOLS: dict[str, Symbol] = {
    "spring": spring,
    "damper": damper,
    "nonlinear spring": nonlinear_spring,
    "gap spring": gap_spring,
    "slider": slider,
    "contact": contact,
    "spring and slider": spring_and_slider,
    "motor": motor,
}
