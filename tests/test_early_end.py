"""A run that ends early leaves its trajectory up to there, its status and its flags."""

import csv
import json

import pytest
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.results.status import Flag, Status, flags_in
from jfric.verification.configs import shipped

#: Solver, a file that it can simulate, and settings that end the run before its time.
EARLY = [
    ("event-driven", "ve0116", ["max_steps=1"]),
    ("moreau-jean", "ve0116", ["dt=1e-3", "max_steps=3"]),
    ("stabilised-midpoint", "ve0116", ["dt=1e-3", "max_steps=3"]),
    ("quasi-static", "ssnd116", ["max_steps=3"]),
    ("smoothed", "ve0116", ["max_steps=20"]),
]


def call(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.mark.slow
@pytest.mark.parametrize(("solver", "name", "options"), EARLY)
def test_an_early_end_is_written_and_printed(solver, name, options, tmp_path):
    given = [x for option in options for x in ("--option", option)]
    result = call("run", shipped(name), "--solver", solver, *given, "--out", tmp_path, "--plot")
    assert result.exit_code == 1, (result.output, result.exception)
    assert Status.MAX_STEPS.message in result.output
    assert "reached t = " in result.output
    sidecar = json.loads((tmp_path / "run-001.json").read_text())
    assert sidecar["status"]["code"] == "max_steps"
    with (tmp_path / "run-001.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert all(float(row["t"]) <= sidecar["reached"] + 1e-12 for row in rows)
    text = (tmp_path / "run-001.csv").read_text()
    assert "nan" not in text
    assert "unknown" not in text
    assert (tmp_path / "run-001.png").exists()


@pytest.mark.slow  # its sibling: a run that says where it got
def test_the_exit_status_of_a_file_without_checks(tmp_path):
    """1 where the trajectory ends before its time, though there is nothing else to fail."""
    path = tmp_path / "block.toml"
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "spring": jfric.Spring("u", 50.0),
        "friction": jfric.Friction("u", jfric.Coulomb(0.1), N=1.0),
    }
    start = {"u": jfric.InitialState(q=1.0)}
    path.write_text(jfric.to_toml(jfric.Problem(("u",), elements, initial=start, time=2.0)))
    early = call("run", path, "--option", "max_steps=3", "--out", tmp_path / "out")
    assert early.exit_code == 1, early.output
    assert Status.MAX_STEPS.message in early.output


@pytest.mark.slow
def test_flags_are_printed_with_their_meaning(tmp_path):
    result = call("run", shipped("c7_bouncing_ball"), "--out", tmp_path)
    assert result.exit_code == 0
    assert f"flag zeno: {Flag.ZENO.message}" in result.output


@pytest.mark.parametrize("stops", [False, True])
def test_only_a_run_that_ends_before_its_time_says_where_it_got(stops, tmp_path):
    """Also one that an event of the file's own ends, with status ok."""
    path = tmp_path / "block.toml"
    elements = {"mass": jfric.Mass("u", 1.0)}
    if stops:
        elements["event"] = {"there": jfric.Event("u - 0.5", "up", "stop")}
    start = {"u": jfric.InitialState(v=1.0)}
    # The end is that of the motion, not that of the time.
    check = f'[[check]]\nquantity = "final.u"\nexpected = {0.5 if stops else 2.0}\n'
    text = jfric.to_toml(jfric.Problem(("u",), elements, initial=start, time=2.0))
    path.write_text(f"{text}\n{check}tolerance = 1e-12\n")
    result = call("run", path, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert ("(reached t = 0.5 s of 2 s)" in result.output) == stops
    assert ("reached" in result.output) == stops


def test_every_status_and_flag_has_its_sentence():
    assert all(status.message for status in Status)
    assert all(flag.message for flag in Flag)
    assert flags_in(Flag.TIE | Flag.ZENO) == [Flag.TIE, Flag.ZENO]


@pytest.mark.slow
def test_a_figure_of_an_early_end(tmp_path):
    import numpy as np

    problem = jfric.load(shipped("ve0116"))
    solution = jfric.simulate(problem, jfric.EventDriven(max_steps=3), ts=np.linspace(0, 1, 51))
    assert solution.mode_label(0, -1) == "unknown"
    jfric.plot(solution, problem).savefig(tmp_path / "early.png")


def test_version():
    from importlib.metadata import version

    result = call("--version")
    assert result.exit_code == 0
    assert result.output.startswith(f"jfric {version('jfric')} (jax {version('jax')}, ")
    assert call("--devices").output.strip() == "1 cpu"
