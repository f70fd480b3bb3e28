"""``jfric response``: steady states over the frequency of a load."""

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
from jfric.cli.completion import parameter_paths


@app.command(
    epilog="Example: jfric response configs/p6_duffing.toml --load load --from 0.6 --to 1.6 "
    "--quantity x,energy_loss --plot"
)
@one_sentence
def response(
    config: ConfigPath,
    load: Annotated[
        str | None,
        typer.Option(
            help="Load, support or belt whose frequency varies, by its name.",
            metavar="NAME",
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", help="First frequency \\[rad/s], or with its unit.", metavar="VALUE"
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", help="Last frequency \\[rad/s], or with its unit.", metavar="VALUE"),
    ] = None,
    quantity: Annotated[
        str | None,
        typer.Option(
            help="What to keep and draw, separated by commas: x (amplitude), harmonic.x(3), "
            "phase.x, rms.x, max.v.x, energy_loss ...; by default the amplitude of the first "
            "degree of freedom.",
            metavar="NAMES",
        ),
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            help="Further parameter with one curve for each value, PATH=LOW:HIGH:COUNT or "
            "PATH=\\[A, B, ...]. At most two.",
            metavar="PATH=VALUES",
            autocompletion=parameter_paths,
        ),
    ] = None,
    set_: Settings = None,
    flow: Flow = None,
    rtol: Rtol = None,
    option: Options = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the results, instead of results/<name of the file>/response-NNN. "
            "The same command goes on after an interruption.",
            metavar="FOLDER",
        ),
    ] = None,
    devices: Annotated[
        int | None, typer.Option(help="Devices (CPU cores, GPUs) to use; all by default.")
    ] = None,
    json_: Annotated[
        Path | None,
        typer.Option("--json", help="Also write curves and peaks there (JSON).", metavar="FILE"),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(help="Write the table there, instead of into the folder.", metavar="FILE"),
    ] = None,
    plot: Plot = False,
) -> None:
    """Follow the steady states of a system over the frequency of a load, round folds.

    Prints peaks and special points of each curve and writes all points (CSV). Exit status: 0, 1
    where a curve is not complete, 2 for bad input.
    """
    from jfric.cli.run_response import run_response
    from jfric.cli.run_sweep import use_devices
    from jfric.files.solver_choice import parse_options

    use_devices(devices)
    ok = run_response(
        console(),
        config,
        settings=set_ or [],
        load=load,
        ends=(from_, to),
        quantity=quantity,
        over=over or [],
        solver=parse_options(option or [], name=None, flow=flow, rtol=rtol),
        out=out,
        csv=csv,
        json_file=json_,
        plot=plot,
    )
    raise typer.Exit(0 if ok else 1)
