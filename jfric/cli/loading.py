"""The system of a file with the changes of ``--set``, its solver, and the devices to use."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from jfric.errors import ProblemError

if TYPE_CHECKING:
    from jfric.files.config import Config
    from jfric.solvers.base import AbstractSolver


def load_changed(given: Any) -> Config:
    """The system of a command's record with the changes of ``--set``; remarks on unusual but
    allowed properties of the system go to standard error."""
    from jfric.files.overrides import apply_overrides
    from jfric.files.read_toml import load_config
    from jfric.system.law_checks import coefficient_remarks
    from jfric.system.states import passivity_remarks

    _require_file(given.config)
    chosen = load_config(given.config)
    changed = apply_overrides(chosen.problem, given.set_ or [])
    chosen = dataclasses.replace(chosen, problem=changed)
    problem = chosen.problem.resolved()
    for remark in [*passivity_remarks(problem), *coefficient_remarks(problem)]:
        typer.echo(f"mind: {remark}", err=True)
    return chosen


def _require_file(path: Path) -> None:
    """Raise :class:`ProblemError` for a file that is missing but has the name of a system of the
    package: with the command that writes it."""
    from jfric.files.starting_files import STARTERS
    from jfric.verification.configs import config_directory

    if path.exists() or path.suffix != ".toml":
        return
    if path.stem in STARTERS or (config_directory() / path.name).is_file():
        raise ProblemError(
            f"{path}: cannot read the file (No such file or directory); "
            f"jfric init {path.stem} {path} writes the one of the package"
        )


def solver_words(given: Any) -> dict[str, Any]:
    """Settings of the solver in the record of a command."""
    from jfric.files.solver_choice import parse_options

    own = {"name": getattr(given, "solver", None), "flow": given.flow, "rtol": given.rtol}
    return parse_options(given.option or [], **own)


def load_for_many(given: Any) -> tuple[Config, AbstractSolver]:
    """The system of a command's record for many trajectories, and their solver; also sets the
    devices of the record."""
    from jfric.files.solver_choice import choose_solver

    elsewhere = (getattr(given, name, None) for name in ("workers", "scheduler"))
    apart = any(place is not None for place in elsewhere)
    use_devices(1 if apart else given.devices)
    words = solver_words(given)
    chosen = load_changed(given)
    return chosen, choose_solver(chosen.solver, **words)[0]


def load_solved(given: Any) -> Config:
    """The system of a command's record with the changes of ``--set``, and with the solver of the
    record, if any, in place of that of the file."""
    from jfric.files.solver_choice import choose_solver

    words = solver_words(given)
    chosen = load_changed(given)
    return dataclasses.replace(chosen, solver=choose_solver(chosen.solver, **words)[1])


def use_devices(count: int | None) -> None:
    """Give JAX as many CPU devices as there are cores, or ``count``; before the first array."""
    from jfric.numerics.cores import use_cores
    from jfric.numerics.limits import DEVICES, require_count

    if count is not None:
        require_count("--devices", count, 1, DEVICES)
    with contextlib.suppress(ProblemError):  # the process has begun to use its devices
        use_cores(count)
