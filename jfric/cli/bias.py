"""``jfric bias``: distance of smoothed laws and bristles from the exact laws of friction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jfric import solvers
from jfric.cli import options
from jfric.cli.app import command, status, tell
from jfric.cli.kept_results import write_figure
from jfric.cli.loading import load_changed
from jfric.cli.options import setting
from jfric.errors import ProblemError


@dataclass(frozen=True, kw_only=True)
class BiasSettings(options.OnSystem):
    """Settings of ``jfric bias``."""

    widths: str = setting(
        "Smoothing widths \\[m/s or rad/s].",
        "0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4",
        metavar="LIST",
    )
    stiffness: str | None = setting(
        "Stiffnesses of bristles \\[N/m or N m/rad]: distance of LuGre elements from the "
        "set-valued law instead.",
        metavar="LIST",
    )
    option: options.Options = None
    out: Path = setting("Figure written with --plot.", Path("bias.png"), metavar="FILE")
    plot: bool = setting("Also draw a figure.", False, name="--plot")


@command(
    "Study",
    epilog="Example, after jfric init ve0116: jfric bias ve0116.toml --widths 0.1,0.01,1e-3 --plot",
)
def bias(given: BiasSettings) -> None:
    """Measure how far smoothed laws or bristles are from the exact laws of friction.

    Prints distance, creep in stick and steps as functions of the smoothing width.

    The smoothed solver takes its settings from --option (law=arctan, method=kvaerno5,
    contact_stiffness=1e7). With --stiffness the distance is that of LuGre elements from the
    set-valued law that they tend to as their bristles become stiff.
    """
    from jfric.figures.bias_figure import bias_figure, bristle_figure
    from jfric.files.solver_choice import choose_solver, parse_options

    chosen = load_changed(given)
    figure: Any
    with status(given.config.stem, "simulating"):
        if given.stiffness is not None:
            values = _numbers(given.stiffness, "--stiffness", "1e3,1e5")
            found, figure = solvers.bristle_bias(chosen.problem, values), bristle_figure
        else:
            values = _numbers(given.widths, "--widths", "0.1,1e-3")
            words = parse_options(given.option or [], name="smoothed")
            solver, _ = choose_solver(chosen.solver, **words)
            found, figure = solvers.smoothing_bias(chosen.problem, values, solver), bias_figure
    tell(chosen.name, "bold")
    tell(found)
    if given.plot:
        write_figure(given.out, lambda: figure(found, chosen.name), "--out")


def _numbers(text: str, option: str, example: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        expected = f"expected numbers such as {example}"
        raise ProblemError(f"{option}: found {text!r}, {expected}") from None
