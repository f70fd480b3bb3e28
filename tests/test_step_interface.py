"""The solver in a user's own loop: feedback forces, single steps, restarts."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from systems import bouncing

import jfric
from jfric.numerics.runge_kutta import METHODS
from jfric.solvers.event_driven.solver import NAMES

MASS, LIMIT, PERIOD, SAMPLES = 2.0, 6.0, 0.05, 60
GAINS = np.array([[300.0, 30.0], [100.0, 2.0], [300.0, 30.0], [20.0, 1.0]])
TARGETS = np.array([0.5, 0.5, -0.3, 0.2])


@functools.cache
def _cart() -> jfric.Problem:
    """A cart with dry friction; its motor acts through the extra force."""
    return jfric.Problem(
        ("x",),
        {"mass": jfric.Mass("x", MASS), "friction": jfric.Friction("x", limit=LIMIT)},
        time=SAMPLES * PERIOD,
    )


def _held_force(x: float, v: float, force: float) -> tuple[float, float]:
    """Position and velocity after one period under a constant force, in closed form."""
    left = PERIOD
    while left > 0.0:
        if v == 0.0 and abs(force) <= LIMIT:
            return x, 0.0
        sign = np.sign(v) if v != 0.0 else np.sign(force)
        a = (force - sign * LIMIT) / MASS
        stops = -v / a if v * a < 0.0 else np.inf
        if stops >= left:
            return x + v * left + 0.5 * a * left**2, v + a * left
        x, v, left = x + 0.5 * v * stops, 0.0, left - stops
    return x, v


def _expected(gain, target: float) -> np.ndarray:
    x, v, states = 0.0, 0.0, []
    for _ in range(SAMPLES):
        x, v = _held_force(x, v, gain[0] * (target - x) - gain[1] * v)
        states.append((x, v))
    return np.array(states)


@jax.jit
@jax.vmap
def _controlled(gain, target):
    """Samples of position and velocity, and their derivatives to both gains."""
    problem, solver = _cart(), jfric.EventDriven()

    def run(gain):
        def sample(state, k):
            force = gain[0] * (target - state.q) - gain[1] * state.v
            state = solver.advance(problem, state, PERIOD * (k + 1), force=force)
            return state, (state.q[0], state.v[0], state.t, state.status)

        _, samples = jax.lax.scan(sample, solver.init(problem), jnp.arange(SAMPLES))
        q, v, t, status = samples
        return jnp.stack([q, v], -1), (t, status)

    value, slope, rest = jax.jvp(run, (gain,), (jnp.array([1.0, 0.1]),), has_aux=True)
    return value, slope, *rest


def test_sampled_feedback_agrees_with_the_closed_form():
    """The cart is pushed to its target by a sampled spring and damper, against friction."""
    states, slopes, times, status = map(np.asarray, _controlled(GAINS, TARGETS))
    assert np.all(status == jfric.Status.OK)
    np.testing.assert_array_equal(times, np.tile(PERIOD * np.arange(1, SAMPLES + 1), (4, 1)))
    for i, (gain, target) in enumerate(zip(GAINS, TARGETS, strict=True)):
        expected = _expected(gain, target)
        np.testing.assert_allclose(states[i], expected, rtol=0, atol=1e-13)
        # One stays at rest short of its target: the sampled spring is too weak.
        assert (expected[-1, 1] == 0.0) == (states[i, -1, 1] == 0.0)
        h = 1e-5
        ahead, behind = (_expected(gain + s * h * np.array([1.0, 0.1]), target) for s in (1, -1))
        differences = (ahead - behind) / (2.0 * h)
        scale = np.abs(differences).max()
        np.testing.assert_allclose(slopes[i], differences, rtol=0, atol=1e-6 * scale + 1e-12)
    assert np.all(states[3] == 0.0)


@pytest.mark.slow
def test_steps_in_an_own_loop_do_not_pass_the_given_time():
    """Single steps under ``vmap`` in a user's while loop, each lane to its own time."""
    problem, solver = _cart(), jfric.EventDriven()

    @jax.jit
    @jax.vmap
    def run(v, until):
        start = solver.init(jfric.set_parameters(problem, {"initial.v": v}))

        def body(carry):
            state, late, longest = carry
            new, info = solver.step(problem, state, until=until)
            return new, late | (new.t > until), jnp.maximum(longest, info.h)

        def running(carry):
            return carry[0].t < until

        state, late, _longest = jax.lax.while_loop(running, body, (start, False, jnp.zeros(())))
        # Nothing is left to do: a further step changes nothing.
        again, info = solver.step(problem, state, until=until)
        same = jnp.all(again.q == state.q) & (again.t == until) & ~info.advanced
        return state.t, state.q[0], state.v[0], late, same

    v, until = np.array([3.0, -1.5, 0.0, 3.0]), np.array([0.5, 2.0, 1.0, 2.0])
    t, q, v_end, late, same = map(np.asarray, run(v, until))
    np.testing.assert_array_equal(t, until)
    assert not late.any()
    assert same.all()
    a = LIMIT / MASS
    moving = np.minimum(until, np.abs(v) / a)
    np.testing.assert_allclose(q, v * moving - np.sign(v) * 0.5 * a * moving**2, atol=1e-14)
    np.testing.assert_allclose(v_end, v - np.sign(v) * a * moving, atol=1e-14)


@functools.cache
def _whole() -> jfric.Solution:
    return jfric.simulate(bouncing(5.0), end=5.0)


def _modes_at(time: float) -> int:
    events = _whole().events
    before = int(np.searchsorted(events.time, time))
    return int(events.to_mode[before - 1] if before else events.from_mode[0])


INSTANTS = (0.1, 0.35, 1.0, 1.7, 2.6, 3.3, 4.4)


@pytest.mark.parametrize("instant", [*INSTANTS, "event"])
@pytest.mark.xdist_group("restart")
def test_restart_equals_an_uninterrupted_run(instant):
    whole = _whole()
    assert whole.status == jfric.Status.OK
    times = np.asarray(whole.events.time)[: int(whole.events.count)]
    if instant == "event":
        instant = float(times[len(times) // 2])
    first = jfric.simulate(bouncing(5.0), end=instant)
    second = jfric.simulate(bouncing(5.0), start=first.final, end=5.0)
    assert first.status == second.status == jfric.Status.OK
    assert float(first.final.t) == instant
    np.testing.assert_allclose(second.final.q, whole.final.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(second.final.v, whole.final.v, rtol=0, atol=1e-12)
    found = [*first.events.time[: int(first.events.count)],
             *second.events.time[: int(second.events.count)]]  # fmt: skip
    np.testing.assert_allclose(found, times, rtol=0, atol=1e-11)


def test_the_restarts_cover_all_modes():
    modes = {_modes_at(t) for t in INSTANTS}
    assert modes == {jfric.Mode.OPEN, jfric.Mode.STICK, jfric.Mode.SLIP_POS, jfric.Mode.SLIP_NEG}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"method": "dopri7"}, r"method: found 'dopri7' \(did you mean 'dopri8'\?\), allowed are "
         "dopri8, dopri5 and tsit5"),
        ({"flow": "exakt"}, r"flow: found 'exakt' \(did you mean 'exact'\?\), allowed are auto, "
         "exact and runge-kutta"),
        ({"energy_gain": 1}, "energy_gain: found 1, allowed are stop and allow"),
    ],
)  # fmt: skip
def test_settings_that_are_names_are_checked_before_anything_is_computed(settings, expected):
    """Also the method of a flow that a linear system does not need."""
    problem = jfric.Problem(("u",), {"mass": jfric.Mass("u", 1.0)}, time=1.0)
    with pytest.raises(jfric.ProblemError, match=expected):
        jfric.EventDriven(**settings).require(problem)


def test_methods_are_those_of_the_tables():
    assert set(NAMES["method"]) == set(METHODS)


def test_wrong_starts_are_refused():
    massless = jfric.Problem(("u",), {"spring": jfric.Spring("u", 1.0)})
    with pytest.raises(jfric.ProblemError, match=r"'u' has no mass.*look for equilibria"):
        jfric.EventDriven().init(massless)
    problem = jfric.Problem(("u",), {"mass": jfric.Mass("u", 1.0)}, time=1.0)
    start = jfric.MoreauJean(1e-3).init(problem)
    expected = (
        r"start: found a State \(time-stepping\), must be solution.final of an earlier run with "
        "EventDriven"
    )
    with pytest.raises(jfric.ProblemError, match=expected):
        jfric.simulate(problem, start=start)
    with pytest.raises(jfric.ProblemError, match="solver: found 'moreau-jean', must be a solver"):
        jfric.simulate(problem, "moreau-jean")
