"""``jfric compare``: laws of friction on measured files that they were not fitted to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jfric.cli.app import Measured, Settings, app, console, one_sentence, status
from jfric.cli.completion import parameter_paths
from jfric.cli.loading import load_changed
from jfric.cli.run_fit import free_of, to_seconds
from jfric.errors import ProblemError


@app.command(
    epilog="Example: jfric compare axis.toml --data run.csv --free mass.m=1:10 --folds 4",
)
@one_sentence
def compare(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="TOML file that describes the system.")
    ],
    data: Measured = None,
    free: Annotated[
        list[str] | None,
        typer.Option(
            help="What is free in every law beside its own coefficients, PATH=LOW:HIGH. "
            "Repeatable; the table fit of the file unless given.",
            metavar="PATH=LOW:HIGH",
            autocompletion=parameter_paths,
        ),
    ] = None,
    law: Annotated[
        list[str] | None,
        typer.Option(
            help="One of the laws that are compared: viscous, Coulomb, 'Coulomb + viscous', "
            "asymmetric, Stribeck, load-dependent, curve. Repeatable; all unless given.",
            metavar="NAME",
        ),
    ] = None,
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            help="What laws are judged by: 'closed loop', 'inverse dynamics', windows, 'open "
            "loop'. Repeatable; all that the records allow unless given.",
            metavar="NAME",
        ),
    ] = None,
    fitted_to: Annotated[
        str | None,
        typer.Option(
            help="The criterion that is minimised; the closed loop where there is a controller, "
            "else windows.",
            metavar="NAME",
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            help="Pieces of every record that are left out in turns; whole records, or four "
            "pieces of fewer than three, unless given.",
        ),
    ] = None,
    lap: Annotated[
        str | None, typer.Option(help="Leave out pieces of this length.", metavar="TIME")
    ] = None,
    window: Annotated[
        str | None, typer.Option(help="Length of the windows, 1 s unless given.", metavar="TIME")
    ] = None,
    hold: Annotated[
        str, typer.Option(help="Inputs between samples: zero or linear.", metavar="NAME")
    ] = "zero",
    starts: Annotated[int, typer.Option(help="Starts of the optimiser for each fit.")] = 1,
    set_: Settings = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Result (JSON), instead of results/<name>/compare-NNN.json."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page with the figure.", metavar="FILE.html")
    ] = None,
) -> None:
    """Compare laws of friction on what they were not fitted to.

    Exit status: 0 where a law is recommended, 1 where none can be, 2 for bad input.
    """
    if not data:
        raise ProblemError("--data: missing, such as --data record.csv")
    from jfric.cli.fit_record import checksum, write_record
    from jfric.cli.run_fit import read_records
    from jfric.files.output import reserve, versions
    from jfric.files.write_toml import dump
    from jfric.fits.comparison.compare_laws import compare_laws

    chosen = load_changed(config, set_, controller=True)
    found = free_of(chosen, free, required=False)
    records = read_records(chosen, data)
    with status(config.stem) as announce:
        result = compare_laws(
            chosen.problem,
            records,
            found,
            laws=law,
            criteria=criterion,
            fitted_to=fitted_to,
            folds=folds,
            lap=to_seconds(lap, "--lap"),
            window=to_seconds(window, "--window"),
            controller=chosen.controller,
            hold=hold,
            starts=starts,
            announce=announce,
        )
    record = {
        "config": dump(chosen),
        "config_path": chosen.path,
        "data": [{"path": str(p), "sha256": checksum(p)} for p in data],
        "versions": versions(),
        **result.to_dict(),
    }
    path = out if out is not None else reserve(Path("results") / config.stem, "compare")
    write_record(path, record)
    if report is not None:
        from jfric.figures.fit_page import write_comparison

        write_comparison(report, chosen, result, record)
    terminal = console()
    terminal.print(chosen.title or config.stem, style="bold", markup=False)
    terminal.print(str(result), markup=False, soft_wrap=True)
    for file in (path, report):
        if file is not None:
            terminal.print(f"wrote {file}", markup=False)
    raise typer.Exit(0 if result.recommended is not None else 1)
