"""Files and folders that the pages on the architecture name are there."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/internals.md", "docs/extending.md"]


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page):
    text = (ROOT / page).read_text()
    words = [word for quoted in re.findall(r"`([^`\n]+)`", text) for word in quoted.split()]
    named = {w.removeprefix("jfric/") for w in words if re.fullmatch(r"[\w/]+(\.py|/)", w)}
    known = [f"/{p.relative_to(ROOT)}" + "/" * p.is_dir() for p in (ROOT / "jfric").rglob("*")]
    known += [f"/{p.relative_to(ROOT)}/" for p in ROOT.glob("*/")] + ["/tests/references/"]
    known += [f"/{p.relative_to(ROOT)}" for p in (ROOT / "experiments").rglob("*.py")]
    known += [f"/{p.relative_to(ROOT)}" for p in (ROOT / "tests").rglob("*.py")]
    known += [f"/{p.relative_to(ROOT)}" for p in (ROOT / "docs").rglob("*.py")]
    known += ["/docs/generators/", "/docs/generators/manual/"]
    missing = [name for name in named if not any(k.endswith(f"/{name}") for k in known)]
    links = re.findall(r"\]\(([^)#]+)\)", text)
    missing += [link for link in links if not ((ROOT / page).parent / link).exists()]
    assert named
    assert not missing


def test_the_version_is_the_same_in_every_place():
    """``pyproject.toml`` is the place to change it; a citation names it as well."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
