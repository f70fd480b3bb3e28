"""The page of a fit: simulated and measured signals, residuals, parameters and starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.figures.fit_figures import MEASURED, RESIDUAL, SIMULATED
from jfric.figures.view.page import (
    data,
    figure,
    folded,
    label,
    page,
    plain,
    system,
    table,
    text,
)

#: Half the width of a 95 % interval, in standard deviations.
NORMAL = 1.96
#: Most measured samples that are drawn as separate points.
MOST_MARKERS = 3000


def read_fit(path: Path) -> dict[str, Any]:
    """The stored record of a fit; raises :class:`jfric.ProblemError` if it lacks its series."""
    found = json.loads(path.read_text("utf-8"))
    if not found.get("series"):
        raise ProblemError(
            f"{path}: holds no series, it was written by an older version; fit again"
        )
    return found


def fit_page(record: Mapping[str, Any], name: str) -> str:
    """The page of a fit; ``name``: its title if its system has none."""
    series = record["series"]
    header = ["parameter", "value", "standard error", "95 % interval", ""]
    rows = [
        (
            parameter,
            float(item["value"]),
            float(item["standard_error"]),
            "{:.6g} to {:.6g}".format(*map(float, item["interval"]))
            if item["interval"]
            else "none",
            "at a bound" if item["at_bound"] else "",
        )
        for parameter, item in record["parameters"].items()
    ]
    parts = [
        f"<p>{text(record['outcome'])}; cost {float(record['cost']):.6g}</p>",
        *(f"<p class=remark>{text(remark)}</p>" for remark in record["remarks"]),
        f"<h2>Parameters ({text(record['method'])})</h2>",
        table(header, rows),
        "<h2>Simulated beside measured</h2>",
        "<div class=controls><label>record and signal <select id=choice></select></label></div>",
        "<div class=plot id=compared></div>",
        data("compared-all", [_compared(s) for s in series]),
        "<h2>Starts</h2>",
        _starts(record["waterfall"]),
        folded(
            "The measured files",
            table(["file", "SHA-256"], [(d["path"], d["sha256"]) for d in record["data"]]),
        ),
        system(record["config"], record["versions"]),
    ]
    title = str(record.get("title") or name)
    return page(title, name, parts, ["unpack.js", "plots.js", "fit.js"])


def _compared(s: Mapping[str, Any]) -> dict[str, Any]:
    """Plot of both curves with the band of new samples, and of the residual below them."""
    t, measured, predicted, spread = (
        np.asarray(s[key], float) for key in ("t", "measured", "predicted", "spread")
    )
    unit = s.get("unit", "")
    common = {"type": "scatter", "mode": "lines", "hovertemplate": "%{y:.8g}"}
    quiet = {**common, "line": {"width": 0}, "hoverinfo": "skip", "hovertemplate": None}
    rgb = "rgba(31, 78, 121, 0.22)"
    traces = [
        {**quiet, "x": t, "y": predicted - NORMAL * spread, "showlegend": False},
        {
            **quiet,
            "x": t,
            "y": predicted + NORMAL * spread,
            "fill": "tonexty",
            "fillcolor": rgb,
            "name": "95 % of new samples",
        },
        {
            **common,
            "mode": "markers" if t.size <= MOST_MARKERS else "lines",
            "x": t,
            "y": measured,
            "name": "measured",
            "marker": {"color": MEASURED, "size": 5},
            "line": _line(MEASURED, 2.0),
        },
        {**common, "x": t, "y": predicted, "name": "simulated", "line": _line(SIMULATED, 1.2)},
        {
            **common,
            "x": t,
            "y": predicted - measured,
            "yaxis": "y2",
            "name": "residual",
            "line": _line(RESIDUAL, 1.0),
        },
    ]
    layout = {
        "height": 560,
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        "xaxis": {"title": {"text": "t [s]"}, "anchor": "y2"},
        "yaxis": {"domain": [0.36, 1.0], "title": {"text": label(s["signal"], unit)}},
        "yaxis2": {"domain": [0.0, 0.3], "title": {"text": label("residual", unit)}},
    }
    return plain(traces, layout) | {"label": f"{s['record']}: {s['signal']}"}


def _line(colour: str, width: float) -> dict[str, Any]:
    return {"color": colour, "width": width, "simplify": False}


def _starts(waterfall: list[Mapping[str, Any]]) -> str:
    """Plot of the costs of all starts, best first; hovering shows where each began and ended."""
    costs = [float(row["cost"]) for row in waterfall]
    words = [
        "<br>".join(
            [
                label(row["outcome"]),
                *(
                    label(f"{name}: {float(row['start'][name]):.6g} to {float(value):.6g}")
                    for name, value in row["values"].items()
                ),
            ]
        )
        for row in waterfall
    ]
    trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(range(1, len(costs) + 1)),
        "y": [c if np.isfinite(c) else None for c in costs],
        "text": words,
        "hovertemplate": "cost %{y:.8g}<br>%{text}<extra></extra>",
        "line": {"color": SIMULATED, "width": 1.2},
    }
    positive = all(c > 0 for c in costs if np.isfinite(c))
    layout = {
        "height": 320,
        "xaxis": {"title": {"text": "start"}},
        "yaxis": {"title": {"text": "cost"}, "type": "log" if positive else "linear"},
    }
    return figure("starts", [trace], layout)
