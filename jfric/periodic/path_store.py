"""Store of paths of orbits on disk while they are computed, so that no orbit is computed twice."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jfric.errors import ProblemError
from jfric.periodic.orbit import PeriodicOrbit
from jfric.periodic.path import OrbitPoint
from jfric.system.expression import Expression
from jfric.system.naming import parameters
from jfric.system.problem import Problem

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
