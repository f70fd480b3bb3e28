"""The system of a file with the changes of ``--set``, its solver, the devices to use, and values of
other options: intervals of parameters, and times."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from jfric import solvers
from jfric.errors import ProblemError, within
from jfric.numerics.limits import OUTPUTS, parse_count

if TYPE_CHECKING:
    import numpy as np

    from jfric.files.config import Config
    from jfric.system.problem import Problem

INTERVAL_FORM = "path=start:stop such as contact.mu=0:1.5"


def load_changed(given: Any) -> Config:
    """The system of a command's record with the changes of ``--set``; remarks on unusual but
    allowed properties of the system go to standard error."""
    from jfric.files.assignments import apply_overrides
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
    from jfric.verification.configs import systems

    if path.exists() or path.suffix != ".toml":
        return
    if path.stem in STARTERS or path.stem in systems():
        raise ProblemError(
            f"{path}: cannot read the file (No such file or directory); "
            f"jfric init {path.stem} {path} writes the one of the package"
        )


def solver_words(given: Any) -> dict[str, Any]:
    """Settings of the solver in the record of a command."""
    from jfric.files.solver_choice import parse_options

    own = {"name": getattr(given, "solver", None), "flow": given.flow, "rtol": given.rtol}
    return parse_options(given.option or [], **own)


def load_for_many(given: Any) -> tuple[Config, solvers.AbstractSolver]:
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


def parse_path(problem: Problem, text: str, option: str) -> str:
    """The full path of a parameter that a path follows."""
    from jfric.statics.path_names import checked_path

    with within(f"{option}: "):
        return checked_path(problem, text)


def parse_interval(problem: Problem, text: str, option: str = "--vary") -> dict[str, Any]:
    """``PATH=START:STOP``, where the values may carry units."""
    from jfric.files.assignments import parse_number, split_assignment

    path, interval = split_assignment(text, INTERVAL_FORM, option)
    ends = interval.split(":")
    if len(ends) != 2:
        raise ProblemError(f"{option}: found {text!r}, expected {INTERVAL_FORM}")
    name = parse_path(problem, path, option)
    start, stop = (parse_number(problem, name, end, option) for end in ends)
    return {"vary": name, "start": start, "stop": stop}


def followed(config: Config, text: str | None) -> dict[str, Any]:
    """The parameter and its interval: those of the option ``--vary``, or else of the file."""
    wanted = dict(config.statics) if text is None else parse_interval(config.problem, text)
    if not wanted:
        raise ProblemError(
            "--vary: not given, and the file has no table [statics]; give --vary PATH=START:STOP"
        )
    return wanted


def names_in(text: str | None) -> list[str]:
    """Names of an option, separated by commas; none without the option."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def parse_times(text: str) -> int | np.ndarray:
    """A number of times, or the times of a list such as ``0.5, 20 ms`` in their order."""
    import numpy as np

    from jfric.system.units import DIMENSIONS, UnitError, to_si

    if text.strip().isdecimal():
        return parse_count(text, "--times", 2, OUTPUTS)
    with within("--times: ", UnitError, TypeError, ValueError):
        values = [to_si(part.strip(), DIMENSIONS["time"]) for part in text.split(",")]
        return np.unique(np.array(values, float))


def to_seconds(text: str | None, option: str) -> float | None:
    """The time of an option in seconds; None without the option."""
    from jfric.files.assignments import parse_time

    return None if text is None else parse_time(text, option)
