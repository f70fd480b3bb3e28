"""``jfric bias``: how far smoothed laws and bristles are from the exact laws of friction."""

from __future__ import annotations

import functools
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
        str, typer.Option(help="Smoothing widths \\[m/s or rad/s].", metavar="LIST")
    ] = "0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4",
    stiffness: Annotated[
        str | None,
        typer.Option(
            help="Stiffnesses of bristles \\[N/m or N m/rad]: distance of LuGre elements from the "
            "set-valued law instead.",
            metavar="LIST",
        ),
    ] = None,
    option: Options = None,
    out: Annotated[Path, typer.Option(help="Figure written with --plot.", metavar="FILE")] = Path(
        "bias.png"
    ),
    plot: Annotated[bool, typer.Option("--plot", help="Also draw a figure.")] = False,
) -> None:
    """How far smoothed laws or bristles are from the exact laws of friction: distance, creep in
    stick and steps as functions of the smoothing width.

    The smoothed solver takes its settings from --option (law=arctan, method=kvaerno5,
    contact_stiffness=1e7). With --stiffness the distance is that of LuGre elements from the
    set-valued law that they tend to as their bristles become stiff.
    """
    from jfric.cli import report
    from jfric.figures.bias_figure import bias_figure, bristle_figure
    from jfric.files.solver_choice import choose_solver, parse_options
    from jfric.solvers.bias_of_bristles import bristle_bias
    from jfric.solvers.bias_of_smoothing import smoothing_bias

    chosen = load_changed(config, set_)
    problem = chosen.problem
    with status(config.stem) as announce:
        announce("simulating")
        if stiffness is not None:
            of_bristles = bristle_bias(problem, _numbers(stiffness, "--stiffness", "1e3,1e5"))
            table = report.bristle_table(of_bristles)
            draw = functools.partial(bristle_figure, of_bristles)
        else:
            values = _numbers(widths, "--widths", "0.1,1e-3")
            given = parse_options(option or [], name="smoothed")
            solver, _ = choose_solver(chosen.solver, **given)
            found = smoothing_bias(problem, values, solver)
            table = report.bias_table(found)
            draw = functools.partial(bias_figure, found)
    terminal = console()
    terminal.print(chosen.title or config.stem, style="bold", markup=False)
    terminal.print(table)
    if plot:
        figure = draw(chosen.title or config.stem)
        try:
            figure.savefig(out, dpi=150)
        except (OSError, ValueError) as error:
            raise ProblemError(f"--out: cannot write {out} ({error})") from None
        terminal.print(f"wrote {out}", markup=False)


def _numbers(text: str, option: str, example: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        expected = f"expected numbers such as {example}"
        raise ProblemError(f"{option}: found {text!r}, {expected}") from None
