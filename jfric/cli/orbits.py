"""Orbits of ``jfric periodic``, their paths over a parameter, and curves of special points."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import numpy as np

from jfric import figures, periodic, results
from jfric.cli.app import remarks, status, tell, tell_more, tell_rows, wrote
from jfric.cli.kept_results import add_figure, computed_into, write_rows
from jfric.cli.loading import load_solved, parse_interval, parse_path
from jfric.errors import ProblemError, SimulationError, nearest
from jfric.files import output
from jfric.files.assignments import parse_number, split_assignment
from jfric.files.config import Config
from jfric.files.write_toml import dump
from jfric.numerics.limits import parse_count
from jfric.periodic.state_vector import state_columns
from jfric.results.columns import columns
from jfric.sweeps.progress import Progress
from jfric.system.control import controllers
from jfric.system.problem import Problem
from jfric.verification.system_checks import POINT_KINDS, orbit_settings

#: Number of parts of an interval in the progress bar.
PARTS = 1000
#: Default number of values of a second parameter.
POINTS = 21
OVER_FORM = "PATH=STOP[:COUNT] such as contact.e=0.7"
#: Outputs over a period, and most events and multipliers that are listed.
OUTPUTS, MOST_LISTED = 401, 20


def find(given: Any) -> bool:
    """Find, print and write the orbit of a configuration; returns whether there is one."""
    chosen, names = load_solved(given), given.observed
    if controllers(chosen.problem):
        return _find_sampled(given, chosen)
    tell(chosen.name, "bold")
    with status(given.config.stem, "looking for the periodic motion"):
        orbit = periodic.periodic_orbit(chosen.problem, **orbit_settings(chosen))
    if not bool(orbit.converged):
        tell(f"no periodic motion: {orbit.outcome()}", "bold red")
        return False
    _print(orbit)
    values = {} if orbit.problem.bases else {"energy_loss": float(orbit.energy_loss())}
    if values:
        tell(f"energy lost per cycle {values['energy_loss']:.10g} J")
    for name, value in (orbit.observe(names) if names else {}).items():
        values[name] = float(value)
        tell(f"{name} = {values[name]:.12g}")
    about = {
        **{"period": float(orbit.period), "state": np.asarray(orbit.state).tolist()},
        **_judged(orbit),
        **{"events": orbit.event_table(), **values},
    }
    files = _write(given, chosen, orbit.problem, _motion(orbit, OUTPUTS), about)
    if given.plot:
        motion = _motion(orbit, 4 * OUTPUTS)
        add_figure(files, lambda: figures.plot(motion, orbit.problem, chosen.name))
    wrote(*files)
    return True


def _find_sampled(given: Any, chosen: Config) -> bool:
    """Find, print and write the orbit of samples of a configuration with controllers."""
    tell(chosen.name, "bold")
    with status(given.config.stem, "looking for an orbit of samples"):
        orbit = periodic.sampled_orbit(chosen.problem)
    if not orbit.converged:
        tell(f"no periodic motion: {orbit.status.message}", "bold red")
        return False
    tell(orbit)
    tell("stable" if orbit.stable else "unstable: the motion wanders about it")
    about = {"period": orbit.period, "samples": orbit.samples}
    about |= {"amplitude": np.asarray(orbit.amplitude).tolist(), **_judged(orbit)}
    wrote(*_write(given, chosen, chosen.problem, orbit.solution(), about))
    return True


def _judged(orbit: Any) -> dict[str, Any]:
    """Stability of an orbit as plain data, and its residual."""
    return {
        "multipliers": [[z.real, z.imag] for z in np.asarray(orbit.multipliers).tolist()],
        "stable": bool(orbit.stable),
        "residual": float(orbit.residual),
    }


def _print(orbit: periodic.PeriodicOrbit) -> None:
    """Print period, state, multipliers, stability and events."""
    if bool(orbit.is_equilibrium):
        tell("an equilibrium: nothing moves, its period is the given one", "bold")
    kind = "that of the loads" if orbit.forced else "its own"
    tell(f"period {float(orbit.period):.12g} s ({kind})")
    named = state_columns(orbit.axes, np.concatenate([orbit.q, orbit.v])[None])
    state = [f"{name} = {float(x[0]):.12g}" for name, x in named.items()]
    tell(f"at t = {_start(orbit):g} s: {', '.join(state)}")
    sizes = [(z.real, z.imag, abs(z)) for z in np.asarray(orbit.multipliers)[:MOST_LISTED]]
    rows = [(f"{i}", *(f"{x:.10g}" for x in z)) for i, z in enumerate(sizes, start=1)]
    tell_rows("Floquet multipliers", (">", ">real", ">imaginary", ">size"), rows)
    if 2 * len(orbit.axes) > MOST_LISTED:
        tell(f"and {2 * len(orbit.axes) - MOST_LISTED} smaller ones")
    word = "stable" if bool(orbit.stable) else "unstable"
    tell(f"{word}: the largest multiplier that counts is {float(orbit.largest_multiplier):.6g}")
    events = orbit.event_table()
    if not events:
        return tell("no events")
    rows = [
        (f"{e['time']:.12g}", e["contact"], e["from"], e["to"], "impact" if e["impact"] else "")
        for e in events[:MOST_LISTED]
    ]
    tell_rows("Events of a period", (">time [s]", "contact", "from", "to", ""), rows)
    tell_more(len(events), MOST_LISTED, "events")


def _start(orbit: periodic.PeriodicOrbit) -> float:
    return float(orbit.problem.resolved().time.start)


def _motion(orbit: periodic.PeriodicOrbit, outputs: int) -> results.Solution:
    """The motion over a period."""
    return orbit.solution(_start(orbit) + float(orbit.period) * np.linspace(0.0, 1.0, outputs))


def _write(
    given: Any,
    chosen: Config,
    problem: Problem,
    solution: results.Solution,
    orbit: dict[str, Any],
) -> list[Path]:
    """Write the motion over a period (CSV), and what is known of the orbit (JSON)."""
    content = output.sidecar(problem, solution, config=dump(chosen), orbit=orbit)
    table = columns(problem, solution)
    return write_rows(given.folder, "orbit", table, content, content["units"])


def follow(given: Any) -> bool:
    """Follow, print and write the path of a configuration over a parameter. For a branch from one
    of its special points, this is the path on the branch; for a curve of such a point, its places
    over a second parameter. Returns whether there is one. ``given``: the settings of the
    command."""
    chosen, names = load_solved(given), given.observed
    ends = _interval(chosen, given.parameter)
    words = {"--branch": given.branch, "--curve": given.curve}
    wanted = {option: _parse_point(text, option) for option, text in words.items() if text}
    second = _second(chosen.problem, given)
    tell(chosen.name, "bold")

    def computed(store: Path) -> tuple[periodic.OrbitPath, list[Path]]:
        settings = orbit_settings(chosen, "state")
        path = found = _followed(chosen, ends, store, settings)
        files = _write_path(path, names, store, dump(chosen))
        # On a branch the first orbit is known: settings that lead to one are not needed.
        beside = {k: x for k, x in settings.items() if k not in ("state", "transient")}
        if given.branch is not None:
            kind, number = wanted["--branch"]
            point = _point(path, kind, number, "--branch")
            folder = store / f"{kind}-{number}{'' if given.side == 1 else '-other-side'}"
            leaving = beside | {"from_": point, "side": given.side}
            found = _followed(chosen, ends, folder, leaving)
            files += _write_path(found, names, folder, dump(chosen))
        if second is not None:
            point = _point(path, *wanted["--curve"], "--curve")
            files += _curve(chosen.problem, path.name, point, second, store, beside)
        return found, files

    try:
        (found, files), _ = computed_into(given, "path", computed, ending="", keeps=_keeps)
    except SimulationError as error:
        tell(str(error), "bold red")
        return False
    if given.plot:
        add_figure(files, lambda: figures.plot_orbits(found, names, title=chosen.name))
    wrote(*files)
    return True


def _interval(config: Config, parameter: str | None) -> tuple[str, float, float]:
    """The parameter and its interval, from the command or the file."""
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
    """Kind and number of a point from ``KIND(NUMBER)``."""
    form = f"KIND(NUMBER) such as flip(1), of the kinds {', '.join(POINT_KINDS)}"
    found = re.fullmatch(r"\s*(\w+)\s*\(\s*([1-9]\d{0,5})\s*\)\s*", text)
    if found is None or found[1] not in POINT_KINDS:
        near = nearest(text.partition("(")[0].strip(), POINT_KINDS)
        raise ProblemError(f"{option}: found {text!r}{near}, expected {form}")
    return found[1], int(found[2])


def _point(path: periodic.OrbitPath, kind: str, number: int, option: str) -> periodic.OrbitPoint:
    points = path.points(POINT_KINDS[kind])
    if number > len(points):
        raise ProblemError(
            f"{option}: found {kind}({number}), the path has {len(points)} of this kind"
        )
    return points[number - 1]


def _second(problem: Problem, given: Any) -> tuple[str, float, int] | None:
    """The second parameter of a curve, its last value, and the number of its values."""
    if (given.curve is None) != (given.over is None):
        here, lacks = ("--over", "--curve") if given.curve is None else ("--curve", "--over")
        raise ProblemError(f"{lacks}: not given, {here} needs it")
    if given.over is None:
        return None
    path, text = split_assignment(given.over, OVER_FORM, "--over")
    name = parse_path(problem, path, "--over")
    stop, _, count = text.partition(":")
    points = parse_count(count, "--over: its number of values", 2, 10**5) if count else POINTS
    return name, parse_number(problem, name, stop, "--over"), points


def _followed(
    config: Config, ends: tuple[str, float, float], store: Path, settings: dict[str, Any]
) -> periodic.OrbitPath:
    """A path, stored in ``store`` and printed; raises :class:`jfric.SimulationError` without an
    orbit at its beginning."""
    point = settings.get("from_")
    try:
        with Progress(PARTS, stage="compiling") as bar:

            def watch(part: float, orbits: int) -> None:
                stage = f"{orbits:,} orbits over {ends[0]}"
                bar.show(round(PARTS * part), PARTS, stage, counted=orbits)

            kept = {"store": store, "title": config.name, "watch": watch}
            path = periodic.continue_orbit(config.problem, *ends, **kept, **settings)
    except SimulationError as error:
        with contextlib.suppress(OSError):  # only a folder that nothing was kept in
            store.rmdir()
        where = "at the start" if point is None else "on the branch"
        raise SimulationError(f"no periodic motion {where}: {error}") from None
    if point is not None:
        tell(f"the branch that leaves at {path.name} = {point.parameter:.12g}")
    _print_path(path)
    return path


def _keeps(store: Path) -> str:
    """Sentence on the stored orbits of an interrupted path."""
    if not list(store.glob("curve-*.npz")):
        return "interrupted; no orbit was kept"
    return f"interrupted; the orbits so far are kept, the same command with --out {store} goes on"


def _curve(
    problem: Problem,
    name: str,
    point: periodic.OrbitPoint,
    second: tuple[str, float, int],
    folder: Path,
    settings: dict[str, Any],
) -> list[Path]:
    """Print and write (CSV) the places of a special point over a second parameter."""
    other, stop, points = second
    with status(f"{point.kind} over {other}", "following it"):
        found = periodic.continue_special(
            problem, name, point, other, stop, points=points, **settings
        )
    _print_curve(found)
    file = output.reserve(folder, "curve").with_suffix(".csv")
    table = {other: found.second, name: found.parameter, "period": found.period}
    table["multiplier"] = np.max(np.abs(found.multipliers), axis=1, initial=0.0)
    output.write_trajectory(file, table, {"period": "s"})
    return [file]


def _print_curve(curve: periodic.SpecialCurve) -> None:
    name, other = curve.names
    points = zip(curve.second, curve.parameter, curve.period, strict=True)
    rows = [tuple(f"{x:.12g}" for x in point) for point in points]
    columns = f">{other}", f">{name}", ">period [s]"
    tell_rows(f"{curve.kind} in two parameters", columns, rows)
    remarks(curve.remarks)


def _print_path(path: periodic.OrbitPath) -> None:
    stable = int(np.sum(path.stable))
    tell(f"{len(path.parameter)} orbits over {path.name}, {stable} of them stable")
    rows = []
    for row in path.special_table():
        words = "; ".join(row["after"] or ["none"]) if row["kind"] == "event change" else ""
        numbers = f"{row['parameter']:.12g}", f"{row['period']:.12g}", f"{row['multiplier']:.6g}"
        rows.append((row["kind"], *numbers, words))
    columns = "kind", f">{path.name}", ">period [s]", ">largest multiplier", "events after it"
    tell_rows("Special points", columns, rows)
    remarks(path.remarks)


def _write_path(
    path: periodic.OrbitPath, names: list[str] | None, folder: Path, config: str
) -> list[Path]:
    """Write all orbits of a path (CSV), and its special points (JSON)."""
    table: dict[str, np.ndarray] = {path.name: path.parameter, "period": path.period}
    table |= state_columns(path.axes, path.state)
    table["multiplier"] = np.max(np.abs(path.multipliers), axis=1)
    table["stable"] = path.stable.astype(int)
    table |= path.observe(names) if names else {}
    special = [
        {**row, "state": point.state.tolist(), "row": point.row}
        for row, point in zip(path.special_table(), path.special, strict=True)
    ]
    content = {"parameter": path.name, "start": path.start, "stop": path.stop, "config": config}
    content |= {"special": special, "remarks": list(path.remarks)}
    return write_rows(folder, "orbits", table, content, {"period": "s"})
