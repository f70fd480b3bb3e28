"""``jfric basins``: which attractor each of many initial states reaches."""

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
    SolverName,
    app,
    called,
    console,
    one_sentence,
)
from jfric.cli.completion import parameter_paths


@app.command(
    epilog="Example: jfric basins oscillator.toml "
    "--plane initial.q=-4:0.5:200 --plane initial.v=-4:4:200 --out basins.zarr --plot"
)
@one_sentence
def basins(
    config: ConfigPath,
    plane: Annotated[
        list[str],
        typer.Option(
            help="Initial state and its values, PATH=LOW:HIGH:COUNT, or PATH=\\[A, B, ...]; "
            "sampled methods take PATH=LOW:HIGH. Values may carry units. Repeatable.",
            metavar="PATH=VALUES",
            autocompletion=parameter_paths,
        ),
    ],
    section: Annotated[
        str,
        typer.Option(
            help="Where motions are compared with themselves: once in each period of the loads, at "
            "each impact, at each event.NAME, or after an interval such as '0.5 s'.",
            metavar="NAME|TIME",
        ),
    ] = "period",
    longest: Annotated[int, typer.Option(help="Longest period in returns.")] = 8,
    tolerance: Annotated[
        float, typer.Option(help="Relative distance below which a state comes back.")
    ] = 1e-7,
    give_up: Annotated[int, typer.Option(help="Returns after which nothing is recognised.")] = 500,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the results (Zarr), instead of results/<name of the file>/basins-NNN. "
            "The same command goes on after an interruption.",
            metavar="FOLDER",
        ),
    ] = None,
    set_: Settings = None,
    method: Annotated[
        str,
        typer.Option(help="grid, zip, random, sobol or latin-hypercube.", metavar="NAME"),
    ] = "grid",
    samples: Annotated[
        int | None, typer.Option(help="Number of points of a sampled method.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of a sampled method.")] = 0,
    solver: SolverName = None,
    flow: Flow = None,
    rtol: Rtol = None,
    option: Options = None,
    chunk: Annotated[int | None, typer.Option(help="Trajectories that step together.")] = None,
    devices: Annotated[
        int | None, typer.Option(help="Devices (CPU cores, GPUs) to use; all by default.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Compute in that many processes, through Dask.")
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Also draw the basins (PNG).")] = False,
) -> None:
    """Find the attractors of a system and which initial states reach each of them.

    Exit status: 0, 1 where a run failed, 2 for bad input.
    """
    from jfric.cli.run_basins import run_basins
    from jfric.cli.run_sweep import use_devices
    from jfric.files.solver_choice import parse_options

    use_devices(1 if workers is not None else devices)
    ok = run_basins(
        console(),
        config,
        settings=set_ or [],
        plane=plane,
        section=section,
        recognition={"longest": longest, "tolerance": tolerance, "give_up": give_up},
        method=method,
        samples=samples,
        seed=seed,
        solver=parse_options(option or [], name=solver, flow=flow, rtol=rtol),
        out=out,
        plot=plot,
        command=called(),
        chunk=chunk,
        devices=devices,
        workers=workers,
    )
    raise typer.Exit(0 if ok else 1)
