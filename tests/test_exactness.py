"""Stick without drift, and the balance of energy and the laws of friction on random systems."""

from __future__ import annotations

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric

MODE = jfric.Mode
G = 9.81


# Stick.


@functools.cache
def _block() -> jfric.Problem:
    """A block on the ground with a limit of 10 N, under a constant and a harmonic load."""
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 2.0),
            "friction": jfric.Friction("x", limit=10.0),
            "load": {
                "constant": jfric.Load("x", 0.0),
                "harmonic": jfric.Load("x", jfric.Harmonic(0.0, 1.0)),
            },
        },
        initial={"x": jfric.InitialState(q=1.0 / 3.0)},
        time=1e6,
    )


@pytest.mark.parametrize(
    ("constant", "amplitude"), [(9.99999, 0.0), (-9.99999, 0.0), (0.0, 9.99999), (5.0, 4.99999)]
)
def test_a_block_within_the_cone_does_not_move_in_a_million_time_units(constant, amplitude):
    """The load reaches 0.999999 of the limit in each of 500 periods."""
    changes = {
        "load.constant.F": constant,
        "load.harmonic.F.amplitude": amplitude,
        "load.harmonic.F.omega": 2.0 * np.pi / 2000.0,
    }
    problem = jfric.set_parameters(_block(), changes)
    solution = jfric.simulate(problem, ts=np.linspace(0.0, 1e6, 1001))
    assert solution.status == jfric.Status.OK
    assert int(solution.events.count) == 0
    assert np.all(np.asarray(solution.q) == 1.0 / 3.0)
    assert np.all(np.asarray(solution.v) == 0.0)
    expected = constant + amplitude * np.sin(2.0 * np.pi / 2000.0 * np.asarray(solution.ts))
    np.testing.assert_allclose(-solution.lambda_t[:, 0], expected, rtol=0, atol=1e-8)


@functools.cache
def _stack() -> jfric.Problem:
    """A body on a belt, a second body on the first, pushed to and fro within all cones."""
    belt = jfric.Sum((jfric.Constant(0.05), jfric.Harmonic(0.05, 0.7, 0.4)))
    return jfric.Problem(
        ("low", "high"),
        {
            "mass": {"low": jfric.Mass("low", 3.0), "high": jfric.Mass("high", 2.0)},
            "friction": {
                "belt": jfric.Friction("low", jfric.Coulomb(0.3), N=5.0 * G, belt=belt),
                "joint": jfric.Friction(("low", "high"), jfric.Coulomb(0.4), N=2.0 * G),
            },
            "load": jfric.Load("high", jfric.Harmonic(5.0, 1.3)),
        },
        initial={
            "low": jfric.InitialState(q=0.1, v=0.05 + 0.05 * np.sin(0.4)),
            "high": jfric.InitialState(q=0.3, v=0.05 + 0.05 * np.sin(0.4)),
        },
        time=1e3,
    )


@pytest.mark.parametrize("after", [20.0, -20.0, 10.0, 5.0])
def test_a_block_held_at_the_edge_of_its_cone_obeys_a_later_jump_of_the_load(after):
    """Limit 10 N, load exactly 10 N for a second, then ``after``."""
    problem = jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 2.0),
            "friction": jfric.Friction("x", limit=10.0),
            "load": jfric.Load("x", jfric.Steps([1.0], [10.0, after])),
        },
        time=3.0,
    )
    solution = jfric.simulate(problem)
    assert solution.status == jfric.Status.OK
    beyond = np.sign(after) * max(abs(after) - 10.0, 0.0)
    assert float(solution.final.q[0]) == pytest.approx(0.5 * beyond / 2.0 * 2.0**2, abs=1e-12)
    assert int(solution.events.count) == int(beyond != 0.0)


def test_stick_against_a_strong_damper_says_nothing_of_other_friction():
    """A belt holds a body at 2 m/s for a hundred thousand time constants of its damper; a second
    belt moves the other way. A force that is not linear elsewhere calls for Runge-Kutta steps."""
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)},
            "damper": jfric.Damper("x", 2000.0),
            "polynomial_spring": jfric.elements.PolynomialSpring("y", [1e-2, 0.0, 1e-2]),
            "friction": {
                "holds": jfric.Friction("x", limit=1e5, belt=2.0),
                "slides": jfric.Friction("x", limit=1.0, belt=-2.0),
            },
        },
        initial={"x": jfric.InitialState(v=2.0), "y": jfric.InitialState(q=0.1)},
        time=60.0,
    )
    solution = jfric.simulate(problem, ts=[60.0])
    assert (int(solution.status), int(solution.flags)) == (0, 0)
    assert int(solution.events.count) == 0
    assert solution.mode[-1].tolist() == [MODE.STICK, MODE.SLIP_POS]


@pytest.mark.slow  # its sibling: a block that a belt does not carry
def test_stick_on_a_belt_and_between_bodies_does_not_drift():
    solution = jfric.simulate(_stack(), ts=np.linspace(0.0, 1e3, 501))
    assert solution.status == jfric.Status.OK
    assert int(solution.events.count) == 0
    assert np.all(np.asarray(solution.mode) == MODE.STICK)
    t, q = np.asarray(solution.ts), np.asarray(solution.q)
    belt = 0.05 * t - 0.05 / 0.7 * (np.cos(0.7 * t + 0.4) - np.cos(0.4))
    # Over 50 m: what is left is the rounding of 400 sums.
    np.testing.assert_allclose(q[:, 0] - belt, 0.1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(q[:, 1] - q[:, 0], 0.2, rtol=0, atol=1e-12)
    v = np.asarray(solution.v)
    np.testing.assert_allclose(v[:, 1], v[:, 0], rtol=0, atol=1e-15)


# Random oscillators with friction.

SPAN, OUTPUTS, BATCH, CAPACITY = 6.0, 64, 64, 128


@functools.cache
def _oscillator() -> jfric.Problem:
    """Different coefficients for the two directions, static above kinetic, constant load."""
    law = jfric.StaticDynamic(jfric.Directional(0.1, 0.1), jfric.Directional(0.1, 0.1))
    return jfric.Problem(
        ("u",),
        {
            "mass": jfric.Mass("u", 100.0),
            "spring": jfric.Spring("u", 5000.0),
            "friction": jfric.Friction("u", law, N=1e3),
            "load": jfric.Load("u", 1500.0),
        },
        time=SPAN,
    )


@jax.jit
@jax.vmap
def _simulate(values: dict[str, jax.Array]) -> jfric.Solution:
    problem = jfric.set_parameters(_oscillator(), values)
    solver = jfric.EventDriven(max_events=CAPACITY)
    return jfric.simulate(problem, solver, ts=jnp.linspace(0.0, SPAN, OUTPUTS))


def _random_parameters(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def spread(low: float, high: float) -> np.ndarray:
        return low * (high / low) ** rng.uniform(size=BATCH)

    static = rng.uniform(0.02, 0.5, (2, BATCH))
    kinetic = static * np.where(rng.random((2, BATCH)) < 0.5, 1.0, rng.uniform(0.3, 1.0, BATCH))
    k, N = spread(1e2, 1e5), spread(10.0, 1e4)
    # Forces of the size of the friction limit, so that there are all numbers of reversals.
    size = N * static.max(0)
    return {
        "mass.m": k / spread(2.0, 40.0) ** 2,
        "spring.k": k,
        "friction.N": N,
        "friction.mu_s.positive": static[0],
        "friction.mu_s.negative": static[1],
        "friction.mu_d.positive": kinetic[0],
        "friction.mu_d.negative": kinetic[1],
        "load.F": size * rng.uniform(-12.0, 12.0, BATCH),
        "initial.q": size / k * rng.uniform(-3.0, 3.0, BATCH),
        "initial.v": np.where(rng.random(BATCH) < 0.5, 0.0, rng.normal(size=BATCH)),
    }


def _path(values, u, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions at the start, all events and the end; velocities; mode on each piece."""
    count = int(u.events.count[i])
    q = [values["initial.q"][i], *np.asarray(u.events.q[i, :count, 0]), float(u.final.q[i, 0])]
    v = [values["initial.v"][i], *np.asarray(u.events.v[i, :count, 0]), float(u.final.v[i, 0])]
    first = u.events.from_mode[i, :1] if count else u.mode[i, -1]
    modes = [*np.asarray(first), *np.asarray(u.events.to_mode[i, :count])]
    return np.array(q), np.array(v), np.array(modes)


@pytest.mark.slow
@hypothesis.settings(max_examples=8, deadline=None, derandomize=True, database=None)
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_random_oscillators_keep_the_balance_of_energy_and_the_laws(seed):
    values = _random_parameters(seed)
    solution = jax.tree.map(np.asarray, _simulate(values))
    assert np.all(solution.status == jfric.Status.OK)
    assert solution.events.count.min() == 0
    assert solution.events.count.max() > 8
    column = {k: x[:, None] for k, x in values.items()}
    m, k, N, F = (column[p] for p in ("mass.m", "spring.k", "friction.N", "load.F"))
    u, v, a, force = (getattr(solution, x)[..., 0] for x in ("q", "v", "a", "lambda_t"))
    mode = solution.mode[..., 0]
    limits = {
        (kind, sign): column[f"friction.mu_{kind}.{name}"] * N
        for kind in "sd"
        for sign, name in ((1, "positive"), (-1, "negative"))
    }
    size = np.abs(k * u) + np.abs(F) + np.maximum(limits["s", 1], limits["s", -1])

    # Equation of motion and law at all outputs, judged from motion and forces.
    assert np.all(np.abs(m * a - (F - k * u + force)) <= 1e-12 * size)
    assert np.all(force >= -limits["s", 1] - 1e-12 * size)
    assert np.all(force <= limits["s", -1] + 1e-12 * size)
    speed = np.abs(v).max(1, keepdims=True)
    stick = mode == MODE.STICK
    assert np.all(v[stick] == 0.0)
    for sign, slips in ((1, mode == MODE.SLIP_POS), (-1, mode == MODE.SLIP_NEG)):
        assert np.all((sign * v >= -1e-12 * speed)[slips])
        defect = np.abs(force + sign * limits["d", sign])
        assert np.all((defect <= 1e-12 * size)[slips])
    assert np.all(stick | (mode == MODE.SLIP_POS) | (mode == MODE.SLIP_NEG))

    # Energy along the path: each piece between events has one direction.
    for i in range(BATCH):
        q, velocity, modes = _path(values, solution, i)
        travel = np.diff(q)
        sign = np.where(modes == MODE.SLIP_POS, 1.0, -1.0)
        scale = np.abs(q).max()
        assert np.all(sign[modes != MODE.STICK] * travel[modes != MODE.STICK] >= -1e-13 * scale)
        assert np.all(travel[modes == MODE.STICK] == 0.0)
        resistance = np.where(modes == MODE.SLIP_POS, limits["d", 1][i, 0], limits["d", -1][i, 0])
        lost = float(np.sum(resistance * np.abs(travel)))
        work = F[i, 0] * (q[-1] - q[0])
        stored = 0.5 * k[i, 0] * (q[-1] ** 2 - q[0] ** 2)
        stored += 0.5 * m[i, 0] * (velocity[-1] ** 2 - velocity[0] ** 2)
        exchanged = lost + np.sum(np.abs(F[i, 0] * travel)) + 0.5 * k[i, 0] * scale**2
        exchanged += m[i, 0] * np.abs(velocity).max() ** 2
        assert abs(work - lost - stored) <= 1e-12 * exchanged
        assert lost >= 0.0


@pytest.mark.slow  # its sibling: an impact at the start
def test_an_impact_just_after_the_start_has_its_own_time():
    """The gap closes after 1e-13 of the motion's time scale: far below the shortest step that is
    tried where nothing is known of the zeros on it."""
    problem = jfric.Problem(
        ("z", "x"),
        {
            "mass": {"x": jfric.Mass("x", 1.0), "z": jfric.Mass("z", 1.0)},
            "spring": jfric.Spring("x", 40.0),
            "contact": jfric.Contact("z", "x", jfric.Coulomb(0.3), e=0.4),
            "load": jfric.Load("z", -9.81),
        },
        initial={"z": jfric.InitialState(q=5e-17, v=-3e-5)},
        time=0.01,
    )
    solution = jfric.simulate(problem)
    assert int(solution.status) == jfric.Status.OK
    assert float(solution.events.time[0]) == pytest.approx(5e-17 / 3e-5, rel=1e-6)
    start = float(solution.events.time[0])
    second = start + 2 * 0.4 * (3e-5 + 9.81 * start) / 9.81
    assert float(solution.events.time[1]) == pytest.approx(second, rel=1e-11)
    assert int(solution.steps) < 100


@pytest.mark.slow  # its sibling: bounces that end on a carriage
@pytest.mark.parametrize("kernel", ["general", "lowered"])
def test_a_ball_comes_to_rest_on_a_floor_wherever_the_origin_is(kernel):
    """Far from the origin its flights sink below the rounding of its coordinates long before the
    time that they would still take is negligible. They end at sqrt(2 h / g) (1 + e) / (1 - e)."""
    problem = jfric.Problem(
        ["y"],
        {
            "mass": jfric.Mass("y", 1.0),
            "load": jfric.Load("y", -1.0),
            "contact": jfric.Contact("y", e=0.5, gap=0.0),
        },
        initial={"y": jfric.InitialState(0.01)},
        time=2.0,
    )
    solver = jfric.EventDriven(kernel=kernel, adjoint="none", max_steps=200)

    @jax.jit
    @jax.vmap
    def run(floor, height, e):
        values = {"contact.gap": -floor, "initial.y.q": floor + height, "contact.e": e}
        found = jfric.simulate(jfric.set_parameters(problem, values), solver)
        return found.status, found.flags, found.final, found.events.time[found.events.count - 1]

    cases = [(f, h, e) for f in (0, -1, -100, 1e4) for h in (1e-2, 1e-4, 1e-6) for e in (0.5, 0.8)]
    floor, height, e = np.asarray(cases).T
    status, flags, final, last = run(floor, height, e)
    assert not status.any()
    assert (flags == int(jfric.Flag.ZENO)).all()
    assert not final.v.any()
    np.testing.assert_allclose(final.q[:, 0], floor, rtol=1e-15, atol=0)
    of_height = np.finfo(float).eps * np.abs(floor) / height
    expected = np.sqrt(2.0 * height) * (1.0 + e) / (1.0 - e)
    np.testing.assert_array_less(np.abs(last / expected - 1.0), 1e-11 + of_height)


def test_event_just_before_the_end_of_a_run():
    # The step that lands on the event was drawn on to the end.
    rising = jfric.Harmonic(2.0, omega=jnp.pi / 6.0)
    block = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "friction": jfric.Friction("x", jfric.Coulomb(1.0), N=1.0),
            "load": jfric.Load("x", rising),
        },
        time=1.0001,
    )
    solution = jfric.simulate(block, jfric.EventDriven(flow="runge-kutta"))
    assert float(solution.events.time[0]) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("rtol", [1e-10, 1e-4])
def test_a_loose_tolerance_does_not_decide_what_slides(rtol):
    """The last of three bodies, each on the one before it, slides; friction holds the others."""
    mass = [[11.1, 1.1, 0.1], [1.1, 1.1, 0.1], [0.1, 0.1, 0.1]]
    given = {"a": (1.2, 1.0), "b": (130.0, 480.0), "c": (8.0, 6.0)}
    bodies = jfric.Problem(
        [*given],
        {
            "load": {x: jfric.Load(x, load) for x, (load, _) in given.items()},
            "friction": {x: jfric.Friction(x, limit=limit) for x, (_, limit) in given.items()},
        },
        matrices=jfric.Matrices(M=mass),
        time=1.0,
    )
    end = jfric.simulate(bodies, jfric.EventDriven(flow="runge-kutta", rtol=rtol)).final
    np.testing.assert_allclose(end.q, [0.0, 0.0, 0.5 * (8.0 - 6.0) / 0.1], rtol=0.0, atol=1e-12)
