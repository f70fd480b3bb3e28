"""Dense output: the trajectory at any time, from the polynomials of the solver's own passes."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from systems import bouncing

import jfric

FIELDS = ("q", "v", "a", "lambda_t", "lambda_n")


@functools.cache
def _two_masses() -> jfric.Problem:
    """Two contacts and a clearance: the general pass."""
    return jfric.Problem(
        ("x", "y"),
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 2.0)},
            "spring": jfric.Spring({"x": 1.0, "y": -1.0}, 100.0),
            "friction": {
                "x": jfric.Friction("x", jfric.Coulomb(0.2), N=10.0),
                "y": jfric.Friction("y", jfric.Coulomb(0.1), N=10.0),
            },
            "gap_spring": jfric.GapSpring("y", 200.0, 200.0, 0.05, 0.05),
            "load": jfric.Load("x", jfric.Harmonic(12.0, 4.0)),
        },
        time=2.0,
    )


@functools.cache
def _oscillator(law=jfric.Coulomb) -> jfric.Problem:
    """One degree of freedom: closed form, or a law for the Runge-Kutta flow."""
    chosen = law(0.2) if law is jfric.Coulomb else law(0.3, 0.2, 0.4)
    return jfric.Problem(
        ("u",),
        {
            "mass": jfric.Mass("u", 1.0),
            "spring": jfric.Spring("u", 50.0),
            "friction": jfric.Friction("u", chosen, N=5.0),
        },
        initial={"u": jfric.InitialState(q=0.2)},
        time=2.0,
    )


@functools.cache
def _history() -> jfric.Problem:
    load = jfric.PiecewiseLinear([0.0, 0.7, 2.0], [0.0, 9.0, -9.0])
    return jfric.Problem(
        ("u",),
        {
            "spring": jfric.Spring("u", 60.0),
            "friction": jfric.Friction("u", jfric.Coulomb(0.3), N=10.0),
            "load": jfric.Load("u", load),
        },
        time=2.0,
    )


CASES = {
    "scalars": (lambda: bouncing(2.0), jfric.EventDriven()),
    "general": (_two_masses, jfric.EventDriven()),
    "closed form": (_oscillator, jfric.EventDriven()),
    "runge-kutta": (functools.partial(_oscillator, jfric.Stribeck), jfric.EventDriven()),
    "quasi-static": (_history, jfric.QuasiStatic()),
}
#: Times that fall on no event.
TIMES = np.linspace(0.003, 1.997, 97)


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=[] if c == "scalars" else pytest.mark.slow) for c in CASES],
)
def test_values_are_those_of_outputs_at_the_same_times(case):
    build, solver = CASES[case]
    solution = jfric.simulate(build(), solver, ts=TIMES, dense=True).check()
    found = solution.evaluate(TIMES)
    assert int(solution.dense.count) > int(solution.events.count) > 1
    for name in FIELDS:
        expected = np.asarray(getattr(solution, name))
        scale = np.max(np.abs(expected), initial=1.0)
        np.testing.assert_allclose(
            getattr(found, name), expected, rtol=0, atol=1e-12 * scale, err_msg=name
        )
    np.testing.assert_array_equal(found.mode, solution.mode)
    np.testing.assert_array_equal(found.segment, solution.segment)
    end = jax.jit(lambda s, t: s.evaluate(t))(solution, 2.0)
    np.testing.assert_allclose(end.q, solution.final.q, atol=1e-13)
    assert end.q.shape == (len(solution.axes),)
    # A run without outputs takes steps of its own, and is the same motion.
    alone = jfric.simulate(build(), solver, dense=True).evaluate(TIMES.reshape(1, -1))
    np.testing.assert_allclose(alone.q[0], found.q, atol=1e-8)


def test_events_have_two_sides():
    solution = jfric.simulate(bouncing(2.0), dense=True)
    log, count = solution.events, int(solution.events.count)
    impacts = np.flatnonzero(np.asarray(log.impact)[:count])
    times = np.asarray(log.time)[impacts]
    # The last one ends the accumulating sequence, and is logged where that accumulates.
    times, rows = times[:-1], impacts[:-1]
    apart = np.diff(times, append=np.inf) > 1e-3
    times, rows = times[apart], rows[apart]
    assert len(rows) > 2
    before, after = solution.evaluate(times), solution.evaluate(times, side="after")
    np.testing.assert_allclose(before.v, log.v_before[rows], atol=1e-10)
    np.testing.assert_allclose(after.v, log.v[rows], atol=1e-10)
    np.testing.assert_allclose(before.q, after.q, atol=1e-12)
    assert np.all(np.abs(before.v - after.v).max(axis=1) > 1e-7)
    with pytest.raises(jfric.ProblemError, match="side: found 'left', allowed are 'before' and"):
        solution.evaluate(0.1, side="left")


def _slowed(mu, ts=None, end=2.0):
    """A block with 1 m/s on ground, until it stops at 1/(mu 10) s."""
    problem = jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "friction": jfric.Friction("x", jfric.Coulomb(mu), N=10.0),
        },
        initial={"x": jfric.InitialState(v=1.0)},
        time=2.0,
    )
    return jfric.simulate(problem, ts=ts, end=end, dense=16)


@pytest.mark.slow
def test_batches_and_derivatives_agree_with_the_closed_form():
    mus, times = jnp.array([0.1, 0.2, 0.4]), jnp.array([0.1, 0.2, 0.7, 1.5])

    def moved(mu):
        run = _slowed(mu, times)
        return run.evaluate(times).q[:, 0], run

    slopes, runs = jax.jit(jax.vmap(jax.jacrev(moved, has_aux=True)))(mus)
    # A batch of solutions is evaluated as a whole.
    moments = runs.evaluate(times)
    np.testing.assert_allclose(moments.q, runs.q, atol=1e-13)
    stop = 1.0 / (10.0 * np.asarray(mus))[:, None]
    t = np.minimum(times, stop)
    np.testing.assert_allclose(moments.q[..., 0], t - 5.0 * mus[:, None] * t**2, atol=1e-14)
    moving = np.asarray(times) < stop
    rest = -0.05 / np.asarray(mus)[:, None] ** 2
    np.testing.assert_allclose(slopes, np.where(moving, -5.0 * np.asarray(times) ** 2, rest))
    # At fixed parameters the derivative to the time is the velocity.
    one = jax.tree.map(lambda x: x[1], runs)
    speed = jax.grad(lambda t: one.evaluate(t).q[0])(0.3)
    assert float(speed) == pytest.approx(0.4)


@pytest.mark.slow
def test_what_is_not_known_is_not_a_number():
    outside = _slowed(0.1, end=1.0).evaluate(jnp.array([-0.1, 0.5, 1.0, 1.1]))
    np.testing.assert_array_equal(np.isnan(outside.q[:, 0]), [True, False, False, True])
    np.testing.assert_array_equal(outside.mode[:, 0] < 0, [True, False, False, True])
    few = jfric.simulate(bouncing(2.0), dense=3)
    assert int(few.status) == jfric.Status.OK
    assert int(few.flags) & jfric.Flag.DENSE_FULL
    assert "raise dense" in jfric.Flag.DENSE_FULL.message
    np.testing.assert_array_equal(np.isnan(few.evaluate(jnp.array([0.0, 1.9])).q[:, 0]), [0, 1])
    with pytest.raises(jfric.ProblemError, match="evaluate: the solution has no dense output; sim"):
        jfric.simulate(_oscillator()).evaluate(1.0)
    with pytest.raises(jfric.ProblemError, match="dense: found 0, expected a whole number"):
        jfric.simulate(_oscillator(), dense=0)


@pytest.mark.slow
def test_solvers_without_polynomials_go_by_their_outputs_and_events():
    ts = np.linspace(0.0, 2.0, 201)
    exact = jfric.simulate(bouncing(2.0), ts=TIMES)
    solution = jfric.simulate(bouncing(2.0), jfric.MoreauJean(1e-4), ts=ts, dense=True)
    at_outputs = solution.evaluate(ts, side="after")
    np.testing.assert_allclose(at_outputs.q, solution.q, atol=1e-14)
    np.testing.assert_allclose(at_outputs.v, solution.v, atol=1e-12)
    found = solution.evaluate(TIMES)
    np.testing.assert_allclose(found.q, exact.q, atol=2e-3)
    # Bounces are seen: a straight line over an impact would be off by a hundredth.
    log = solution.events
    first = int(np.flatnonzero(np.asarray(log.impact))[0])
    before = solution.evaluate(log.time[first])
    np.testing.assert_allclose(before.v, log.v_before[first], atol=1e-9)
    assert int(before.mode[0]) == jfric.Mode.OPEN
    assert np.isnan(solution.evaluate(2.1).q).all()
    with pytest.raises(jfric.ProblemError, match="dense: the solver moreau-jean has no poly"):
        jfric.simulate(bouncing(2.0), jfric.MoreauJean(1e-3), dense=True)
