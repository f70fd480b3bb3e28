"""Degrees of freedom without mass between springs and friction, left out exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from differences import fourth_order

import jfric
from jfric.files.read_toml import loads

START = jfric.InitialState
K1, K2, R = 100.0, 300.0, 2.0


def chain(k1=K1, k2=K2, limit=R, parameters=None, **elements):
    """A hand draws a node through one spring; another joins the node to a body that is held."""
    hand = jfric.PiecewiseLinear(np.arange(7.0), [0.0, 0.05, -0.03, 0.08, 0.01, 0.02, -0.08])
    own = {
        "mass": jfric.Mass("u", 1.0),
        "base": {"hand": jfric.Base(hand)},
        "spring": {
            "a": jfric.Spring(("hand", "y"), k1),
            "b": jfric.Spring(("y", "u"), k2, x0=0.01),
        },
        "friction": {
            "floor": jfric.Friction("y", limit=limit),
            "hold": jfric.Friction("u", limit=1e3),
        },
    }
    return jfric.Problem(
        ["u", "y"],
        own | elements,
        initial={"y": START(-0.006)},
        time=6.0,
        parameters=parameters,
    )


@pytest.mark.slow
def test_a_driven_node_is_the_play_operator():
    """The node is dragged along where springs pull with the limit, and rests within it."""
    found = jfric.eliminate_massless(chain(), "y")
    ts = np.linspace(0.0, 6.0, 241)
    solution = jfric.simulate(found.problem, ts=ts)
    solution.check()
    x = np.interp(ts, np.arange(7.0), [0.0, 0.05, -0.03, 0.08, 0.01, 0.02, -0.08])
    y, expected = -0.006, []
    for at in x:
        middle = (K1 * at - K2 * 0.01) / (K1 + K2)
        y = min(max(y, middle - R / (K1 + K2)), middle + R / (K1 + K2))
        expected.append(y)
    np.testing.assert_allclose(found.position(solution), expected, atol=1e-13)
    # What holds the body balances the second spring.
    pull = K2 * (np.asarray(expected) + 0.01)
    np.testing.assert_allclose(solution.lambda_t[:, 0], -pull, atol=1e-10)


@pytest.mark.slow  # its sibling: a node that sticks to a body
def test_friction_between_a_node_and_a_body_as_with_a_tiny_mass():
    """Two bodies move; the node between them rubs on one of them."""
    elements = {
        "mass": {"u": jfric.Mass("u", 1.0), "w": jfric.Mass("w", 2.0)},
        "spring": {
            "a": jfric.Spring(("u", "y"), 100.0),
            "b": jfric.Spring(("y", "w"), 50.0),
            "c": jfric.Spring("y", 30.0),
            "d": jfric.Spring("w", 40.0),
        },
        "friction": jfric.Friction(("u", "y"), limit=1.0),
    }
    initial = {"u": START(v=1.0), "y": START(q=0.01), "w": START(q=0.05)}
    problem = jfric.Problem(["u", "y", "w"], elements, initial=initial, time=2.0)
    found = jfric.eliminate_massless(problem, "y")
    ts = np.linspace(0.0, 2.0, 21)
    exact = jfric.simulate(found.problem, ts=ts)
    exact.check()
    assert int(exact.events.count) > 3
    light = {**elements["mass"], "y": jfric.Mass("y", 1e-6)}
    damped = {"damper": jfric.Damper(("u", "y"), 1e-3)}
    tiny = jfric.Problem(
        ["u", "y", "w"], elements | {"mass": light} | damped, initial=initial, time=2.0
    )
    near = jfric.simulate(tiny, jfric.EventDriven(max_events=2000, max_steps=10**6), ts=ts)
    near.check()
    np.testing.assert_allclose(exact.q[:, 0], near.q[:, 0], atol=1e-4)
    np.testing.assert_allclose(found.position(exact), near.q[:, 1], atol=1e-4)


def test_a_node_sticks_from_the_start_to_a_body_that_is_displaced():
    """Friction carries the 80 N of the spring to the ground; the other spring is not stretched."""
    problem = jfric.Problem(
        ["u", "y"],
        {
            "mass": jfric.Mass("u", 1.0),
            "spring": {"a": jfric.Spring(("u", "y"), 150.0), "b": jfric.Spring("y", 80.0)},
            "friction": jfric.Friction(("u", "y"), limit=400.0),
        },
        initial={"u": START(q=1.0), "y": START(q=1.0)},
        time=0.01,
    )
    found = jfric.eliminate_massless(problem, "y")
    solution = jfric.simulate(found.problem, ts=jnp.zeros((1,)))
    np.testing.assert_allclose(solution.a, [[-80.0]], rtol=1e-12)
    np.testing.assert_allclose(found.position(solution), [1.0], rtol=1e-12)


@pytest.mark.slow
def test_derivatives_pass_through():
    def end(x):
        found = jfric.eliminate_massless(chain(*x), "y")
        solution = jfric.simulate(found.problem, ts=jnp.array([2.4, 5.7]))
        return jnp.concatenate([found.position(solution), solution.lambda_t[:, 0]])

    x = jnp.array([K1, K2, R])
    forward = jax.jit(jax.jacfwd(end))(x)
    value = jax.jit(end)
    columns = [fourth_order(lambda d, e=e: value(x + d * e), 1e-3) for e in jnp.eye(3)]
    np.testing.assert_allclose(forward, jnp.stack(columns, axis=1), rtol=1e-7, atol=1e-8)


def held(*sections, **elements):
    own = {k: v for k, v in chain().elements.items() if k not in sections}
    return jfric.Problem(["u", "y"], own | elements, initial={"y": START(-0.006)})


BAD = [
    (held("spring", spring={}), "y: has no mass and no spring holds it, its motion is not unique"),
    (held(damper=jfric.Damper("y", 1.0)), "damper: acts on 'y', which has no mass, too"),
    (held(friction={c: jfric.Friction("y", limit=1.0) for c in "ab"}), "friction.b: acts on 'y'"),
    (
        held(friction=jfric.Friction("y", jfric.StaticDynamic(0.3, 0.2), N=1.0)),
        "friction.law: static and sliding friction differ, 'y' has no mass and would jump",
    ),
    (held(friction=jfric.Friction("y", limit=1.0, belt=0.1)), "must have a constant limit"),
    (held(mass={c: jfric.Mass(c, 1.0) for c in "uy"}), "'y' has a mass; there is nothing"),
    (
        held(state={"T": jfric.State("1 - z.T")}),
        "state: may act on 'y' by a function of positions",
    ),
]


@pytest.mark.parametrize(("problem", "sentence"), BAD, ids=[s for _, s in BAD])
def test_what_cannot_be_eliminated_has_a_sentence(problem, sentence):
    with pytest.raises(jfric.ProblemError) as error:
        jfric.eliminate_massless(problem, "y")
    assert sentence in str(error.value)


def test_a_start_that_friction_cannot_hold_and_a_wrong_name():
    problem = jfric.set_parameters(chain(), {"initial.y.q": 0.1})
    with pytest.raises(
        jfric.ProblemError, match=r"more than friction holds \(2\); it can rest from -0.0125"
    ):
        jfric.eliminate_massless(problem, "y")
    with pytest.raises(jfric.ProblemError, match="no degree of freedom 'z'"):
        jfric.eliminate_massless(problem, "z")
    with pytest.raises(jfric.ProblemError, match=r"leave out .* jfric.eliminate_massless"):
        jfric.simulate(problem)


def test_shared_parameters_end():
    """None is left that only some of what it stood for would follow."""
    shared = chain(jfric.Expression("$k"), jfric.Expression("3*$k"), parameters={"k": 1.0})
    shared = jfric.set_parameters(shared, {"parameters.k": K1})
    found, plain = (jfric.eliminate_massless(x, "y").problem for x in (shared, chain()))
    values = [
        {k: np.asarray(v).tolist() for k, v in jfric.parameters(x).items()} for x in (found, plain)
    ]
    assert values[0] == values[1]
    with pytest.raises(KeyError, match=r"no parameter 'parameters\.k'"):
        jfric.set_parameters(found, {"parameters.k": 1.0})
    follows = {"floor": jfric.Friction("y", limit=R), "s": jfric.Friction(sliding="k*u", limit=1.0)}
    with pytest.raises(jfric.ProblemError, match=r"found '\$k'; numbers take the place of shared"):
        jfric.eliminate_massless(
            chain(jfric.Expression("$k"), parameters={"k": K1}, friction=follows), "y"
        )
    left = jfric.eliminate_massless(chain(parameters={"k": K1}, friction=follows), "y")
    assert list(left.problem.parameters) == ["k"]


DRAGGED = jfric.to_toml(chain()).replace("[time]", 'massless = ["y"]\n\n[time]', 1)


def test_a_file_names_nodes_without_mass():
    found = loads(DRAGGED).problem
    expected = jfric.eliminate_massless(chain(), "y").problem
    assert jfric.to_toml(found) == jfric.to_toml(expected)
    assert loads(DRAGGED.replace('massless = ["y"]', "massless = []")).problem.dofs == chain().dofs


BAD_FILES = [
    ('["y"]', '["z"]', "massless: no degree of freedom 'z'; there are u, y"),
    ('["y"]', '["y", "y"]', "massless: found ['y', 'y'], names of degrees of freedom"),
    ('["y"]', '["u"]', "massless: 'u' has a mass; there is nothing to eliminate"),
    ('["y"]', '"y"', "massless: found 'y', expected a list such as [\"u\"]"),
    ("q = -0.006", "q = 0.1", "initial.y: found 0.1, where springs pull it with"),
]


@pytest.mark.parametrize(("old", "new", "sentence"), BAD_FILES, ids=[n for _, n, _ in BAD_FILES])
def test_what_a_file_names_wrongly_has_a_sentence(old, new, sentence):
    with pytest.raises(jfric.ProblemError) as error:
        loads(DRAGGED.replace(old, new, 1))
    assert sentence in str(error.value)
