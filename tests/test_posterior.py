"""Samples of the posterior: what makes them doubtful, and a fit from the command line to a page."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.fits.uncertainty.posterior import Posterior

NAMES = ("friction.mu", "spring.k")


def test_chains_that_do_not_agree_are_named():
    samples = np.random.default_rng(0).normal(size=(4, 500, 2))
    good = Posterior(NAMES, samples, np.array([1.0, 1.02]), np.array([900.0, 800.0]), 0.3)
    assert not good.remarks()
    found = good.to_dict()["spring.k"]
    low, high = found["interval"]
    assert (low, high) == pytest.approx((-1.96, 1.96), abs=0.15)
    assert found["standard_deviation"] == pytest.approx(1.0, abs=0.05)
    bad = Posterior(NAMES, samples, np.array([1.3, np.nan]), np.array([20.0, 800.0]), 0.3)
    apart, few = bad.remarks()
    assert "friction.mu (1.30), spring.k (nan): take more samples" in apart
    assert "fewer than 200 independent samples of friction.mu (20)" in few


SYSTEM = """
title = "A mass that friction stops"
dofs = ["x"]
time = {end = "4 s"}
mass = {dof = "x", m = 1.0}
spring = {dof = "x", k = 100.0}
friction = {dof = "x", mu = 0.1, N = 10.0}
initial.x = {q = 0.3}
[data]
time = "t"
[data.y]
x = "x"
"""


@pytest.mark.slow
def test_the_command_draws_the_posterior_on_its_page(tmp_path):
    """Its spread is that of the normal approximation: 200 samples say much of two parameters."""
    pytest.importorskip("blackjax")
    system, data = tmp_path / "system.toml", tmp_path / "run.csv"
    system.write_text(SYSTEM)
    t = np.linspace(0.02, 4.0, 200)
    x = np.asarray(jfric.simulate(jfric.load(system), ts=t).q[:, 0])
    x = x + 2e-3 * np.random.default_rng(3).normal(size=t.size)
    rows = [f"{a!r},{b!r}" for a, b in zip(t.tolist(), x.tolist(), strict=True)]
    data.write_text("\n".join(["t,x", *rows]))
    out, page = tmp_path / "found.json", tmp_path / "page.html"
    free = ["--free", "friction.mu=0.02:0.5", "--free", "spring.k=50:200"]
    arguments = ["fit", str(system), "--data", str(data), *free, "--starts", "2"]
    more = ["--posterior", "8000", "--out", str(out), "--report", str(page)]
    done = CliRunner().invoke(app, [*arguments, *more])
    assert done.exit_code == 0, done.output
    assert "posterior of friction.mu" in done.output
    assert "do not agree" not in done.output
    found = json.loads(out.read_text())
    for name, truth in zip(NAMES, (0.1, 100.0), strict=True):
        drawn, fitted = found["posterior"][name], found["parameters"][name]
        # Some 1,000 independent samples: their spread is known to 3 %.
        assert drawn["standard_deviation"] == pytest.approx(fitted["standard_error"], rel=0.15)
        assert drawn["mean"] == pytest.approx(fitted["value"], abs=0.2 * fitted["standard_error"])
        assert abs(drawn["mean"] - truth) < 4.0 * drawn["standard_deviation"]
    text = page.read_text()
    assert "8,000 samples of the posterior" in text
    assert "1,000 of 8,000 drawn" in text
