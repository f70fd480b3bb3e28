"""``jfric fit``: parameters of a system from measured files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jfric.errors import ProblemError

if TYPE_CHECKING:
    from jfric.config.config import Config
    from jfric.identify.free import Free
    from jfric.identify.result import FitResult

RESIDUALS = ("output", "input", "windows")
WORDS = ("log", "linear", "each")


def parse_free(config: Config, texts: Sequence[str]) -> dict[str, Free]:
    """``PATH=LOW:HIGH``, with ``:log`` or ``:linear`` for the scale and ``:each`` for a value in
    each record; bounds may carry units."""
    from jfric.identify.free import Free

    found: dict[str, Free] = {}
    for text in texts:
        path, equals, rest = text.partition("=")
        parts = [p.strip() for p in rest.split(":")]
        bounds, words = [p for p in parts if p not in WORDS], [p for p in parts if p in WORDS]
        if not equals or not path.strip() or len(bounds) != 2:
            raise ProblemError(
                f"--free: found {text!r}, expected PATH=LOW:HIGH such as friction.mu=0.01:1, with "
                ":linear or :log for the scale and :each for a value in each record"
            )
        path = path.strip()
        low, high = (_bound(config, path, b) for b in bounds)
        scale = next((w for w in words if w != "each"), "log" if low > 0 else "linear")
        try:
            found[path] = Free(low, high, scale=scale, per_experiment="each" in words)  # pyright: ignore
        except ProblemError as error:
            raise ProblemError(f"--free {path}: {error}") from None
    return found


def _bound(config: Config, path: str, text: str) -> float:
    from jfric.config.units import UnitError, to_si
    from jfric.overrides import path_dimension
    from jfric.system.naming import find_path

    try:
        dimension = path_dimension(config.problem, find_path(config.problem, path))
    except KeyError:
        dimension = None  # of the sensor or the controller; fit checks the name
    try:
        value = to_si(text, dimension)
        return float(value)  # pyright: ignore[reportArgumentType]
    except (UnitError, TypeError) as error:
        raise ProblemError(f"--free {path}: {error}") from None


def run_fit(
    config: Config,
    files: Sequence[Path],
    free: dict[str, Free],
    *,
    residual: str = "output",
    window: float | None = None,
    observe: Sequence[str] | None = None,
    starts: int = 8,
    hold: str = "zero",
    loss: str = "linear",
    seed: int = 0,
) -> FitResult:
    """The fit that the command makes."""
    from jfric.identify.arrange import sampled_or_whole
    from jfric.identify.files import read_experiments
    from jfric.identify.fit import fit
    from jfric.identify.sampled_model import REFERENCE

    experiments = read_experiments(config, files)
    options: dict[str, Any] = dict(loss=loss, starts=starts, seed=seed, hold=hold)
    if residual == "input":
        options |= {"controller": config.controller}
    model: Any = config.problem
    if residual == "output":
        experiments = [_without(e, REFERENCE) for e in experiments]
        model = sampled_or_whole(config.problem, experiments, None, hold)
    return fit(
        model, experiments, free, residual=residual, window=window, observe=observe, **options
    )


def _without(experiment, name: str):
    from dataclasses import replace

    return replace(experiment, u={k: v for k, v in (experiment.u or {}).items() if k != name})


def fit_command(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="TOML file with a table \\[data].")
    ],
    data: Annotated[
        list[Path], typer.Option(help="Measured file: .csv, .parquet, .npz or .mat. Repeatable.")
    ],
    free: Annotated[
        list[str],
        typer.Option(
            help="Parameter and its bounds, PATH=LOW:HIGH; :linear or :log chooses the scale, "
            ":each a value for each record. Repeatable.",
            metavar="PATH=LOW:HIGH",
        ),
    ],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change a parameter. Repeatable."),
    ] = None,
    residual: Annotated[
        str,
        typer.Option(
            help="output: simulated beside measured; input: force of the controller in closed "
            "loop; windows: short windows with free initial states.",
            metavar="NAME",
        ),
    ] = "output",
    window: Annotated[
        str | None, typer.Option(help="Length of the windows, 1 s unless given.", metavar="TIME")
    ] = None,
    observe: Annotated[
        str | None, typer.Option(help="Signals to compare; all by default.", metavar="NAMES")
    ] = None,
    starts: Annotated[int, typer.Option(help="Starts of the optimiser.")] = 8,
    hold: Annotated[
        str, typer.Option(help="Inputs between samples: zero or linear.", metavar="NAME")
    ] = "zero",
    loss: Annotated[
        str, typer.Option(help="linear, huber, soft_l1 or cauchy.", metavar="NAME")
    ] = "linear",
    seed: Annotated[int, typer.Option(help="Seed of the starts.")] = 0,
    ladder: Annotated[
        bool, typer.Option("--ladder", help="Also compare friction models on held-out data.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Result (JSON), instead of results/<name of the file>/fit-NNN.json."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page with all plots.", metavar="FILE.html")
    ] = None,
) -> None:
    """Find parameters from measured files, with their uncertainty.

    Exit status: 0, 1 where the fit did not converge, 2 for bad input.
    """
    import dataclasses

    from rich.console import Console

    from jfric.config.load import load_config
    from jfric.config.units import DIMENSIONS, UnitError, to_si
    from jfric.errors import nearest
    from jfric.identify.levenberg_marquardt import Outcome
    from jfric.identify.record import fit_record, write_record
    from jfric.output import reserve
    from jfric.overrides import apply_overrides

    if residual not in RESIDUALS:
        raise ProblemError(
            f"--residual: found {residual!r}{nearest(residual, RESIDUALS)}, allowed are "
            + ", ".join(RESIDUALS)
        )
    chosen = load_config(config)
    chosen = dataclasses.replace(chosen, problem=apply_overrides(chosen.problem, set_ or []))
    try:
        length = None if window is None else float(to_si(window, DIMENSIONS["time"]))  # pyright: ignore
    except UnitError as error:
        raise ProblemError(f"--window: {error}") from None
    found = parse_free(chosen, free)
    options: dict[str, Any] = {
        "residual": residual,
        "window": length,
        "observe": None if observe is None else [name.strip() for name in observe.split(",")],
        "starts": starts,
        "hold": hold,
        "loss": loss,
    }
    with Console(stderr=True).status(config.stem):
        result = run_fit(chosen, data, found, seed=seed, **options)
        scores = None
        if ladder:
            from jfric.identify.ladder import ladder_of

            scores = ladder_of(result, found)
        extra = {} if scores is None else {"ladder": [dataclasses.asdict(s) for s in scores]}
        record = fit_record(result, chosen, data, found, options, **extra)
        path = out if out is not None else reserve(Path("results") / config.stem, "fit")
        write_record(path, record)
        if report is not None:
            from jfric.identify.page import write_page

            write_page(report, chosen, result, record, scores)
    console = Console(highlight=False, soft_wrap=True)
    console.print(chosen.title or config.stem, style="bold", markup=False)
    console.print(str(result), markup=False)
    for score in scores or ():
        console.print(
            f"{score.rung}: {100 * score.fitted:.2f} % fitted, {100 * score.held_out:.2f} % held "
            "out",
            markup=False,
        )
    for file in (path, report):
        if file is not None:
            console.print(f"wrote {file}", markup=False)
    raise typer.Exit(0 if result.outcome == Outcome.CONVERGED else 1)
