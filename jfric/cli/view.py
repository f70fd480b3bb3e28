"""``jfric view``: a stored result as an interactive page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jfric.cli.app import command, wrote
from jfric.cli.kept_results import write_page
from jfric.cli.options import argument, setting


@dataclass(frozen=True, kw_only=True)
class ViewSettings:
    """Settings of ``jfric view``."""

    result: Path = argument(
        "A run (run-001.json), a sweep (sweep-001.zarr) or a fit (fit-001.json), or a folder of "
        "them, of which the newest is taken.",
        ...,
        metavar="RESULT",
    )
    out: Path | None = setting(
        "Page to write, instead of one beside the result.", metavar="FILE.html"
    )


@command("Simulate", epilog="Example, after jfric run ve0116.toml: jfric view results/ve0116")
def view(given: ViewSettings) -> None:
    """Write a stored run, sweep or fit as one HTML page that needs no network.

    A run: motion, forces, events and modes in time, phase portraits; a sweep: curves and maps with
    a slider for each other parameter; a fit: simulated beside measured, and residuals.
    """
    from jfric.figures.view.stored import find
    from jfric.figures.view.view import view_page

    kind, place = find(given.result)
    path = given.out or place.with_suffix(".html")
    write_page(path, view_page(kind, place), "--out")
    wrote(path)
