"""``jfric bifurcations`` and ``jfric lyapunov``: returns to a section and the growth of small
deviations, over parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jfric.cli.app import (
    ConfigPath,
    Flow,
    Options,
    Rtol,
    Settings,
    app,
    console,
    one_sentence,
)
from jfric.cli.completion import parameter_paths

Vary = Annotated[
    list[str],
    typer.Option(
        help="Parameter and its values, PATH=LOW:HIGH:COUNT, with :log in geometric progression, "
        "or PATH=\\[A, B, ...]. Values may carry units.",
        metavar="PATH=VALUES",
        autocompletion=parameter_paths,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the results (Zarr), instead of a free one in results/<name of the file>. "
        "The same command goes on after an interruption.",
        metavar="FOLDER",
    ),
]
Devices = Annotated[
    int | None, typer.Option(help="Devices (CPU cores, GPUs) to use; all by default.")
]
Plotted = Annotated[bool, typer.Option("--plot", help="Also draw the results (PNG).")]


@app.command(
    epilog="Example: jfric bifurcations configs/p1_ball.toml "
    "--vary base.table.displacement.amplitude=0.2:0.35:200 --observe v.z --section impact --plot"
)
@one_sentence
def bifurcations(
    config: ConfigPath,
    vary: Vary,
    observe: Annotated[
        str,
        typer.Option(
            help="Quantities at the returns, separated by commas: u, v.u.", metavar="NAMES"
        ),
    ],
    section: Annotated[
        str,
        typer.Option(
            help="Where states are taken: once in each period of the loads, at each impact, at "
            "each event.NAME, or after an interval such as '0.5 s'.",
            metavar="NAME|TIME",
        ),
    ] = "period",
    returns: Annotated[int, typer.Option(help="Last returns that are kept.")] = 50,
    skip: Annotated[int, typer.Option(help="Returns before them.")] = 200,
    set_: Settings = None,
    flow: Flow = None,
    rtol: Rtol = None,
    option: Options = None,
    out: Out = None,
    devices: Devices = None,
    plot: Plotted = False,
) -> None:
    """Draw a bifurcation diagram by brute force: the last returns of motions over a parameter.

    Exit status: 0, 1 where a run failed, 2 for bad input.
    """
    from jfric.cli.run_returns import run_bifurcations
    from jfric.cli.run_sweep import use_devices
    from jfric.files.solver_choice import parse_options

    use_devices(devices)
    ok = run_bifurcations(
        console(),
        config,
        settings=set_ or [],
        vary=vary,
        observe=observe,
        section=section,
        returns=returns,
        skip=skip,
        solver=parse_options(option or [], name=None, flow=flow, rtol=rtol),
        out=out,
        plot=plot,
    )
    raise typer.Exit(0 if ok else 1)


@app.command(
    epilog="Example: jfric lyapunov configs/p1_ball.toml --interval '1 s' "
    "--vary base.table.displacement.amplitude=0.2:1:50 --plot"
)
@one_sentence
def lyapunov(
    config: ConfigPath,
    vary: Vary,
    interval: Annotated[
        str,
        typer.Option(
            help="After which deviations are measured: the period of the loads, or a time such as "
            "'0.5 s'. It must not end at impacts.",
            metavar="period|TIME",
        ),
    ] = "period",
    intervals: Annotated[int, typer.Option(help="Intervals in all.")] = 1000,
    skip: Annotated[int, typer.Option(help="Intervals before them.")] = 100,
    parts: Annotated[int, typer.Option(help="Parts of a run, whose scatter tells the error.")] = 10,
    set_: Settings = None,
    flow: Flow = None,
    rtol: Rtol = None,
    option: Options = None,
    out: Out = None,
    devices: Devices = None,
    plot: Plotted = False,
) -> None:
    """Compute the largest Lyapunov exponent, through events, over parameters.

    Exit status: 0, 1 where a run failed, 2 for bad input.
    """
    from jfric.cli.run_returns import run_lyapunov
    from jfric.cli.run_sweep import use_devices
    from jfric.files.solver_choice import parse_options

    use_devices(devices)
    ok = run_lyapunov(
        console(),
        config,
        settings=set_ or [],
        vary=vary,
        interval=interval,
        counts={"intervals": intervals, "skip": skip, "parts": parts},
        solver=parse_options(option or [], name=None, flow=flow, rtol=rtol),
        out=out,
        plot=plot,
    )
    raise typer.Exit(0 if ok else 1)
