"""Joints along directions that never change: exact flow, as by the Runge-Kutta flow."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.results.columns import columns
from jfric.system.assembly import assemble

NAMES = ("a", "b", "c", "d", "e")
START = jfric.InitialState


def system(joints, numbers, friction=False, **more):
    """Five masses in a chain, one of them shaken, with ``joints`` over the shared ``numbers``."""
    elements = {
        "mass": {x: jfric.Mass(x, f"$m_{x}") for x in NAMES},
        "spring": {x: jfric.Spring(d, f"$k_{x}") for x, d in zip("pqr", CHAIN, strict=True)},
        "damper": {"one": jfric.Damper("a", 0.2)},
        "load": {"shake": jfric.Load("e", jfric.Harmonic(3.0, 2.0)), "push": jfric.Load("b", 0.5)},
        "joint": {f"j{i}": jfric.Joint(x) for i, x in enumerate(joints)},
    }
    if friction:
        elements["friction"] = jfric.Friction("c", jfric.Coulomb(0.2), N=2.0)
        elements["contact"] = jfric.Contact({"d": -1.0}, gap=0.3, e=0.5)
    return jfric.Problem(NAMES, elements, parameters=numbers, time=3.0, **more)


#: A spring to the ground, and two between masses.
CHAIN = ("a", {"b": 1.0, "c": -1.0}, {"d": 1.0, "e": -1.0})


@pytest.mark.parametrize(
    ("joint", "start", "linear"),
    [
        ("a - w*b", {}, True),
        ("a - w*b - 0.3*t + 2", {"a": START(-2.0, 0.3)}, True),
        ("v.a - w*v.b - 1", {"a": START(0.0, 1.0)}, True),
        (lambda t, q, p: q[0] / 3.0 - p["w"] * q[1], {}, True),
        ("a - sin(w*t)", {"a": START(0.0, 2.0)}, False),
        ("a - w*b*c", {}, False),
        ("v.a - w*b", {}, False),
        (lambda t, q, p: q[0] - jnp.abs(q[1]), {}, False),
    ],
)
def test_what_keeps_the_exact_flow(joint, start, linear):
    """Constant directions and rates do; what time, a position or a kink changes does not."""
    numbers = {f"m_{x}": 1.0 for x in NAMES} | {f"k_{x}": 1.0 for x in "pqr"} | {"w": 2.0}
    shapes = eqx.filter_eval_shape(assemble, system([joint], numbers, initial=start))
    assert shapes.has_linear_modes == linear


@pytest.mark.parametrize("push", [1.25, 1.75])
def test_the_sides_of_a_guide_do_not_press_against_each_other(push):
    """A guide carries 4 N and holds 1 N, a brake beside it 0.5 N: together 1.5 N and no more."""
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {d: jfric.Mass(d, 2.0) for d in "xy"},
            "load": {"push": jfric.Load("x", push), "weight": jfric.Load("y", -4.0)},
            "joint": {"guide": jfric.Joint("y", jfric.Coulomb(0.25), sliding="x")},
            "friction": {"brake": jfric.Friction("x", limit=0.5)},
        },
        time=2.0,
    )
    found = jfric.simulate(problem, jfric.EventDriven(adjoint="none")).check()
    way = 0.5 * max(push - 1.5, 0.0) / 2.0 * 2.0**2
    np.testing.assert_allclose(found.final.q, [way, 0.0], atol=1e-12)


@pytest.mark.slow
def test_two_masses_on_a_gear_swing_as_one():
    """``x = 2 y``: the mass ``m_x + m_y/4`` on the spring, and what the gear carries."""
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 2.0)},
            "spring": jfric.Spring("x", 6.0),
            "joint": {"gear": jfric.Joint("x - 2*y")},
        },
        initial={"x": START(q=1.0), "y": START(q=0.5)},
        time=1000.0,
    )
    ts = jnp.asarray([1.0, 999.0])
    solution = jfric.simulate(problem, ts=ts).check()
    cosine = np.cos(2.0 * np.asarray(ts))
    np.testing.assert_allclose(solution.q, np.stack([cosine, 0.5 * cosine], axis=1), atol=3e-11)
    # Between events nothing is left of the joint's error.
    np.testing.assert_allclose(solution.q[:, 0] - 2.0 * solution.q[:, 1], 0.0, atol=1e-15)
    found = columns(problem, solution)["reaction.joint.gear"]
    np.testing.assert_allclose(found, 2.0 * cosine, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("push", "way"), [(1.9, 0.0), (3.0, 0.25)])
def test_friction_on_two_masses_that_are_tied(push, way):
    """Each holds 1 N: the tie shares the push out, and both go where it is more than both hold."""
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)},
            "joint": {"tie": jfric.Joint("x - y")},
            "friction": {"x": jfric.Friction("x", limit=1.0), "y": jfric.Friction("y", limit=1.0)},
            "load": jfric.Load("x", push),
        },
        time=1.0,
    )
    solution = jfric.simulate(problem).check()
    np.testing.assert_allclose(solution.final.q, [way, way], rtol=1e-12)


JOINTS = {
    "two": ["w0*a + w1*b - w2*t + s0", "w3*c + w4*d + w5*e + s1"],
    "three": ["w0*a + w1*b + w2*c + s0", "w3*b + w4*d - w5*t + s1", "w6*v.d + w7*v.e + w8"],
}


@pytest.mark.slow
@pytest.mark.parametrize("count", list(JOINTS))
def test_random_systems_move_as_by_the_runge_kutta_flow(count):
    """States, reactions, energies, events and derivatives, with friction and impacts."""
    ts = jnp.linspace(0.0, 3.0, 7)

    def start(numbers):
        return {x: START(q=numbers[f"q_{x}"], v=numbers[f"v_{x}"]) for x in NAMES}

    @jax.jit
    def both(numbers):
        found = []
        for flow in ("exact", "runge-kutta"):
            solver = jfric.EventDriven(flow=flow, rtol=1e-13)

            def motion(k, solver=solver):
                known = numbers | {"k_q": k}
                own = {x: y for x, y in known.items() if x[:2] not in ("q_", "v_")}
                problem = system(JOINTS[count], own, friction=True, initial=start(known))
                return jfric.simulate(problem, solver, ts=ts)

            solution = motion(numbers["k_q"])
            rate = solution.q
            if count == "two":
                rate = jax.jvp(lambda k: motion(k).q, (numbers["k_q"],), (1.0,))[1]
            found.append((solution, rate))
        return found

    moved = 0
    for seed in range(4):
        numbers = on_joints(np.random.default_rng(seed), count)
        (a, rate), (b, other) = both({k: jnp.asarray(x) for k, x in numbers.items()})
        assert int(a.status) == int(b.status) == 0
        assert int(a.events.count) == int(b.events.count)
        moved += int(a.events.count)
        for x, y in ((a.q, b.q), (a.v, b.v), (rate, other)):
            np.testing.assert_allclose(x, y, atol=1e-9 * np.max(np.abs(y)))
        own = {x: y for x, y in numbers.items() if x[:2] not in ("q_", "v_")}
        problem = system(JOINTS[count], own, friction=True, initial=start(numbers))
        one, two = (columns(problem, solution) for solution in (a, b))
        for name in one:
            if name.startswith(("reaction.", "energy")):
                scale = max(np.max(np.abs(two[name])), 1e-3)
                np.testing.assert_allclose(one[name], two[name], atol=1e-8 * scale, err_msg=name)
    assert moved > 4


def on_joints(random, count):
    """Random numbers, and a start that meets the joints."""
    numbers = {f"m_{x}": random.uniform(0.5, 2.0) for x in NAMES}
    numbers |= {f"k_{x}": random.uniform(5.0, 20.0) for x in "pqr"}
    numbers |= {f"w{i}": random.uniform(0.5, 1.5) for i in range(9)} | {"s0": 0.0, "s1": 0.0}
    w = [numbers[f"w{i}"] for i in range(9)]
    q, v = random.normal(size=5), random.normal(size=5)
    q[3] = -abs(q[3])
    if count == "two":
        v[0] = (w[2] - w[1] * v[1]) / w[0]
        v[4] = -(w[3] * v[2] + w[4] * v[3]) / w[5]
        numbers["s0"] = -(w[0] * q[0] + w[1] * q[1])
        numbers["s1"] = -(w[3] * q[2] + w[4] * q[3] + w[5] * q[4])
    if count == "three":
        v[0] = -(w[1] * v[1] + w[2] * v[2]) / w[0]
        v[3] = (w[5] - w[3] * v[1]) / w[4]
        v[4] = -(w[8] + w[6] * v[3]) / w[7]
        numbers["s0"] = -(w[0] * q[0] + w[1] * q[1] + w[2] * q[2])
        numbers["s1"] = -(w[3] * q[1] + w[4] * q[3])
    numbers |= {f"q_{x}": y for x, y in zip(NAMES, q, strict=True)}
    return numbers | {f"v_{x}": y for x, y in zip(NAMES, v, strict=True)}
