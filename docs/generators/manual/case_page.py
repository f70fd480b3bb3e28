"""The page of one case, part by part."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from generators.manual.contact_laws import Line
from generators.manual.entry import Entry, ratio
from generators.manual.equations import equations
from generators.manual.layout import Row, table
from generators.manual.source import inner_comments, read, statement_and_remarks

if TYPE_CHECKING:
    from jfric.verification.result import Result

#: A part of a page: its heading, and its content as HTML.
Part = tuple[str, str]


def parts(entry: Entry) -> list[Part]:
    """All parts of the page of ``entry``, in order."""
    text = read(entry.path)
    statement, remarks = statement_and_remarks(text)
    found: list[Part] = [
        ("Statement", _paragraphs(statement, entry.description, *_changes(entry))),
        ("System", entry.pictures.get("sketch", "")),
    ]
    if entry.problem is not None:
        found.append(("Equations", "\n".join(map(_line, equations(entry.problem)))))
    found.append(("Source", _source(entry, remarks, inner_comments(text))))
    found.append(("Results", results_table(entry.results)))
    for name, drawn in entry.pictures.items():
        if name != "sketch":
            found.append((name[0].upper() + name[1:], drawn))
    found.append((f"File {entry.path.name}", f"<pre>{html.escape(text)}</pre>"))
    return [(heading, content) for heading, content in found if content]


def _paragraphs(*texts: str) -> str:
    return "\n".join(f"<p>{html.escape(text)}</p>" for text in texts if text)


def _changes(entry: Entry) -> list[str]:
    """Sentences on the values and the solver in which the case differs from its file."""
    found = []
    if entry.changed:
        values = ", ".join(f"{path} = {value:.10g}" for path, value in entry.changed.items())
        found.append(f"The system of {entry.path.name} with {values} (SI units).")
    if entry.solver:
        values = ", ".join(f"{name} = {_shown(value)}" for name, value in entry.solver.items())
        found.append(f"The system of {entry.path.name}, by another solver: {values}.")
    return found


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _line(line: Line) -> str:
    words, formula = line
    said = f'<p class="words">{html.escape(words)}</p>' if words else ""
    if formula and not formula.startswith("<math"):
        formula = f"<pre>{html.escape(formula)}</pre>"
    return said + formula


def _source(entry: Entry, remarks: str, inner: Sequence[str]) -> str:
    sources = dict.fromkeys(r.source for r in entry.results if r.source)
    expected = f"Expected values: {'; '.join(sources)}." if sources else ""
    return _paragraphs(entry.source, remarks, *inner, expected)


def results_table(results: Sequence[Result]) -> str:
    """Target, result, error and tolerance of every check, solver after solver."""
    titles = (
        *("Quantity, in SI units", ">Target", ">Result", ">Error", ">Tolerance"),
        *(">Error/tolerance", "Source"),
    )
    groups: dict[str, list[Row]] = {}
    for r in results:
        cells = [
            html.escape(r.quantity),
            _number(r.expected, 12),
            _number(r.value, 12),
            _number(r.error, 2),
            _number(r.tolerance, 2),
            share(r),
            html.escape(r.source),
        ]
        groups.setdefault(r.solver, []).append(("" if r.passed else "failed", cells))
    return table(titles, {html.escape(solver): rows for solver, rows in groups.items()})


def share(result: Result) -> str:
    """Error over tolerance; a count that is met exactly has neither."""
    found = ratio(result)
    if found == float("inf"):
        return "∞"
    return f"{found:.2g}" if result.tolerance else "exact"


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}g}"
