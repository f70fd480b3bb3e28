"""Every example in the README and in the documentation runs and prints what it says."""

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.files.read_toml import load_config

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
#: Pages that are written, not generated.
FILES = [
    ROOT / "README.md",
    *(p for p in sorted(DOCS.rglob("*.md")) if DOCS / "generated" not in p.parents),
]
PAGES = {str(p.relative_to(ROOT)): p.read_text("utf-8") for p in FILES}
#: ``print(...)  # what it prints``
PRINTED = re.compile(r"^ *print\(.*\)  # (.+)$", re.MULTILINE)
LONGEST_SENTENCE = 40
LONGEST_HOW_TO = 900
#: Pages of results, which are read by their tables.
PAGES_OF_RESULTS = {
    f"docs/guide/{name}.md"
    for name in ("benchmarks", "fit_checks", "law_comparisons", "published_values", "steady_checks")
}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], re.DOTALL | re.MULTILINE)


def shown_files() -> list[tuple[str, str]]:
    """Name and text of the files that the pages show."""
    found = []
    for text in (text for page in PAGES for text in blocks(page, "toml")):
        name = re.match(r"# (\w+\.toml)\n", text)
        assert name, "the first line of a file names it"
        found.append((name[1], text))
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the shipped files and those that the pages show, as current folder."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    for name, text in shown_files():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_python_examples_print_what_they_say(page, folder):
    """One after the other: what one defines the next of the page may use."""
    namespace: dict = {}
    for example in blocks(page, "python"):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(example, page, "exec"), namespace)
        assert output.getvalue().splitlines() == PRINTED.findall(example)


def test_shown_files_have_names_of_their_own():
    names = [name for name, _ in shown_files()]
    assert len(set(names)) == len(names) >= 3


def test_files_load_and_survive_a_round_trip(folder):
    files = sorted(folder.glob("*.toml"))
    assert files
    for file in files:
        config = load_config(file)
        assert config.checks
        assert jfric.to_toml(config.problem)


#: Commands of these names take longer; tests of their own are among the default ones.
LONG = ("jfric sweep", "jfric periodic", "jfric bias")
COMMANDS = dict.fromkeys(text for page in PAGES for text in blocks(page, "sh"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(t, marks=pytest.mark.slow) if any(name in t for name in LONG) else t
        for t in COMMANDS
    ],
)
def test_commands(folder, text):
    """One after the other: what one writes the next of the block may use."""
    for line in text.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "jfric"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output


def places(text: str) -> set[str]:
    """Names under which the headings of a page are linked to."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target, place in re.findall(r"\]\(((?!https?:|mailto:)[^)#]*)#?([^)]*)\)", PAGES[page]):
        path = ((ROOT / page).parent / target).resolve() if target else ROOT / page
        if DOCS / "generated" not in path.parents:
            assert path.is_file(), target
            name = str(path.relative_to(ROOT))
            assert not place or place in places(PAGES[name]), f"{target}#{place}"


def test_the_readme_is_short():
    assert len(PAGES["README.md"].splitlines()) <= 120


def prose(page: str) -> list[str]:
    """Paragraphs and entries of lists, without code, tables, headings and figures."""
    text = re.sub(r"\A---\n.*?^---\n", "", PAGES[page], flags=re.M | re.S)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    text = re.sub(r"^(?:\||#|!\[).*$|(?<=\n\n)(?: {4}.*\n+)+", "\n", text, flags=re.M)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]+`", "code", text))
    entry = r"\n\s*\n|\n(?= *(?:- |\d+\. ))"
    return [" ".join(part.split()) for part in re.split(entry, text) if part.strip()]


def sentences(page: str) -> list[str]:
    return [s for part in prose(page) for s in re.split(r"(?<=[.?!])[\"*)]*\s+", part)]


def is_how_to(page: str) -> bool:
    folders = ("docs/guide/", "docs/howto/", "docs/notebooks/")
    return page.startswith(folders)


@pytest.mark.parametrize("page", list(filter(is_how_to, PAGES)))
def test_sentences_are_short(page):
    assert not [s for s in sentences(page) if len(s.split()) > LONGEST_SENTENCE]


@pytest.mark.parametrize("page", sorted(set(filter(is_how_to, PAGES)) - PAGES_OF_RESULTS))
def test_pages_that_say_how_are_short(page):
    assert len(" ".join(prose(page)).split()) <= LONGEST_HOW_TO


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/howto/")])
def test_tasks_fit_a_page_with_their_files_and_commands(page):
    """All that a reader sees: without the front matter and the cells that are not shown."""
    hidden = r"\A---\n.*?^---\n|^```\{code-cell\} python\n:tags: \[remove-.*?^```$"
    shown = re.sub(hidden, "", PAGES[page], flags=re.M | re.S)
    assert len(shown.split()) <= LONGEST_HOW_TO
