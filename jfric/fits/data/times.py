"""Columns of times that a text file writes in several columns, or does not write at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from jfric.fits.data.cells import is_date, stamp
from jfric.fits.data.columns import TIMES, is_time, loose, split_unit
from jfric.fits.data.head import Step
from jfric.system.units import unit_factor

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
