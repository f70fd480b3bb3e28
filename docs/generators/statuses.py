"""Statuses and flags of trajectories, from their definitions."""

from __future__ import annotations

import inspect
import re

from generators.rst import literal, table
from jfric.results.status import NOT_DIFFERENTIABLE, Flag, Status


def _comments(owner: type) -> dict[str, str]:
    """The comment for documentation above each member."""
    found: dict[str, str] = {}
    comment: list[str] = []
    for line in inspect.getsource(owner).splitlines():
        text = line.strip()
        if text.startswith("#:"):
            comment.append(text.removeprefix("#:").strip())
        elif match := re.match(r"([A-Z_]+) = ", text):
            found[match[1]], comment = " ".join(comment), []
    return found


def statuses() -> str:
    """A table of all statuses."""
    comments = _comments(Status)
    rows = [
        [literal(s.name.lower()), str(int(s)), comments[s.name] or s.message, f"{s.message}."]
        for s in Status
    ]
    return table(("Status", "Code", "Meaning", "What is printed"), rows, "16 8 40 36")


def flags() -> str:
    """A table of all flags."""
    comments = _comments(Flag)
    rows = [
        [
            literal(f.name),
            str(int(f)),
            comments[f.name or ""],
            "no" if f & NOT_DIFFERENTIABLE else "yes",
        ]
        for f in Flag
    ]
    return table(("Flag", "Bit", "Meaning", "Differentiable"), rows, "20 8 54 18")
