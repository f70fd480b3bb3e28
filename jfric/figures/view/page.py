"""A self-contained page: the drawing library, its data and its text."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from jfric.figures.style import with_unit
from jfric.optional import import_plotly

#: Settings of every plot: the wheel zooms, a double click shows everything, nothing is sent.
CONFIG = {
    "responsive": True,
    "displaylogo": False,
    "scrollZoom": True,
    "showSendToCloud": False,
    "plotlyServerURL": "",
    "modeBarButtonsToRemove": ["select2d", "lasso2d"],
}
#: Security policy: the page may run its own content, and load nothing else.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
LAYOUT = {
    "template": "plotly_white",
    "font": {"family": "system-ui, sans-serif", "size": 12},
    "margin": {"l": 80, "r": 20, "t": 30, "b": 50},
    "hovermode": "closest",
}


def page(title: str, about: str, parts: Iterable[str], scripts: Sequence[str]) -> str:
    """The page as text. ``parts``: HTML from the functions below; ``scripts``: files in this
    folder, executed in their order."""
    plotly = import_plotly()
    inside = "\n".join(part for part in parts if part)
    own = "\n".join(f"<script>\n{resource(name)}</script>" for name in scripts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{text(title)}</title><style>{resource('view.css')}</style>"
        f"<script>{plotly.offline.get_plotlyjs()}</script></head><body>\n"
        f"<h1>{text(title)}</h1>\n<p class='about'>{text(about)}</p>\n{inside}\n{own}\n"
        "</body></html>\n"
    )


def resource(name: str) -> str:
    """The text of a file in this folder."""
    return files("jfric.figures.view").joinpath(name).read_text("utf-8")


def text(value: object) -> str:
    """Text of ``value`` for a page, with all special characters of HTML escaped."""
    return html.escape(str(value))


def label(name: str, unit: str = "") -> str:
    """A name with its unit, escaped for plots, in which the library reads some HTML."""
    return html.escape(with_unit(name, unit), quote=False)


def data(name: str, content: Any) -> str:
    """Data for the scripts, under a name."""
    # No text inside may end the element.
    found = json.dumps(content, allow_nan=False, default=_plain).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{found}</script>'


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no data of a page")


def array(values: Any) -> dict[str, Any]:
    """An array of float64 without loss; ``unpacked`` of ``unpack.js`` reads it."""
    found = np.ascontiguousarray(values, "<f8")
    return {"shape": list(found.shape), "bytes": base64.b64encode(found.tobytes()).decode()}


def figure(name: str, traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any]) -> str:
    """HTML of a plot at this place, checked by the library when it is made."""
    return f'<div class="plot" id="{name}"></div>{data(f"{name}-data", plain(traces, layout))}'


def plain(traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any]) -> dict[str, Any]:
    """A plot as plain data, checked by the library."""
    made = import_plotly().graph_objects.Figure(list(traces), {**LAYOUT, **layout})
    return {**json.loads(str(made.to_json())), "config": CONFIG}


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table with numbers aligned to the right."""

    def cell(value: Any) -> str:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        shown = f"{value:.10g}" if isinstance(value, float) else str(value)
        return f"<td{' class=n' if number else ''}>{text(shown)}</td>"

    lines = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    top = "".join(f"<th>{text(h)}</th>" for h in header)
    return f"<div class=wide><table><tr>{top}</tr>{lines}</table></div>"


def folded(summary: str, inside: str) -> str:
    """HTML of a block that shows ``summary``, and ``inside`` after a click."""
    return f"<details><summary>{text(summary)}</summary>{inside}</details>"


def system(config: str, versions: Mapping[str, str] | str) -> str:
    """The system as a file, and the versions that computed the result."""
    if not isinstance(versions, str):
        versions = " ".join(f"{k} {v}" for k, v in versions.items())
    shown = f"<pre>{text(config)}</pre>" if config else "<p>Python code, which no file holds.</p>"
    return folded("The system", shown) + f"<p class='about'>{text(versions)}</p>"
