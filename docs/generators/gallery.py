"""The gallery: a page of what is in ``experiments``, with the figures of those that are short."""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from generators.rst import heading, plain

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "generated" / "gallery"
#: A script that the site runs says so by this name.
MARK = "GALLERY"


@dataclass(frozen=True)
class Script:
    """A script: its title, what it says of itself, how to run it; whether the site does."""

    path: Path
    title: str
    words: str
    command: str
    executed: bool

    @property
    def label(self) -> str:
        """Target of links to the script."""
        return "-".join(("gallery", *self.path.relative_to(ROOT).with_suffix("").parts[1:]))

    @property
    def figures(self) -> list[Path]:
        """Figures that the site's run has written, or the recorded one of this name."""
        made = sorted((FOLDER / self.path.stem).glob("*.png"))
        recorded = ROOT / "docs" / "figures" / f"{self.path.stem}.png"
        return made or ([recorded] if recorded.is_file() else [])


def scripts() -> list[Script]:
    """All experiments that can be run, then benchmarks."""
    paths = [*(ROOT / "experiments").glob("*.py"), *(ROOT / "experiments/benchmarks").glob("*.py")]
    found = [script for path in sorted(paths) if (script := read(path)) is not None]
    return sorted(found, key=lambda s: ("benchmarks" in s.path.parts, not s.figures))


def read(path: Path) -> Script | None:
    """The script at ``path``; None for a module that others use, which names no command."""
    tree = ast.parse(path.read_text("utf-8"))
    text = inspect.cleandoc(ast.get_docstring(tree) or "")
    command = re.search(r"^    (python .+)$", text, re.MULTILINE)
    if command is None:
        return None
    title, _, rest = text.replace("``", "").partition("\n\n")
    words = re.sub(r"^    .*\n?", "", rest, flags=re.MULTILINE)
    executed = any(
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == MARK
        for node in tree.body
    )
    return Script(path, " ".join(title.split()).rstrip(".:"), words.strip(), command[1], executed)


def build() -> None:
    """Run what is marked, unless its figures are of today's code, and write the page. Raises
    ``RuntimeError`` where a script fails."""
    execute = os.environ.get("JFRIC_DOCS_EXECUTE", "auto") != "off"
    for script in scripts():
        if script.executed and execute:
            _run(script)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "index.rst").write_text(page(scripts()), "utf-8")


def _run(script: Script) -> None:
    folder = FOLDER / script.path.stem
    stamp, state = folder / "stamp", _state(script)
    if stamp.is_file() and stamp.read_text("utf-8") == state:
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(script.path), "--out", str(folder)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{script.path.name}: {done.stderr.strip().splitlines()[-1]}")
    (folder / "printed.txt").write_text(done.stdout, "utf-8")
    stamp.write_text(state, "utf-8")


def _state(script: Script) -> str:
    found = hashlib.sha256()
    files = [*ROOT.glob("jfric/**/*.py"), *ROOT.glob("configs/*"), *ROOT.glob("experiments/*.py")]
    for path in sorted(files):
        found.update(path.read_bytes())
    return f"{script.path.name} {found.hexdigest()}"


def page(found: list[Script]) -> str:
    """The text of the page."""
    parts = [
        heading("Gallery", "="),
        "Scripts of the folder ``experiments``: studies, published cases, benchmarks. Those that\n"
        "are short were run when this site was built; figures of the others are of a recorded run\n"
        "of the command next to them. Each prints its numbers.\n",
        _thumbnails([script for script in found if script.figures]),
    ]
    for script in found:
        parts += [f".. _{script.label}:\n", heading(plain(script.title)), _prose(script.words), ""]
        parts += [f".. code-block:: text\n\n   {script.command}\n"]
        for figure in script.figures:
            target = os.path.relpath(figure, FOLDER)
            parts.append(f".. image:: {target}\n   :alt: {script.title}\n")
        printed = FOLDER / script.path.stem / "printed.txt"
        if script.executed and printed.is_file():
            text = re.sub(r"^wrote .*\n?", "", printed.read_text("utf-8"), flags=re.MULTILINE)
            lines = "\n".join(f"   {line}".rstrip() for line in text.strip().splitlines())
            parts.append(f"It prints:\n\n.. code-block:: text\n\n{lines}\n")
    return "\n".join(parts)


def _thumbnails(found: list[Script]) -> str:
    """Small figures, each a link to its script."""
    parts = [".. grid:: 1 2 3 3\n   :gutter: 2\n"]
    for script in found:
        title = re.split(r"[,:] ", script.title)[0]
        parts.append(
            f"   .. grid-item-card:: {plain(title)}\n"
            f"      :link: {script.label}\n"
            "      :link-type: ref\n"
            f"      :img-top: {os.path.relpath(script.figures[0], FOLDER)}\n"
            f"      :img-alt: {script.title}\n"
        )
    return "\n".join(parts)


def _prose(text: str) -> str:
    """Paragraphs and entries of lists, without markup."""
    found = []
    for part in re.split(r"\n\s*\n|\n(?=- )", text):
        words = " ".join(part.split())
        entry = words.startswith("- ")
        found.append("- " * entry + plain(words[2 * entry :]))
    return "\n\n".join(filter(None, found))
