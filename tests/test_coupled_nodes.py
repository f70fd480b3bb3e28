"""Chains and nets of nodes without mass, whose friction decides together."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from differences import fourth_order
from hypothesis import given, settings
from hypothesis import strategies as st
from references import nodes

import jfric
from jfric.files.read_toml import loads

START = jfric.InitialState
CORNERS = np.arange(7.0)
#: Of the hand, and whole tenths between.
HAND = np.array([0.0, 0.05, -0.03, 0.08, 0.01, 0.02, -0.08])
TS = np.linspace(0.0, 6.0, 61)


def net(k, limits, *, own=0.0, held=True):
    """A body, nodes y1, y2, ... and a hand in a row; each spring leads to the next, ``own`` to the
    ground."""
    names = [f"y{i + 1}" for i in range(len(limits))]
    row = ["u", *names, "hand"]
    springs = {f"k{i}": jfric.Spring((row[i], row[i + 1]), k[i]) for i in range(len(k))}
    springs |= {f"own{n}": jfric.Spring(n, own) for n in names if own}
    friction = {
        n: jfric.Friction(n, limit=R) for n, R in zip(names, limits, strict=True) if R is not None
    }
    if held:
        friction["hold"] = jfric.Friction("u", limit=1e4)
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "base": {"hand": jfric.Base(jfric.PiecewiseLinear(CORNERS, HAND))},
        "spring": springs,
        "friction": friction,
    }
    return jfric.Problem(["u", *names], elements, time=6.0), names


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
@pytest.mark.slow
def test_random_chains_are_what_increments_say(seed):
    """Forces of a hand on three nodes: each corner of its way is an increment of the reference."""
    random = np.random.default_rng(seed)
    k, limits = 10 ** random.uniform(1.5, 2.5, 4), 10 ** random.uniform(-1.0, 0.7, 3)
    problem, names = net(k, limits)
    found = jfric.eliminate_massless(problem, *names)
    solution = jfric.simulate(found.problem, ts=TS)
    solution.check()
    K = np.diag(k[:-1] + k[1:]) - np.diag(k[1:-1], 1) - np.diag(k[1:-1], -1)
    forces = np.outer(np.interp(TS, CORNERS, HAND), [0.0, 0.0, k[-1]])
    expected = nodes.follow(K, limits, forces, np.zeros(3))
    for name, column in zip(names, expected.T, strict=True):
        np.testing.assert_allclose(found.position(solution, name), column, atol=1e-12)


@pytest.mark.slow
def test_a_chain_of_two_is_what_increments_say_and_loses_what_friction_takes():
    k, limits = np.array([60.0, 150.0, 100.0]), np.array([1.0, 2.0])
    problem, names = net(k, limits)
    found = jfric.eliminate_massless(problem, *names)
    assert sorted(found.problem.elements["jenkins"]) == names
    assert float(found.problem.elements["jenkins_coupling"]["y1_y2"].k) == -150.0
    solution = jfric.simulate(found.problem, ts=TS)
    solution.check()
    K = np.array([[210.0, -150.0], [-150.0, 250.0]])
    x = np.interp(TS, CORNERS, HAND)
    expected = nodes.follow(K, limits, np.outer(x, [0.0, 100.0]), np.zeros(2))
    y = np.stack([found.position(solution, n) for n in names], axis=1)
    np.testing.assert_allclose(y, expected, atol=1e-13)
    # What holds the body balances the first spring.
    np.testing.assert_allclose(solution.lambda_t[:, 0], -60.0 * expected[:, 0], atol=1e-10)
    # Friction takes its limit times the way of each node.
    lost = jfric.observe(found.problem, "dissipated").values["dissipated"]
    fine = np.linspace(0.0, 6.0, 6001)
    ways = nodes.follow(
        K, limits, np.outer(np.interp(fine, CORNERS, HAND), [0.0, 100.0]), np.zeros(2)
    )
    taken = np.abs(np.diff(ways, axis=0)).sum(axis=0) @ limits
    assert float(lost) == pytest.approx(taken, rel=1e-9)


@pytest.mark.slow
def test_nodes_without_friction_follow_and_the_energy_is_kept():
    """A body swings on three nodes, the middle one of which is free: what it loses in energy is
    what friction takes."""
    problem, names = net([200.0, 150.0, 120.0, 90.0], [0.4, None, 0.5], held=False)
    hand = {"hand": jfric.Base(jfric.functions.Constant(0.0))}
    problem = jfric.Problem(
        problem.dofs, problem.elements | {"base": hand}, initial={"u": START(v=1.0)}, time=2.0
    )
    found = jfric.eliminate_massless(problem, *names)
    assert found.sliders == ("jenkins.y1", "jenkins.y3")
    solution = jfric.simulate(found.problem, ts=np.linspace(0.0, 2.0, 41))
    solution.check()
    assert int(solution.events.count) > 4
    u, y = solution.q[:, 0], np.stack([found.position(solution, n) for n in names], axis=1)
    np.testing.assert_allclose(150.0 * (y[:, 0] - y[:, 1]), 120.0 * (y[:, 1] - y[:, 2]), atol=1e-12)
    row = np.stack([u, *y.T, 0.0 * u], axis=1)
    stored = 0.5 * np.diff(row, axis=1) ** 2 @ [200.0, 150.0, 120.0, 90.0]
    lost = jfric.observe(found.problem, "dissipated").values["dissipated"]
    energy = stored + 0.5 * solution.v[:, 0] ** 2
    assert float(energy[0] - energy[-1]) == pytest.approx(float(lost), abs=1e-12)


@pytest.mark.slow
def test_derivatives_pass_through_what_decides_together():
    def end(x):
        problem, names = net(x[:3], x[3:])
        found = jfric.eliminate_massless(problem, *names)
        solution = jfric.simulate(found.problem, ts=jnp.array([2.4, 5.7]))
        y = [found.position(solution, n) for n in names]
        return jnp.concatenate([*y, solution.lambda_t[:, 0]])

    x = jnp.array([60.0, 150.0, 100.0, 1.0, 2.0])
    forward, value = jax.jit(jax.jacfwd(end))(x), jax.jit(end)
    columns = [fourth_order(lambda d, e=e: value(x + d * e), 1e-3) for e in jnp.eye(5)]
    np.testing.assert_allclose(forward, jnp.stack(columns, axis=1), rtol=1e-7, atol=1e-8)


COUPLED = """
dofs = ["u"]
time = {end = "1 s"}
[mass]
dof = "u"
m = "1 kg"
[friction]
dof = "u"
limit = "1 kN"
[base.hand]
displacement = {ramp = {rate = "50 mm/s"}}
[jenkins.a]
between = ["u", "hand"]
k = "100 N/m"
R = "2 N"
[jenkins.b]
between = ["u", "hand"]
k = "100 N/m"
R = "3 N"
[jenkins_coupling]
elements = ["a", "b"]
k = "-20 N/m"
"""


def test_a_file_says_it_and_is_written_back():
    problem = loads(COUPLED).problem
    found = jfric.observe(problem, "event_time(1), final.z.jenkins.a, final.z.jenkins.b").values
    # The first slips where 100 z - 20 z is 2 N; at last both do.
    both = np.linalg.solve([[100.0, -20.0], [-20.0, 100.0]], [2.0, 3.0])
    expected = [0.5, *both]
    np.testing.assert_allclose([float(x) for x in found.values()], expected, rtol=1e-13)
    again = loads(jfric.to_toml(problem)).problem
    assert jfric.to_toml(again) == jfric.to_toml(problem)


JOINED = 'elements = ["a", "b"]'
BAD = [
    (JOINED, 'elements = ["a", "c"]', "jenkins_coupling.elements: no element jenkins.c"),
    (JOINED, 'elements = ["a", "a"]', "needed are two different elements of [jenkins]"),
    ("-20 N/m", "-120 N/m", "must be positive definite, found the eigenvalue -0.2"),
    ("3 N", '3 N"\nz0 = "40 mm', "jenkins.b.z0: found 0.04, where the springs pull with 4"),
]


@pytest.mark.parametrize(("old", "new", "sentence"), BAD, ids=[s for _, _, s in BAD])
def test_couplings_that_cannot_be_have_a_sentence(old, new, sentence):
    with pytest.raises(jfric.ProblemError) as error:
        loads(COUPLED.replace(old, new))
    assert sentence in str(error.value)


def test_nodes_that_cannot_be_left_out_together_have_a_sentence():
    problem, _ = net([60.0, 150.0, 100.0], [1.0, 2.0])
    with pytest.raises(jfric.ProblemError, match="found \\['y1', 'y1'\\], names of degrees of"):
        jfric.eliminate_massless(problem, "y1", "y1")
    moved = jfric.set_parameters(problem, {"initial.y1.q": 0.1})
    with pytest.raises(jfric.ProblemError, match=r"initial.y1: found 0.1, where springs pull"):
        jfric.eliminate_massless(moved, "y1", "y2")
