"""Experiments run, and write the figures they name."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: Scripts that take less than a minute, with arguments that keep them short.
SCRIPTS = {
    "ve0061": (),
    "ve0116": (),
    "ve0119": (),
    "sdnd106": (),
    "janovsky_4_1": (),
    "janovsky_4_2": (),
    "janovsky_5_3": (),
    "gradients": (),
    "static_lumped": (),
    "identify_ve0116": (),
    "identify_curve": ("--samples", "800"),
    "missed_events": ("--cases", "40"),
    "complementarity": ("--problems", "100"),
    "joint_drift": ("--periods", "20"),
}


#: Those that run for longer than they compile: with the code that users run.
LONG_RUNS = ("static_lumped",)


def optimised() -> dict[str, str]:
    """The environment without what shortens compilation in tests."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    kept = [x for x in flags if "backend_optimization_level" not in x]
    return {**os.environ, "XLA_FLAGS": " ".join(kept)}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_an_experiment_runs(script, tmp_path):
    path = ROOT / "experiments" / f"{script}.py"
    draws = any(word in path.read_text() for word in ("folder(", '"--out"'))
    arguments = [*SCRIPTS[script], *(["--out", str(tmp_path)] if draws else [])]
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        capture_output=True, text=True, cwd=tmp_path, timeout=600,
        env=optimised() if script in LONG_RUNS else None,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"\d", done.stdout)
    figures = [Path(name) for name in re.findall(r"^wrote (\S+\.png)$", done.stdout, re.MULTILINE)]
    assert all(figure.stat().st_size > 10_000 for figure in figures)
    assert bool(figures) == draws


@pytest.mark.slow
@pytest.mark.parametrize("script", ["identify_rod", "identify_load"])
def test_intervals_of_fits_cover(script):
    """mu, e and a length of a rod that hits the floor, or what a joint loses, from 100 noisy
    motions: no bias, the least possible spread, and intervals that hold what they say, as far as
    so few can tell."""
    path = ROOT / "experiments" / f"{script}.py"
    command = [sys.executable, str(path), "--draws", "100", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    _holds_what_it_says(json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.parametrize(("law", "draws"), [("iwan", "100"), ("dahl", "50")])
def test_intervals_of_fits_with_memory_cover(law, draws):
    """Stiffness and limit of Dahl's element, and the four numbers of a joint, likewise."""
    path = ROOT / "experiments" / "identify_memory.py"
    command = [sys.executable, str(path), "--law", law, "--draws", draws, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=optimised())
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert list(found) == [law]
    _holds_what_it_says(found[law])


def _holds_what_it_says(found):
    assert found["failed"] == 0
    for row in found["parameters"].values():
        assert abs(row["bias in standard errors"]) < 3.5
        assert 0.75 < row["spread over Cramer-Rao"] < 1.25
        assert row["coverage of 95 % intervals"] >= 0.85
