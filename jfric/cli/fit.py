"""``jfric fit``: parameters from measured files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from jfric.cli.app import Settings, app, console, one_sentence, status
from jfric.cli.loading import load_changed
from jfric.cli.run_fit import RESIDUALS, parse_free, run_fit
from jfric.errors import ProblemError


@app.command(
    epilog="Example: jfric fit system.toml --data record.csv --free friction.mu=0.01:1 "
    "--report report.html",
)
@one_sentence
def fit(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="CONFIG", help="TOML file that describes the system."),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="Measured file: .csv, .parquet, .npz or .mat. Repeatable."),
    ] = None,
    free: Annotated[
        list[str] | None,
        typer.Option(
            help="Parameter and its bounds, PATH=LOW:HIGH; :linear or :log chooses the scale, "
            ":each a value for each record. Repeatable.",
            metavar="PATH=LOW:HIGH",
        ),
    ] = None,
    init: Annotated[
        Path | None,
        typer.Option(
            help="Print a table [data] for this measured file, to be checked, and end: columns, "
            "units, sample rate, what is missing.",
            metavar="FILE",
        ),
    ] = None,
    set_: Settings = None,
    residual: Annotated[
        str,
        typer.Option(
            help="output: simulated beside measured; input: force of the controller in closed "
            "loop; windows: short windows with free initial states; steady: periodic motions, "
            "for files without a column of times.",
            metavar="NAME",
        ),
    ] = "output",
    window: Annotated[
        str | None,
        typer.Option(
            help="Length of the windows: 1 s unless given; of --search shooting an eighth of the "
            "record.",
            metavar="TIME",
        ),
    ] = None,
    observe: Annotated[
        str | None, typer.Option(help="Signals to compare; all by default.", metavar="NAMES")
    ] = None,
    starts: Annotated[int, typer.Option(help="Starts of the optimiser.")] = 8,
    search: Annotated[
        str,
        typer.Option(
            help="starts: descents from the best of a sample; global: of a larger one, on growing "
            "parts of the records; shooting: on short windows before that.",
            metavar="NAME",
        ),
    ] = "starts",
    schedule: Annotated[
        str | None,
        typer.Option(
            help="Lengths of the growing parts, such as '1 s, 5 s'; the whole comes last.",
            metavar="TIMES",
        ),
    ] = None,
    hold: Annotated[
        str, typer.Option(help="Inputs between samples: zero or linear.", metavar="NAME")
    ] = "zero",
    loss: Annotated[
        str, typer.Option(help="linear, huber, soft_l1 or cauchy.", metavar="NAME")
    ] = "linear",
    seed: Annotated[int, typer.Option(help="Seed of the starts.")] = 0,
    comparison: Annotated[
        bool, typer.Option("--compare-laws", help="Also compare friction models on held-out data.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Result (JSON), instead of results/<name of the file>/fit-NNN.json."),
    ] = None,
    posterior: Annotated[
        int,
        typer.Option(
            help="Samples of the posterior to draw on the page (needs jfric\\[bayes]).", min=0
        ),
    ] = 0,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page with all plots.", metavar="FILE.html")
    ] = None,
) -> None:
    """Find parameters from measured files, with their uncertainty.

    Exit status: 0, 1 where the fit did not converge, 2 for bad input.
    """
    if init is not None:
        return _print_proposal(config, init)
    for name, value, example in (
        ("CONFIG", config, "system.toml"),
        ("--data", data, "--data record.csv"),
        ("--free", free, "--free friction.mu=0.01:1"),
    ):
        if not value:
            raise ProblemError(f"{name}: missing, such as {example}")
    assert config is not None
    assert data
    assert free
    from jfric.cli.fit_record import fit_record, write_record
    from jfric.errors import nearest
    from jfric.files.output import reserve
    from jfric.fits.optimise.levenberg_marquardt import Outcome
    from jfric.system.units import DIMENSIONS, UnitError, to_si

    if residual not in RESIDUALS:
        raise ProblemError(
            f"--residual: found {residual!r}{nearest(residual, RESIDUALS)}, allowed are "
            + ", ".join(RESIDUALS)
        )
    chosen = load_changed(config, set_)

    def time_of(option: str, text: str) -> float:
        try:
            return float(to_si(text.strip(), DIMENSIONS["time"]))  # pyright: ignore
        except UnitError as error:
            raise ProblemError(f"{option}: {error}") from None

    parts = None if schedule is None else [time_of("--schedule", t) for t in schedule.split(",")]
    found = parse_free(chosen, free)
    options: dict[str, Any] = {
        "residual": residual,
        "window": None if window is None else time_of("--window", window),
        "observe": None if observe is None else [name.strip() for name in observe.split(",")],
        "search": search,
        "schedule": parts,
        "starts": starts,
        "hold": hold,
        "loss": loss,
    }
    with status(config.stem) as announce:
        announce("fitting")
        result = run_fit(chosen, data, found, seed=seed, **options)
        scores = None
        if comparison:
            from jfric.fits.law_comparison import compare_laws

            scores = compare_laws(result, found)
        extra = (
            {} if scores is None else {"law_comparison": [dataclasses.asdict(s) for s in scores]}
        )
        record = fit_record(result, chosen, data, found, options, **extra)
        path = out if out is not None else reserve(Path("results") / config.stem, "fit")
        write_record(path, record)
        if report is not None:
            from jfric.figures.fit_page import write_page

            # Chains of the sampler run side by side.
            drawn = result.sample(-(-posterior // 16), seed=seed) if posterior else None
            write_page(report, chosen, result, record, scores, drawn)
    terminal = console()
    terminal.print(chosen.title or config.stem, style="bold", markup=False)
    terminal.print(str(result), markup=False)
    for score in scores or ():
        terminal.print(
            f"{score.candidate}: {100 * score.fitted:.2f} % fitted, "
            f"{100 * score.held_out:.2f} % held out",
            markup=False,
        )
    for file in (path, report):
        if file is not None:
            terminal.print(f"wrote {file}", markup=False)
    raise typer.Exit(0 if result.outcome == Outcome.CONVERGED else 1)


def _print_proposal(config: Path | None, file: Path) -> None:
    """A table ``[data]`` for a file, on standard output."""
    from jfric.files.read_toml import load_config
    from jfric.fits.data.proposal import propose

    problem = None if config is None else load_config(config).problem
    typer.echo(propose(file, problem), nl=False)
