"""Commented starting files, and the record for the one about a fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from jfric.errors import ProblemError, nearest

#: Kinds of starting files, and the system that each file describes.
STARTERS = {
    "oscillator": "a mass on a spring with dry friction",
    "drive": "a carriage that a motor pulls, with stick-slip",
    "contact": "a ball that bounces, slides and comes to rest",
    "mechanism": "a pendulum on a cart: bodies, joints, friction of the guide",
    "fit": "a drive and a record of it, from which its friction is found",
}
#: The JSON schema that a file names in its first line, for editors.
SCHEMA = "jfric.schema.json"
_FOLDER = Path(__file__).parent / "starters"


def write_starter(kind: str, path: Path, systems: Mapping[str, Path] | None = None) -> list[Path]:
    """Write the starting file of this ``kind`` to ``path``, next to it the JSON schema that it
    names and its record, if any, and return the written paths. Nothing is overwritten.

    ``systems``: further files by name, any of which may be the ``kind``."""
    from jfric.files.read_toml import json_schema

    systems = systems or {}
    if kind not in STARTERS and kind not in systems:
        allowed = ", ".join(STARTERS)
        more = f", and {len(systems)} systems such as {next(iter(systems))}" if systems else ""
        near = nearest(kind, [*STARTERS, *systems])
        raise ProblemError(f"init: found {kind!r}{near}, allowed are {allowed}{more}")
    if path.suffix != ".toml":
        raise ProblemError(f"init: found the file {str(path)!r}, its name must end in .toml")
    source = _FOLDER / f"{kind}.toml" if kind in STARTERS else systems[kind]
    wanted = {path: f"#:schema {SCHEMA}\n" + source.read_text("utf-8")}
    record = source.with_suffix(".csv")
    if record.is_file():
        wanted[path.with_suffix(".csv")] = record.read_text("utf-8")
    for each in wanted:
        if each.exists():
            raise ProblemError(f"init: {each} exists already and stays as it is; choose a new name")
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = path.with_name(SCHEMA)
    if not schema.exists():
        wanted[schema] = json.dumps(json_schema(), indent=2) + "\n"
    for each, text in wanted.items():
        each.write_text(text, encoding="utf-8")
    return list(wanted)
