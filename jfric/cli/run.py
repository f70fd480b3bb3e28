"""``jfric run``: one simulation."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Annotated

import typer

from jfric.cli.app import (
    ConfigPath,
    Flow,
    Options,
    ResultFolder,
    Rtol,
    Settings,
    SolverName,
    app,
    console,
    one_sentence,
    status,
)
from jfric.cli.loading import load_changed
from jfric.errors import ProblemError
from jfric.numerics.limits import OUTPUTS, parse_count


@app.command(epilog="Example: jfric run configs/ve0116.toml --set friction.mu=0.12 --plot")
@one_sentence
def run(
    config: ConfigPath,
    set_: Settings = None,
    solver: SolverName = None,
    flow: Flow = None,
    rtol: Rtol = None,
    option: Options = None,
    times: Annotated[
        str | None,
        typer.Option(
            help="Outputs: a number of them, or the times as '0.5, 1, 20 ms'.", metavar="N|LIST"
        ),
    ] = None,
    out: ResultFolder = None,
    format_: Annotated[
        str, typer.Option("--format", help="Trajectory as csv or parquet.", metavar="csv|parquet")
    ] = "csv",
    plot: Annotated[
        bool,
        typer.Option("--plot", help="Also write a figure (PNG), and one of the bodies if any."),
    ] = False,
    animate: Annotated[
        Path | None,
        typer.Option("--animate", help="Also write an animation of the bodies.", metavar="GIF"),
    ] = None,
) -> None:
    """Simulate a system, print its checks and write the trajectory.

    Results are numbered; those that exist are never overwritten. Checks hold for the numbers of the
    file: with --set they are left out. Exit status: 0, 1 where a check fails or the trajectory is
    incomplete, 2 for bad input.
    """
    from jfric.cli.run_config import run_config
    from jfric.cli.run_results import print_run, write_run
    from jfric.files import output
    from jfric.files.config import time_span
    from jfric.files.solver_choice import choose_solver, parse_options, resolved
    from jfric.verification.evaluate import needed_times
    from jfric.verification.periodic_checks import is_periodic

    started = time.perf_counter()
    output.require_format(format_)
    chosen = load_changed(config, set_)
    if animate is not None:
        from jfric.figures.mechanism_figure import require_gif
        from jfric.figures.mechanism_scene import require_bodies

        require_bodies(chosen.problem)
        require_gif(animate)
    if times is not None:
        chosen = dataclasses.replace(chosen, outputs=_times(times))
    options = parse_options(option or [], name=solver, flow=flow, rtol=rtol)
    built, settings = choose_solver(chosen.solver, **options)
    built.require(chosen.problem)
    settings = resolved(settings, chosen.problem)
    left_out = len(chosen.checks) if set_ else 0
    start, end = time_span(chosen.problem)
    if set_ and any(not start <= t <= end for t in needed_times(c.quantity for c in chosen.checks)):
        chosen = dataclasses.replace(chosen, checks=())
    # Orbits are another computation, of seconds to minutes each.
    motion = tuple(check for check in chosen.checks if not is_periodic(check))
    steady = len(chosen.checks) - len(motion)
    chosen = dataclasses.replace(chosen, checks=motion)
    with status(config.stem) as announce:
        # What checks expect holds for the numbers of the file.
        outcome = run_config(chosen, built, announce, judged=not set_)
    files = write_run(
        chosen,
        outcome,
        settings,
        out or Path("results") / config.stem,
        format_,
        plot,
        animate,
        set_ or [],
        time.perf_counter() - started,
    )
    print_run(console(), chosen, outcome, settings, files)
    if left_out:
        console().print(
            f"checks of the file: {left_out} left out, they hold for its own numbers, not those of "
            "--set"
        )
    elif steady:
        console().print(
            f"checks of steady states: {steady} left out; jfric verify {config} computes them",
            markup=False,
            soft_wrap=True,
        )
    passed = all(check.passed for check in outcome.checks)
    raise typer.Exit(0 if passed and int(outcome.solution.status) == 0 else 1)


def _times(text: str) -> int | tuple[float, ...]:
    from jfric.system.units import DIMENSIONS, UnitError, to_si

    if text.strip().isdecimal():
        if text.strip().strip("01") == "" and len(text.strip()) == 1:
            raise ProblemError(f"--times: found {text}, at least 2 outputs are needed")
        return parse_count(text, "--times", 2, OUTPUTS)
    try:
        values = [to_si(part.strip(), DIMENSIONS["time"]) for part in text.split(",")]
        return tuple(sorted(float(v) for v in values))  # type: ignore[arg-type]
    except (UnitError, TypeError) as error:
        raise ProblemError(f"--times: {error}") from None
