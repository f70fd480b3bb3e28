"""Largest Lyapunov exponents: closed forms, through impacts and stick, as sweeps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from systems_periodic import ball_on_table, damped
from typer.testing import CliRunner

import jfric
from jfric import ProblemError
from jfric.cli.main import app


@pytest.mark.parametrize(("c", "k"), [(0.2, 4.0), (5.0, 4.0)])
def test_a_linear_system_has_the_real_part_of_its_slowest_root(c, k):
    found = jfric.lyapunov_exponent(damped(c, k), intervals=2000, skip=20, parts=4)
    slowest = max(np.roots([1.0, c, k]).real)
    # Vibrating, the length goes up and down on the way: what that leaves falls with the intervals.
    assert float(found.value) == pytest.approx(slowest, abs=1e-12 if c > 4 else 2e-4)
    assert found.status == jfric.Status.OK


def test_two_masses_have_that_of_the_slower_one():
    problem = jfric.Problem(
        ["a", "b"],
        {
            "mass": {"a": jfric.Mass("a", 1.0), "b": jfric.Mass("b", 1.0)},
            "spring": {"a": jfric.Spring("a", 1.0), "b": jfric.Spring("b", 1.0)},
            "damper": {"a": jfric.Damper("a", 3.0), "b": jfric.Damper("b", 5.0)},
        },
    )
    found = jfric.lyapunov_exponent(problem, 0.5, intervals=50, skip=150, parts=2)
    slowest = max(*np.roots([1.0, 3.0, 1.0]).real, *np.roots([1.0, 5.0, 1.0]).real)
    np.testing.assert_allclose(found.parts, slowest, rtol=1e-10)


@pytest.mark.slow
def test_impacts_multiply_by_the_multipliers_of_the_orbit():
    # The motion with one impact in each period is a focus whose multipliers have the modulus e.
    found = jfric.lyapunov_exponent(ball_on_table(0.4), 1.0, intervals=4000, parts=4)
    assert float(found.value) == pytest.approx(np.log(0.8), abs=2e-3)
    assert abs(float(found.value) - np.log(0.8)) < 4 * float(found.error)
    # Nearer to the doubling both are real: the larger of them, to all digits.
    gamma, g, e = 1.065, 9.81, 0.8
    amplitude = gamma * g / (2 * np.pi) ** 2
    cosine = (1 - e) / (1 + e) * g / 2 / (amplitude * 2 * np.pi)
    total = 1 + e**2 - (1 + e) ** 2 * gamma * np.sqrt(1 - cosine**2)
    largest = max(abs(np.roots([1.0, -total, e**2])))
    found = jfric.lyapunov_exponent(ball_on_table(gamma), 1.0, intervals=100, skip=300, parts=2)
    np.testing.assert_allclose(found.parts, np.log(largest), rtol=1e-8)


def test_a_ball_on_a_strongly_shaken_table_is_chaotic():
    found = jfric.lyapunov_exponent(ball_on_table(4.0), 1.0, intervals=2000, parts=8)
    assert found.status == jfric.Status.OK
    assert float(found.value) > 10 * float(found.error) > 0.0
    assert np.all(np.asarray(found.parts) > 0.2)


@pytest.mark.slow
def test_stick_leaves_the_derivative_of_the_map_over_a_period():
    # One degree of freedom that stops and goes on in each period: one multiplier is zero.
    problem = damped(0.05, friction=jfric.Friction("x", limit=0.7))
    found = jfric.lyapunov_exponent(problem, intervals=40, skip=40, parts=2)
    assert found.status == jfric.Status.OK
    period = 2 * np.pi

    def after(x, periods):
        moved = {"initial.x.q": x[0], "initial.x.v": x[1]}
        final = jfric.simulate(jfric.set_parameters(problem, moved), end=periods * period).final
        return jnp.stack([final.q[0], final.v[0]])

    at = after(jnp.zeros(2), 60.0)
    multipliers = np.sort(np.abs(np.linalg.eigvals(jax.jacfwd(after)(at, 1.0))))
    assert multipliers[0] < 1e-12 < 1e-4 < multipliers[1] < 1.0
    np.testing.assert_allclose(found.parts, np.log(multipliers[1]) / period, rtol=1e-9)


@pytest.mark.slow
def test_motions_that_become_one_have_no_finite_exponent():
    # A table that shakes less than gravity: the ball comes to rest on it, wherever it fell from.
    found = jfric.lyapunov_exponent(ball_on_table(0.5, e=0.2), 1.0, intervals=20, skip=20, parts=2)
    assert found.status == jfric.Status.OK
    assert float(found.value) == -np.inf


def test_what_is_held_by_friction_stays_where_it_is():
    held = damped(friction=jfric.Friction("x", limit=9.0))
    kept = jfric.lyapunov_exponent(held, intervals=40, parts=2)
    np.testing.assert_allclose(kept.parts, 0.0, atol=1e-12)


SYSTEM = """
dofs = ["x"]
time = {end = 1}
mass = {dof = "x", m = 1}
damper = {dof = "x", c = 1}
spring = {dof = "x", k = 4}
load = {dof = "x", F = {harmonic = {amplitude = 1, omega = 1}}}
"""


@pytest.mark.slow
def test_over_parameters_it_is_a_sweep():
    dampers = [0.5, 5.0, 6.0]
    table = jfric.lyapunov_exponents(
        damped(5.0), {"damper.c": dampers}, intervals=400, parts=2, progress=False
    )
    means = table["lyapunov_exponent"]
    assert means.dims == ("damper.c", "part")
    assert means.attrs["units"] == "1/s"
    assert np.all(table["status"].values == 0)
    exact = [max(np.roots([1.0, c, 4.0]).real) for c in dampers]
    np.testing.assert_allclose(means.values.mean(axis=1), exact, atol=2e-3)
    one = jfric.lyapunov_exponent(damped(6.0), intervals=400, parts=2)
    np.testing.assert_allclose(one.parts, means.values[2], rtol=1e-12)


def test_the_command_draws_on_request_only(tmp_path):
    """Overdamped, the slowest root of ``x'' + 5 x' + 4 x = 0``."""
    (tmp_path / "system.toml").write_text(SYSTEM)
    command = ["lyapunov", str(tmp_path / "system.toml"), "--vary", "damper.c=[5]"]
    command += ["--interval", "1 s", "--intervals", "40", "--parts", "2", "--skip", "10"]
    found = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "exponents")])
    assert found.exit_code == 0, found.output
    kept = jfric.open_sweep(tmp_path / "exponents")
    np.testing.assert_allclose(kept["lyapunov_exponent"], -1.0, atol=1e-9)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["exponents", "system.toml"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: jfric.lyapunov_exponent(damped(), "impact"), "interval: found 'impact'"),
        (lambda: jfric.lyapunov_exponent(damped(), 0.0), "section: found an interval of 0 s"),
        (lambda: jfric.lyapunov_exponent(damped(), parts=0), "parts: found 0"),
        (lambda: jfric.lyapunov_exponent(damped(), intervals=3), "intervals: found 3"),
        (
            lambda: jfric.lyapunov_exponent(damped(), solver=jfric.MoreauJean(1e-3)),
            "knows its motion at outputs only",
        ),
        (
            lambda: jfric.lyapunov_exponents(damped(), {"damper.d": [1.0]}),
            "vary: no parameter 'damper.d'",
        ),
    ],
)
def test_bad_input_is_one_sentence(call, said):
    with pytest.raises(ProblemError) as error:
        call()
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_observable_that_runs_the_solver_by_itself_is_alone():
    from jfric.periodic.lyapunov import LyapunovExponent
    from jfric.periodic.sections import make_section

    measure = LyapunovExponent(make_section(damped(), "period"), intervals=5, skip=0)
    with pytest.raises(ProblemError, match="observe it alone"):
        jfric.observe(damped(), [measure, jfric.observables.StopTime()])
    with pytest.raises(ProblemError, match="observe it alone"):
        jfric.sweep(damped(), {"damper.c": [1.0]}, [measure, jfric.observables.StopTime()])
