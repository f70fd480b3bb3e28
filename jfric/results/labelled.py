"""A solution as a labelled table (xarray)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.optional import import_xarray
from jfric.results.columns import column_units
from jfric.results.modes import Mode

if TYPE_CHECKING:
    import xarray

    from jfric.results.solution import Solution
    from jfric.system.problem import Problem


def labelled(solution: Solution, problem: Problem | None = None) -> xarray.Dataset:
    """Solution as a labelled table, see :meth:`jfric.Solution.to_xarray`."""
    xarray = import_xarray()
    status = np.asarray(solution.status)
    batch = ["batch"] if status.ndim == 1 else [f"batch_{i}" for i in range(status.ndim)]
    nt, nu = solution.mode.shape[-1], solution.lambda_n.shape[-1]
    contacts, segments = solution.names[:nt], solution.names[nt:]
    units = _units(solution, problem)
    meanings = {"meanings": [f"{int(m)}: {m.label}" for m in Mode]}

    def about(kind: str) -> dict[str, Any]:
        found = [u for u in units.get(kind, []) if u]
        if not found:
            return {}
        return {"units": found[0] if len(set(found)) == 1 else found}

    table: dict[str, Any] = {
        name: ([*batch, "time", axis], np.asarray(getattr(solution, name)), about(name))
        for name, axis in (
            *(("q", "dof"), ("v", "dof"), ("a", "dof")),
            *(("lambda_t", "contact"), ("lambda_n", "unilateral")),
        )
    }
    table["mode"] = ([*batch, "time", "contact"], np.asarray(solution.mode), meanings)
    table["segment"] = ([*batch, "time", "element"], np.asarray(solution.segment))
    table["z"] = ([*batch, "time", "state"], np.asarray(solution.z))
    log = solution.events
    for name in ("time", "contact", "from_mode", "to_mode", "impact", "q", "v", "v_before"):
        values = np.asarray(getattr(log, name))
        axes = [*batch, "event"] if values.ndim == status.ndim + 1 else [*batch, "event", "dof"]
        of = {"time": "t", "v_before": "v"}.get(name, name)
        table[f"event_{name}"] = (axes, values, about(of))
    table["event_count"] = (batch, np.asarray(log.count))
    for name in ("status", "flags", "steps"):
        table[name] = (batch, np.asarray(getattr(solution, name)))
    ts = np.asarray(solution.ts)
    rows = ts.reshape(-1, ts.shape[-1])
    same = len(rows) > 0 and bool(np.all(rows == rows[0]))
    coordinates: dict[str, Any] = {
        "dof": list(solution.axes),
        "contact": list(contacts),
        "unilateral": list(contacts[nt - nu :]),
        "element": list(segments),
        "state": list(solution.states),
    }
    # Times that differ between trajectories cannot be an index.
    if same:
        coordinates["time"] = ("time", rows[0], {"units": "s"})
    else:
        coordinates["t"] = ([*batch, "time"], ts, {"units": "s"})
    return xarray.Dataset(table, coordinates)


def _units(solution: Solution, problem: Problem | None) -> dict[str, list[str]]:
    """Units of the components of each field."""
    found: dict[str, list[str]] = {"t": ["s"]}
    if problem is None:
        return found
    for column, unit in column_units(problem, solution).items():
        found.setdefault(column.partition(".")[0], []).append(unit)
    return found | {"t": ["s"]}
