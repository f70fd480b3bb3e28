"""``jfric optimise``: inputs, gains and dimensions that are best for the exact motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jfric import optima, results
from jfric.cli import options
from jfric.cli.app import answer, command, status, tell, wrote
from jfric.cli.kept_results import write_json, write_page
from jfric.cli.loading import load_changed, solver_words
from jfric.cli.options import setting
from jfric.errors import ProblemError

if TYPE_CHECKING:
    from jfric.system.problem import Problem


@dataclass(frozen=True, kw_only=True)
class OptimiseSettings(options.BySolver):
    """Settings of ``jfric optimise``."""

    free: list[str] | None = setting(
        "Number or list that may change, PATH=LOW:HIGH, with :log on a logarithmic scale. "
        "Repeatable. Options that are not given are taken from the table \\[optimise] of the file.",
        metavar="PATH=BOUNDS",
        paths=True,
    )
    objective: str | None = setting(
        "What becomes as small as possible: a formula in observables and parameters, time.end or "
        "'rms.v.x + 0.1*max.a.x'.",
        metavar="FORMULA",
    )
    constraint: list[str] | None = setting(
        "What must hold: 'final.x == 20 mm', 'max.v.x <= 0.5'. Repeatable.",
        metavar="COMPARISON",
    )
    observe: list[str] | None = setting(
        "Observable by a name for formulas, early='x(1 s)'. Repeatable.", metavar="NAME=NAME"
    )
    method: str | None = setting(
        "slsqp (by default) or trust-constr, with exact gradients; adam, without constraints; "
        "cobyqa or direct, without derivatives.",
        metavar="NAME",
    )
    starts: int | None = setting("Number of starts; 1 by default.")
    seed: int | None = setting("Seed of further starts; 0 by default.")
    iterations: int | None = setting("Largest number of iterations from each start.")
    out: options.ResultFolder = None
    json_: options.Json = False


@command(
    "Study",
    epilog="Example, after jfric init c1_shortest_time: jfric optimise c1_shortest_time.toml",
)
def optimise(given: OptimiseSettings) -> bool:
    """Find inputs, gains, dimensions or times with which a motion is best, by exact derivatives.

    The result is judged by a fresh run of the exact motion, and written as a file that jfric run
    takes. Exit status: 0, 1 where the search has not converged to a feasible point, 2 for bad
    input.
    """
    from jfric.files.config import Config
    from jfric.files.output import reserve
    from jfric.files.solver_choice import choose_solver
    from jfric.files.write_toml import dump
    from jfric.numerics.printing import shown

    chosen = load_changed(given)
    solver, settings = choose_solver(chosen.solver, **solver_words(given))
    arguments = _arguments(given, chosen.problem, chosen.optimise)
    with status(chosen.name):
        found = optima.optimise(chosen.problem, **arguments, solver=solver)
    path = reserve(given.folder, "optimise")
    content = _content(found)
    write_json(path, {"config_file": str(given.config), "solver": settings} | content)
    better = path.with_suffix(".toml")
    whole = Config(found.problem, chosen.name, chosen.source, chosen.description, chosen.outputs)
    write_page(better, dump(whole), "--out")
    answer(content | {"files": [path, better]})
    tell(chosen.name, "bold")
    tell(shown(found)._replace(below=""))
    for text in found.remarks:
        tell(f"mind: {text}", whole=True)
    wrote(path, better)
    return found.converged


def _arguments(given: OptimiseSettings, problem: Problem, table: Any) -> dict[str, Any]:
    """Arguments of the computation: options in place of entries of the file's table."""
    from jfric.files.assignments import split_assignment
    from jfric.optima.optimise import from_table
    from jfric.sweeps.design import parse_vary

    names = "objective", "method", "starts", "seed", "iterations"
    own = {name: x for name in names if (x := getattr(given, name)) is not None}
    if given.constraint:
        own["constraints"] = given.constraint
    if given.observe:
        pairs = [split_assignment(text, "NAME=OBSERVABLE", "--observe") for text in given.observe]
        own["observe"] = dict(pairs)
    if given.free:
        ranges = parse_vary(problem, given.free, sampled=True, option="--free")
        own["free"] = {
            path: {"between": [x.low, x.high], "scale": x.scale} for path, x in ranges.items()
        }
    whole = {**table, **own}
    for name, option in (("free", "--free PATH=LOW:HIGH"), ("objective", "--objective FORMULA")):
        if name not in whole:
            raise ProblemError(
                f"optimise.{name}: the file has none; give {option}, or a table [optimise]"
            )
    return from_table(whole)


def _content(found: optima.Optimum) -> dict[str, Any]:
    """The result as plain data."""
    import numpy as np

    from jfric.results.status import flags_in

    names = "objective", "observed", "violations", "feasible", "converged", "message"
    more = "stationarity", "derivatives", "motions", "seconds", "remarks", "starts"
    return {
        "values": {path: np.asarray(x).tolist() for path, x in found.values.items()},
        **{name: getattr(found, name) for name in (*names, *more)},
        "status": results.Status(found.status).name.lower(),
        "flags": [str(flag.name).lower() for flag in flags_in(found.flags)],
    }
