"""Branches that leave a path of periodic motions, against independent solutions."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app

AMPLITUDE = "base.table.displacement.amplitude"


def oscillator() -> jfric.Problem:
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "damper": jfric.Damper("x", 0.2),
            "polynomial_spring": jfric.PolynomialSpring("x", [1.0, 0.0, 1.0]),
            "load": jfric.Load("x", jfric.Harmonic(5.0, 1.0)),
        },
    )


def test_branches_leave_flips_and_branch_points_only():
    def point(kind, parameter):
        nothing = np.zeros(2)
        return jfric.OrbitPoint(kind, parameter, nothing, 1.0, nothing.astype(complex), 0)

    for given, options, words in (
        (point("fold", 2.0), {}, "from_: found a point of the kind 'fold'"),
        (point("flip", 5.0), {}, "outside the interval from 1 to 3"),
        (point("flip", 2.0), {"side": 0}, "side: found 0"),
        (point("flip", 2.0), {"state": [0.0, 0.0]}, "together with orbit or state"),
    ):
        with pytest.raises(jfric.ProblemError, match=words):
            jfric.continue_orbit(oscillator(), "load.F.amplitude", 1.0, 3.0, from_=given, **options)


@pytest.mark.slow
def test_a_ball_bounces_in_pairs_behind_the_flip():
    """Two flights in two periods, by their parabolas; multipliers have the product e^4."""
    ball, g, w, e = jfric.load("configs/p1_ball.toml"), 9.81, 2.0 * math.pi, 0.8
    size = g / w**2
    first = jfric.periodic_orbit(ball, start=jnp.array([0.4, -4.5]))
    up = jfric.continue_orbit(ball, AMPLITUDE, 0.9 * size, 1.1 * size, orbit=first)
    (flip,) = up.points("flip")
    path = jfric.continue_orbit(ball, AMPLITUDE, 0.9 * size, 1.2 * size, from_=flip)
    assert path.parameter.min() > flip.parameter
    np.testing.assert_allclose(path.period, 2.0)
    assert path.stable.all()
    for row in (len(path.parameter) // 2, -1):
        orbit = jax.tree.map(lambda x, row=row: x[row], path.orbits)
        A = path.parameter[row]

        def off(x, A=A):
            t, v = np.asarray(x[:2]), x[2:]
            later = np.append(t[1:], t[0] + 2.0)
            flight = later - t
            arrives = v - g * flight
            lands = A * np.sin(w * t) + v * flight - 0.5 * g * flight**2 - A * np.sin(w * later)
            leaves = (1.0 + e) * A * w * np.cos(w * later) - e * arrives
            return [*lands, leaves[0] - v[1], leaves[1] - v[0]]

        times = [event["time"] for event in orbit.event_table()]
        found = fsolve(off, [*times, 0.5 * g, 0.5 * g], xtol=1e-13)
        # At rounding it may end without saying that it converged.
        assert np.abs(off(found)).max() < 1e-12
        assert abs((found[1] - found[0]) % 2.0 - 1.0) > 0.01
        np.testing.assert_allclose(times, found[:2], atol=1e-10)
        assert abs(np.prod(orbit.multipliers)) == pytest.approx(e**4, rel=1e-10)


@pytest.mark.slow
def test_both_sides_of_a_broken_symmetry():
    """Motions against an integration by SciPy; one side is the other, half a period later and
    turned round."""
    problem, name = oscillator(), "load.F.amplitude"
    path = jfric.continue_orbit(problem, name, 2.5, 4.0, transient=30)
    (point,) = path.points("branch point")
    sides = [
        jfric.continue_orbit(problem, name, 2.5, 4.0, from_=point, side=side) for side in (1, -1)
    ]
    for side in sides:
        assert side.parameter[-1] == pytest.approx(4.0)
        mean = abs(side.harmonics("x", 1)[:, 0])
        # The mean grows with the root of the distance.
        assert mean[0] < 0.05
        assert mean[-1] > 0.2

    def right(t, y):
        return [y[1], -0.2 * y[1] - y[0] - y[0] ** 3 + 4.0 * np.sin(t)]

    start = sides[0].state[-1]
    span = float(sides[0].orbits.problem.time.start[-1]) + np.array([0.0, np.pi, 2.0 * np.pi])
    run = solve_ivp(right, span[[0, 2]], start, "DOP853", span, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(run.y[:, 2], start, atol=1e-9)
    np.testing.assert_allclose(run.y[:, 1], -sides[1].state[-1], atol=1e-9)


@pytest.mark.slow
def test_branches_and_curves_on_the_command_line(tmp_path):
    """The file names the parameter; the branch behind the flip, and the flip over restitution."""
    command = ["periodic", "configs/p1_ball.toml", "--out", str(tmp_path), "--branch", "flip(1)"]
    command += ["--curve", "flip(1)", "--over", "contact.e=0.75:3", "--plot"]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    branch = np.genfromtxt(tmp_path / "flip-1" / "orbits-001.csv", delimiter=",", names=True)
    assert branch["period"] == pytest.approx(2.0)
    curve = np.genfromtxt(tmp_path / "curve-001.csv", delimiter=",", names=True)
    e, flip = curve["contacte"], curve["basetabledisplacementamplitude"]
    exact = np.hypot(2.0 * (1.0 + e**2) / (1.0 + e) ** 2, math.pi * (1.0 - e) / (1.0 + e))
    np.testing.assert_allclose(flip * (2.0 * math.pi) ** 2 / 9.81, exact, atol=1e-9)
    assert (tmp_path / "orbits-001.png").exists()


def test_branches_and_curves_that_are_none_are_one_sentence():
    for options, words in (
        (["--branch", "flap(1)"], "did you mean 'flip'"),
        (["--branch", "flip"], "expected KIND(NUMBER) such as flip(1)"),
        (["--curve", "flip(1)"], "--over: not given"),
        (["--over", "contact.e=0.7"], "--curve: not given"),
        (["--curve", "flip(1)", "--over", "contact.f=0.7"], "did you mean 'contact.e'"),
        (["--curve", "flip(1)", "--over", "contact.e=0.7:1"], "its number of values"),
    ):
        found = CliRunner().invoke(app, ["periodic", "configs/p1_ball.toml", *options])
        assert found.exit_code == 2
        assert words in " ".join(found.output.split())
    found = CliRunner().invoke(app, ["periodic", "configs/c4_belt.toml", "--branch", "flip(1)"])
    assert found.exit_code == 2
    assert "--parameter: not given" in " ".join(found.output.split())
