"""``jfric bias``: how far smoothed friction laws are from the exact ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jfric.cli.app import ConfigPath, Options, Settings, app, console, one_sentence, status
from jfric.cli.loading import load_changed
from jfric.errors import ProblemError


@app.command(epilog="Example: jfric bias configs/ve0116.toml --widths 0.1,0.01,1e-3 --plot")
@one_sentence
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
    from jfric.cli import report
    from jfric.figures.bias_figure import bias_figure
    from jfric.files.solver_choice import choose_solver, parse_options
    from jfric.solvers.bias_of_smoothing import smoothing_bias

    chosen = load_changed(config, set_)
    problem = chosen.problem
    try:
        values = [float(width) for width in widths.split(",")]
    except ValueError:
        raise ProblemError(
            f"--widths: found {widths!r}, expected numbers such as 0.1,1e-3"
        ) from None
    solver, _ = choose_solver(chosen.solver, **parse_options(option or [], name="smoothed"))
    with status(config.stem) as announce:
        announce("simulating")
        found = smoothing_bias(problem, values, solver)
    terminal = console()
    terminal.print(chosen.title or config.stem, style="bold", markup=False)
    terminal.print(report.bias_table(found))
    if plot:
        figure = bias_figure(found, chosen.title or config.stem)
        try:
            figure.savefig(out, dpi=150)
        except (OSError, ValueError) as error:
            raise ProblemError(f"--out: cannot write {out} ({error})") from None
        terminal.print(f"wrote {out}", markup=False)
