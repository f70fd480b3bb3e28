"""The head above the numbers of a text table: names, units, and the time between samples.

Heads have one of two forms, whatever wrote them. In most files the last rows above the numbers are
the names and, if there are any, the units. In the others each row begins with what it says
(``Name``, ``Unit``, ``SampleTime``), perhaps again before each group of columns; the columns below
these words hold the times of their groups.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jfric.errors import ProblemError
from jfric.fits.data.cells import (
    TIMES,
    is_stamp,
    is_time,
    is_unit,
    loose,
    measures,
    number,
    split_unit,
    written,
)
from jfric.system.units import dimensions_of, unit_factor

COMMENT = re.compile(r"\s*(?:#|%|//)\s*")
#: First words of rows, without blanks and in lower case, in the order in which they count.
_NAMES = ("name", "names", "signal", "channel", "kanal", "label", "symbolname")
_UNITS = ("unit", "units", "einheit", "einheiten", "unité", "verticalunits")
_TIME_UNITS = ("horizontalunits",)
#: Rows of numbers that would change the values, and those that change nothing.
_SCALES = {"offset": 0.0, "scalefactor": 1.0, "scale": 1.0, "gain": 1.0, "factor": 1.0}
_SAMPLES = r"(?:sampl\w*|abtast\w*?)[\s_-]*"
_PERIOD = (
    rf"{_SAMPLES}(?:time|interval|intervall|period|zeit)|x?incr?(?:ement)?|tinc|delta[\s_]?[tx]"
)
_RATE = rf"{_SAMPLES}(?:rate|frequency|frequenz)|fs"
#: What says the time between samples: word, its unit, number, its unit.
_SAID = re.compile(
    rf"(?<!\w)(?:({_PERIOD})|{_RATE})\s*(?:[\[(]([^\])]*)[\])])?[\s:=;,|\"]*"
    r"(\d[\d.,]*(?:e[-+]?\d+)?)(?:[\s;,]?([a-zµ][\w/]*))?",
    re.IGNORECASE,
)


class Layout(NamedTuple):
    """Separator, decimal mark, and number of cells of a row of numbers."""

    separator: str
    decimal: str
    width: int


class Row(NamedTuple):
    """A line with its number, as text and as cells."""

    number: int
    text: str
    cells: list[str]


class Step(NamedTuple):
    """Time between samples [s], and the line that says it."""

    seconds: float
    line: int


class Head(NamedTuple):
    """Names and units of the columns, the line of the names, the column of times of each column
    where there are several, the time between samples, and what a reader should know."""

    names: list[str]
    units: dict[str, str]
    line: int | None
    clocks: Mapping[str, str]
    step: Step | None
    remarks: tuple[str, ...] = ()


def read_head(
    above: Sequence[Row], beside: Sequence[Row], first: int, layout: Layout, last_empty: bool
) -> Head:
    """The head in the rows ``above`` the numbers, which begin in line ``first``, and ``beside``.

    ``last_empty``: whether the last cell of all their rows is empty. Raises
    :class:`jfric.ProblemError`.
    """
    every = (*above, *beside)
    step = _step([(row.number, row.text) for row in every], layout.decimal)
    rows = {loose(row.cells[0]): row for row in every if any(row.cells[1:])}
    if not above:
        names = [f"column {j + 1}" for j in range(layout.width)]
        return Head(names, _units_above(rows, names), None, {}, step)
    named = next((rows[word] for word in _NAMES if word in rows), None)
    repeated = named is not None and named.cells.count(named.cells[0]) > 1
    last = above[-1].cells
    times = loose(split_unit(last[0])[0]) in TIMES and any(last[1:])
    if named is not None and (repeated or (any(w in rows for w in _UNITS) and not times)):
        return _labelled(named, rows, layout.width, step)
    return _plain(above, rows, first, layout, last_empty, step)


def _labelled(named: Row, rows: dict[str, Row], width: int, step: Step | None) -> Head:
    """The head whose rows begin with what they say."""
    word, row = named.cells[0], next((rows[w].cells for w in _UNITS if w in rows), [])
    # The word may stand above the times, on the left of all columns, or above numbers of samples.
    beside = len(_stripped(named.cells)) - width == 1
    cells = (named.cells[beside:] + [""] * width)[:width]
    says = any(loose(split_unit(c)[0]) in TIMES for c in cells)
    above = [c == word for c in cells]
    texts = ["time" if a and not says else c for c, a in zip(cells, above, strict=True)]
    names = different([c or f"column {j + 1}" for j, c in enumerate(texts)])
    units = {
        n: written(u.strip("[](){} "))
        for n, u, a in zip(names, row[beside:], above, strict=False)
        if u and not a
    }
    units |= _numbered_units(names, [c or n for c, n in zip(texts, names, strict=True)])
    clocks = {} if says else _clocks(names, above)
    # What an export has already applied differs from program to program, and by its settings.
    remarks = tuple(
        f"{rows[w].cells[0]} of {n} is {c} in line {rows[w].number}: it was not applied"
        for w, plain in _SCALES.items()
        for n, c in zip(names, rows[w].cells[beside:] if w in rows else (), strict=False)
        if number(c, ".") not in (None, plain)
    )
    return Head(names, units, named.number, clocks, step, remarks)


def _plain(above, rows, first: int, layout: Layout, last_empty: bool, step: Step | None) -> Head:
    """The head that ends with the names, or with names and units."""
    at, units, width = above[-1], None, layout.width
    if len(above) > 1 and _are_units(above[-1].cells, above[-2].cells, width):
        at, units = above[-2], above[-1].cells
    names = at.cells
    # A separator behind the last entry, of the names or of the rows, adds no column.
    while len(names) > 1 and not names[-1] and (len(names) > width or last_empty):
        names = names[:-1]
    if last_empty and len(names) != width:
        width -= 1
    if len(names) > width:
        # Such as Start and Increment of an oscilloscope, with their numbers below or behind them.
        below = [*(units or ())[width:], *[""] * len(names)]
        told = [f"{a} {b}".strip() for a, b in zip(names[width:], below, strict=False)]
        if all(re.search(r"[=\s]\s*[-+]?\.?\d", text) for text in told):
            step = step or _step([(at.number, text) for text in told], layout.decimal)
            names = names[:width]
    if len(names) != width:
        said = (
            f"line {at.number} names {len(names)} columns, line {first} has {layout.width} entries"
        )
        if layout.separator == "," and layout.width == 2 * len(names):
            said += "; decimal commas between separating commas cannot be told apart, write the "
            said += "file with semicolons or decimal points"
        raise ProblemError(said)
    # A row of data with a word in it is no header; names above units may be numbers.
    if units is None and 2 * sum(_is_number(c, layout.decimal) for c in names) >= width:
        odd = next((c for c in names if number(c, layout.decimal) is None), "")
        raise ProblemError(f"line {at.number} holds {odd!r} where numbers begin")
    unique = different([c or f"column {j + 1}" for j, c in enumerate(names)])
    bare = [u.strip("[](){} ") for u in units or ()]
    own = [*_own_units(names), *[""] * width]
    given = [u or o for u, o in zip(bare or own, own, strict=False)]
    table = {n: written(u) for n, u in zip(unique, given, strict=False) if u and is_unit(u)}
    table = table or _units_above(rows, unique) or _numbered_units(unique, names)
    count = Counter(names)
    repeated = [
        count[c] > 1 and (loose(split_unit(c)[0]) in TIMES or is_time(table.get(n)))
        for c, n in zip(names, unique, strict=True)
    ]
    return Head(unique, table, at.number, _clocks(unique, repeated), step)


def _are_units(row: Sequence[str], names: Sequence[str], width: int) -> bool:
    """Whether a row holds the units of the ``names`` above it. Where the names are more than the
    columns, the first column may have a word in place of a unit: ``Sequence``."""
    lengths = len(_stripped(row)), len(_stripped(names))
    if len(row) != len(names) and lengths[0] != lengths[1]:
        return False
    bare = [cell.strip("[](){} ") for cell in row]
    if min(lengths) > width > 2:
        bare = [c for c in bare[1:width] if number(c, ".") is None]
    return any(bare) and all(is_unit(cell) for cell in bare)


def _stripped(cells: Sequence[str]) -> list[str]:
    cells = list(cells)
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _own_units(names: Sequence[str]) -> list[str]:
    """Units of columns that have units for names: all, or the one of times as a word (``ms``)."""
    # Whether a word is a unit asks a package that is slow to load.
    first = loose(names[0]) not in TIMES and is_time(names[0])
    if first and len(names) > 1 and all(c and is_unit(c) for c in names):
        return list(names)
    return [names[0]] if first and len(names[0]) > 1 and names[0] != "min" else []


def _units_above(rows: dict[str, Row], names: Sequence[str]) -> dict[str, str]:
    """Units in rows further above that begin with what they say, if they fit the columns."""
    found = {}
    for words, columns in ((_TIME_UNITS, names[:1]), (_UNITS, names[1:])):
        row = next((rows[w].cells[1:] for w in words if w in rows), [])
        units = [c for c in row if c]
        if len(units) == len(columns) and all(is_unit(u) for u in units):
            lower = words is _TIME_UNITS
            found |= {
                n: written(u.lower() if lower else u) for n, u in zip(columns, units, strict=True)
            }
    return found


def _clocks(names: Sequence[str], of_time: Sequence[bool]) -> dict[str, str]:
    """The column of times of each column: the last one on its left, if there are several."""
    if sum(of_time) < 2:
        return {}
    found, clock = {}, None
    for name, is_clock in zip(names, of_time, strict=True):
        if is_clock:
            clock = name
        elif clock is not None:
            found[name] = clock
    return found


def _step(lines: Sequence[tuple[int, str]], decimal: str) -> Step | None:
    """The time between samples that the first of the numbered ``lines`` says."""
    for line, text in lines:
        for match in _SAID.finditer(text):
            period, own, digits, behind = match.groups()
            digits = digits.rstrip(".,")
            value, usual = number(digits, decimal) or number(digits, "."), "s" if period else "Hz"
            # Rates are also samples per second.
            said = [re.sub(r"^([kM]?)Sa?/s$", r"\1Hz", written(u or "")) for u in (own, behind)]
            unit = next((u for u in said if measures(u) == dimensions_of(usual)), usual)
            if value:
                size = value * float(unit_factor(unit, None))
                return Step(size if period else 1.0 / size, line)
    return None


def _is_number(cell: str, decimal: str) -> bool:
    value = number(cell, decimal)
    return is_stamp(cell) if value is None else value == value


def _numbered_units(unique: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Units in names that occur several times, which the numbers behind them hide."""
    units = {a: split_unit(b)[1] for a, b in zip(unique, names, strict=True) if a != b}
    return {name: unit for name, unit in units.items() if unit}


def different(names: Sequence[str]) -> list[str]:
    """Names with repeated ones numbered: ``x (1)``, ``x (2)``."""
    count, seen = Counter(names), Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if count[name] == 1 else f"{name} ({seen[name]})")
    return found
