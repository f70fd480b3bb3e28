"""``jfric export``: a system as a model of another simulator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from jfric.cli import options
from jfric.cli.app import command, status, tell, wrote
from jfric.cli.options import setting
from jfric.errors import ProblemError, nearest

if TYPE_CHECKING:
    from jfric.exports import MjcfExport
    from jfric.files.config import Config

FORMATS = ("mjcf", "fmu")


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """Settings of ``jfric export``."""

    config: options.ConfigPath
    set_: options.Settings = None
    to: str = setting(
        "mjcf", "Format: mjcf (MuJoCo) or fmu (a unit of co-simulation).", metavar="NAME"
    )
    out: Path | None = setting(None, "File to write; CONFIG with .xml or .fmu unless given.")
    inputs: str | None = setting(
        None, "Functions of time that the other tool sets (fmu), with commas.", metavar="NAMES"
    )
    outputs: str | None = setting(
        None, "Quantities that it reads (fmu), with commas; all unless given.", metavar="NAMES"
    )
    fmi: int = setting(2, "Version of FMI, 2 or 3 (fmu).")
    friction: str = setting(
        "auto", "Form of friction: auto, frictionloss or lugre.", metavar="NAME"
    )
    presliding: float = setting(1e-4, "Deflection of a bristle at its limit \\[m or rad].")
    timestep: float = setting(1e-3, "Step of the other simulator \\[s].")
    compare: bool = setting(
        True, "Simulate both, and print the difference.", "--compare/--no-compare"
    )


@command(
    "Simulate",
    epilog="Example, after jfric init ve0116: jfric export ve0116.toml --to mjcf --out ve0116.xml",
)
def export(given: ExportSettings) -> None:
    """Write a system as a model of another simulator, and measure the difference of the two.

    Prints how far they are apart under the same loads, how fast the model creeps, and what it
    cannot represent. A unit of co-simulation (fmu) is exact: it lets jfric compute.

    MuJoCo's joints have frictionloss (Coulomb's law, softened); where the installed version has it,
    a law with a static limit becomes a bristle (LuGre).
    """
    from jfric.cli.loading import load_changed
    from jfric.exports import export_mjcf

    if given.to not in FORMATS:
        raise ProblemError(
            f"--to: found {given.to!r}{nearest(given.to, FORMATS)}, allowed are "
            f"{', '.join(FORMATS)}"
        )
    chosen = load_changed(given.config, given.set_)
    if given.to == "fmu":
        _export_fmu(given, chosen)
        return
    with status(given.config.stem) as announce:
        announce("simulating" if given.compare else "writing")
        found = export_mjcf(
            chosen.problem,
            friction=cast("Literal['auto', 'frictionloss', 'lugre']", given.friction),
            presliding=given.presliding,
            timestep=given.timestep,
            compare=given.compare,
        )
    path = given.out or Path(given.config.with_suffix(".xml").name)
    found.write(path)
    tell(chosen.title or given.config.stem, "bold")
    if found.mujoco is not None:
        _print_differences(found)
    tell("not represented:" if found.lost else "all is represented")
    for sentence in found.lost:
        tell(f"  {sentence}")
    wrote(path)


def _export_fmu(given: ExportSettings, chosen: Config) -> None:
    """Write a unit of co-simulation, and print its variables."""
    from jfric.exports import export_fmu

    def names(text: str | None) -> list[str]:
        return [name.strip() for name in (text or "").split(",") if name.strip()]

    found = export_fmu(
        chosen.problem,
        given.out or Path(given.config.with_suffix(".fmu").name),
        inputs=names(given.inputs),
        outputs=None if given.outputs is None else names(given.outputs),
        version=given.fmi,
        solver=chosen.solver,
    )
    tell(chosen.title or given.config.stem, "bold")
    tell(f"inputs: {', '.join(found.inputs) or 'none'}")
    tell(f"outputs: {', '.join(found.outputs)}")
    tell(f"parameters: {', '.join(found.parameters)}")
    wrote(found.path)


def _print_differences(found: MjcfExport) -> None:
    """Print the distances of the two motions, and velocities of creep."""
    from jfric.numerics.printing import Shown

    columns = "position", ">largest", ">rms", ">at the end", ">way of the exact motion"
    rows = [
        (dof, *(f"{number:.3e}" for number in (x.largest, x.rms, x.at_end, x.travel)))
        for dof, x in found.differences.items()
    ]
    tell(Shown(f"MuJoCo {found.mujoco} less the exact motion", columns, rows))
    rows = [(name, f"{x.steady:.3e}", f"{x.shaken:.3e}") for name, x in found.creep.items()]
    if rows:
        title = "Creep per second at half of the limit, where the exact law rests"
        tell(Shown(title, ("friction", ">held", ">shaken at 10 Hz"), rows))
