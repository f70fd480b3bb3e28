"""Files of ``jfric init`` load, hold what they say, and never take the place of others."""

import json
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.errors import ProblemError
from jfric.files.read_toml import load_config
from jfric.files.schema import json_schema
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
