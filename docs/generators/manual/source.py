"""Comments of a configuration file: the statement of the system, and remarks on its source."""

from __future__ import annotations

import re
from pathlib import Path

#: Words of sentences about the source, its misprints and how it was read.
_ABOUT_SOURCE = re.compile(
    r"misprint|printed|published|the paper|its paper|the source|is read as|test file|the book", re.I
)


def opening_comment(text: str) -> str:
    """Comment lines before the first key, as one text."""
    lines = []
    for line in text.splitlines():
        if line.startswith("#:"):  # for editors
            continue
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return " ".join(lines)


def inner_comments(text: str) -> list[str]:
    """Comments further down, each as one text."""
    found: list[list[str]] = []
    previous, begun = False, False
    for line in text.splitlines():
        comment = line.startswith("#")
        if comment and begun:
            if not previous:
                found.append([])
            found[-1].append(line.lstrip("#").strip())
        begun = begun or (bool(line.strip()) and not comment)
        previous = comment
    return [" ".join(lines) for lines in found]


def sentences(text: str) -> list[str]:
    """Sentences of a text."""
    return [s for s in re.split(r"(?<=[.:]) (?=[A-Z])", text) if s.strip()]


def statement_and_remarks(text: str) -> tuple[str, str]:
    """The opening comment of a file, parted into what the system is and what is said of its
    source, from the first sentence on that mentions it."""
    every = sentences(opening_comment(text))
    for i, sentence in enumerate(every):
        if _ABOUT_SOURCE.search(sentence):
            return " ".join(every[:i]), " ".join(every[i:])
    return " ".join(every), ""


def read(path: str | Path) -> str:
    """The text of a file."""
    return Path(path).read_text("utf-8")
