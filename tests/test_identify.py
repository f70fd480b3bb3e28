"""Fits of synthetic data: traps, bounds, sensors, bad input."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import jfric

T = np.linspace(0.0, 4.0, 400)


@functools.cache
def oscillator():
    """VE0116."""
    elements = {
        "mass": jfric.Mass("u", 100.0),
        "spring": jfric.Spring("u", 5000.0),
        "friction": jfric.Friction("u", jfric.Coulomb(0.1), N=1000.0),
        "load": jfric.Load("u", 1500.0),
    }
    return jfric.Problem(["u"], elements, time=4.0)


@functools.cache
def measured(noise: float = 0.0056) -> jfric.Experiment:
    """VE0116 at mu = 0.11 with noise of 1 % of the peak."""
    true = jfric.set_parameters(oscillator(), {"friction.mu": 0.11})
    y = np.asarray(jfric.simulate(true, ts=jnp.asarray(T)).q[:, 0])
    y = y + noise * np.random.default_rng(1).normal(size=y.size)
    return jfric.Experiment(T, y={"u": y}, sigma=noise)


FREE = {"friction.mu": jfric.Free(0.01, 2.0, init=1.7), "spring.k": jfric.Free(3e3, 8e3)}


@functools.cache
def fitted() -> jfric.FitResult:
    return jfric.fit(oscillator(), measured(), FREE)


def test_start_where_everything_sticks_is_recovered():
    stuck = [w for w in fitted().waterfall if w["start"]["friction.mu"] == pytest.approx(1.7)]
    assert stuck[0]["outcome"] == 5  # no gradient
    # 4 standard errors of the estimate at this noise.
    assert fitted().values["friction.mu"] == pytest.approx(0.11, abs=4 * 3e-4)
    assert fitted().values["spring.k"] == pytest.approx(5000.0, abs=4 * 3.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": {"u": np.zeros(399)}}, ["y.u", "399", "400"]),
        ({"y": {"u": np.where(np.arange(400) == 7, np.nan, 0.0)}}, ["y.u", "sample 7", "mask"]),
        ({"y": {"x": np.zeros(400)}}, ["y.x", "there are u"]),
        ({"t": T[::-1], "y": {"u": T}}, ["t:", "increase"]),
        ({"y": {"u": T}, "sigma": 0.0}, ["sigma.u", "positive"]),
        ({"y": {"u": T}, "x0": {"w": 1.0}}, ["x0.w", "degree of freedom"]),
        ({"y": {"u": T}, "u": {"load.G": T}}, ["u.load.G", "load.F"]),
    ],
)
def test_bad_data_are_refused_in_one_sentence(change, words):
    with pytest.raises(jfric.ProblemError) as error:
        jfric.fit(oscillator(), jfric.Experiment(**({"t": T} | change)), FREE)
    message = str(error.value)
    assert "\n" not in message
    assert all(word in message for word in words), message
