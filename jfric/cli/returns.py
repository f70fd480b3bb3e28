"""``jfric bifurcations``, ``jfric lyapunov`` and ``jfric basins``: returns to a section, the growth
of small deviations, and the attractors that motions reach, over parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from jfric import figures, periodic, results
from jfric.cli import options
from jfric.cli.app import called, command, tell, tell_more, tell_rows, wrote
from jfric.cli.kept_results import computed_into, print_counts, write_figure
from jfric.cli.loading import load_for_many
from jfric.cli.options import parameter_paths, setting
from jfric.errors import ProblemError

if TYPE_CHECKING:
    import xarray


#: Most values of parameters that are listed.
MOST_LISTED = 40

Vary = Annotated[
    list[str],
    typer.Option(
        help="Parameter and its values, PATH=LOW:HIGH:COUNT, with :log in geometric progression, "
        "or PATH=\\[A, B, ...]. Values may carry units.",
        metavar="PATH=VALUES",
        autocompletion=parameter_paths,
    ),
]


@dataclass(frozen=True, kw_only=True)
class BifurcationsSettings(options.OnMotion):
    """Settings of ``jfric bifurcations``."""

    vary: Vary
    observe: str = setting(
        "Quantities at the returns, separated by commas: u, v.u.", ..., metavar="NAMES"
    )
    section: str = setting(
        "Where states are taken: once in each period of the loads, at each impact, at each "
        "event.NAME, or after an interval such as '0.5 s'.",
        "period",
        metavar="NAME|TIME",
    )
    returns: int = setting("Last returns that are kept.", 50)
    skip: int = setting("Returns before them.", 200)
    out: options.StoreFolder = None
    devices: options.Devices = None
    plot: options.Drawn = False


@command(
    "Study",
    epilog="Example, after jfric init p1_ball: jfric bifurcations p1_ball.toml "
    "--vary base.table.displacement.amplitude=0.2:0.35:200 --observe v.z --section impact --plot",
)
def bifurcations(given: BifurcationsSettings) -> bool:
    """Draw a bifurcation diagram by brute force: the last returns of motions over a parameter.

    Exit status: 0, 1 where a run failed, 2 for bad input.
    """
    from jfric.sweeps.design import numbers, parse_section, parse_vary

    chosen, solver = load_for_many(given)
    varied = parse_vary(chosen.problem, given.vary)
    if len(varied) != 1:
        raise ProblemError(f"--vary: found {len(varied)} parameters, needs one")
    ((name, values),) = varied.items()
    section = parse_section(given.section)
    tell(chosen.name, "bold")
    table, store = computed_into(
        given,
        "bifurcations",
        lambda store: periodic.bifurcation_diagram(
            chosen.problem,
            name,
            numbers(values),
            given.observe,
            section=section,
            returns=given.returns,
            skip=given.skip,
            solver=solver,
            store=store,
            command=called(),
        ),
    )
    ok = _print_failures(table)
    tell(f"{table['status'].size:,} motions, {given.returns:,} returns of each")
    wrote(store)
    if given.plot:
        write_figure(
            store.with_suffix(".png"), lambda: figures.plot_returns(table, title=chosen.name)
        )
    return ok


@dataclass(frozen=True, kw_only=True)
class LyapunovSettings(options.OnMotion):
    """Settings of ``jfric lyapunov``."""

    vary: Vary
    interval: str | None = setting(
        "After which deviations are measured: the period of the loads (as by default), or a time "
        "such as '0.5 s'. It must not end at impacts. Options that are not given are taken from "
        "the table \\[lyapunov] of the file.",
        metavar="period|TIME",
    )
    intervals: int | None = setting("Intervals in all; 1000 by default.")
    skip: int | None = setting("Intervals before them; 100 by default.")
    parts: int | None = setting("Parts of a run, whose scatter tells the error; 10 by default.")
    out: options.StoreFolder = None
    devices: options.Devices = None
    plot: options.Drawn = False


@command(
    "Study",
    epilog="Example, after jfric init p1_ball: jfric lyapunov p1_ball.toml --interval '1 s' "
    "--vary base.table.displacement.amplitude=0.2:1:50 --plot",
)
def lyapunov(given: LyapunovSettings) -> bool:
    """Compute the largest Lyapunov exponent, through events, over parameters.

    Exit status: 0, 1 where a run failed, 2 for bad input.
    """
    from jfric.files.settings_tables import LYAPUNOV
    from jfric.sweeps.design import parse_vary
    from jfric.verification.system_checks import lyapunov_settings

    chosen, solver = load_for_many(given)
    varied = parse_vary(chosen.problem, given.vary)
    own = {k: x for k in LYAPUNOV.table if (x := getattr(given, k)) is not None}
    settings = lyapunov_settings(replace(chosen, lyapunov=dict(chosen.lyapunov) | own), own)
    tell(chosen.name, "bold")
    table, store = computed_into(
        given,
        "lyapunov",
        lambda store: periodic.lyapunov_exponents(
            chosen.problem,
            varied,
            **settings,
            solver=solver,
            store=store,
            command=called(),
        ),
    )
    ok = _print_failures(table)
    means = table["lyapunov_exponent"].mean("part", keep_attrs=True)
    _print_exponents(table, means)
    wrote(store)
    if given.plot:
        drawn = table.assign(lyapunov_exponent=means)
        write_figure(store.with_suffix(".png"), lambda: figures.plot_sweep(drawn))
    return ok


def _print_failures(table: xarray.Dataset) -> bool:
    """Print the number of failed runs; returns whether there is none."""
    import numpy as np

    status = np.asarray(table["status"])
    failed = np.unique(status[status != int(results.Status.OK)])
    for code in failed:
        count, reason = int(np.sum(status == code)), results.Status(int(code)).message
        tell(f"{count:,} failed: {reason}", "bold red")
    return failed.size == 0


def _print_exponents(table: xarray.Dataset, means: xarray.DataArray) -> None:
    import numpy as np

    names = [str(d) for d in means.dims]
    parts = table["lyapunov_exponent"]
    count = parts.sizes["part"]
    with np.errstate(invalid="ignore"):  # neighbours that became one motion have -inf
        error = parts.std("part", ddof=1) / np.sqrt(count) if count > 1 else means * np.nan
    values, errors, rows = np.asarray(means), np.asarray(error), []
    for place in list(np.ndindex(values.shape))[:MOST_LISTED]:
        at = [f"{float(means[n][i]):.9g}" for n, i in zip(names, place, strict=True)]
        rows.append((*at, f"{values[place]:.6g}", f"{errors[place]:.2g}"))
    columns = (*(f">{name}" for name in names), ">exponent [1/s]", ">error")
    tell_rows("Largest Lyapunov exponent", columns, rows)
    tell_more(values.size, MOST_LISTED, "")


#: Most attractors that are listed.
MOST_ATTRACTORS = 20


@dataclass(frozen=True, kw_only=True)
class BasinsSettings(options.BySolver):
    """Settings of ``jfric basins``."""

    plane: list[str] | None = setting(
        "Initial state and its values, PATH=LOW:HIGH:COUNT, or PATH=\\[A, B, ...]; sampled methods "
        "take PATH=LOW:HIGH. Values may carry units. Repeatable. Options that are not given are "
        "taken from the table \\[basins] of the file.",
        metavar="PATH=VALUES",
        paths=True,
    )
    section: str | None = setting(
        "Where motions are compared with themselves: once in each period of the loads (as by "
        "default), at each impact, at each event.NAME, or after an interval such as '0.5 s'.",
        metavar="NAME|TIME",
    )
    longest: int | None = setting("Longest period in returns; 8 by default.")
    tolerance: float | None = setting(
        "Relative distance below which a state comes back; 1e-7 by default."
    )
    give_up: int | None = setting("Returns after which nothing is recognised; 500 by default.")
    out: options.StoreFolder = None
    method: str | None = setting(
        "grid (as by default), zip, random, sobol or latin-hypercube.", metavar="NAME"
    )
    samples: options.Samples = None
    seed: int | None = setting("Seed of a sampled method; 0 by default.")
    chunk: options.Chunk = None
    devices: options.Devices = None
    workers: options.Workers = None
    plot: bool = setting("Also draw the basins (PNG).", False, name="--plot")


@command(
    "Study",
    epilog="Example, after jfric init p6_duffing: jfric basins p6_duffing.toml "
    "--plane initial.q=-2:2:200 --plane initial.v=-2:2:200 --out basins.zarr --plot",
)
def basins(given: BasinsSettings) -> bool:
    """Find the attractors of a system and which initial states reach each of them.

    Exit status: 0, 1 where a run failed, 2 for bad input.
    """
    from jfric.files.settings_tables import BASINS
    from jfric.files.write_toml import dump
    from jfric.periodic.basins import prepare_basins, run_basins
    from jfric.verification.system_checks import basin_settings

    chosen, solver = load_for_many(given)
    own = {k: x for k in BASINS.table if (x := getattr(given, k)) is not None}
    chosen = replace(chosen, basins=dict(chosen.basins) | own)
    if "plane" not in chosen.basins:
        raise ProblemError("--plane: not given, and the file has no table [basins]")
    prepared = prepare_basins(
        chosen.problem,
        **basin_settings(chosen, own),
        solver=solver,
        config=dump(chosen),
        title=chosen.name,
        command=called(),
    )
    execution = {"chunk": given.chunk, "devices": given.devices, "workers": given.workers}
    (found, summary), store = computed_into(
        given, "basins", lambda store: run_basins(prepared, store=store, **execution)
    )
    print_counts(prepared.design.size, summary.computed, summary.seconds)
    _print(found)
    wrote(store)
    if given.plot:
        write_figure(
            store.with_suffix(".png"), lambda: figures.plot_basins(found, title=chosen.name)
        )
    return not found.failed


def _print(found: periodic.Basins) -> None:
    """Print the attractors with their shares, and the share of states that reached none."""
    for number, a in enumerate(found.attractors[:MOST_ATTRACTORS], start=1):
        state = [f"{dof} = {q:.6g}" for dof, q in zip(found.axes, a.q, strict=True)]
        state += [f"v.{dof} = {v:.6g}" for dof, v in zip(found.axes, a.v, strict=True)]
        tell(f"{number}: {a.share:.2%} +- {a.error:.2%}, period {a.period}, at {', '.join(state)}")
    tell_more(len(found.attractors), MOST_ATTRACTORS, "attractors")
    share, error = found.unrecognised
    if share:
        tell(f"not recognised: {share:.2%} +- {error:.2%} (chaotic, slow, or of a longer period)")
    if found.failed:
        tell(f"{found.failed:,} failed or start inside a contact", "bold red")
