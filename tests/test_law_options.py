"""Options of laws and schemes: break-away peak, limited damper of a stop, weight of sliding."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references.bouncing import bounced
from scipy.integrate import solve_ivp

import jfric
from jfric.files.read_toml import loads

jax.config.update("jax_enable_x64", True)

STEPPING = [jfric.MoreauJean(1e-4), jfric.StabilisedMidpoint(1e-4)]


def _same(problem: jfric.Problem) -> None:
    """A problem survives being written and read."""
    read = loads(jfric.to_toml(problem)).problem
    assert jax.tree.structure(read) == jax.tree.structure(jfric.build(problem))
    for a, b in zip(jax.tree.leaves(read), jax.tree.leaves(problem), strict=True):
        np.testing.assert_array_equal(a, b)


# A peak of friction at break-away.


def _pushed(law: jfric.Stribeck, end: float = 10.0) -> jfric.Problem:
    """Mass 2 under N = 10, pushed by t."""
    push = jfric.PiecewiseLinear([0.0, 100.0], [0.0, 100.0])
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 2.0),
            "friction": jfric.Friction("x", law, N=10.0),
            "load": jfric.Load("x", push),
        },
        time=end,
    )


@pytest.mark.parametrize("solver", [jfric.EventDriven(), *STEPPING])
def test_stick_holds_up_to_the_peak(solver):
    """peak mu_s N = 6 is reached at t = 6; then mu_s N = 4 acts: dv/dt = (t - 4)/2."""
    law = jfric.Stribeck(0.4, 0.4, 0.1, peak=1.5)
    ts = jnp.asarray([5.99, 7.0])
    solution = jfric.simulate(_pushed(law, end=7.0), solver, ts=ts)
    assert int(solution.status) == 0
    assert float(solution.events.time[0]) == pytest.approx(6.0, abs=2e-4)
    assert float(solution.q[0, 0]) == 0.0
    assert float(solution.v[1, 0]) == pytest.approx((3.0**2 - 2.0**2) / 4.0, abs=1e-3)


@pytest.mark.slow
def test_a_peak_of_one_is_no_peak_and_sides_may_differ():
    plain, one = jfric.Stribeck(0.4, 0.2, 0.1), jfric.Stribeck(0.4, 0.2, 0.1, peak=1.0)
    end = [jfric.simulate(_pushed(law, end=6.0)).final.q for law in (plain, one)]
    np.testing.assert_allclose(end[0], end[1], rtol=1e-12)
    sided = jfric.Stribeck(0.4, 0.2, 0.1, peak=jfric.Directional(1.5, 2.0))
    np.testing.assert_allclose(jnp.stack(sided.static()), [0.6, 0.8])
    np.testing.assert_allclose(jnp.stack(sided.kinetic(0.0)), [0.4, 0.4])
    for law in (plain, one, sided):
        _same(_pushed(law))


def test_a_peak_in_a_file():
    text = """
    dofs = ["x"]
    time = {end = 1}
    mass = {dof = "x", m = 1}
    friction = {dof = "x", N = 10, mu_s = 0.4, mu_d = 0.2, v_s = "5 cm/s", peak = 1.25}
    """
    law = loads(text).problem.elements["friction"]["friction"].law  # type: ignore[attr-defined]
    assert isinstance(law, jfric.Stribeck)
    assert float(law.static()[0]) == pytest.approx(0.5)
    with pytest.raises(jfric.ProblemError, match=r"friction.peak: found 0.9, must be at least 1"):
        loads(text.replace("1.25", "0.9"))
    # A path of equilibria would have gaps at the drop.
    assert law.drops_at_onset


# A stop whose damper never exceeds its spring.


def _hit(v: float, c: float, pushed: float = 0.0) -> jfric.Problem:
    """A unit mass that meets a stop of k = 100 at x = 0.1 from x = 0."""
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "stop": jfric.Stop("x", 100.0, gap=0.1, c=c, release="limited"),
            "load": jfric.Load("x", pushed),
        },
        initial={"x": jfric.InitialState(0.0, v)},
        time=1.0,
    )


def _force(x, v, c):
    p = np.maximum(x - 0.1, 0.0)
    return 100.0 * p + np.clip(c * v, -100.0 * p, 100.0 * p)


@pytest.mark.slow  # its sibling: a stop without inertia, and the force of a stop
@pytest.mark.parametrize(
    ("v", "c", "pushed"),
    [
        (0.5, 8.0, 3.0),
        *(
            pytest.param(*stop, marks=pytest.mark.slow)
            for stop in ((1.0, 4.0, 0.0), (2.0, 30.0, 0.0), (1.0, 0.0, 0.0))
        ),
    ],
)
def test_a_limited_stop_against_an_integrator_at_tight_tolerance(v, c, pushed):
    ts = np.linspace(0.0, 1.0, 41)
    expected = solve_ivp(
        lambda t, y: [y[1], pushed - _force(y[0], y[1], c)],
        (0.0, 1.0), [0.0, v], method="DOP853", t_eval=ts, rtol=1e-12, atol=1e-13, max_step=1e-3,
    )  # fmt: skip
    problem = _hit(v, c, pushed)
    for flow in ("exact", "runge-kutta"):
        solution = jfric.simulate(problem, jfric.EventDriven(flow=flow), ts=jnp.asarray(ts))
        assert int(solution.status) == 0
        np.testing.assert_allclose(solution.q[:, 0], expected.y[0], atol=1e-8)
        np.testing.assert_allclose(solution.v[:, 0], expected.y[1], atol=1e-7)
    stepped = jfric.simulate(problem, jfric.MoreauJean(1e-4), ts=jnp.asarray(ts))
    np.testing.assert_allclose(stepped.q[:, 0], expected.y[0], atol=1e-3)
    _same(problem)


@pytest.mark.slow
def test_an_impact_turns_the_damper_of_a_limited_stop():
    """Its damper limits the force one way before the impact and the other way after it: the run
    ended there, as no mode was found. What an impact alone turns has derivatives."""
    parts = {
        "mass": jfric.Mass("y", 1.0),
        "load": jfric.Load("y", -3.0),
        "contact": jfric.Contact("y", e=0.7),
        "stop": jfric.Stop({"y": -1.0}, 50.0, gap=-0.1, c=8.0, release="limited"),
    }
    start = {"y": jfric.InitialState(0.3, -0.5)}
    problem = jfric.Problem(["y"], parts, initial=start, time=0.6)

    def moved(e):
        solution = jfric.simulate(jfric.set_parameters(problem, {"contact.e": e}))
        return jnp.stack([solution.final.q[0], solution.final.v[0]]), solution.flags

    def rate(t, y):
        p = max(0.1 - y[0], 0.0)
        return [y[1], -3.0 + 50.0 * p + np.clip(-8.0 * y[1], -50.0 * p, 50.0 * p)]

    (found, flags), (slope, _) = jax.jvp(moved, (0.7,), (1.0,))
    expected, more, less = (bounced(rate, [0.3, -0.5], 0.6, e=e) for e in (0.7, 0.7001, 0.6999))
    assert int(flags) == 0
    np.testing.assert_allclose(found, expected, atol=1e-7)
    np.testing.assert_allclose(slope, (more - less) / 2e-4, atol=1e-5)


@pytest.mark.slow
def test_a_limited_stop_neither_pulls_nor_hits():
    solution = jfric.simulate(_hit(2.0, 30.0), ts=jnp.linspace(0.0, 1.0, 2001))
    x, a = np.asarray(solution.q[:, 0]), np.asarray(solution.a[:, 0])
    assert a.max() <= 1e-9
    np.testing.assert_array_less(-a, 200.0 * np.maximum(x - 0.1, 0.0) + 1e-6)


def test_a_limited_stop_without_inertia_is_its_spring():
    """10 x + 100 (x - 0.1) = 4."""
    problem = jfric.Problem(
        ["x"],
        {
            "spring": jfric.Spring("x", 10.0),
            "stop": jfric.Stop("x", 100.0, gap=0.1, c=5.0, release="limited"),
            "load": jfric.Load("x", jfric.PiecewiseLinear([0.0, 1.0, 2.0], [0.0, 4.0, 0.0])),
        },
        time=2.0,
    )
    solution = jfric.simulate(problem, jfric.QuasiStatic(), ts=jnp.asarray([0.25, 1.0, 2.0]))
    assert int(solution.status) == 0
    np.testing.assert_allclose(solution.q[:, 0], [0.1, 14.0 / 110.0, 0.0], atol=1e-12)


# The weight of the end of the step in the friction law of Moreau-Jean.


@pytest.mark.slow
def test_weight_of_the_sliding_velocity():
    """One half is the midpoint rule where theta is one half, up to the mean of constant loads."""
    problem = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 40.0),
            "friction": jfric.Friction("x", limit=1.0),
        },
        initial={"x": jfric.InitialState(0.3, 0.0)},
        time=1.0,
    )
    ts = jnp.linspace(0.0, 1.0, 21)
    half = jfric.simulate(problem, jfric.MoreauJean(1e-3, sliding_weight=0.5), ts=ts)
    midpoint = jfric.simulate(problem, jfric.Midpoint(1e-3), ts=ts)
    np.testing.assert_allclose(half.q, midpoint.q, atol=1e-13)
    default = jfric.simulate(problem, jfric.MoreauJean(1e-3), ts=ts)
    one = jfric.simulate(problem, jfric.MoreauJean(1e-3, sliding_weight=1.0), ts=ts)
    np.testing.assert_array_equal(default.q, one.q)


@pytest.mark.parametrize(("theta", "weight"), list(itertools.product([0.5, 0.7], [0.7, 1.0])))
def test_any_weight_tends_to_the_exact_motion(theta, weight):
    problem = jfric.Problem(
        ["x"],
        {"mass": jfric.Mass("x", 1.0), "friction": jfric.Friction("x", limit=2.0)},
        initial={"x": jfric.InitialState(0.0, 1.0)},
        time=1.0,
    )
    solver = jfric.MoreauJean(1e-4, theta=theta, sliding_weight=weight)
    final = jfric.simulate(problem, solver).final
    assert float(final.q[0]) == pytest.approx(0.25, abs=2e-4)
    assert abs(float(final.v[0])) < 1e-3


def test_weights_out_of_range_and_laws_that_need_rest_are_refused():
    sticks = _pushed(jfric.Stribeck(0.4, 0.2, 0.1))
    with pytest.raises(jfric.ProblemError, match="sliding_weight: found 0, must lie above 0"):
        jfric.simulate(sticks, jfric.MoreauJean(1e-3, sliding_weight=0.0))
    with pytest.raises(jfric.ProblemError, match="needs a contact at rest"):
        jfric.simulate(sticks, jfric.MoreauJean(1e-3, sliding_weight=0.7))
