"""The page of a sweep: curves and maps of its table, with a slider for each other parameter."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.figures.style import some_rows
from jfric.figures.sweep_figure import COLOURS, FAILED, in_order
from jfric.figures.view.page import CONFIG, LAYOUT, array, data, label, page, system, table, text
from jfric.results.status import Status
from jfric.sweeps.design import NUMBER_AXIS
from jfric.sweeps.table import MISSING, OUTCOME

if TYPE_CHECKING:
    import xarray

#: Most numbers of all observables together on a page, each 11 bytes of text.
MOST_NUMBERS = 2_000_000
#: Command for a point of a sweep made in Python, whose system is first saved from the page.
UNNAMED = "jfric run system.toml"


def sweep_page(found: xarray.Dataset, name: str) -> str:
    """The page of the results of a sweep; ``name``: its title if the sweep has none."""
    names = _observables(found)
    thinned, remarks = _thinned(found, names)
    status = np.asarray(thinned["status"])
    points = int(np.prod(list(found["status"].shape), dtype=int))
    remarks += _outcome(found)
    config = str(found.attrs.get("config", ""))
    command = str(found.attrs.get("point_command", "")) or (UNNAMED if config else "")
    if command == UNNAMED:
        remarks.append("The commands take the system below, saved as system.toml.")
    content = {
        "axes": {
            str(axis): {"unit": _unit(thinned[axis]), "values": array(thinned[axis])}
            for axis in thinned.dims
            if axis in thinned.coords
        },
        "sampled": NUMBER_AXIS in found.dims,
        "parameters": _parameters(thinned),
        "observables": [_column(thinned, n, dims=[str(d) for d in thinned[n].dims]) for n in names],
        "status": {"dims": [str(d) for d in thinned["status"].dims], "values": array(status)},
        "words": {int(s): s.message for s in Status} | {MISSING: "not computed"},
        "command": command,
        "layout": LAYOUT,
        "config": CONFIG,
        "colours": {"map": COLOURS.capitalize(), "failed": FAILED},
    }
    parts = [
        *(f"<p class=remark>{text(remark)}</p>" for remark in remarks),
        "<div class=controls id=controls></div>",
        "<div class=plot id=curve></div>",
        "<div class=plot id=map></div>",
        "<div class=readout id=readout>The point under the mouse; a click keeps it.</div>",
        data("sweep", content),
        "<h2>What was swept</h2>",
        _axes_table(found),
        system(config, str(found.attrs.get("versions", ""))),
    ]
    about = f"{name}: {points:,} points, {found.attrs.get('method', '')}, {_solver(found)}"
    title = str(found.attrs.get("title", "")) or name
    return page(title, about, parts, ["sweep.js"])


def _observables(found: xarray.Dataset) -> list[str]:
    known = [str(n) for n in found.data_vars if n not in OUTCOME]
    return in_order(known, found.attrs.get("observables"))


def _thinned(found: xarray.Dataset, names: list[str]) -> tuple[xarray.Dataset, list[str]]:
    """The table with so few values along its longest axes that a page can hold it."""
    strides = dict.fromkeys(map(str, found.dims), 1)

    def size() -> int:
        shape = {d: math.ceil(found.sizes[d] / s) for d, s in strides.items()}
        return sum(math.prod(shape[str(d)] for d in found[n].dims) for n in [*names, "status"])

    while size() > MOST_NUMBERS:
        longest = max(strides, key=lambda d: found.sizes[d] / strides[d])
        strides[longest] += 1
    thinner = {d: s for d, s in strides.items() if s > 1}
    kept, remarks = {}, []
    for d, s in thinner.items():
        steps = np.diff(found[d]) if d in found.coords else np.zeros(1)
        if np.all(steps > 0.0) or np.all(steps < 0.0):
            kept[d] = np.arange(0, found.sizes[d], s)
            words = f"every {s}{'nd' if s == 2 else 'rd' if s == 3 else 'th'} of"
            verb = "is"
        else:
            kept[d] = some_rows(found.sizes[d], math.ceil(found.sizes[d] / s))
            words, verb = f"{kept[d].size:,}, chosen at random, of", "are"
        remarks.append(
            f"Of {d} {words} {found.sizes[d]:,} values {verb} on this page; the store holds all."
        )
    return found.isel(kept), remarks


def _parameters(found: xarray.Dataset) -> list[dict[str, Any]]:
    """Parameters that have a value at each sample and are not axes."""
    names = [str(n) for n in found.attrs.get("parameters", ())]
    return [
        _column(found, n) for n in names if n in found.coords and found[n].dims == (NUMBER_AXIS,)
    ]


def _column(found: xarray.Dataset, name: str, **more: Any) -> dict[str, Any]:
    """A column of the table as data for the script."""
    unit, values = _unit(found[name]), array(found[name])
    return {"name": name, "label": label(name, unit), "unit": unit, **more, "values": values}


def _unit(values: Any) -> str:
    return str(values.attrs.get("units", ""))


def _outcome(found: xarray.Dataset) -> list[str]:
    status = np.asarray(found["status"])
    failed, missing = int((status > int(Status.OK)).sum()), int((status == MISSING).sum())
    remarks = [f"{failed:,} of {status.size:,} failed (red)."] if failed else []
    return [*remarks, f"{missing:,} not computed."] if missing else remarks


def _solver(found: xarray.Dataset) -> str:
    return str(json.loads(found.attrs.get("solver", "{}")).get("name", ""))


def _axes_table(found: xarray.Dataset) -> str:
    names = [str(n) for n in found.attrs.get("parameters", ())]
    rows = [
        (n, float(np.min(found[n])), float(np.max(found[n])), int(found[n].size), _unit(found[n]))
        for n in names
        if n in found.coords
    ]
    return table(["parameter", "smallest", "largest", "values", "unit"], rows)
