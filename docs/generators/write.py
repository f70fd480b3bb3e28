"""Writes the pages that come from the code and from files next to ``docs``."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from generators import api, citation, commands, configuration, errors, features, statuses
from generators.rst import heading

ROOT = Path(__file__).resolve().parents[2]
#: Folder of generated pages, below ``docs``.
FOLDER = "generated"
#: Pages that stand next to ``docs``, and their names on the site.
BESIDE = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
#: A link or picture of Markdown, as far as it is relative: before, target, fragment.
_LINK = re.compile(r"(!?\[[^\]]*\])\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")


def with_links_of_the_site(text: str, source: str, page: str) -> str:
    """``text`` of the file ``source`` with links that lead where things are on the site.

    ``source``: its path from the root of the repository; ``page``: where it stands below ``docs``.
    A link to what is no page becomes its text."""

    def moved(match: re.Match[str]) -> str:
        label, target, fragment = match[1], match[2], match[3] or ""
        if not target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path == "README.md":  # on the site the first page takes its place
            path = "docs/index.md"
        if path in BESIDE:
            path = f"docs/{FOLDER}/{BESIDE[path]}"
        if not path.startswith("docs/"):
            return label.strip("![]")
        start = posixpath.dirname(page) or "."
        return f"{label}({posixpath.relpath(path.removeprefix('docs/'), start)}{fragment})"

    text = _LINK.sub(moved, text)
    return text.replace("```mermaid", "```text")  # a diagram that no page can draw without network


def _diagnostics() -> str:
    return "\n".join(
        [
            heading("Statuses, flags and errors", "="),
            "A trajectory that ends early does not disturb others: it carries a status.\n"
            "``solution.outcome()`` says it in words, ``solution.check()`` raises\n"
            ":class:`jfric.SimulationError`. What was observed of it is not a number.\n"
            "Statuses of periodic motions, special points and dead ends of paths:\n"
            ":doc:`/guide/settings`. What helps: :doc:`/guide/troubleshooting`.\n",
            heading("Statuses"),
            statuses.statuses(),
            heading("Flags"),
            "Remarks on a trajectory, also where its status is ``ok``; several may be set. Last\n"
            "column: whether derivatives with respect to parameters exist.\n",
            statuses.flags(),
            heading("Bad input"),
            "One sentence of :class:`jfric.ProblemError` before anything is computed: the field,\n"
            "what was found, what is allowed, and the nearest valid choice. On the command line\n"
            "the exit status is then 2. All sentences: :doc:`errors`.\n",
        ]
    )


def pages() -> dict[str, str]:
    """All generated pages by their paths below the folder."""
    beside = {
        page: with_links_of_the_site((ROOT / name).read_text("utf-8"), name, f"{FOLDER}/{page}")
        for name, page in BESIDE.items()
    }
    return {
        **beside,
        **api.pages(),
        "citation.rst": citation.page(),
        "commands.rst": commands.page(),
        "configuration.rst": configuration.page(),
        "diagnostics.rst": _diagnostics(),
        "errors.rst": errors.page(),
        "features.rst": features.page(),
    }


def write() -> None:
    """Write all pages; one that is as it was is left alone, so that it is not read again."""
    for name, text in pages().items():
        path = ROOT / "docs" / FOLDER / name
        if not path.is_file() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
