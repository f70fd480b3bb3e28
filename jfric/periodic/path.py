"""Paths of periodic motions over a parameter: orbits, row by row, and special points; and their
store on disk while they are computed, so that no orbit is computed twice."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.printing import printable
from jfric.periodic.orbit import OrbitStatus, PeriodicOrbit, none_grows
from jfric.system.expression import Expression
from jfric.system.naming import parameters
from jfric.system.problem import Problem

OrbitKind = Literal[
    "end", "fold", "flip", "torus", "branch point", "hopf", "event change", "dead end"
]


@printable
@dataclass(frozen=True)
class OrbitPoint:
    """A point at which a path of orbits ends, turns around, or changes its stability or events.

    ``parameter``, the ``state`` (2n,) at the start, which is at ``time`` [s], and the ``period``
    [s]. ``kind``: ``"end"`` of the interval; ``"fold"``, where the path turns around; ``"flip"``,
    where a motion of the doubled period branches off; ``"torus"``, where a pair of multipliers
    leaves the unit circle; ``"branch point"``, where another path crosses; ``"hopf"``, where the
    motion has shrunk to an equilibrium, at which the path ends; ``"event change"``, from which on a
    period has other events; ``"dead end"``, where no further orbit was found. ``multipliers``
    (2n,). For an event change: the sequences of events ``before`` and ``after`` it, and the
    derivatives ``slope_before``, ``slope_after`` of the state (2n,) by the parameter on both sides,
    None if the path ends there. ``row``: the row of the path at or before the point. Example: see
    :func:`jfric.continue_orbit`.
    """

    kind: OrbitKind
    parameter: float
    state: np.ndarray
    period: float
    multipliers: np.ndarray
    row: int
    before: tuple[str, ...] = ()
    after: tuple[str, ...] | None = None
    slope_before: np.ndarray | None = None
    slope_after: np.ndarray | None = None
    time: float = 0.0


@printable
@dataclass(frozen=True)
class OrbitPath:
    """Periodic motions over a parameter, row by row in the order in which they were followed.

    ``name``: full path of the parameter, between ``start`` and ``stop`` [SI]; ``parameter`` (r,);
    ``state`` (r, 2n): positions and velocities at the start of each orbit; ``period`` (r,) [s];
    ``multipliers`` (r, 2n); ``stable`` (r,); ``slope`` (r, 2n): derivatives of the state by the
    parameter; ``events``: the sequence of events of each orbit, in words; ``special``: special
    points. ``orbits``: all of them as one batch; ``axes``: names of the degrees of freedom.
    ``remarks``: parts that were left out, in words. Example: see :func:`jfric.continue_orbit`.
    """

    name: str
    start: float
    stop: float
    parameter: np.ndarray
    state: np.ndarray
    period: np.ndarray
    multipliers: np.ndarray
    stable: np.ndarray
    slope: np.ndarray
    events: tuple[tuple[str, ...], ...]
    special: tuple[OrbitPoint, ...]
    orbits: PeriodicOrbit
    axes: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    def points(self, kind: OrbitKind) -> tuple[OrbitPoint, ...]:
        """The special points of one kind, in the order along the path."""
        return tuple(point for point in self.special if point.kind == kind)

    def special_table(self) -> list[dict[str, Any]]:
        """Special points as rows: kind, parameter, period, largest multiplier, events."""
        return [
            {
                "kind": point.kind,
                "parameter": point.parameter,
                "period": point.period,
                "multiplier": float(np.max(np.abs(point.multipliers), initial=0.0)),
                "before": point.before,
                "after": point.after,
            }
            for point in self.special
        ]

    def observe(self, observables: Any) -> dict[str, np.ndarray]:
        """Observables of each orbit (r,), see :meth:`PeriodicOrbit.observe`."""
        return {k: np.asarray(x) for k, x in self.orbits.observe(observables).items()}

    def harmonics(self, signal: str, count: int = 1) -> np.ndarray:
        """Fourier coefficients (r, count + 1) of a quantity, see
        :meth:`PeriodicOrbit.harmonics`."""
        return np.asarray(self.orbits.harmonics(signal, count))


@printable
@dataclass(frozen=True)
class ResponseCurve:
    """Orbits along the frequency, in the order in which they were followed.

    ``values``: the further parameters of this curve by path. ``parameter`` (r,): frequency of the
    load [rad/s]; ``period`` (r,) [s]; ``begins`` (r,) [s] and ``state`` (r, 2n): start of each
    orbit; ``multipliers`` (r, 2n); ``flags`` (r,): :class:`jfric.Flag` bits; ``events``: the
    sequence of events of each orbit in words. ``special``: folds, flips, crossings of the unit
    circle by a pair, branch points and changes of events. ``status``: :class:`jfric.OrbitStatus` of
    the whole curve, which has no rows without a first orbit. ``outcome``: the end of the curve, in
    words. Example: see :func:`jfric.frequency_response`.
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
    def largest_multiplier(self) -> np.ndarray:
        """Largest magnitude of a multiplier (r,)."""
        return np.max(np.abs(self.multipliers), axis=1, initial=0.0)

    @property
    def stable(self) -> np.ndarray:
        """Whether no small deviation grows (r,): see :attr:`jfric.PeriodicOrbit.stable`."""
        return none_grows(self.largest_multiplier)

    @property
    def complete(self) -> bool:
        """Whether the curve reaches the end of the interval."""
        return any(point.kind == "end" for point in self.special)

    def __len__(self) -> int:
        return len(self.parameter)


#: Columns of all rows, in addition to their events; and further columns of paths whose orbits are
#: stored completely.
COLUMNS = ("parameter", "period", "begins", "state", "multipliers", "flags")
SLOPE, NUMBERS = "slope", "orbit_"


@dataclass(frozen=True)
class Rows:
    """Rows of a path: ``columns`` that all paths have, and further ones."""

    columns: dict[str, Any]
    more: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.columns["parameter"])

    def followed_by(self, other: Rows) -> Rows:
        """The rows of this path followed by the ``other`` rows."""
        pairs = ((self.columns, other.columns), (self.more, other.more))
        columns, more = (
            {k: np.concatenate([x, after[k]]) for k, x in before.items() if k != "events"}
            for before, after in pairs
        )
        return Rows(columns | {"events": self.columns["events"] + other.columns["events"]}, more)


class Part(NamedTuple):
    """Stored path: its rows and special points, and the ``state`` from which the path goes on; for
    a finished path its ``outcome``, a status and words."""

    rows: Rows
    special: list[OrbitPoint]
    state: dict[str, np.ndarray]
    outcome: tuple[int, str] = (0, "")


class Store:
    """A folder with one file for each finished path, and one for the stored part of each other
    path.

    ``request``: the requested path; a folder that holds something else is refused. ``what``: name
    of the path in messages and of the file with the request.
    """

    def __init__(self, folder: Path, request: dict[str, Any], title: str, what: str):
        self.folder = folder
        found = json.loads(json.dumps(request))
        path = folder / f"{what}.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if path.exists():
                kept = json.loads(path.read_text("utf-8"))["request"]
                if kept != found:
                    differ = [k for k in found if kept.get(k) != found[k]]
                    raise ProblemError(
                        f"{folder}: holds another {what} ({', '.join(differ)} differ); choose "
                        "another folder"
                    )
                return
            if any(folder.iterdir()):
                raise ProblemError(f"{folder}: holds other files; choose another folder")
            text = json.dumps({"title": title, "request": found}, indent=1)
            temporary = path.with_suffix(".new")
            temporary.write_text(text, "utf-8")
            os.replace(temporary, path)
        except OSError as error:
            raise ProblemError(f"{folder}: cannot be used ({error.strerror})") from None
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, ProblemError):
                raise
            raise ProblemError(f"{path}: not the request of a {what} ({error})") from None

    def _path(self, number: int, kind: str) -> Path:
        return self.folder / f"curve-{number + 1:04d}.{kind}.npz"

    def finished(self, number: int) -> Part | None:
        """A finished path, or None."""
        path = self._path(number, "whole")
        return _read(path) if path.exists() else None

    def begun(self, number: int) -> Part | None:
        """The stored part of a path; None if there is none."""
        path = self._path(number, "part")
        return _read(path) if path.exists() else None

    def keep(self, number: int, whole: Part) -> None:
        """Store a finished path."""
        _write(self._path(number, "whole"), whole)
        self._path(number, "part").unlink(missing_ok=True)

    def keep_part(self, number: int, begun: Part) -> None:
        """Store a part of a path."""
        _write(self._path(number, "part"), begun)


def _write(path: Path, part: Part) -> None:
    """Write a part to one file, completely or not at all."""
    rows = part.rows.columns
    known = [*dict.fromkeys(rows["events"])]
    text = {
        "events": known,
        "special": [_plain(point) for point in part.special],
        "status": part.outcome[0],
        "outcome": part.outcome[1],
    }
    numbers: dict[str, Any] = {k: rows[k] for k in COLUMNS} | part.rows.more | part.state
    numbers["event_sequence"] = np.asarray([known.index(e) for e in rows["events"]], int)
    temporary = path.with_suffix(".new")
    with temporary.open("wb") as file:
        np.savez(file, text=np.asarray(json.dumps(text)), **numbers)
    os.replace(temporary, path)


def _read(path: Path) -> Part:
    """The part of a path that :func:`_write` stored."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {k: file[k] for k in file.files}
        text = json.loads(str(found.pop("text")))
        known = [tuple(words) for words in text["events"]]
        columns: dict[str, Any] = {k: found.pop(k) for k in COLUMNS}
        columns["events"] = tuple(known[i] for i in found.pop("event_sequence").tolist())
        special = [_point(entry) for entry in text["special"]]
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise ProblemError(f"{path}: not a curve of a response ({error})") from None
    more = {k: x for k, x in found.items() if k == SLOPE or k.startswith(NUMBERS)}
    state = {k: x for k, x in found.items() if k not in more}
    return Part(Rows(columns, more), special, state, (int(text["status"]), str(text["outcome"])))


def _plain(point: OrbitPoint) -> dict[str, Any]:
    found: dict[str, Any] = {
        k: x.tolist() if isinstance(x, np.ndarray) else x for k, x in vars(point).items()
    }
    return found | {"multipliers": [[z.real, z.imag] for z in found["multipliers"]]}


def _point(entry: dict[str, Any]) -> OrbitPoint:
    forms: dict[str, Any] = {"before": tuple, "after": tuple}
    forms |= dict.fromkeys(("state", "slope_before", "slope_after"), np.asarray)
    forms["multipliers"] = lambda rows: np.asarray([complex(*z) for z in rows])
    made: dict[str, Any] = {
        k: forms[k](x) if k in forms and x is not None else x for k, x in entry.items()
    }
    return OrbitPoint(**made)


def fingerprint(problem: Problem) -> str:
    """Fingerprint of a problem from all its numbers, expressions and names."""
    digest = hashlib.sha256()
    for path, value in sorted(parameters(problem).items()):
        text = value.text if isinstance(value, Expression) else np.asarray(value).tolist()
        digest.update(f"{path}={text!r};".encode())
    return digest.hexdigest()


def request_of(
    problem: Problem, name: str, limits, settings: list[Any], given: dict[str, Any]
) -> dict[str, Any]:
    """Request for a path, as text and numbers; ``given``: start of the path, and options."""
    return {
        "problem": fingerprint(problem),
        "path": name,
        "interval": list(limits),
        "steps": settings,
        "options": [f"{key}: {_text(value)}" for key, value in sorted(given.items())],
    }


def _text(value: Any) -> str:
    """Text with all numbers of a value, which its own text may leave out."""
    if isinstance(value, PeriodicOrbit):
        return f"{np.asarray(value.state).tolist()} {float(value.period)!r}"
    if isinstance(value, OrbitPoint):
        return f"{value.kind} {value.parameter!r} {value.state.tolist()} {value.period!r}"
    return repr(np.asarray(value).tolist() if isinstance(value, (np.ndarray, jax.Array)) else value)
