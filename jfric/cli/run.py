"""``jfric run``: one simulation."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jfric import figures, results
from jfric.cli import options
from jfric.cli.app import answer, command, status, tell, wrote
from jfric.cli.kept_results import add_figure, save_figure, write_rows
from jfric.cli.loading import load_changed, parse_times, solver_words
from jfric.cli.options import setting

if TYPE_CHECKING:
    from jfric.cli.run_config import Outcome
    from jfric.files.config import Config


#: Events named where a derivative has one side.
_MOST_PLACES = 3


@dataclass(frozen=True, kw_only=True)
class RunSettings(options.BySolver):
    """Settings of ``jfric run``."""

    times: str | None = setting(
        "Outputs: a number of them, or the times as '0.5, 1, 20 ms'.", metavar="N|LIST"
    )
    out: options.ResultFolder = None
    format_: str = setting(
        "Trajectory as csv or parquet.", "csv", name="--format", metavar="csv|parquet"
    )
    plot: bool = setting(
        "Also write a figure (PNG), and one of the bodies if any.", False, name="--plot"
    )
    animate: Path | None = setting(
        "Also write an animation of the bodies, until they are at rest.",
        name="--animate",
        metavar="GIF",
    )
    derivative: list[str] | None = setting(
        "Also compute a derivative: OBSERVABLE/PATH, such as final.x/friction.mu. Repeatable.",
        metavar="OF/BY",
        paths=True,
    )
    json_: options.Json = False


@command(
    "Simulate",
    epilog="Example, after jfric init ve0116: jfric run ve0116.toml --set friction.mu=0.12 --plot",
)
def run(given: RunSettings) -> bool:
    """Simulate a system, print its checks and write the trajectory.

    Results are numbered; those that exist are never overwritten. Checks hold for the numbers of the
    file: with --set they are left out. Exit status: 0, 1 where a check fails or the trajectory is
    incomplete, 2 for bad input.
    """
    from jfric.cli.run_config import run_config
    from jfric.files.config import time_span
    from jfric.files.output import require_format
    from jfric.files.solver_choice import choose_solver, resolved
    from jfric.verification.evaluate import derivative, needed_times
    from jfric.verification.system_checks import is_periodic

    started = time.perf_counter()
    require_format(given.format_)
    chosen = load_changed(given)
    if given.animate is not None:
        from jfric.figures.mechanism_figure import require_gif
        from jfric.figures.mechanism_scene import require_bodies

        require_bodies(chosen.problem)
        require_gif(given.animate)
    if given.times is not None:
        chosen = dataclasses.replace(chosen, outputs=_outputs(given.times))
    built, settings = choose_solver(chosen.solver, **solver_words(given))
    built.require(chosen.problem)
    settings = resolved(settings, chosen.problem)
    checks, (start, end) = chosen.checks, time_span(chosen.problem)
    needed = needed_times(check.quantity for check in checks)
    if given.set_ and any(not start <= t <= end for t in needed):
        chosen = dataclasses.replace(chosen, checks=())
    # Orbits are separate computations, of seconds to minutes each.
    motion = tuple(check for check in chosen.checks if not is_periodic(check))
    steady = len(chosen.checks) - len(motion)
    chosen = dataclasses.replace(chosen, checks=motion)
    slopes = [derivative(chosen.problem, text) for text in given.derivative or []]
    with status(given.config.stem) as announce:
        # Expected values of checks hold for the numbers of the file.
        outcome = run_config(chosen, built, announce, judged=not given.set_, further=slopes)
    content, files = _write(given, chosen, outcome, settings, started)
    answer(content | {"files": files})
    _print(chosen, outcome, settings)
    wrote(*files)
    if given.set_ and checks:
        tell(
            f"checks of the file: {len(checks)} left out, they hold for its own numbers, not those "
            "of --set"
        )
    elif steady:
        said = f"jfric verify {given.config} computes them"
        tell(f"checks of steady states: {steady} left out; {said}", whole=True)
    passed = all(check.passed for check in outcome.checks)
    return passed and int(outcome.solution.status) == 0


def _outputs(text: str) -> int | tuple[float, ...]:
    times = parse_times(text)
    return times if isinstance(times, int) else tuple(times.tolist())


def _write(
    given: RunSettings,
    config: Config,
    outcome: Outcome,
    settings: dict[str, Any],
    started: float,
) -> tuple[dict[str, Any], list[Path]]:
    """Write trajectory, sidecar, figures and an animation to the next free name.

    ``started``: start time of the command. Returns the sidecar's content and all files.
    """
    from jfric.files.output import sidecar
    from jfric.files.write_toml import dump
    from jfric.results.columns import columns

    solution, rows, title = outcome.solution, outcome.rows, config.title
    wall = time.perf_counter() - started
    content = sidecar(
        config.problem,
        solution,
        title=title,
        config_file=str(config.path),
        set=given.set_ or [],
        config=dump(config),
        solver=settings,
        checks=[check.as_dict() for check in outcome.checks],
        derivatives=outcome.further,
        wall_time={"compile": outcome.compile_seconds, "run": outcome.run_seconds, "total": wall},
    )
    table = columns(config.problem, solution, rows)
    ending = f".{given.format_}"
    files = write_rows(given.folder, "run", table, content, content["units"], ending)
    if given.plot:
        add_figure(files, lambda: figures.plot(solution, config.problem, title))
    if given.plot and config.problem.section("body"):
        picture = files[0].with_name(f"{files[0].stem}-mechanism.png")
        drawn = save_figure(
            picture, lambda: figures.plot_mechanism(solution, config.problem, title)
        )
        files.append(drawn)
    if given.animate is not None:
        files.append(figures.animate(solution, config.problem, given.animate, title))
    return content, files


def _print(config: Config, outcome: Outcome, settings: dict[str, Any]) -> None:
    """Print checks, final state, events, status and times of a run."""
    from jfric.results.columns import contacts_shown, own_events_shown, state_shown
    from jfric.results.status import flags_in
    from jfric.verification.result import checks_shown

    solution, problem = outcome.solution, config.problem
    tell(config.name, "bold")
    if outcome.checks:
        tell(checks_shown(outcome.checks))
    if solution.ts.size:
        tell(state_shown(problem, solution))
    if solution.ts.size and solution.names:
        tell(contacts_shown(problem, solution))
    if solution.event_names:
        tell(own_events_shown(solution))
    for name, value in outcome.further.items():
        sided = "" if bool(solution.differentiable) else "; one-sided, see the flags"
        tell(f"{name} = {value:.10g} (SI units{sided})")
    count = int(solution.events.count)
    impacts = int(solution.events.impact[:count].sum())
    times = solution.events.time  # shorter than all events where the log is full
    last = f", the last at {float(times[count - 1]):.10g} s" if 0 < count <= len(times) else ""
    solver = ", ".join(str(v) for k, v in settings.items() if k in ("name", "flow"))
    tell(f"events {count} (impacts {impacts}{last}), steps {int(solution.steps)}, solver {solver}")
    tell(f"status: {_status(config, solution)}")
    for flag in flags_in(int(solution.flags)):
        tell(f"flag {str(flag.name).lower()}: {flag.message}")
        if flag == results.Flag.ENERGY_GAIN and solution.final is not None:
            tell(f"energy gained in impacts: {float(solution.final.energy_gained):.6g} J")
        if flag == results.Flag.ONE_SIDED:
            for row in solution.one_sided_events()[:_MOST_PLACES]:
                change = f"{row['contact']}: {row['from']} to {row['to']}"
                tell(f"  {change} at {row['time']:.10g} s")
    compiling, running = outcome.compile_seconds, 1e3 * outcome.run_seconds
    tell(f"time: compile {compiling:.2f} s, run {running:.3g} ms")


def _status(config: Config, solution: results.Solution) -> str:
    """The status in words, and the time at which a trajectory ended early."""
    from jfric.files.config import time_span
    from jfric.results.solution import reached_time

    stopped = int(solution.flags) & results.Flag.STOPPED
    if int(solution.status) in (results.Status.OK, results.Status.MAX_EVENTS) and not stopped:
        return solution.outcome()
    reached, end = reached_time(solution), time_span(config.problem)[1]
    return f"{solution.outcome()} (reached t = {reached:.6g} s of {end:.6g} s)"
