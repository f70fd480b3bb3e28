"""The page of a run: motion and forces in time with events and modes, and phase portraits."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.figures.curves import Phase, joined, phases_of, upright
from jfric.figures.style import MOST_CURVES, colour
from jfric.figures.trajectory_figure import MODES, mode_colour
from jfric.figures.view.page import curve, figure, label, page, system, table, text
from jfric.figures.view.stored import WORDS, StoredRun

#: Columns that are drawn over time, by the beginning of their names, and their descriptions.
GROUPS = {
    "q.": "position",
    "v.": "velocity",
    "lambda_t.": "friction force",
    "lambda_n.": "normal force",
    "force.": "force",
    "reaction.": "reaction",
    "z.": "state",
}
#: Descriptions of what has an angle in its unit, or a moment.
OF_ROTATIONS = {
    "position": "angle",
    "velocity": "angular velocity",
    "friction force": "friction torque",
    "force": "torque",
    "reaction": "reaction torque",
}
#: Most events that are drawn, and most that are listed.
MOST_EVENTS, MOST_LISTED = 400, 500
#: Height of a row of curves and of a row of modes [px], and the gap between rows.
ROW, MODE_ROW, GAP = 150, 26, 12
#: Height of a phase portrait [px].
PORTRAIT = 460


def run_page(run: StoredRun, name: str) -> str:
    """The page of a run; ``name``: its title if the run has none."""
    about = run.about
    motions = [motion(run, axis) for axis in run.axes]
    status = about["status"]
    said = f"status: {status['message']}"
    if status["flags"]:
        said += f"; flags: {', '.join(status['flags'])}"
    said += f"; reached t = {about['reached']:.6g} s"
    if about.get("set"):
        said += f"; changed: {', '.join(about['set'])}"
    kind = "" if status["code"] == "ok" else " class=failed"
    moving = _mechanism(run, motions)
    parts = [
        f"<p{kind}>{text(said)}</p>",
        *moving,
        "<h2>In time</h2>",
        _in_time(run, motions),
        "<h2>Phase portraits</h2>",
        _portraits(run, motions),
        *_events(about),
        *_checks(about.get("checks") or []),
        system(about.get("config", ""), about["versions"]),
    ]
    title = about.get("title") or name
    return page(
        title, name, parts, ["plots.js", "run.js", *(["mechanism.js"] if len(moving) > 1 else [])]
    )


def _mechanism(run: StoredRun, motions: list[tuple[np.ndarray, ...]]) -> list[str]:
    """The bodies in motion, where the system has some and moved."""
    written = run.about.get("config", "")
    if "body" not in tomllib.loads(written) or run.columns["t"].size < 2:
        return []
    from jfric.figures.view.mechanism_view import mechanism
    from jfric.files.read_toml import loads

    known = [np.isfinite(q) for _, q, _ in motions]
    curves = [(t[rows], q[rows]) for (t, q, _), rows in zip(motions, known, strict=True)]
    contacts = [c for c in run.columns if c.startswith("mode.")]
    tracks = {c.removeprefix("mode."): spans(run, c) for c in contacts}
    try:
        return mechanism(loads(written, run.about["config_file"]).problem, curves, tracks)
    except ProblemError as error:  # written by an older version
        return [f"<p class=remark>The mechanism is not drawn: {text(error)}</p>"]


def motion(run: StoredRun, axis: str) -> tuple[np.ndarray, ...]:
    """Times, positions and velocities of a degree of freedom: outputs joined by the states before
    and after each event."""
    t, q, v = (run.columns[name] for name in ("t", f"q.{axis}", f"v.{axis}"))
    column = run.axes.index(axis)
    rows = [e for e in run.about["events"] if t.size and t[0] <= e["time"] <= t[-1]]
    when = np.array([e["time"] for e in rows], float)
    place, before, after = (
        np.array([e[key][column] for e in rows], float) for key in ("q", "v_before", "v")
    )
    return joined(t, when, (q, place, place), (v, before, after))


def spans(run: StoredRun, column: str) -> list[Phase]:
    """Intervals in which a contact keeps its mode: from the events, or from the outputs if the
    events are not complete."""
    name, events = column.split(".", 1)[1], run.about["events"]
    changes = [(e["time"], e["from"], e["to"]) for e in events if e["contact"] == name]
    until = np.inf
    if run.about["event_count"] > len(events):
        until = events[-1]["time"] if events else -np.inf
    return phases_of(run.columns["t"], list(map(str, run.columns[column])), changes, until)


def _inks(run: StoredRun) -> dict[str, str]:
    """Colours of the columns that are drawn, none of them twice."""
    drawn = [column for column in run.columns if column.startswith(tuple(GROUPS))]
    return {column: colour(number) for number, column in enumerate(drawn)}


def _title(description: str, unit: str) -> dict[str, str]:
    """The title of an axis: a description, as it is called in this unit, and the unit."""
    if unit in ("rad", "rad/s", "N m"):
        description = OF_ROTATIONS.get(description, description)
    return {"text": label(description, unit)}


def _seen(number: int) -> bool | str:
    """Whether a curve is drawn before a click on its name, by its number in the panel."""
    return True if number < MOST_CURVES else "legendonly"


def _more(count: int, top: float, right: float = 1.0) -> list[dict[str, Any]]:
    """A sentence in the corner of a panel that does not show all of so many curves."""
    said = f"{count - MOST_CURVES} more: click their names"
    place = {"x": right, "xref": "paper", "xanchor": "right", "yanchor": "top", "yref": "paper"}
    made = {"text": said, "showarrow": False, "bgcolor": "#fff", "y": top, **place}
    return [made] if count > MOST_CURVES else []


def _in_time(run: StoredRun, motions: list) -> str:
    rows: dict[tuple[str, str], list[str]] = {}
    for column in run.columns:
        group = next((g for g in GROUPS if column.startswith(g)), None)
        if group is not None:
            rows.setdefault((group, run.unit(column)), []).append(column)
    contacts = [c for c in run.columns if c.startswith(WORDS)]
    height = (ROW + GAP) * len(rows) + (MODE_ROW * len(contacts) + GAP if contacts else 0)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": []}
    inks, top = _inks(run), 1.0
    for number, ((group, unit), members) in enumerate(rows.items(), start=1):
        axis = f"y{number}"
        layout[f"yaxis{number}"] = {
            "domain": [max(top - ROW / height, 0.0), top],
            "title": _title(GROUPS[group], unit),
            "anchor": "x",
            "zeroline": False,
        }
        legend = f"legend{number + 1}"
        layout[legend] = {"y": top, "yanchor": "top", "maxheight": ROW, "font": {"size": 11}}
        layout["annotations"] += _more(len(members), top)
        top -= (ROW + GAP) / height
        for i, column in enumerate(members):
            x, y = _curve(run, group, column, motions)
            more = {"visible": _seen(i), "hovertemplate": "%{y:.8g}", "legend": legend}
            traces.append(curve(x, y, inks[column], label(column), 1.4, yaxis=axis, **more))
    shapes = _marks(run)
    if contacts:
        number = len(rows) + 1
        layout[f"yaxis{number}"] = _mode_axis(contacts, top)
        words, bands = _modes(run, contacts, f"y{number}")
        traces += words
        shapes += bands
    layout |= {
        "height": height + 80,
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "shapes": shapes,
        "showlegend": len(traces) > 1,
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        "xaxis": {
            "title": {"text": "t [s]"},
            "anchor": f"y{len(rows) + bool(contacts)}",
            "showspikes": True,
            "spikemode": "across",
            "spikethickness": 1,
            "unifiedhovertitle": {"text": "t = %{x:.8g} s"},
        },
    }
    return figure("time", traces, layout)


def _curve(run: StoredRun, group: str, column: str, motions: list) -> tuple[np.ndarray, np.ndarray]:
    """Times and values of a column, with its jumps if they are known."""
    if group in ("q.", "v."):
        found = motions[run.axes.index(column[2:])]
        return found[0], found[1 if group == "q." else 2]
    if group == "lambda_t.":
        name = column.split(".", 1)[1]
        own = [e["time"] for e in run.about["events"] if e["contact"] == name]
        return upright(run.columns["t"], run.columns[column], np.array(own, float))
    return run.columns["t"], run.columns[column]


def _mode_axis(contacts: list[str], top: float) -> dict[str, Any]:
    """The axis of the rows of modes, below all curves."""
    return {
        "domain": [0.0, max(top, 0.0)],
        "range": [len(contacts) - 0.5, -0.5],
        "tickvals": list(range(len(contacts))),
        "ticktext": [label(c.split(".", 1)[1]) for c in contacts],
        "anchor": "x",
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }


def _modes(run: StoredRun, contacts: list[str], axis: str) -> tuple[list, list]:
    """The legend of the modes with their names for the cursor, and a band for each interval."""
    words = {str(w) for c in contacts for w in run.columns[c]}
    words |= {word for c in contacts for *_, word in spans(run, c)}
    others = sorted(words - set(MODES))
    traces = [_key(word, mode_colour(word, others)) for word in [*MODES, *others] if word in words]
    traces += [_words(run, column, i, axis) for i, column in enumerate(contacts)]
    bands = [
        _band(start, end, i, axis, mode_colour(word, others))
        for i, column in enumerate(contacts)
        for start, end, word in spans(run, column)
    ]
    return traces, bands


def _words(run: StoredRun, column: str, row: int, axis: str) -> dict[str, Any]:
    """Modes at the outputs, shown at the cursor."""
    words = [label(str(word).replace("_", " ")) for word in run.columns[column]]
    at, clear = np.full(len(words), float(row)), "rgba(0,0,0,0)"
    more = {"yaxis": axis, "text": words, "hovertemplate": "%{text}", "showlegend": False}
    return curve(run.columns["t"], at, clear, label(column), **more)


def _key(word: str, colour: str) -> dict[str, Any]:
    """An entry of the legend."""
    more = {"mode": "markers", "hoverinfo": "skip", "hovertemplate": None}
    square = {"color": colour, "symbol": "square", "size": 11}
    return curve([None], [None], colour, label(word.replace("_", " ")), **more, marker=square)


def _band(start: float, end: float, row: int, axis: str, colour: str) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": start,
        "x1": end,
        "y0": row - 0.42,
        "y1": row + 0.42,
        "xref": "x",
        "yref": axis,
        "fillcolor": colour,
        "line": {"width": 0},
        "layer": "below",
    }


def _marks(run: StoredRun) -> list[dict[str, Any]]:
    """Events as vertical lines, impacts red; none if they would blacken the plot."""
    events = run.about["events"]
    if len(events) > MOST_EVENTS:
        return []
    return [
        {
            "type": "line",
            "x0": e["time"],
            "x1": e["time"],
            "y0": 0.0,
            "y1": 1.0,
            "yref": "paper",
            "line": {
                "color": "#c00000" if e["impact"] else "#777777",
                "width": 1,
                "dash": "solid" if e["impact"] else "dot",
            },
            "layer": "below",
        }
        for e in events
    ]


def _portraits(run: StoredRun, motions: list) -> str:
    """Velocity over position, translations and rotations in separate plots; the last traces are the
    points that follow the mouse."""
    kinds = list(dict.fromkeys(run.unit(f"q.{axis}") for axis in run.axes))
    layout: dict[str, Any] = {"height": PORTRAIT, "showlegend": len(run.axes) > 1}
    curves, points = [], []
    inks, width = _inks(run), 1.0 / len(kinds)
    members = {u: [a for a in run.axes if run.unit(f"q.{a}") == u] for u in kinds}
    layout["annotations"] = []
    for number, unit in enumerate(kinds, start=1):
        left = (number - 1) * width
        right = left + width * (0.88 if len(kinds) > 1 else 1.0)
        layout["annotations"] += _more(len(members[unit]), 1.0, right)
        layout[f"xaxis{number}"] = {
            "domain": [left, right],
            "title": _title("position", unit),
            "anchor": f"y{number}",
        }
        layout[f"yaxis{number}"] = {
            "title": _title("velocity", f"{unit}/s"),
            "anchor": f"x{number}",
        }
    for axis, (t, q, v) in zip(run.axes, motions, strict=True):
        unit = run.unit(f"q.{axis}")
        number, i = 1 + kinds.index(unit), members[unit].index(axis)
        ink, seen = inks[f"q.{axis}"], {"legendgroup": axis, "visible": _seen(i)}
        shared = {"xaxis": f"x{number}", "yaxis": f"y{number}", **seen}
        hover = "position %{x:.8g}<br>velocity %{y:.8g}<br>t = %{customdata:.8g} s"
        more = {"customdata": t, "hovertemplate": hover}
        curves.append(curve(q, v, ink, label(axis), 1.3, **shared, **more))
        dot = {"mode": "markers", "marker": {"color": ink, "size": 10}, "showlegend": False}
        quiet = {"hoverinfo": "skip", "hovertemplate": None}
        points.append(curve(q[-1:], v[-1:], ink, label(axis), **shared, **dot, **quiet))
    return figure("portrait", [*curves, *points], layout)


def _events(about: dict[str, Any]) -> list[str]:
    events, count = about["events"], about["event_count"]
    if not count:
        return ["<h2>Events</h2>", "<p>none</p>"]
    rows = [
        (i, e["time"], e["contact"], e["from"], e["to"], "impact" if e["impact"] else "")
        for i, e in enumerate(events[:MOST_LISTED], start=1)
    ]
    more = f"<p>and {count - len(rows)} more</p>" if count > len(rows) else ""
    return ["<h2>Events</h2>", table(["", "time [s]", "contact", "from", "to", ""], rows), more]


def _checks(checks: list[dict[str, Any]]) -> list[str]:
    if not checks:
        return []
    header = ["quantity", "expected", "value", "error", "allowed", ""]
    rows = [
        (
            *(c[k] for k in ("quantity", "expected", "value", "error", "tolerance")),
            "passed" if c["passed"] else "failed",
        )
        for c in checks
    ]
    return ["<h2>Checks</h2>", table(header, rows)]
