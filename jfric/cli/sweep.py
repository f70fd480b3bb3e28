"""``jfric sweep`` and ``jfric plot``: many simulations, and their figures."""

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
    epilog="Example: jfric sweep configs/ve0116.toml --vary friction.mu=0.05:0.3:1000 "
    "--observe final.u,stop_time,max.v --out mu.zarr --plot"
)
@one_sentence
def sweep(
    config: ConfigPath,
    vary: Annotated[
        list[str],
        typer.Option(
            help="Parameter and its values, PATH=LOW:HIGH:COUNT, with :log in geometric "
            "progression, or PATH=\\[A, B, ...]; sampled methods take PATH=LOW:HIGH. Values may "
            "carry units. Repeatable.",
            metavar="PATH=VALUES",
            autocompletion=parameter_paths,
        ),
    ],
    observe: Annotated[
        str,
        typer.Option(
            help="What to keep, separated by commas: final.u, max.v, stop_time, event_time(2), "
            "dissipated, stick_fraction, impulse.stop, u(1 s), u(t) ... (stop_time: from then on "
            "nothing moves; last_event_time: the last change of mode).",
            metavar="NAMES",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the results (Zarr), instead of results/<name of the file>/sweep-NNN. "
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
    times: Annotated[
        str | None,
        typer.Option(
            help="Times of u(t): a number of them, or a list '0.5, 1, 20 ms'.", metavar="N|LIST"
        ),
    ] = None,
    solver: SolverName = None,
    flow: Flow = None,
    rtol: Rtol = None,
    option: Options = None,
    chunk: Annotated[int | None, typer.Option(help="Trajectories that step together.")] = None,
    block: Annotated[int | None, typer.Option(help="Trajectories stored together.")] = None,
    devices: Annotated[
        int | None, typer.Option(help="Devices (CPU cores, GPUs) to use; all by default.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Compute in that many processes, through Dask.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Compute on the Dask cluster at tcp://host:port, or of a scheduler file.",
            metavar="ADDRESS",
        ),
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Also draw the results (PNG).")] = False,
) -> None:
    """Simulate for many parameter values and keep what is observed, as a labelled table.

    Exit status: 0, 1 where a trajectory failed, 2 for bad input.
    """
    from jfric.cli.run_sweep import run_sweep, use_devices
    from jfric.files.solver_choice import parse_options

    use_devices(1 if workers is not None or scheduler is not None else devices)
    ok = run_sweep(
        console(),
        config,
        settings=set_ or [],
        vary=vary,
        observe=observe,
        method=method,
        samples=samples,
        seed=seed,
        times=times,
        solver=parse_options(option or [], name=solver, flow=flow, rtol=rtol),
        out=out,
        plot=plot,
        command=called(),
        chunk=chunk,
        block=block,
        devices=devices,
        workers=workers,
        scheduler=scheduler,
    )
    raise typer.Exit(0 if ok else 1)


@app.command("plot", epilog="Example: jfric plot mu.zarr --observe final.u")
@one_sentence
def plot_results(
    store: Annotated[Path, typer.Argument(metavar="RESULTS", help="Results of a sweep (Zarr).")],
    observe: Annotated[
        str | None,
        typer.Option(help="Observables to draw; all by default.", metavar="NAMES"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Figure to write, instead of one beside the results.")
    ] = None,
) -> None:
    """Draw the results of a sweep: curves, maps, or a scatter matrix of samples."""
    from jfric.cli.run_sweep import draw
    from jfric.results.grammar import split

    draw(console(), store, split(observe) if observe is not None else None, out)
