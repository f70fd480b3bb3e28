"""Pages of the verification manual in the site: one for each case of ``jfric verify``, run as the
site is built. Pages made from the same code and files are kept."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from textwrap import indent

from generators.manual.case_page import parts
from generators.manual.entry import Entry, slugs
from generators.manual.layout import CONTENT_STYLE
from generators.manual.write import index, verdict
from generators.rst import heading, plain

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs" / "generated" / "manual"
#: What chooses the cases: all, a pattern of names, or off for none.
VARIABLE, ALL, OFF = "JFRIC_DOCS_MANUAL", "all", "off"
#: A third of the processor time less; the code is another one than users run, its tolerances are
#: the same.
UNOPTIMISED = "--xla_backend_optimization_level=0"
_OPENING = """\
Each page is one case of ``jfric verify``, computed when this site was built: the system, its
equations, the source of the expected values and its misprints, every value beside the expected one
for every solver, the motion, and the file. A build ends where one value is outside its tolerance.
Programs were compiled without optimisation here, ``jfric verify`` compiles as every run does.
``python -m generators.manual FILE --html FOLDER`` in ``docs/`` writes such pages of your own files.
"""


def _raw(text: str) -> str:
    return f".. raw:: html\n\n{indent(text, '   ')}\n"


def _content(text: str, style: str = "") -> str:
    opening = f"<style>{style}</style>\n" if style else ""
    return _raw(f'{opening}<div class="jfric">\n{text}\n</div>')


def pages(entries: Sequence[Entry]) -> dict[str, str]:
    """All pages by name."""
    names = slugs(list(entries))
    contents = "\n".join(f"   {name}" for name in names.values())
    found = {
        "index.rst": "\n".join(
            [
                heading("Verification manual", "="),
                _OPENING,
                _content(index(entries, names), CONTENT_STYLE),
                f".. toctree::\n   :hidden:\n\n{contents}\n",
            ]
        )
    }
    for entry in entries:
        written = [heading(plain(entry.heading), "="), _content(verdict(entry), CONTENT_STYLE)]
        for title, content in parts(entry):
            written += [heading(plain(title)), _content(content)]
        found[f"{names[entry.name]}.rst"] = "\n".join(written)
    return found


@contextmanager
def built() -> Iterator[None]:
    """Make the pages in a process of its own beside the block, unless those there are of today's
    code. Raises ``RuntimeError`` where a check fails."""
    pattern = os.environ.get(VARIABLE, ALL)
    stamp, state = FOLDER / "stamp", f"{pattern} {_state()}"
    if stamp.is_file() and stamp.read_text("utf-8") == state:
        yield
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    if pattern == OFF:
        text = f"{heading('Verification manual', '=')}\nLeft out of this build.\n"
        (FOLDER / "index.rst").write_text(text, "utf-8")
        yield
    else:
        path = os.pathsep.join([str(ROOT / "docs"), str(ROOT), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "generators.manual", "--case", pattern]
        settings = {**os.environ, "PYTHONPATH": path, "XLA_FLAGS": _flags()}
        with subprocess.Popen(command, env=settings) as running:
            try:
                yield
            except BaseException:
                running.terminate()
                raise
        if running.returncode:
            raise RuntimeError("a case of the verification manual is outside its tolerance")
    stamp.write_text(state, "utf-8")


def _flags() -> str:
    """Flags of the compiler: nearly all programs of the list compile for longer than they run."""
    given = os.environ.get("XLA_FLAGS", "")
    return given if "backend_optimization_level" in given else f"{given} {UNOPTIMISED}".strip()


def _state() -> str:
    """A checksum of all that the pages are made from."""
    found = hashlib.sha256(f"{sys.version}{version('jax')}{version('jaxlib')}".encode())
    patterns = ("jfric/**/*.py", "jfric/**/*.json", "configs/*", "docs/generators/manual/*.py")
    for path in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
        found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def write_site(entries: Sequence[Entry]) -> None:
    """Write the pages where the site is built from."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages(entries).items():
        (FOLDER / name).write_text(text, "utf-8")
