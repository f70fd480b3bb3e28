"""A proposed table ``[data]`` for a file of any layout, to be checked by the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.data.columns import Table, loose, split_unit
from jfric.fits.data.measured_files import clock_remarks, read_columns
from jfric.system.naming import function_paths
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, UnitError, dimensions_of

#: Names of columns of times, in lower case without blanks.
TIMES = ("t", "time", "times", "timestamp", "zeit", "temps", "tempo", "xvalue", "elapsedtime")
#: Names for the only position and the only load of a system.
POSITIONS = ("position", "pos", "displacement", "angle", "encoder", "weg", "winkel", "lage")
FORCES = ("force", "load", "f", "kraft", "last")


def propose(path: Path, problem: Problem | None = None) -> str:
    """TOML text of a table ``[data]`` for the columns of a file, with remarks as comments.

    With a ``problem`` columns are assigned to its degrees of freedom and loads, by name or, if
    there is one of each, by unit; the remaining columns appear as comments.
    """
    table = read_columns(path)
    columns = [k for k, v in table.values.items() if _numbers(v)]
    time = _time(table, columns)
    left = [c for c in columns if c != time]
    y, u = _matched(table, left, problem)
    lines = [f"# Proposed for {path.name}: check every line, units first."]
    if table.layout:
        lines.append(f"# Read with {table.layout}.")
    lines += [f"# {remark}" for remark in (*table.remarks, *_clock(table, time))]
    lines += ["[data]", f"time = {_column(table, time)}", "", "[data.y]"]
    lines += [f"{_key(name)} = {_column(table, c)}  # {_range(table, c)}" for name, c in y.items()]
    if not y:
        lines.append(f"# {_dofs(problem)} = COLUMN, one of those below")
    if u:
        lines += ["", "[data.u]"]
        for name, c in u.items():
            lines.append(f"{_key(name)} = {_column(table, c)}  # {_range(table, c)}")
    unused = [c for c in left if c not in y.values() and c not in u.values()]
    if unused:
        lines += ["", "# Columns that are not used:"]
        lines += [f"# {_column(table, c)}  {_range(table, c)}" for c in unused]
    text = [k for k in table.values if k not in columns]
    lines += [f"# {_quoted(k)} holds no numbers" for k in text]
    return "\n".join(lines) + "\n"


def _numbers(values: Any) -> bool:
    found = np.asarray(values)
    return found.ndim == 1 and found.dtype.kind in "fiub"


def _time(table: Table, columns: list[str]) -> str:
    """The column of times: time stamps, by name, by unit, or the first that increases."""
    rising = [
        c
        for c in columns
        if np.asarray(table.values[c]).size > 1
        and np.all(np.diff(np.asarray(table.values[c], float)) > 0)
    ]
    of_time = [c for c in rising if _measures(table, c) == dimensions_of("s")]
    named = [c for c in rising if loose(split_unit(c)[0]) in TIMES]
    for found in (sorted(table.stamps & set(rising)), named, of_time, rising):
        if found:
            return found[0]
    raise ProblemError(
        "data.time: found no column whose numbers increase; there are " + ", ".join(table.values)
    )


def _matched(table: Table, left: list[str], problem: Problem | None):
    """Columns of measured quantities and of inputs, each used once."""
    y: dict[str, str] = {}
    u: dict[str, str] = {}
    if problem is None:
        return {split_unit(c)[0]: c for c in left[:1]}, u
    dofs = list(problem.axes)
    loads = [path for path in function_paths(problem) if path.startswith("load.")]
    free = list(left)
    for name in dofs:
        called = {c: loose(split_unit(c)[0]) for c in free}
        # Or by the name that a run of jfric gives the column.
        same = [c for c in free if called[c] == loose(name)]
        same = same or [c for c in free if called[c] == loose(f"q.{name}")]
        if len(same) == 1:
            y[name] = same[0]
            free.remove(same[0])
    for name in loads:
        own = {loose(part) for part in (name, *name.split("."))}
        same = [c for c in free if loose(split_unit(c)[0]) in own]
        if len(same) == 1 and same[0] not in u.values():
            u[name] = same[0]
            free.remove(same[0])
    rotates = {d: problem.dofs.get(d) == "rotation" for d in dofs}
    for group, names, kinds in (
        (y, dofs, {d: "angle" if rotates[d] else "length" for d in dofs}),
        (u, loads, dict.fromkeys(loads, "force")),
    ):
        rest = [n for n in names if n not in group]
        for name in rest:
            wanted = dimensions_of(DIMENSIONS[kinds[name]].unit)
            same = [c for c in free if _measures(table, c) == wanted and table.unit(c)]
            if len(same) == 1 and len([n for n in rest if kinds[n] == kinds[name]]) == 1:
                group[name] = same[0]
                free.remove(same[0])
    for group, names, words in ((y, dofs, POSITIONS), (u, loads, FORCES)):
        called = [c for c in free if loose(split_unit(c)[0]) in words]
        if not group and len(names) == 1 and len(called) == 1:
            group[names[0]] = called[0]
            free.remove(called[0])
    if not y and len(dofs) == 1 and len(free) == 1:
        y[dofs[0]] = free[0]
    return y, u


def _measures(table: Table, column: str) -> Any:
    try:
        return dimensions_of(table.unit(column) or "")
    except UnitError:
        return None


def _column(table: Table, column: str) -> str:
    unit = table.unit(column)
    if column in table.stamps:
        return f"{_quoted(column)}  # time stamps: seconds since the first"
    if unit is None:
        return f'{{column = {_quoted(column)}, unit = ""}}'
    return f"{{column = {_quoted(column)}, unit = {_quoted(unit)}}}"


def _range(table: Table, column: str) -> str:
    values = np.asarray(table.values[column], float)
    there = values[np.isfinite(values)]
    missing = values.size - there.size
    said = f"{there.min():.6g} to {there.max():.6g}" if there.size else "no numbers"
    said += "" if table.unit(column) else ", no unit found: SI is assumed"
    return said + (f", {missing:,} missing" if missing else "")


def _clock(table: Table, column: str) -> list[str]:
    t = np.asarray(table.values[column], float)
    unit = table.unit(column) or ("s" if column in table.stamps else "")
    step = float(np.median(np.diff(t)))
    said = f"{t.size:,} samples from {t[0]:g} to {t[-1]:g} {unit}, one every {step:g} {unit}"
    return [
        said if unit else f"{said}(no unit found: seconds are assumed)",
        *clock_remarks(t, unit),
    ]


def _dofs(problem: Problem | None) -> str:
    return "SIGNAL" if problem is None else " or ".join(problem.axes)


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else _quoted(name)


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)
