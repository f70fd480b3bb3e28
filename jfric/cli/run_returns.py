"""Actions of ``jfric bifurcations`` and ``jfric lyapunov``: options to calls, results to text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.cli import report
from jfric.cli.app import called
from jfric.cli.kept_results import computed_into, write_figure
from jfric.cli.loading import load_changed
from jfric.cli.run_basins import parse_section
from jfric.cli.run_sweep import parse_vary
from jfric.errors import ProblemError
from jfric.results.status import Status
from jfric.sweeps.ranges import Range

if TYPE_CHECKING:
    import xarray
    from rich.console import Console

    from jfric.files.config import Config
    from jfric.solvers.base import AbstractSolver

#: Values of parameters with a line of their own.
MOST_LISTED = 40


def run_bifurcations(
    console: Console,
    config: Path,
    *,
    settings: list[str],
    vary: list[str],
    observe: str,
    section: str,
    returns: int,
    skip: int,
    solver: dict[str, Any],
    out: Path | None,
    plot: bool,
) -> bool:
    """The last returns of a configuration over a parameter, into ``out``; whether no run failed."""
    from jfric.figures.returns_figure import plot_returns
    from jfric.periodic.section_runs import bifurcation_diagram

    chosen, built = _chosen(config, settings, solver)
    varied = parse_vary(chosen.problem, vary, sampled=False)
    if len(varied) != 1:
        raise ProblemError(f"--vary: found {len(varied)} parameters, needs one")
    ((name, values),) = varied.items()
    where = parse_section(section)

    def computed(store: Path) -> xarray.Dataset:
        numbers = (
            values.values(np.arange(values.count or 1)) if isinstance(values, Range) else values
        )
        return bifurcation_diagram(
            chosen.problem,
            name,
            numbers,
            observe,
            section=where,
            returns=returns,
            skip=skip,
            solver=built,
            store=store,
            command=called(),
        )

    console.print(chosen.title or config.stem, style="bold", markup=False)
    table, store = computed_into(config, out, "bifurcations", computed)
    ok = _failures(console, table)
    runs = table["status"].size
    console.print(f"{runs:,} motions, {returns:,} returns of each", markup=False)
    console.print(f"wrote {store}", markup=False, soft_wrap=True)
    if plot:
        write_figure(
            console,
            store.with_suffix(".png"),
            lambda: plot_returns(table, title=chosen.title or config.stem),
        )
    return ok


def run_lyapunov(
    console: Console,
    config: Path,
    *,
    settings: list[str],
    vary: list[str],
    interval: str,
    counts: dict[str, int],
    solver: dict[str, Any],
    out: Path | None,
    plot: bool,
) -> bool:
    """Exponents of a configuration over parameters, into ``out``; whether no run failed."""
    from jfric.figures.sweep_figure import plot_sweep
    from jfric.periodic.lyapunov import lyapunov_exponents

    chosen, built = _chosen(config, settings, solver)
    varied = parse_vary(chosen.problem, vary, sampled=False)
    after = parse_section(interval, "--interval")

    def computed(store: Path) -> xarray.Dataset:
        return lyapunov_exponents(
            chosen.problem,
            varied,
            after,
            solver=built,
            store=store,
            command=called(),
            **counts,
        )

    console.print(chosen.title or config.stem, style="bold", markup=False)
    table, store = computed_into(config, out, "lyapunov", computed)
    ok = _failures(console, table)
    means = table["lyapunov_exponent"].mean("part", keep_attrs=True)
    _print_exponents(console, table, means)
    console.print(f"wrote {store}", markup=False, soft_wrap=True)
    if plot:
        write_figure(
            console,
            store.with_suffix(".png"),
            lambda: plot_sweep(table.assign(lyapunov_exponent=means)),
        )
    return ok


def _chosen(
    config: Path, settings: list[str], solver: dict[str, Any]
) -> tuple[Config, AbstractSolver]:
    from jfric.files.solver_choice import choose_solver

    chosen = load_changed(config, settings)
    return chosen, choose_solver(chosen.solver, **solver)[0]


def _failures(console: Console, table: xarray.Dataset) -> bool:
    status = np.asarray(table["status"])
    for code in np.unique(status[status != int(Status.OK)]):
        count, reason = int(np.sum(status == code)), Status(int(code)).message
        console.print(f"{count:,} failed: {reason}", markup=False, style="bold red")
    return bool(np.all(status == int(Status.OK)))


def _print_exponents(console: Console, table: xarray.Dataset, means: xarray.DataArray) -> None:
    names = [str(d) for d in means.dims]
    parts = table["lyapunov_exponent"]
    count = parts.sizes["part"]
    error = parts.std("part", ddof=1) / np.sqrt(count) if count > 1 else means * np.nan
    listed = report.plain_table(
        "Largest Lyapunov exponent", *(f">{n}" for n in names), ">exponent [1/s]", ">error"
    )
    values = np.asarray(means).ravel()
    places = np.stack(np.unravel_index(np.arange(values.size), means.shape), axis=1)
    for place, value, off in list(zip(places, values, np.asarray(error).ravel(), strict=True))[
        :MOST_LISTED
    ]:
        at = [f"{float(means[n][i]):.9g}" for n, i in zip(names, place, strict=True)]
        listed.add_row(*at, f"{value:.6g}", f"{off:.2g}")
    console.print(listed)
    if values.size > MOST_LISTED:
        console.print(f"and {values.size - MOST_LISTED} more", markup=False)
