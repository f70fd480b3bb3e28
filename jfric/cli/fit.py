"""``jfric fit``: parameters from measured files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jfric.cli.app import Measured, Settings, app, console, one_sentence, status
from jfric.cli.completion import parameter_paths
from jfric.cli.interrupt import NOTHING, kept
from jfric.cli.loading import load_changed
from jfric.cli.run_fit import RESIDUALS, free_of, read_records, run_fit, to_seconds
from jfric.errors import ProblemError
from jfric.sweeps.progress import Progress

#: Chains of a posterior, which run side by side.
CHAINS = 16
#: What laws are fitted to in a comparison, by what the fit compares.
COMPARED = {"input": "closed loop", "windows": "windows", "inverse": "inverse dynamics"}


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
    data: Measured = None,
    free: Annotated[
        list[str] | None,
        typer.Option(
            help="Parameter and its bounds, PATH=LOW:HIGH; :linear or :log chooses the scale, "
            ":each a value for each record, :varies values around a common mean. Repeatable; the "
            "table fit of the file unless given.",
            metavar="PATH=LOW:HIGH",
            autocompletion=parameter_paths,
        ),
    ] = None,
    init: Annotated[
        Path | None,
        typer.Option(
            help="Print a table \\[data] for this measured file, to be checked, and end: columns, "
            "units, sample rate, what is missing.",
            metavar="FILE",
        ),
    ] = None,
    set_: Settings = None,
    residual: Annotated[
        str,
        typer.Option(
            help="output: simulated beside measured; input: force of the controller in closed "
            "loop; windows: short windows with free initial states; inverse: forces that the "
            "measured motion needs, without simulation; steady: periodic motions, "
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
        bool,
        typer.Option(
            "--compare-laws",
            help="Also compare laws of friction on held-out data, as jfric compare does.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Result (JSON), instead of results/<name of the file>/fit-NNN.json."),
    ] = None,
    posterior: Annotated[
        int,
        typer.Option(help="Samples of the posterior to draw (needs jfric\\[bayes]).", min=0),
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
    ):
        if not value:
            raise ProblemError(f"{name}: missing, such as {example}")
    assert config is not None
    assert data
    from jfric.cli.fit_record import fit_record, write_record
    from jfric.errors import nearest
    from jfric.files.output import reserve
    from jfric.fits.hierarchical import HierarchicalFit
    from jfric.fits.optimise.levenberg_marquardt import Outcome

    if residual not in RESIDUALS:
        raise ProblemError(
            f"--residual: found {residual!r}{nearest(residual, RESIDUALS)}, allowed are "
            + ", ".join(RESIDUALS)
        )
    chosen = load_changed(config, set_, controller=True)
    length = to_seconds(window, "--window")
    parts = None
    if schedule is not None:
        parts = [to_seconds(text.strip(), "--schedule") for text in schedule.split(",")]
    found = free_of(chosen, free, required=True)
    options: dict[str, Any] = {
        "residual": residual,
        "window": length,
        "observe": None if observe is None else [name.strip() for name in observe.split(",")],
        "search": search,
        "schedule": parts,
        "starts": starts,
        "hold": hold,
        "loss": loss,
    }
    watch = _Watch()
    compared = None
    with kept(watch.kept):
        with Progress(0) as watch.bar:
            made = run_fit(chosen, data, found, seed=seed, watch=watch, **options)
        result = made.fit if isinstance(made, HierarchicalFit) else made
        if comparison:
            from jfric.fits.comparison.compare_laws import compare_laws

            with status(config.stem) as announce:
                compared = compare_laws(
                    chosen.problem,
                    read_records(chosen, data),
                    {k: f for k, f in found.items() if not f.per_experiment},
                    controller=chosen.controller,
                    fitted_to=COMPARED.get(residual),
                    window=length,
                    hold=hold,
                    announce=announce,
                )
        drawn = result.sample(-(-posterior // CHAINS), seed=seed) if posterior else None
        extra = {} if compared is None else {"law_comparison": compared.to_dict()}
        if drawn is not None:
            extra["posterior"] = drawn.to_dict()
        if isinstance(made, HierarchicalFit):
            extra["hierarchical"] = made.to_dict()
        record = fit_record(result, chosen, data, found, options, **extra)
        path = out if out is not None else reserve(Path("results") / config.stem, "fit")
        write_record(path, record)
        if report is not None:
            from jfric.figures.fit_page import write_page

            write_page(report, chosen, result, record, compared, drawn)
    terminal = console()
    terminal.print(chosen.title or config.stem, style="bold", markup=False)
    terminal.print(str(made), markup=False)
    if drawn is not None:
        for name, row in drawn.to_dict().items():
            low, high = row["interval"]
            terminal.print(
                f"posterior of {name}: {row['mean']:.6g} +- {row['standard_deviation']:.2g}, 95 % "
                f"from {low:.6g} to {high:.6g}",
                markup=False,
            )
        for said in drawn.remarks():
            terminal.print(said, markup=False)
    if compared is not None:
        terminal.print(f"\n{compared}", markup=False, soft_wrap=True)
    for file in (path, report):
        if file is not None:
            terminal.print(f"wrote {file}", markup=False)
    raise typer.Exit(0 if result.outcome == Outcome.CONVERGED else 1)


class _Watch:
    """Shows how far a fit has come, and knows the best parameters so far."""

    bar: Progress

    def __init__(self) -> None:
        self._best: tuple[float, dict[str, float]] | None = None

    def __call__(
        self, stage: str, iteration: int, most: int, cost: float, values: dict[str, float]
    ) -> None:
        self._best = cost, values
        self.bar.show(iteration, most, f"{stage}, cost {cost:.4g}, iteration")

    def kept(self) -> str:
        if self._best is None:
            return NOTHING
        cost, values = self._best
        found = ", ".join(f"{name} = {value:.6g}" for name, value in values.items())
        return f"{NOTHING}; the best so far, at a cost of {cost:.6g}: {found}"


def _print_proposal(config: Path | None, file: Path) -> None:
    """A table ``[data]`` for a file, on standard output."""
    from jfric.files.read_toml import load_config
    from jfric.fits.data.proposal import propose

    problem = None if config is None else load_config(config).problem
    typer.echo(propose(file, problem), nl=False)
