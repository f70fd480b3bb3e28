"""Actions and printed results of ``jfric periodic`` for a path over a parameter, its branches and
curves of its special points."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.cli import report
from jfric.cli.app import status
from jfric.cli.interrupt import kept
from jfric.cli.kept_results import free_folder, write_json
from jfric.cli.loading import load_changed
from jfric.cli.vary import parse_interval, split_vary, vary_number
from jfric.errors import ProblemError, SimulationError, nearest
from jfric.files import output
from jfric.numerics.limits import parse_count
from jfric.results.grammar import split
from jfric.statics.path_names import checked_path
from jfric.sweeps.progress import Progress
from jfric.verification.periodic_checks import POINT_KINDS, orbit_settings

if TYPE_CHECKING:
    from rich.console import Console

    from jfric.files.config import Config
    from jfric.periodic.path import OrbitPath, OrbitPoint
    from jfric.periodic.special_curve import SpecialCurve
    from jfric.system.problem import Problem

#: Parts of an interval in the progress bar.
PARTS = 1000
#: Values of a second parameter.
POINTS = 21
OVER_FORM = "PATH=STOP[:COUNT] such as contact.e=0.7"


def run_path(
    console: Console,
    config: Path,
    *,
    settings: list[str],
    parameter: str | None,
    branch: str | None,
    side: int,
    curve: str | None,
    over: str | None,
    show: str | None,
    solver: dict[str, Any],
    out: Path | None,
    plot: bool,
) -> bool:
    """The path of a configuration over a parameter; of the ``branch`` that leaves one of its
    special points, the path on it; of the ``curve`` of such a point, where it lies ``over`` a
    second parameter. Printed and written; whether there is one."""
    from jfric.files.solver_choice import choose_solver
    from jfric.files.write_toml import dump

    chosen = load_changed(config, settings)
    chosen = dataclasses.replace(chosen, solver=choose_solver(chosen.solver, **solver)[1])
    problem, names = chosen.problem, None if show is None else split(show)
    ends = _interval(chosen, parameter)
    wanted = {o: _parse_point(t, o) for o, t in (("--branch", branch), ("--curve", curve)) if t}
    second = _second(problem, curve, over)
    title = chosen.title or config.stem
    console.print(title, style="bold", markup=False)
    store = out or free_folder(Path("results") / config.stem, "path", "")
    try:
        path = _followed(console, problem, ends, store, title, orbit_settings(chosen, "state"))
        if path is None:
            return False
        _print_path(console, path)
        files = _write_path(path, names, store, dump(chosen))
        found, beside = path, _without_start(orbit_settings(chosen, "state"))
        if branch is not None:
            kind, number = wanted["--branch"]
            point = _point(path, kind, number, "--branch")
            folder = store / f"{kind}-{number}{'' if side == 1 else '-other-side'}"
            beside |= {"from_": point, "side": side}
            found = _followed(console, problem, ends, folder, title, beside)
            if found is None:
                return False
            where = f"{path.name} = {point.parameter:.12g}"
            console.print(f"the branch that leaves at {where}", markup=False)
            _print_path(console, found)
            files += _write_path(found, names, folder, dump(chosen))
        if curve is not None and second is not None:
            point = _point(path, *wanted["--curve"], "--curve")
            files += _curve(console, problem, path.name, point, second, store, beside)
    except ProblemError:
        with contextlib.suppress(OSError):  # only a folder that nothing was kept in
            store.rmdir()
        raise
    except SimulationError as error:
        console.print(str(error), style="bold red", markup=False)
        return False
    if plot:
        from jfric.figures.orbit_figure import plot_orbits

        files.append(files[0].with_suffix(".png"))
        plot_orbits(found, names, title=title).savefig(files[-1], dpi=150)
    console.print("wrote " + ", ".join(str(f) for f in files), markup=False, soft_wrap=True)
    return True


def _interval(config: Config, parameter: str | None) -> tuple[str, float, float]:
    """The parameter and its interval, of the command or of the file."""
    given: dict[str, Any] = dict(config.periodic)
    if parameter is not None:
        given = parse_interval(config.problem, parameter, "--parameter")
    if "vary" not in given:
        raise ProblemError(
            "--parameter: not given, needs PATH=START:STOP; the file has no table [periodic] with "
            "vary"
        )
    return given["vary"], given["start"], given["stop"]


def _parse_point(text: str, option: str) -> tuple[str, int]:
    """``KIND(NUMBER)``."""
    form = f"KIND(NUMBER) such as flip(1), of the kinds {', '.join(POINT_KINDS)}"
    found = re.fullmatch(r"\s*(\w+)\s*\(\s*([1-9]\d{0,5})\s*\)\s*", text)
    if found is None or found[1] not in POINT_KINDS:
        near = nearest(text.partition("(")[0].strip(), POINT_KINDS)
        raise ProblemError(f"{option}: found {text!r}{near}, expected {form}")
    return found[1], int(found[2])


def _point(path: OrbitPath, kind: str, number: int, option: str) -> OrbitPoint:
    points = path.points(POINT_KINDS[kind])
    if number > len(points):
        raise ProblemError(
            f"{option}: found {kind}({number}), the path has {len(points)} of this kind"
        )
    return points[number - 1]


def _second(problem: Problem, curve: str | None, over: str | None) -> tuple[str, float, int] | None:
    """The second parameter of a curve, where it ends, and the number of its values."""
    if (curve is None) != (over is None):
        here, lacks = ("--over", "--curve") if curve is None else ("--curve", "--over")
        raise ProblemError(f"{lacks}: not given, {here} needs it beside it")
    if over is None:
        return None
    path, text = split_vary(over, OVER_FORM, "--over")
    try:
        name = checked_path(problem, path)
    except ProblemError as error:
        raise ProblemError(f"--over: {error}") from None
    stop, _, count = text.partition(":")
    points = parse_count(count, "--over: its number of values", 2, 10**5) if count else POINTS
    return name, vary_number(problem, name, stop, "--over"), points


def _without_start(settings: dict[str, Any]) -> dict[str, Any]:
    """Without what leads to the first orbit of a path: that is known."""
    return {k: x for k, x in settings.items() if k not in ("state", "transient")}


def _followed(
    console: Console,
    problem: Problem,
    ends: tuple[str, float, float],
    store: Path,
    title: str,
    given: dict[str, Any],
) -> OrbitPath | None:
    """A path, kept in ``store``; None, and a sentence, where there is no orbit to begin with."""
    from jfric.periodic.continuation import continue_orbit

    try:
        with kept(lambda: _keeps(store)), Progress(PARTS, stage="compiling") as bar:

            def watch(part: float, orbits: int) -> None:
                bar.show(round(PARTS * part), PARTS, f"{orbits:,} orbits over {ends[0]}")

            return continue_orbit(problem, *ends, store=store, title=title, watch=watch, **given)
    except SimulationError as error:
        with contextlib.suppress(OSError):  # only a folder that nothing was kept in
            store.rmdir()
        where = "at the start" if "from_" not in given else "on the branch"
        console.print(f"no periodic motion {where}: {error}", style="bold red", markup=False)
        return None


def _keeps(store: Path) -> str:
    """Sentence on the orbits that are kept of an interrupted path."""
    if not list(store.glob("curve-*.npz")):
        return "interrupted; no orbit was kept"
    return f"interrupted; the orbits so far are kept, the same command with --out {store} goes on"


def _curve(
    console: Console,
    problem: Problem,
    name: str,
    point: OrbitPoint,
    second: tuple[str, float, int],
    folder: Path,
    given: dict[str, Any],
) -> list[Path]:
    """Where a special point lies over a second parameter: printed, and written (CSV)."""
    from jfric.periodic.special_curve import continue_special

    other, stop, points = second
    given = {k: x for k, x in given.items() if k not in ("from_", "side")}
    with status(f"{point.kind} over {other}") as announce:
        announce("following it")
        found = continue_special(problem, name, point, other, stop, points=points, **given)
    _print_curve(console, found)
    file = output.reserve(folder, "curve").with_suffix(".csv")
    table = {other: found.second, name: found.parameter, "period": found.period}
    table["multiplier"] = np.max(np.abs(found.multipliers), axis=1, initial=0.0)
    output.write_trajectory(file, table, {"period": "s"})
    return [file]


def _print_curve(console: Console, curve: SpecialCurve) -> None:
    name, other = curve.names
    title = f"{curve.kind} in two parameters"
    table = report.plain_table(title, f">{other}", f">{name}", ">period [s]")
    for row in zip(curve.second, curve.parameter, curve.period, strict=True):
        table.add_row(*(f"{x:.12g}" for x in row))
    console.print(table)
    for remark in curve.remarks:
        console.print(f"mind: {remark}", style="yellow", markup=False)


def _print_path(console: Console, path: OrbitPath) -> None:
    stable = int(np.sum(path.stable))
    console.print(
        f"{len(path.parameter)} orbits over {path.name}, {stable} of them stable", markup=False
    )
    table = report.plain_table(
        "Special points", "kind", f">{path.name}", ">period [s]", ">largest multiplier", "events"
    )
    for row in path.special_table():
        words = "; ".join(row["after"] or ()) if row["kind"] == "event change" else ""
        numbers = (f"{row[k]:.12g}" for k in ("parameter", "period"))
        table.add_row(row["kind"], *numbers, f"{row['multiplier']:.6g}", words)
    console.print(table)
    for remark in path.remarks:
        console.print(f"mind: {remark}", style="yellow", markup=False)


def _write_path(path: OrbitPath, names: list[str] | None, folder: Path, config: str) -> list[Path]:
    """All orbits of a path (CSV), and its special points (JSON)."""
    from jfric.periodic.state_vector import state_columns

    table: dict[str, np.ndarray] = {path.name: path.parameter, "period": path.period}
    table |= state_columns(path.axes, path.state)
    table["multiplier"] = np.max(np.abs(path.multipliers), axis=1)
    table["stable"] = path.stable.astype(int)
    table |= path.observe(names) if names else {}
    place = output.reserve(folder, "orbits")
    file = place.with_suffix(".csv")
    output.write_trajectory(file, table, {"period": "s"})
    special = [
        {**row, "state": point.state.tolist(), "row": point.row}
        for row, point in zip(path.special_table(), path.special, strict=True)
    ]
    content = {"parameter": path.name, "start": path.start, "stop": path.stop, "config": config}
    write_json(place, content | {"special": special, "remarks": list(path.remarks)})
    return [file, place]
