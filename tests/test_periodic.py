"""Periodic motion: closed forms, multipliers, derivatives, statuses, errors, batches."""

from __future__ import annotations

import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import den_hartog
from resonance_systems import with_a_damper

import jfric
from jfric.periodic import newton
from jfric.periodic.orbit import erased, multipliers

CONFIGS = "configs"
SOLVER = jfric.EventDriven(max_events=8)


@functools.cache
def shaken() -> jfric.Problem:
    """A mass on a spring and a damper, with dry friction, under a harmonic load."""
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1.0),
            "damper": jfric.Damper("x", 0.1),
            "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=1.0),
            "load": jfric.Load("x", jfric.Harmonic(1.0, 0.8)),
        },
    )


def random_oscillators(count: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    m, k = random.uniform(0.5, 2.0, (2, 4 * count))
    c, mu = random.uniform(0.02, 0.2, 4 * count), random.uniform(0.05, 0.3, 4 * count)
    w = np.sqrt(k / m) * random.uniform(0.5, 2.5, 4 * count)
    _, _, after, before = den_hartog.steady(m, c, k, mu, 1.0, w)
    slides = np.flatnonzero((after < -1e-3) & (before < -1e-3))[:count]
    # Time has no scale: one swings as fast as ultrasound.
    fast = np.where(np.arange(m.size) == slides[1], 2.0**20, 1.0)
    k, c, w = k * fast**2, c * fast, w * fast
    names = ("mass.m", "damper.c", "spring.k", "friction.mu", "load.F.omega")
    return {name: x[slides] for name, x in zip(names, (m, c, k, mu, w), strict=True)}


@functools.cache
def batch() -> tuple[dict[str, np.ndarray], jfric.PeriodicOrbit]:
    """Orbits of 24 random oscillators; the last one has a normal force that is negative, the one
    before it sticks on both sides, which makes more events than there is room for."""
    values = random_oscillators(24)
    values["friction.N"] = np.ones(24)
    values["friction.N"][-2:] = [0.8 / values["friction.mu"][-2], -1.0]
    for name, value in {"mass.m": 1.0, "spring.k": 1.0, "load.F.omega": 0.8}.items():
        values[name][-2] = value
    solver = jfric.EventDriven(max_events=3)
    orbits = jfric.periodic_orbit(shaken(), values=values, transient=3, solver=solver)
    return values, orbits


@pytest.mark.slow
def test_continuous_slip_has_the_amplitude_of_the_closed_form():
    values, orbits = batch()
    m, c, k, mu, w, _ = values.values()
    _, at, after, before = den_hartog.steady(m, c, k, mu, 1.0, w)
    codes, times = np.asarray(orbits.event_codes), np.asarray(orbits.event_times)
    assert np.all(np.asarray(orbits.status)[:-2] == jfric.OrbitStatus.CONVERGED)
    for i in range(22):
        turn = times[i, 0] if codes[i, 0, 2] == jfric.Mode.SLIP_NEG else times[i, 1]
        assert math.remainder(turn - at[i], 2.0 * math.pi / w[i]) == pytest.approx(0.0, abs=1e-12)
        exact = np.linalg.eigvals(den_hartog.monodromy(m[i], c[i], k[i], after[i], before[i], w[i]))
        found = np.sort_complex(np.asarray(orbits.multipliers[i]))
        np.testing.assert_allclose(found, np.sort_complex(exact), atol=1e-11)


@pytest.mark.slow
def test_what_is_observed_of_continuous_slip():
    values, orbits = batch()
    m, c, k, mu, w, _ = (x[0] for x in values.values())
    X, *_ = den_hartog.steady(m, c, k, mu, 1.0, w)
    one = jax.tree.map(lambda x: x[0], orbits)
    highest = one.observe("max.x, dissipated")
    assert float(highest["max.x"]) == pytest.approx(X, rel=1e-12)
    # Friction takes mu N over a way of 4 X; loads put that in, and what the damper takes.
    assert float(highest["dissipated"]) == pytest.approx(4.0 * mu * X, rel=1e-12)


@pytest.mark.slow
def test_orbits_that_fail_leave_the_others_alone():
    _, orbits = batch()
    assert orbits.status[-2] == jfric.OrbitStatus.TOO_MANY_EVENTS
    assert "max_events" in jax.tree.map(lambda x: x[-2], orbits).outcome()
    assert int(orbits.status[-1]) == jfric.OrbitStatus.TRANSIENT_FAILED
    assert int(orbits.run_status[-1]) == jfric.Status.NEGATIVE_FORCE
    last = jax.tree.map(lambda x: x[-1], orbits)
    assert "negative" in last.outcome()
    with pytest.raises(jfric.SimulationError, match="2 of 24 orbits failed, first number 22"):
        orbits.check()


@functools.cache
def ball() -> jfric.Problem:
    return jfric.load(f"{CONFIGS}/p1_ball.toml")


@functools.cache
def on_the_table() -> jfric.PeriodicOrbit:
    """Both motions with one impact in a period, and rest."""
    starts = [[0.1, 4.4], [0.4, -4.5], [0.0, 0.4 * 9.81 / (2.0 * math.pi)]]
    return jfric.periodic_orbit(ball(), start=jnp.array(starts))


@pytest.mark.slow
def test_a_ball_on_a_table_has_two_motions():
    both = on_the_table()
    gamma, e, g, w = 0.4, 0.8, 9.81, 2.0 * math.pi
    amplitude = gamma * g / w**2
    phi = math.acos((1.0 - e) / (1.0 + e) * 0.5 * g / (amplitude * w))
    for i, sign in enumerate((-1.0, 1.0)):
        time = (sign * phi / w) % 1.0
        assert float(both.event_times[i, 0]) == pytest.approx(time, abs=1e-12)
        total = 1.0 + e**2 - (1.0 + e) ** 2 * gamma * math.sin(sign * phi)
        exact = np.sort_complex(np.roots([1.0, -total, e**2]))
        np.testing.assert_allclose(np.sort_complex(both.multipliers[i]), exact, atol=1e-12)
    assert both.stable.tolist() == [False, True, True]
    vectors = np.asarray(both.monodromy[0]) @ np.asarray(both.eigenvectors[0])
    scaled = np.asarray(both.eigenvectors[0]) * np.asarray(both.multipliers[0])
    np.testing.assert_allclose(vectors, scaled, atol=1e-12)


@pytest.mark.slow
def test_a_ball_at_rest_on_its_table_is_periodic_too():
    """Two directions are erased: the multipliers are zero exactly, and Newton's method is not
    disturbed."""
    orbit = jax.tree.map(lambda x: x[2], on_the_table())
    assert orbit.outcome() == "converged"
    assert orbit.multipliers.tolist() == [0.0, 0.0]


@functools.cache
def stick_slip() -> jfric.PeriodicOrbit:
    return jfric.periodic_orbit(jfric.load(f"{CONFIGS}/c4_belt.toml")).check()


def test_stick_slip_finds_its_own_period():
    orbit = stick_slip()
    assert float(orbit.period) == pytest.approx(8.902605407814523, abs=1e-13)
    assert orbit.multipliers[1] == 0.0
    assert abs(orbit.multipliers[0] - 1.0) < 1e-13
    assert bool(orbit.stable)
    assert [row["to"] for row in orbit.event_table()] == ["slip-", "stick"]
    edges = {jfric.Flag.GRAZING, jfric.Flag.TIE, jfric.Flag.SIMULTANEOUS}
    edges |= {jfric.Flag.STEP_RESOLUTION, jfric.Flag.ONE_SIDED}
    flagged = [eqx.tree_at(lambda o: o.flags, orbit, jnp.asarray(int(x))) for x in jfric.Flag]
    assert {x for x, o in zip(jfric.Flag, flagged, strict=True) if not o.differentiable} == edges


@pytest.mark.slow
def test_the_belt_puts_in_what_friction_takes():
    orbit = stick_slip()
    loss = float(orbit.observe("dissipated")["dissipated"])
    assert float(orbit.energy_loss()) == pytest.approx(loss, rel=1e-12)


@pytest.mark.slow
def test_without_friction_the_response_is_the_linear_one():
    """Amplitude and angle of a linear oscillator; multipliers ``exp(lambda T)``."""
    values = {"friction.mu": np.zeros(3), "load.F.omega": np.array([0.5, 1.1, 1.7])}
    orbits = jfric.periodic_orbit(shaken(), values=values, transient=3, solver=SOLVER)
    w = values["load.F.omega"]
    exact = 1.0 / (1.0 - w**2 + 0.1j * w)
    found = np.asarray(orbits.harmonics("x", 2))
    # sin(w t) = Re(-i exp(i w t)).
    np.testing.assert_allclose(found[:, 1], -1j * exact, atol=1e-12)
    np.testing.assert_allclose(found[:, [0, 2]], 0.0, atol=1e-12)
    rate = -0.05 + 1j * math.sqrt(1.0 - 0.0025)
    np.testing.assert_allclose(
        abs(orbits.multipliers[:, 0]), abs(np.exp(rate * 2.0 * math.pi / w)), rtol=1e-12
    )


@pytest.mark.slow
def test_an_event_at_the_start_is_no_place_for_multipliers():
    """At resonance the mass turns where the load is zero, which is the start; a little later all is
    well. Without a damper there is no periodic motion."""
    values = {"time.start": np.array([0.0, 0.3, 0.3]), "damper.c": np.array([0.1, 0.1, 0.0])}
    values |= {"friction.mu": np.zeros(3), "load.F.omega": np.ones(3)}
    orbits = jfric.periodic_orbit(shaken(), values=values, transient=3, solver=SOLVER)
    statuses = [jfric.OrbitStatus.STARTS_ON_EVENT, 0, jfric.OrbitStatus.NO_CONVERGENCE]
    assert orbits.status.tolist() == statuses
    assert abs(complex(orbits.multipliers[1, 0])) == pytest.approx(math.exp(-0.1 * math.pi))


@pytest.mark.slow
def test_derivatives_that_are_kept_lead_to_the_same_orbits(monkeypatch):
    """Large systems compute derivatives seldom: orbits, multipliers, statuses are the same."""
    values, every = batch()
    solver = jfric.EventDriven(max_events=3)
    # Another number of rounds: programs are compiled once for all of their settings.
    options: dict[str, Any] = {"transient": 3, "solver": solver, "max_iterations": 39}
    monkeypatch.setattr(newton, "KEPT_FROM", 1)
    kept = jfric.periodic_orbit(shaken(), values=values, **options)
    assert kept.status.tolist() == every.status.tolist()
    ok = np.asarray(every.converged)
    assert ok.sum() > 20
    np.testing.assert_allclose(kept.state[ok], every.state[ok], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(kept.multipliers[ok], every.multipliers[ok], rtol=0, atol=1e-9)
    assert np.all(kept.iterations[ok] < every.iterations[ok])
    assert np.all(kept.residual[ok] < 1e-12)


def test_multipliers_of_erased_directions_are_zero():
    """A nilpotent part has no full set of eigenvectors, and eigenvalues that rounding would move
    by its root."""
    random = np.random.default_rng(0)
    block = np.diag([0.7, 0.0, 0.0, 0.0]) + np.diag([0.0, 1.0, 1.0], 1)
    turn, _ = np.linalg.qr(random.normal(size=(4, 4)))
    a = jnp.asarray(turn @ block @ turn.T)
    assert int(erased(a)) == 3
    values, _ = multipliers(a)
    assert values[1:].tolist() == [0.0, 0.0, 0.0]
    assert abs(values[0] - 0.7) < 1e-14


def test_derivatives_of_multipliers():
    random = np.random.default_rng(2)
    a, change = (jnp.asarray(random.normal(size=(3, 3))) for _ in range(2))
    _, slope = jax.jvp(lambda x: multipliers(x)[0], (a,), (change,))
    h = 1e-6
    ahead, behind = (multipliers(a + s * h * change)[0] for s in (1.0, -1.0))
    np.testing.assert_allclose(slope, (ahead - behind) / (2.0 * h), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({}, {"period": 3.0}, "goes through 0.381972 cycles"),
        ({}, {"section": "x"}, "a load depends on time"),
        ({}, {"start": [1.0, 2.0, 3.0]}, r"needs positions and velocities \(2,\)"),
        ({}, {"start": [np.nan, 2.0]}, "not finite"),
        ({}, {"values": {"friction.nu": [1.0]}}, "did you mean 'friction.mu'"),
        ({}, {"values": {"friction.mu": [1.0], "mass.m": [1.0, 2.0]}}, "lengths differ"),
        ({}, {"segments": 0}, "segments: found 0"),
        ({"load": jfric.Load("x", jfric.Steps([1.0], [0.0, 1.0]))}, {}, "changes at 1 s"),
        ({"load": jfric.Load("x", 1.0)}, {"period": 1.0}, "needs a state to begin with"),
        ({"load": jfric.Load("x", 1.0)}, {"start": [0.0, 0.0]}, "a guess of the period"),
        (
            {"base": {"b": jfric.Base(jfric.Harmonic(1.0, 0.8 * math.sqrt(2.0)))}},
            {},
            "no common period",
        ),
        ({"event": jfric.Event("x", action="stop")}, {}, "'stop', which ends a period"),
    ],
)
def test_bad_input_is_one_sentence(changes, options, words):
    problem = jfric.Problem(("x",), dict(shaken().elements) | changes)
    with pytest.raises(jfric.ProblemError, match=words):
        jfric.periodic_orbit(problem, **options)


def test_two_loads_share_a_period():
    from jfric.periodic.forcing import forcing_of

    loads = {
        "slow": jfric.Load("x", jfric.Harmonic(1.0, 0.8)),
        "fast": jfric.Load("x", jfric.functions.Sum([jfric.Harmonic(1.0, 1.2), 2.0])),
    }
    problem = jfric.Problem(("x",), dict(shaken().elements) | {"load": loads})
    forcing = forcing_of(problem)
    assert forcing is not None
    assert float(forcing.period(problem)) == pytest.approx(2.0 * math.pi / 0.4)


@pytest.mark.slow
def test_derivatives_of_a_limit_cycle():
    """Closed forms of CASES C4: the period of stick-slip by all parameters."""
    belt = jfric.load(f"{CONFIGS}/c4_belt.toml")
    names = ("friction.belt", "friction.mu_s", "friction.mu_d", "spring.k", "mass.m")

    def period(x):
        changed = jfric.set_parameters(belt, dict(zip(names, x, strict=True)))
        return jfric.periodic_orbit(changed).period

    exact = [-21.551724137931, 8.6206896551724, -8.6206896551724]
    exact += [-6.6064751177004, 2.2961302901142]
    x = jnp.array([0.2, 1.0, 0.5, 1.0, 1.0])
    np.testing.assert_allclose(jax.grad(period)(x), exact, rtol=1e-12)


@pytest.mark.slow
def test_derivatives_of_a_forced_motion():
    """Amplitude by the closed form, multipliers by differences, both modes alike."""

    def found(x, problem):
        values = {"load.F.omega": x[0], "friction.mu": x[1]}
        orbit = jfric.periodic_orbit(jfric.set_parameters(problem, values), solver=SOLVER)
        values = orbit.multipliers
        return jnp.stack(
            [orbit.observe("max.x")["max.x"], jnp.real(values[0]), jnp.imag(values[0])]
        )

    x, h = jnp.array([0.8, 0.2]), 1e-5
    slopes = (jax.jit(mode(found)) for mode in (jax.jacfwd, jax.jacrev))
    forward, backward = (slope(x, shaken()) for slope in slopes)
    np.testing.assert_allclose(forward, backward, rtol=1e-10)
    plain = jax.jit(found)
    for i in range(2):
        step = h * jnp.eye(2)[i]
        rough = (plain(x + step, shaken()) - plain(x - step, shaken())) / (2.0 * h)
        np.testing.assert_allclose(forward[:, i], rough, rtol=1e-7)
    exact = [den_hartog.steady(1.0, 0.1, 1.0, 0.2 + s * h, 1.0, 0.8)[0] for s in (1.0, -1.0)]
    assert float(forward[0, 1]) == pytest.approx((exact[0] - exact[1]) / (2.0 * h), rel=1e-8)


@pytest.mark.slow
def test_several_segments_give_the_same_orbit():
    duffing = jfric.load(f"{CONFIGS}/p6_duffing.toml")
    start = jnp.array([-1.7, -1.9])
    one = jfric.periodic_orbit(duffing, start=start).check()
    four = jfric.periodic_orbit(duffing, start=start, segments=4).check()
    np.testing.assert_allclose(four.state, one.state, atol=1e-9)
    np.testing.assert_allclose(
        np.sort(np.abs(four.multipliers)), np.sort(np.abs(one.multipliers)), atol=1e-8
    )


@pytest.mark.slow
def test_where_newton_is_stuck_the_motion_goes_on_by_itself():
    """From rest, without a transient, it is stuck at some frequencies of a friction damper."""
    values = {"load.F.omega": np.array([0.735, 0.9, 1.1, 1.425, 1.5])}
    problem = with_a_damper()
    begun = jfric.periodic_orbit(problem, values=values, transient=0)
    assert begun.status.tolist() == [jfric.OrbitStatus.CONVERGED] * 5
    settled = jfric.periodic_orbit(problem, values=values, transient=40)
    for dof in problem.dofs:
        found, known = (abs(x.harmonics(dof, 1)[:, 1]) for x in (begun, settled))
        np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_deviations_die_out_by_the_multiplier():
    """Stick-slip with impacts: two runs that differ a little, looked at once in each period."""
    problem = jfric.load(f"{CONFIGS}/janovsky_4_2_coulomb.toml")
    orbit = jfric.periodic_orbit(problem, transient=10).check()
    assert orbit.multipliers[1:].tolist() == [0.0, 0.0, 0.0]
    names = [f"initial.{dof}.{x}" for x in "qv" for dof in problem.dofs]

    def after(state, periods):
        begun = jfric.set_parameters(problem, dict(zip(names, state, strict=True)))
        end = periods * orbit.period
        final = jfric.simulate(begun, ts=end[None], end=end).final
        return jnp.concatenate([final.q, final.v])

    moved = orbit.state + jnp.array([0.0, 1e-6, 0.0, 0.0])
    first, second = (after(moved, float(i)) - orbit.state for i in (1, 2))
    assert float(second[1] / first[1]) == pytest.approx(float(orbit.multipliers[0].real), rel=1e-3)


@pytest.mark.slow
def test_sections_and_guesses_of_the_period():
    belt = jfric.load(f"{CONFIGS}/c5_velocity_weakening.toml")
    orbit = jfric.periodic_orbit(belt, section="x - 0.5").check()
    assert float(orbit.q[0]) == pytest.approx(0.5, abs=1e-12)
    again = jfric.periodic_orbit(belt, 12.1, start=orbit.state).check()
    assert float(again.period) == pytest.approx(float(orbit.period), abs=1e-10)
    assert float(orbit.period) == pytest.approx(12.00103129483, abs=1e-9)


@pytest.mark.slow
def test_statuses_of_orbits():
    still = jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1.0),
            "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=1.0),
        },
        time=2.0,
    )
    assert int(jfric.periodic_orbit(still).status) == jfric.OrbitStatus.NO_RECURRENCE
    few = jfric.periodic_orbit(shaken(), solver=jfric.EventDriven(max_events=1))
    assert int(few.status) == jfric.OrbitStatus.TOO_MANY_EVENTS
    assert "max_events" in few.outcome()
    one = jfric.periodic_orbit(ball(), start=jnp.array([3.0, 0.0]), max_iterations=1)
    assert int(one.status) == jfric.OrbitStatus.NO_CONVERGENCE


@pytest.mark.parametrize("section", ["sin(x)", pytest.param("v.x", marks=pytest.mark.slow)])
def test_a_section_through_zero_closes_after_one_period(section):
    """Van der Pol's oscillator with mu = 1: all of its states at the section are as they were."""

    def damping(t, q, v, parameters):
        return (1.0 - q**2) * v

    elements = {"mass": jfric.Mass("x", 1.0), "spring": jfric.Spring("x", 1.0)}
    problem = jfric.Problem(
        ["x"],
        elements | {"force_field": jfric.ForceField(damping)},
        initial={"x": jfric.InitialState(2.0)},
        time=100.0,
    )
    orbit = jfric.periodic_orbit(problem, section=section).check()
    np.testing.assert_allclose(orbit.period, 6.663286859323, rtol=1e-9)
    with pytest.raises(jfric.ProblemError, match="cycles: found 2, but no load is periodic"):
        jfric.periodic_orbit(problem, section=section, cycles=2)


@pytest.mark.parametrize("at", [0.0, 1.0])
def test_all_multipliers_of_an_equilibrium_count(at):
    """The saddle between two wells grows by the larger root of s^2 + c s + k = 0, k = -1; at the
    bottom of a well k = 2, and deviations die out."""
    problem = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "damper": jfric.Damper("x", 4.0),
            "polynomial_spring": jfric.PolynomialSpring("x", [-1.0, 0.0, 1.0]),
        },
        time=1.0,
    )
    orbit = jfric.periodic_orbit(problem, start=[at, 0.0], period=0.4)
    assert bool(orbit.converged)
    assert bool(orbit.is_equilibrium)
    k = -1.0 if at == 0.0 else 2.0
    assert bool(orbit.stable) is (k > 0)
    growth = np.exp(0.4 * (-2.0 + np.sqrt(4.0 - k)))
    np.testing.assert_allclose(orbit.largest_multiplier, growth, rtol=1e-9)


@pytest.mark.parametrize(("k", "c"), [(1e-5, 1.0), (-1e-5, 1.0), (1.0, 1e-6)])
def test_slow_multipliers_of_an_equilibrium_count(k, c):
    """Roots of s^2 + c s + k = 0 near zero have multipliers near that along a motion."""
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "damper": jfric.Damper("x", c),
        "polynomial_spring": jfric.PolynomialSpring("x", [k, 0.0, abs(k)]),
        "load": jfric.Load("x", 2.0 * abs(k) if k > 0 else 0.0),
    }
    problem = jfric.Problem(["x"], elements, time=1.0)
    at = 1.0 if k > 0 else 0.0
    orbit = jfric.periodic_orbit(problem, start=[at, 0.0], period=2.0 * np.pi if k == 1.0 else 0.4)
    assert bool(orbit.converged)
    assert bool(orbit.is_equilibrium)
    assert bool(orbit.stable) is (k > 0)
    stiffness = k + 3.0 * abs(k) * at**2
    root = np.max(np.real(np.roots([1.0, c, stiffness])))
    np.testing.assert_allclose(orbit.largest_multiplier, np.exp(root * orbit.period), rtol=1e-8)
