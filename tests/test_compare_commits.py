"""Random systems as text, and what two commits answer otherwise about them."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import answer_systems
import compare_answers
import numpy as np
import pytest
import random_systems

import jfric

ROOT = Path(__file__).resolve().parents[1]


def _text(kind: str, number: int = 0, **options) -> str:
    structure = 100 * random_systems.KINDS.index(kind)
    return random_systems.text(random_systems.system(2, structure, number, kind), **options)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(k, marks=pytest.mark.slow if k in ("polygons", "mechanisms") else ())
        for k in random_systems.KINDS
    ],
)
def test_systems_of_every_kind_are_read(kind):
    assert _text(kind) == _text(kind) != _text(kind, 1)
    assert isinstance(answer_systems.read(_text(kind)), jfric.Problem)


def test_other_units_change_numbers_alone():
    one, other = (tomllib.loads(_text("limits", units=u)) for u in ((1, 1, 1), (2.0, 1.0, 10.0)))
    assert other["mass"]["ma"]["m"] == one["mass"]["ma"]["m"] / 2.0
    assert other["time"]["end"] == one["time"]["end"] / 10.0
    assert other["friction"]["f0"]["N"] == pytest.approx(one["friction"]["f0"]["N"] * 50.0)
    assert other["friction"]["f0"]["mu_s"] == one["friction"]["f0"]["mu_s"]


def test_answers_of_a_batch_and_what_differs():
    texts = [_text("far", i) for i in range(3)] + ["dofs = []"]
    job = answer_systems.Job(texts, "moreau-jean", "")
    outcomes, found = answer_systems.answers(job)
    assert outcomes[:3] == ["answered"] * 3
    assert outcomes[3].startswith("refused: time")

    def compared(**changed) -> str:
        other = {k: np.array(v) for k, v in found[0].items()} | changed
        return compare_answers.difference(("answered", found[0]), ("answered", other), 1e-7)

    a = found[0]
    assert compared() == compared(q=a["q"] * (1.0 + 1e-12)) == ""
    assert compared(q=a["q"] * 1.001) == "motion"
    assert compared(status=np.array(2)) == "status: ok -> max_steps"
    assert compared(flags=a["flags"] ^ int(jfric.Flag.TIE)) in ("flags: +TIE", "flags: -TIE")
    assert compared(mode=a["mode"] + 1) == "modes"
    assert compared(**{"events.time": a["events.time"] + 1e-3}) == "events"
    assert compared(lambda_n=a["lambda_n"] + 1.0) == "forces"
    refused = outcomes[3], found[3]
    kind = compare_answers.difference(("answered", a), refused, 1e-7)
    assert kind == "outcome: answered -> refused"


def test_smallest_system_keeps_what_a_difference_needs():
    two = random_systems.text(random_systems.system(1, 0, 0, "statics"))
    assert {"spring", "friction", "state"} < set(tomllib.loads(two))

    def differs(candidate: str) -> bool:
        table = tomllib.loads(candidate)
        return "ma" in table.get("mass", {}) and "d0" in table.get("damper", {})

    left = tomllib.loads(compare_answers.shrunk(two, differs, trials=100))
    assert left["dofs"] == ["a"]
    assert set(left) == {"dofs", "time", "mass", "damper"}
    assert len(left["mass"]) == 1


@pytest.mark.slow
def test_commits_that_answer_otherwise(tmp_path):
    """None where a commit is compared with itself; a planted error with the smallest system."""
    other = tmp_path / "other"
    shutil.copytree(ROOT / "jfric", other / "jfric")

    def compare() -> subprocess.CompletedProcess:
        command = [sys.executable, str(ROOT / "experiments" / "compare_commits.py"), str(other)]
        options = ["--systems", "24", "--size", "24", "--kinds", "limits", "--trials", "3"]
        return subprocess.run(
            [*command, *options, "--solvers", "moreau-jean", "--out", str(tmp_path / "out")],
            capture_output=True,
            text=True,
            timeout=900,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    done = compare()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 differences" in done.stdout
    law = other / "jfric" / "system" / "laws.py"
    right = law.read_text("utf-8")
    law.write_text(right.replace("return sides(self.mu_d)", "return sides(self.mu_s)"), "utf-8")
    assert law.read_text("utf-8") != right
    done = compare()  # goes on with the answers of this side
    assert done.returncode == 1, done.stdout + done.stderr
    assert "# motion (moreau-jean; limits" in done.stdout
    kept = json.loads((tmp_path / "out" / "systems.json").read_text("utf-8"))
    assert len(kept["groups"]) == 1
