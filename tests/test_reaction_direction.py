"""Friction whose reaction has another direction than sliding: relays and their sliding modes."""

from __future__ import annotations

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import jfric
from jfric.contact.residual import contact_residual, motion_residual
from jfric.files.read_toml import loads
from jfric.system.assembly import assemble

jax.config.update("jax_enable_x64", True)

FLOWS = ("exact", "runge-kutta")


def relay(A, B, C, x0, *, end=4.0, limit=1.0) -> jfric.Problem:
    """``x' = A x + B lambda``, ``lambda_i in -Sign(C x)_i``; states: velocities of unit masses."""
    names = [f"x{i}" for i in range(len(x0))]
    B, C = np.reshape(B, (len(x0), -1)), np.reshape(C, (-1, len(x0)))
    elements = {
        f"relay{k}": jfric.Friction(
            dict(zip(names, C[k], strict=True)),
            limit=limit,
            reaction=dict(zip(names, B[:, k], strict=True)),
        )
        for k in range(len(C))
    }
    return jfric.Problem(
        names,
        {"mass": {n: jfric.Mass(n, 1.0) for n in names}, "friction": elements},
        initial={n: jfric.InitialState(0.0, v) for n, v in zip(names, x0, strict=True)},
        time=end,
        matrices=jfric.Matrices(C=-np.asarray(A)),
    )


def implicit_euler(A, B, C, x0, end, steps):
    """States at the end of each step, by trying all modes of the relays at every step."""
    h = end / steps
    R = np.linalg.inv(np.eye(len(x0)) - h * np.asarray(A))
    G, D = R @ B, h * C @ R @ B
    count = len(C)
    path = [np.asarray(x0)]
    patterns = list(itertools.product((0, 1, -1), repeat=count))
    for _ in range(steps):
        free = R @ path[-1]
        y = C @ free
        best = None
        for pattern in patterns:
            sign = np.asarray(pattern)
            stick = sign == 0
            force = -sign.astype(float)
            if stick.any():
                rest = y + D @ force
                part = D[np.ix_(stick, stick)]
                force[stick] = np.linalg.solve(part, -rest[stick])
            after = y + D @ force
            wrong = np.maximum(np.max(np.abs(force)) - 1.0, np.max(-sign * after))
            if best is None or wrong < best[0]:
                best = wrong, force
        path.append(free + h * G @ best[1])
    return np.stack(path)


def random_relay(seed, states, relays):
    """A stable system whose ``C B`` has positive principal minors."""
    rng = np.random.default_rng(seed)
    while True:
        A = rng.normal(size=(states, states)) * 1.5 - 0.3 * np.eye(states)
        B, C = rng.normal(size=(states, relays)), rng.normal(size=(relays, states))
        D = C @ B
        minors = [D[i, i] for i in range(relays)] + [np.linalg.det(D)]
        if min(minors) > 0.3 and np.linalg.eigvals(A).real.max() < 0.3:
            return A, B, C, 1.5 * rng.normal(size=states)


# One element: closed forms.


@pytest.mark.slow
@pytest.mark.parametrize("flow", FLOWS)
def test_friction_on_one_body_drives_another(flow):
    """Friction of y pushes x along: until y stops, and as far as it holds y after that."""
    m_x, m_y, limit, load, r, v0 = 2.0, 3.0, 5.0, 2.0, -0.4, 1.5
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", m_x), "y": jfric.Mass("y", m_y)},
            "load": jfric.Load("y", load),
            "friction": jfric.Friction("y", limit=limit, reaction={"x": r, "y": 1.0}),
        },
        initial={"y": jfric.InitialState(0.0, v0)},
        time=4.0,
    )
    ts = jnp.linspace(0.0, 4.0, 41)
    solution = jfric.simulate(problem, jfric.EventDriven(flow=flow), ts=ts)
    assert int(solution.status) == 0
    stop = m_y * v0 / (limit - load)
    t = np.asarray(ts)
    slid, held = np.minimum(t, stop), np.maximum(t - stop, 0.0)
    v_x = -r / m_x * (limit * slid + load * held)
    v_y = v0 - (limit - load) / m_y * slid
    off = 1e-13 if flow == "exact" else 1e-10
    np.testing.assert_allclose(solution.v, np.stack([v_x, v_y], axis=1), rtol=0, atol=off)
    np.testing.assert_allclose(solution.events.time[0], stop, rtol=off)
    np.testing.assert_allclose(solution.lambda_t[t > stop, 0], -load, rtol=off)
    assert np.all(np.asarray(solution.v)[t > stop, 1] == 0.0)
    assert float(jnp.max(motion_residual(problem, solution))) < off
    assert float(jnp.max(contact_residual(problem, solution))) < off


@pytest.mark.parametrize("flow", FLOWS)
def test_sliding_mode_is_that_of_the_equivalent_control(flow):
    """On the surface ``C x = 0`` the motion is ``x' = (I - B C / (C B)) A x``."""
    A = np.asarray([[0.2, -1.0], [2.0, -0.3]])
    B, C = np.asarray([[1.0], [0.6]]), np.asarray([[0.4, 1.0]])
    x0 = np.asarray([0.25, -0.1])
    ts = np.linspace(0.0, 3.0, 31)
    solution = jfric.simulate(
        relay(A, B, C, x0, end=3.0), jfric.EventDriven(flow=flow), ts=jnp.asarray(ts)
    )
    assert int(solution.status) == 0
    equivalent = (np.eye(2) - B @ C / (C @ B)) @ A
    exact = np.stack([expm(equivalent * t) @ x0 for t in ts])
    control = -(exact @ (C @ A).T) / (C @ B)
    assert np.abs(control).max() < 1.0
    assert np.all(np.asarray(solution.mode) == jfric.Mode.STICK)
    np.testing.assert_allclose(solution.v, exact, rtol=0, atol=1e-12 if flow == "exact" else 1e-9)
    np.testing.assert_allclose(solution.lambda_t, control, rtol=0, atol=1e-9)


def test_viscous_part_of_a_law_acts_along_the_reaction():
    """Momentum goes from y to x at the ratio of the reaction, whatever the law."""
    m_x, m_y, r = 2.0, 0.5, 0.7
    law = jfric.Stribeck(mu_s=0.4, mu_d=0.2, v_s=0.3, exponent=1.0, mu_v=0.5)
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", m_x), "y": jfric.Mass("y", m_y)},
            "friction": jfric.Friction("y", law, N=2.0, reaction={"x": r, "y": 1.0}),
        },
        initial={"y": jfric.InitialState(0.0, 2.0)},
        time=2.0,
    )
    solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 2.0, 21))
    assert int(solution.status) == 0
    assert int(solution.mode[-1, 0]) == jfric.Mode.STICK
    np.testing.assert_allclose(
        m_x * solution.v[:, 0], r * m_y * (solution.v[:, 1] - 2.0), rtol=0, atol=1e-9
    )
    assert float(jnp.max(motion_residual(problem, solution))) < 1e-9


# Random systems against implicit Euler steps.


@pytest.mark.parametrize(
    ("seed", "states", "relays"),
    # The relays of the first pair of pairs switch ever faster, until both hold.
    [
        (1, 2, 1),
        *(
            pytest.param(*system, marks=pytest.mark.slow)
            for system in (
                *((7, 3, 1), (4, 2, 2), (13, 3, 2)),
                *((27, 2, 1), (47, 3, 1), (38, 2, 2), (10, 3, 2)),
            )
        ),
    ],
)
def test_random_relays_against_implicit_euler(seed, states, relays):
    A, B, C, x0 = random_relay(seed, states, relays)
    end, errors = 3.0, []
    problem = relay(A, B, C, x0, end=end)
    solution = jfric.simulate(problem, ts=jnp.linspace(0.0, end, 61))
    assert int(solution.status) == 0
    assert int(solution.events.count) >= 2
    assert float(jnp.max(motion_residual(problem, solution))) < 1e-11
    assert float(jnp.max(contact_residual(problem, solution))) < 1e-9
    for steps in (1200, 6000):
        path = implicit_euler(A, B, C, x0, end, steps)
        errors.append(np.abs(path[:: steps // 60] - np.asarray(solution.v)).max())
    scale = np.abs(np.asarray(solution.v)).max()
    assert errors[1] < 0.03 * scale
    assert errors[1] < 0.35 * errors[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 10])
def test_both_flows_agree(seed):
    problem = relay(*random_relay(seed, 3, 2), end=3.0)
    ts = jnp.linspace(0.0, 3.0, 31)
    exact, stepped = (jfric.simulate(problem, jfric.EventDriven(flow=f), ts=ts) for f in FLOWS)
    assert int(exact.events.count) == int(stepped.events.count)
    np.testing.assert_allclose(exact.v, stepped.v, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(exact.mode, stepped.mode)


@pytest.mark.slow
def test_smoothed_law_tends_to_the_exact_one():
    problem = relay(*random_relay(2, 3, 1), end=3.0)
    ts = jnp.linspace(0.0, 3.0, 31)
    exact = jfric.simulate(problem, ts=ts)
    off = [
        float(jnp.max(jnp.abs(jfric.simulate(problem, jfric.Smoothed(width=w), ts=ts).v - exact.v)))
        for w in (1e-2, 1e-3)
    ]
    assert off[1] < 0.2 * off[0] < 0.02


@pytest.mark.slow
def test_an_equal_reaction_changes_nothing():
    def problem(reaction):
        return jfric.Problem(
            ["x", "y"],
            {
                "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 2.0)},
                "spring": jfric.Spring("y", 3.0),
                "friction": jfric.Friction(("x", "y"), limit=0.5, reaction=reaction),
            },
            initial={"y": jfric.InitialState(0.0, 3.0)},
            time=5.0,
        )

    ts = jnp.linspace(0.0, 5.0, 21)
    plain = problem(None)
    # The same pair, and the same numbers as coefficients: the second takes the general way.
    same, general = problem(("x", "y")), problem({"x": -1.0, "y": 1.0})
    assert assemble(plain).reactions is None
    assert assemble(same).reactions is None
    assert assemble(general).redirected
    expected = jfric.simulate(plain, ts=ts)
    for other in (same, general):
        found = jfric.simulate(other, ts=ts)
        np.testing.assert_allclose(found.v, expected.v, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(found.mode, expected.mode)


@pytest.mark.slow
def test_beside_a_bouncing_contact_and_a_belt():
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 2.0)},
            "load": jfric.Load("y", -20.0),
            "spring": jfric.Spring("x", 30.0),
            "contact": jfric.Contact("y", "x", jfric.Coulomb(0.2), e=0.5),
            "friction": jfric.Friction("x", limit=1.5, belt=0.3, reaction={"x": 1.0, "y": 0.5}),
        },
        initial={"x": jfric.InitialState(0.2, 0.0), "y": jfric.InitialState(0.3, 0.0)},
        time=2.0,
    )
    solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 2.0, 101))
    assert int(solution.status) == 0
    assert int(np.sum(solution.events.impact)) >= 3
    assert {int(m) for m in solution.mode[:, 0]} >= {int(jfric.Mode.SLIP_NEG)}
    assert float(jnp.max(motion_residual(problem, solution))) < 1e-10
    assert float(jnp.max(contact_residual(problem, solution))) < 1e-10


def test_a_singular_pair_still_finds_its_only_motion():
    """``y1' = a1 - s1 - s2``, ``y2' = a2 - s1 - s2``: both cannot stick, each slides its way."""
    C, B = np.eye(2), np.ones((2, 2))
    problem = relay(np.zeros((2, 2)), B, C, [0.0, 0.0], end=1.0)
    loads_ = {"a": jfric.Load("x0", 0.2), "b": jfric.Load("x1", -0.2)}
    problem = jfric.Problem(problem.dofs, problem.elements | {"load": loads_}, time=1.0)
    solution = jfric.simulate(problem, ts=jnp.asarray([0.0, 0.5, 1.0]))
    assert int(solution.status) == 0
    np.testing.assert_allclose(solution.v[:, 0], [0.0, 0.1, 0.2], atol=1e-14)
    np.testing.assert_allclose(solution.v[:, 1], [0.0, -0.1, -0.2], atol=1e-14)


def test_two_reactions_to_one_sliding_velocity_are_not_unique():
    friction = {
        "a": jfric.Friction("x", limit=1.0, reaction={"x": 1.0, "y": 1.0}),
        "b": jfric.Friction("x", limit=1.0, reaction={"x": 1.0, "y": -1.0}),
    }
    problem = jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)},
            "load": jfric.Load("x", 0.5),
            "friction": friction,
        },
        time=1.0,
    )
    solution = jfric.simulate(problem, ts=jnp.asarray([0.0, 1.0]))
    assert int(solution.status) == jfric.Status.INCONSISTENT


@pytest.mark.slow
def test_forward_derivative_against_central_differences():
    A, B, C, x0 = random_relay(10, 3, 2)
    base = relay(A, B, C, x0, end=3.0)
    paths = ("friction.relay0.reaction.x1", "friction.relay1.direction.x2", "initial.x0.v")
    known = jfric.parameters(base)
    theta = jnp.asarray([known[p] for p in paths])
    ts = jnp.asarray([1.0, 2.0, 3.0])

    @jax.jit
    def final(theta):
        problem = jfric.set_parameters(base, dict(zip(paths, theta, strict=True)))
        return jfric.simulate(problem, jfric.EventDriven(adjoint="forward"), ts=ts).v

    exact = jax.jacfwd(final)(theta)
    h = 1e-6
    for i, step in enumerate(h * np.eye(3)):
        central = (final(theta + step) - final(theta - step)) / (2 * h)
        np.testing.assert_allclose(exact[..., i], central, rtol=2e-7, atol=2e-7)
    assert float(jnp.abs(exact).max()) > 0.1


# Files and sentences.

TEXT = """
dofs = {x = "translation", th = "rotation"}
time = {end = 1}
parameters = {arm = "0.2 m"}
[mass]
body = {dof = "x", m = 2}
wheel = {dof = "th", m = 0.5}
[friction]
dof = "x"
limit = "3 N"
reaction = REACTION
"""


@pytest.mark.parametrize(
    ("reaction", "vector"),
    [
        ('{x = 1, th = "30 cm"}', [1.0, 0.3]),
        ('{x = 2, th = "$arm"}', [2.0, 0.2]),
        ('"x"', [1.0, 0.0]),
        ('{between = ["th", "x"]}', [1.0, -1.0]),
    ],
)
def test_round_trip(reaction, vector):
    problem = loads(TEXT.replace("REACTION", reaction), "x.toml").problem
    np.testing.assert_allclose(assemble(problem).R_T, [vector], rtol=1e-15)
    again = loads(jfric.to_toml(problem), "x.toml").problem
    assert jax.tree.structure(jfric.build(problem)) == jax.tree.structure(again)
    assert all(map(np.array_equal, jax.tree.leaves(problem), jax.tree.leaves(again)))


@pytest.mark.parametrize(
    ("reaction", "message"),
    [
        ('{x = "1 m"}', "friction.reaction.x: found 'm' (a length), expected"),
        ('"y"', "friction.reaction: no degree of freedom 'y'; declared are x, th"),
        ("{x = 0, th = 0}", "friction.reaction: all coefficients are zero"),
        (
            "{x = -1, th = 1}",
            "friction.reaction: found a sliding acceleration of -0.5 for a unit reaction, must be "
            "positive: friction has to act against its own sliding",
        ),
        ('"th"', "friction.reaction: found a sliding acceleration of 0 for a unit reaction"),
        (
            "{x = 1, z = 1}\n[base.z]\ndisplacement = 0",
            "friction.reaction: found the base 'z', a reaction acts on degrees of freedom only; "
            "declared are x, th",
        ),
    ],
)
def test_mistakes_are_one_sentence(reaction, message):
    with pytest.raises(jfric.ProblemError) as error:
        loads(TEXT.replace("REACTION", reaction), "x.toml")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("solver", "name"),
    [
        (jfric.MoreauJean(dt=1e-3), "the solver moreau-jean"),
        (jfric.Midpoint(dt=1e-3), "the solver midpoint"),
        (jfric.StabilisedMidpoint(dt=1e-3), "the solver stabilised-midpoint"),
        (jfric.QuasiStatic(), "the solver quasi-static"),
    ],
)
def test_other_solvers_refuse_by_name(solver, name):
    problem = loads(TEXT.replace("REACTION", "{x = 1, th = 1}"), "x.toml").problem
    with pytest.raises(jfric.ProblemError) as error:
        jfric.simulate(problem, solver)
    assert str(error.value) == (
        "friction.reaction: found another direction than that of sliding, which "
        f"{name} cannot represent; use the solver event-driven or smoothed"
    )


@pytest.mark.slow
def test_static_problems_refuse():
    problem = loads(TEXT.replace("REACTION", "{x = 1, th = 1}"), "x.toml").problem
    springs = {"a": jfric.Spring("x", 1.0), "b": jfric.Spring("th", 1.0)}
    problem = eqx.tree_at(lambda p: p.elements, problem, problem.elements | {"spring": springs})
    with pytest.raises(jfric.ProblemError, match="a static problem cannot represent"):
        jfric.equilibria(problem)
