"""Cells of a text table: numbers, missing samples and time stamps."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

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
