"""How to cite, from ``CITATION.cff``."""

from __future__ import annotations

import re
from pathlib import Path

from generators.rst import heading

ROOT = Path(__file__).resolve().parents[2]


def page() -> str:
    """The text of the page."""
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    title, version = _value(text, "title"), _value(text, "version")
    author = re.search(r"- name: (.+)", text)
    entry = [
        "@software{jfric,",
        f"  title = {{{title}}},",
        f"  author = {{{{{author[1] if author else 'The jfric developers'}}}}},",
        f"  version = {{{version}}},",
        f"  license = {{{_value(text, 'license')}}},",
        "}",
    ]
    indented = "\n".join(f"   {line}" for line in entry)
    file = "\n".join(f"   {line}".rstrip() for line in text.splitlines())
    return "\n".join(
        [
            heading("How to cite", "="),
            "Say which version; ``jfric --version`` prints it with those of JAX. For BibTeX:\n",
            f".. code-block:: bibtex\n\n{indented}\n",
            "The repository holds the same as ``CITATION.cff``, which reference managers read:\n",
            f".. code-block:: yaml\n\n{file}\n",
            "A result is citable with its file: ``python -m generators.manual FILE --html\n"
            "FOLDER`` in ``docs/`` writes the system, its equations, values and errors as a\n"
            "page.\n",
        ]
    )


def _value(text: str, key: str) -> str:
    found = re.search(rf'^{key}: "?(.+?)"?$', text, re.MULTILINE)
    if found is None:
        raise ValueError(f"CITATION.cff has no {key}")
    return found[1]
