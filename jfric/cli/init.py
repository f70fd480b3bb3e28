"""``jfric init``: a starting file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from jfric.cli.app import command, tell, wrote
from jfric.cli.completion import starting_files
from jfric.cli.options import argument
from jfric.files.starting_files import STARTERS, write_starter
from jfric.verification.configs import config_directory

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
    systems = {p.stem: p for p in sorted(config_directory().glob("*.toml"))}
    written = write_starter(given.kind, path, systems)
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
