"""Text tables of measuring software: separator, decimal mark, header and first row are detected.

Of all separators and decimal marks the reader takes those that make most cells numbers. It refuses
a table that can be read in two ways. Times may be written in several columns, or not at all.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jfric.errors import ProblemError, quoted, within
from jfric.fits.data.cells import (
    TIMES,
    Table,
    is_date,
    is_grouped,
    is_stamp,
    is_time,
    loose,
    number,
    split_unit,
    stamp,
)
from jfric.fits.data.head import COMMENT, Head, Layout, Row, Step, read_head
from jfric.system.units import unit_factor

SEPARATORS = {"\t": "tab", ";": "semicolon", ",": "comma", "|": "bar", " ": "blanks"}
DECIMALS = {".": "decimal point", ",": "decimal comma"}
#: Lines from the beginning and from the end that determine separator and decimal mark.
SAMPLE = 200
#: Worth of a number with marks between thousands, compared with one without.
GROUPED = 0.75
#: What some programs write below the last row.
_END = "EOF"


class _Line(NamedTuple):
    number: int
    text: str


def read_text(path: Path) -> Table:
    """The table in a text file; raises :class:`jfric.ProblemError` where it cannot be read."""
    text, encoding = _decoded(path)
    lines = [_Line(i, t) for i, t in enumerate(re.split(r"\r\n|\n|\r", text), 1) if t.strip()]
    told = None
    if lines and re.fullmatch(r"sep=.\s*", lines[0].text):  # a line that spreadsheets write
        told, lines = lines[0].text.strip("\n")[4], lines[1:]
    layout = _layout(lines, told)
    if layout is None:
        raise ProblemError(f"{path}: found no rows of at least two numbers")
    cells = [_split(line.text, layout.separator) for line in lines]
    layout = _widened(cells, layout)
    beside, cells, layout = _without_side(lines, cells, layout)
    numeric = _numeric(cells, layout)
    first = _first(cells, numeric, layout)
    last_empty = all(not r[-1] for r in cells[first:] if len(r) == layout.width)
    heads = [_head(line.text, layout) for line in lines[:first]]
    above = [Row(n.number, "\t".join(h), h) for n, h in zip(lines, heads, strict=False)]
    with within(f"{path}: "):
        head = read_head(above, beside, lines[first].number, layout, last_empty)
    rows, where = _rows(path, lines[first:], cells[first:], head)
    return _table(head, rows, where, layout, encoding)


def _decoded(path: Path) -> tuple[str, str]:
    data = path.read_bytes()
    marks = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
    tries = [name for mark, name in marks if data.startswith(mark)]
    if not tries and b"\0" in data[:400]:
        # Without a byte order mark: one of every two bytes of plain text is zero.
        tries = ["utf-16-be" if data[:1] == b"\0" else "utf-16-le"]
    for name in (*tries, "utf-8", "cp1252", "latin-1"):
        try:
            text = data.decode(name)
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            raise ProblemError(f"{path}: holds no text, a table of numbers is needed")
        return text, name.upper().replace("-SIG", " with mark").replace("CP1252", "Latin-1")
    raise ProblemError(f"{path}: holds no text, a table of numbers is needed")


def _split(text: str, separator: str) -> list[str]:
    if separator == " ":
        return text.split()
    return [c.strip() for c in next(csv.reader([text], delimiter=separator, skipinitialspace=True))]


def _layout(lines: Sequence[_Line], told: str | None) -> Layout | None:
    """Separator and decimal mark that make most cells numbers."""
    few = lines if len(lines) <= 2 * SAMPLE else [*lines[:SAMPLE], *lines[-SAMPLE:]]
    best, most = None, 0.0
    for separator in (told,) if told else SEPARATORS:
        cells = [_split(line.text, separator) for line in few]
        for decimal in DECIMALS:
            values = [sum(_worth(c, decimal) for c in row) for row in cells]
            widths = Counter(len(r) for r, v in zip(cells, values, strict=True) if v > 0)
            widths.pop(1, None)
            if not widths:
                continue
            width = widths.most_common(1)[0][0]
            value = sum(max(v, 0.0) for r, v in zip(cells, values, strict=True) if len(r) == width)
            if value > most:
                best, most = Layout(separator, decimal, width), value
    return best


def _worth(cell: str, decimal: str) -> float:
    value = number(cell, decimal)
    if value is None:
        return 1.0 if is_stamp(cell) else -1.0
    if np.isnan(value):
        return 0.0
    return GROUPED if is_grouped(cell, decimal) else 1.0


def _is_value(cell: str, decimal: str) -> bool:
    return number(cell, decimal) is not None or is_stamp(cell)


def _numeric(cells: Sequence[list[str]], layout: Layout) -> list[int]:
    """Columns that hold values in most rows."""
    rows = [row for row in cells if len(row) == layout.width][: 2 * SAMPLE]
    return [
        j
        for j in range(layout.width)
        if sum(_is_value(row[j], layout.decimal) for row in rows) > 0.5 * len(rows)
    ]


def _first(cells: Sequence[list[str]], numeric: Sequence[int], layout: Layout) -> int:
    """The first of two consecutive rows that hold values in all columns of numbers."""

    def holds(row: list[str]) -> bool:
        return (
            len(row) == layout.width
            and all(_is_value(row[j], layout.decimal) for j in numeric)
            and any(_worth(c, layout.decimal) > 0 for c in row)
        )

    good = [holds(row) for row in cells]
    return next((i for i, g in enumerate(good) if g and all(good[i : i + 2])), good.index(True))


def _widened(cells: Sequence[list[str]], layout: Layout) -> Layout:
    """The layout with the width of longer rows of numbers, two in sequence: some columns may end
    earlier than others."""

    def full(row: list[str]) -> int:
        return len(row) if row and all(number(c, layout.decimal) is not None for c in row) else 0

    long = [
        full(a) for a, b in pairwise(cells[: 2 * SAMPLE]) if full(a) == len(b) == full(b) and a[-1]
    ]
    return layout._replace(width=max(layout.width, *long, 0))


def _without_side(lines, cells: Sequence[list[str]], layout: Layout):
    """Rows of a head that stands on the left of the numbers, and the other cells."""
    whole = [row for row in cells if len(row) == layout.width]
    columns, half = list(zip(*whole, strict=True)), len(whole) // 2
    side = [j for j, c in enumerate(columns) if any(c) and not any(c[half:])]
    if (
        not side
        or len(whole) < len(cells)
        or not any(_worth(c, layout.decimal) > 0 for c in cells[0][len(side) :])
    ):
        return [], cells, layout
    rows = [[row[j] for j in side] for row in cells]
    found = [
        Row(line.number, "\t".join(row), row)
        for line, row in zip(lines, rows, strict=True)
        if any(row)
    ]
    kept = [j for j, c in enumerate(columns) if any(c) and j not in side]
    cells = [[row[j] for j in kept] for row in cells]
    return found, cells, layout._replace(width=len(kept))


def _head(text: str, layout: Layout) -> list[str]:
    text = COMMENT.sub("", text, count=1) if COMMENT.match(text) else text
    if layout.separator != " ":
        return _split(text, layout.separator)
    # Blanks also occur within a header: before a unit, and single ones between words.
    row = re.sub(r"\s+([\[(])", r"\1", text.strip()).split()
    return row if len(row) == layout.width else re.split(r"\s{2,}|\t", text.strip())


def _rows(path: Path, lines, cells, head: Head):
    """Rows of entries and their lines."""
    rows, where, width = [], [], len(head.names)
    for line, row in zip(lines, cells, strict=True):
        if COMMENT.match(line.text) or line.text.strip() == _END:
            continue
        if len(row) == width + 1 and not row[-1]:
            row = row[:-1]
        if head.clocks:  # columns with times of their own may end earlier
            row = row + [""] * (width - len(row))
        if len(row) != width:
            raise ProblemError(f"{path}: line {line.number} does not have {width} entries")
        rows.append(row)
        where.append(line.number)
    return rows, np.array(where)


def _table(head: Head, rows, where, layout: Layout, encoding) -> Table:
    values, wrong, of_stamps, remarks = {}, {}, [], [*head.remarks]
    columns = dict(zip(head.names, zip(*rows, strict=True), strict=True))
    for name, entries in columns.items():
        found = [number(c, layout.decimal) for c in entries]
        if None not in found:
            values[name] = np.array(found, float)
            continue
        seconds = stamps(entries)
        if seconds is not None:
            values[name] = seconds
            of_stamps.append(name)
            continue
        values[name] = np.array(entries)
        i = found.index(None)
        wrong[name] = (int(where[i]), entries[i])
    units, made = dict(head.units), joined(columns, values, head.units)
    if head.step and not made and not of_stamps:
        unit, seconds = clock(values, units, head.step)
        if unit and unit[1] != "s":
            times = {unit[0], *head.clocks.values()}
            units |= dict.fromkeys(times, unit[1])
            remarks.append(f"line {head.step.line} says that times are in {unit[1]}")
        if seconds is not None:
            made["time" if "time" not in values else "time of samples"] = seconds
            said = f"times were made from the step of {head.step.seconds:g} s"
            remarks.append(f"{said} in line {head.step.line}")
    if any(is_grouped(c, layout.decimal) for row in rows[:SAMPLE] for c in row):
        remarks.append("numbers with marks between thousands were read as one number")
    said = f"separator {SEPARATORS.get(layout.separator, quoted(layout.separator))}, "
    said += f"{DECIMALS[layout.decimal]}, {encoding}, "
    said += "no header" if head.line is None else f"names in line {head.line}"
    said += f", numbers from line {where[0]}"
    return Table(
        made | values,
        units,
        where,
        wrong,
        frozenset((*made, *of_stamps)),
        head.clocks,
        said,
        tuple(remarks),
    )


#: Units that a column of times without one may have.
_UNITS = ("s", "ms", "us", "ns")
#: Names of columns of seconds and their parts, and their units.
_PARTS = {"sec": "s", "secs": "s", "seconds": "s", "s": "s", "sekunden": "s", "timestamp": "s"}
_PARTS |= {"nsec": "ns", "nsecs": "ns", "nanosec": "ns", "nanoseconds": "ns", "ns": "ns"}
_PARTS |= {"usec": "us", "usecs": "us", "microseconds": "us", "us": "us", "fraction": "s"}
_PARTS |= {"msec": "ms", "msecs": "ms", "milliseconds": "ms", "millisekunden": "ms", "ms": "ms"}
_PARTS |= {"frac": "s", "fractionalseconds": "s", "time": "s", "unixtime": "s"}
_DAY = 86400.0


def stamps(entries: Sequence[str]) -> np.ndarray | None:
    """Time stamps as seconds since the first one; None if an entry is no time stamp.

    Of day and month of dates with strokes that order counts which gives the shorter record. Times
    of day go on after midnight.
    """
    best = None
    for day_first in (False, True):
        found = [stamp(c, day_first) for c in entries]
        kinds = {f[2] for f in found if f is not None}
        if None in found or len(kinds) != 1:
            continue
        whole, part = (np.array([f[i] for f in found if f is not None]) for i in (0, 1))
        if kinds == {"day"}:
            whole = np.unwrap(whole, period=_DAY)
        seconds = (whole - whole[0]) + (part - part[0])
        if best is None or np.ptp(seconds) < np.ptp(best):
            best = seconds
    return best


def joined(columns: Mapping[str, Sequence[str]], values: Mapping[str, np.ndarray], units):
    """Columns of seconds that two neighbours make together: a date and a time of day, or seconds
    and their part. By the names of both."""
    found = {}
    for first, second in pairwise(columns):
        for a, b in ((first, second), (second, first)):
            seconds = _dated(columns[a], columns[b])
            if seconds is None and a == first:
                seconds = _with_parts(a, b, values, units)
            if seconds is not None:
                found[f"{first} + {second}"] = seconds
    return found


def _dated(days: Sequence[str], times: Sequence[str]) -> np.ndarray | None:
    if not all(is_date(d) for d in days):
        return None
    return stamps([f"{d.strip()} {t.strip()}" for d, t in zip(days, times, strict=True)])


def _with_parts(whole: str, part: str, values, units) -> np.ndarray | None:
    size = [_part_unit(name, units.get(name)) for name in (whole, part)]
    a, b = values[whole], values[part]
    if size[0] != "s" or size[1] is None or a.dtype.kind != "f" or b.dtype.kind != "f":
        return None
    parts = float(unit_factor(size[1], None)) * b
    inside = np.all((parts >= 0.0) & (parts < 1.0)) and np.all(a == np.round(a))
    # Times that are complete without the part have none.
    if not inside or np.all(np.diff(a) > 0) or not np.any(parts):
        return None
    seconds = (a - a[0]) + (parts - parts[0])
    return seconds if np.all(np.diff(seconds) >= 0) else None


def _part_unit(name: str, unit: str | None) -> str | None:
    bare, own = split_unit(name)
    unit = own or unit
    if is_time(unit):
        return unit
    last = bare.replace("_", ".").rpartition(".")[2]
    return _PARTS.get(loose(last)) or _PARTS.get(loose(bare))


def clock(values: Mapping[str, np.ndarray], units: Mapping[str, str], step: Step):
    """Meaning of the time between samples in the head: the unit of the first column, or the
    seconds since the first sample where no column has the times; None for what it does not."""
    name, first = next(iter(values.items()))
    for other, column in values.items():
        own = split_unit(other)[1] or units.get(other)
        if is_time(own) or (own is None and loose(split_unit(other)[0]) in TIMES):
            name, first = other, column
            if own:
                return None, None
            break
    even = first.dtype.kind == "f" and first.size > 1 and np.all(np.diff(first) >= 0)
    between = float(np.median(np.diff(np.unique(first)))) if even and np.ptp(first) > 0 else 0.0
    for unit in _UNITS:
        if abs(between * float(unit_factor(unit, None)) / step.seconds - 1.0) < 1e-2:
            return (name, unit), None
    steps = np.diff(first)
    other = even and between != 1.0 and bool(np.all(np.abs(steps - between) < 1e-2 * between))
    if other or (loose(split_unit(name)[0]) in TIMES and between != 1.0):  # times of another step
        return None, None
    count = first - first[0] if between == 1.0 else np.arange(first.size)
    return None, step.seconds * count
