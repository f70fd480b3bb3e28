"""``jfric periodic``: a periodic motion of a system, and its path over a parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
from jfric.cli.completion import parameter_paths


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
            autocompletion=parameter_paths,
            help="Follow the motion over this parameter; values may carry units. With --branch and "
            "--curve by default that of the file.",
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            metavar="KIND(NUMBER)",
            help="Follow the branch that leaves this special point of the path as well: flip(1) or "
            "branch_point(1).",
        ),
    ] = None,
    side: Annotated[
        int, typer.Option(help="To which side the branch leaves, 1 or -1.", metavar="1|-1")
    ] = 1,
    curve: Annotated[
        str | None,
        typer.Option(
            metavar="KIND(NUMBER)",
            help="Follow this special point of the path over a second parameter: fold(1), flip(1), "
            "torus(1) or event_change(1).",
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="PATH=STOP[:COUNT]",
            autocompletion=parameter_paths,
            help="The second parameter of --curve, from its value in the file to this one.",
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
    motion over a period, or all motions over a parameter (CSV), those on a branch, and where a
    special point lies in two parameters. Exit status: 0, 1 where there is none, 2 for bad input.
    """
    from jfric.cli.run_path import run_path
    from jfric.cli.run_periodic import run_periodic
    from jfric.files.solver_choice import parse_options

    shared: Any = {
        "settings": set_ or [],
        "show": show,
        "solver": parse_options(option or [], name=None, flow=flow, rtol=rtol),
        "out": out,
        "plot": plot,
    }
    if parameter is branch is curve is over is None:
        ok = run_periodic(console(), config, **shared)
    else:
        more = {"parameter": parameter, "branch": branch, "side": side}
        ok = run_path(console(), config, curve=curve, over=over, **more, **shared)
    raise typer.Exit(0 if ok else 1)
