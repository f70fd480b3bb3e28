"""Experiments that make parameters most certain: against the present one, and by simulation."""

import numpy as np
import pytest

import jfric
from jfric.fits.design.information import merit

TIMES = np.linspace(0.02, 4.0, 150)


@pytest.fixture(scope="module")
def design():
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 100.0),
        "damper": jfric.Damper("x", 1.0),
        "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=10.0),
        "load": jfric.Load("x", jfric.Harmonic(6.0, 5.0)),
    }
    problem = jfric.Problem(["x"], elements, time=4.0)
    free = {"friction.mu": jfric.Free(0.05, 0.5), "damper.c": jfric.Free(0.3, 3.0)}
    found = jfric.design_experiment(
        problem, free, {"load.F.omega": (2.0, 30.0)},
        limits={"x": (-0.3, 0.3)}, times=TIMES, sigma={"x": 1e-3}, candidates=16,
    )  # fmt: skip
    return free, found


def test_the_same_amplitude_tells_more_and_limits_are_kept(design):
    _, found = design
    assert max(found.information_ratio.values()) > 2.0
    assert found.merit[1] > found.merit[0]
    assert float(found.problem.elements["load"]["load"].F.amplitude) == 6.0
    x = jfric.simulate(found.problem, ts=TIMES).q[:, 0]
    assert np.abs(x).max() <= 0.3 + 1e-5
    assert [row["parameter"] for row in found.table()] == ["friction.mu", "damper.c"]


@pytest.mark.slow
def test_predicted_standard_deviations_are_those_of_fits(design):
    free, found = design
    clean = np.asarray(jfric.simulate(found.problem, ts=TIMES).q[:, 0])
    rng = np.random.default_rng(0)
    plan = jfric.Experiment(TIMES, y={"x": clean}, sigma=1e-3)
    samples = {"x": clean + 1e-3 * rng.normal(size=(500, TIMES.size))}
    fits = jfric.fit_batch(found.problem, plan, free, samples, starts=1)
    spread = np.std(fits.estimates, axis=0, ddof=1)
    np.testing.assert_allclose(spread, list(found.after.values()), rtol=0.1)


def test_slopes_of_the_merit_are_differences():
    rng = np.random.default_rng(1)
    a, b = (m @ m.T + np.eye(3) for m in rng.normal(size=(2, 3, 3)))
    unit = np.array([1.0, 0.1, 10.0])
    for criterion in "DA":
        slope = merit(a, b[..., None], unit, [0, 2], criterion)[1]
        up, down = (merit(a + h * b, None, unit, [0, 2], criterion)[0] for h in (1e-6, -1e-6))
        np.testing.assert_allclose(slope, (up - down) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": {}}, "inputs: found none"),
        ({"inputs": {"load.F.omga": (1.0, 2.0)}}, "load.F.omega"),
        ({"inputs": {"load.F.omega": (2.0, 1.0)}}, "lower below upper"),
        ({"of": ["spring.k"]}, "of: found 'spring.k'"),
        ({"sigma": {}}, "sigma: found"),
        ({"limits": {"x": (1.0, 0.0)}}, "limits.x"),
        ({"criterion": "E"}, "criterion"),
    ],
)
def test_bad_input_has_a_sentence(design, change, message):
    free, found = design
    given = {"inputs": {"load.F.omega": (2.0, 30.0)}, "times": TIMES, "sigma": {"x": 1e-3}}
    with pytest.raises(jfric.ProblemError, match=message):
        jfric.design_experiment(found.problem, free, **{**given, **change})
