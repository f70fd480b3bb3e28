"""Time stepping with friction in planes, and cone problems of several contacts."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import cones

import jfric
from jfric.contact.contact_methods import cone_impulses, solve_impulses
from jfric.contact.contact_problem import ContactProblem, impulse_residual
from jfric.verification.configs import shipped

jax.config.update("jax_enable_x64", True)


# Cone problems.


def problem_of(D, w, mu):
    """The problem of contacts whose rows are normal, tangent, tangent: both tangents first, then
    the normal for each of them; rows of the result in ``D``."""
    k = len(w)
    tangents = np.array([[3 * i + 1, 3 * i + 2] for i in range(k)]).ravel()
    rows = np.concatenate([tangents, np.repeat(3 * np.arange(k), 2)])
    zero, yes, mu = jnp.zeros(2 * k), jnp.ones(2 * k, bool), jnp.repeat(jnp.asarray(mu), 2)
    D, gamma = jnp.asarray(D[np.ix_(rows, rows)]), jnp.asarray(w.ravel()[rows])
    return ContactProblem(D, gamma, yes, yes, zero, mu, mu, zero, zero, planes_of(k)), rows


def planes_of(k):
    return tuple((2 * i, 2 * i + 1) for i in range(k))


def impulses_of(impulse, rows):
    """Normal, tangent, tangent of each contact."""
    found = np.zeros(rows.max() + 1)
    np.add.at(found, rows, np.asarray(impulse))
    return found.reshape(-1, 3)


def random_contacts(random, k, n):
    W, mass = random.normal(size=(3 * k, n)), random.uniform(0.5, 2.0, n)
    w = (W @ random.normal(size=n)).reshape(k, 3)
    return (W / mass) @ W.T, w, random.uniform(0.1, 0.8, k)


@functools.cache
def solver_of(method="auto"):
    return jax.jit(lambda p: solve_impulses(p, method))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "n"), [(3, 12), *(pytest.param(*x, marks=pytest.mark.slow) for x in [(1, 3), (4, 6)])]
)
def test_random_contacts_obey_the_laws_as_the_reference_judges_them(k, n):
    """Four contacts of six degrees of freedom are redundant: impulses are then not unique."""
    random = np.random.default_rng(3)
    for _ in range(40):
        D, w, mu = random_contacts(random, k, n)
        problem, rows = problem_of(D, w, mu)
        found = solver_of()(problem)
        assert found.status == jfric.Status.OK
        assert impulse_residual(problem, found.impulse) < 1e-10
        P = impulses_of(found.impulse, rows)
        assert cones.violation(D, w, mu, P) < 1e-9 * (1.0 + np.abs(P).max())


def test_random_contacts_have_the_impulses_of_the_reference():
    random = np.random.default_rng(5)
    compared = 0
    for _ in range(12):
        D, w, mu = random_contacts(random, 3, 12)
        problem, rows = problem_of(D, w, 0.5 * mu)
        expected = cones.solve(D, w, 0.5 * mu)
        if expected is None:
            continue
        compared += 1
        found = impulses_of(solver_of()(problem).impulse, rows)
        np.testing.assert_allclose(found, expected, atol=1e-8 * (1.0 + np.abs(expected).max()))
    assert compared >= 10


@pytest.mark.slow  # its sibling: impulses of the reference
def test_the_residual_sees_an_impulse_that_is_wrong():
    D, w, mu = random_contacts(np.random.default_rng(7), 1, 3)
    w[0, 0] = -1.0
    problem, _ = problem_of(D, w, mu)
    found = solver_of()(problem).impulse
    for wrong in (0.0 * found, -found, found.at[0].add(1e-3)):
        assert impulse_residual(problem, wrong) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("method", ["newton", "gauss-seidel"])
def test_a_method_that_does_not_reach_its_tolerance_says_so(method):
    random = np.random.default_rng(3)
    statuses = set()
    for _ in range(10):
        D, w, mu = random_contacts(random, 7, 6)
        problem, _ = problem_of(D, w, mu)
        found = solver_of(method)(problem)
        residual = impulse_residual(problem, found.impulse)
        np.testing.assert_allclose(residual, found.residual, rtol=1e-3, atol=1e-14)
        assert (found.status == jfric.Status.OK) == (float(found.residual) <= 1e-10)
        statuses.add(int(found.status))
    assert int(jfric.Status.OK) in statuses
    # Steps of Newton's method alone may lead nowhere.
    assert (int(jfric.Status.UNSOLVED) in statuses) == (method == "newton")


def test_friction_along_lines_is_that_of_the_pivoting_method():
    """Given limits and contacts, differing for both directions, without any plane."""
    random = np.random.default_rng(11)

    @jax.jit
    def ours(p):
        scaled, factor = p.in_units()
        impulse = cone_impulses(scaled, "auto", 1e-12)[0] * factor
        return impulse, impulse_residual(p, impulse)

    pivoting = jax.jit(lambda p: solve_impulses(p, "lemke"))
    for _ in range(20):
        W = random.normal(size=(5, 6))
        mu, cap = random.uniform(0.0, 0.5, (2, 2)), random.uniform(0.1, 1.0, (2, 3))
        cap[:, 1:] = 0.0
        yes = jnp.ones(3, bool)
        problem = ContactProblem(
            jnp.asarray(W @ W.T),
            jnp.asarray(W @ random.normal(size=6)),
            yes,
            yes[:2],
            jnp.zeros(3),
            *jnp.asarray(mu),
            *jnp.asarray(cap),
        )
        (found, residual), expected = ours(problem), pivoting(problem)
        assert residual < 1e-10
        assert expected.status == jfric.Status.OK
        np.testing.assert_allclose(found, expected.impulse, atol=1e-9)


@pytest.mark.slow
def test_derivatives_of_impulses_are_those_of_differences():
    D, w, mu = random_contacts(np.random.default_rng(0), 3, 12)
    w[:, 0] -= 2.0
    problem, _ = problem_of(D, w, mu)
    along = jnp.asarray(np.random.default_rng(1).normal(size=problem.gamma.shape))
    tangents, normals = jnp.split(along, 2)
    # Both rows of a normal change alike.
    along = jnp.concatenate([tangents, jnp.repeat(normals[::2], 2)])

    @jax.jit
    def solved(x):
        moved = replace_mu(dataclasses.replace(problem, gamma=problem.gamma + x * along), 1.0 + x)
        return solve_impulses(moved).impulse

    step = 1e-5
    expected = (solved(step) - solved(-step)) / (2 * step)
    np.testing.assert_allclose(jax.jacfwd(solved)(0.0), expected, atol=1e-7)
    np.testing.assert_allclose(jax.jacrev(solved)(0.0), expected, atol=1e-7)


def replace_mu(problem, factor):
    mu = factor * problem.mu_positive
    return dataclasses.replace(problem, mu_positive=mu, mu_negative=mu)


# Friction elements in a plane.


def block(law, belt=None, load=0.0, v=(0.0, 1.0), end=4.0):
    return jfric.Problem(
        ["x", "y"],
        {
            "mass": {"x": jfric.Mass("x", 1.0), "y": jfric.Mass("y", 1.0)},
            "friction": jfric.Friction(plane=["x", "y"], law=law, N=1.0, belt=belt),
            "load": jfric.Load("x", load),
        },
        initial={"x": jfric.InitialState(0.0, v[0]), "y": jfric.InitialState(0.0, v[1])},
        time=end,
    )


@functools.cache
def stop(scheme):
    """Final positions by the step, of F2."""
    problem = jfric.load(shipped("f2_stop"))
    return jax.jit(lambda h: jfric.simulate(problem, scheme(h)))


MIDPOINT = (jfric.StabilisedMidpoint, 2.0)
ORDERS = [(jfric.MoreauJean, 1.0), pytest.param(*MIDPOINT, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("scheme", "order"), ORDERS)
def test_a_stop_in_a_plane_converges_with_the_order_of_the_scheme(scheme, order):
    exact, errors = np.array([5.0 / 12.0, 4.0 / 3.0]), []
    for h in (1.6e-2, 8e-3, 4e-3):
        solution = stop(scheme)(h)
        assert solution.status == jfric.Status.OK
        assert solution.events.count == 1
        assert abs(float(solution.events.time[0]) - 10.0 / 3.0) < 2 * h
        assert solution.final.mode.tolist() == [jfric.Mode.STICK] * 2
        errors.append(np.abs(np.asarray(solution.final.q) - exact).max())
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(rates, order, atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "order"), ORDERS)
def test_a_block_thrown_across_an_incline_converges(scheme, order):
    problem = jfric.load(shipped("f3_incline"))
    run = jax.jit(lambda h: jfric.simulate(problem, scheme(h)).final.q)
    exact = np.array([0.06454200405880645, 0.10529896014701529])
    steps = 4e-3 / 1.3 ** np.arange(10)
    errors = [np.abs(np.asarray(run(h)) - exact).max() for h in steps]
    # The last step before the stop is of any length.
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert abs(slope - order) < 0.25


@pytest.mark.slow
def test_static_friction_holds_in_a_plane_and_sliding_friction_acts_beyond():
    law = jfric.StaticDynamic(0.4, 0.3)

    @jax.jit
    @jax.vmap
    def run(load):
        return jfric.simulate(block(law, load=load, v=(0.0, 0.0), end=1.0), jfric.MoreauJean(1e-2))

    found = run(jnp.asarray([0.35, 0.45]))
    assert not found.status.any()
    np.testing.assert_allclose(found.final.q[0], 0.0, atol=1e-15)
    np.testing.assert_allclose(found.final.v[1], [0.15, 0.0], atol=1e-12)
    stick, slip = [int(jfric.Mode.STICK)] * 2, [int(jfric.Mode.SLIP)] * 2
    assert found.final.mode.tolist() == [stick, slip]


@pytest.mark.slow
def test_a_belt_with_two_components_moves_the_same_problem():
    """What a block does on a belt is what it does on the ground, seen from the belt; an ellipse."""
    law, belt = jfric.Coulomb([0.4, 0.2]), (0.5, -0.3)
    solver, ts = jfric.MoreauJean(1e-2), jnp.linspace(0.0, 4.0, 5)
    still = jfric.simulate(block(law, load=0.1, v=(0.3, 1.0)), solver, ts=ts)
    moved = block(law, belt=belt, load=0.1, v=(0.3 + belt[0], 1.0 + belt[1]))
    carried = jfric.simulate(moved, solver, ts=ts)
    assert still.status == carried.status == jfric.Status.OK
    np.testing.assert_allclose(carried.q, still.q + ts[:, None] * jnp.asarray(belt), atol=1e-12)
    np.testing.assert_allclose(carried.lambda_t, still.lambda_t, atol=1e-10)
    assert jfric.contact_residual(moved, carried).max() < 0.1


def plate(contacts, height):
    """A plate on three legs: it slides, turns about the vertical by ``phi``, and tilts by ``a`` and
    ``b``, all small; its centre lies above the feet."""
    feet = {"one": (0.6, 0.0), "two": (-0.3, 0.5), "three": (-0.3, -0.5)}
    dofs = {"x": "translation", "y": "translation", "z": "translation"}
    dofs |= dict.fromkeys(("phi", "a", "b"), "rotation")
    law, found = jfric.Coulomb([0.4, 0.3]), {}
    for name, (x, y) in feet.items():
        plane = ({"x": 1.0, "phi": -y, "b": -height}, {"y": 1.0, "phi": x, "a": height})
        normal = {"z": 1.0, "a": y, "b": -x}
        if contacts:
            found[name] = jfric.Contact(normal, plane=plane, law=law)
        else:
            found[name] = jfric.Friction(plane=plane, law=law, N=1.0)
    mass = {dof: jfric.Mass(dof, m) for dof, m in zip(dofs, (1, 1, 1, 0.2, 0.1, 0.1), strict=True)}
    start = {"x": jfric.InitialState(v=1.5), "y": jfric.InitialState(v=0.5)}
    start["phi"] = jfric.InitialState(v=2.0)
    return jfric.Problem(
        dofs,
        {
            "mass": mass,
            "load": jfric.Load("z", -3.0 if contacts else 0.0),
            "contact" if contacts else "friction": found,
        },
        initial=start,
        time=1.0,
    )


@pytest.mark.slow
def test_a_plate_on_three_legs_has_the_friction_of_given_normal_forces():
    """Where friction does not tilt it, each leg carries a third of the weight."""
    solver, ts = jfric.MoreauJean(1e-2), jnp.linspace(0.0, 1.0, 5)
    given = jfric.simulate(plate(False, 0.0), solver, ts=ts)
    carried = jfric.simulate(plate(True, 0.0), solver, ts=ts)
    assert given.status == carried.status == jfric.Status.OK
    np.testing.assert_allclose(carried.q, given.q, atol=1e-9)
    np.testing.assert_allclose(carried.lambda_n[1:, ::2], 1.0, atol=1e-9)
    # It tilts, and carries friction where it is pressed.
    high = jfric.simulate(plate(True, 0.2), solver, ts=ts)
    assert high.status == jfric.Status.OK
    assert high.final.residual < 1e-10
    normal = np.asarray(high.lambda_n[1:, ::2])
    np.testing.assert_allclose(normal.sum(axis=1), 3.0, atol=1e-9)
    assert np.ptp(normal[0]) > 0.1
    friction = np.asarray(high.lambda_t[1:]).reshape(-1, 3, 2) / [0.4, 0.3]
    assert (np.linalg.norm(friction, axis=2) <= normal + 1e-9).all()


@pytest.mark.slow
def test_a_contact_in_a_plane_that_bounces_converges_to_the_event_driven_solver():
    problem = jfric.Problem(
        ["x", "y", "z"],
        {
            "mass": {dof: jfric.Mass(dof, 1.0) for dof in "xyz"},
            "contact": jfric.Contact("z", plane=["x", "y"], law=jfric.Coulomb(0.4), e=0.5),
            "load": {"x": jfric.Load("x", 0.2), "z": jfric.Load("z", -1.0)},
        },
        initial={"y": jfric.InitialState(v=1.0), "z": jfric.InitialState(q=0.5)},
        time=4.0,
    )
    exact = jfric.simulate(problem, jfric.EventDriven()).final.q
    run = jax.jit(lambda h: jfric.simulate(problem, jfric.MoreauJean(h)))
    for h in (1e-2, 5e-3, 2.5e-3, 1.25e-3):
        found = run(h)
        assert found.status == jfric.Status.OK
        assert jnp.abs(found.final.q - exact).max() < 0.5 * h


def test_methods_for_lines_are_refused():
    with pytest.raises(jfric.ProblemError, match="method: 'lemke' takes friction along lines"):
        jfric.simulate(block(jfric.Coulomb(0.4)), jfric.MoreauJean(1e-2, method="lemke"))
