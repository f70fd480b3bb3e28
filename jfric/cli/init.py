"""``jfric init``: a starting file."""

from __future__ import annotations

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
        ...,
        f"{_KINDS}; or the name of a system of the package, such as ve0116; the shell completes "
        "these names.",
        metavar="|".join([*STARTERS, "NAME"]),
        autocompletion=starting_files,
    )
    path: Path | None = argument(None, "File to write; KIND.toml unless given.", metavar="FILE")


@command("Begin", epilog="Examples: jfric init drive slide.toml | jfric init ve0116")
def init(given: InitSettings) -> None:
    """Write a file to begin with, and the JSON schema by which editors complete it.

    Nothing that exists is overwritten. Exit status: 0, 2 for bad input.
    """
    path = given.path or Path(f"{given.kind}.toml")
    systems = {p.stem: p for p in sorted(config_directory().glob("*.toml"))}
    written = write_starter(given.kind, path, systems)
    wrote(*written)
    following = f"jfric run {path} --plot"
    if given.kind == "fit":
        free = "--free friction.limit=0.01:1 --free spring.k=1:100"
        following = f"jfric fit {path} --data {path.with_suffix('.csv')} {free}"
    tell(f"next: {following}", whole=True)
