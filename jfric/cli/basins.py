"""``jfric basins``: the attractor that each of many initial states reaches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jfric.cli import options
from jfric.cli.app import called, command, tell, tell_more, wrote
from jfric.cli.kept_results import computed_into, print_counts, write_figure
from jfric.cli.loading import load_for_many
from jfric.cli.options import setting
from jfric.errors import ProblemError

if TYPE_CHECKING:
    from jfric.periodic.basins import Basins

#: Most attractors that are listed.
MOST_LISTED = 20


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
        from jfric.figures.steady_figure import plot_basins

        write_figure(store.with_suffix(".png"), lambda: plot_basins(found, title=chosen.name))
    return not found.failed


def _print(found: Basins) -> None:
    """Print the attractors with their shares, and the share of states that reached none."""
    for number, a in enumerate(found.attractors[:MOST_LISTED], start=1):
        state = [f"{dof} = {q:.6g}" for dof, q in zip(found.axes, a.q, strict=True)]
        state += [f"v.{dof} = {v:.6g}" for dof, v in zip(found.axes, a.v, strict=True)]
        tell(f"{number}: {a.share:.2%} +- {a.error:.2%}, period {a.period}, at {', '.join(state)}")
    tell_more(len(found.attractors), MOST_LISTED, "attractors")
    share, error = found.unrecognised
    if share:
        tell(f"not recognised: {share:.2%} +- {error:.2%} (chaotic, slow, or of a longer period)")
    if found.failed:
        tell(f"{found.failed:,} failed or start inside a contact", "bold red")
