"""What ``jfric periodic`` does and prints."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.cli import report
from jfric.cli.app import status
from jfric.cli.interrupt import kept
from jfric.cli.loading import load_changed
from jfric.cli.run_sweep import free_folder
from jfric.cli.vary import parse_interval
from jfric.errors import ProblemError, SimulationError
from jfric.files import output
from jfric.results.columns import columns
from jfric.results.grammar import split
from jfric.sweeps.progress import Progress
from jfric.verification.periodic_checks import orbit_settings

if TYPE_CHECKING:
    from rich.console import Console

    from jfric.periodic.orbit import PeriodicOrbit
    from jfric.periodic.path import OrbitPath

#: Outputs over a period, and events and multipliers with a line of their own.
OUTPUTS, MOST_LISTED = 401, 20
#: Parts of an interval in the progress bar.
PARTS = 1000


def run_periodic(
    console: Console,
    config: Path,
    *,
    settings: list[str],
    parameter: str | None,
    show: str | None,
    solver: dict[str, Any],
    out: Path | None,
    plot: bool,
) -> bool:
    """The orbit of a configuration or its path over a parameter, printed and written; whether there
    is one."""
    from jfric.files.solver_choice import choose_solver
    from jfric.files.write_toml import dump
    from jfric.periodic.continuation import continue_orbit
    from jfric.periodic.solving import periodic_orbit

    chosen = load_changed(config, settings)
    chosen = dataclasses.replace(chosen, solver=choose_solver(chosen.solver, **solver)[1])
    problem, names = chosen.problem, None if show is None else split(show)
    interval = None if parameter is None else parse_interval(problem, parameter, "--parameter")
    console.print(chosen.title or config.stem, style="bold", markup=False)
    folder, title = out or Path("results") / config.stem, chosen.title or config.stem
    if interval is not None:
        ends = interval["vary"], interval["start"], interval["stop"]
        store = out or free_folder(folder, "path", "")
        try:
            with kept(lambda: _keeps(store)), Progress(PARTS, stage="compiling") as bar:

                def watch(part: float, orbits: int) -> None:
                    bar.show(round(PARTS * part), PARTS, f"{orbits:,} orbits over {ends[0]}")

                given = orbit_settings(chosen, "state")
                path = continue_orbit(
                    problem, *ends, store=store, title=title, watch=watch, **given
                )
        except (ProblemError, SimulationError) as error:
            with contextlib.suppress(OSError):  # only a folder that nothing was kept in
                store.rmdir()
            if isinstance(error, ProblemError):
                raise
            console.print(f"no periodic motion at the start: {error}", style="bold red")
            return False
        _print_path(console, path)
        files = _write_path(path, names, store, dump(chosen))
        if plot:
            from jfric.figures.orbit_figure import plot_orbits

            files.append(files[0].with_suffix(".png"))
            plot_orbits(path, names, title=title).savefig(files[-1], dpi=150)
        console.print("wrote " + ", ".join(str(f) for f in files), markup=False, soft_wrap=True)
        return True
    with status(config.stem) as announce:
        announce("looking for the periodic motion")
        orbit = periodic_orbit(problem, **orbit_settings(chosen))
    if not bool(orbit.converged):
        console.print(f"no periodic motion: {orbit.outcome()}", style="bold red", markup=False)
        return False
    values = _print_orbit(console, orbit, names)
    files = _write_orbit(orbit, values, folder, dump(chosen))
    if plot:
        files.append(files[0].with_suffix(".png"))
        _figure(orbit, title).savefig(files[-1], dpi=150)
    console.print("wrote " + ", ".join(str(f) for f in files), markup=False, soft_wrap=True)
    return True


def _keeps(store: Path) -> str:
    """What is kept of a path that was interrupted."""
    if not list(store.glob("curve-*.npz")):
        return "interrupted; no orbit was kept"
    return f"interrupted; the orbits so far are kept, the same command with --out {store} goes on"


def _print_orbit(
    console: Console, orbit: PeriodicOrbit, names: list[str] | None
) -> dict[str, float]:
    """Period, multipliers, stability, events, energy; what was observed."""
    from jfric.periodic.state_vector import state_columns

    kind = "that of the loads" if orbit.forced else "its own"
    console.print(f"period {float(orbit.period):.12g} s ({kind})", markup=False)
    n = len(orbit.axes)
    named = state_columns(orbit.axes, np.concatenate([orbit.q, orbit.v])[None])
    state = [f"{name} = {float(x[0]):.12g}" for name, x in named.items()]
    start = float(orbit.problem.resolved().time.start)
    console.print(f"at t = {start:g} s: {', '.join(state)}", markup=False)
    table = report.plain_table("Floquet multipliers", ">", ">real", ">imaginary", ">size")
    for i, z in enumerate(np.asarray(orbit.multipliers)[:MOST_LISTED], start=1):
        table.add_row(str(i), f"{z.real:.10g}", f"{z.imag:.10g}", f"{abs(z):.10g}")
    console.print(table)
    if 2 * n > MOST_LISTED:
        console.print(f"and {2 * n - MOST_LISTED} smaller ones", markup=False)
    largest = float(orbit.largest_multiplier)
    word = "stable" if bool(orbit.stable) else "unstable"
    console.print(f"{word}: the largest multiplier that counts is {largest:.6g}", markup=False)
    rows = orbit.event_table()
    if rows:
        table = report.plain_table("Events of a period", ">time [s]", "contact", "from", "to", "")
        for row in rows[:MOST_LISTED]:
            impact = "impact" if row["impact"] else ""
            names_ = row["contact"], row["from"], row["to"], impact
            table.add_row(f"{row['time']:.12g}", *names_)
        console.print(table)
        if len(rows) > MOST_LISTED:
            console.print(f"and {len(rows) - MOST_LISTED} more events", markup=False)
    else:
        console.print("no events", markup=False)
    values: dict[str, float] = {}
    if not orbit.problem.bases:
        values["energy_loss"] = float(orbit.energy_loss())
        console.print(f"energy lost per cycle {values['energy_loss']:.10g} J", markup=False)
    found = orbit.observe(names) if names else {}
    for name, value in found.items():
        values[name] = float(np.asarray(value))
        console.print(f"{name} = {values[name]:.12g}", markup=False)
    return values


def _write_orbit(
    orbit: PeriodicOrbit, values: dict[str, float], folder: Path, config: str
) -> list[Path]:
    """The motion over a period (CSV), and what was printed (JSON)."""
    problem = orbit.problem
    first = float(problem.resolved().time.start)
    solution = orbit.solution(first + float(orbit.period) * np.linspace(0.0, 1.0, OUTPUTS))
    content = output.sidecar(problem, solution, config=config)
    multipliers = np.asarray(orbit.multipliers)
    content["orbit"] = {
        "period": float(orbit.period),
        "state": np.asarray(orbit.state).tolist(),
        "multipliers": [[z.real, z.imag] for z in multipliers.tolist()],
        "stable": bool(orbit.stable),
        "residual": float(orbit.residual),
        "events": orbit.event_table(),
        **values,
    }
    place = output.reserve(folder, "orbit")
    table = place.with_suffix(".csv")
    rows = np.arange(solution.ts.size)
    output.write_trajectory(table, columns(problem, solution, rows), content["units"])
    output.write_json(place, content | {"trajectory": table.name})
    return [table, place]


def _figure(orbit: PeriodicOrbit, title: str):
    from jfric.figures.trajectory_figure import plot

    first = float(orbit.problem.resolved().time.start)
    solution = orbit.solution(first + float(orbit.period) * np.linspace(0.0, 1.0, 4 * OUTPUTS))
    return plot(solution, orbit.problem, title)


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
    output.write_json(place, content | {"special": special, "remarks": list(path.remarks)})
    return [file, place]
