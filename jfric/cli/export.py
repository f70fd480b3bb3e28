"""``jfric export``: a system as a model of another simulator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from jfric import exports
from jfric.cli import options
from jfric.cli.app import command, status, tell, tell_rows, wrote
from jfric.cli.loading import load_changed, names_in
from jfric.cli.options import setting
from jfric.errors import require_one_of

if TYPE_CHECKING:
    from jfric.files.config import Config

FORMATS = ("mjcf", "urdf", "fmu")


@dataclass(frozen=True, kw_only=True)
class ExportSettings(options.OnSystem):
    """Settings of ``jfric export``."""

    to: str = setting(
        "Format: mjcf (MuJoCo), urdf (links) or fmu (a unit of co-simulation).",
        "mjcf",
        metavar="NAME",
    )
    out: Path | None = setting("File to write; CONFIG with .xml, .urdf or .fmu unless given.")
    inputs: str | None = setting(
        "Functions of time that the other tool sets (fmu), with commas.", metavar="NAMES"
    )
    outputs: str | None = setting(
        "Quantities that it reads (fmu), with commas; all unless given.", metavar="NAMES"
    )
    fmi: int = setting("Version of FMI, 2 or 3 (fmu).", 2)
    friction: str = setting(
        "Form of friction: auto, frictionloss or lugre.", "auto", metavar="NAME"
    )
    presliding: float = setting("Deflection of a bristle at its limit \\[m or rad].", 1e-4)
    timestep: float = setting("Step of the other simulator \\[s].", 1e-3)
    compare: bool = setting(
        "Simulate both, and print the difference.", True, name="--compare/--no-compare"
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
    require_one_of("--to", given.to, FORMATS)
    chosen = load_changed(given)
    if given.to == "fmu":
        _export_fmu(given, chosen)
        return
    if given.to == "urdf":
        _write(given, chosen, exports.export_urdf(chosen.problem))
        return
    with status(given.config.stem, "simulating" if given.compare else "writing"):
        found = exports.export_mjcf(
            chosen.problem,
            friction=cast("Literal['auto', 'frictionloss', 'lugre']", given.friction),
            presliding=given.presliding,
            timestep=given.timestep,
            compare=given.compare,
        )
    _write(given, chosen, found)


def _write(given: ExportSettings, chosen: Config, found: exports.UrdfExport) -> None:
    """Write a model, and print what it does not represent."""
    ending = ".xml" if given.to == "mjcf" else ".urdf"
    path = given.out or Path(given.config.with_suffix(ending).name)
    found.write(path)
    tell(chosen.name, "bold")
    if isinstance(found, exports.MjcfExport) and found.mujoco is not None:
        _print_differences(found)
    tell("not represented:" if found.lost else "all is represented")
    for sentence in found.lost:
        tell(f"  {sentence}")
    wrote(path)


def _export_fmu(given: ExportSettings, chosen: Config) -> None:
    """Write a unit of co-simulation, and print its variables."""
    found = exports.export_fmu(
        chosen.problem,
        given.out or Path(given.config.with_suffix(".fmu").name),
        inputs=names_in(given.inputs),
        outputs=None if given.outputs is None else names_in(given.outputs),
        version=given.fmi,
        solver=chosen.solver,
    )
    tell(chosen.name, "bold")
    tell(f"inputs: {', '.join(found.inputs) or 'none'}")
    tell(f"outputs: {', '.join(found.outputs)}")
    tell(f"parameters: {', '.join(found.parameters)}")
    wrote(found.path)


def _print_differences(found: exports.MjcfExport) -> None:
    """Print the distances of the two motions, and velocities of creep."""
    columns = "position", ">largest", ">rms", ">at the end", ">way of the exact motion"
    rows = [
        (dof, *(f"{number:.3e}" for number in (x.largest, x.rms, x.at_end, x.travel)))
        for dof, x in found.differences.items()
    ]
    tell_rows(f"MuJoCo {found.mujoco} less the exact motion", columns, rows)
    rows = [(name, f"{x.steady:.3e}", f"{x.shaken:.3e}") for name, x in found.creep.items()]
    if rows:
        title = "Creep per second at half of the limit, where the exact law rests"
        tell_rows(title, ("friction", ">held", ">shaken at 10 Hz"), rows)
