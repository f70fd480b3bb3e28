"""What is taken from a trajectory: one meaning in checks, runs, sweeps and ``observe``."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jfric
from jfric.config.load import load_config
from jfric.verification.configs import shipped

EXACT = 1e-12


@functools.cache
def load_cycle() -> jfric.Problem:
    """VE0061: 0, 900 N, 0 on a spring of 6000 N/m with a limit of 300 N."""
    return load_config(shipped("ve0061")).problem


def test_integrals_of_load_histories_are_exact():
    """Slides from 1/3 s to 0.1 m at 1 s, sticks to 5/3 s, slides back to 0.05 m at 2 s."""
    names = "dissipated, mean.u, rms.u, stick_fraction, max.u, max.lambda_t, u(1.5)"
    found = jfric.observe(load_cycle(), names, jfric.QuasiStatic())
    expected = {
        "dissipated": 300.0 * 0.15,
        "mean.u": 0.125 / 2,
        "rms.u": np.sqrt(0.01 * (2 / 9 + 2 / 3 + 7 / 36) / 2),
        "stick_fraction": 0.5,
        "max.u": 0.1,
        "max.lambda_t": 300.0,
        "u(1.5)": 0.1,
    }
    assert int(found.status) == jfric.Status.OK
    for name, value in expected.items():
        np.testing.assert_allclose(found.values[name], value, rtol=EXACT, err_msg=name)


def test_jumps_of_a_load_dissipate():
    """From 10 m back to 8 m at the start, and to 3 m when the load drops, against 30 N."""
    elements = {
        "spring": jfric.Spring("u", 10.0),
        "friction": jfric.Friction("u", jfric.Coulomb(0.3), N=100.0),
        "load": jfric.Load("u", jfric.Steps([1.0], [50.0, 0.0])),
    }
    initial = {"u": jfric.InitialState(q=10.0)}
    problem = jfric.Problem(("u",), elements, time=2.0, initial=initial)
    names = "dissipated, dissipated.friction, mean.u, max.u, min.u, final.u, u(1)"
    found = jfric.observe(problem, names, jfric.QuasiStatic()).values
    expected = {
        "dissipated": 30.0 * 7.0,
        "dissipated.friction": 30.0 * 7.0,
        "mean.u": 5.5,
        "max.u": 10.0,
        "min.u": 3.0,
        "final.u": 3.0,
        "u(1)": 3.0,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=EXACT, err_msg=name)


def test_work_of_many_sliders_balances():
    """Energy stored and dissipated is the work of the load and of a belt."""
    times, force = [0.0, 1.0, 3.0, 4.0, 5.0], [0.0, 20.0, -20.0, 10.0, -5.0]
    problem = jfric.Problem(
        ("u", "w"),
        {
            "spring": {"own": jfric.Spring("u", 5.0), "link": jfric.Spring(("u", "w"), 3.0)},
            "friction": {
                "a": jfric.Friction("w", limit=4.0),
                "b": jfric.Friction("u", limit=2.0, belt=jfric.Constant(0.5)),
            },
            "load": jfric.Load("u", jfric.PiecewiseLinear(times, force)),
        },
        time=5.0,
    )
    power = jfric.observables.Integral(lambda x: x.v[0] * x.problem.section("load")["load"].F(x.t))
    driven = jfric.observables.Integral(lambda x: x.lambda_t[1] * 0.5)
    names = {"heat": "dissipated", "work": power, "belt": driven, "u": "final.u", "w": "final.w"}
    found = jfric.observe(problem, names, jfric.QuasiStatic()).values
    u, w = found["u"], found["w"]
    stored = 0.5 * 5.0 * u**2 + 0.5 * 3.0 * (w - u) ** 2
    # lambda_T acts on the body: against the sliding velocity, and along the belt.
    np.testing.assert_allclose(found["heat"], found["work"] + found["belt"] - stored, rtol=1e-11)


def test_integrals_of_load_histories_have_derivatives():
    """Heat mu N (u1 + (u1 - u2)) with u1 = (900 - mu N) / k and u2 = mu N / k."""

    def heat(mu):
        changed = jfric.set_parameters(load_cycle(), {"friction.mu": mu})
        return jfric.observe(changed, "dissipated", jfric.QuasiStatic()).values["dissipated"]

    exact = lambda mu: mu * 1e3 * (1800.0 - 3e3 * mu) / 6e3  # noqa: E731
    for derivative in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(derivative(heat)(0.2), jax.grad(exact)(0.2), rtol=1e-10)
    np.testing.assert_allclose(jax.vmap(heat)(jnp.array([0.2, 0.4])), exact(np.array([0.2, 0.4])))
