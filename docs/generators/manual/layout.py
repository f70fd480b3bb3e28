"""Pages that need no other file: their frame, their style, tables."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

#: Lines of figures on dark pages, in the order of those on light ones.
_BRIGHT = ("#7db5f0", "#ff8f8a", "#7fd08b", "#c9a3ee", "#e6c04d", "#62d6d6", "#d2a59b", "#bbbbbb")
_LINES = " ".join(f"--line{i}: {colour};" for i, colour in enumerate(_BRIGHT))
#: Of the content, wherever it stands: a page of its own follows the screen, the site its button.
CONTENT_STYLE = (
    f"""
@media (prefers-color-scheme: dark) {{ html:not([data-theme="light"]) .jfric {{ {_LINES} }} }}
html[data-theme="dark"] .jfric {{ {_LINES} }}
@media print {{ html .jfric {{ {" ".join(f"--line{i}: initial;" for i in range(8))} }} }}
"""
    + """
.jfric table { border-collapse: collapse; display: block; overflow-x: auto; max-width: 100%; }
.jfric th, .jfric td { padding: .2rem .5rem .2rem 0; text-align: left; vertical-align: baseline; }
.jfric th { border-bottom: 1px solid currentColor; font-weight: 600; }
.jfric td { border-bottom: 1px solid rgba(128, 128, 128, .25); }
.jfric table { overflow-wrap: normal; font-size: .85rem; }
.jfric th, .jfric td:first-child, .jfric td.n { white-space: nowrap; }
.jfric td:nth-child(2):not(.n) { min-width: 15rem; }
.jfric th.n, .jfric td.n { text-align: right; font-variant-numeric: tabular-nums; }
.jfric tr.group th { padding-top: .9rem; border-bottom-width: 2px; }
.jfric tr.failed td { color: #d6362b; font-weight: 600; }
.jfric figure { margin: 1rem 0; overflow-x: auto; }
.jfric figure svg { width: 100%; height: auto; font-family: inherit; }
.jfric figure.pixels img { max-width: 100%; background: #fff; }
.jfric pre { overflow: auto; padding: .7rem .9rem; border: 1px solid rgba(128, 128, 128, .35);
  border-radius: 4px; background: rgba(128, 128, 128, .08); font-size: .85rem; line-height: 1.4; }
.jfric math[display="block"] { margin: .2rem 0; padding: .3em 0; overflow-x: auto;
  overflow-y: hidden; font-size: 1.1em; }
.jfric mi.dotted { font-style: italic; }
.jfric mi.dotted, .jfric math { font-family: math, "Latin Modern Math", "STIX Two Math",
  "Cambria Math", "DejaVu Serif", serif; }
.jfric mtable.matrix { border-left: 1.5px solid; border-right: 1.5px solid; border-radius: 4px; }
.jfric mtable.cases { border-left: 1.5px solid; border-radius: 4px; }
.jfric mtable.cases mtd { text-align: left; }
.jfric p.words { margin: .8rem 0 .1rem; opacity: .8; }
.jfric .passed { color: #2a8a3e; } .jfric .failed { color: #d6362b; }
@media print {
  .jfric figure, .jfric math, .jfric tr { break-inside: avoid; }
  .jfric h2 { break-after: avoid; }
  .jfric pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  .jfric table { display: table; font-size: .85em; }
}
"""
)
_FRAME_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem;
  color: #1d1d1d; background: #fff; overflow-wrap: anywhere; }
a { color: #1f5fa8; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 1.8rem; }
nav, footer { font-size: .85rem; opacity: .8; }
@media (prefers-color-scheme: dark) {
  body { color: #e3e3e3; background: #16181b; } a { color: #7db5f0; }
  .jfric .passed { color: #6fcf84; }
  .jfric .failed, .jfric tr.failed td { color: #ff8a80; }
}
@media print { body { color: #000; background: #fff; max-width: none; font-size: 10pt; } }
"""


def page(title: str, body: str, above: str = "", below: str = "") -> str:
    """A whole page; ``body``, ``above`` and ``below`` are HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_FRAME_STYLE}{CONTENT_STYLE}</style></head>\n"
        f'<body>\n<nav>{above}</nav>\n<main class="jfric">\n<h1>{html.escape(title)}</h1>\n'
        f"{body}\n</main>\n<footer>{below}</footer>\n</body></html>\n"
    )


#: A row has a class, or none, and cells of HTML.
Row = tuple[str, Sequence[str]]


def table(titles: Sequence[str], groups: Mapping[str, Sequence[Row]]) -> str:
    """A table; ``groups`` of rows by their heading, an empty one for none. Titles that begin with
    ``>`` are of numbers."""
    right = [title.startswith(">") for title in titles]
    head = "".join(
        f'<th class="n">{html.escape(title.removeprefix(">"))}</th>'
        if number
        else f"<th>{html.escape(title)}</th>"
        for title, number in zip(titles, right, strict=True)
    )
    lines = []
    for heading, rows in groups.items():
        if heading:
            lines.append(f'<tr class="group"><th colspan="{len(titles)}">{heading}</th></tr>')
        for kind, cells in rows:
            drawn = "".join(
                f'<td class="n">{cell}</td>' if number else f"<td>{cell}</td>"
                for cell, number in zip(cells, right, strict=True)
            )
            lines.append(f'<tr class="{kind}">{drawn}</tr>' if kind else f"<tr>{drawn}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
