"""Actions and printed results of ``jfric equilibria`` and ``jfric trace``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.cli import report
from jfric.cli.kept_results import write_json
from jfric.cli.loading import load_changed
from jfric.cli.vary import parse_interval
from jfric.errors import ProblemError
from jfric.files import output
from jfric.statics.all_equilibria import Equilibria, equilibria
from jfric.statics.branch import EquilibriumPath
from jfric.statics.path_tracing import trace
from jfric.statics.rest_states import RestStates

if TYPE_CHECKING:
    from rich.console import Console

#: Columns of a table beyond which only the first are printed.
MAX_COLUMNS = 6


def print_equilibria(
    console: Console, config: Path, settings: list[str], *, rest: bool, starts: int
) -> bool:
    """Compute and print all equilibria of a file, or its rest states; whether there are any."""
    chosen = load_changed(config, settings)
    meaning = "rest" if rest else "reference"
    found = equilibria(chosen.problem, meaning=meaning, starts=starts)
    console.print(chosen.title or config.stem, style="bold", markup=False)
    if isinstance(found, RestStates):
        _print_rest(console, found)
    else:
        _print_equilibria(console, found)
    return int(found.count) > 0


def print_path(
    console: Console,
    config: Path,
    settings: list[str],
    *,
    vary: str | None,
    seeds: int | None,
    show: list[str] | None,
    contact: str | None,
    out: Path | None,
    plot: bool,
) -> None:
    """Trace the equilibria of a file over a parameter, print special points, write the rows."""
    chosen = load_changed(config, settings)
    given = dict(chosen.statics) if vary is None else parse_interval(chosen.problem, vary)
    if not given:
        raise ProblemError(
            "--vary: not given, and the file has no table [statics]; give --vary PATH=START:STOP"
        )
    if seeds is not None:
        given["seeds"] = seeds
    name, start, stop = given.pop("vary"), given.pop("start"), given.pop("stop")
    path = trace(chosen.problem, name, start, stop, **given)
    console.print(chosen.title or config.stem, style="bold", markup=False)
    count = len(path.branches)
    table = report.plain_table(
        f"{count} branch{'' if count == 1 else 'es'} over {path.name}",
        *("branch", ">parameter", "what", "contacts", "from", "to"),
        *(f">{axis}" for axis in _few(path.axes)),
    )
    for row in path.special_table():
        table.add_row(
            str(row["branch"]),
            f"{row['parameter']:.12g}",
            row["kind"],
            ", ".join(row["contacts"]),
            _changed(row["before"], row["after"]),
            _changed(row["after"], row["before"]),
            *(f"{x:.10g}" for x in _clean(row["q"])[:MAX_COLUMNS]),
        )
    console.print(table)
    for remark in path.remarks:
        console.print(f"mind: {remark}", style="yellow", markup=False)
    folder = out or Path("results") / config.stem
    place = output.reserve(folder, "path")
    columns, units = path_columns(path)
    output.write_trajectory(place.with_suffix(".csv"), columns, units)
    write_json(
        place,
        {
            "parameter": path.name,
            "start": path.start,
            "stop": path.stop,
            "special": [
                {**row, "q": np.asarray(row["q"]).tolist()} for row in path.special_table()
            ],
            "remarks": list(path.remarks),
        },
    )
    files = [place.with_suffix(".csv"), place]
    if plot:
        from jfric.figures.path_figure import plot_path

        figure = plot_path(path, show, contact=contact, title=chosen.title or config.stem)
        figure.savefig(place.with_suffix(".png"), dpi=150)
        files.append(place.with_suffix(".png"))
    console.print("wrote " + ", ".join(str(f) for f in files), markup=False, soft_wrap=True)


def path_columns(path: EquilibriumPath) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """All rows of a path as columns: branch, parameter, positions, reactions, modes; units."""
    from jfric.results.modes import Mode

    branches = path.branches

    def joined(field: str) -> np.ndarray:
        return np.concatenate([getattr(b, field) for b in branches]) if branches else np.zeros((0,))

    columns: dict[str, Any] = {
        "branch": np.repeat(
            np.arange(1.0, len(branches) + 1), [len(b.parameter) for b in branches]
        ),
        path.name: joined("parameter"),
    }
    if branches:
        normals = path.names[len(path.names) - branches[0].lambda_n.shape[1] :]
        for field, names in (("q", path.axes), ("lambda_t", path.names), ("lambda_n", normals)):
            values = joined(field)
            columns |= {f"{field}.{name}": values[:, i] for i, name in enumerate(names)}
        reaction = joined("reaction") if path.joints else np.zeros((0, 0))
        columns |= {f"reaction.{name}": reaction[:, i] for i, name in enumerate(path.joints)}
        for i, name in enumerate(path.names):
            columns[f"mode.{name}"] = np.asarray([Mode(int(m)).label for m in joined("mode")[:, i]])
    return columns, dict.fromkeys(columns, "")


def _clean(values: Any) -> np.ndarray:
    """Values to print: those that are rounding error beside the largest are zero."""
    values = np.asarray(values, float)
    largest = np.max(np.abs(values[np.isfinite(values)]), initial=0.0)
    return np.where(np.abs(values) <= 1e-14 * largest, 0.0, values)


def _few(names: tuple[str, ...]) -> tuple[str, ...]:
    return names[:MAX_COLUMNS]


def _changed(mine: tuple[str, ...], other: tuple[str, ...]) -> str:
    """Modes that differ from the other side; all where there is no other side."""
    if not other:
        few = list(mine[:4])
        return ", ".join([*few, "..."] if len(mine) > 4 else few)
    return ", ".join(a for a, b in zip(mine, other, strict=False) if a != b)


def _print_equilibria(console: Console, found: Equilibria) -> None:
    from rich.text import Text

    nu = found.lambda_n.shape[-1]
    normals = found.names[len(found.names) - nu :]
    heads = [
        *(f">{a}" for a in _few(found.axes)),
        *(f">lambda_t.{c}" for c in _few(found.names)),
        *(f">lambda_n.{c}" for c in _few(normals)),
        *(f">reaction.{c}" for c in _few(found.joints)),
    ]
    # Those of mechanisms are no segments.
    fields = ("q", "lambda_t", "lambda_n", *(["reaction"] if found.joints else []))
    count = int(found.count)
    table = report.plain_table(
        f"{count} equilibri{'um' if count == 1 else 'a'}",
        "",
        "modes",
        *heads,
        ">residual",
        "remark",
    )
    for i, row in enumerate(found.table(), start=1):
        for suffix in ("", "_to") if row["continuum"] else ("",):
            values = [x for field in fields for x in row[field + suffix][:MAX_COLUMNS]]
            remark = "from" if row["continuum"] else "modes meet here" if row["boundary"] else ""
            table.add_row(
                str(i) if not suffix else "",
                _changed(row["mode"], ()) if not suffix else "",
                *(f"{x:.10g}" for x in _clean(values)),
                f"{row['residual']:.0e}" if not suffix else "",
                Text("to: all between are equilibria" if suffix else remark),
            )
    console.print(table)
    if not found.exhaustive:
        where = "from the initial position" if found.curved else "from many starts"
        console.print(f"found {where}: there may be others", markup=False)
    if bool(found.unresolved):
        what = "positions or reactions" if found.curved else "several parameters"
        console.print(f"some modes leave {what} open and are left out", markup=False)


def _print_rest(console: Console, found: RestStates) -> None:
    for row in found.table():
        closed = ", ".join(row["closed"]) or "none"
        title = (
            f"Rest states, closed contacts: {closed}" if found.closed.shape[-1] else "Rest states"
        )
        table = report.plain_table(title, "", ">from", ">to")
        for kind in ("q", "lambda_t", "lambda_n", "reaction"):
            for name, (low, high) in row[kind].items():
                label = name if kind == "q" else f"{kind}.{name}"
                table.add_row(label, f"{low + 0.0:.10g}", f"{high + 0.0:.10g}")
        console.print(table)
    if int(found.count) == 0:
        console.print("there is no rest state", markup=False)
