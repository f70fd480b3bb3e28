"""``jfric bifurcations`` and ``jfric lyapunov``: returns to a section and the growth of small
deviations, over parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from jfric.cli import options
from jfric.cli.app import called, command, tell, tell_more, tell_rows, wrote
from jfric.cli.completion import parameter_paths
from jfric.cli.kept_results import computed_into, write_figure
from jfric.cli.loading import load_for_many
from jfric.cli.options import setting
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
    from jfric.figures.sweep_figure import plot_returns
    from jfric.periodic.sections import bifurcation_diagram
    from jfric.sweeps.texts import numbers, parse_section, parse_vary

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
        lambda store: bifurcation_diagram(
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
        write_figure(store.with_suffix(".png"), lambda: plot_returns(table, title=chosen.name))
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
    from jfric.figures.sweep_figure import plot_sweep
    from jfric.files.settings_tables import LYAPUNOV
    from jfric.periodic.lyapunov import lyapunov_exponents
    from jfric.sweeps.texts import parse_vary
    from jfric.verification.system_checks import lyapunov_settings

    chosen, solver = load_for_many(given)
    varied = parse_vary(chosen.problem, given.vary)
    own = {k: x for k in LYAPUNOV.table if (x := getattr(given, k)) is not None}
    settings = lyapunov_settings(replace(chosen, lyapunov=dict(chosen.lyapunov) | own), own)
    tell(chosen.name, "bold")
    table, store = computed_into(
        given,
        "lyapunov",
        lambda store: lyapunov_exponents(
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
        write_figure(store.with_suffix(".png"), lambda: plot_sweep(drawn))
    return ok


def _print_failures(table: xarray.Dataset) -> bool:
    """Print the number of failed runs; returns whether there is none."""
    import numpy as np

    from jfric.results.status import Status

    status = np.asarray(table["status"])
    failed = np.unique(status[status != int(Status.OK)])
    for code in failed:
        count, reason = int(np.sum(status == code)), Status(int(code)).message
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
