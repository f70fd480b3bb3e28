"""The pass in closed form for one degree of freedom, beside the general one."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from differences import fourth_order
from systems import simulated

import jfric
from jfric.numerics.oscillator import Oscillator, above_exponential, propagator
from jfric.solvers.event_driven.exact_flow import is_one_dof
from jfric.solvers.event_driven.prepared import prepare

GENERAL = jfric.EventDriven(adjoint="reverse", max_events=64)
CLOSED = jfric.EventDriven(adjoint="none", max_events=64)
TIMES = np.linspace(0.0, 6.0, 25)


def _concrete(make):
    """Made once, of arrays that belong to no trace."""

    @functools.cache
    def made():
        with jax.ensure_compile_time_eval():
            return make()

    return made


@_concrete
def _oscillator() -> jfric.Problem:
    """Every number that the pass reads is a parameter."""
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", k=1.0),
            "damper": jfric.Damper("x", c=0.0),
            "friction": jfric.Friction(
                "x", law=jfric.StaticDynamic(0.5, 0.3), N=jfric.Steps([2.5], [1.0, 2.0]), belt=0.0
            ),
            "load": jfric.Load("x", jfric.Steps([1.0, 4.0], [1.0, -1.0, 0.5])),
        },
        initial={"x": jfric.InitialState(q=0.0, v=0.0)},
        time=6.0,
    )


@_concrete
def _block() -> jfric.Problem:
    """No spring and no damper: the time scale of the motion is infinite."""
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "friction": jfric.Friction("x", jfric.Coulomb(0.4), N=2.0),
            "load": jfric.Load("x", jfric.Steps([1.0, 3.0], [1.5, -1.2, 0.0])),
        },
        time=6.0,
    )


@_concrete
def _with_elements() -> jfric.Problem:
    """Friction beside a stop with a damper, a spring with play, and sliders."""
    elements = {
        "stop": jfric.Stop("x", k=30.0, gap=0.4, c=1.0),
        "gap_spring": jfric.GapSpring("x", 12.0, 9.0, 0.25, 0.15),
        "jenkins": jfric.Jenkins("x", k=8.0, R=0.6),
    }
    return jfric.Problem(
        ("x",),
        {**_oscillator().elements, **elements},
        initial={"x": jfric.InitialState(q=0.0, v=0.0)},
        time=6.0,
    )


@_concrete
def _on_sliders() -> jfric.Problem:
    """Sliders alone."""
    k = np.array([1.0, 3.0, 5.0, 9.0])
    elements = {k: v for k, v in _oscillator().elements.items() if k != "friction"}
    elements["maxwell_slip"] = jfric.MaxwellSlip("x", k=k, R=0.1 * k * np.arange(1, 5))
    return jfric.Problem(
        ("x",), elements, initial={"x": jfric.InitialState(q=0.0, v=0.0)}, time=6.0
    )


def _compare(system, values: dict, scale) -> jfric.Solution:
    """Runs of both passes, which agree to 1e-9 of ``scale`` (one for each run)."""
    one, other = (simulated(solver, system, TIMES[-1])(values) for solver in (CLOSED, GENERAL))
    assert np.all(one.status == jfric.Status.OK)
    assert np.all(other.status == jfric.Status.OK)
    assert np.array_equal(one.events.count, other.events.count)
    assert np.array_equal(one.events.to_mode, other.events.to_mode)
    assert np.array_equal(one.mode, other.mode)
    np.testing.assert_allclose(one.events.time, other.events.time, rtol=1e-9, atol=1e-9)
    for found, expected in (
        (one.events.q, other.events.q),
        (one.events.v, other.events.v),
        (one.q, other.q),
        (one.v, other.v),
        (one.a, other.a),
        (one.lambda_t, other.lambda_t),
    ):
        error = np.nanmax(np.abs(found - expected), axis=(1, 2), initial=0.0)
        assert np.all(error <= 1e-9 * scale)
    return one


@pytest.mark.parametrize(("dtype", "order", "reach", "rtol"), [
    (jnp.float64, 28, 3.4, 2e-14), (jnp.float32, 14, 2.2, 2e-5),
])  # fmt: skip
def test_the_propagator_is_the_integral_of_the_exponential(dtype, order, reach, rtol):
    """Of ``B = [[0, 1], [-K, -C]]``, of any sign, up to the longest step of the flow."""
    rng = np.random.default_rng(5)
    K, C = rng.uniform(-1.0, 1.0, 60), rng.uniform(-1.0, 1.0, 60)
    K[:5], C[3:10] = 0.0, 0.0
    scale = 0.5 * (np.abs(C) + np.sqrt(C * C + 4.0 * np.abs(K)))
    s = reach / np.maximum(scale, 1.0) * rng.uniform(0.0, 1.0, 60)
    x = Oscillator(jnp.asarray(K, dtype), jnp.asarray(C, dtype))
    found = propagator(x, jnp.asarray(s, dtype), order)
    for k, c, h, p, r in zip(K, C, s, *found, strict=True):
        B = np.array([[0.0, 1.0], [-k, -c]])
        both = scipy.linalg.expm(h * np.block([[B, np.eye(2)], [np.zeros((2, 4))]]))
        size = np.abs(scipy.linalg.expm(h * np.abs(B))).max() * h
        np.testing.assert_allclose(p * np.eye(2) + r * B, both[:2, 2:], atol=rtol * size)


def test_the_bound_of_what_is_fed_is_above_the_exponential():
    x = np.concatenate([[0.0], np.geomspace(1e-6, 250.0, 4001)])
    found = np.asarray(above_exponential(jnp.asarray(x)))
    assert np.all(found >= np.exp(x) * (1.0 - 1e-13))
    small = x <= 6.8
    assert np.all(found[small] <= 1.5 * np.exp(x[small]))


@pytest.mark.slow
def test_random_oscillators_move_as_in_the_general_pass():
    """Soft, stiff, over- and underdamped, driven or braked by a belt."""
    rng = np.random.default_rng(7)
    lanes = 1000

    def some(*choices):
        """A number of one of the intervals for each lane."""
        low, high = np.array([c if isinstance(c, tuple) else (c, c) for c in choices]).T
        kind = rng.integers(len(choices), size=lanes)
        return rng.uniform(low[kind], high[kind])

    m, k = some((0.1, 5.0)), some(0.0, (0.1, 60.0))
    c = some(0.0, (0.01, 0.5), (0.5, 8.0))
    mu_d = some(0.0, (0.05, 0.8))
    load = some(0.0, (0.2, 2.0), (-2.0, -0.2))
    belt = some(0.0, (0.05, 1.0), (-1.0, -0.05))
    ratio = some(1.0, (1.05, 2.0))
    # Without damping such a body comes back to the belt's velocity again and again, and touches it.
    ratio = np.where((belt != 0.0) & (ratio == 1.0), 1.2, ratio)
    values = {
        "mass.m": m,
        "spring.k": k,
        "damper.c": c,
        "friction.mu_d": mu_d,
        "friction.mu_s": mu_d * ratio,
        "friction.belt": belt,
        "initial.x.q": some(0.0, (0.1, 2.0), (-2.0, -0.1)),
        "initial.x.v": some(0.0, (0.1, 2.0), (-2.0, -0.1)),
        "load.F.values": np.stack([load, -load, 0.5 * load], axis=1),
    }
    solution = _compare(_oscillator, values, np.full(lanes, 10.0))
    assert int(np.max(solution.events.count)) >= 20
    assert np.mean(solution.events.count == 0) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    "system", [pytest.param(_with_elements, marks=pytest.mark.slow), _on_sliders]
)
def test_piecewise_elements_and_sliders_move_as_in_the_general_pass(system):
    rng = np.random.default_rng(3)
    lanes = 200
    load = rng.uniform(-3.0, 3.0, lanes)
    values = {
        "mass.m": rng.uniform(0.3, 3.0, lanes),
        "spring.k": rng.uniform(0.0, 20.0, lanes) * rng.integers(0, 2, lanes),
        # Undamped, a shaken-down slider comes back to its limit exactly, again and again.
        "damper.c": rng.uniform(0.02, 1.0, lanes),
        "initial.x.q": rng.uniform(-0.5, 0.5, lanes),
        "initial.x.v": rng.uniform(-2.0, 2.0, lanes),
        "load.F.values": np.stack([load, -load, 0.5 * load], axis=1),
    }
    if system is _with_elements:
        mu = rng.uniform(0.05, 0.5, lanes)
        values |= {"friction.mu_d": mu, "friction.mu_s": mu * rng.choice([1.0, 1.4], lanes)}
        values |= {"jenkins.k": rng.uniform(2.0, 20.0, lanes)}
    solution = _compare(system, values, 10.0)
    assert int(np.max(solution.events.count)) >= 20


@pytest.mark.slow
def test_a_block_without_a_time_scale_of_its_own():
    loads = np.array([0.8, 0.8 * (1 + 1e-9), 0.79, 1.5, -2.0])
    values = {"load.F.values": np.stack([loads, -1.2 + 0 * loads, 0 * loads], axis=1)}
    solution = _compare(_block, values, 1.0)
    assert np.array_equal(solution.mode[:, 3, 0] != jfric.Mode.STICK, np.abs(loads) > 0.8)


def test_a_damped_oscillator_turns_round_at_each_half_of_its_period():
    """From rest, under friction, until it sticks: m = 1, k = 4, c = 0.4."""
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 4.0),
        "damper": jfric.Damper("x", 0.4),
        "friction": jfric.Friction("x", limit=0.3),
    }
    start = {"x": jfric.InitialState(q=2.0)}
    problem = jfric.Problem("x", elements, initial=start, time=12.0)
    rows = jfric.simulate(problem, jfric.EventDriven(adjoint="none")).event_table()
    half = np.pi / np.sqrt(4.0 - 0.04)
    assert [row["to"] for row in rows[-2:]] == ["slip-", "stick"]
    times = [row["time"] for row in rows if row["time"] > 0.0]
    np.testing.assert_allclose(times, half * np.arange(1, len(times) + 1), rtol=1e-13)


def test_the_pass_is_chosen_by_the_structure_of_the_problem():
    assert is_one_dof(prepare(_oscillator()))
    assert is_one_dof(prepare(_block()))
    assert is_one_dof(prepare(_with_elements()))
    assert is_one_dof(prepare(_on_sliders()))
    elements, law = dict(_block().elements), jfric.Coulomb(0.4)
    for change in (
        {"load": jfric.Load("x", jfric.Harmonic(1.0, 2.0))},
        {"load": jfric.Load("x", jfric.PiecewiseLinear([0.0, 1.0], [0.0, 1.0]))},
        {"dahl": jfric.Dahl("x", sigma=10.0, F_c=0.1)},
        {"friction": jfric.Friction("x", law, N=2.0, belt=jfric.Steps([1.0], [0.0, 1.0]))},
        {"friction": {c: jfric.Friction("x", law, N=2.0) for c in "ab"}},
    ):
        problem = jfric.Problem(("x",), {**elements, **change}, time=6.0)
        assert not is_one_dof(prepare(problem)), change


@pytest.mark.slow
def test_observables_are_those_of_the_general_pass():
    names = [
        "max.x",
        "min.v.x",
        "dissipated",
        "stick_fraction",
        "stop_time",
        "event_count",
        "x(1.3)",
    ]
    values = jnp.linspace(0.1, 0.6, 8)

    def observed(solver):
        def one(mu):
            problem = jfric.set_parameters(
                _oscillator(), {"friction.mu_d": mu, "friction.mu_s": mu}
            )
            return jfric.observe(problem, names, solver).values

        return jax.jit(jax.vmap(one))(values)

    found, expected = observed(CLOSED), observed(GENERAL)
    for name in names:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, err_msg=name)


@pytest.mark.slow
def test_derivatives_are_quotients_of_differences_or_refused():
    names = ("friction.mu_d", "spring.k", "damper.c", "mass.m", "friction.belt", "initial.x.v")
    at = jnp.array([0.2, 9.0, 0.1, 1.5, 0.15, 0.3])

    def end(values, adjoint):
        changes = dict(zip(names, values, strict=True)) | {"friction.mu_s": 0.35}
        problem = jfric.set_parameters(_oscillator(), changes)
        solution = jfric.simulate(problem, jfric.EventDriven(adjoint=adjoint), ts=TIMES[1::5])
        assert solution.ts.shape == (5,)
        return jnp.append(solution.q[:, 0], solution.events.time[3])

    found = jax.jacfwd(end)(at, "forward")
    step = 1e-5 * jnp.eye(6)
    quotient = jax.vmap(lambda d: (end(at + d, "none") - end(at - d, "none")) / 2e-5)(step).T
    np.testing.assert_allclose(found, quotient, rtol=1e-6, atol=1e-7)
    with pytest.raises(jfric.ProblemError, match="adjoint: found 'none', but derivatives"):
        jax.jacrev(end)(at, "none")
    with pytest.raises(jfric.ProblemError, match="adjoint: found 'none', but derivatives"):
        jax.jvp(lambda values: end(values, "none"), (at,), (at,))


def test_reverse_mode_is_refused_in_a_sentence_where_there_is_none():
    """An error about loops came from JAX, which names no setting of a solver."""

    def end(k, adjoint):
        parts = {"mass": jfric.Mass("x", 1.0)}
        parts["spring"] = {f"k{i}": jfric.Spring("x", stiffness) for i, stiffness in enumerate(k)}
        problem = jfric.Problem(["x"], parts, initial={"x": jfric.InitialState(1.0)}, time=0.5)
        return jfric.simulate(problem, jfric.EventDriven(adjoint=adjoint)).final.q[0]

    with pytest.raises((RuntimeError, jfric.ProblemError), match=r"^adjoint: 'forward' has d"):
        jax.grad(end)(jnp.ones(1), "forward")
    with pytest.raises((RuntimeError, jfric.ProblemError), match=r"^adjoint: 'auto' .*has der"):
        jax.grad(end)(jnp.ones(17), "auto")
    slopes = jax.jacfwd(end)(jnp.ones(17), "auto")
    omega = 17**0.5
    np.testing.assert_allclose(slopes, -0.5 * np.sin(0.5 * omega) / (2.0 * omega), rtol=1e-9)


@pytest.mark.slow
def test_derivatives_through_sliders_are_those_of_reverse_mode_and_differences():
    names = ("maxwell_slip.k", "maxwell_slip.R", "spring.k", "mass.m", "initial.x.v")
    at = jnp.concatenate([jnp.array([1.0, 3.0, 5.0, 9.0, 0.1, 0.6, 1.5, 3.6, 2.0, 1.2, 0.3])])
    cuts = np.array([4, 8, 9, 10])

    def end(values, adjoint):
        changes = dict(zip(names, jnp.split(values, cuts), strict=True))
        changes = {k: v if v.size > 1 else v[0] for k, v in changes.items()}
        changes |= {"damper.c": 0.1, "load.F.values": jnp.array([3.0, -3.0, 1.5])}
        problem = jfric.set_parameters(_on_sliders(), changes)
        solution = jfric.simulate(problem, jfric.EventDriven(adjoint=adjoint), ts=TIMES[1::8])
        return jnp.append(solution.q[:, 0], solution.events.time[:8])

    found = jax.jit(jax.jacfwd(functools.partial(end, adjoint="forward")))(at)
    back = jax.jit(jax.jacrev(functools.partial(end, adjoint="reverse")))(at)
    np.testing.assert_allclose(found, back, rtol=1e-8, atol=1e-10)
    end_of = jax.jit(functools.partial(end, adjoint="none"))
    quotient = jnp.stack(
        [fourth_order(lambda d, e=e: end_of(at + d * e), 1e-5) for e in jnp.eye(11)], axis=1
    )
    np.testing.assert_allclose(found, quotient, rtol=1e-7, atol=1e-8)
    twice = jax.jit(jax.jacfwd(jax.jacfwd(lambda x: end(at.at[9].set(x), "forward"))))(at[9])
    slope = jax.jit(jax.jacfwd(lambda x: end(at.at[9].set(x), "forward")))
    np.testing.assert_allclose(
        twice, fourth_order(lambda d: slope(at[9] + d), 1e-5), rtol=1e-6, atol=1e-6
    )


@pytest.mark.slow
def test_a_run_goes_on_with_the_other_pass():
    values = {"friction.mu_s": 0.3, "friction.mu_d": 0.2, "spring.k": 9.0}
    problem = jfric.set_parameters(_oscillator(), values)
    expected = jfric.simulate(problem, GENERAL).final
    for first, second in ((GENERAL, CLOSED), (CLOSED, GENERAL)):
        for half in (0.4, 1.7, 3.3):
            middle = jfric.simulate(problem, first, end=half).final
            end = jfric.simulate(problem, second, start=middle).final
            np.testing.assert_allclose(end.q, expected.q, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:the exact flow runs in float32")
@pytest.mark.slow
def test_single_precision():
    values = {"friction.mu_s": 0.3, "friction.mu_d": 0.2, "spring.k": 9.0}
    problem = jfric.set_parameters(_oscillator(), values)
    expected = jfric.simulate(problem, CLOSED, ts=TIMES)
    with jax.enable_x64(False):
        problem = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), _oscillator())
        problem = jfric.set_parameters(problem, values)
        found = jfric.simulate(problem, CLOSED, ts=np.asarray(TIMES, np.float32))
    assert found.q.dtype == jnp.float32
    assert int(found.status) == jfric.Status.OK
    np.testing.assert_allclose(found.q, expected.q, atol=2e-5)


def test_a_belt_takes_a_body_along_until_its_spring_lets_it_go():
    law = jfric.StaticDynamic(0.5, 0.25)
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 1.0),
        "friction": jfric.Friction("x", law, N=1.0, belt=0.2),
    }
    start = {"x": jfric.InitialState(0.0, 0.2)}
    solution = jfric.simulate(jfric.Problem(("x",), elements, initial=start, time=4.0), CLOSED)
    (found,) = solution.event_table()
    assert (found["from"], found["to"]) == ("stick", "slip-")
    assert found["time"] == pytest.approx(0.5 / 0.2, rel=1e-14)
    np.testing.assert_allclose(found["q"], [0.5], rtol=1e-14)


@pytest.mark.slow
def test_a_belt_that_is_changed_between_two_runs_takes_nothing_along_at_once():
    """A body that sticks slides where its belt goes on faster, and is accelerated by friction."""

    def problem(belt):
        return jfric.Problem(
            ("x",),
            {
                "mass": jfric.Mass("x", 1.0),
                "friction": jfric.Friction("x", jfric.Coulomb(0.25), N=2.0, belt=belt),
            },
            initial={"x": jfric.InitialState(0.0, 0.5)},
            time=0.5,
        )

    for solver in (jfric.EventDriven(), GENERAL):
        first = jfric.simulate(problem(0.5), solver)
        assert first.final.mode[0] == jfric.Mode.STICK
        then = jfric.simulate(problem(2.0), solver, start=first.final, end=1.5)
        # v = 0.5 + mu N t for a unit mass.
        np.testing.assert_allclose(then.final.v, [1.0], rtol=1e-12)
        np.testing.assert_allclose(then.final.q, [0.25 + 0.75], rtol=1e-12)
        assert then.final.mode[0] == jfric.Mode.SLIP_NEG


@pytest.mark.filterwarnings("ignore:the .* flow runs in float32")
@pytest.mark.parametrize("flow", ["exact", pytest.param("runge-kutta", marks=pytest.mark.slow)])
def test_impacts_in_single_precision_keep_what_the_warning_promises(flow):
    """The first was 2e-4 s late: it was found on a step of 20 s, to rounding of its end."""
    elements = {
        "mass": jfric.Mass("z", 1.0),
        "load": jfric.Load("z", -9.81),
        "contact": jfric.Contact("z", e=0.9),
    }
    problem = jfric.Problem(["z"], elements, initial={"z": jfric.InitialState(1.0)}, time=20.0)
    with jax.enable_x64(False):
        problem = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), problem)
        events = jfric.simulate(problem, jfric.EventDriven(flow=flow)).events
    assert events.time.dtype == jnp.float32
    fall, count = np.sqrt(2.0 / 9.81), 60
    exact = fall * (1.0 + 2.0 * np.cumsum(0.9 ** np.arange(count)) - 2.0)
    promised = 1e-5 if flow == "exact" else 1e-4
    np.testing.assert_allclose(events.time[:count], exact, rtol=promised)
    np.testing.assert_allclose(events.time[0], fall, rtol=5e-7)
