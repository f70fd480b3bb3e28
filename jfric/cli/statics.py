"""``jfric equilibria`` and ``jfric trace``: systems at rest."""

from __future__ import annotations

from typing import Annotated

import typer

from jfric.cli.app import ConfigPath, Plot, ResultFolder, Settings, app, console, one_sentence
from jfric.cli.completion import parameter_paths


@app.command(epilog="Example: jfric equilibria configs/janovsky_static_e5.toml")
@one_sentence
def equilibria(
    config: ConfigPath,
    set_: Settings = None,
    rest: Annotated[
        bool,
        typer.Option("--rest", help="Where the system can stay at rest, as intervals."),
    ] = False,
    starts: Annotated[
        int, typer.Option(help="Starts of Newton's method, with many contacts.")
    ] = 64,
) -> None:
    """Print all equilibria of a system with friction, from its initial position as reference.

    Exit status: 0, 1 where there is none, 2 for bad input.
    """
    from jfric.cli.run_statics import print_equilibria

    found = print_equilibria(console(), config, set_ or [], rest=rest, starts=starts)
    raise typer.Exit(0 if found else 1)


@app.command(
    epilog="Example: jfric trace configs/janovsky_static_fold.toml "
    "--vary parameters.ftau=2.5:-2.5 --plot",
)
@one_sentence
def trace(
    config: ConfigPath,
    vary: Annotated[
        str | None,
        typer.Option(
            metavar="PATH=START:STOP",
            autocompletion=parameter_paths,
            help="Parameter and its interval; by default those of the file's table \\[statics].",
        ),
    ] = None,
    set_: Settings = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="Values of the parameter at which branches are looked for."),
    ] = None,
    show: Annotated[
        str | None,
        typer.Option(help="Degrees of freedom to draw, separated by commas.", metavar="NAMES"),
    ] = None,
    contact: Annotated[
        str | None,
        typer.Option(help="Contact whose modes give the line styles.", metavar="NAME"),
    ] = None,
    out: ResultFolder = None,
    plot: Plot = False,
) -> None:
    """Follow all equilibria over a parameter through folds and changes of mode.

    Prints the special points and writes all rows (CSV). Exit status: 0, 2 for bad input.
    """
    from jfric.cli.run_statics import print_path

    names = None if show is None else [name.strip() for name in show.split(",")]
    print_path(
        console(),
        config,
        set_ or [],
        vary=vary,
        seeds=seeds,
        show=names,
        contact=contact,
        out=out,
        plot=plot,
    )
