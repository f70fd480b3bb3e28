"""``jfric init``, ``jfric show``, ``jfric schema``: a starting file, a system, shapes of files."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

import typer

from jfric.cli import options
from jfric.cli.app import answer, command, tell, wrote
from jfric.cli.loading import load_changed
from jfric.cli.options import argument, starting_files
from jfric.files.starting_files import STARTERS, write_starter
from jfric.verification.configs import systems

_KINDS = "; ".join(f"{kind}: {what}" for kind, what in STARTERS.items())


@dataclass(frozen=True, kw_only=True)
class InitSettings:
    """Settings of ``jfric init``."""

    kind: str = argument(
        f"{_KINDS}; or the name of a system of the package, such as ve0116; the shell completes "
        "these names.",
        ...,
        metavar="|".join([*STARTERS, "NAME"]),
        autocompletion=starting_files,
    )
    path: Path | None = argument("File to write; KIND.toml unless given.", metavar="FILE")


@command("Begin", epilog="Examples: jfric init drive slide.toml | jfric init ve0116")
def init(given: InitSettings) -> None:
    """Write a file to begin with, and the JSON schema by which editors complete it.

    Nothing that exists is overwritten. Exit status: 0, 2 for bad input.
    """
    path = given.path or Path(f"{given.kind}.toml")
    written = write_starter(given.kind, path, systems())
    wrote(*written)
    tell(f"next: {_next_command(given.kind, path)}", whole=True)


def _next_command(kind: str, path: Path) -> str:
    """The command that answers what the file is written for."""
    if kind == "fit":
        free = "--free friction.limit=0.01:1 --free spring.k=1:100"
        return f"jfric fit {path} --data {path.with_suffix('.csv')} {free}"
    file = tomllib.loads(path.read_text("utf-8"))
    asked = {check["quantity"].partition("(")[0] for check in file.get("check", ())}
    if "optimise" in file:
        return f"jfric optimise {path}"
    table = next((name for name in ("periodic", "response", "statics") if name in file), "run")
    return f"jfric {'flutter' if 'growth' in asked else table} {path} --plot"


@dataclass(frozen=True, kw_only=True)
class ShowSettings(options.OnSystem):
    """Settings of ``jfric show``."""

    json_: options.Json = False


@command("Begin", epilog="Example, after jfric init ve0116: jfric show ve0116.toml")
def show(given: ShowSettings) -> None:
    """Print the system: degrees of freedom, elements, and all parameters with their units."""
    from jfric.system.tables import elements_shown, parameter_rows, parameters_shown

    chosen = load_changed(given)
    rows = {
        path: {"value": value, "unit": unit} | ({"formula": formula} if formula else {})
        for path, (value, unit, formula) in parameter_rows(chosen.problem).items()
    }
    words = {"title": chosen.title, "source": chosen.source, "description": chosen.description}
    answer(words | {"dofs": chosen.problem.dofs, "parameters": rows})
    tell(chosen.name, "bold")
    for text in filter(None, (chosen.source, chosen.description)):
        tell(text.strip())
    dofs = (f"{name} ({kind})" for name, kind in chosen.problem.dofs.items())
    tell(f"Degrees of freedom: {', '.join(dofs)}")
    tell(elements_shown(chosen.problem))
    tell(parameters_shown(chosen.problem))
    tell(f"Checks: {len(chosen.checks)}")


@command("Begin", epilog="Example: jfric schema > jfric.schema.json")
def schema() -> None:
    """Print the JSON schema of a configuration file, for completion in editors."""
    from jfric.files.read_toml import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
