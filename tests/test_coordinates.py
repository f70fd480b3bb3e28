"""One mechanism in several descriptions, and what is left of its joints after a long time."""

import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.files.read_toml import loads

#: A double pendulum of two rods with friction in both joints; angles from the horizontal.
M, J, L, G, START = (1.3, 0.8), (0.05, 0.03), (0.6, 0.5), 9.81, (-0.9, -1.3)

TEXT = """
dofs = {a = "rotation", b = "rotation"}
[time]
end = 10
[parameters]
m1 = "1.3 kg"
m2 = "0.8 kg"
J1 = "0.05 kg*m^2"
J2 = "0.03 kg*m^2"
l1 = "0.6 m"
l2 = "0.5 m"
g = "9.81 m/s^2"
[lagrangian]
kinetic = \"\"\"0.5*(m1*l1^2/4 + J1 + m2*l1^2)*v.a^2 \\
    + 0.5*(m2*l2^2/4 + J2)*v.b^2 + 0.5*m2*l1*l2*cos(a - b)*v.a*v.b\"\"\"
potential = "g*(m1*l1/2*sin(a) + m2*(l1*sin(a) + l2/2*sin(b)))"
[friction.first]
dof = "a"
limit = 0.05
[friction.second]
between = ["a", "b"]
limit = 0.02
[initial.a]
q = -0.9
[initial.b]
q = -1.3
"""


def friction(first: str, second: str) -> dict:
    limits = {"first": (first, 0.05), "second": ((first, second), 0.02)}
    return {name: jfric.Friction(along, limit=limit) for name, (along, limit) in limits.items()}


def by_energies() -> jfric.Problem:
    def places(q):
        ends = [jnp.stack([jnp.cos(x), jnp.sin(x)]) for x in q]
        return 0.5 * L[0] * ends[0], L[0] * ends[0] + 0.5 * L[1] * ends[1]

    def kinetic(t, q, v, p):
        del t, p
        found = 0.5 * (J[0] * v[0] ** 2 + J[1] * v[1] ** 2)
        rates = [jnp.array([-jnp.sin(x), jnp.cos(x)]) * w for x, w in zip(q, v, strict=True)]
        first, second = 0.5 * L[0] * rates[0], L[0] * rates[0] + 0.5 * L[1] * rates[1]
        return found + 0.5 * (M[0] * first @ first + M[1] * second @ second)

    def potential(t, q, p):
        del t, p
        return G * sum(m * x[1] for m, x in zip(M, places(q), strict=True))

    return jfric.Problem(
        {"a": "rotation", "b": "rotation"},
        {"lagrangian": jfric.Lagrangian(kinetic, potential), "friction": friction("a", "b")},
        initial={name: jfric.InitialState(x) for name, x in zip("ab", START, strict=True)},
        time=10.0,
    )


def by_bodies() -> jfric.Problem:
    bodies = {
        name: jfric.Body(m, j, angle=angle, points={"a": (-0.5 * l, 0), "b": (0.5 * l, 0)})
        for name, m, j, l, angle in zip(("one", "two"), M, J, L, START, strict=True)
    }
    return jfric.Problem(
        [],
        {
            "body": bodies,
            "gravity": jfric.Gravity(G),
            "pin": {
                "first": jfric.Pin(("one.a", "ground")),
                "second": jfric.Pin(("two.a", "one.b")),
            },
            "friction": friction("one_phi", "two_phi"),
        },
        time=10.0,
    )


@pytest.mark.slow
def test_three_descriptions():
    """Energies as functions, as texts, bodies with joints: motions and events over 10 s."""
    ts, solver = np.linspace(0.0, 10.0, 51), jfric.EventDriven(rtol=1e-13)
    problems = by_energies(), loads(TEXT).problem, by_bodies()
    found = [jfric.simulate(problem, solver, ts=ts).check() for problem in problems]
    expected = found[0]
    count = int(expected.events.count)
    assert count > 10
    for solution, rows in ((found[1], [0, 1]), (found[2], [2, 5])):
        np.testing.assert_allclose(solution.q[:, rows], expected.q, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(solution.v[:, rows], expected.v, rtol=0.0, atol=1e-9)
        assert int(solution.events.count) == count
        times = solution.events.time[:count], expected.events.time[:count]
        np.testing.assert_allclose(*times, rtol=0.0, atol=1e-10)
    q = np.asarray(found[2].q)
    ends = L[0] * np.stack([np.cos(q[:, 2]), np.sin(q[:, 2])], axis=1)
    half = 0.5 * L[1] * np.stack([np.cos(q[:, 5]), np.sin(q[:, 5])], axis=1)
    np.testing.assert_allclose(q[:, 3:5], ends + half, rtol=0.0, atol=1e-15)


@pytest.mark.slow
def test_joints_hold_for_ten_thousand_periods():
    """Place and velocity of a pendulum's rod, with steps that are none too short."""
    rod = jfric.Body(1.0, 1 / 12, angle=1.2 - np.pi / 2, points={"top": (-0.5, 0.0)})
    problem = jfric.Problem(
        [],
        {
            "body": {"rod": rod},
            "gravity": jfric.Gravity(G),
            "pin": jfric.Pin(("rod.top", "ground")),
        },
        time=18000.0,
    )
    solver = jfric.EventDriven(rtol=1e-4, max_steps=200_000)
    solution = jfric.simulate(problem, solver, ts=np.linspace(0.0, 18000.0, 1001)).check()
    q, v = np.asarray(solution.q), np.asarray(solution.v)
    c, s = 0.5 * np.cos(q[:, 2]), 0.5 * np.sin(q[:, 2])
    np.testing.assert_allclose(q[:, :2], np.stack([c, s], axis=1), rtol=0.0, atol=5e-16)
    rates = np.stack([-s, c], axis=1) * v[:, 2:]
    np.testing.assert_allclose(v[:, :2], rates, rtol=0.0, atol=1e-14)
