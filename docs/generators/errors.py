"""Sentences of errors by topic, read from where they are raised."""

from __future__ import annotations

import ast
from pathlib import Path

import jfric
from generators.rst import heading, plain

PACKAGE = Path(jfric.__file__).resolve().parent
#: Folders in the order of the page, and what their errors are about.
TOPICS = {
    "system": "Systems: elements, laws, functions of time, starts",
    "files": "Files: keys, units, tables",
    "solvers": "Solvers and their settings",
    "contact": "Contact problems",
    "results": "Results and names of quantities",
    "sweeps": "Sweeps",
    "fits": "Measured data and fits",
    "statics": "Equilibria, paths and limit loads",
    "periodic": "Steady states",
    "optima": "Optimal inputs and dimensions",
    "structures": "Structures",
    "figures": "Figures",
    "exports": "Export",
    "verification": "Verification",
    "cli": "Command line",
    "numerics": "Numbers and counts",
    "errors": "Texts where numbers are taken",
    "optional": "Packages that are missing",
}
#: Stands for what a message fills in.
HOLE = "…"


def page() -> str:
    """The catalogue."""
    found = messages()
    parts = [
        heading("Errors", "="),
        "Bad input is one sentence of :class:`jfric.ProblemError`: the field, what was found,\n"
        "what is allowed, often the nearest valid choice. These are the sentences as they are\n"
        f"written where they are raised; {HOLE} stands for what is filled in. Trouble on the way\n"
        "of a trajectory is no error but a :doc:`status <diagnostics>`.\n",
    ]
    for folder, title in TOPICS.items():
        sentences = found.get(folder, [])
        if sentences:
            parts += [heading(title), *(f"- {plain(s)}" for s in sentences), ""]
    return "\n".join(parts)


def messages() -> dict[str, list[str]]:
    """Sentences by the folder whose modules raise them, without repetition."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        folder = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            sentence = _sentence(node)
            if sentence and sentence not in found.setdefault(folder, []):
                found[folder].append(sentence)
    return {folder: sorted(x, key=_order) for folder, x in found.items() if x}


def _order(sentence: str) -> tuple[bool, str]:
    return sentence.startswith(HOLE), sentence.lower()


def _sentence(node: ast.AST) -> str:
    """What a ``ProblemError`` made here says, if that is written here."""
    match node:
        case ast.Call(func=ast.Name(id="ProblemError"), args=[first, *_]):
            text = _text(first)
            return text if len(text.replace(HOLE, "").strip(" :,;()'\"")) > 12 else ""
    return ""


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(value) for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + _text(right)
    return HOLE
