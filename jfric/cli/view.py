"""``jfric view``: a stored result as an interactive page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jfric import sweeps
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
        "Page to write, instead of one next to the result.", metavar="FILE.html"
    )


@command("Simulate", epilog="Example, after jfric run ve0116.toml: jfric view results/ve0116")
def view(given: ViewSettings) -> None:
    """Write a stored run, sweep or fit as one HTML page that needs no network.

    A run: motion, forces, events and modes in time, phase portraits; a sweep: curves and maps with
    a slider for each other parameter; a fit: simulated and measured motion, and residuals.
    """
    from jfric.figures.view.stored import find, read_run
    from jfric.optional import import_plotly

    kind, place = find(given.result)
    import_plotly()
    if kind == "run":
        from jfric.figures.view.run_view import run_page

        page = run_page(read_run(place), place.stem)
    elif kind == "sweep":
        from jfric.figures.view.sweep_view import sweep_page

        page = sweep_page(sweeps.open_sweep(place), place.stem)
    else:
        from jfric.figures.view.fit_view import fit_page, read_fit

        page = fit_page(read_fit(place), place.stem)
    path = given.out or place.with_suffix(".html")
    write_page(path, page, "--out")
    wrote(path)
