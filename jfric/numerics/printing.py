"""Results as text that fits a screen, and as tables in notebooks."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax.core import Tracer

#: Lines and characters of one screen, and largest number of numbers in a row.
LINES, WIDTH, NUMBERS = 24, 100, 6

T = TypeVar("T", bound=type)


class Shown(NamedTuple):
    """Content of a print: a title line, names of the columns (none: no head; a leading ``>``:
    aligned to the right), rows, and a remark below."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    below: str = ""


def printable(cls: T) -> T:
    """Class decorator: instances are printed on one screen at most, and are tables in notebooks.

    The content comes from a method ``_shown()`` (:class:`Shown`), by default from the fields with
    short values. A class with its own ``__str__`` keeps it.
    """
    own = "__str__" in vars(cls)
    methods = {
        "__repr__": vars(cls)["__str__"] if own else as_text,
        "__str__": vars(cls)["__str__"] if own else as_text,
        "_repr_html_": (lambda self: f"<pre>{escape(str(self))}</pre>") if own else as_html,
    }
    for name, method in methods.items():
        setattr(cls, name, method)
    return cls


def as_text(thing: Any) -> str:
    """Text for ``thing`` that fits one screen."""
    title, columns, rows, below = shown(thing)
    lines = [heads(columns), *rows] if columns else rows
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [">" if name.startswith(">") else "<" for name in columns or [""] * len(widths)]
    formats = [f"{side}{width}" for side, width in zip(sides, widths, strict=True)]
    texts = ["  ".join(map(format, line, formats)).rstrip() for line in lines]
    room = LINES - (3 if below else 2)
    if len(texts) > room:
        texts = [*texts[: room - 1], f"... and {len(texts) - room + 1} more"]
    return "\n".join(_cut(line) for line in (title, *texts, *filter(None, [below])))


def as_html(thing: Any) -> str:
    """HTML table for ``thing``."""
    title, columns, rows, below = shown(thing)

    def line(cells: Iterable[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(x)}</{tag}>' for x in cells)}</tr>"

    head = [line(heads(columns), "th")] if columns else []
    rest = len(rows) - LINES
    more = [f"<tr><td>... and {rest} more</td></tr>"] if rest > 0 else []
    body = [line(row, "td") for row in rows[:LINES]]
    remark = f"<p>{escape(below)}</p>" if below else ""
    parts = "".join([*head, *body, *more])
    return f"<table><caption>{escape(title)}</caption>{parts}</table>{remark}"


def heads(columns: Iterable[str]) -> tuple[str, ...]:
    """Names of columns without the marks of their alignment."""
    return tuple(name.removeprefix(">") for name in columns)


def shown(thing: Any) -> Shown:
    """Content of the print of ``thing``."""
    own = getattr(thing, "_shown", None)
    if own is not None:
        return own()
    names = getattr(thing, "_fields", None) or [f.name for f in dataclasses.fields(thing)]
    return Shown(
        type(thing).__name__,
        (),
        [(name, short(getattr(thing, name))) for name in names if not name.startswith("_")],
    )


def short(value: Any) -> str:
    """A value in a few words: single numbers in full, the shape and range of many."""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, (bool, str)):
        return _cut(str(value))
    if isinstance(value, Tracer):
        return f"traced, shape {value.shape}"
    if isinstance(value, (int, float, complex, np.ndarray, np.generic, jax.Array)):
        return _numbers(np.asarray(value))
    if isinstance(value, Mapping):
        words = [f"{k}: {short(v)}" for k, v in list(value.items())[:NUMBERS]]
        return _few(words, len(value))
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return _few([short(x) for x in value[:NUMBERS]], len(value))
    return type(value).__name__


def _few(words: list[str], count: int) -> str:
    text = ", ".join(words)
    return text if count <= NUMBERS and len(text) < WIDTH // 2 else f"{count} entries"


def _numbers(x: np.ndarray) -> str:
    if x.dtype.kind not in "biufc":
        return _few([str(v) for v in x.ravel()[:NUMBERS].tolist()], x.size)
    if x.ndim == 0:
        return str(x) if x.dtype.kind in "bc" else f"{x[()]:.6g}"
    if x.size <= NUMBERS and x.ndim == 1:
        return f"[{', '.join(_numbers(v) for v in x)}]"
    shape = f"array {' x '.join(map(str, x.shape))}"
    known = x[np.isfinite(x)] if x.dtype.kind in "iuf" else x[:0]
    return f"{shape}, {known.min():.6g} to {known.max():.6g}" if known.size else shape


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."
