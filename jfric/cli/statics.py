"""``jfric equilibria`` and ``jfric trace``: systems at rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jfric.cli import options
from jfric.cli.app import command, remarks, tell, tell_rows, wrote
from jfric.cli.kept_results import add_figure, write_rows
from jfric.cli.loading import load_changed
from jfric.cli.options import setting
from jfric.cli.values import followed, names_in

if TYPE_CHECKING:
    import numpy as np

    from jfric.statics.all_equilibria import Equilibria
    from jfric.statics.branch import EquilibriumPath
    from jfric.statics.rest_states import RestStates

#: Number of columns of a table above which only the first ones are printed.
MAX_COLUMNS = 6


@dataclass(frozen=True, kw_only=True)
class EquilibriaSettings(options.OnSystem):
    """Settings of ``jfric equilibria``."""

    rest: bool = setting("Where the system can stay at rest, as intervals.", False, name="--rest")
    starts: int = setting("Starts of Newton's method, with many contacts.", 64)


@command(
    "Study",
    epilog="Example, after jfric init janovsky_static_e5: jfric equilibria janovsky_static_e5.toml",
)
def equilibria(given: EquilibriaSettings) -> bool:
    """Print all equilibria of a system with friction, from its initial position as reference.

    Exit status: 0, 1 where there is none, 2 for bad input.
    """
    from jfric.statics.all_equilibria import equilibria as all_equilibria
    from jfric.statics.rest_states import RestStates

    chosen = load_changed(given)
    meaning = "rest" if given.rest else "reference"
    found = all_equilibria(chosen.problem, meaning=meaning, starts=given.starts)
    tell(chosen.name, "bold")
    if isinstance(found, RestStates):
        _print_rest(found)
    else:
        _print_equilibria(found)
    return int(found.count) > 0


@dataclass(frozen=True, kw_only=True)
class TraceSettings(options.OnSystem):
    """Settings of ``jfric trace``."""

    vary: options.Interval = None
    seeds: int | None = setting("Values of the parameter at which branches are looked for.")
    show: str | None = setting("Degrees of freedom to draw, separated by commas.", metavar="NAMES")
    contact: str | None = setting("Contact whose modes give the line styles.", metavar="NAME")
    out: options.ResultFolder = None
    plot: options.Plot = False


@command(
    "Study",
    epilog="Example, after jfric init janovsky_static_fold: "
    "jfric trace janovsky_static_fold.toml --vary parameters.ftau=2.5:-2.5 --plot",
)
def trace(given: TraceSettings) -> None:
    """Follow all equilibria over a parameter through folds and changes of mode.

    Prints the special points and writes all rows (CSV). Exit status: 0, 2 for bad input.
    """
    from jfric.statics.path_tracing import trace as traced

    chosen = load_changed(given)
    wanted = followed(chosen, given.vary)
    if given.seeds is not None:
        wanted["seeds"] = given.seeds
    name, start, stop = wanted.pop("vary"), wanted.pop("start"), wanted.pop("stop")
    path = traced(chosen.problem, name, start, stop, **wanted)
    tell(chosen.name, "bold")
    _print_path(path)
    special = [{**row, "q": list(map(float, row["q"]))} for row in path.special_table()]
    content = {"parameter": path.name, "start": path.start, "stop": path.stop}
    content |= {"special": special, "remarks": list(path.remarks)}
    files = write_rows(given.folder, "path", _columns(path), content)
    if given.plot:
        from jfric.figures.path_figure import plot_path

        about = {"contact": given.contact, "title": chosen.name}
        add_figure(files, lambda: plot_path(path, names_in(given.show) or None, **about))
    wrote(*files)


def _print_path(path: EquilibriumPath) -> None:
    """Print special points and remarks."""
    count = len(path.branches)
    title = f"{count} branch{'' if count == 1 else 'es'} over {path.name}"
    columns = ("branch", ">parameter", "what", "contacts", "from", "to")
    rows = [
        (
            str(row["branch"]),
            f"{row['parameter']:.12g}",
            row["kind"],
            ", ".join(row["contacts"]),
            _changed(row["before"], row["after"]),
            _changed(row["after"], row["before"]),
            *(f"{x:.10g}" for x in _clean(row["q"])[:MAX_COLUMNS]),
        )
        for row in path.special_table()
    ]
    tell_rows(title, (*columns, *(f">{axis}" for axis in path.axes[:MAX_COLUMNS])), rows)
    remarks(path.remarks)


def _columns(path: EquilibriumPath) -> dict[str, np.ndarray]:
    """All rows of a path as columns: branch, parameter, positions, reactions, modes."""
    import numpy as np

    from jfric.results.modes import Mode

    branches = path.branches

    def joined(field: str) -> np.ndarray:
        return np.concatenate([getattr(b, field) for b in branches]) if branches else np.zeros((0,))

    sizes = [len(b.parameter) for b in branches]
    numbers = np.repeat(np.arange(1.0, len(branches) + 1), sizes)
    columns: dict[str, Any] = {"branch": numbers, path.name: joined("parameter")}
    if branches:
        normals = path.names[len(path.names) - branches[0].lambda_n.shape[1] :]
        for field, names in (("q", path.axes), ("lambda_t", path.names), ("lambda_n", normals)):
            values = joined(field)
            columns |= {f"{field}.{name}": values[:, i] for i, name in enumerate(names)}
        reaction = joined("reaction") if path.joints else np.zeros((0, 0))
        columns |= {f"reaction.{name}": reaction[:, i] for i, name in enumerate(path.joints)}
        for i, name in enumerate(path.names):
            columns[f"mode.{name}"] = np.asarray([Mode(int(m)).label for m in joined("mode")[:, i]])
    return columns


def _clean(values: Any) -> np.ndarray:
    """Values to print, with zero for those that are rounding errors compared with the largest."""
    import numpy as np

    values = np.asarray(values, float)
    largest = np.max(np.abs(values[np.isfinite(values)]), initial=0.0)
    return np.where(np.abs(values) <= 1e-14 * largest, 0.0, values)


def _changed(mine: tuple[str, ...], other: tuple[str, ...]) -> str:
    """Modes that differ from the other side; all of them if there is no other side."""
    if not other:
        few = list(mine[:4])
        return ", ".join([*few, "..."] if len(mine) > 4 else few)
    return ", ".join(a for a, b in zip(mine, other, strict=False) if a != b)


def _print_equilibria(found: Equilibria) -> None:
    normals = found.names[len(found.names) - found.lambda_n.shape[-1] :]
    # The reactions of joints belong to mechanisms, which have no segments.
    groups = {"q": found.axes, "lambda_t": found.names, "lambda_n": normals}
    groups |= {"reaction": found.joints} if found.joints else {}
    heads = [
        f">{name}" if field == "q" else f">{field}.{name}"
        for field, names in groups.items()
        for name in names[:MAX_COLUMNS]
    ]
    count = int(found.count)
    title = f"{count} equilibri{'um' if count == 1 else 'a'}"
    rows: list[tuple[str, ...]] = []
    for i, row in enumerate(found.table(), start=1):
        for suffix in ("", "_to") if row["continuum"] else ("",):
            values = [x for field in groups for x in row[field + suffix][:MAX_COLUMNS]]
            numbers = (f"{x:.10g}" for x in _clean(values))
            remark = "from" if row["continuum"] else "modes meet here" if row["boundary"] else ""
            if suffix:
                rows.append(("", "", *numbers, "", "to: all between are equilibria"))
            else:
                modes, residual = _changed(row["mode"], ()), f"{row['residual']:.0e}"
                rows.append((str(i), modes, *numbers, residual, remark))
    tell_rows(title, ("", "modes", *heads, ">residual", "remark"), rows)
    if not found.exhaustive:
        where = "from the initial position" if found.curved else "from many starts"
        tell(f"found {where}: there may be others")
    if bool(found.unresolved):
        what = "positions or reactions" if found.curved else "several parameters"
        tell(f"some modes leave {what} open and are left out")


def _print_rest(found: RestStates) -> None:
    for row in found.table():
        closed = ", ".join(row["closed"]) or "none"
        which = f", closed contacts: {closed}" if found.closed.shape[-1] else ""
        rows = [
            (name if kind == "q" else f"{kind}.{name}", f"{low + 0.0:.10g}", f"{high + 0.0:.10g}")
            for kind in ("q", "lambda_t", "lambda_n", "reaction")
            for name, (low, high) in row[kind].items()
        ]
        tell_rows(f"Rest states{which}", ("", ">from", ">to"), rows)
    if int(found.count) == 0:
        tell("there is no rest state")
