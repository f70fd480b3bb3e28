"""Writes a verification as pages, one for each case, and an index."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from generators.manual.case_page import parts, share
from generators.manual.entry import Entry, slugs
from generators.manual.layout import page, table
from jfric.errors import ProblemError


def write_manual(folder: Path, entries: Sequence[Entry], below: str = "") -> list[Path]:
    """Write a page for each case and ``index.html``; ``below``: a line under every page. Returns
    the files. Raises :class:`jfric.ProblemError` where they cannot be written."""
    names = slugs(list(entries))
    files: dict[str, str] = {"index.html": page("Verification", index(entries, names), below=below)}
    for entry in entries:
        body = "\n".join(
            f"<h2>{html.escape(heading)}</h2>\n{content}" for heading, content in parts(entry)
        )
        above = f'<a href="index.html">Verification</a>: {verdict(entry)}'
        files[f"{names[entry.name]}.html"] = page(entry.heading, body, above, below)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ProblemError(f"--html: cannot write to {folder} ({error.strerror})") from None
    return [folder / name for name in files]


def index(entries: Sequence[Entry], names: dict[str, str], ending: str = ".html") -> str:
    """All cases with the check of each that is nearest to its tolerance."""
    titles = ("Case", "System", ">Checks", "Nearest to its tolerance", ">Error/tolerance", "Status")
    rows = []
    for entry in entries:
        worst, count = entry.worst, len(entry.results)
        good = sum(r.passed for r in entry.results)
        rows.append(
            (
                "" if entry.passed else "failed",
                [
                    f'<a href="{names[entry.name]}{ending}">{html.escape(entry.name)}</a>',
                    html.escape(entry.title),
                    f"{good}/{count}",
                    html.escape(
                        f"{worst.quantity} ({worst.solver})" if worst.solver else worst.quantity
                    ),
                    share(worst),
                    verdict(entry),
                ],
            )
        )
    checks = sum(len(entry.results) for entry in entries)
    good = sum(r.passed for entry in entries for r in entry.results)
    words = f"<p>{good} of {checks} checks passed, {len(entries)} cases.</p>"
    return words + table(titles, {"": rows})


def verdict(entry: Entry) -> str:
    """Passed, or how many checks failed."""
    failed = sum(not r.passed for r in entry.results)
    if not failed:
        return '<span class="passed">passed</span>'
    return f'<span class="failed">{failed} failed</span>'
