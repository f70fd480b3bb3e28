"""Actions of ``jfric basins``: options to calls, results to sentences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jfric.cli.kept_results import computed_into, print_counts, write_figure
from jfric.cli.loading import load_changed
from jfric.cli.run_sweep import parse_vary
from jfric.errors import ProblemError
from jfric.sweeps.design import SAMPLED
from jfric.system.units import DIMENSIONS, UnitError, to_si

if TYPE_CHECKING:
    from rich.console import Console

    from jfric.periodic.basins import Basins

#: Attractors with a line of their own.
MOST_LISTED = 20


def run_basins(
    console: Console,
    config: Path,
    *,
    settings: list[str],
    plane: list[str],
    section: str,
    recognition: dict[str, Any],
    method: str,
    samples: int | None,
    seed: int,
    solver: dict[str, Any],
    out: Path | None,
    plot: bool,
    command: str,
    **execution: Any,
) -> bool:
    """Basins of a configuration, into ``out``, and say what came of it; whether no run failed.
    ``command``: what was called, kept with the results."""
    from jfric.files.solver_choice import choose_solver
    from jfric.files.write_toml import dump
    from jfric.periodic.basins import prepare_basins
    from jfric.periodic.basins import run_basins as run

    chosen = load_changed(config, settings)
    built, _ = choose_solver(chosen.solver, **solver)
    title = chosen.title or config.stem
    prepared = prepare_basins(
        chosen.problem,
        parse_vary(chosen.problem, plane, sampled=method in SAMPLED, option="--plane"),
        section=parse_section(section),
        method=method,
        samples=samples,
        seed=seed,
        solver=built,
        config=dump(chosen),
        title=title,
        command=command,
        **recognition,
    )
    (found, summary), store = computed_into(
        config, out, "basins", lambda store: run(prepared, store=store, **execution)
    )
    print_counts(console, prepared.design.size, summary.computed, summary.seconds)
    report(console, found)
    console.print(f"wrote {store}", markup=False, soft_wrap=True)
    if plot:
        from jfric.figures.basins_figure import plot_basins

        picture = store.with_suffix(".png")
        write_figure(console, picture, lambda: plot_basins(found, title=title))
    return not found.failed


def parse_section(text: str, option: str = "--section") -> str | float:
    """A name, or an interval with or without its unit."""
    if not text[:1].isdigit() and text[:1] not in ".+-":
        return text
    try:
        value = to_si(text, DIMENSIONS["time"])
    except UnitError as error:
        raise ProblemError(f"{option}: {error}") from None
    if not isinstance(value, float):
        raise ProblemError(f"{option}: found {text!r}, expected a time, not an expression")
    return value


def report(console: Console, found: Basins) -> None:
    """The attractors with their shares, and what reached none."""
    for number, a in enumerate(found.attractors[:MOST_LISTED], start=1):
        state = [f"{dof} = {q:.6g}" for dof, q in zip(found.axes, a.q, strict=True)]
        state += [f"v.{dof} = {v:.6g}" for dof, v in zip(found.axes, a.v, strict=True)]
        console.print(
            f"{number}: {a.share:.2%} +- {a.error:.2%}, period {a.period}, at {', '.join(state)}",
            markup=False,
        )
    if len(found.attractors) > MOST_LISTED:
        console.print(f"and {len(found.attractors) - MOST_LISTED} more attractors", markup=False)
    share, error = found.unrecognised
    if share:
        console.print(
            f"not recognised: {share:.2%} +- {error:.2%} (chaotic, slow, or of a longer period)",
            markup=False,
        )
    if found.failed:
        console.print(
            f"{found.failed:,} failed or start inside a contact", markup=False, style="bold red"
        )
