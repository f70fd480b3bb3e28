"""``jfric periodic``: a periodic motion of a system, and its path over a parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jfric.cli.app import (
    ConfigPath,
    Flow,
    Options,
    Plot,
    Rtol,
    Settings,
    app,
    console,
    one_sentence,
)


@app.command(
    epilog="Example: jfric periodic configs/p1_ball.toml "
    "--parameter base.table.displacement.amplitude=0.1:0.3 --plot"
)
@one_sentence
def periodic(
    config: ConfigPath,
    parameter: Annotated[
        str | None,
        typer.Option(
            metavar="PATH=START:STOP",
            help="Follow the motion over this parameter; values may carry units.",
        ),
    ] = None,
    set_: Settings = None,
    show: Annotated[
        str | None,
        typer.Option(
            help="Observables of a period to write and draw, separated by commas (max.x, rms.v.x).",
            metavar="NAMES",
        ),
    ] = None,
    flow: Flow = None,
    rtol: Rtol = None,
    option: Options = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the result files, instead of results/<name of the file>, of a path "
            "with --parameter path-NNN there: the same command goes on after an interruption.",
            metavar="FOLDER",
        ),
    ] = None,
    plot: Plot = False,
) -> None:
    """Find the periodic motion that the table \\[periodic] of a file describes.

    Prints its period, Floquet multipliers, stability, events and energy per cycle, and writes the
    motion over a period, or all motions over a parameter (CSV). Exit status: 0, 1 where there is
    none, 2 for bad input.
    """
    from jfric.cli.run_periodic import run_periodic
    from jfric.files.solver_choice import parse_options

    ok = run_periodic(
        console(),
        config,
        settings=set_ or [],
        parameter=parameter,
        show=show,
        solver=parse_options(option or [], name=None, flow=flow, rtol=rtol),
        out=out,
        plot=plot,
    )
    raise typer.Exit(0 if ok else 1)
