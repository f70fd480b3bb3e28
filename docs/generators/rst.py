"""Pieces of reStructuredText."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence


def heading(text: str, mark: str = "-") -> str:
    """A heading, underlined."""
    return f"{text}\n{mark * len(text)}\n"


def plain(text: str) -> str:
    """``text`` with nothing in it that is markup."""
    return re.sub(r"([\\*|_`<>:])", r"\\\1", text)


def literal(text: object) -> str:
    """``text`` as code; an empty cell for nothing."""
    return f"``{text}``" if text not in (None, "") else ""


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], widths: str = "auto") -> str:
    """A table with one row of titles; a cell may hold several lines."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in (titles, *rows):
        for column, cell in enumerate(row):
            first, *rest = inspect.cleandoc(cell).splitlines() or [""]
            lines.append(f"   {'*' if column == 0 else ' '} - {first}".rstrip())
            lines += [f"       {line}".rstrip() for line in rest]
    return "\n".join(lines) + "\n"
