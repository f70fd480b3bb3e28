"""Panels of the page of a fit: residuals, starts, and how certain its parameters are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jfric.figures.style import LINES, some_of, some_rows
from jfric.figures.view.page import curve, figure, label
from jfric.fits.uncertainty.residual_series import autocorrelation, even_grid

MEASURED, SIMULATED, RESIDUAL = "#9a9a9a", "#1f4e79", "#c0504d"
#: Signals whose residuals are drawn, bins of their means, and points of a cloud.
MAX_SIGNALS, BINS, MAX_POINTS = 3, 24, 2_000
#: Parameters whose correlation is drawn, and that are drawn against each other.
MAX_PARAMETERS, MAX_CORNER = 16, 6
#: Half the width of a 95 % interval in standard deviations, and the deviance at its ends.
NORMAL, LIMIT = 1.96, 3.8415
#: Radii of the ellipses that hold 50 and 95 % of a normal distribution in two dimensions.
ELLIPSES = (1.1774, 2.4477)


def panel(name: str, traces: Sequence[dict], x: str, y: str, **layout: Any) -> str:
    """A small plot with one pair of axes, these its labels."""
    known = {
        "height": 320,
        "margin": {"l": 70, "r": 15, "t": 45, "b": 50},
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
    }
    axes = {
        f"{key}axis": {"title": {"text": words}, **layout.pop(f"{key}axis", {})}
        for key, words in (("x", x), ("y", y))
    }
    return figure(name, traces, {**known, **axes, **layout})


def series_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The series of a record, their samples as arrays, with the ``residual`` of each."""
    found = []
    for s in record["series"]:
        numbers = ("t", "measured", "predicted", "spread", "position", "velocity")
        arrays = {n: np.asarray(s[n], float) for n in numbers if s.get(n) is not None}
        found.append({**s, **arrays, "residual": arrays["predicted"] - arrays["measured"]})
    return found


def residuals(series: Sequence[Mapping[str, Any]]) -> list[str]:
    """Residuals of each signal by velocity, position and lag, and their distribution."""
    panels = []
    for number, signal in enumerate(list(dict.fromkeys(s["signal"] for s in series))[:MAX_SIGNALS]):
        chosen = [s for s in series if s["signal"] == signal]
        words = label(f"residual of {signal}", chosen[0].get("unit", ""))
        for what, per in (("velocity", "/s"), ("position", "")):
            known = [s for s in chosen if isinstance(s.get(what), np.ndarray)]
            if known:
                x, r = (np.concatenate([s[key] for s in known]) for key in (what, "residual"))
                below = label(f"{what} of {known[0]['of']}", f"{known[0]['of_unit']}{per}")
                panels.append(_scattered(f"{what}-{number}", x, r, below, words))
        panels += [_by_lag(number, signal, chosen), _distribution(number, signal, chosen)]
    return panels


def _scattered(name: str, x: np.ndarray, residual: np.ndarray, below: str, beside: str) -> str:
    """Residuals over ``x`` (m,), and their means in bins of as many samples."""
    order = np.array_split(np.argsort(x, kind="stable"), min(BINS, max(x.size // 8, 1)))
    middle, mean = (np.array([np.mean(values[rows]) for rows in order]) for values in (x, residual))
    some = some_rows(x.size, MAX_POINTS)
    points = ", ".join(filter(None, ["samples", some_of(some.size, x.size, "")]))
    cloud = {"mode": "markers", "marker": {"color": RESIDUAL, "size": 3, "opacity": 0.5}}
    means = curve(middle, mean, SIMULATED, "mean of neighbours", mode="lines+markers")
    return panel(
        name, [curve(x[some], residual[some], RESIDUAL, points, **cloud), means], below, beside
    )


def _by_lag(number: int, signal: str, chosen: Sequence[Mapping[str, Any]]) -> str:
    longest = max(chosen, key=lambda s: s["t"].size)
    # Missing samples keep their place: a lag is the same time everywhere.
    place, step = even_grid(longest["t"])
    values = np.full(place[-1] + 1, np.nan)
    values[place] = longest["residual"]
    lags = min(400, values.size // 3)
    band = NORMAL / np.sqrt(longest["t"].size)
    at = step * np.array([0, lags])
    white = {"fill": "tonexty", "fillcolor": "rgba(128, 128, 128, 0.35)"}
    traces = [
        curve(at, [-band, -band], MEASURED, width=0.0),
        curve(at, [band, band], MEASURED, "95 % of white noise", 0.0, **white),
        curve(step * np.arange(lags + 1), autocorrelation(values, lags), SIMULATED),
    ]
    return panel(f"lag-{number}", traces, "lag [s]", label(f"autocorrelation, {signal}"))


def _distribution(number: int, signal: str, chosen: Sequence[Mapping[str, Any]]) -> str:
    """Residuals over the standard deviation of new samples, with the normal distribution."""
    parts = [s["residual"] / np.where(s["spread"] > 0, s["spread"], 1.0) for s in chosen]
    values = np.concatenate(parts)
    most = min(float(np.max(np.abs(values), initial=0.0)), 8.0) or 1.0
    x = np.linspace(-most, most, 200)
    normal = np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)
    traces = [*_bars(values, -most, most, "residuals"), curve(x, normal, RESIDUAL, "normal")]
    below = label(f"residual of {signal} / its standard deviation")
    return panel(f"distribution-{number}", traces, below, "density")


def _bars(values: np.ndarray, low: float, high: float, name: str = "", **more: Any) -> list[dict]:
    """Density of values between two ends."""
    density, edges = np.histogram(values, 40, (low, high), density=True)
    middle = 0.5 * (edges[1:] + edges[:-1])
    ink, known = {"color": MEASURED}, {"name": name, "showlegend": bool(name)}
    return [{"type": "bar", "x": middle, "y": density, "marker": ink, **known, **more}]


def starts(record: Mapping[str, Any]) -> str:
    """Costs of all descents, best first: a broad step at the bottom says that it is found often.
    Hovering tells where each began and ended."""
    cost = np.array([float(row["cost"]) for row in record["waterfall"]])
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
        for row in record["waterfall"]
    ]
    good = cost[np.isfinite(cost)]
    place = np.arange(1, cost.size + 1)
    traces = [curve(place, [c if np.isfinite(c) else None for c in cost], MEASURED)]
    outcomes = [row["outcome"] for row in record["waterfall"]]
    for ink, outcome in zip(LINES, dict.fromkeys(outcomes), strict=False):
        own = [i for i, (o, c) in enumerate(zip(outcomes, cost, strict=True))
               if o == outcome and np.isfinite(c)]  # fmt: skip
        said = {"text": [words[i] for i in own], "mode": "markers"}
        said["hovertemplate"] = "cost %{y:.8g}<br>%{text}<extra></extra>"
        if own:
            name = label(outcome.replace("_", " "))
            traces.append(curve(place[own], cost[own], ink, name, **said))
    # Nearly equal ones are a flat step, not the rounding of a logarithmic axis.
    steep = good.size > 0 and good.min() > 0 and good.max() > 2.0 * good.min()
    scale = {"type": "log"} if steep else {"rangemode": "tozero"}
    failed = cost.size - good.size
    below = f"start ({failed} failed)" if failed else "start"
    beside = "cost" if record.get("noise_known", True) else "cost, before the noise was estimated"
    return panel("starts", traces, below, beside, yaxis=scale, xaxis={"tickformat": "d"})


def certainty(record: Mapping[str, Any]) -> list[str]:
    """Correlations of the parameters that have a finite error, and their pairs."""
    if record.get("covariance") is None:
        return []
    matrix = np.asarray(record["covariance"], float)
    names, known = list(record["parameters"]), np.flatnonzero(np.isfinite(np.diagonal(matrix)))
    return [
        *([_correlations(names, matrix, known[:MAX_PARAMETERS])] if known.size > 1 else []),
        *([_corner(record, matrix, known[:MAX_CORNER])] if known.size else []),
    ]


def _correlations(names: Sequence[str], matrix: np.ndarray, known: np.ndarray) -> str:
    sd = np.sqrt(np.diagonal(matrix)[known])
    table = matrix[np.ix_(known, known)] / np.outer(sd, sd)
    shown = [label(names[int(i)]) for i in known]
    trace = {
        "type": "heatmap", "x": shown, "y": shown, "z": table, "zmin": -1, "zmax": 1,
        "colorscale": "RdBu", "reversescale": True, "texttemplate": "%{z:.2f}",
        "colorbar": {"thickness": 12}, "hovertemplate": "%{x}, %{y}: %{z:.4f}<extra></extra>",
    }  # fmt: skip
    more = {"yaxis": {"autorange": "reversed", "automargin": True}, "xaxis": {"automargin": True}}
    return panel("correlations", [trace], "", "", height=240 + 40 * known.size, **more)


def _corner(record: Mapping[str, Any], matrix: np.ndarray, known: np.ndarray) -> str:
    """Densities of the parameters and their pairs: the normal ones of the covariance, and samples
    of the posterior where there are some."""
    items = [list(record["parameters"].items())[i] for i in known]
    centre = np.array([float(item["value"]) for _, item in items])
    words = [label(name, item.get("unit", "")) for name, item in items]
    matrix, count = matrix[np.ix_(known, known)], known.size
    sd = np.sqrt(np.diagonal(matrix))
    drawn, reach = record.get("samples"), 4.0 * sd
    if drawn is not None:
        drawn = np.asarray(drawn["values"], float)[:, known]
        # Nearly all samples are seen, however far they lie.
        reach = np.maximum(reach, np.quantile(np.abs(drawn - centre), 0.999, axis=0))
    low, high = centre - reach, centre + reach
    traces: list[dict] = []
    layout: dict[str, Any] = {"height": 240 + 110 * count, "showlegend": False, "bargap": 0.0}
    ends, turn = (np.arange(count)[:, None] + [0.04, 0.96]) / count, np.linspace(0.0, 2 * np.pi, 99)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    for i in range(count):
        for j in range(i + 1):
            at = str(1 + i * count + j)
            axes: dict[str, Any] = {"xaxis": f"x{at}", "yaxis": f"y{at}"}
            x = {"domain": ends[j].tolist(), "range": [low[j], high[j]], "anchor": f"y{at}"}
            y = {"domain": (1.0 - ends[i][::-1]).tolist(), "anchor": f"x{at}"}
            if i == j:
                fine = np.linspace(low[i], high[i], 200)
                normal = np.exp(-0.5 * ((fine - centre[i]) / sd[i]) ** 2)
                normal /= sd[i] * np.sqrt(2.0 * np.pi)
                if drawn is not None:
                    traces += _bars(drawn[:, i], low[i], high[i], **axes)
                traces.append(curve(fine, normal, SIMULATED, **axes))
            else:
                y["range"] = [low[i], high[i]]
                if drawn is not None:
                    dots = {"color": MEASURED, "size": 2}
                    cloud = curve(drawn[:, j], drawn[:, i], MEASURED, mode="markers", **axes)
                    traces.append({**cloud, "marker": dots})
                own = [j, i]
                values, vectors = np.linalg.eigh(matrix[np.ix_(own, own)])
                root = vectors * np.sqrt(np.maximum(values, 0.0))
                for radius in ELLIPSES:
                    across, up = centre[own][:, None] + radius * root @ circle
                    traces.append(curve(across, up, SIMULATED, **axes))
            small = {"nticks": 4, "tickfont": {"size": 9}, "zeroline": False}
            for key, own_axis, seen, title in (
                ("x", x, i == count - 1, words[j]),
                ("y", y, j == 0 and i > 0, words[i]),
            ):
                shown = {"showticklabels": seen, "title": {"text": title if seen else ""}}
                layout[f"{key}axis{at}"] = {**small, **shown, **own_axis}
    # Titles of narrower axes would lie on each other: on a phone this plot scrolls.
    wide = min(9.5 * count, 38.0)
    inside = f'<div style="min-width:{wide}rem">{figure("corner", traces, layout)}</div>'
    return f"<div class=wide>{inside}</div>"


def profiles(record: Mapping[str, Any]) -> list[str]:
    """Deviance over each parameter, the others fitted, with the parabola of a linear model."""
    panels = []
    for number, (name, profile) in enumerate((record.get("profiles") or {}).items()):
        x, deviance = (np.asarray(profile[key], float) for key in ("values", "deviance"))
        good = np.isfinite(deviance)
        x, deviance = x[good], deviance[good]
        if x.size < 3:
            continue
        item = record["parameters"][name]
        off = x - float(item["value"])
        near = np.argsort(np.abs(off))[1:5]
        # The curvature at the estimate, from the nearest points.
        bend = float(np.sum(deviance[near] * off[near] ** 2) / (np.sum(off[near] ** 4) or 1.0))
        fine = np.linspace(off[0], off[-1], 60)
        parabola = curve(fine - off[0] + x[0], bend * fine**2, MEASURED, "parabola")
        parabola["line"]["dash"] = "dash"
        traces = [
            parabola,
            curve(x, deviance, SIMULATED, "profile", mode="lines+markers"),
            curve(x[[0, -1]], [LIMIT, LIMIT], RESIDUAL, "95 %, independent samples"),
        ]
        limits = {"range": [-0.3, 3.0 * LIMIT]}
        below = label(name, item.get("unit", ""))
        panels.append(panel(f"profile-{number}", traces, below, "deviance", yaxis=limits))
    return panels
