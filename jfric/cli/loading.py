"""The system of a file with the changes of ``--set``, and remarks on it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from jfric.files.config import Config


def load_changed(path: Path, settings: list[str] | None, *, controller: bool = False) -> Config:
    """Read ``path`` and apply ``settings``; what is allowed but unusual in the system is said on
    standard error. ``controller``: whether the command can close the loop of a file that has one;
    others refuse it."""
    from jfric.files.config import require_open_loop
    from jfric.files.overrides import apply_overrides
    from jfric.files.read_toml import load_config
    from jfric.system.bristle_checks import passivity_remarks

    chosen = load_config(path)
    if not controller:
        require_open_loop(chosen)
    chosen = dataclasses.replace(chosen, problem=apply_overrides(chosen.problem, settings or []))
    for remark in passivity_remarks(chosen.problem.resolved()):
        typer.echo(f"mind: {remark}", err=True)
    return chosen
