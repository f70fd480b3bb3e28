"""Words for completion in the shell, without JAX: a file is read as plain TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from jfric.files.starting_files import STARTERS
from jfric.verification.configs import config_directory

#: Tables of a file without parameters of the system, and keys without parameters.
_OTHER_TABLES = {"check", "solver", "data", "controller", "fit", "periodic"}
_OTHER_KEYS = {"outputs", "title", "source", "description", "angle", "omega", "count"}
#: Words for functions of time, which are left out of the paths of parameters below them.
_FORMS = {"harmonic", "linear", "steps", "ramp"}
#: A number with or without a unit, or the reference to a shared parameter.
_NUMBER = re.compile(r"[+-]?[\d.][\d.eE+-]*\s*([A-Za-zµΩ°%/][^()$]*)?|-?\$\w+")


def parameter_paths(context: typer.Context, incomplete: str) -> list[str]:
    """Paths of numbers in the file that the command names, for options ``PATH=VALUE``."""
    # The shell cuts off the words here, so the file may still be among the arguments.
    words = [context.params.get("config"), *context.args]
    config = next((x for x in words if x and str(x).endswith(".toml")), None)
    if config is None or "=" in incomplete:
        return []
    try:
        table = tomllib.loads(Path(config).read_text("utf-8"))
    except (OSError, ValueError):
        return []
    own = {k: v for k, v in table.items() if k not in _OTHER_TABLES}
    return [f"{x}=" for x in _numbers(own, ()) if x.startswith(incomplete)]


def starting_files(incomplete: str) -> list[str]:
    """Kinds of starting files, and systems of the package."""
    known = [*STARTERS, *(p.stem for p in sorted(config_directory().glob("*.toml")))]
    return [x for x in known if x.startswith(incomplete)]


def _numbers(table: Mapping[str, Any], inside: tuple[str, ...]) -> Iterator[str]:
    for key, value in table.items():
        if key in _OTHER_KEYS:
            continue
        path = inside if key in _FORMS and inside else (*inside, key)
        if isinstance(value, Mapping):
            yield from _numbers(value, path)
        elif isinstance(value, bool) or not path:
            continue
        elif isinstance(value, (int, float)) or (
            isinstance(value, str) and _NUMBER.fullmatch(value.strip())
        ):
            yield ".".join(path)
