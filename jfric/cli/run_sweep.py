"""Actions of ``jfric sweep`` and ``jfric plot``: options to calls, results to sentences."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.cli.kept_results import computed_into, print_counts, write_figure
from jfric.cli.loading import load_changed
from jfric.cli.vary import split_vary, vary_number
from jfric.errors import ProblemError
from jfric.numerics.limits import DEVICES, OUTPUTS, TRAJECTORIES, parse_count, require_count
from jfric.results.grammar import split
from jfric.results.status import Status
from jfric.sweeps.design import SAMPLED
from jfric.sweeps.ranges import SCALES, Range
from jfric.system.naming import find_path
from jfric.system.units import DIMENSIONS, UnitError, to_si

if TYPE_CHECKING:
    from rich.console import Console

    from jfric.files.config import Config
    from jfric.system.problem import Problem

VARY_FORM = "PATH=LOW:HIGH:COUNT[:log], or PATH=[A, B, ...]"


def run_sweep(
    console: Console,
    config: Path,
    *,
    settings: list[str],
    vary: list[str],
    observe: str,
    method: str,
    samples: int | None,
    seed: int,
    times: str | None,
    solver: dict[str, Any],
    out: Path | None,
    plot: bool,
    command: str,
    **execution: Any,
) -> bool:
    """Sweep a configuration into ``out`` and say what came of it; whether all went well.
    ``command``: what was called, kept with the results."""
    from jfric.files.solver_choice import choose_solver
    from jfric.files.write_toml import dump
    from jfric.sweeps.sweeping import execute, prepare

    chosen = load_changed(config, settings)
    built, _ = choose_solver(chosen.solver, **solver)
    varied = parse_vary(chosen.problem, vary, sampled=method in SAMPLED)
    prepared = prepare(
        chosen.problem,
        varied,
        split(observe),
        method=method,
        samples=samples,
        seed=seed,
        times=parse_times(chosen, times),
        solver=built,
        config=dump(chosen),
        title=chosen.title or config.stem,
        command=command,
        point_command=command_of_a_point(chosen.problem, config, settings, varied, solver),
    )
    (_, summary), store = computed_into(
        config, out, "sweep", lambda store: execute(prepared, store=store, **execution)
    )
    print_counts(console, prepared.design.size, summary.computed, summary.seconds)
    failed = {Status(i): n for i, n in enumerate(summary.statuses) if n and i != int(Status.OK)}
    for status, count in failed.items():
        console.print(f"{count:,} failed: {status.message}", markup=False, style="bold red")
    console.print(f"wrote {store}", markup=False, soft_wrap=True)
    if plot:
        draw(console, store, None, None)
    return not failed


def command_of_a_point(
    problem: Problem,
    config: Path,
    settings: Iterable[str],
    varied: Collection[str],
    solver: dict[str, Any],
) -> str:
    """The command of one run; where the varied parameters are set as well, that of a point."""
    words = ["jfric", "run", str(config)]
    for setting in settings:
        if find_path(problem, setting.partition("=")[0].strip()) not in varied:
            words += ["--set", setting]
    own = {"name": "--solver", "flow": "--flow", "rtol": "--rtol"}
    for key, value in solver.items():
        if value is not None:
            words += [own[key], str(value)] if key in own else ["--option", f"{key}={value}"]
    return shlex.join(words)


def draw(console: Console, store: Path, names: list[str] | None, out: Path | None) -> None:
    """Draw the results of a sweep beside them, or to ``out``."""
    from jfric.figures.sweep_figure import plot_sweep
    from jfric.sweeps.store import open_sweep

    figure = plot_sweep(open_sweep(store), names)
    write_figure(console, out or store.with_suffix(".png"), lambda: figure, "--out")


def parse_vary(
    problem: Problem, given: list[str], *, sampled: bool, option: str = "--vary"
) -> dict[str, Any]:
    """Parameters and their values from ``path=low:high:count[:log]`` or ``path=[a, b, ...]``.

    Sampled sweeps take ``path=low:high[:log]``. Quantities may carry their units.
    """
    result: dict[str, Any] = {}
    for text in given:
        form = "PATH=LOW:HIGH[:log]" if sampled else VARY_FORM
        path, values = split_vary(text, form, option)
        try:
            name = find_path(problem, path)
        except KeyError as error:
            raise ProblemError(f"{option}: {error.args[0]}") from None
        if name in result:
            raise ProblemError(f"{option}: found {name!r} twice")
        if values.startswith("["):
            parts = values.strip("[]").split(",")
            result[name] = np.array([vary_number(problem, name, part, option) for part in parts])
            continue
        parts = [part.strip() for part in values.split(":")]
        scale = parts.pop() if parts[-1] in SCALES else "linear"
        if len(parts) != (2 if sampled else 3):
            raise ProblemError(f"{option} {name}: found {values!r}, expected {form}")
        low, high = (vary_number(problem, name, part, option) for part in parts[:2])
        count = None if sampled else _count(name, parts[2], option)
        try:
            result[name] = Range(low, high, count, scale)
        except ProblemError as error:
            raise ProblemError(f"{option} {name}: {error}") from None
    return result


def _count(name: str, text: str, option: str) -> int:
    return parse_count(text, f"{option} {name}: its number of values", 1, TRAJECTORIES)


def parse_times(config: Config, text: str | None) -> np.ndarray | None:
    """Times of ``u(t)``: a number of them over the time span, or a list such as '0.5, 20 ms'."""
    from jfric.files.config import time_span

    if text is None:
        return None
    if text.strip().isdecimal():
        count = parse_count(text, "--times", 2, OUTPUTS)
        return np.linspace(*time_span(config.problem), count)
    try:
        values = [to_si(part.strip(), DIMENSIONS["time"]) for part in text.split(",")]
        return np.unique(np.array(values, float))
    except (UnitError, TypeError) as error:
        raise ProblemError(f"--times: {error}") from None


def use_devices(count: int | None) -> None:
    """Give JAX as many CPU devices as there are cores, or ``count``; before the first array."""
    from jfric.numerics.cores import use_cores

    if count is not None:
        require_count("--devices", count, 1, DEVICES)
    with contextlib.suppress(ProblemError):  # the process has begun to use its devices
        use_cores(count)
