"""Common parts of the experiments: arguments, tables, figures, and curves split at events."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from matplotlib.figure import Figure

import jfric
from jfric.figures.curves import motion_curve, phases
from jfric.files.read_toml import load_config
from jfric.verification.configs import shipped

jax.config.update("jax_enable_x64", True)

#: Colours that colour-blind readers can tell apart.
BLUE, RED, GREEN, PURPLE, GOLD, TEAL = (
    "#1f4e79", "#c0504d", "#3a7d44", "#7b4ea3", "#b8860b", "#2a9d9d"
)  # fmt: skip
GREY = "#9a9a9a"


def folder(description: str | None) -> Path:
    """The folder for figures from the command line; it is created."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/figures"), help="folder")
    path = parser.parse_args().out
    path.mkdir(parents=True, exist_ok=True)
    return path


def problem(name: str) -> jfric.Problem:
    """The system of a shipped file."""
    return load_config(shipped(name)).problem


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, its first column aligned to the left and the others to the right."""
    rows = [list(row) for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *rows]) for i in range(len(header))]
    print(f"\n{title}")
    for line in [list(header), *rows]:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())


def figure(width: float, height: float, rows: int, columns: int, **options):
    """A figure and its axes (an array), with light grids."""
    made = Figure(figsize=(width, height), layout="constrained")
    axes = np.atleast_1d(made.subplots(rows, columns, **options))
    for axis in axes.flat:
        axis.grid(visible=True, color="#000000", alpha=0.12, lw=0.6)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    return made, axes


def save(made: Figure, path: Path, title: str) -> None:
    """Write a figure and print its path."""
    made.suptitle(title, fontsize=12, fontweight="bold", x=0.012, ha="left")
    made.savefig(path, dpi=150)
    print(f"wrote {path}")


class Piece(NamedTuple):
    """A stretch of a motion between two events, in the mode ``label``."""

    label: str
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray


def pieces(solution: jfric.Solution, axis: str, contact: int = 0) -> list[Piece]:
    """The motion of a degree of freedom, split where ``names[contact]`` changes its mode; each
    piece ends with the state before the event and begins with the one after it."""
    column = solution.axes.index(axis)
    times, q = motion_curve(solution, "q", column)
    _, v = motion_curve(solution, "v", column)
    result = []
    for start, end, label in phases(solution, contact):
        first = np.searchsorted(times, start, side="left")
        # The first entry at an event is the state before it.
        at_start = np.isclose(times[first], start, rtol=0, atol=1e-12) and start > times[0]
        last = np.searchsorted(times, end, side="left")
        part = slice(first + at_start, last + 1)
        result.append(Piece(label, times[part], q[part], v[part]))
    return result


def shade(axis, solution: jfric.Solution, contact: int = 0) -> None:
    """Draw phases of a contact as colours behind a curve over time."""
    from jfric.figures.trajectory_figure import MODES

    for start, end, label in phases(solution, contact):
        axis.axvspan(start, end, color=MODES.get(label, "#dddddd"), alpha=0.4, lw=0, zorder=0)


def phase_legend(axis, labels: Iterable[str], **options) -> None:
    """Add a legend of the colours of :func:`shade` to that of the curves."""
    from matplotlib.patches import Patch

    from jfric.figures.trajectory_figure import MODES

    handles, _ = axis.get_legend_handles_labels()
    handles += [Patch(color=MODES[x], alpha=0.4, lw=0, label=x) for x in labels]
    axis.legend(handles=handles, frameon=False, fontsize=8, **options)
