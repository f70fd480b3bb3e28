"""Folders in which results are kept while they are computed, and figures beside them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jfric.cli.app import called
from jfric.cli.interrupt import kept
from jfric.errors import ProblemError
from jfric.files import output

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

T = TypeVar("T")


def computed_into(
    config: Path, out: Path | None, kind: str, compute: Callable[[Path], T]
) -> tuple[T, Path]:
    """Result of ``compute``, and the folder in which ``compute`` keeps the result: ``out``, or the
    next free ``KIND-NNN`` of the configuration."""
    store = out if out is not None else free_folder(Path("results") / config.stem, kind)
    try:
        with kept(lambda: keeps(store)):
            return compute(store), store
    except ProblemError:
        with contextlib.suppress(OSError):  # only a folder that was reserved and never used
            store.rmdir()
        raise


def keeps(store: Path) -> str:
    """Sentence on the results that are kept of an interrupted run."""
    return f"interrupted; what is finished is kept, the same command with --out {store} goes on"


def free_folder(directory: Path, kind: str, ending: str = ".zarr") -> Path:
    """The next free name ``KIND-NNN`` with its ``ending``, reserved at once."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            path = directory / f"{kind}-{number:03d}{ending}"
            with contextlib.suppress(FileExistsError):
                path.mkdir()
                return path
    except OSError as error:
        raise ProblemError(f"--out: cannot write to {directory} ({error.strerror})") from None
    raise AssertionError  # numbers do not end


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write ``content`` with the command that was called."""
    output.write_json(path, {"command": called()} | dict(content))


def print_counts(console: Console, total: int, computed: int, seconds: float) -> None:
    """How many trajectories were there already, and how many were computed now."""
    if total > computed:
        console.print(
            f"{total - computed:,} of {total:,} trajectories were there already", markup=False
        )
    if computed:
        console.print(
            f"{computed:,} trajectories in {seconds:.1f} s, compilation included", markup=False
        )


def write_figure(
    console: Console, path: Path, figure: Callable[[], Figure], option: str = "--plot"
) -> None:
    """Draw to ``path`` and say so."""
    try:
        figure().savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise ProblemError(f"{option}: cannot write {path} ({error})") from None
    console.print(f"wrote {path}", markup=False, soft_wrap=True)
