"""The page of any stored result."""

from __future__ import annotations

from pathlib import Path

from jfric.figures.view.stored import Kind, read_run
from jfric.optional import import_plotly


def view_page(kind: Kind, path: Path) -> str:
    """The page, as text, of the result of this kind at ``path``."""
    import_plotly()
    if kind == "run":
        from jfric.figures.view.run_view import run_page

        return run_page(read_run(path), path.stem)
    if kind == "sweep":
        from jfric.figures.view.sweep_view import sweep_page
        from jfric.sweeps.store import open_sweep

        return sweep_page(open_sweep(path), path.stem)
    from jfric.figures.view.fit_view import fit_page, read_fit

    return fit_page(read_fit(path), path.stem)
