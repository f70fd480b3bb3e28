"""The commands ``jfric run``, ``sweep``, ``fit``, ``plot``, ``bias``, ``show``, ``verify``,
``schema``; ``equilibria`` and ``trace`` are in ``jfric.statics.command_line``."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from jfric.compilation import compile_quickly, use_compilation_cache
from jfric.errors import ProblemError
from jfric.identify.command import fit_command
from jfric.solver_choice import SOLVERS
from jfric.statics.command_line import register as register_statics

app = typer.Typer(
    name="jfric",
    help="Exact simulation of dry friction, gaps and impacts, from a TOML file.",
    epilog="Examples: jfric run configs/ve0116.toml --plot | jfric show configs/ve0116.toml | "
    "jfric verify",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ConfigPath = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="TOML file that describes the system.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change a parameter; the value may carry its unit (spring.k='5 kN/m'). Repeatable.",
    ),
]
Flow = Annotated[
    str | None,
    typer.Option(help="Flow between events: auto, exact or runge-kutta.", metavar="NAME"),
]

Options = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="A setting of the solver, in SI units (width=1e-3, method=kvaerno5). Repeatable.",
    ),
]


def main() -> None:
    """Entry point of the ``jfric`` command."""
    app()


@app.callback()
def _setup() -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    compile_quickly()
    use_compilation_cache()


def _one_sentence(command: Callable[..., None]) -> Callable[..., None]:
    """Report bad input as one sentence on standard error, with exit status 2."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except ProblemError as error:
            typer.echo(f"jfric: {error}", err=True)
            raise typer.Exit(2) from None

    return wrapped


@contextlib.contextmanager
def _status(text: str) -> Iterator[Callable[[str], None]]:
    """A spinner on standard error while something takes its time."""
    from rich.console import Console

    with Console(stderr=True).status(text) as status:
        yield lambda stage: status.update(f"{text}: {stage}")


def _console() -> Any:
    from rich.console import Console

    console = Console(highlight=False)
    # Files and pipes have no width: do not fold tables to 80 columns there.
    return console if console.is_terminal else Console(highlight=False, width=160)


@app.command(epilog="Example: jfric run configs/ve0116.toml --set friction.mu=0.12 --plot")
@_one_sentence
def run(
    config: ConfigPath,
    set_: Settings = None,
    solver: Annotated[
        str | None,
        typer.Option(help=f"Solver: {', '.join(SOLVERS)}.", metavar="NAME"),
    ] = None,
    flow: Flow = None,
    rtol: Annotated[
        float | None, typer.Option(help="Relative tolerance of the runge-kutta flow.")
    ] = None,
    option: Options = None,
    times: Annotated[
        str | None,
        typer.Option(
            help="Outputs: a number of them, or the times as '0.5, 1, 20 ms'.", metavar="N|LIST"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the result files, instead of results/<name of the file>."),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", help="Trajectory as csv or parquet.", metavar="csv|parquet")
    ] = "csv",
    plot: Annotated[bool, typer.Option("--plot", help="Also write a figure (PNG).")] = False,
) -> None:
    """Simulate a system, print its checks and write the trajectory.

    Results are numbered; those that exist are never overwritten. Exit status: 0, 1 where a check
    fails or the trajectory is incomplete, 2 for bad input.
    """
    from jfric import output
    from jfric.config.load import load_config
    from jfric.overrides import apply_overrides
    from jfric.run_results import print_run, write_run
    from jfric.single_run import run_config
    from jfric.solver_choice import choose_solver, parse_options, resolved

    started = time.perf_counter()
    output.require_format(format_)
    chosen = load_config(config)
    chosen = dataclasses.replace(chosen, problem=apply_overrides(chosen.problem, set_ or []))
    if times is not None:
        chosen = dataclasses.replace(chosen, outputs=_times(times))
    built, settings = choose_solver(
        chosen.solver, name=solver, flow=flow, rtol=rtol, **parse_options(option or [])
    )
    built.require(chosen.problem)
    settings = resolved(settings, chosen.problem)
    with _status(config.stem) as announce:
        outcome = run_config(chosen, built, announce)
    files = write_run(
        chosen,
        outcome,
        settings,
        out or Path("results") / config.stem,
        format_,
        plot,
        set_ or [],
        time.perf_counter() - started,
    )
    print_run(_console(), chosen, outcome, settings, files)
    passed = all(check.passed for check in outcome.checks)
    raise typer.Exit(0 if passed and int(outcome.solution.status) == 0 else 1)


def _times(text: str) -> int | tuple[float, ...]:
    from jfric.config.units import DIMENSIONS, UnitError, to_si

    if text.strip().isdecimal():
        if int(text) < 2:
            raise ProblemError(f"--times: found {text}, at least 2 outputs are needed")
        return int(text)
    try:
        values = [to_si(part.strip(), DIMENSIONS["time"]) for part in text.split(",")]
        return tuple(sorted(float(v) for v in values))  # type: ignore[arg-type]
    except (UnitError, TypeError) as error:
        raise ProblemError(f"--times: {error}") from None


@app.command(
    epilog="Example: jfric sweep configs/ve0116.toml --vary friction.mu=0.05:0.3:1000 "
    "--observe final.u,stop_time,max.v --out mu.zarr --plot"
)
@_one_sentence
def sweep(
    config: ConfigPath,
    vary: Annotated[
        list[str],
        typer.Option(
            help="Parameter and its values, PATH=LOW:HIGH:COUNT, with :log in geometric "
            "progression, or PATH=\\[A, B, ...]; sampled methods take PATH=LOW:HIGH. Values may "
            "carry units. Repeatable.",
            metavar="PATH=VALUES",
        ),
    ],
    observe: Annotated[
        str,
        typer.Option(
            help="What to keep, separated by commas: final.u, max.v, stop_time, event_time(2), "
            "dissipated, stick_fraction, u(1 s), u(t) ...",
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
    flow: Flow = None,
    rtol: Annotated[
        float | None, typer.Option(help="Relative tolerance of the runge-kutta flow.")
    ] = None,
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
    from jfric.ensemble.command import run_sweep, use_devices

    use_devices(1 if workers is not None or scheduler is not None else devices)
    ok = run_sweep(
        _console(),
        config,
        settings=set_ or [],
        vary=vary,
        observe=observe,
        method=method,
        samples=samples,
        seed=seed,
        times=times,
        solver={"flow": flow, "rtol": rtol},
        out=out,
        plot=plot,
        chunk=chunk,
        block=block,
        devices=devices,
        workers=workers,
        scheduler=scheduler,
    )
    raise typer.Exit(0 if ok else 1)


@app.command("plot", epilog="Example: jfric plot mu.zarr --observe final.u")
@_one_sentence
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
    from jfric.ensemble.command import draw
    from jfric.ensemble.grammar import split

    draw(_console(), store, split(observe) if observe is not None else None, out)


@app.command(epilog="Example: jfric bias configs/ve0116.toml --widths 0.1,0.01,1e-3 --plot")
@_one_sentence
def bias(
    config: ConfigPath,
    set_: Settings = None,
    widths: Annotated[
        str, typer.Option(help="Smoothing widths [m/s or rad/s].", metavar="LIST")
    ] = "0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4",
    option: Options = None,
    out: Annotated[Path, typer.Option(help="Figure written with --plot.", metavar="FILE")] = Path(
        "bias.png"
    ),
    plot: Annotated[bool, typer.Option("--plot", help="Also draw a figure.")] = False,
) -> None:
    """How far smoothed friction laws are from the exact ones: distance, creep in stick and steps
    as functions of the smoothing width.

    The smoothed solver takes its settings from --option (law=arctan, method=kvaerno5,
    contact_stiffness=1e7).
    """
    from jfric import report
    from jfric.bias_figure import bias_figure
    from jfric.config.load import load_config
    from jfric.overrides import apply_overrides
    from jfric.smoothing_bias import smoothing_bias
    from jfric.solver_choice import choose_solver, parse_options

    chosen = load_config(config)
    problem = apply_overrides(chosen.problem, set_ or [])
    try:
        values = [float(width) for width in widths.split(",")]
    except ValueError:
        raise ProblemError(
            f"--widths: found {widths!r}, expected numbers such as 0.1,1e-3"
        ) from None
    solver, _ = choose_solver(chosen.solver, name="smoothed", **parse_options(option or []))
    with _status(config.stem) as announce:
        announce("simulating")
        found = smoothing_bias(problem, values, solver)
    console = _console()
    console.print(chosen.title or config.stem, style="bold", markup=False)
    console.print(report.bias_table(found))
    if plot:
        figure = bias_figure(found, chosen.title or config.stem)
        try:
            figure.savefig(out, dpi=150)
        except (OSError, ValueError) as error:
            raise ProblemError(f"--out: cannot write {out} ({error})") from None
        console.print(f"wrote {out}", markup=False)


@app.command(epilog="Example: jfric show configs/ve0116.toml")
@_one_sentence
def show(config: ConfigPath, set_: Settings = None) -> None:
    """Print the system: degrees of freedom, elements, and all parameters with their units."""
    from jfric import report
    from jfric.config.load import load_config
    from jfric.overrides import apply_overrides

    chosen = load_config(config)
    problem = apply_overrides(chosen.problem, set_ or [])
    console = _console()
    console.print(chosen.title or config.stem, style="bold", markup=False)
    for text in (chosen.source, chosen.description):
        if text:
            console.print(text.strip(), markup=False)
    dofs = ", ".join(f"{name} ({kind})" for name, kind in problem.dofs.items())
    console.print(f"Degrees of freedom: {dofs}", markup=False)
    console.print(report.elements_table(problem))
    console.print(report.parameters_table(problem))
    console.print(f"Checks: {len(chosen.checks)}")


@app.command(
    epilog="Examples: jfric verify | jfric verify --case 've0116*' --json | "
    "jfric verify my/configs --junit report.xml"
)
@_one_sentence
def verify(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Your own files or folders; without any, the shipped list.",
            show_default=False,
        ),
    ] = None,
    case: Annotated[
        str | None,
        typer.Option(
            help="Only the cases of this name ('janovsky*' for all that match).", metavar="NAME"
        ),
    ] = None,
    flow: Flow = None,
    json_: Annotated[bool, typer.Option("--json", help="Print all checks as JSON.")] = False,
    junit: Annotated[
        Path | None, typer.Option(help="Also write JUnit XML.", metavar="FILE")
    ] = None,
) -> None:
    """Compare with published values: the shipped cases, or every [bold]\\[\\[check]][/] in your
    files.

    Exit status: 0, 1 where a check fails, 2 for bad input.
    """
    from jfric import report
    from jfric.solver_choice import require_flow
    from jfric.verification.run import verify as run_checks

    if flow is not None:
        require_flow(flow)
    started = time.perf_counter()
    with _progress_bar() as advance:
        results = run_checks(paths or None, case=case, flow=flow, progress=advance)
    seconds = time.perf_counter() - started
    if junit is not None:
        from jfric.junit import write_junit

        try:
            write_junit(junit, results, seconds)
        except OSError as error:
            raise ProblemError(f"--junit: cannot write {junit} ({error.strerror})") from error
    failed = sum(not r.passed for r in results)
    if json_:
        typer.echo(json.dumps([r.as_dict() for r in results], indent=2))
    else:
        console = _console()
        console.print(report.verification_table(results))
        if failed:
            console.print(report.failures_table(results))
        cases = len({r.case for r in results})
        console.print(
            f"{len(results) - failed} of {len(results)} checks passed, {cases} cases, "
            f"{seconds:.1f} s",
            style="bold red" if failed else "bold green",
        )
    raise typer.Exit(1 if failed else 0)


@contextlib.contextmanager
def _progress_bar() -> Iterator[Callable[[int, int, str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Elapsed())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda done, total, case: bar.update(
            task, completed=done, total=total, description=case or "done"
        )


app.command(
    "fit",
    epilog="Example: jfric fit system.toml --data record.csv --free friction.mu=0.01:1 "
    "--report report.html",
)(_one_sentence(fit_command))


@app.command(epilog="Example: jfric schema > jfric.schema.json")
@_one_sentence
def schema() -> None:
    """Print the JSON schema of a configuration file, for completion in editors."""
    from jfric.config.schema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


register_statics(app, _one_sentence, _console)


if __name__ == "__main__":
    main()
