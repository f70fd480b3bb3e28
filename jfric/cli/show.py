"""``jfric show`` and ``jfric schema``: a system, and the possible content of a file."""

from __future__ import annotations

import json
from dataclasses import dataclass

import typer

from jfric.cli import options
from jfric.cli.app import answer, command, tell
from jfric.cli.loading import load_changed


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
    from jfric.files.schema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
