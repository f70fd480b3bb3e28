"""``jfric sweep`` and ``jfric plot``: many simulations, and their figures."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jfric import figures, results, sweeps
from jfric.cli import options
from jfric.cli.app import answer, called, command, tell, wrote
from jfric.cli.kept_results import computed_into, print_counts, write_figure
from jfric.cli.loading import load_for_many, parse_times, solver_words
from jfric.cli.options import argument, setting

if TYPE_CHECKING:
    import numpy as np

    from jfric.files.config import Config
    from jfric.system.problem import Problem


#: Trajectories up to which --json prints the values; tables of more are read from their store.
PRINTED = 10_000


@dataclass(frozen=True, kw_only=True)
class SweepSettings(options.BySolver):
    """Settings of ``jfric sweep``."""

    vary: list[str] = setting(
        "Parameter and its values, PATH=LOW:HIGH:COUNT, with :log in geometric progression, or "
        "PATH=\\[A, B, ...]; sampled methods take PATH=LOW:HIGH. Values may carry units. "
        "Repeatable.",
        ...,
        metavar="PATH=VALUES",
        paths=True,
    )
    observe: str = setting(
        "What to keep, separated by commas: final.u, max.v, stop_time, event_time(2), dissipated, "
        "'stick_fraction after 1 s', impulse.stop, u(1 s), u(t) ... (stop_time: from then on "
        "nothing moves; last_event_time: the last change of mode).",
        ...,
        metavar="NAMES",
    )
    out: options.StoreFolder = None
    method: options.Method = "grid"
    samples: options.Samples = None
    seed: options.Seed = 0
    times: str | None = setting(
        "Times of u(t): a number of them, or a list '0.5, 1, 20 ms'.", metavar="N|LIST"
    )
    chunk: options.Chunk = None
    block: int | None = setting("Trajectories stored together.")
    devices: options.Devices = None
    workers: options.Workers = None
    scheduler: str | None = setting(
        "Compute on the Dask cluster at tcp://host:port, or of a scheduler file.",
        metavar="ADDRESS",
    )
    plot: options.Drawn = False
    json_: options.Json = False


@command(
    "Simulate",
    epilog="Example, after jfric init ve0116: "
    "jfric sweep ve0116.toml --vary friction.mu=0.05:0.3:1000 "
    "--observe final.u,stop_time,max.v --out mu.zarr --plot",
)
def sweep(given: SweepSettings) -> bool:
    """Simulate for many parameter values and keep what is observed, as a labelled table.

    Exit status: 0, 1 where a trajectory failed, 2 for bad input.
    """
    from jfric.files.write_toml import dump
    from jfric.results.grammar import split
    from jfric.sweeps.design import SAMPLED, parse_vary
    from jfric.sweeps.sweeping import execute, prepare

    chosen, solver = load_for_many(given)
    varied = parse_vary(chosen.problem, given.vary, sampled=given.method in SAMPLED)
    prepared = prepare(
        chosen.problem,
        varied,
        split(given.observe),
        method=given.method,
        samples=given.samples,
        seed=given.seed,
        times=_times(chosen, given.times),
        solver=solver,
        config=dump(chosen),
        title=chosen.name,
        command=called(),
        point_command=_command_of_a_point(chosen.problem, given, varied),
    )
    names = "chunk", "block", "devices", "workers", "scheduler"
    execution = {name: getattr(given, name) for name in names}
    (_, summary), store = computed_into(
        given, "sweep", lambda store: execute(prepared, store=store, **execution)
    )
    failed = {
        results.Status(i): n
        for i, n in enumerate(summary.statuses)
        if n and i != int(results.Status.OK)
    }
    answer(
        {
            "results": store,
            "trajectories": prepared.design.size,
            "computed": summary.computed,
            "seconds": summary.seconds,
            "failed": {status.name.lower(): count for status, count in failed.items()},
            **(_values(store) if prepared.design.size <= PRINTED else {}),
        }
    )
    print_counts(prepared.design.size, summary.computed, summary.seconds)
    for status, count in failed.items():
        tell(f"{count:,} failed: {status.message}", "bold red")
    wrote(store)
    if given.plot:
        _draw(store, None, None)
    return not failed


def _values(store: Path) -> dict[str, Any]:
    """Axes of a table, values over these axes and units, for JSON."""
    table = sweeps.open_sweep(store)
    axes = {name: x.values.tolist() for name, x in table.coords.items()}
    values = {name: x.values.tolist() for name, x in table.data_vars.items()}
    units = {name: x.attrs["units"] for name, x in table.variables.items() if x.attrs.get("units")}
    return {"axes": axes, "values": values, "units": units}


def _times(config: Config, text: str | None) -> np.ndarray | None:
    """Times of ``u(t)``: a number of them over the time span, or a list."""
    import numpy as np

    from jfric.files.config import time_span

    times = None if text is None else parse_times(text)
    return np.linspace(*time_span(config.problem), times) if isinstance(times, int) else times


def _command_of_a_point(problem: Problem, given: SweepSettings, varied: Collection[str]) -> str:
    """The command of one run, or of one point if the varied parameters are set as well."""
    from jfric.system.naming import find_path

    words = ["jfric", "run", str(given.config)]
    for text in given.set_ or []:
        if find_path(problem, text.partition("=")[0].strip()) not in varied:
            words += ["--set", text]
    own = {"name": "--solver", "flow": "--flow", "rtol": "--rtol"}
    for key, value in solver_words(given).items():
        words += [own[key], str(value)] if key in own else ["--option", f"{key}={value}"]
    return shlex.join(words)


@dataclass(frozen=True, kw_only=True)
class PlotSettings:
    """Settings of ``jfric plot``."""

    store: Path = argument("Results of a sweep (Zarr).", ..., metavar="RESULTS")
    observe: str | None = setting("Observables to draw; all by default.", metavar="NAMES")
    out: Path | None = setting("Figure to write, instead of one next to the results.")


@command(
    "Simulate",
    epilog="Example, after that of jfric sweep: jfric plot mu.zarr --observe final.u",
)
def plot(given: PlotSettings) -> None:
    """Draw the results of a sweep: curves, maps, or a scatter matrix of samples."""
    from jfric.results.grammar import split

    names = None if given.observe is None else split(given.observe)
    _draw(given.store, names, given.out)


def _draw(store: Path, names: list[str] | None, out: Path | None) -> None:
    """Draw the results of a sweep next to them, or to ``out``."""
    figure = figures.plot_sweep(sweeps.open_sweep(store), names)
    write_figure(out or store.with_suffix(".png"), lambda: figure, "--out")
