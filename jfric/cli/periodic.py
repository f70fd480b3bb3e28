"""``jfric periodic``: a periodic motion of a system, and its path over a parameter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jfric.periodic
from jfric import figures, results
from jfric.cli import options
from jfric.cli.app import command, status, tell, tell_more, tell_rows, wrote
from jfric.cli.kept_results import add_figure, write_rows
from jfric.cli.loading import load_solved
from jfric.cli.options import setting

if TYPE_CHECKING:
    from jfric.files.config import Config
    from jfric.system.problem import Problem

#: Outputs over a period, and most events and multipliers that are listed.
OUTPUTS, MOST_LISTED = 401, 20


@dataclass(frozen=True, kw_only=True)
class PeriodicSettings(options.OnMotion):
    """Settings of ``jfric periodic``."""

    parameter: str | None = setting(
        "Follow the motion over this parameter; values may carry units. With --branch and --curve "
        "by default that of the file.",
        metavar="PATH=START:STOP",
        paths=True,
    )
    branch: str | None = setting(
        "Follow the branch that leaves this special point of the path as well: flip(1) or "
        "branch_point(1).",
        metavar="KIND(NUMBER)",
    )
    side: int = setting("To which side the branch leaves, 1 or -1.", 1, metavar="1|-1")
    curve: str | None = setting(
        "Follow this special point of the path over a second parameter: fold(1), flip(1), torus(1) "
        "or event_change(1).",
        metavar="KIND(NUMBER)",
    )
    over: str | None = setting(
        "The second parameter of --curve, from its value in the file to this one.",
        metavar="PATH=STOP[:COUNT]",
        paths=True,
    )
    show: str | None = setting(
        "Observables of a period to write and draw, separated by commas (max.x, rms.v.x).",
        metavar="NAMES",
    )
    out: Path | None = setting(
        "Folder of the result files, instead of results/<name of the file>, of a path with "
        "--parameter path-NNN there: the same command goes on after an interruption.",
        metavar="FOLDER",
    )
    plot: options.Plot = False

    @property
    def observed(self) -> list[str] | None:
        """Names of observables of a period."""
        from jfric.results.grammar import split

        return None if self.show is None else split(self.show)


@command(
    "Study",
    epilog="Example, after jfric init p1_ball: jfric periodic p1_ball.toml "
    "--parameter base.table.displacement.amplitude=0.1:0.3 --plot",
)
def periodic(given: PeriodicSettings) -> bool:
    """Find a periodic motion of a system, or follow it over a parameter.

    The table \\[periodic] of the file says how it is searched; a file without it is searched by the
    defaults. Prints its period, Floquet multipliers, stability, events and energy per cycle, and
    writes the motion over a period, or all motions over a parameter (CSV), those on a branch, and
    where a special point lies in two parameters. Exit status: 0, 1 where there is none, 2 for
    bad input.
    """
    if given.parameter is given.branch is given.curve is given.over is None:
        return _find(given)
    from jfric.cli.periodic_path import follow

    return follow(given)


def _find(given: PeriodicSettings) -> bool:
    """Find, print and write the orbit of a configuration; returns whether there is one."""
    import numpy as np

    from jfric.system.control import controllers
    from jfric.verification.system_checks import orbit_settings

    chosen, names = load_solved(given), given.observed
    if controllers(chosen.problem):
        return _find_sampled(given, chosen)
    tell(chosen.name, "bold")
    with status(given.config.stem, "looking for the periodic motion"):
        orbit = jfric.periodic.periodic_orbit(chosen.problem, **orbit_settings(chosen))
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


def _find_sampled(given: PeriodicSettings, chosen: Config) -> bool:
    """Find, print and write the orbit of samples of a configuration with controllers."""
    import numpy as np

    tell(chosen.name, "bold")
    with status(given.config.stem, "looking for an orbit of samples"):
        orbit = jfric.periodic.sampled_orbit(chosen.problem)
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
    import numpy as np

    return {
        "multipliers": [[z.real, z.imag] for z in np.asarray(orbit.multipliers).tolist()],
        "stable": bool(orbit.stable),
        "residual": float(orbit.residual),
    }


def _print(orbit: jfric.periodic.PeriodicOrbit) -> None:
    """Print period, state, multipliers, stability and events."""
    import numpy as np

    from jfric.periodic.state_vector import state_columns

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


def _start(orbit: jfric.periodic.PeriodicOrbit) -> float:
    return float(orbit.problem.resolved().time.start)


def _motion(orbit: jfric.periodic.PeriodicOrbit, outputs: int) -> results.Solution:
    """The motion over a period."""
    import numpy as np

    return orbit.solution(_start(orbit) + float(orbit.period) * np.linspace(0.0, 1.0, outputs))


def _write(
    given: PeriodicSettings,
    chosen: Config,
    problem: Problem,
    solution: results.Solution,
    orbit: dict[str, Any],
) -> list[Path]:
    """Write the motion over a period (CSV), and what is known of the orbit (JSON)."""
    from jfric.files import output
    from jfric.files.write_toml import dump
    from jfric.results.columns import columns

    content = output.sidecar(problem, solution, config=dump(chosen), orbit=orbit)
    table = columns(problem, solution)
    return write_rows(given.folder, "orbit", table, content, content["units"])
