"""``jfric init``: a file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jfric.cli.app import app, console, one_sentence
from jfric.cli.completion import starting_files
from jfric.files.starting_files import STARTERS, write_starter
from jfric.verification.configs import config_directory

_KINDS = "; ".join(f"{kind}: {what}" for kind, what in STARTERS.items())


@app.command(epilog="Example: jfric init oscillator drive.toml")
@one_sentence
def init(
    kind: Annotated[
        str,
        typer.Argument(
            help=f"{_KINDS}; or a system of the package by its name, such as ve0116.",
            metavar="|".join([*STARTERS, "NAME"]),
            autocompletion=starting_files,
        ),
    ],
    path: Annotated[
        Path | None, typer.Argument(help="File to write; KIND.toml unless given.", metavar="FILE")
    ] = None,
) -> None:
    """Write a file to begin with, and the JSON schema by which editors complete it.

    Nothing that exists is overwritten. Exit status: 0, 2 for bad input.
    """
    chosen = path or Path(f"{kind}.toml")
    systems = {p.stem: p for p in sorted(config_directory().glob("*.toml"))}
    written = write_starter(kind, chosen, systems)
    terminal = console()
    terminal.print(f"wrote {', '.join(str(p) for p in written)}", markup=False)
    terminal.print(f"next: {_next(kind, chosen)}", markup=False)


def _next(kind: str, path: Path) -> str:
    if kind == "fit":
        data = path.with_suffix(".csv")
        return f"jfric fit {path} --data {data} --free friction.limit=0.01:1 --free spring.k=1:100"
    return f"jfric run {path} --plot"
