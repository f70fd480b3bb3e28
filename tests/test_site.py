"""Pages of the site that are written from the code say everything; links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from generators import api, check_links, citation, commands, configuration, errors, gallery, write
from test_docstrings import PUBLIC

import jfric
from jfric.files.read_toml import file_codec, json_schema
from jfric.results.status import Flag, Status
from jfric.system.elements import SECTIONS

ROOT = Path(__file__).resolve().parents[1]


def test_every_public_name_has_one_entry():
    text = "\n".join(api.pages().values())
    entries = re.findall(r"^\.\. auto(?:class|function):: (\S+)$", text, re.MULTILINE)
    assert len(set(entries)) == len(entries)
    assert {name.rpartition(".")[2] for name in entries} >= set(PUBLIC)
    assert {f"jfric.{name}" for name in jfric.__all__ if name in PUBLIC} <= set(entries)


def test_every_page_of_the_reference_is_in_its_index():
    pages = api.pages()
    index = pages.pop("api/index.rst")
    listed = re.findall(r"^   (\w+)$", index, re.MULTILINE)
    assert [f"api/{name}.rst" for name in listed] == list(pages)


def _section(text: str, label: str) -> str:
    """What follows a label, up to the next."""
    return re.split(r"^\.\. _", text.split(f".. _{label}:\n")[1], flags=re.MULTILINE)[0]


def test_every_key_of_the_schema_is_described():
    text = configuration.page()
    schema = json_schema()
    opening = text.split(".. _")[0]
    assert re.findall(r"^   \* - ``(\w+)``$", opening, re.MULTILINE) == list(schema["properties"])
    for name, part in schema["$defs"].items():
        section = _section(text, f"key-{name.lower()}")
        found = re.findall(r"^   \* - ``(\w+)``$", section, re.MULTILINE)
        assert found == list(part.get("properties", {})), name


def test_no_cell_of_the_reference_begins_emphasis():
    cells = re.findall(r"^     - (.*)$", configuration.page(), re.MULTILINE)
    assert any(r"\*" in cell for cell in cells)
    assert not [cell for cell in cells if re.search(r"(?<!\\)\*", re.sub("``.*?``", "", cell))]


def test_every_key_of_a_table_has_a_meaning():
    schema = json_schema()
    sections = {cls.__name__ for cls in SECTIONS.values()}
    for name, part in schema["$defs"].items():
        for key, value in part.get("properties", {}).items():
            assert name in sections or value.get("description"), (name, key)
    for key in schema["properties"]:
        assert key in SECTIONS or file_codec().table[key].meaning, key


def test_every_option_is_described():
    text = commands.page()
    for name, command in commands.commands().items():
        section = _section(text, f"command-{name}")
        for parameter in command.params:
            options = [*parameter.opts, *parameter.secondary_opts]
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert all(f"``{option}``" in section for option in options), (name, options)
                assert parameter.help, (name, options)


def test_every_status_and_flag_is_listed():
    text = write.pages()["diagnostics.rst"]
    for name in (*(s.name.lower() for s in Status), *(f.name for f in Flag)):
        assert f"* - ``{name}``\n" in text


def test_every_error_is_in_the_catalogue():
    found = errors.messages()
    assert set(found) <= set(errors.TOPICS)
    assert sum(map(len, found.values())) > 500
    text = errors.page()
    for sentence in ("holds no run, sweep or fit", "no shipped configuration", "did you mean"):
        assert (sentence in text) == (sentence != "did you mean")  # that is filled in
    assert text.count("\n- ") == sum(map(len, found.values()))


def test_every_experiment_is_in_the_gallery():
    found = gallery.scripts()
    folder = ROOT / "experiments"
    named = {p for p in folder.rglob("*.py") if "    python experiments/" in p.read_text("utf-8")}
    assert named == {script.path for script in found}
    text = gallery.page(found)
    for script in found:
        assert script.title
        assert f"   {script.command}\n" in text
    assert any(script.executed for script in found)


def test_the_citation_is_that_of_the_file():
    assert f"version = {{{jfric_version()}}}" in citation.page()


def jfric_version() -> str:
    return re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)[1]


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("[a](../ARCHITECTURE.md)", "[a](generated/architecture.md)"),
        ("[a](../README.md)", "[a](index.md)"),
        ("[a](fits.md#intervals)", "[a](fits.md#intervals)"),
        ("[a](../configs/ve0116.toml)", "a"),
        ("[a](https://example.org/b.md)", "[a](https://example.org/b.md)"),
        ("[a](#here)", "[a](#here)"),
    ],
)
def test_links_follow_what_moves(text, becomes):
    assert write.with_links_of_the_site(text, "docs/periodic.md", "periodic.md") == becomes


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="b.html">', "b.html is not there"),
        ('<a href="#nowhere">', "names no place"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js"),
        ('<a id="here" href="#here"><a href="https://example.org">', None),
    ],
)
def test_links_are_checked(body, said, tmp_path):
    (tmp_path / "a.html").write_text(f"<html><body>{body}</body></html>")
    found = check_links.complaints(tmp_path)
    assert (said in found[0]) if said else not found


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_its_links_hold(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    folders = ["-d", tmp_path / "doctrees", ROOT / "docs", tmp_path / "html"]
    # test_pages.py executes the pages; of the manual one case is enough.
    reduced = {**os.environ, "JFRIC_DOCS_EXECUTE": "off", "JFRIC_DOCS_MANUAL": "c10_conveyor"}
    done = subprocess.run([*command, *folders], capture_output=True, text=True, env=reduced)
    assert done.returncode == 0, done.stderr
    assert check_links.complaints(tmp_path / "html") == []
    case = (tmp_path / "html" / "generated" / "manual" / "c10_conveyor.html").read_text("utf-8")
    assert "<math" in case
    assert "<svg" in case
