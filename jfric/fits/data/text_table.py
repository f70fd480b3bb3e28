"""Text tables of measuring software: separator, decimal mark, header and first row are detected.

Of all separators and decimal marks the reader takes those that make most cells numbers. It refuses
a table that can be read in two ways.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jfric.errors import ProblemError, quoted
from jfric.fits.data.cells import is_grouped, is_stamp, number, stamp
from jfric.fits.data.columns import Table, is_unit, written

SEPARATORS = {"\t": "tab", ";": "semicolon", ",": "comma", "|": "bar", " ": "blanks"}
DECIMALS = {".": "decimal point", ",": "decimal comma"}
#: Lines from the beginning and from the end that determine separator and decimal mark.
SAMPLE = 200
#: Worth of a number with marks between thousands, compared with one without.
GROUPED = 0.75
_COMMENT = re.compile(r"\s*(?:#|%|//)\s*")


class _Layout(NamedTuple):
    separator: str
    decimal: str
    width: int


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
    numeric = _numeric(cells, layout)
    first = _first(cells, numeric, layout)
    names, units, header = _header(path, lines, cells, first, layout)
    rows, where = _rows(path, lines, cells, first, len(names))
    return _table(names, units, rows, where, layout, header, encoding)


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


def _layout(lines: Sequence[_Line], told: str | None) -> _Layout | None:
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
            value = sum(v for r, v in zip(cells, values, strict=True) if len(r) == width)
            if value > most:
                best, most = _Layout(separator, decimal, width), value
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


def _numeric(cells: Sequence[list[str]], layout: _Layout) -> list[int]:
    """Columns that hold values in most rows."""
    rows = [row for row in cells if len(row) == layout.width][: 2 * SAMPLE]
    return [
        j
        for j in range(layout.width)
        if sum(_is_value(row[j], layout.decimal) for row in rows) > 0.5 * len(rows)
    ]


def _first(cells: Sequence[list[str]], numeric: Sequence[int], layout: _Layout) -> int:
    """The first of two consecutive rows that hold values in all columns of numbers."""

    def holds(row: list[str]) -> bool:
        return (
            len(row) == layout.width
            and all(_is_value(row[j], layout.decimal) for j in numeric)
            and any(_worth(c, layout.decimal) > 0 for c in row)
        )

    good = [holds(row) for row in cells]
    return next((i for i, g in enumerate(good) if g and all(good[i : i + 2])), good.index(True))


def _header(path: Path, lines, cells, first: int, layout: _Layout):
    """Names and units of the columns, and the line of the names."""
    if first == 0:
        return [f"column {j + 1}" for j in range(layout.width)], {}, None
    above = [_head(lines[i].text, layout) for i in (first - 1, first - 2) if i >= 0]
    row, units = above[0], None
    at = first - 1
    if len(above) > 1 and len(above[1]) == len(row) and _are_units(row):
        row, units, at = above[1], row, first - 2
    # A separator behind the last entry, of the header or of the rows, adds no column.
    width = layout.width
    last_empty = all(not r[-1] for r in cells[first:] if len(r) == width)
    while len(row) > 1 and not row[-1] and (len(row) > width or last_empty):
        row = row[:-1]
    if last_empty and len(row) == width - 1:
        width -= 1
    if len(row) != width:
        said = f"{path}: line {lines[at].number} names {len(row)} columns, "
        said += f"line {lines[first].number} has {layout.width} entries"
        if layout.separator == "," and layout.width == 2 * len(row):
            said += "; decimal commas between separating commas cannot be told apart, write the "
            said += "file with semicolons or decimal points"
        raise ProblemError(said)
    # A row of data with a word in it is no header.
    if 2 * sum(_worth(c, layout.decimal) > 0 for c in row) >= width:
        odd = next((c for c in row if number(c, layout.decimal) is None), "")
        raise ProblemError(f"{path}: line {lines[at].number} holds {odd!r} where numbers begin")
    names = _different([c or f"column {j + 1}" for j, c in enumerate(row)])
    table = {} if units is None else {
        n: written(u.strip("[](){} ")) for n, u in zip(names, units, strict=False) if u
    }  # fmt: skip
    return names, table, lines[at].number


def _head(text: str, layout: _Layout) -> list[str]:
    text = _COMMENT.sub("", text, count=1) if _COMMENT.match(text) else text
    if layout.separator != " ":
        return _split(text, layout.separator)
    # Blanks also occur within a header: before a unit, and single ones between words.
    row = re.sub(r"\s+([\[(])", r"\1", text.strip()).split()
    return row if len(row) == layout.width else re.split(r"\s{2,}|\t", text.strip())


def _are_units(row: Sequence[str]) -> bool:
    bare = [cell.strip("[](){} ") for cell in row]
    return any(bare) and all(is_unit(cell) for cell in bare)


def _different(names: Sequence[str]) -> list[str]:
    """Names with repeated ones numbered: ``x (1)``, ``x (2)``."""
    count, seen = Counter(names), Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if count[name] == 1 else f"{name} ({seen[name]})")
    return found


def _rows(path: Path, lines, cells, first: int, width: int):
    """Rows of entries and their lines."""
    rows, where = [], []
    for line, row in zip(lines[first:], cells[first:], strict=True):
        if _COMMENT.match(line.text):
            continue
        if len(row) == width + 1 and not row[-1]:
            row = row[:-1]
        if len(row) != width:
            raise ProblemError(f"{path}: line {line.number} does not have {width} entries")
        rows.append(row)
        where.append(line.number)
    return rows, np.array(where)


def _table(names, units, rows, where, layout: _Layout, header, encoding) -> Table:
    values, wrong, stamps, remarks = {}, {}, set(), []
    for name, entries in zip(names, zip(*rows, strict=True), strict=True):
        found = [number(c, layout.decimal) for c in entries]
        if None not in found:
            values[name] = np.array(found, float)
            continue
        seconds = _stamps(entries)
        if seconds is not None:
            values[name] = seconds
            stamps.add(name)
            continue
        values[name] = np.array(entries)
        i = found.index(None)
        wrong[name] = (int(where[i]), entries[i])
    if any(is_grouped(c, layout.decimal) for row in rows[:SAMPLE] for c in row):
        remarks.append("numbers with marks between thousands were read as one number")
    said = f"separator {SEPARATORS.get(layout.separator, quoted(layout.separator))}, "
    said += f"{DECIMALS[layout.decimal]}, {encoding}, "
    said += "no header" if header is None else f"names in line {header}"
    said += f", numbers from line {where[0]}"
    return Table(values, units, where, wrong, frozenset(stamps), said, tuple(remarks))


def _stamps(entries: Sequence[str]) -> np.ndarray | None:
    """Time stamps as seconds since the first one; None if an entry is no time stamp."""
    found = [stamp(c) for c in entries]
    kinds = {f[2] for f in found if f is not None}
    if None in found or len(kinds) != 1:
        return None
    whole, part = (np.array([f[i] for f in found if f is not None]) for i in (0, 1))
    return (whole - whole[0]) + (part - part[0])
