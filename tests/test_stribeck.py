"""Friction that depends on the sliding velocity: curves, closed forms, units, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.files.read_toml import loads
from jfric.system.laws import LAWS, AbstractLaw

#: Error of the Runge-Kutta flow at its default tolerance, relative.
ACCURATE = 1e-8


def test_curves():
    v = jnp.array([0.0, 0.05, 0.1, 1.0, 100.0])
    tustin = jfric.Stribeck(0.4, 0.2, 0.1, exponent=1.0)
    np.testing.assert_allclose(tustin.kinetic(v)[0], 0.2 + 0.2 * np.exp(-v / 0.1), rtol=1e-15)
    viscous = jfric.Stribeck(0.4, 0.2, 0.1, mu_v=0.03)
    curve = 0.2 + 0.2 * np.exp(-((v / 0.1) ** 2)) + 0.03 * v
    np.testing.assert_allclose(viscous.kinetic(v)[1], curve, rtol=1e-15)
    leine = jfric.VelocityWeakening(1.0, 1 / 3)
    np.testing.assert_allclose(leine.kinetic(v)[0], 1 / (1 + 3 * v), rtol=1e-15)
    sided = jfric.Stribeck(jfric.Directional(0.4, 0.5), 0.2, jfric.Directional(0.1, 0.3))
    positive, negative = sided.kinetic(0.1)
    assert float(positive) == pytest.approx(0.2 + 0.2 / np.e, rel=1e-15)
    assert float(negative) == pytest.approx(0.2 + 0.3 * np.exp(-1 / 9), rel=1e-15)
    slope = jax.grad(lambda v: tustin.kinetic(v)[0])(0.0)
    assert float(slope) == pytest.approx(-0.2 / 0.1, rel=1e-15)
    for law in (tustin, viscous, leine, sided):
        # Sliding begins without a jump, and slopes are finite for every exponent.
        np.testing.assert_array_equal(jnp.stack(law.kinetic(0.0)), jnp.stack(law.static()))
    rough = jfric.Stribeck(0.4, 0.2, 0.1, exponent=0.5)
    assert np.isfinite(jax.grad(lambda v: rough.kinetic(v)[0])(0.0))


def block(law: AbstractLaw) -> jfric.Problem:
    """A block of 2 kg that slides to rest on the floor, from 3 m/s; N = 20 N."""
    return jfric.Problem(
        ("x",),
        {"mass": jfric.Mass("x", 2.0), "friction": jfric.Friction("x", law, N=20.0)},
        initial={"x": jfric.InitialState(v=3.0)},
        time=3.5,
    )


def test_viscous_part_stops_in_closed_form():
    """m dv/dt = -(a + b v) stops at (m/b) ln(1 + b v0/a)."""
    solution = jfric.simulate(block(jfric.Stribeck(0.3, 0.3, 0.1, mu_v=0.2)))
    stop = 2.0 / 4.0 * np.log(1 + 4.0 * 3.0 / 6.0)
    assert float(solution.events.time[0]) == pytest.approx(stop, rel=ACCURATE)
    assert solution.outcome() == "ok"
    assert [row["to"] for row in solution.event_table()] == ["stick"]
    assert float(solution.final.v[0]) == 0.0


@pytest.mark.slow
def test_hyperbolic_law_stops_in_closed_form():
    """m dv/dt = -mu_s N/(1 + v/v_s) stops at T = (m/mu_s N)(v0 + v0^2/(2 v_s)), with
    dT/dmu_s = -T/mu_s and dT/dv_s = -(m/mu_s N) v0^2/(2 v_s^2)."""
    problem = block(jfric.VelocityWeakening(0.4, 0.5))

    def stop(mu_s, v_s):
        changed = jfric.set_parameters(problem, {"friction.mu_s": mu_s, "friction.v_s": v_s})
        time = jfric.simulate(changed).events.time[0]
        return time, time

    slopes, time = jax.jit(jax.jacfwd(stop, argnums=(0, 1), has_aux=True))(0.4, 0.5)
    assert float(time) == pytest.approx(3.0, rel=ACCURATE)
    assert float(slopes[0]) == pytest.approx(-3.0 / 0.4, rel=1e-7)
    assert float(slopes[1]) == pytest.approx(-(2.0 / 8.0) * 9.0 / (2 * 0.25), rel=1e-7)


@pytest.mark.slow
def test_limit_cycle_with_a_unilateral_contact():
    """The belt of Leine et al., its normal force from a weight: friction then enters the
    reactions. Slip lasts 4.29599952548 s."""
    problem = jfric.Problem(
        ("x", "z"),
        {
            "mass": {"x": jfric.Mass("x", 1.0), "z": jfric.Mass("z", 1.0)},
            "spring": jfric.Spring("x", 1.0),
            "contact": jfric.Contact("z", "x", jfric.VelocityWeakening(1.0, 1 / 3), belt=0.2),
            "load": jfric.Load("z", -1.0),
        },
        initial={"x": jfric.InitialState(q=0.9, v=0.2)},
        time=6.0,
    )
    solution = jfric.simulate(problem, ts=np.linspace(0.0, 6.0, 31))
    np.testing.assert_allclose(solution.events.time[:2], [0.5, 4.79599952548], rtol=ACCURATE)
    assert float(solution.events.q[1, 0]) == pytest.approx(-0.54100635387, rel=ACCURATE)
    assert jfric.contact_residual(problem, solution).max() < ACCURATE
    assert jfric.motion_residual(problem, solution).max() < ACCURATE


def test_files_hold_the_laws_with_units():
    text = """
dofs = {phi = "rotation"}
time = {end = "1 s"}
[mass]
dof = "phi"
m = "1 kg*m^2"
[friction]
dof = "phi"
limit = "3 N*m"
mu_s = 1.0
mu_d = {positive = 0.5, negative = 0.6}
v_s = "30 deg/s"
mu_v = "0.1 s/rad"
"""
    law = loads(text).problem.section("friction")["friction"].law
    assert isinstance(law, jfric.Stribeck)
    assert float(law.v_s) == pytest.approx(np.pi / 6)
    assert float(law.exponent) == 2.0
    weakening = loads(text.replace("limit", 'law = "velocity-weakening"\nlimit')).problem
    assert isinstance(weakening.section("friction")["friction"].law, jfric.VelocityWeakening)
    for problem in (loads(text).problem, weakening):
        again = loads(jfric.to_toml(problem)).problem
        assert jax.tree.structure(again) == jax.tree.structure(jfric.build(problem))
    for old, new, sentence in (
        ('"30 deg/s"', '"0.1 m/s"', r"friction.v_s: found 'm/s' \(a velocity\), expected an ang"),
        ('"30 deg/s"', "0", "friction.v_s: found 0, must be positive"),
        ('"0.1 s/rad"', '"-0.1 s/rad"', "friction.mu_v: found -0.1, must not be negative"),
    ):
        with pytest.raises(jfric.ProblemError, match=sentence):
            loads(text.replace(old, new))


def test_friction_that_rises_from_rest():
    """A load between both coefficients drives the block at the speed of equal friction."""
    law = jfric.Stribeck(mu_s=0.4, mu_d=0.6, v_s=0.1)
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "friction": jfric.Friction("x", law, N=1.0),
        "load": jfric.Load("x", 0.5),
    }
    problem = jfric.Problem(["x"], elements, time=20.0)
    final = jfric.simulate(problem).check().final
    np.testing.assert_allclose(final.v[0], 0.1 * np.sqrt(np.log(2.0)), rtol=1e-6)

    def speed(load):
        return jfric.simulate(jfric.set_parameters(problem, {"load.F": load})).final.v[0]

    held, driven = jax.jit(jax.vmap(speed))(jnp.array([0.39, 0.41]))
    assert held == 0.0
    np.testing.assert_allclose(driven, 0.1 * np.sqrt(np.log(0.2 / 0.19)), rtol=1e-4)


def test_the_exact_flow_refuses_them_by_name():
    assert {name for name, law in LAWS.items() if not law.velocity_independent} == {
        "stribeck",
        "velocity-weakening",
        "curve",
        "contensou",
    }
    law = jfric.VelocityWeakening(0.4, 0.5)
    with pytest.raises(jfric.ProblemError, match="VelocityWeakening is not; use flow="):
        jfric.simulate(block(law), jfric.EventDriven(flow="exact"))
