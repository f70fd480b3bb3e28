"""Files of ``jfric init`` load, hold what they say, and never take the place of others."""

import json
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.errors import ProblemError
from jfric.files.read_toml import json_schema, load_config
from jfric.files.starting_files import SCHEMA, STARTERS, write_starter
from jfric.verification.configs import shipped


@pytest.mark.parametrize("kind", STARTERS)
def test_a_file_is_read_and_names_its_schema(kind, tmp_path):
    path = tmp_path / "deep" / "own.toml"
    written = write_starter(kind, path)
    assert path.read_text().startswith(f"#:schema {SCHEMA}\n# ")
    assert json.loads((path.parent / SCHEMA).read_text()) == json_schema()
    assert set(written) == set(path.parent.iterdir())
    config = load_config(path)
    assert config.title
    assert config.checks or kind == "fit"


@pytest.mark.parametrize(
    "kind", ["oscillator", *(pytest.param(kind, marks=pytest.mark.slow)
                             for kind in ("drive", "contact", "mechanism"))]
)  # fmt: skip
def test_its_checks_pass(kind, tmp_path):
    write_starter(kind, tmp_path / "own.toml")
    results = jfric.verification.verify([tmp_path / "own.toml"])
    assert results
    assert [r.quantity for r in results if not r.passed] == []


@pytest.mark.slow
def test_the_record_gives_what_it_was_made_with(tmp_path):
    path = tmp_path / "drive.toml"
    write_starter("fit", path)
    config = load_config(path)
    record = jfric.read_experiments(path, path.with_suffix(".csv"))
    free = {"friction.limit": jfric.Free(0.01, 1.0), "spring.k": jfric.Free(1.0, 100.0)}
    found = jfric.fit(config.problem, record, free)
    for name, true in {"friction.limit": 0.18, "spring.k": 8.6}.items():
        low, high = found.intervals(0.999)[name]
        assert low < true < high
    step = np.deg2rad(0.05)
    assert found.sigma["phi"] == pytest.approx(step, rel=0.15)


def test_a_system_of_the_package_is_copied(tmp_path):
    path = tmp_path / "system.toml"
    found = CliRunner().invoke(app, ["init", "ve0116", str(path)])
    assert found.exit_code == 0, found.output
    assert path.read_text() == f"#:schema {SCHEMA}\n" + shipped("ve0116").read_text()
    assert load_config(path).problem == load_config(shipped("ve0116")).problem
    found = CliRunner().invoke(app, ["init", "ve016", str(tmp_path / "other.toml")])
    assert found.exit_code == 2
    assert "did you mean 've0116'?" in found.output


def test_what_exists_stays(tmp_path):
    path = tmp_path / "own.toml"
    write_starter("fit", path)
    path.unlink()
    path.with_suffix(".csv").write_text("mine")
    with pytest.raises(ProblemError, match=r"own.csv exists already and stays as it is"):
        write_starter("fit", path)
    assert not path.exists()
    (tmp_path / SCHEMA).write_text("mine as well")
    write_starter("oscillator", path)
    assert (tmp_path / SCHEMA).read_text() == "mine as well"
    tomllib.loads(path.read_text())


@pytest.mark.parametrize(
    ("kind", "name", "sentence"),
    [
        ("osc", "own.toml", r"init: found 'osc' \(did you mean 'oscillator'\?\), allowed are"),
        ("contact", "own.txt", r"found the file .*own.txt', its name must end in .toml"),
    ],
)
def test_mistakes_are_one_sentence(kind, name, sentence, tmp_path):
    with pytest.raises(ProblemError, match=sentence):
        write_starter(kind, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


#: Texts of the starters and what stands there once an option in a comment is taken.
OPTIONS = {
    "belt": ("oscillator", '# belt = "0.1 m/s"', 'belt = "0.1 m/s"'),
    "static": ("oscillator", "mu = 0.25", "mu_s = 0.3\nmu_d = 0.2"),
    "load": (
        "oscillator",
        '# [load]\n# dof = "x"\n# F = {harmonic',
        '[load]\ndof = "x"\nF = {harmonic',
    ),
    "gap": ("contact", "[contact]\n", '[contact]\ngap = "1 cm"\n'),
    "pin": ("mechanism", '# mu = 0.1 and radius = "1 cm"', 'mu = 0.1\nradius = "1 cm" #'),
    "newtons": ("drive", 'N = "400 N"', 'N = "1 N"'),
}


def taken(option, folder):
    """The starter of an ``option``, with it."""
    kind, text, changed = OPTIONS[option]
    path = folder / "own.toml"
    write_starter(kind, path)
    assert text in path.read_text()
    path.write_text(path.read_text().replace(text, changed))
    return path


@pytest.mark.parametrize("option", OPTIONS)
def test_options_in_comments_are_read(option, tmp_path):
    found = CliRunner().invoke(app, ["show", str(taken(option, tmp_path))])
    assert found.exit_code == 0, found.output


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS)
def test_options_in_comments_run_with_every_picture(option, tmp_path):
    path, out = taken(option, tmp_path), tmp_path / "out"
    line = ["run", path, "--set", "time.end=0.2", "--plot", "--out", out]
    line += ["--animate", tmp_path / "own.gif"] if option == "pin" else []
    for words in (line, ["view", out]):
        found = CliRunner().invoke(app, list(map(str, words)))
        assert found.exit_code == 0, found.output
