"""Store of a path of orbits on disk while it is followed, so that no orbit is computed twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jfric.periodic.orbit import PeriodicOrbit
from jfric.periodic.path import OrbitPath, OrbitPoint
from jfric.periodic.path_following import Part, Rows
from jfric.periodic.path_kernel import PathPoint, stacked
from jfric.periodic.response_curve import rows_of
from jfric.periodic.response_store import ResponseStore, fingerprint
from jfric.periodic.special_points import slope
from jfric.periodic.state_vector import axes_of
from jfric.system.problem import Problem

#: Columns of a path beside those of a curve: slopes, and all numbers of the orbits.
SLOPE, NUMBERS = "slope", "orbit_"


def rows_of_path(points: list[PathPoint]) -> Rows:
    """Rows of some points."""
    orbits = stacked(points)
    numbers = {f"{NUMBERS}{i:04d}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(orbits))}
    columns = rows_of(points, orbits.state.shape[-1])
    return Rows(columns, {SLOPE: np.stack([slope(p) for p in points]), **numbers})


def path_of(
    rows: Rows,
    like: PeriodicOrbit,
    special: list[OrbitPoint],
    remarks: list[str],
    problem: Problem,
    name: str,
    limits: tuple[float, float],
) -> OrbitPath:
    """The path of all rows; ``like``: one of its orbits."""
    numbers = [jnp.asarray(rows.more[k]) for k in sorted(rows.more) if k.startswith(NUMBERS)]
    orbits = jax.tree.unflatten(jax.tree.structure(like), numbers)
    return OrbitPath(
        name=name,
        start=limits[0],
        stop=limits[1],
        parameter=rows.columns["parameter"],
        state=rows.columns["state"],
        period=rows.columns["period"],
        multipliers=rows.columns["multipliers"],
        stable=np.asarray(orbits.stable),
        slope=rows.more[SLOPE],
        events=rows.columns["events"],
        special=tuple(special),
        orbits=orbits,
        axes=axes_of(problem),
        remarks=tuple(remarks),
    )


class PathStore:
    """A folder with what there is of one path. ``request``: what is asked for; a folder that holds
    something else is refused."""

    def __init__(self, folder: Path, request: dict[str, Any], title: str = ""):
        self._files = ResponseStore(folder, request, title, "path")

    def finished(self) -> tuple[Rows, list[OrbitPoint], list[str]] | None:
        """Rows, special points and remarks of a path that is there."""
        found = self._files.finished(0)
        if found is None:
            return None
        columns, special, (_, said), more = found
        return Rows(columns, more), special, said.splitlines()

    def begun(self) -> Part | None:
        """Part of a path that was interrupted; None where none is kept."""
        found = self._files.begun(0)
        if found is None:
            return None
        columns, special, more = found
        own = {k: x for k, x in more.items() if k == SLOPE or k.startswith(NUMBERS)}
        state = {k: x for k, x in more.items() if k not in own}
        return Part(Rows(columns, own), special, state)

    def keep(self, rows: Rows, special: list[OrbitPoint], remarks: list[str]) -> None:
        """A finished path."""
        self._files.keep(0, rows.columns, special, (0, "\n".join(remarks)), rows.more)

    def keep_part(self, rows: Rows, special, state: dict[str, np.ndarray]) -> None:
        """Keep a part of a path, and the ``state`` from which the path goes on."""
        self._files.keep_part(0, rows.columns, special, rows.more | state)


def request_of(
    problem: Problem, name: str, limits, settings: list[Any], given: dict[str, Any]
) -> dict[str, Any]:
    """Request for a path, as text and numbers; ``given``: where the path begins, and options."""
    return {
        "problem": fingerprint(problem),
        "path": name,
        "interval": list(limits),
        "steps": settings,
        "options": [f"{key}: {_text(value)}" for key, value in sorted(given.items())],
    }


def _text(value: Any) -> str:
    """All numbers of a value, which its own text may leave out."""
    if isinstance(value, PeriodicOrbit):
        return f"{np.asarray(value.state).tolist()} {float(value.period)!r}"
    if isinstance(value, OrbitPoint):
        return f"{value.kind} {value.parameter!r} {value.state.tolist()} {value.period!r}"
    return repr(np.asarray(value).tolist() if isinstance(value, (np.ndarray, jax.Array)) else value)
