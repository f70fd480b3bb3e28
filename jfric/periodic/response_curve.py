"""One curve of a frequency response: its orbits and special points, kept on disk or in memory."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.printing import printable
from jfric.periodic.multipliers import none_grows
from jfric.periodic.orbit_status import OrbitStatus
from jfric.periodic.path import OrbitPoint
from jfric.periodic.path_kernel import PathPoint

#: Arrays of a curve, row by row.
COLUMNS = ("parameter", "period", "begins", "state", "multipliers", "flags")


@printable
@dataclass(frozen=True)
class ResponseCurve:
    """Orbits along the frequency, in the order in which they were followed.

    ``values``: the further parameters of this curve by path. ``parameter`` (r,): frequency of the
    load [rad/s]; ``period`` (r,) [s]; ``begins`` (r,) [s] and ``state`` (r, 2n): start of each
    orbit; ``multipliers`` (r, 2n); ``flags`` (r,): :class:`jfric.Flag` bits; ``events``: the
    sequence of events of each in words. ``special``: folds, flips, crossings of the unit circle by
    a pair, branch points and changes of events. ``status``: :class:`jfric.OrbitStatus` of the whole
    curve: a curve without an orbit to begin with has no rows. ``outcome``: how it ended, in words.
    Example: see :func:`jfric.frequency_response`.
    """

    values: dict[str, float]
    parameter: np.ndarray
    period: np.ndarray
    begins: np.ndarray
    state: np.ndarray
    multipliers: np.ndarray
    flags: np.ndarray
    events: tuple[tuple[str, ...], ...]
    special: tuple[OrbitPoint, ...]
    status: int = int(OrbitStatus.CONVERGED)
    outcome: str = ""

    @property
    def stable(self) -> np.ndarray:
        """Where no small deviation grows (r,): see :attr:`jfric.PeriodicOrbit.stable`."""
        return none_grows(np.max(np.abs(self.multipliers), axis=1, initial=0.0))

    @property
    def complete(self) -> bool:
        """Whether the curve reaches the end of the interval."""
        return any(point.kind == "end" for point in self.special)

    def __len__(self) -> int:
        return len(self.parameter)


def rows_of(points: list[PathPoint], size: int) -> dict[str, Any]:
    """Columns of points of a path; ``size``: of a state."""

    def table(values, *shape, dtype: Any = float):
        return np.asarray(values, dtype).reshape(len(points), *shape)

    orbits = [point.orbit for point in points]
    return {
        "parameter": table([p.parameter for p in points]),
        "period": table([o.period for o in orbits]),
        "begins": table([o.problem.time.start for o in orbits]),
        "state": table([np.asarray(o.state) for o in orbits], size),
        "multipliers": table([p.multipliers for p in points], size, dtype=complex),
        "flags": table([o.flags for o in orbits], dtype=int),
        "events": tuple(p.events for p in points),
    }


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Columns one behind the other."""
    found: dict[str, Any] = {k: np.concatenate([p[k] for p in parts]) for k in COLUMNS}
    return found | {"events": tuple(words for p in parts for words in p["events"])}


def write_curve(
    path: Path,
    rows: dict[str, Any],
    special: list[OrbitPoint],
    outcome: tuple[int, str],
    more: dict[str, Any] | None = None,
) -> None:
    """Keep a curve, or what there is of it with what goes on needs, in one file, whole or not at
    all."""
    known = [*dict.fromkeys(rows["events"])]
    text = {
        "events": known,
        "special": [_plain(point) for point in special],
        "status": outcome[0],
        "outcome": outcome[1],
    }
    numbers = {k: rows[k] for k in COLUMNS} | (more or {})
    numbers["event_sequence"] = np.asarray([known.index(e) for e in rows["events"]], int)
    temporary = path.with_suffix(".new")
    with temporary.open("wb") as file:
        np.savez(file, text=np.asarray(json.dumps(text)), **numbers)
    os.replace(temporary, path)


def read_curve(path: Path) -> tuple[dict[str, Any], list[OrbitPoint], tuple[int, str], dict]:
    """Rows, special points, outcome and further arrays that :func:`write_curve` kept."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {k: file[k] for k in file.files}
        text = json.loads(str(found.pop("text")))
        known = [tuple(words) for words in text["events"]]
        rows: dict[str, Any] = {k: found.pop(k) for k in COLUMNS}
        rows["events"] = tuple(known[i] for i in found.pop("event_sequence").tolist())
        special = [_point(entry) for entry in text["special"]]
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise ProblemError(f"{path}: not a curve of a response ({error})") from None
    return rows, special, (int(text["status"]), str(text["outcome"])), found


def _plain(point: OrbitPoint) -> dict[str, Any]:
    found: dict[str, Any] = dict(vars(point))
    found["state"] = point.state.tolist()
    found["multipliers"] = [[z.real, z.imag] for z in point.multipliers.tolist()]
    for side in ("slope_before", "slope_after"):
        found[side] = None if found[side] is None else found[side].tolist()
    return found


def _point(entry: dict[str, Any]) -> OrbitPoint:
    found = dict(entry)
    found["state"] = np.asarray(entry["state"])
    found["multipliers"] = np.asarray([complex(*z) for z in entry["multipliers"]])
    found["before"] = tuple(entry["before"])
    found["after"] = None if entry["after"] is None else tuple(entry["after"])
    for side in ("slope_before", "slope_after"):
        found[side] = None if entry[side] is None else np.asarray(entry[side])
    return OrbitPoint(**found)
