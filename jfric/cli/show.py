"""``jfric show`` and ``jfric schema``: a system, and what a file may hold."""

from __future__ import annotations

import json

import typer

from jfric.cli.app import ConfigPath, Settings, app, console, one_sentence
from jfric.cli.loading import load_changed


@app.command(epilog="Example: jfric show configs/ve0116.toml")
@one_sentence
def show(config: ConfigPath, set_: Settings = None) -> None:
    """Print the system: degrees of freedom, elements, and all parameters with their units."""
    from jfric.cli import report

    chosen = load_changed(config, set_, controller=True)
    problem = chosen.problem
    terminal = console()
    terminal.print(chosen.title or config.stem, style="bold", markup=False)
    for text in (chosen.source, chosen.description):
        if text:
            terminal.print(text.strip(), markup=False)
    dofs = ", ".join(f"{name} ({kind})" for name, kind in problem.dofs.items())
    terminal.print(f"Degrees of freedom: {dofs}", markup=False)
    terminal.print(report.elements_table(problem))
    terminal.print(report.parameters_table(problem))
    terminal.print(f"Checks: {len(chosen.checks)}")


@app.command(epilog="Example: jfric schema > jfric.schema.json")
@one_sentence
def schema() -> None:
    """Print the JSON schema of a configuration file, for completion in editors."""
    from jfric.files.schema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
