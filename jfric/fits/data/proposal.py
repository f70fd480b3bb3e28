"""A proposed table ``[data]`` for a file of any layout, to be checked by the user."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.data.cells import TIMES, Table, is_time, loose, split_unit
from jfric.fits.data.joining import at_times, first_of_each
from jfric.fits.data.measured_files import clock_remarks, read_columns
from jfric.system.naming import function_paths, path_dimension
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, Dimension, UnitError, unit_factor

#: Names for the only position and the only load of a system.
POSITIONS = ("position", "pos", "displacement", "angle", "encoder", "weg", "winkel", "lage")
VELOCITIES = ("velocity", "speed", "vel", "geschwindigkeit", "drehzahl", "vitesse")
FORCES = ("force", "load", "f", "kraft", "last", "torque", "moment", "drehmoment", "couple")


def propose(path: Path, problem: Problem | None = None) -> str:
    """TOML text of a table ``[data]`` for the columns of a file, with remarks as comments.

    With a ``problem`` columns are assigned to its degrees of freedom and loads, by name or, if
    there is one of each, by unit; the remaining columns appear as comments.
    """
    table = read_columns(path)
    columns = [k for k, v in table.values.items() if _numbers(v)]
    time = _time(table, columns)
    size = table.values[time].size
    left = [
        c
        for c in columns
        if c != time and table.values[c].size == size and table.clocks.get(c, time) in columns
    ]
    # Neither other times nor the numbers of samples are measured.
    bare = [c for c in left if table.unit(c) is None and table.values[c].size > 2]
    counted = {c for c in bare if np.all(np.diff(np.asarray(table.values[c], float)) == 1.0)}
    other = counted | set(table.clocks.values()) | table.stamps
    y, u = _matched(table, [c for c in left if c not in other], problem)
    missing = {path: _missing(table, time, c) for path, c in u.items()}
    u = {path: c for path, c in u.items() if missing[path] is not None}
    lines = [f"# Proposed for {path.name}: check every line, units first."]
    if table.layout:
        lines.append(f"# Read with {table.layout}.")
    lines += [f"# {remark}" for remark in (*table.remarks, *_clock(table, time))]
    lines += ["[data]", f"time = {_column(table, time, DIMENSIONS['time'])}"]
    if any(missing[path] for path in u):
        lines.append('missing_inputs = "hold"  # where an input has no number')
    lines += ["", "[data.y]"]
    if not y and problem is not None and left:
        guess = [c for c in left if c not in other] or left
        guess = [c for c in guess if c not in u.values()] or guess
        y = {next(iter(problem.dofs)): guess[0]}
        u = {path: c for path, c in u.items() if c != guess[0]}
        lines.append(f"# A guess, as no name and no unit is one of {', '.join(problem.dofs)}:")
    if not y:
        raise ProblemError(f"data.y: found no column of numbers besides the times {time!r}")
    lines += [_line(table, problem, name, c) for name, c in y.items()]
    if u:
        lines += ["", "[data.u]", *(_line(table, problem, name, c) for name, c in u.items())]
    unused = [c for c in left if c not in y.values() and c not in u.values()]
    if unused:
        lines += ["", "# Columns that are not used:"]
        lines += [f"# {_column(table, c, None)}  {_range(table, c)}" for c in unused]
    text = [k for k in table.values if k not in columns]
    lines += [f"# {_quoted(k)} holds no numbers, or infinite ones" for k in text]
    return "\n".join(lines) + "\n"


def _numbers(values: Any) -> bool:
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "fiub":
        return False
    return bool(np.any(np.isfinite(found)) and not np.any(np.isinf(found)))


def _missing(table: Table, time: str, column: str) -> int | None:
    """How many numbers an input lacks; None where the first is missing, which nothing can hold."""
    clock = table.clocks.get(column, time)
    t, own, values = (np.asarray(table.values[c], float) for c in (time, clock, column))
    used = np.isfinite(t)
    if time in table.clocks.values() and not np.allclose(own, t, 0.0, 1e-12, equal_nan=True):
        values = at_times(t[used], own, values, held=True)
    else:
        values = values[used]
    there = np.isfinite(first_of_each(t[used], values))
    return int(np.sum(~there)) if there[0] else None


def _time(table: Table, columns: list[str]) -> str:
    """The column of times: time stamps, by name, by unit, or the first that increases."""
    rising = [
        c
        for c in columns
        if _rises(np.asarray(table.values[c], float), early=c in table.clocks.values())
    ]
    of_time = [c for c in rising if is_time(table.unit(c))]
    named = [c for c in rising if loose(split_unit(c)[0]) in TIMES]
    clocks = [c for c in rising if c in table.clocks.values()]
    strict = [c for c in rising if np.all(np.diff(np.asarray(table.values[c], float)) > 0)]
    stamps = [c for c in rising if c in table.stamps]
    for found in (stamps, clocks, named, of_time, strict, rising):
        if found:
            return found[0]
    raise ProblemError(
        "data.time: found no column whose numbers increase; there are " + ", ".join(table.values)
    )


def _rises(values: np.ndarray, *, early: bool) -> bool:
    """Whether numbers never fall, as times do, which may be repeated. ``early``: whether they may
    end earlier than others."""
    if not early and np.any(np.isnan(values)):
        return False
    there = values[: np.flatnonzero(np.isfinite(values)).max(initial=-1) + 1]
    return there.size > 1 and bool(np.all(np.diff(there) >= 0) and there[-1] > there[0])


def _matched(table: Table, left: list[str], problem: Problem | None):
    """Columns of measured quantities and of inputs, each used once."""
    y: dict[str, str] = {}
    u: dict[str, str] = {}
    if problem is None:
        return {split_unit(c)[0]: c for c in left[:1]}, u
    dofs = list(problem.dofs)
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
    speeds = [f"v.{d}" for d in dofs]
    kinds = {name: _kind(problem, name) for name in (*dofs, *speeds, *loads)}
    for group, names in ((y, dofs), (y, speeds), (u, loads)):
        rest = [n for n in names if n not in group]
        for name in rest:
            dimension = kinds[name]
            same = [c for c in free if table.unit(c) and _fits(table, c, dimension)]
            if len(same) == 1 and len([n for n in rest if kinds[n] == dimension]) == 1:
                group[name] = same[0]
                free.remove(same[0])
    for group, names, words in ((y, dofs, POSITIONS), (y, speeds, VELOCITIES), (u, loads, FORCES)):
        called = [c for c in free if _is_called(split_unit(c)[0], words)]
        if not set(names) & set(group) and len(names) == 1 and len(called) == 1:
            group[names[0]] = called[0]
            free.remove(called[0])
    if not y and len(dofs) == 1 and len(free) == 1:
        y[dofs[0]] = free[0]
    return y, u


def _is_called(name: str, words: tuple[str, ...]) -> bool:
    """Whether a name is one of the ``words``, or has one for a part: ``Axis1.ActPos``."""
    parts = re.findall(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+", name)
    return loose(name) in words or any(part.casefold() in words for part in parts)


def _kind(problem: Problem | None, name: str) -> Dimension | None:
    """Dimension of a quantity that a proposal assigns a column to."""
    dof = name.removeprefix("v.")
    if problem is None:
        return None
    if dof not in problem.dofs:
        return path_dimension(problem, name)
    rotates = problem.dofs.get(dof) == "rotation"
    if dof != name:
        return DIMENSIONS["angular velocity" if rotates else "velocity"]
    return DIMENSIONS["angle" if rotates else "length"]


def _fits(table: Table, column: str, dimension: Dimension | None) -> bool:
    """Whether the unit in the header is one of the ``dimension``."""
    try:
        unit_factor(table.unit(column) or "", dimension)
    except UnitError:
        return False
    return True


def _column(table: Table, column: str, dimension: Dimension | None) -> str:
    """The entry of a column, with a unit that the reader takes."""
    unit = table.unit(column)
    if column in table.stamps:
        return f"{_quoted(column)}  # seconds since the first sample"
    if unit and not _fits(table, column, dimension):
        si = dimension.unit if dimension else ""
        said = f'{{column = {_quoted(column)}, unit = "{f"1 {si}".strip()}"}}'
        return f"{said}  # the file says {_quoted(unit)}: how much is one"
    return f"{{column = {_quoted(column)}, unit = {_quoted(unit or '')}}}"


def _line(table: Table, problem: Problem | None, name: str, column: str) -> str:
    entry = _column(table, column, _kind(problem, name))
    return f"{_key(name)} = {entry}{';' if '  # ' in entry else '  #'} {_range(table, column)}"


def _range(table: Table, column: str) -> str:
    values = np.asarray(table.values[column], float)
    there = values[np.isfinite(values)]
    missing = values.size - there.size
    said = f"{there.min():.6g} to {there.max():.6g}" if there.size else "no numbers"
    said += "" if table.unit(column) else ", no unit found: SI is assumed"
    return said + (f", {missing:,} missing" if missing else "")


def _clock(table: Table, column: str) -> list[str]:
    t = np.unique(np.asarray(table.values[column], float))
    t = t[np.isfinite(t)]
    unit = table.unit(column) or ("s" if column in table.stamps else "")
    step = float(np.median(np.diff(t)))
    said = f"{t.size:,} samples from {t[0]:g} to {t[-1]:g} {unit}, one every {step:g} {unit}"
    return [
        said if unit else f"{said}(no unit found: seconds are assumed)",
        *clock_remarks(t, unit),
    ]


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else _quoted(name)


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)
