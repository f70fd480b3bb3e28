"""Malformed files and command lines end in one sentence: some here, many in the slow test."""

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_bounded_input import within

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    import fuzz_cases
    import fuzz_inputs

    return fuzz_cases, fuzz_inputs


def test_malformed_files_are_refused_or_good(fuzz, tmp_path):
    cases, inputs = fuzz
    tried = [case for case in cases.cases(160, seed=7) if case.kind in ("file", "data")]
    codes = set()
    for i, case in enumerate(tried[:60]):
        (tmp_path / str(i)).mkdir()
        with within(30):
            found = inputs.outcome(case, tmp_path / str(i))
        assert not found.failure, (inputs.shown(case), found)
        codes.add(found.code)
    assert codes == {0, 2}


def test_cases_are_the_same_for_the_same_seed(fuzz):
    cases, _ = fuzz
    assert cases.cases(30, seed=3) == cases.cases(30, seed=3)
    assert cases.cases(30, seed=3) != cases.cases(30, seed=4)


@pytest.mark.slow
def test_no_traceback_and_no_hang():
    done = subprocess.run(
        [sys.executable, str(ROOT / "experiments" / "fuzz_inputs.py"), "--cases", "450"],
        capture_output=True, text=True, timeout=1200, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert re.search(r"^450 cases, 0 failures", done.stdout, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["line", "rod", "links", "sleigh", "varying"])
def test_pairs_of_elements_have_a_result_or_a_sentence(system, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    import pair_elements

    known = sorted(pair_elements.ELEMENTS)
    rng = random.Random(f"{system} 1")
    for _ in range(4):
        names = tuple(rng.sample(known, 2))
        assert pair_elements.failures(system, names) == {}, names


def test_every_element_has_its_place_in_the_pairs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    import pair_elements

    problem = pair_elements.made("line", *sorted(pair_elements.ELEMENTS.keys() - {"joint"}))
    assert len(problem.elements) >= 20
