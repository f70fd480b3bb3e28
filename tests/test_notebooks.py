"""Notebooks run from start to end, and each keeps within its time."""

import re
from pathlib import Path

import matplotlib
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(p.stem for p in FOLDER.glob("*.md") if p.stem != "index")


def cells(name: str) -> list[str]:
    text = (FOLDER / f"{name}.md").read_text("utf-8")
    return re.findall(r"^```\{code-cell\} python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_each_is_in_the_index():
    listed = re.search(r"```\{toctree\}\n(.*?)```", (FOLDER / "index.md").read_text(), re.DOTALL)
    assert listed
    assert sorted(listed[1].split("\n\n")[1].split()) == NOTEBOOKS
    assert all(len(cells(name)) >= 3 for name in NOTEBOOKS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_runs(name, tmp_path, monkeypatch):
    """Its own assertions hold, too."""
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    namespace: dict = {}
    for cell in cells(name):
        exec(compile(cell, name, "exec"), namespace)
