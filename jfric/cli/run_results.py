"""Output of a run: result files and a printed summary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jfric.cli import report
from jfric.cli.kept_results import write_json
from jfric.files import output
from jfric.files.config import time_span
from jfric.files.write_toml import dump
from jfric.results.columns import columns
from jfric.results.solution import reached_time
from jfric.results.status import Flag, Status, flags_in

if TYPE_CHECKING:
    from rich.console import Console

    from jfric.cli.run_config import Outcome
    from jfric.files.config import Config
    from jfric.results.solution import Solution


def write_run(
    config: Config,
    outcome: Outcome,
    settings: dict[str, Any],
    folder: Path,
    format_: str,
    plot: bool,
    animation: Path | None,
    assignments: list[str],
    wall: float,
) -> list[Path]:
    """Write trajectory, sidecar and, with ``plot``, figures to the next free name in ``folder``,
    and an ``animation``.

    ``assignments``: what ``--set`` was given. ``wall``: seconds since the command started.
    """
    solution, rows = outcome.solution, outcome.rows
    content = output.sidecar(
        config.problem,
        solution,
        title=config.title,
        config_file=str(config.path),
        set=assignments,
        config=dump(config),
        solver=settings,
        checks=[check.as_dict() for check in outcome.checks],
        wall_time={"compile": outcome.compile_seconds, "run": outcome.run_seconds, "total": wall},
    )
    table = columns(config.problem, solution, rows)
    path = output.reserve(folder)
    trajectory = path.with_suffix(f".{format_}")
    write_json(path, content | {"trajectory": trajectory.name})
    output.write_trajectory(trajectory, table, content["units"])
    files = [trajectory, path]
    if plot:
        from jfric.figures.trajectory_figure import plot as draw

        figure = draw(solution, config.problem, config.title)
        figure.savefig(path.with_suffix(".png"), dpi=150)
        files.append(path.with_suffix(".png"))
    if plot and config.problem.section("body"):
        from jfric.figures.mechanism_figure import plot_mechanism

        files.append(path.with_name(f"{path.stem}-mechanism.png"))
        plot_mechanism(solution, config.problem, config.title).savefig(files[-1], dpi=150)
    if animation is not None:
        from jfric.figures.mechanism_figure import animate

        files.append(animate(solution, config.problem, animation, config.title))
    return files


def print_run(
    console: Console, config: Config, outcome: Outcome, settings: dict[str, Any], files: list[Path]
) -> None:
    """Print checks, final state, events, status and times of a run."""
    solution = outcome.solution
    console.print(config.title or Path(config.path).stem, style="bold", markup=False)
    if outcome.checks:
        console.print(report.checks_table(outcome.checks))
    if solution.ts.size:
        console.print(report.state_table(config.problem, solution))
    if solution.ts.size and solution.names:
        console.print(report.contacts_table(config.problem, solution))
    if solution.event_names:
        console.print(report.own_events_table(solution))
    impacts = int(solution.events.impact[: int(solution.events.count)].sum())
    solver = ", ".join(str(v) for k, v in settings.items() if k in ("name", "flow"))
    console.print(
        f"events {int(solution.events.count)} (impacts {impacts}), steps {int(solution.steps)}, "
        f"solver {solver}",
        markup=False,
    )
    console.print(f"status: {_status(config, solution)}", markup=False)
    for flag in flags_in(int(solution.flags)):
        console.print(f"flag {str(flag.name).lower()}: {flag.message}", markup=False)
        if flag == Flag.ENERGY_GAIN and solution.final is not None:
            gained = float(solution.final.energy_gained)
            console.print(f"energy gained in impacts: {gained:.6g} J", markup=False)
    console.print(
        f"time: compile {outcome.compile_seconds:.2f} s, run {1e3 * outcome.run_seconds:.3g} ms",
        markup=False,
    )
    console.print("wrote " + ", ".join(str(f) for f in files), markup=False, soft_wrap=True)


def _status(config: Config, solution: Solution) -> str:
    """The status in words, and where a trajectory that ended early got."""
    stopped = int(solution.flags) & Flag.STOPPED
    if int(solution.status) in (Status.OK, Status.MAX_EVENTS) and not stopped:
        return solution.outcome()
    reached, end = reached_time(solution), time_span(config.problem)[1]
    return f"{solution.outcome()} (reached t = {reached:.6g} s of {end:.6g} s)"
