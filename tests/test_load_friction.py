"""Friction that grows with a load: thresholds, kinks, element forces, every flow, derivatives."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import load_friction
from references.bouncing import bounced

import jfric
from jfric.files.read_toml import loads
from jfric.solvers.sampled.run import run_sampled

jax.config.update("jax_enable_x64", True)

#: Reads like a stiff joint: constant part and share of the load.
LIMIT, KAPPA = 0.1, 0.2


def joint(motor, weight=-1.0, *, limit=LIMIT, kappa=KAPPA, law=None, time=1.0, **elements):
    """A joint of unit inertia between a motor and a load."""
    return jfric.Problem(
        {"q": "rotation"},
        {
            "mass": jfric.Mass("q", 1.0),
            "load": {"motor": jfric.Load("q", motor), "weight": jfric.Load("q", weight)},
            "friction": jfric.Friction(
                "q", law, limit=limit, kappa=kappa, load={"load.motor": 1.0, "load.weight": -1.0}
            ),
            **elements,
        },
        time=time,
    )


@functools.cache
def final_motion():
    """Final velocities (batch,) over torques of the motor and shares of the load, compiled once."""

    def one(motor, weight, limit, kappa):
        problem = joint(motor, weight, limit=limit, kappa=kappa)
        solution = jfric.simulate(problem, ts=jnp.zeros((0,)))
        return solution.final.v[0], solution.status

    return jax.jit(jax.vmap(one))


def test_lifts_above_one_torque_and_lowers_below_another():
    """tau_m > (tau_c + 1 + kappa)/(1 - kappa) lifts, tau_m < (1 - kappa - tau_c)/(1 + kappa)
    lowers, and the rest holds, to 1e-11 of the thresholds."""
    up, down = (LIMIT + 1.0 + KAPPA) / (1.0 - KAPPA), (1.0 - KAPPA - LIMIT) / (1.0 + KAPPA)
    assert up == pytest.approx(1.625, rel=1e-14)
    assert down == pytest.approx(0.583333333333, rel=1e-11)
    near = np.array([1.0 - 1e-11, 1.0, 1.0 + 1e-11])
    motor = jnp.asarray(np.concatenate([up * near, down * near, [1.0]]))
    one = jnp.ones_like(motor)
    v, status = final_motion()(motor, -one, LIMIT * one, KAPPA * one)
    assert not np.any(np.asarray(status))
    assert list(np.sign(np.asarray(v))) == [0, 0, 1, -1, 0, 0, 0]


def test_a_share_of_one_locks_against_the_load():
    kappa = jnp.asarray([0.5, 0.999999, 1.0, 1.5, 3.0])
    zero, one = jnp.zeros_like(kappa), jnp.ones_like(kappa)
    for weight in (-1.0, 2.0):
        v, status = final_motion()(zero, weight * one, zero, kappa)
        assert not np.any(np.asarray(status))
        slides = np.sign(weight) * np.maximum(1.0 - np.asarray(kappa), 0.0) * abs(weight)
        np.testing.assert_allclose(v, slides, rtol=0, atol=1e-12)
        assert np.all(np.asarray(v)[2:] == 0.0)


@pytest.mark.slow
def test_derivatives_of_a_lift_are_those_of_the_closed_form():
    """``v = (1 - kappa) tau_m - (1 + kappa) - tau_c`` after one second, forward and reverse."""

    def velocity(x, adjoint="forward"):
        problem = joint(x[0], x[1], limit=x[2], kappa=x[3])
        solver = jfric.EventDriven(adjoint=adjoint)
        return jfric.simulate(problem, solver, ts=jnp.zeros((0,))).final.v[0]

    x = jnp.asarray([2.0, -1.0, LIMIT, KAPPA])
    expected = [1.0 - KAPPA, 1.0 + KAPPA, -1.0, -3.0]
    np.testing.assert_allclose(jax.jacfwd(velocity)(x), expected, rtol=1e-13)
    np.testing.assert_allclose(jax.grad(lambda x: velocity(x, "reverse"))(x), expected, rtol=1e-13)


# A load that is a force of other elements, or a sine.

SPRING, DAMPER, PUSH = 4.0, 0.2, 0.5


def machine(law=None, *, curved=False, kappa=KAPPA, limit=0.05, push=PUSH, factor=0.3, **more):
    """A mass on a spring and a damper, pushed by a sine: friction grows with all three forces."""
    name = "polynomial_spring" if curved else "spring"
    spring = jfric.PolynomialSpring("q", [SPRING]) if curved else jfric.Spring("q", SPRING)
    dofs, masses = {"q": "translation"}, {"q": jfric.Mass("q", 1.0)}
    elements = {
        name: spring,
        "damper": jfric.Damper("q", DAMPER),
        "load": jfric.Load("q", jfric.Harmonic(push, 2.0)),
        "friction": jfric.Friction(
            "q", law, limit=limit, kappa=kappa, load={name: 1.0, "damper": 0.5, "load": factor}
        ),
    }
    if more.pop("joint", False):
        dofs |= {"a": "rotation", "b": "rotation"}
        masses |= {"a": jfric.Mass("a", 1.0), "b": jfric.Mass("b", 1.0)}
        elements["joint"] = jfric.Joint("sin(a) - sin(b)")
    initial = {"q": jfric.InitialState(q=1.0)}
    return jfric.Problem(dofs, {"mass": masses, **elements}, initial=initial, time=6.0)


def reference(law=None):
    """The same by SciPy: final state, and times of stops and break-aways."""
    law = jfric.Coulomb(1.0) if law is None else law
    coefficients = jax.jit(lambda v: jnp.stack(law.kinetic(v)))
    system = load_friction.System(
        m=1.0,
        force=lambda t, q, v: -SPRING * q - DAMPER * v + PUSH * math.sin(2.0 * t),
        load=lambda t, q, v: -SPRING * q - 0.5 * DAMPER * v + 0.3 * PUSH * math.sin(2.0 * t),
        c=0.05,
        kappa=KAPPA,
        static=tuple(float(x) for x in law.static()),
        kinetic=lambda v, s: float(coefficients(max(v, 0.0))[0 if s > 0 else 1]),
    )
    return load_friction.simulate(system, 1.0, 0.0, 6.0)


STRIBECK = jfric.Stribeck(jfric.laws.Directional(2.5, 2.0), jfric.laws.Directional(1.0, 0.8), 0.3)


@pytest.mark.parametrize(
    ("law", "options", "tolerance"),
    [
        (None, {}, 1e-10),
        pytest.param(STRIBECK, {}, 1e-9, marks=pytest.mark.slow),
        pytest.param(STRIBECK, {"curved": True}, 1e-9, marks=pytest.mark.slow),
        pytest.param(None, {"joint": True}, 1e-9, marks=pytest.mark.slow),
        pytest.param(STRIBECK, {"joint": True, "curved": True}, 1e-9, marks=pytest.mark.slow),
    ],
    ids=["exact", "Stribeck", "nonlinear", "joint", "joint and nonlinear"],
)
def test_forces_of_elements_as_a_load(law, options, tolerance):
    problem = machine(law, **options)
    solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 6.0, 31))
    assert int(solution.status) == 0
    q, v, times = reference(law)
    assert float(solution.final.q[0]) == pytest.approx(q, abs=tolerance)
    assert float(solution.final.v[0]) == pytest.approx(v, abs=tolerance)
    table = solution.event_table()
    found = [e["time"] for e in table if e["contact"] == "friction"]
    assert len(times) >= 2
    np.testing.assert_allclose(found, times, rtol=0, atol=10 * tolerance)
    # Each zero of the load is an event, and lies on it.
    kinks = [e for e in table if e["contact"] == "friction.load"]
    assert len(kinks) >= 3
    for e in kinks:
        t, q, v = e["time"], float(e["q"][0]), float(e["v"][0])
        load = -SPRING * q - 0.5 * DAMPER * v + 0.3 * PUSH * math.sin(2.0 * t)
        assert abs(load) < 1e-12
    assert float(jnp.max(jfric.contact_residual(problem, solution))) < 1e-11


@pytest.mark.parametrize(
    "law",
    [None, pytest.param(STRIBECK, marks=pytest.mark.slow)],
    ids=["exact", "Stribeck"],
)
@pytest.mark.slow
def test_derivatives_through_kinks_and_stops(law):
    """Forward against central differences; the exact flow in reverse as well."""

    def final(x, adjoint="forward"):
        problem = machine(law, kappa=x[0], limit=x[1], push=x[2], factor=x[3])
        end = jfric.simulate(problem, jfric.EventDriven(adjoint=adjoint), ts=jnp.zeros((0,))).final
        return jnp.concatenate([end.q, end.v])

    x = jnp.asarray([KAPPA, 0.05, PUSH, 0.3])
    h = 1e-5
    steps = x[None, :] + h * jnp.concatenate([jnp.eye(4), -jnp.eye(4)])
    moved = jax.jit(jax.vmap(final))(steps)
    differences = (moved[:4] - moved[4:]).T / (2.0 * h)
    forward = jax.jit(jax.jacfwd(final))(x)
    np.testing.assert_allclose(forward, differences, rtol=0, atol=1e-7)
    assert float(jnp.min(jnp.abs(forward))) > 1e-4
    if law is None:
        reverse = jax.jit(jax.jacrev(lambda x: final(x, "reverse")))(x)
        np.testing.assert_allclose(reverse, forward, rtol=0, atol=1e-10)


def test_stops_of_a_stop_are_a_load():
    """The force of an elastic stop as a load: a mass that bounces once, energies to rounding."""
    problem = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "stop": jfric.Stop("x", 100.0),
            "friction": jfric.Friction("x", kappa=KAPPA, load="stop"),
        },
        initial={"x": jfric.InitialState(q=-0.1, v=1.0)},
        time=1.0,
    )
    solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 1.0, 5))
    assert int(solution.status) == 0
    # In touch m x'' = -k (1 +- kappa) x: a quarter of a period in, one out, slower by the losses.
    into, out = (math.sqrt(100.0 * (1.0 + s * KAPPA)) for s in (1.0, -1.0))
    speed = out / into
    left = 0.1 + 0.5 * math.pi * (1.0 / into + 1.0 / out)
    assert float(solution.final.v[0]) == pytest.approx(-speed, rel=1e-12)
    assert float(solution.final.q[0]) == pytest.approx(-speed * (1.0 - left), rel=1e-12)


@pytest.mark.slow
def test_a_damped_stop_on_a_moving_base_is_a_load():
    """The stop is 0.1 m in, and base and mass come nearer at 0.3 and 0.2 m/s: it pushes with
    10*0.1 + 2*0.5."""
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)},
            "base": {"wall": jfric.Base(jfric.Ramp(0.3))},
            "stop": jfric.Stop(("x", "wall"), 10.0, c=2.0),
            "friction": jfric.Friction("y", kappa=0.5, load="stop"),
        },
        initial={"x": jfric.InitialState(q=-0.1, v=-0.2), "y": jfric.InitialState(v=5.0)},
        time=0.01,
    )
    solution = jfric.simulate(problem, ts=jnp.zeros((1,)))
    np.testing.assert_allclose(solution.a[0], [2.0, -1.0], rtol=1e-12)


@pytest.mark.slow
def test_a_plane_may_have_a_load():
    """Sliding along a line in a plane under a given force as along one direction."""
    plane = {
        "mass": {d: jfric.Mass(d, 1.0) for d in ("x", "y")},
        "load": jfric.Load({"x": 0.6, "y": 0.8}, jfric.Harmonic(1.0, 2.0, phase=0.5)),
        "friction": jfric.Friction(plane=["x", "y"], limit=0.1, kappa=KAPPA, load="load"),
    }
    start = {d: jfric.InitialState(v=5.0 * c) for d, c in (("x", 0.6), ("y", 0.8))}
    end = jfric.simulate(jfric.Problem(["x", "y"], plane, initial=start, time=3.0)).final
    line = {
        "mass": jfric.Mass("x", 1.0),
        "load": jfric.Load("x", jfric.Harmonic(1.0, 2.0, phase=0.5)),
        "friction": jfric.Friction("x", limit=0.1, kappa=KAPPA, load="load"),
    }
    start = {"x": jfric.InitialState(v=5.0)}
    one = jfric.simulate(jfric.Problem(["x"], line, initial=start, time=3.0)).final
    np.testing.assert_allclose(end.q, one.q[0] * np.array([0.6, 0.8]), rtol=1e-9)


# Other solvers.

RAMP = jfric.PiecewiseLinear([0.0, 4.0], [0.0, 2.0])


@pytest.mark.slow
def test_fixed_steps_take_a_load_of_straight_lines():
    problem = joint(RAMP, time=4.0)
    for solver in (jfric.MoreauJean(1e-3), jfric.StabilisedMidpoint(1e-3)):
        solution = jfric.simulate(problem, solver, ts=jnp.asarray([2.8, 4.0]))
        exact = jfric.simulate(problem, ts=jnp.asarray([2.8, 4.0]))
        assert int(solution.status) == 0
        np.testing.assert_allclose(solution.q, exact.q, rtol=0, atol=2e-3)
        assert float(solution.v[0, 0]) == 0.0


def test_quasi_static_takes_a_load_of_straight_lines():
    """A spring pulled by a ramp under a brake that grows with it: slides from tau_c/(1 - kappa)."""
    problem = jfric.Problem(
        ["x"],
        {
            "spring": jfric.Spring("x", 10.0),
            "load": jfric.Load("x", jfric.PiecewiseLinear([0.0, 1.0], [0.0, 1.0])),
            "friction": jfric.Friction("x", limit=LIMIT, kappa=KAPPA, load="load"),
        },
        time=1.0,
    )
    solution = jfric.simulate(problem, jfric.QuasiStatic())
    assert float(solution.events.time[0]) == pytest.approx(LIMIT / (1.0 - KAPPA), rel=1e-12)
    assert float(solution.final.q[0]) == pytest.approx(((1.0 - KAPPA) - LIMIT) / 10.0, rel=1e-12)


@pytest.mark.slow
def test_smoothed_laws_come_close():
    exact = jfric.simulate(machine()).final
    smooth = jfric.simulate(machine(), jfric.Smoothed(width=1e-5)).final
    np.testing.assert_allclose(smooth.q, exact.q, rtol=0, atol=1e-4)


@pytest.mark.parametrize("solver", [jfric.MoreauJean(1e-3), jfric.QuasiStatic()])
def test_solvers_refuse_other_loads_by_name(solver):
    with pytest.raises(jfric.ProblemError, match=r"friction\.load: found a load that is not made"):
        jfric.simulate(machine(), solver)


# Files and bad input.


@pytest.mark.parametrize("problem", [joint(RAMP), machine()], ids=["joint", "machine"])
def test_files_hold_loads(problem):
    read = loads(jfric.to_toml(problem)).problem
    assert jax.tree.structure(read) == jax.tree.structure(jfric.build(problem))
    for a, b in zip(jax.tree.leaves(read), jax.tree.leaves(problem), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"limit": 1.0, "kappa": 0.2}, r"friction\.kappa: is given without load"),
        ({"limit": 1.0, "load": "load.motr"}, r"no element 'load\.motr' \(did you mean"),
        (
            {"limit": 1.0, "load": "joint.shaft"},
            "'joint.shaft', whose reaction friction changes",
        ),
        ({"limit": 1.0, "load": []}, r"friction\.load: found no element"),
        ({"load": "load.motor", "kappa": -0.1}, r"friction\.kappa: found -0\.1, must not be neg"),
        ({}, "found neither of N and limit"),
        ({"N": 1.0, "load": "load.motor"}, "N is given without mu"),
    ],
)
def test_bad_loads_are_one_sentence(fields, sentence):
    elements = {
        "mass": jfric.Mass("q", 1.0),
        "load": {"motor": jfric.Load("q", 1.0), "weight": jfric.Load("q", 1.0)},
        "friction": jfric.Friction("q", **fields),
    }
    with pytest.raises(jfric.ProblemError, match=sentence):
        jfric.Problem(["q"], elements)


def test_shares_can_be_swept_and_have_a_path():
    problem = joint(RAMP, time=4.0)
    assert "friction.kappa" in jfric.parameters(problem)
    assert "friction.load.load.motor" in jfric.parameters(problem)
    doubled = jfric.set_parameters(problem, {"friction.kappa": 0.4})
    assert float(jfric.get_parameter(doubled, "friction.kappa")) == 0.4


def test_measured_inputs_are_a_load():
    """From sample to sample under a held torque, as by the exact flow."""
    t = np.linspace(0.0, 3.0, 61)
    torque = 2.5 * np.sin(2.0 * t) + 0.7 * np.cos(5.0 * t)
    problem = joint(0.0, time=3.0)
    slots = {"load.motor.F": ("load", "motor", "F")}
    motion = jax.jit(lambda u: run_sampled(problem, jnp.asarray(t), {"load.motor.F": u}, slots).q)(
        jnp.asarray(torque)
    )
    exact = jfric.simulate(joint(jfric.Steps(t[1:], torque), time=3.0), ts=jnp.asarray(t))
    np.testing.assert_allclose(motion, exact.q[:, 0], rtol=0, atol=1e-12)
    stuck = np.asarray(exact.mode[:, 0]) == jfric.Mode.STICK
    assert 5 < np.count_nonzero(stuck) < 55


@pytest.mark.slow
def test_a_constant_load_does_not_tell_its_share_from_the_rest():
    """The check before a fit names the combination of both parts of the limit."""
    free = {"friction.limit": jfric.Free(0.02, 0.5), "friction.kappa": jfric.Free(0.02, 0.8)}
    t = np.linspace(0.0, 3.0, 61)

    def report(motor):
        problem = joint(motor, -0.5, time=3.0)
        q = np.asarray(jfric.observe(problem, "q(t)", times=t).values["q(t)"])
        return str(jfric.check(problem, jfric.Experiment(t, y={"q": q}, sigma={"q": 1e-3}), free))

    assert "the data cannot tell this change from none" in report(2.5)
    moved = report(jfric.PiecewiseLinear([0.0, 1.0, 2.0, 3.0], [0.0, 2.5, -2.5, 2.5]))
    assert "cannot tell" not in moved


@pytest.mark.slow
def test_an_impact_turns_the_force_that_a_friction_carries():
    """A damper on a body that bounces presses a friction elsewhere: the sign of its force stayed
    that before the impact, and the friction became less than nothing."""
    elements = {
        "mass": {"y": jfric.Mass("y", 1.0), "x": jfric.Mass("x", 1.0)},
        "load": {"y": jfric.Load("y", -3.0), "x": jfric.Load("x", jfric.Harmonic(1.5, 2.0))},
        "damper": jfric.Damper("y", 0.8),
        "contact": jfric.Contact("y", e=0.7),
        "friction": jfric.Friction("x", 0.5, N=0.2, load={"damper": 0.9}),
    }
    start = {"y": jfric.InitialState(0.3, -0.5), "x": jfric.InitialState(v=2.0)}
    found = jfric.simulate(jfric.Problem(["y", "x"], elements, initial=start, time=0.7)).check()

    def rate(t, y):
        limit = 0.5 * (0.2 + 0.9 * 0.8 * abs(y[1]))
        return [y[1], -3.0 - 0.8 * y[1], y[3], 1.5 * np.sin(2.0 * t) - limit * np.sign(y[3])]

    expected = bounced(rate, [0.3, -0.5, 0.0, 2.0], 0.7, e=0.7)
    moved = [found.final.q[0], found.final.v[0], found.final.q[1], found.final.v[1]]
    np.testing.assert_allclose(moved, expected, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("kappa", [0.5, 1.0, 2.0])
def test_a_sine_alone_at_rest_with_its_zeros(kappa):
    """No constant part: limit and push vanish together, where the motion begins, too."""
    problem = jfric.Problem(
        ["q"],
        {
            "mass": jfric.Mass("q", 1.0),
            "load": jfric.Load("q", jfric.Harmonic(1.0, 2.0)),
            "friction": jfric.Friction("q", kappa=kappa, load="load"),
        },
        time=5.0,
    )
    found = jfric.simulate(problem, ts=jnp.zeros((0,)))

    def push(t, *_):
        return math.sin(2.0 * t)

    system = load_friction.System(1.0, push, push, 0.0, kappa, (1.0, 1.0), lambda *_: 1.0)
    q, v, _ = load_friction.simulate(system, 0.0, 0.0, 5.0)
    assert int(found.status) == 0
    assert float(found.final.q[0]) == pytest.approx(q, abs=1e-8)
    assert float(found.final.v[0]) == pytest.approx(v, abs=1e-8)
    assert (kappa < 1.0) == (abs(q) > 0.1)
