"""Cells of a text table: numbers, missing samples, time stamps, and headers with their units."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from jfric.errors import ProblemError, nearest
from jfric.system.units import UnitError, dimensions_of, unit_factor

#: Texts for a missing sample, in lower case.
MISSING = frozenset(
    ("", "-", "--", "---", "nan", "n/a", "na", "null", "none", "#n/a", "#nv", "?", "*")
)
_INFINITE = {"inf": 1.0, "infinity": 1.0, "∞": 1.0, "#div/0!": 1.0}
#: Marks between groups of three digits: blanks of several widths, apostrophes, and the one of point
#: and comma that is not the decimal mark.
_GROUPS = " \u00a0\u2009\u202f'\u2019"
_EXPONENT = r"(?:[eEdD][+-]?\d+)?"
_DATE = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})|(\d{1,2})([-/.])(\d{1,2})\6(\d{4})")
_TIME = re.compile(
    r"(?:([\d/.-]{8,10})[T ]+)?(\d{1,2}:\d\d:\d\d)(?:[.,:](\d+))?\s*(?:([AaPp])[Mm])?"
    r"\s*(Z|[+-]\d\d:?\d\d)?"
)


def _patterns(decimal: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    mark, other = re.escape(decimal), re.escape("," if decimal == "." else ".")
    plain = re.compile(rf"[+-]?(?:\d+(?:{mark}\d*)?|{mark}\d+){_EXPONENT}")
    grouped = re.compile(
        rf"[+-]?[1-9]\d{{0,2}}([{_GROUPS}]|{other})\d{{3}}(?:\1\d{{3}})*(?:{mark}\d*)?{_EXPONENT}"
    )
    return plain, grouped


_PATTERNS = {decimal: _patterns(decimal) for decimal in ".,"}


def is_grouped(text: str, decimal: str) -> bool:
    """Whether ``text`` is a number only if marks between thousands are allowed."""
    text = _plain(text)
    plain, grouped = _PATTERNS[decimal]
    return not plain.fullmatch(text) and grouped.fullmatch(text) is not None


def number(text: str, decimal: str) -> float | None:
    """The number in ``text``: NaN for a missing sample, None where it is no number."""
    text = _plain(text)
    plain, grouped = _PATTERNS[decimal]
    if plain.fullmatch(text):
        return _float(text.replace(decimal, "."))
    small = text.lower()
    if small in MISSING:
        return float("nan")
    if small.lstrip("+-") in _INFINITE:
        return -float("inf") if small[0] == "-" else float("inf")
    if grouped.fullmatch(text):
        kept = re.sub(rf"[^\deEdD+\-{re.escape(decimal)}]", "", text)
        return _float(kept.replace(decimal, "."))
    return None


def _plain(text: str) -> str:
    return text.strip().replace("\u2212", "-")


def _float(text: str) -> float:
    return float(text.replace("D", "e").replace("d", "e"))


def is_stamp(text: str) -> bool:
    """Whether ``text`` is a time stamp: a date with a time of day, or this alone."""
    match = _TIME.fullmatch(text.strip())
    return match is not None and (match[1] is None or is_date(match[1]))


def is_date(text: str) -> bool:
    """Whether ``text`` is a date: ``2024-05-01``, ``01.05.2024``, ``5/1/2024``."""
    return _DATE.fullmatch(text.strip()) is not None


def date(text: str, day_first: bool = True) -> datetime | None:
    """The day of a date; None for other texts. Dates with strokes may have the month first."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    if match[1]:
        year, month, day = match[1], match[3], match[4]
    else:
        day, mark, month, year = match.groups()[4:]
        if mark == "/" and not day_first:
            day, month = month, day
    try:
        return datetime(int(year), int(month), int(day))
    except ValueError:
        return None


def stamp(text: str, day_first: bool = True) -> tuple[float, float, str] | None:
    """A time stamp as whole seconds and their fraction, and its kind: ``"date"``, ``"zone"`` (a
    date with a time zone) or ``"day"`` (a time of day); None for other texts.

    Two numbers, because seconds since 1970 in one number would leave no room for microseconds.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    day, time, fraction, half, zone = match.groups()
    start = datetime(1970, 1, 1) if day is None else date(day, day_first)
    hour, minute, second = (int(n) for n in time.split(":"))
    if half:
        hour = hour % 12 + 12 * (half in "Pp")
    if start is None or hour > 23 or minute > 59 or second > 59:
        return None
    moment = start - datetime(1970, 1, 1) + timedelta(hours=hour, minutes=minute, seconds=second)
    if zone and zone != "Z":
        size = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        moment -= size if zone[0] == "+" else -size
    kind = "day" if day is None else "zone" if zone else "date"
    return moment.total_seconds(), float(f"0.{fraction}") if fraction else 0.0, kind


_BRACKETS = re.compile(r"(.*?)[\s_]*(?:\[([^\]]*)\]|\(([^)]*)\)|\{([^}]*)\})\s*")
_WORDED = re.compile(r"(.+?)(?:\s*/\s*|\s+in\s+|\s*,\s+)(\S+)\s*")
#: Units as they are written on machines, and the same units as jfric reads them.
_WRITTEN = {"Nm": "N*m", "Nmm": "N*mm", "Ns": "N*s", "sec": "s", "secs": "s", "msec": "ms"}
_WRITTEN |= {"usec": "us", "°": "deg", "grad": "deg", "1": "", "-": "", "Sek": "s", "sek": "s"}
_WRITTEN |= {"N.m": "N*m", "N·m": "N*m", "Sekunden": "s", "Millisekunden": "ms", "nsec": "ns"}
#: Drives write the speed of a shaft so; as a number per minute it would lack a factor of 2 pi.
_WRITTEN |= dict.fromkeys(("1/min", "/min", "min-1", "min^-1", "min⁻¹", "U/min", "r/min"), "rpm")
_WRITTEN |= dict.fromkeys(("rev/min", "tr/min"), "rpm") | dict.fromkeys(("rev", "Umdr"), "turn")
#: Names of columns of times, in lower case without blanks.
TIMES = ("t", "time", "times", "timestamp", "zeit", "temps", "tempo", "xvalue", "elapsedtime")


@dataclass(frozen=True)
class Table:
    """Columns of one file or record.

    ``values``: by name, as in the file; text where a column holds some. ``units``: from a row of
    units. ``lines``: the line of each sample in a text file. ``wrong``: line and text of the first
    cell of a column that is no number. ``stamps``: columns of time stamps, as seconds since their
    first one. ``clocks``: by name, the column of times of a column that has its own.
    ``layout``, ``remarks``: how a text file was read.
    """

    values: Mapping[str, np.ndarray]
    units: Mapping[str, str] = field(default_factory=dict)
    lines: np.ndarray | None = None
    wrong: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    stamps: frozenset[str] = frozenset()
    clocks: Mapping[str, str] = field(default_factory=dict)
    layout: str = ""
    remarks: tuple[str, ...] = ()

    def record(self, name: str) -> Table:
        """The columns ``NAME/column`` of one record."""
        start = f"{name}/"
        own = {k.removeprefix(start): v for k, v in self.values.items() if k.startswith(start)}
        return Table(own)

    def place(self, sample: int) -> str:
        """Place of a sample: ``line 12``, or ``sample 10``."""
        return f"sample {sample}" if self.lines is None else f"line {self.lines[sample]}"

    def find(self, name: str) -> str:
        """The column that ``name`` means: exactly, without its unit, or ignoring case, blanks and
        underscores. Raises :class:`jfric.ProblemError` where it is none or several."""
        keys = list(self.values)
        if name in keys:
            return name
        bare = {key: split_unit(key)[0] for key in keys}
        ways = (
            lambda key: bare[key] == name,
            lambda key: loose(key) == loose(name),
            lambda key: loose(bare[key]) == loose(name),
        )
        for way in ways:
            found = [key for key in keys if way(key)]
            if len(found) > 1:
                raise ProblemError(
                    f"column {name!r} may be {' or '.join(repr(f) for f in found)}, write one of "
                    "them as it stands in the file"
                )
            if found:
                return found[0]
        raise ProblemError(
            f"no column {name!r}{nearest(name, [*keys, *bare.values()])}; there are "
            + ", ".join(keys)
        )

    def unit(self, column: str) -> str | None:
        """Unit of a column from its header, None if the header has none."""
        own = self.units.get(column)
        return own if own is not None else split_unit(column)[1]


def split_unit(header: str) -> tuple[str, str | None]:
    """Name and unit of a header: ``position [mm]``, ``Position (mm)``, ``x/mm``, ``x in mm``.

    Square brackets hold a unit, known or not; the other forms count only if the unit is known.
    """
    match = _BRACKETS.fullmatch(header)
    if match and match[1].strip():
        square = match[2] is not None
        unit = next(g for g in match.groups()[1:] if g is not None).strip()
        if square or is_unit(unit):
            return match[1].strip(), written(unit)
    match = _WORDED.fullmatch(header)
    if match and match[1].strip() and is_unit(match[2]):
        return match[1].strip(), written(match[2])
    return header, None


def written(unit: str) -> str:
    """A unit of a header in the spelling of jfric; empty for a pure number.

    Words count in any capitals: ``Second``, ``VOLT``.
    """
    unit = unit.strip()
    found = _WRITTEN.get(unit, unit)
    if len(found) > 2 and not _is_known(found) and _is_known(found.lower()):
        return found.lower()
    return found


def is_unit(text: str) -> bool:
    """Whether ``text`` is a known unit, or a sign of a pure number."""
    return _is_known(written(text))


def measures(unit: str | None) -> Any:
    """Dimensionality of a unit of a header; None where there is no unit, or no known one."""
    return dimensions_of(unit) if unit and _is_known(unit) else None


def is_time(unit: str | None) -> bool:
    """Whether a unit of a header, in any spelling, is one of time."""
    return unit is not None and measures(written(unit)) == dimensions_of("s")


def is_angle(unit: str | None) -> bool:
    """Whether a unit of a header is one of angles: a pure number for :func:`measures`."""
    return (
        re.fullmatch(r"[mµu]?rad(ian)?s?|°|deg(rees?)?|turns?|revolutions?", unit or "") is not None
    )


def _is_known(unit: str) -> bool:
    try:
        return not unit or unit_factor(unit, None) > 0
    except UnitError:
        return False


def loose(name: str) -> str:
    """A name without blanks and underscores, in lower case."""
    return re.sub(r"[\s_\-]+", "", name).casefold()
