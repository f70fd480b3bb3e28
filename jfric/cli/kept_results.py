"""Folders in which results are stored during a computation, and figures next to them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jfric.cli.app import called, tell, wrote
from jfric.cli.interrupt import kept
from jfric.errors import ProblemError, writing

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

T = TypeVar("T")

KEPT = "interrupted; what is finished is kept, the same command with --out {} goes on"


def write_page(path: Path, text: str, option: str) -> None:
    """Write a page to ``path``, which this ``option`` names; raises :class:`ProblemError` where it
    cannot be written."""
    with writing(option, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def computed_into(
    given: Any,
    kind: str,
    compute: Callable[[Path], T],
    ending: str = ".zarr",
    keeps: Callable[[Path], str] = lambda store: KEPT.format(store),
) -> tuple[T, Path]:
    """Result of ``compute``, and the folder in which ``compute`` stores the result: that of the
    option ``--out``, or the next free ``KIND-NNN`` of the configuration. ``keeps``: sentence on the
    stored part of an interrupted run."""
    from jfric.files.output import reserve

    store = given.out or reserve(given.folder, kind, ending, folder=True)
    try:
        with kept(lambda: keeps(store)):
            return compute(store), store
    except ProblemError:
        with contextlib.suppress(OSError):  # only a folder that was reserved and never used
            store.rmdir()
        raise


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write ``content`` with the command line of this call."""
    from jfric.files import output

    output.write_json(path, {"command": called()} | dict(content))


def write_rows(
    folder: Path,
    kind: str,
    columns: Mapping[str, np.ndarray],
    content: Mapping[str, Any],
    units: Mapping[str, str] | None = None,
    ending: str = ".csv",
) -> list[Path]:
    """Write the columns of a result (CSV or another ``ending``), and beside them its ``content``
    (JSON), under the next free name ``KIND-NNN`` in ``folder``; returns the two files."""
    from jfric.files import output

    place = output.reserve(folder, kind)
    table = place.with_suffix(ending)
    output.write_trajectory(table, dict(columns), dict(units or dict.fromkeys(columns, "")))
    write_json(place, {**content, "trajectory": table.name})
    return [table, place]


def print_counts(total: int, computed: int, seconds: float) -> None:
    """Print the numbers of stored and of newly computed trajectories."""
    if total > computed:
        tell(f"{total - computed:,} of {total:,} trajectories were there already")
    if computed:
        tell(f"{computed:,} trajectories in {seconds:.1f} s, compilation included")


def write_figure(path: Path, figure: Callable[[], Figure], option: str = "--plot") -> None:
    """Draw to ``path`` and print its name."""
    save_figure(path, figure, option)
    wrote(path)


def add_figure(files: list[Path], figure: Callable[[], Figure]) -> None:
    """Draw to the name of the first of ``files``, and add the picture to them."""
    files.append(save_figure(files[0].with_suffix(".png"), figure))


def save_figure(path: Path, figure: Callable[[], Figure], option: str = "--plot") -> Path:
    """Draw to ``path``; raises :class:`jfric.ProblemError` if it cannot be written."""
    with writing(option, path, ValueError):
        figure().savefig(path, dpi=150)
    return path
