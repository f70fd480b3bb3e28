"""Entry of the manual: the file, changes and results of one case."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jfric.system.problem import Problem
    from jfric.verification.result import Result


@dataclass
class Entry:
    """A case: its file, what was changed in it, and all that came of it; ``pictures``: HTML by
    caption."""

    name: str
    path: Path
    title: str = ""
    source: str = ""
    description: str = ""
    problem: Problem | None = None
    changed: Mapping[str, float] = field(default_factory=dict)
    solver: Mapping[str, object] = field(default_factory=dict)
    pictures: dict[str, str] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every check did."""
        return bool(self.results) and all(r.passed for r in self.results)

    @property
    def worst(self) -> Result:
        """The check nearest to its tolerance, or furthest beyond it."""
        return max(self.results, key=ratio)

    @property
    def heading(self) -> str:
        """Title of the page."""
        return f"{self.title} ({self.name})" if self.title else self.name

    @property
    def slug(self) -> str:
        """Name of the page, without ending."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self.name).strip("-.") or "case"


def ratio(result: Result) -> float:
    """Error over tolerance; infinite for what failed without one, or without a number."""
    if not result.passed:
        found = result.error / result.tolerance if result.tolerance else float("inf")
        return found if found > 1.0 else float("inf")
    return result.error / result.tolerance if result.tolerance else 0.0


def slugs(entries: list[Entry]) -> dict[str, str]:
    """Names of pages by names of cases, no two the same."""
    found: dict[str, str] = {}
    used: set[str] = {"index"}
    for entry in entries:
        slug, number = entry.slug, 2
        while slug.lower() in used:
            slug, number = f"{entry.slug}-{number}", number + 1
        used.add(slug.lower())
        found[entry.name] = slug
    return found
