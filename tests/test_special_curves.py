"""Curves of folds, flips and grazing in two parameters, against closed forms."""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
import numpy as np
import pytest

import jfric

AMPLITUDE, RESTITUTION = "base.table.displacement.amplitude", "contact.e"
SIZE = 9.81 / (2.0 * math.pi) ** 2


@functools.cache
def ball() -> tuple[jfric.Problem, jfric.PeriodicOrbit]:
    problem = jfric.load("configs/p1_ball.toml")
    return problem, jfric.periodic_orbit(problem, start=jnp.array([0.4, -4.5]))


def test_bad_curves_are_one_sentence():
    problem = jfric.load("configs/p2_grazing.toml")

    def point(kind):
        nothing = np.zeros(2)
        return jfric.OrbitPoint(kind, 0.1, nothing, 1.0, nothing.astype(complex), 0)

    amplitude, omega = "load.F.amplitude", "load.F.omega"
    for kind, second, stop, words in (
        ("end", omega, 2.0, "found one of the kind 'end'"),
        ("fold", amplitude, 2.0, "the parameter of the path itself"),
        ("fold", omega, 1.0, "must differ from load.F.omega = 1"),
        ("fold", "load.F.omga", 2.0, "did you mean 'load.F.omega'"),
    ):
        with pytest.raises(jfric.ProblemError, match=words):
            jfric.continue_special(problem, amplitude, point(kind), second, stop)


@pytest.mark.slow
def test_the_flip_of_a_bouncing_ball_over_restitution():
    problem, orbit = ball()
    path = jfric.continue_orbit(problem, AMPLITUDE, 1.0 * SIZE, 1.1 * SIZE, orbit=orbit)
    (flip,) = path.points("flip")
    curve = jfric.continue_special(problem, AMPLITUDE, flip, RESTITUTION, 0.7, points=6)
    assert not curve.remarks
    e = curve.second
    exact = np.hypot(2.0 * (1.0 + e**2) / (1.0 + e) ** 2, math.pi * (1.0 - e) / (1.0 + e))
    np.testing.assert_allclose(curve.parameter / SIZE, exact, atol=1e-9)
    np.testing.assert_allclose(curve.multipliers[:, 0], -1.0, atol=1e-8)


@pytest.mark.slow
def test_the_fold_of_a_bouncing_ball_over_restitution():
    problem, orbit = ball()
    path = jfric.continue_orbit(problem, AMPLITUDE, 0.4 * SIZE, 0.3 * SIZE, orbit=orbit)
    (fold,) = path.points("fold")
    curve = jfric.continue_special(problem, AMPLITUDE, fold, RESTITUTION, 0.7, points=6)
    assert not curve.remarks
    e = curve.second
    exact = math.pi * (1.0 - e) / (1.0 + e)
    np.testing.assert_allclose(curve.parameter / SIZE, exact, atol=1e-9)


@pytest.mark.slow
def test_grazing_over_frequency():
    wall = jfric.load("configs/p2_grazing.toml")
    path = jfric.continue_orbit(wall, "load.F.amplitude", 0.09, 0.11)
    (change,) = path.points("event change")
    curve = jfric.continue_special(wall, "load.F.amplitude", change, "load.F.omega", 0.8, points=6)
    assert not curve.remarks
    w = curve.second
    np.testing.assert_allclose(curve.parameter, np.hypot(1.0 - w**2, 0.1 * w), atol=1e-9)


@pytest.mark.slow
def test_the_fold_of_a_limit_cycle_without_a_load():
    """``x'' = -x + v (mu + a E - E^2)`` with ``E = x^2 + v^2`` goes round circles, exactly, of
    which two meet at ``E = a/2``."""
    mu, a = "force_field.parameters.mu", "force_field.parameters.a"

    def force(t, q, v, p):
        E = q**2 + v**2
        return v * (p["mu"] + p["a"] * E - E**2)

    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 1.0),
        "force_field": jfric.ForceField(force, {"mu": -0.2, "a": 1.0}),
    }
    problem = jfric.Problem(["x"], elements)
    start = jnp.array([math.sqrt(0.5 + math.sqrt(0.05)), 0.0])
    orbit = jfric.periodic_orbit(problem, 2.0 * math.pi, start=start).check()
    path = jfric.continue_orbit(problem, mu, -0.2, -0.3, orbit=orbit)
    (fold,) = path.points("fold")
    assert fold.parameter == pytest.approx(-0.25, abs=1e-8)
    curve = jfric.continue_special(problem, mu, fold, a, 1.1, points=3)
    assert not curve.remarks
    np.testing.assert_allclose(curve.parameter, -0.25 * np.array([1.0, 1.05, 1.1]) ** 2, atol=1e-7)
