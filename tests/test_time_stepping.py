"""Time-stepping schemes: published numbers, order of convergence, invariants, protocol."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.contact.contact_methods import solved_below
from jfric.solvers.time_stepping.inputs import (
    block_inputs,
    block_pushes,
    load_means,
    load_tables,
    step_inputs,
)
from jfric.solvers.time_stepping.prepared import prepare
from jfric.verification.configs import shipped

jax.config.update("jax_enable_x64", True)

SCHEMES = {
    "moreau-jean": jfric.MoreauJean,
    "midpoint": jfric.Midpoint,
    "stabilised-midpoint": jfric.StabilisedMidpoint,
}
#: Declared orders of convergence: through switches, and between them.
THROUGH_SWITCHES = 1.0
BETWEEN_SWITCHES = {"moreau-jean": 2.0, "midpoint": 2.0, "stabilised-midpoint": 2.0}
VE0116_TIMES = jnp.asarray([0.25, 1.0, 2.0, 4.0])


@functools.cache
def _problem(name: str) -> jfric.Problem:
    return jax.tree.map(jnp.asarray, jfric.load(shipped(name)))


@eqx.filter_jit
def _run(problem, solver, ts):
    return jfric.simulate(problem, solver, ts=ts)


def _ve0116(solver, ts=VE0116_TIMES):
    return _run(_problem("ve0116"), solver, ts)


# What is given on the steps.


@pytest.mark.parametrize("load", ["smooth", "with a breakpoint", "with a moving support"])
@pytest.mark.parametrize("solver", [jfric.MoreauJean(0.01, theta=0.7), jfric.Midpoint(0.01)])
def test_inputs_of_a_block_are_those_of_its_steps(load, solver):
    """Sums of sines by their addition theorem, for all steps of a block at once."""
    sines = [jfric.Harmonic(2.0, 3.0, 0.4), 5.0, jfric.Harmonic(-1.0, 70.0)]
    other = jfric.Steps([0.33], [0.0, 4.0]) if load == "with a breakpoint" else 1.0
    support = {"base": jfric.Base(jfric.Harmonic(0.1, 5.0))}
    moves = load == "with a moving support"
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 2.0), "y": jfric.Mass("y", 3.0)},
            "spring": jfric.Spring(("base", "x") if moves else "x", 50.0),
            "load": {
                "a": jfric.Load({"x": 1.0, "y": -2.0}, jfric.Sum(sines)),
                "b": jfric.Load("y", other),
            },
            **(support if moves else {}),
        },
        time=1.0,
    )
    prepared = prepare(problem, solver.scheme, solver.dt, "auto")
    mechanics, scheme, h = prepared.mechanics, prepared.scheme, prepared.h
    times, force = 0.05 + h * jnp.arange(40), jnp.asarray([0.3, -0.2])
    each = jax.vmap(lambda t: step_inputs(mechanics, scheme, t, h, force))(times)
    tables = load_tables(mechanics, scheme, h, 40)
    means = load_means(mechanics, tables, times)
    block = block_inputs(mechanics, scheme, means, times, h, force)
    np.testing.assert_allclose(block.impulse, each.impulse, rtol=0, atol=1e-13)
    push = jnp.asarray([[1.0, 0.5], [-0.25, 2.0]])
    pushes = block_pushes(mechanics, block, means, h, force, push)
    np.testing.assert_allclose(pushes, each.impulse @ push.T, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_elastic_impacts_of_a_body_that_turns_gain_no_energy():
    """Rounding is left of ``impulse (v + v')``, of either sign, where two velocities cancel."""

    def simulated(mass, v):
        problem = jfric.Problem(
            ("y", "phi"),
            {
                "mass": {"y": jfric.Mass("y", mass), "phi": jfric.Mass("phi", 0.37)},
                "contact": jfric.Contact({"y": 1.0, "phi": 0.7}, e=1.0, gap=0.05),
            },
            initial={"y": jfric.InitialState(0.0, v)},
            time=0.2,
        )
        final = jfric.simulate(problem, jfric.MoreauJean(1e-2)).final
        return final.status, 0.5 * (mass * final.v[0] ** 2 + 0.37 * final.v[1] ** 2)

    mass, v = jnp.linspace(1.0, 2.0, 20), jnp.linspace(-1.0, -3.0, 20)
    status, energy = jax.jit(jax.vmap(simulated))(mass, v)
    assert not status.any()
    np.testing.assert_allclose(energy, 0.5 * mass * v**2, rtol=1e-13)


# Published and reference numbers.


@pytest.mark.parametrize(
    ("theta", "dt", "expected"),
    [
        (0.5, 1e-2, 0.1374358212),
        (0.5, 1e-3, 0.1387514322),
        (0.5, 1e-4, 0.1389069361),
        (1.0, 1e-2, 0.1759925445),
        (1.0, 1e-3, 0.1431450128),
        (1.0, 1e-4, 0.1393530871),
    ],
)
def test_moreau_jean_gives_the_reference_values_of_ve0116(theta, dt, expected):
    solution = _ve0116(jfric.MoreauJean(dt, theta=theta))
    assert solution.status == jfric.Status.OK
    assert abs(float(solution.q[1, 0]) - expected) < 1e-10
    assert int(solution.steps) == round(4.0 / dt)


JANOVSKY_TIMES = jnp.asarray([10.0, 50.0, 100.0, 200.0, 300.0, 376.99])
#: Errors of the stabilised midpoint rule with dt = 0.001 at these times, to the printed digits.
JANOVSKY_ERRORS = (9.1e-9, -3.1e-9, 2.9e-8, -1.3e-9, 4.6e-9, 3.9e-9)
JANOVSKY_EXACT = (
    0.33939342027690417,
    0.3623448103062179,
    -0.5781546102767835,
    0.3616485542299593,
    -0.45787500187309704,
    -0.2946254604052216,
)


@pytest.mark.slow
def test_stabilised_midpoint_switches_sixty_times():
    solution = _run(_problem("janovsky_4_1"), jfric.StabilisedMidpoint(1e-3), JANOVSKY_TIMES)
    assert solution.status == jfric.Status.OK
    # The label of the first step is not a change of mode.
    assert int(solution.events.count) == 60
    errors = np.asarray(solution.q[:, 1]) - np.asarray(JANOVSKY_EXACT)
    np.testing.assert_allclose(errors, JANOVSKY_ERRORS, rtol=0, atol=6e-10)
    assert np.abs(np.asarray(solution.events.time[:60]) - _exact_times()).max() < 2e-3


def _exact_times():
    from jfric.verification.job_lists import cases

    case = next(c for c in cases() if c.name == "janovsky_4_1")
    times = {str(e.quantity): e.expected for e in case.expected}
    return np.array([times[f"event_time({i})"] for i in range(1, 61)])


@pytest.mark.slow
def test_plain_midpoint_chatters():
    """Published: the rule switches about 23,000 times; displacements stay accurate."""
    solution = _run(_problem("janovsky_4_1"), jfric.Midpoint(1e-3), JANOVSKY_TIMES)
    assert abs(int(solution.events.count) - 23_000) < 230
    assert solution.status == jfric.Status.MAX_EVENTS
    assert np.abs(np.asarray(solution.q[:, 1]) - np.asarray(JANOVSKY_EXACT)).max() < 1.1e-7


# Order of convergence.


def _order(steps, errors) -> float:
    """Slope of the straight line through the logarithms."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_order_through_the_switches_of_ve0116(scheme):
    # Where a switch falls in its step changes the error: many steps, none of them a divisor.
    steps = 1e-2 * 0.83 ** np.arange(24)
    exact = np.array([0.1389304187383115, 0.2805962394559113])
    errors = []
    for dt in steps:
        solution = _ve0116(SCHEMES[scheme](dt))
        errors.append(np.abs(np.asarray(solution.q[1:3, 0]) - exact).max())
    assert abs(_order(steps, errors) - THROUGH_SWITCHES) < 0.25


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["moreau-jean", "stabilised-midpoint"])
def test_order_through_the_switches_of_sdnd106(scheme):
    steps = 4e-3 * 0.83 ** np.arange(24)
    exact = np.array([1.353337660892898, 1.807532466175952])
    errors = []
    for dt in steps:
        solution = _run(_problem("sdnd106"), SCHEMES[scheme](dt), jnp.asarray([0.15, 0.16]))
        errors.append(np.abs(np.asarray(solution.q[0]) - exact).max())
    assert abs(_order(steps, errors) - THROUGH_SWITCHES) < 0.25


@pytest.mark.parametrize("scheme", SCHEMES)
def test_order_between_switches(scheme):
    # Before the first turn.
    steps = 0.25 / np.array([10.0, 20.0, 40.0, 80.0])
    exact = 0.33479584199348433
    errors = [abs(float(_ve0116(SCHEMES[scheme](dt)).q[0, 0]) - exact) for dt in steps]
    assert abs(_order(steps, errors) - BETWEEN_SWITCHES[scheme]) < 0.1


def test_moreau_jean_with_theta_one_is_of_first_order():
    steps = 0.25 / np.array([80.0, 160.0, 320.0, 640.0])
    errors = [
        abs(float(_ve0116(jfric.MoreauJean(dt, theta=1.0)).q[0, 0]) - 0.33479584199348433)
        for dt in steps
    ]
    assert abs(_order(steps, errors) - 1.0) < 0.1


# Against the event-driven solver.


def _block(e=0.5, **contact) -> jfric.Problem:
    """A block thrown onto a moving belt: impacts, slip, stick."""
    return jfric.Problem(
        ("x", "z"),
        {
            "mass": {"x": jfric.Mass("x", 2.0), "z": jfric.Mass("z", 2.0)},
            "contact": jfric.Contact("z", "x", jfric.Coulomb(0.3), e=e, belt=0.5, **contact),
            "load": jfric.Load("z", -20.0),
        },
        initial={"x": jfric.InitialState(v=3.0), "z": jfric.InitialState(q=0.3)},
        time=2.0,
    )


def _two_contacts(law=None) -> jfric.Problem:
    """Two masses that rub on the ground and on each other, and a stop."""
    law = law if law is not None else jfric.StaticDynamic(0.4, 0.3)
    return jfric.Problem(
        ("a", "b"),
        {
            "mass": {"a": jfric.Mass("a", 1.0), "b": jfric.Mass("b", 2.0)},
            "spring": {"a": jfric.Spring("a", 40.0), "ab": jfric.Spring(("a", "b"), 30.0)},
            "friction": {
                "ground": jfric.Friction("a", law, N=10.0),
                "pair": jfric.Friction(("a", "b"), jfric.Coulomb(0.2), N=8.0),
            },
            "stop": jfric.Stop("b", 500.0, gap=0.3, c=2.0),
            "load": jfric.Load("b", jfric.Harmonic(20.0, 3.0)),
        },
        time=4.0,
    )


def _pendulum() -> jfric.Problem:
    return jfric.Problem(
        {"phi": "rotation"},
        {
            "mass": jfric.Mass("phi", 1.0),
            "pendulum": jfric.Pendulum("phi", 1.0, 1.0),
            "friction": jfric.Friction("phi", jfric.Stribeck(0.8, 0.5, 0.3), N=1.0),
        },
        initial={"phi": jfric.InitialState(q=1.5)},
        time=4.0,
    )


SYSTEMS = {
    "impacts on a belt": _block,
    "no tangential impulse": lambda: _block(0.0, impact="none"),
    "two contacts and a stop": _two_contacts,
    "nonlinear with Stribeck friction": _pendulum,
}
#: Error allowed relative to the peak, for one second of step: the bound falls with the step.
ALLOWED = 10.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("no tangential impulse", "stabilised-midpoint"),
        ("two contacts and a stop", "moreau-jean"),
        ("nonlinear with Stribeck friction", "stabilised-midpoint"),
    ],
)
def test_schemes_tend_to_the_event_driven_solution(name, scheme):
    problem = SYSTEMS[name]()
    ts = jnp.linspace(0.0, float(problem.time.end), 21)
    exact = _run(problem, jfric.EventDriven(), ts)
    scale = np.abs(np.asarray(exact.q)).max()
    for dt in (2e-3, 2.5e-4):
        solution = _run(problem, SCHEMES[scheme](dt), ts)
        assert solution.status == jfric.Status.OK
        assert float(solution.final.residual) < solved_below(jnp.float64)
        error = np.abs(np.asarray(solution.q) - np.asarray(exact.q)).max() / scale
        assert error < ALLOWED * dt


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sdnd106", "impacts on a belt"])
def test_both_forms_of_the_step_agree(name):
    """One contact in scalars, and the same step written for any number of contacts."""
    problem = SYSTEMS[name]() if name in SYSTEMS else _problem(name)
    ts = jnp.linspace(0.0, float(problem.time.end), 21)
    one = _run(problem, jfric.StabilisedMidpoint(1e-3), ts)
    general = _run(problem, jfric.StabilisedMidpoint(1e-3, method="lemke"), ts)
    for field in ("q", "v", "lambda_t", "lambda_n"):
        a, b = getattr(one, field), getattr(general, field)
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * (1.0 + np.abs(b).max(initial=0.0)))
    np.testing.assert_array_equal(one.mode, general.mode)
    np.testing.assert_array_equal(one.events.time, general.events.time)
    np.testing.assert_array_equal(one.events.to_mode, general.events.to_mode)


# Invariants.


def test_stick_is_exact():
    solution = _ve0116(jfric.StabilisedMidpoint(1e-3), jnp.linspace(3.2, 4.0, 9))
    assert np.unique(np.asarray(solution.q)).size == 1
    assert not np.any(np.asarray(solution.v))
    np.testing.assert_array_equal(solution.mode, int(jfric.Mode.STICK))


def test_reported_forces_obey_the_laws_and_the_equation_of_motion():
    problem = _problem("ve0116")
    ts = jnp.linspace(0.0, 4.0, 41)
    solution = _run(problem, jfric.MoreauJean(1e-4, theta=1.0), ts)
    assert jnp.max(jfric.contact_residual(problem, solution)) < 1e-12
    # The mean acceleration of a step belongs to its middle, and jumps where the motion turns.
    assert jnp.sum(jfric.motion_residual(problem, solution) > 2e-3) == 0


def test_impacts_obey_newtons_law_and_are_logged():
    solution = _run(_block(), jfric.MoreauJean(1e-3), jnp.asarray([0.5, 2.0]))
    first = solution.event_table()[0]
    assert first["impact"]
    assert first["from"] == first["to"] == "open"
    np.testing.assert_allclose(first["v"][1], -0.5 * first["v_before"][1], rtol=1e-12)
    assert solution.mode[-1, 0] == jfric.Mode.STICK
    np.testing.assert_allclose(solution.v[-1], [0.5, 0.0], atol=1e-15)
    np.testing.assert_allclose(solution.lambda_n[-1], 20.0, rtol=1e-12)


@pytest.mark.slow
def test_each_contact_has_its_own_restitution():
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)},
            "contact": {"hard": jfric.Contact("x", e=0.8), "soft": jfric.Contact("y", e=0.5)},
        },
        initial={d: jfric.InitialState(q=0.1, v=-1.0) for d in "xy"},
        time=0.15,
    )
    solution = _run(problem, jfric.MoreauJean(0.01), jnp.asarray([0.15]))
    np.testing.assert_allclose(solution.v, [[0.8, 0.5]], rtol=1e-12)


@pytest.mark.slow
def test_a_load_that_jumps_between_steps_acts_from_there_on():
    problem = jfric.Problem(
        ("u",),
        {"mass": jfric.Mass("u", 1.0), "load": jfric.Load("u", jfric.Steps([0.3], [1.0, 3.0]))},
        time=0.6,
    )
    for scheme in SCHEMES.values():
        solution = _run(problem, scheme(1e-2), jnp.asarray([0.3, 0.6]))
        np.testing.assert_allclose(solution.v[:, 0], [0.3, 1.2], rtol=1e-13)
        np.testing.assert_allclose(solution.q[:, 0], [0.045, 0.27], rtol=1e-13)


# Outputs, restart, own loop.


def test_outputs_between_steps_and_the_rest_of_a_step():
    fine = _ve0116(jfric.MoreauJean(1e-3), jnp.asarray([0.0, 1.0, 1.001, 1.002]))
    between = _ve0116(jfric.MoreauJean(1e-3), jnp.asarray([0.0, 1.0, 1.0015, 1.002]))
    np.testing.assert_allclose(between.q[2], 0.5 * (fine.q[2] + fine.q[3]), rtol=1e-13)
    np.testing.assert_array_equal(between.q[3], fine.q[3])
    assert float(fine.q[0, 0]) == 0.0
    # 4 s are 571 steps of 7 ms and a rest.
    solution = _ve0116(jfric.MoreauJean(7e-3))
    assert float(solution.final.t) == 4.0
    assert int(solution.steps) == 572
    np.testing.assert_array_equal(solution.q[-1], solution.final.q)


@pytest.mark.slow
def test_restart_continues_the_run():
    problem, solver = _problem("ve0116"), jfric.StabilisedMidpoint(1e-3)
    whole = jfric.simulate(problem, solver, ts=jnp.asarray([4.0]))
    first = jfric.simulate(problem, solver, end=1.5)
    second = jfric.simulate(problem, solver, start=first.final, ts=jnp.asarray([4.0]))
    np.testing.assert_allclose(second.q, whole.q, rtol=0, atol=1e-13)
    assert int(first.events.count) + int(second.events.count) == int(whole.events.count)


def test_the_final_mode_is_that_of_the_last_step():
    """A step later the body slides."""
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "friction": jfric.Friction("x", jfric.Coulomb(0.5), N=1.0),
        "load": jfric.Load("x", jfric.Steps([1.0, 5.0], [0.0, 10.0, 0.0])),
    }
    problem = jfric.Problem(["x"], elements, time=5.0)
    ends = [jfric.simulate(problem, jfric.MoreauJean(1e-2), end=end).final for end in (1.0, 1.01)]
    assert [int(x.mode[0]) for x in ends] == [jfric.Mode.STICK, jfric.Mode.SLIP_POS]
    assert [float(x.v[0]) for x in ends] == [0.0, pytest.approx(0.01 * 9.5, rel=1e-12)]


@pytest.mark.slow
def test_steps_one_by_one_make_the_run():
    problem, solver = _problem("ve0116"), jfric.MoreauJean(1e-2)
    step = eqx.filter_jit(solver.step)
    state = solver.init(problem)
    for _ in range(50):
        state, info = step(problem, state)
    assert float(info.h) == pytest.approx(1e-2)
    assert float(state.residual) < 1e-10
    run = _ve0116(solver, jnp.asarray([0.5, 4.0]))
    np.testing.assert_allclose(state.q, run.q[0], rtol=0, atol=1e-13)
    advanced = eqx.filter_jit(solver.advance)(problem, solver.init(problem), 0.5)
    np.testing.assert_allclose(advanced.q, run.q[0], rtol=0, atol=1e-13)
    pushed, _ = step(problem, solver.init(problem), force=jnp.asarray([-1500.0]))
    np.testing.assert_array_equal(pushed.v, 0.0)


# Transformations.


def _displacement(solver):
    def u(k):
        problem = jfric.set_parameters(_problem("ve0116"), {"spring.k": k})
        return jfric.simulate(problem, solver, end=1.0).final.q[0]

    return u


@pytest.mark.slow
def test_derivatives_miss_the_switching_times():
    """Documented: du(1)/dk tends to 9.92e-5, or to -1.66e-5 where a turn takes a step of stick;
    the exact value is 7.246e-5."""
    derivative = jax.jit(jax.jacfwd(lambda k, dt: _displacement(jfric.MoreauJean(dt))(k)))
    found = np.array([float(derivative(5000.0, dt)) for dt in (1e-3, 1e-4, 3e-5)])
    np.testing.assert_allclose(found, [9.92e-5, -1.66e-5, 9.92e-5], rtol=0, atol=1e-7)
    assert np.all(np.abs(found - 7.246204152820476e-5) > 2.5e-5)
    solution = _ve0116(jfric.MoreauJean(1e-3))
    assert not bool(solution.differentiable)
    assert int(solution.flags) & jfric.Flag.STEP_RESOLUTION


@pytest.mark.slow
def test_reverse_mode_agrees_with_forward_mode():
    """Of the motion at the end, at an output and at the first event."""
    original = _problem("ve0116")

    def found(k, adjoint):
        problem = jfric.set_parameters(original, {"spring.k": k})
        solver = jfric.MoreauJean(1e-3, adjoint=adjoint, max_steps=2000)
        solution = jfric.simulate(problem, solver, ts=jnp.array([0.35]), end=1.0)
        return jnp.stack([solution.final.q[0], solution.q[0, 0], solution.events.q[0, 0]])

    forward = jax.jit(jax.jacfwd(lambda k: found(k, "forward")))(5000.0)
    reverse = jax.jit(jax.jacrev(lambda k: found(k, "reverse")))(5000.0)
    assert np.all(forward != 0.0)
    np.testing.assert_allclose(reverse, forward, rtol=1e-9)


@pytest.mark.slow
def test_reverse_mode_keeps_few_states():
    """Memory grows with the number of blocks of steps, not with the number of steps."""

    def size(max_steps):
        solver = jfric.MoreauJean(1e-3, adjoint="reverse", max_steps=max_steps, max_events=0)
        lowered = jax.jit(jax.grad(_displacement(solver))).lower(5000.0)
        return lowered.compile().memory_analysis().temp_size_in_bytes

    few, many = size(8_192), size(131_072)
    # Sixteen times the steps; a state for each step would take 16 MB.
    assert many - few < 1_000_000


@pytest.mark.slow
def test_a_batch_agrees_with_single_runs():
    mus = jnp.asarray([0.08, 0.11, 0.2])

    def last(mu):
        problem = jfric.set_parameters(_problem("ve0116"), {"friction.mu": mu})
        solution = jfric.simulate(problem, jfric.StabilisedMidpoint(1e-3), ts=VE0116_TIMES)
        return solution.q[:, 0], solution.events.count

    together = jax.jit(jax.vmap(last))(mus)
    for i, mu in enumerate(mus):
        q, count = jax.jit(last)(mu)
        np.testing.assert_allclose(together[0][i], q, rtol=0, atol=1e-12)
        assert together[1][i] == count


@pytest.mark.slow
def test_single_precision():
    with jax.enable_x64(False):
        problem = jfric.load(shipped("ve0116"))
        solution = jfric.simulate(problem, jfric.StabilisedMidpoint(1e-3), ts=jnp.asarray([1.0]))
        assert solution.q.dtype == jnp.float32
        assert solution.status == jfric.Status.OK
        assert abs(float(solution.q[0, 0]) - 0.13893) < 2e-3


# Refusals and statuses.


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (lambda: jfric.MoreauJean(0.0), "dt: found 0, must be positive"),
        (lambda: jfric.MoreauJean(1e-3, theta=1.5), "theta: found 1.5, must lie between 0 and 1"),
        (
            lambda: jfric.Midpoint(1e-3, method="newto"),
            r"method: found 'newto' \(did you mean 'newton'",
        ),
        (
            lambda: jfric.Midpoint(1e-3, max_steps=0),
            "max_steps: found 0, expected a whole number, at least 1",
        ),
        (lambda: jfric.Midpoint(1e-3, adjoint="both"), "adjoint: found 'both', allowed are"),
    ],
)
def test_bad_settings_are_refused(solver, message):
    with pytest.raises(jfric.ProblemError, match=message):
        jfric.simulate(_problem("ve0116"), solver())


def test_plain_midpoint_refuses_laws_that_need_rest():
    with pytest.raises(jfric.ProblemError, match="StaticDynamic needs a contact at rest"):
        jfric.simulate(_problem("sdnd106"), jfric.Midpoint(1e-3))


def test_trouble_is_a_status():
    problem = _problem("ve0116")
    short = jfric.simulate(problem, jfric.MoreauJean(1e-3, max_steps=100), ts=VE0116_TIMES)
    assert short.status == jfric.Status.MAX_STEPS
    assert float(short.final.t) == pytest.approx(0.1)
    assert np.all(np.isnan(np.asarray(short.q)))
    full = jfric.simulate(problem, jfric.MoreauJean(1e-3, max_events=2))
    assert full.status == jfric.Status.MAX_EVENTS
    assert int(full.events.count) > 2
    wild = jfric.set_parameters(problem, {"load.F": 1e300, "spring.k": 0.0})
    wild = jfric.set_parameters(wild, {"mass.m": 1e-300})
    assert jfric.simulate(wild, jfric.MoreauJean(1.0)).status == jfric.Status.NON_FINITE


@pytest.mark.slow
def test_another_solvers_end_is_a_start():
    problem = _problem("ve0116")
    first = jfric.simulate(problem, end=1.0)
    second = jfric.simulate(problem, jfric.StabilisedMidpoint(1e-4), start=first.final, end=2.0)
    assert abs(float(second.final.q[0]) - 0.2805962394559113) < 1e-4


@pytest.mark.slow
def test_a_motion_beyond_all_numbers_has_a_status_wherever_it_ends():
    """Without a change of mode, from the middle of the last block of steps on."""
    parts = {"mass": jfric.Mass("u", 1.0), "friction": jfric.Friction("u", limit=0.1)}
    problem = jfric.Problem(
        ["u"], parts, matrices=jfric.Matrices(K=[[-1e4]]), initial={"u": jfric.InitialState(1.0)},
        time=7.0,
    )  # fmt: skip
    run = jax.jit(
        lambda end: jfric.simulate(
            jfric.set_parameters(problem, {"time.end": end}), jfric.MoreauJean(1e-3)
        )
    )
    last = float(run(8.0).final.t)
    assert 7.0 < last < 7.2
    for end in last + np.array([-0.1, -0.01, 0.002, 0.005, 0.01, 0.03, 0.1]):
        found = run(end)
        expected = jfric.Status.OK if end < last else jfric.Status.NON_FINITE
        assert int(found.status) == expected
        assert float(found.final.t) == pytest.approx(min(end, last), abs=1e-9)


def test_loads_of_fixed_steps_go_on_after_a_restart():
    parts = {"mass": jfric.Mass("x", 1.0), "load": jfric.Load("x", jfric.Harmonic(1.0, 2.0))}
    problem, solver = jfric.Problem(["x"], parts, time=2.0), jfric.MoreauJean(1e-2)
    first = jfric.simulate(problem, solver, end=0.5)
    whole, rest = (
        jfric.simulate(problem, solver, **more).final.v for more in ({}, {"start": first.final})
    )
    np.testing.assert_allclose(rest, whole, atol=1e-12)
