"""Every example in the README runs and prints what the README says."""

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
README = (ROOT / "README.md").read_text("utf-8")
#: ``print(...)  # what it prints``
PRINTED = re.compile(r"^ *print\(.*\)  # (.+)$", re.MULTILINE)
#: Changes the system, so that its checks must fail.
FAILS = "--set friction.mu=0.12"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the shipped files and those that the README shows, as current folder."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    for text in blocks("toml"):
        name = re.match(r"# (\w+\.toml)\n", text)
        assert name, "the first line of a file names it"
        (tmp_path / name[1]).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_python_examples_print_what_they_say():
    examples = blocks("python")
    assert len(examples) >= 4
    namespace: dict = {}
    for example in examples:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(example, "README.md", "exec"), namespace)
        assert output.getvalue().splitlines() == PRINTED.findall(example)


def test_files_load_and_survive_a_round_trip(folder):
    files = sorted(folder.glob("*.toml"))
    assert files
    for file in files:
        config = load_config(file)
        assert config.checks
        assert jfric.to_toml(config.problem)


@pytest.mark.parametrize("line", [x for b in blocks("sh") for x in b.splitlines()])
def test_commands(folder, line):
    program, *arguments = shlex.split(line)
    assert program == "jfric"
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == (1 if FAILS in line else 0), result.output


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(((?!https?:)[^)#]+)\)", README):
        assert (ROOT / target).is_file(), target
