"""Fits to steady states: what a row means, recovery, bad input, rows without an orbit."""

from __future__ import annotations

import functools
import math

import jax
import numpy as np
import pytest

import jfric
from jfric.fits.data.stacking import stack

W, P = np.array([0.7, 0.95, 1.2, 0.8]), np.array([0.9, 0.9, 0.9, 1.3])
CONDITIONS = {"load.F.omega": W, "load.F.amplitude": P}


@functools.cache
def shaken(mu=0.2) -> jfric.Problem:
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1.0),
            "damper": jfric.Damper("x", 0.1),
            "friction": jfric.Friction("x", jfric.Coulomb(mu), N=1.0),
            "load": jfric.Load("x", jfric.Harmonic(1.0, 0.8, 0.4)),
        },
    )


def predicted(problem, conditions, names, **values):
    """What a model predicts (m, k) of each of ``names``."""
    rows = jfric.steady_states(conditions, dict.fromkeys(names, np.zeros(len(W))))
    data, _, _ = stack([rows], tuple(names), [0.0], [{}])
    one = jax.tree.map(lambda x: x[0], data)
    found = jfric.SteadyModel(problem, transient=4).simulate_outputs(values, one)
    return np.asarray(found.y), int(found.status)


@pytest.mark.slow
def test_rows_without_friction_are_the_linear_response():
    """A phase is relative to the load, whose own phase makes no difference."""
    values = {"friction.mu": 0.0}
    names = ("amplitude.x", "phase.x", "phase.v.x", "mean.x")
    y, status = predicted(shaken(), CONDITIONS, names, **values)
    exact = P / (1.0 - W**2 + 0.1j * W)
    assert status == jfric.Status.OK
    np.testing.assert_allclose(y[:, 0], abs(exact), rtol=1e-12)
    np.testing.assert_allclose(y[:, 1], np.angle(exact), atol=1e-12)
    np.testing.assert_allclose(y[:, 2], np.angle(1j * exact), atol=1e-12)
    np.testing.assert_allclose(y[:, 3], 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("conditions", "y", "words"),
    [
        ({}, {"amplitude.x": [1.0, 2.0]}, "conditions: found {}"),
        ({"load.F.omega": [1.0]}, {"amplitude.x": [1.0, 2.0]}, "conditions.load.F.omega: found 1"),
        ({"load.F.omga": [1.0, 2.0]}, {"amplitude.x": [1.0, 2.0]}, "no parameter 'load.F.omga'"),
        ({"load.F.omega": [1.0, 2.0]}, {"amplitud.x": [1.0, 2.0]}, "is measured by amplitude.S"),
        ({"load.F.omega": [1.0, 2.0]}, {"amplitude.y": [1.0, 2.0]}, "no quantity 'y'"),
        ({"load.F.omega": [1.0, 2.0]}, {"mean.x(2)": [1.0, 2.0]}, "a mean has no harmonics"),
        ({"load.F.omega": [1.0, 2.0]}, {"amplitude.x(0)": [1.0, 2.0]}, "there are 1 to 100"),
        ({"load.F.omega": [1.0, 2.0]}, {"period": [1.0, 2.0]}, "is that of the load"),
        ({"friction.mu": [0.1, 0.2]}, {"amplitude.x": [1.0, 2.0]}, "set in each row"),
    ],
)
def test_bad_rows_are_one_sentence(conditions, y, words):
    free = {"friction.mu": jfric.Free(0.1, 0.3)}

    def fitted():
        rows = jfric.steady_states(conditions, y)
        return jfric.fit(shaken(), rows, free, residual=jfric.SteadyStates())

    with pytest.raises(jfric.ProblemError, match=words):
        fitted()


def test_rows_have_no_first_part():
    """They follow no time, so that the first of them are no shorter record."""
    rows = jfric.steady_states(CONDITIONS, {"amplitude.x": P})
    how = {"residual": jfric.SteadyStates(), "search": jfric.Global([1.0])}
    with pytest.raises(jfric.ProblemError, match="schedule: found one for residuals that are no"):
        jfric.fit(shaken(), rows, {"friction.mu": jfric.Free(0.05, 0.4)}, **how)


def test_samples_over_time_are_no_rows():
    data = jfric.Experiment(np.array([0.0, 0.1]), y={"amplitude.x": np.array([1.0, 2.0])})
    with pytest.raises(jfric.ProblemError, match="takes rows of jfric"):
        jfric.fit(
            shaken(), data, {"friction.mu": jfric.Free(0.1, 0.3)}, residual=jfric.SteadyStates()
        )


FILE = """
dofs = ["x"]
time = {end = 1.0}
mass = {dof = "x", m = 1.0}
spring = {dof = "x", k = 1.0}
[load]
dof = "x"
F = {harmonic = {amplitude = 1.0, omega = 1.0}}
[data.u]
"load.F.omega" = {column = "w", unit = "rpm"}
[data.y]
"amplitude.x" = {column = "a", unit = "mm"}
"phase.x" = {column = "p", unit = "deg"}
"""


def test_rows_of_a_file_have_units_and_missing_entries(tmp_path):
    config, rows = tmp_path / "o.toml", tmp_path / "rows.csv"
    config.write_text(FILE, encoding="utf-8")
    rows.write_text("w,a,p\n30,2,-90\n60,,-180\n", encoding="utf-8")
    (found,) = jfric.read_experiments(config, rows)
    assert found.u
    assert found.mask
    np.testing.assert_allclose(found.u["load.F.omega"], [math.pi, 2.0 * math.pi])
    np.testing.assert_allclose(found.y["phase.x"], [-0.5 * math.pi, -math.pi])
    assert found.y["amplitude.x"][0] == pytest.approx(2e-3)
    assert found.mask["amplitude.x"].tolist() == [True, False]
    config.write_text(FILE.replace("[data.u]", "[data]\nstart = 1.0\n[data.u]"), encoding="utf-8")
    with pytest.raises(jfric.ProblemError, match=r"data.start: found one without data.time"):
        jfric.read_experiments(config, rows)


@pytest.mark.slow
def test_friction_and_stiffness_from_amplitudes_and_phases():
    names: tuple[str, ...] = ("amplitude.x", "phase.x")
    y, _ = predicted(shaken(), CONDITIONS, names)
    sigma = {"amplitude.x": 0.01, "phase.x": 0.005}
    noise = np.random.default_rng(0).normal(size=y.shape) * list(sigma.values())
    # A turn more or less is the same phase.
    turns = np.column_stack([np.zeros(4), [0.0, 2.0 * math.pi, 0.0, -2.0 * math.pi]])
    free = {"friction.mu": jfric.Free(0.05, 0.4, init=0.1), "spring.k": jfric.Free(0.5, 2.0)}
    clean = jfric.steady_states(CONDITIONS, dict(zip(names, (y + turns).T, strict=True)))
    found = jfric.fit(shaken(), clean, free, residual=jfric.SteadyStates(), starts=1)
    assert found.values == pytest.approx({"friction.mu": 0.2, "spring.k": 1.0}, rel=1e-7)
    noisy: dict[str, np.ndarray] = dict(zip(names, (y + noise).T, strict=True))
    rows = jfric.steady_states(CONDITIONS, noisy, sigma=sigma)
    found = jfric.fit(shaken(), rows, free, residual=jfric.SteadyStates(), starts=1)
    errors = found.covariance("gauss-newton").standard_errors
    for name, truth in (("friction.mu", 0.2), ("spring.k", 1.0)):
        assert abs(found.values[name] - truth) < 4.0 * errors[name]
    again = jfric.FitResult.from_json(found.to_json())
    assert again.values == found.values


@pytest.mark.slow
def test_a_backbone_gives_stiffness_and_damping():
    """Rows of the phase -pi/2 at several loads: ``k = m w^2``, and the amplitude is ``P/(c w)``."""
    k, c, loads = 2.25, 0.08, np.array([0.5, 1.0, 2.0])
    w = np.full(3, math.sqrt(k))
    rows = jfric.steady_states(
        {"load.F.omega": w, "load.F.amplitude": loads},
        {"phase.x": np.full(3, -0.5 * math.pi), "amplitude.x": loads / (c * w)},
        sigma={"phase.x": 1e-3, "amplitude.x": 1e-2},
    )
    free = {"spring.k": jfric.Free(1.0, 4.0, init=2.0), "damper.c": jfric.Free(0.02, 0.3)}
    found = jfric.fit(shaken(mu=0.0), rows, free, residual=jfric.SteadyStates(), starts=1)
    assert found.values == pytest.approx({"spring.k": k, "damper.c": c}, rel=1e-8)


@pytest.mark.slow
def test_a_row_without_an_orbit_is_told():
    """A negative normal force ends the run of one row; the others are as they were."""
    problem = shaken()
    rows = jfric.steady_states(
        {"load.F.omega": [0.8, 0.9], "friction.N": [1.0, -1.0]}, {"amplitude.x": [2.0, 2.0]}
    )
    orbits = jfric.SteadyModel(problem, transient=4).orbits({}, rows)
    assert orbits.converged.tolist() == [True, False]


@pytest.mark.slow
def test_friction_of_a_belt_from_periods_and_amplitudes_of_its_limit_cycle():
    belt = jfric.load("configs/c4_belt.toml")
    speed = np.array([0.2, 0.3, 0.5])
    # The period of the closed form: stick and slip.
    period = 1.0 / speed + math.pi + 2.0 * np.arctan(2.0 * speed)
    rows = jfric.steady_states({"friction.belt": speed}, {"period": period}, sigma=1e-3)
    free = {"friction.mu_d": jfric.Free(0.3, 0.8, init=0.6)}
    found = jfric.fit(belt, rows, free, residual=jfric.SteadyStates(), starts=1)
    assert found.values["friction.mu_d"] == pytest.approx(0.5, rel=1e-8)
    wrong = jfric.steady_states({"friction.belt": speed}, {"phase.x": period})
    with pytest.raises(jfric.ProblemError, match="no load that it could be relative to"):
        jfric.fit(belt, wrong, free, residual=jfric.SteadyStates())


@pytest.mark.slow
def test_harmonics_are_those_of_the_first_load():
    """Two loads, whose common period is two of the first one."""
    loads = {
        "a": jfric.Load("x", jfric.Harmonic(1.0, 0.8)),
        "b": jfric.Load("x", jfric.Harmonic(0.5, 1.2)),
    }
    parts = {"mass": jfric.Mass("x", 1.0), "spring": jfric.Spring("x", 1.0), "load": loads}
    problem = jfric.Problem(("x",), parts | {"damper": jfric.Damper("x", 0.1)})
    from jfric.fits.data.stacking import stack

    c = np.array([0.1, 0.2])
    rows = jfric.steady_states({"damper.c": c}, {"amplitude.x": np.zeros(2)})
    data = jax.tree.map(lambda x: x[0], stack([rows], ("amplitude.x",), [0.0], [{}])[0])
    found = jfric.SteadyModel(problem, transient=4).simulate_outputs({}, data)
    np.testing.assert_allclose(found.y[:, 0], 1.0 / abs(0.36 + 0.8j * c), rtol=1e-10)
