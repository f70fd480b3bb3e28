"""Actions and printed results of ``jfric periodic`` for one orbit."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.cli import report
from jfric.cli.app import status
from jfric.cli.kept_results import write_json
from jfric.cli.loading import load_changed
from jfric.files import output
from jfric.results.columns import columns
from jfric.results.grammar import split
from jfric.verification.periodic_checks import orbit_settings

if TYPE_CHECKING:
    from rich.console import Console

    from jfric.periodic.orbit import PeriodicOrbit

#: Outputs over a period, and events and multipliers with a line of their own.
OUTPUTS, MOST_LISTED = 401, 20


def run_periodic(
    console: Console,
    config: Path,
    *,
    settings: list[str],
    show: str | None,
    solver: dict[str, Any],
    out: Path | None,
    plot: bool,
) -> bool:
    """The orbit of a configuration, printed and written; whether there is one."""
    from jfric.files.solver_choice import choose_solver
    from jfric.files.write_toml import dump
    from jfric.periodic.solving import periodic_orbit

    chosen = load_changed(config, settings)
    chosen = dataclasses.replace(chosen, solver=choose_solver(chosen.solver, **solver)[1])
    problem, names = chosen.problem, None if show is None else split(show)
    folder, title = out or Path("results") / config.stem, chosen.title or config.stem
    console.print(title, style="bold", markup=False)
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
    write_json(place, content | {"trajectory": table.name})
    return [table, place]


def _figure(orbit: PeriodicOrbit, title: str):
    from jfric.figures.trajectory_figure import plot

    first = float(orbit.problem.resolved().time.start)
    solution = orbit.solution(first + float(orbit.period) * np.linspace(0.0, 1.0, 4 * OUTPUTS))
    return plot(solution, orbit.problem, title)
