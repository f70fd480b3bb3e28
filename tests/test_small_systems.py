"""Small systems, lowered to scalars and by the general pass."""

from __future__ import annotations

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import coupled_clutches
from references.runge_kutta import NAMES
from systems import simulated

import jfric
from jfric.numerics.by_batch import Sizes
from jfric.numerics.runge_kutta import METHODS, stages
from jfric.solvers.event_driven.kernels import ONE_CONTACT, SEVERAL_FRICTIONS, TWO_FRICTIONS

GENERAL = jfric.EventDriven(adjoint="none", kernel="general", max_events=128)
LOWERED = jfric.EventDriven(adjoint="none", kernel="lowered", max_events=128)
TIMES = np.linspace(0.0, 8.0, 25)
LANES = 200


def _two(x, y) -> dict:
    return {d: jfric.InitialState(q=q, v=v) for d, (q, v) in {"x": x, "y": y}.items()}


@functools.cache
def _carriage() -> jfric.Problem:
    """Two masses on a moving base; the first rubs on a belt, under a normal force that varies."""
    clutch = jfric.PiecewiseLinear([1.0, 5.0], [1.0, 2.0])
    belt = jfric.Steps([3.0], [0.1, 0.3])
    return jfric.Problem(
        ("x", "y"),
        {
            "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 2.0)},
            "spring": {
                "between": jfric.Spring(("x", "y"), k=5.0),
                "base": jfric.Spring(("y", "floor"), k=3.0),
            },
            "damper": jfric.Damper(("y", "floor"), c=0.2),
            "friction": jfric.Friction("x", jfric.StaticDynamic(0.5, 0.3), N=clutch, belt=belt),
            "load": {
                "steps": jfric.Load("x", jfric.Steps([2.0], [1.0, -1.0])),
                "wave": jfric.Load("y", jfric.Harmonic(1.0, 2.0)),
            },
            "base": {"floor": jfric.Base(jfric.Harmonic(0.2, 1.3))},
        },
        initial=_two((0.1, 0.0), (0.0, 0.3)),
        time=8.0,
    )


@functools.cache
def _hopper() -> jfric.Problem:
    """A body that lifts off, lands, sticks and slides on a table that moves up and down."""
    return jfric.Problem(
        ("x", "y"),
        {
            "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 1.0)},
            "spring": {
                "x": jfric.Spring("x", k=1.2),
                "y": jfric.Spring("y", k=1.2),
                "cross": jfric.Spring({"x": 1.0, "y": 1.0}, k=0.3),
            },
            "damper": jfric.Damper("y", c=0.1),
            "contact": jfric.Contact(
                {"y": 1.0, "table": -1.0}, "x", jfric.StaticDynamic(0.4, 0.3), e=0.3, gap=0.05
            ),
            "load": {
                "x": jfric.Load("x", jfric.Harmonic(0.8, 0.9)),
                "y": jfric.Load("y", jfric.Sum([-0.5, jfric.Harmonic(0.3, 1.7)])),
            },
            "base": {"table": jfric.Base(jfric.PiecewiseLinear([1.0, 3.0, 5.0], [0.0, 0.3, 0.1]))},
        },
        initial=_two((0.0, 0.1), (0.2, 0.0)),
        time=8.0,
    )


@functools.cache
def _pair() -> jfric.Problem:
    """Friction between two bodies, the second of which carries a third."""
    return jfric.Problem(
        ("x", "y", "z"),
        {
            "mass": {d: jfric.Mass(d, m) for d, m in {"x": 1.0, "y": 2.0, "z": 0.5}.items()},
            "spring": {
                "x": jfric.Spring("x", k=4.0),
                "z": jfric.Spring(("y", "z"), k=6.0),
                "y": jfric.Spring("y", k=1.0),
            },
            "friction": jfric.Friction({"x": 1.0, "y": -1.0}, jfric.Coulomb(0.3), N=2.0),
            "load": jfric.Load("x", jfric.Harmonic(1.5, 1.4)),
        },
        initial={"z": jfric.InitialState(q=0.2)},
        time=8.0,
    )


@functools.cache
def _swing() -> jfric.Problem:
    """A pendulum on a stiffening spring that rubs on a belt, by a law with a falling branch."""
    normal = jfric.Sum([2.0, jfric.Harmonic(0.5, 1.0)])
    belt = jfric.Steps([3.0], [0.1, 0.3])
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "pendulum": jfric.Pendulum("x", m=1.0, L=0.5),
            "drag": jfric.Drag("x", 0.2),
            "polynomial_spring": jfric.PolynomialSpring("x", [1.0, 0.0, 3.0]),
            "friction": jfric.Friction("x", jfric.Stribeck(0.5, 0.3, 0.4), N=normal, belt=belt),
            "load": {
                "steps": jfric.Load("x", jfric.Steps([2.0], [1.0, -1.0])),
                "wave": jfric.Load("x", jfric.Harmonic(3.0, 2.0)),
            },
        },
        initial={"x": jfric.InitialState(q=0.1)},
        time=8.0,
    )


@functools.cache
def _bouncer() -> jfric.Problem:
    """A body that bounces on the ground under drag and a stiffening spring."""
    return jfric.Problem(
        ("x", "y"),
        {
            "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 1.0)},
            "spring": jfric.Spring("x", k=1.2),
            "polynomial_spring": jfric.PolynomialSpring("y", [1.0, 0.0, 3.0]),
            "drag": jfric.Drag({"x": 1.0, "y": 0.3}, 0.2),
            "contact": jfric.Contact("y", "x", jfric.StaticDynamic(0.4, 0.3), e=0.3, gap=0.05),
            "load": {
                "x": jfric.Load("x", jfric.Harmonic(0.8, 0.9)),
                "y": jfric.Load("y", jfric.Sum([-0.5, jfric.Harmonic(0.3, 1.7)])),
            },
        },
        initial=_two((0.0, 0.1), (0.2, 0.0)),
        time=8.0,
    )


@functools.cache
def _forced() -> jfric.Problem:
    """One degree of freedom under a harmonic load."""
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", k=2.0),
            "friction": jfric.Friction("x", jfric.StaticDynamic(0.5, 0.4), N=1.0),
            "load": jfric.Load("x", jfric.Harmonic(1.0, 1.1)),
        },
        time=8.0,
    )


def _uniform(seed: int, **bounds) -> dict:
    """Parameters between bounds, for each lane; dots of the paths are double underscores."""
    rng = np.random.default_rng(seed)
    return {k.replace("__", "."): rng.uniform(*b, size=LANES) for k, b in bounds.items()}


VALUES = {
    _carriage: _uniform(
        1,
        friction__mu_d=(0.1, 0.4),
        friction__mu_s=(0.4, 0.6),
        spring__between__k=(1.0, 30.0),
        damper__c=(0.0, 1.0),
        load__wave__F__omega=(0.5, 4.0),
        base__floor__displacement__amplitude=(0.0, 0.6),
        mass__a__m=(0.3, 3.0),
    ),
    _hopper: _uniform(
        2,
        contact__mu_d=(0.0, 0.4),
        contact__mu_s=(0.4, 0.6),
        contact__e=(0.0, 0.8),
        load__y__F__1__amplitude=(0.0, 0.8),
        spring__cross__k=(0.0, 0.8),
        initial__y__q=(0.1, 0.5),
    ),
    _pair: _uniform(3, friction__mu=(0.02, 0.5), load__F__omega=(0.5, 3.0), mass__y__m=(0.5, 4.0)),
}


#: Through the Runge-Kutta flow.
NONLINEAR = {
    _swing: _uniform(
        4,
        friction__mu_d=(0.1, 0.4),
        friction__mu_s=(0.4, 0.6),
        friction__v_s=(0.05, 1.0),
        pendulum__m=(0.1, 3.0),
        drag__c=(0.0, 1.0),
    ),
    _bouncer: _uniform(
        5,
        contact__mu_d=(0.0, 0.4),
        contact__e=(0.0, 0.8),
        drag__c=(0.0, 1.0),
        load__y__F__1__amplitude=(0.0, 0.8),
    ),
}


def _compared(system, values, tolerance: float):
    one, other = (simulated(solver, system, TIMES[-1])(values) for solver in (LOWERED, GENERAL))
    assert np.all(one.status == jfric.Status.OK)
    assert np.all(other.status == jfric.Status.OK)
    assert np.array_equal(one.events.count, other.events.count)
    assert np.array_equal(one.events.to_mode, other.events.to_mode)
    assert np.array_equal(one.events.impact, other.events.impact)
    assert np.array_equal(one.mode, other.mode)
    # A remark with an edge: rounding errors decide whether two roots are 1e-7 of a step apart.
    different = one.flags ^ other.flags
    assert np.all((different == 0) | (different == jfric.Flag.GRAZING))
    assert np.mean(different != 0) <= 0.01
    np.testing.assert_allclose(one.events.time, other.events.time, rtol=tolerance, atol=tolerance)
    for name in ("q", "v", "a", "lambda_t", "lambda_n"):
        found, expected = getattr(one, name), getattr(other, name)
        scale = 1.0 + np.nanmax(np.abs(expected), initial=0.0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale, err_msg=name)
    assert np.mean(one.events.count) > 3
    return one, other


@pytest.mark.parametrize(
    "system",
    [pytest.param(f, marks=pytest.mark.slow) for f in (_hopper, _carriage, _pair)],
    ids=lambda s: s.__name__.strip("_"),
)
def test_random_systems_move_as_in_the_general_pass(system):
    one, other = _compared(system, VALUES[system], 1e-9)
    assert np.array_equal(one.steps, other.steps)


@pytest.mark.parametrize(
    "system",
    [pytest.param(f, marks=pytest.mark.slow) for f in (_swing, _bouncer)],
    ids=lambda s: s.__name__.strip("_"),
)
def test_random_nonlinear_systems_move_as_in_the_general_pass(system):
    one, other = _compared(system, NONLINEAR[system], 1e-7)
    # The largest acceleration of a step is sampled elsewhere. Where two roots could not be told
    # apart, one of the passes has shortened its steps to the limit.
    clear = ((one.flags | other.flags) & jfric.Flag.GRAZING) == 0
    assert np.mean(clear) >= 0.99
    np.testing.assert_allclose(np.mean(one.steps[clear]), np.mean(other.steps[clear]), rtol=0.02)


@pytest.mark.parametrize("name", METHODS)
def test_stages_are_those_of_diffrax(name):
    """A step of a pendulum with two degrees of freedom, and its dense output."""
    solver = getattr(diffrax, NAMES[name])()

    def rates(s, y):
        a = (jnp.cos(s) - jnp.sin(y[0] + y[1]) - 0.1 * y[2] ** 2, y[0] - 2.0 * y[1] * y[3])
        return jnp.stack([y[2], y[3], *a])

    start, h = jnp.array([0.3, -0.2, 0.5, 0.7]), jnp.asarray(0.4)
    field = diffrax.ODETerm(lambda t, y, args: rates(t, y))
    memory = solver.init(field, 0.0, h, start, None)
    end, error, dense, _, _ = solver.step(field, 0.0, h, start, None, memory, made_jump=True)
    path = solver.interpolation_cls(t0=0.0, t1=h, **dense)
    found = jax.jit(lambda h: stages(name, rates, start, h))(h)
    np.testing.assert_allclose(found.end, end, rtol=1e-14)
    np.testing.assert_allclose(found.error, error, rtol=1e-6, atol=1e-16)
    for s in (0.0, 0.13, 0.5, 0.99):
        at = np.polynomial.polynomial.polyval(s, np.asarray(found.dense))
        np.testing.assert_allclose(at, path.evaluate(s * h), rtol=1e-12)


def test_the_form_is_chosen_by_the_structure_of_the_problem_and_the_size_of_the_batch():
    solver, elements = jfric.EventDriven(adjoint="none"), dict(_forced().elements)
    law = jfric.Coulomb(0.4)

    def sizes(problem, solver=solver) -> Sizes | None:
        found = solver.under_vmap(problem)
        assert found is None or found[0].kernel == "lowered"
        return None if found is None else found[1]

    def changed(**more) -> jfric.Problem:
        return jfric.Problem(("x",), {**elements, **more}, time=6.0)

    assert sizes(_forced()) == sizes(changed(drag=jfric.Drag("x", 0.1))) == ONE_CONTACT
    two = changed(friction={c: jfric.Friction("x", law, N=2.0) for c in "ab"})
    assert sizes(two) == TWO_FRICTIONS
    assert solver.for_batch(two, 4_999) is solver
    assert solver.for_batch(two, 5_000).kernel == "lowered"
    three = changed(friction={c: jfric.Friction("x", law, N=2.0) for c in "abc"})
    assert sizes(three) == SEVERAL_FRICTIONS
    # Not what is in closed form, has stops or is large; nor what is asked for by name.
    loads = {"load": jfric.Load("x", 0.5)}
    feet = {c: jfric.Contact("y", "x", law) for c in "ab"}
    masses = {d: jfric.Mass(d, 1.0) for d in "vwxyz"}
    many = {"mass": masses, "friction": jfric.Friction("v", law, N=1.0)}
    for problem in (
        changed(**loads),
        changed(stop=jfric.Stop("x", k=10.0, gap=0.1)),
        jfric.Problem(("x", "y"), {"mass": {d: masses[d] for d in "xy"}, "contact": feet}),
        jfric.Problem(tuple("vwxyz"), many),
    ):
        assert sizes(problem) is None
    assert sizes(_forced(), jfric.EventDriven(adjoint="reverse")) is None
    assert sizes(_forced(), jfric.EventDriven(kernel="general")) is None


@pytest.mark.slow
def test_simulations_of_a_batch_are_those_of_one_trajectory():
    """64 trajectories run as scalars, with the same outputs and events."""
    problem, ts = _forced(), jnp.linspace(0.0, 8.0, 60)

    def run(mu):
        changed = jfric.set_parameters(problem, {"friction.mu_d": mu})
        return jfric.simulate(changed, jfric.EventDriven(max_events=16), ts=ts)

    mu = jnp.linspace(0.2, 0.45, 64)
    several = jax.jit(jax.vmap(run))(mu)
    program = str(jax.make_jaxpr(jax.vmap(run))(mu))
    assert "reduce_window" in program
    for i in (0, 31, 63):
        one = run(mu[i])
        assert int(one.status) == 0
        np.testing.assert_allclose(several.q[i], one.q, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(several.mode[i], one.mode)
        np.testing.assert_array_equal(several.events.to_mode[i], one.events.to_mode)
        np.testing.assert_allclose(several.events.time[i], one.events.time, atol=1e-11)


@pytest.mark.slow
def test_derivatives_are_quotients_of_differences():
    """First and second ones of the end and of an event, in one program."""
    names = ("friction.mu_d", "spring.k", "load.F.omega")
    problem = _forced()

    def end(values):
        changed = jfric.set_parameters(problem, dict(zip(names, values, strict=True)))
        solution = jfric.simulate(changed, jfric.EventDriven(adjoint="forward", max_events=8))
        found = jnp.stack([solution.final.q[0], solution.events.time[2]])
        return found, found

    def slopes(values):
        slope, found = jax.jacfwd(end, has_aux=True)(values)
        return slope, (slope, found)

    step = 1e-5 * jnp.eye(3)
    at = jnp.array([0.3, 2.0, 1.1]) + jnp.concatenate([jnp.zeros((1, 3)), step, -step])
    second, (first, found) = jax.jit(jax.vmap(jax.jacfwd(slopes, has_aux=True)))(at)
    for derivative, y in ((first[0], found), (second[0], first)):
        quotient = jnp.moveaxis((y[1:4] - y[4:]) / 2e-5, 0, -1)
        np.testing.assert_allclose(derivative, quotient, rtol=1e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the exact flow runs in float32")
def test_single_precision():
    expected = jfric.simulate(_forced(), LOWERED, ts=TIMES)
    with jax.enable_x64(False):
        problem = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), _forced())
        found = jfric.simulate(problem, LOWERED, ts=np.asarray(TIMES, np.float32))
    assert found.q.dtype == jnp.float32
    assert int(found.status) == jfric.Status.OK
    np.testing.assert_allclose(found.q, expected.q, atol=2e-5)


@pytest.mark.slow
def test_clutches_in_a_row_change_modes_as_in_closed_form():
    problem = jfric.load("configs/x1_coupled_clutches.toml")
    events, speeds = coupled_clutches.run()
    solution = jfric.simulate(problem, GENERAL).check()
    log = [(row["time"], row["contact"][-1:], row["to"]) for row in solution.event_table()]
    np.testing.assert_allclose([t for t, *_ in log], [t for t, *_ in events], atol=1e-12)
    words = {-1: "slip-", 0: "stick", 1: "slip+"}
    assert [x for _, *x in log] == [[str(i + 1), words[mode]] for _, i, mode in events]
    np.testing.assert_allclose(solution.final.v, speeds, rtol=1e-13)
