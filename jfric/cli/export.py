"""``jfric export``: a system as a model of another simulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from jfric.cli.app import ConfigPath, Settings, app, console, one_sentence, status
from jfric.cli.loading import load_changed
from jfric.errors import ProblemError, nearest

if TYPE_CHECKING:
    from rich.table import Table

    from jfric.exports import MjcfExport

FORMATS = ("mjcf",)


@app.command(epilog="Example: jfric export configs/ve0116.toml --to mjcf --out ve0116.xml")
@one_sentence
def export(
    config: ConfigPath,
    set_: Settings = None,
    to: Annotated[str, typer.Option(help="Format: mjcf (MuJoCo).", metavar="NAME")] = "mjcf",
    out: Annotated[
        Path | None, typer.Option(help="File to write; CONFIG with .xml unless given.")
    ] = None,
    friction: Annotated[
        str, typer.Option(help="Form of friction: auto, frictionloss or lugre.", metavar="NAME")
    ] = "auto",
    presliding: Annotated[
        float, typer.Option(help="Deflection of a bristle at its limit \\[m or rad].")
    ] = 1e-4,
    timestep: Annotated[float, typer.Option(help="Step of the other simulator \\[s].")] = 1e-3,
    compare: Annotated[
        bool,
        typer.Option("--compare/--no-compare", help="Simulate both, and print the difference."),
    ] = True,
) -> None:
    """A system as a model of another simulator, with the measured difference of the two: how far
    it is off under the same loads, how fast it creeps, what it cannot represent.

    MuJoCo's joints have frictionloss (Coulomb's law, softened); where the installed version has it,
    a law with a static limit becomes a bristle (LuGre).
    """
    from jfric.exports import export_mjcf

    if to not in FORMATS:
        raise ProblemError(
            f"--to: found {to!r}{nearest(to, FORMATS)}, allowed are {', '.join(FORMATS)}"
        )
    chosen = load_changed(config, set_)
    problem = chosen.problem
    with status(config.stem) as announce:
        announce("simulating" if compare else "writing")
        found = export_mjcf(
            problem,
            friction=cast("Literal['auto', 'frictionloss', 'lugre']", friction),
            presliding=presliding,
            timestep=timestep,
            compare=compare,
        )
    path = config.with_suffix(".xml").name if out is None else out
    found.write(path)
    terminal: Any = console()
    terminal.print(chosen.title or config.stem, style="bold", markup=False)
    for table in _tables(found):
        terminal.print(table)
    terminal.print("not represented:" if found.lost else "all is represented", markup=False)
    for sentence in found.lost:
        terminal.print(f"  {sentence}", markup=False)
    terminal.print(f"wrote {path}", markup=False)


def _tables(found: MjcfExport) -> list[Table]:
    """Distances of the two motions, and velocities of creep, where they were measured."""
    from jfric.cli.report import plain_table

    if found.mujoco is None:
        return []
    apart = plain_table(
        f"MuJoCo {found.mujoco} less the exact motion",
        "position", ">largest", ">rms", ">at the end", ">way of the exact motion",
    )  # fmt: skip
    for dof, x in found.differences.items():
        numbers = (x.largest, x.rms, x.at_end, x.travel)
        apart.add_row(dof, *(f"{number:.3e}" for number in numbers))
    held = plain_table(
        "Creep per second at half of the limit, where the exact law rests",
        "friction", ">held", ">shaken at 10 Hz",
    )  # fmt: skip
    for label, x in found.creep.items():
        held.add_row(label, f"{x.steady:.3e}", f"{x.shaken:.3e}")
    return [apart, held] if found.creep else [apart]
