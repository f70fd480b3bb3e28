"""A page that holds everything it needs: its text, and packed the drawing library and its data."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
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
#: Data for the scripts, which a page holds packed.
DATA = re.compile(r'<script type="application/json".*?</script>', re.DOTALL)
#: The page may run what it holds, and reach nothing.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
LAYOUT = {
    "template": "plotly_white",
    "font": {"family": "system-ui, sans-serif", "size": 12},
    "margin": {"l": 80, "r": 20, "t": 30, "b": 50},
    "hovermode": "closest",
}


def page(title: str, about: str, parts: Iterable[str], scripts: Sequence[str] = ()) -> str:
    """The page as text. ``parts``: HTML, as the functions below make it; ``scripts``: files next to
    this one, run in their order; without any the page holds no drawing library."""
    inside = "\n".join(part for part in parts if part)
    if scripts:
        own = "".join(f'<script type="text/plain">{resource(name)}</script>\n' for name in scripts)
        blocks = {
            "data": _once("".join(DATA.findall(inside))),
            "library": import_plotly().offline.get_plotlyjs(),
        }
        held = "\n".join(
            f'<script type="application/gzip" id="{name}">{packed(found)}</script>'
            for name, found in blocks.items()
        )
        inside = f"{DATA.sub('', inside)}\n{held}\n{own}<script>{resource('unpack.js')}</script>"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{text(title)}</title><style>{resource('view.css')}</style></head><body>\n"
        f"<h1>{text(title)}</h1>\n<p class='about'>{text(about)}</p>\n{inside}\n</body></html>\n"
    )


def _once(found: str) -> str:
    """Data with each array of a plot written once, at the end: plots share times and motions."""
    numbers: dict[str, int] = {}

    def put(match: re.Match[str]) -> str:
        return f'"bdata": "@{numbers.setdefault(match[1], len(numbers))}"'

    return re.sub(r'"bdata": "([^"]+)"', put, found) + data("arrays", list(numbers))


def packed(found: str) -> str:
    """Text as gzip in base 85, which ``unpack.js`` reads; nothing inside ends an element."""
    return base64.b85encode(gzip.compress(found.encode(), mtime=0)).decode().replace("<", ",")


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


def curve(x: Any, y: Any, ink: str, name: str = "", width: float = 1.2, **more: Any) -> dict:
    """A line as the drawing library has it; with a ``name`` it is in the legend."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "name": name,
        "showlegend": bool(name),
        "line": {"color": ink, "width": width, "simplify": False},
        "marker": {"color": ink, "size": 5},
        "hovertemplate": "%{x:.8g}, %{y:.8g}<extra></extra>",
        **more,
    }


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
        shown = f"{value:.10g}" if isinstance(value, float) else str(value)
        number = re.fullmatch(r"[-+]?\d[-+.,e\d]*", shown)
        if number:
            return f"<td class=n>{text(shown)}</td>"
        parts = re.sub(r"[.](?=[^\W\d])", ".<wbr>", text(shown))  # paths go on in a new line
        return f"<td>{parts}</td>"

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
