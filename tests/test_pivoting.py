"""Decisions over all contacts at once: accelerations from rest, and impacts, on random problems.

Every result is judged by the laws themselves, written out here; nothing is compared with another
solver of the same kind.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.contact.impact import solve_impact
from jfric.contact.pivoting import TRIES, select_flips, start_pivoting

RNG = np.random.default_rng
#: Random problems of one kind.
BATCH = 250


# Accelerations of bodies with friction, from rest.


def _problem(M, W, limit, force) -> jfric.Problem:
    """Bodies coupled by inertia, one friction element along each row of ``W``, a constant load.

    Built under ``vmap``: all arguments are arrays of one system.
    """
    names = [f"x{i}" for i in range(M.shape[0])]
    single = W is None
    rows = names if single else [dict(zip(names, row, strict=True)) for row in W]
    return jfric.Problem(
        names,
        {
            "friction": {f"f{i}": jfric.Friction(r, limit=limit[i]) for i, r in enumerate(rows)},
            "load": {x: jfric.Load(x, force[i]) for i, x in enumerate(names)},
        },
        matrices=jfric.Matrices(M=M),
        time=1e-3,
    )


@functools.partial(jax.jit, static_argnames="single")
def _start(M, W, limit, force, *, single: bool):
    """Accelerations and forces right after the start, status and flags, for a batch."""

    def one(M, W, limit, force):
        solver = jfric.EventDriven(max_events=0)
        problem = _problem(M, None if single else W, limit, force)
        solution = jfric.simulate(problem, solver, ts=jnp.zeros(1))
        return solution.a[0], solution.lambda_t[0], solution.status, solution.flags

    return jax.vmap(one)(M, W, limit, force)


def _random_systems(seed: int, batch: int, n: int, contacts: int, *, single: bool):
    rng = RNG(seed)
    A = rng.normal(size=(batch, n, n))
    M = A @ A.transpose(0, 2, 1) + 0.1 * np.eye(n)
    W = np.tile(np.eye(n), (batch, 1, 1)) if single else rng.normal(size=(batch, contacts, n))
    limit = rng.uniform(0.1, 3.0, (batch, contacts))
    # From one to all contacts have friction.
    present = rng.permuted(np.tile(np.arange(contacts), (batch, 1)), axis=1)
    limit[present >= rng.integers(1, contacts + 1, (batch, 1))] = 0.0
    force = rng.normal(size=(batch, n)) * rng.uniform(0.2, 5.0, (batch, 1))
    return M, W, limit, force


def _coulomb(gamma, friction, limit) -> np.ndarray:
    """Stick within the cone, or slip in either direction at the limit: the least defect."""
    slip = [
        np.maximum(np.maximum(-s * gamma, 0.0), np.abs(friction + s * limit)) for s in (1.0, -1.0)
    ]
    stick = np.maximum(np.abs(gamma), np.maximum(np.abs(friction) - limit, 0.0))
    return np.minimum(stick, np.minimum(*slip))


def _judge(M, W, limit, force, a, friction) -> np.ndarray:
    """Largest violation of the equation of motion and of Coulomb's law in each system."""
    size = np.abs(force).max(1, keepdims=True) + limit.max(1, keepdims=True)
    inertia, push = np.einsum("bij,bj->bi", M, a), np.einsum("bci,bc->bi", W, friction)
    motion = np.abs(inertia - force - push) / size
    # Relative to the accelerations that friction has to stop.
    free = np.abs(np.einsum("bci,bi->bc", W, np.linalg.solve(M, force[..., None])[..., 0]))
    relative = np.einsum("bci,bi->bc", W, a) / free.max(1, keepdims=True)
    law = _coulomb(relative, friction / size, limit / size)
    return np.maximum(motion.max(1), law.max(1))


SIZES = {
    "ten-bodies": (BATCH, 10, 10, True),
    "redundant": (150, 4, 8, False),
    "thirty-bodies": (40, 30, 30, True),
}


@functools.cache
def _solved(name: str):
    batch, n, contacts, single = SIZES[name]
    systems = _random_systems(7, batch, n, contacts, single=single)
    return systems, [np.asarray(x) for x in _start(*systems, single=single)]


def _group(name: str):
    return pytest.mark.xdist_group(f"pivoting-{name}")


def _marks(name: str):
    slow = name in ("ten-bodies", "redundant", "thirty-bodies")
    return [_group(name), pytest.mark.slow] if slow else [_group(name)]


@pytest.mark.parametrize("name", [pytest.param(n, marks=_marks(n)) for n in SIZES])
def test_accelerations_from_rest_obey_the_law(name):
    systems, (a, friction, status, flags) = _solved(name)
    assert np.all(status == jfric.Status.OK)
    violation = _judge(*systems, a, friction)
    assert violation.max() < 1e-10
    if name == "redundant":
        # More sticking contacts than degrees of freedom in some of the systems.
        redundant = (flags & int(jfric.Flag.REDUNDANT)) != 0
        assert 0.02 < redundant.mean() < 0.98


@pytest.mark.parametrize("name", [pytest.param(n, marks=_marks(n)) for n in SIZES])
def test_accelerations_do_not_depend_on_the_order_of_contacts(name):
    (M, W, limit, force), (a, friction, _, _) = _solved(name)
    contacts, single = SIZES[name][2:]
    order = RNG(3).permutation(contacts)
    if single:  # contacts follow the degrees of freedom
        M, force = M[:, order][:, :, order], force[:, order]
    else:
        W = W[:, order]
    other, other_friction, status, _ = _start(M, W, limit[:, order], force, single=single)
    assert np.all(np.asarray(status) == jfric.Status.OK)
    other = np.asarray(other)[:, np.argsort(order)] if single else np.asarray(other)
    np.testing.assert_allclose(other, a, rtol=0, atol=1e-10 * np.abs(a).max())
    if single:
        back = np.asarray(other_friction)[:, np.argsort(order)]
        np.testing.assert_allclose(back, friction, rtol=0, atol=1e-10 * limit.max())


# Accelerations of a body that rests on unilateral contacts.


@jax.jit
@jax.vmap
def _rest_on_contacts(M, normals, tangents, mu, force):
    names = [f"x{i}" for i in range(M.shape[0])]

    def along(row):
        return dict(zip(names, row, strict=True))

    problem = jfric.Problem(
        names,
        {
            "contact": {
                f"c{i}": jfric.Contact(along(normals[i]), along(tangents[i]), jfric.Coulomb(mu[i]))
                for i in range(mu.shape[0])
            },
            "load": {x: jfric.Load(x, force[i]) for i, x in enumerate(names)},
        },
        matrices=jfric.Matrices(M=M),
        time=1e-3,
    )
    solution = jfric.simulate(problem, jfric.EventDriven(max_events=0), ts=jnp.zeros(1))
    return solution.a[0], solution.lambda_t[0], solution.lambda_n[0], solution.status


@pytest.mark.slow
@_group("unilateral")
@pytest.mark.parametrize("largest_mu", [pytest.param(0.3, marks=pytest.mark.slow), 1.0])
def test_accelerations_from_rest_on_unilateral_contacts(largest_mu):
    """Stick, slip or take off: three contacts, directions at random."""
    rng, contacts, n = RNG(4), 3, 9
    A = rng.normal(size=(BATCH, n, n))
    M = A @ A.transpose(0, 2, 1) + n * np.eye(n)
    normals, tangents = rng.normal(size=(2, BATCH, contacts, n))
    mu = largest_mu * rng.random((BATCH, contacts))
    force = 3.0 * rng.normal(size=(BATCH, n))
    result = _rest_on_contacts(M, normals, tangents, mu, force)
    a, tangential, normal, status = map(np.asarray, result)
    gap = np.einsum("bci,bi->bc", normals, a)
    gamma = np.einsum("bci,bi->bc", tangents, a)
    reaction = np.einsum("bci,bc->bi", normals, normal)
    reaction += np.einsum("bci,bc->bi", tangents, tangential)
    motion = np.einsum("bij,bj->bi", M, a) - force - reaction
    signorini = np.minimum(normal, gap)
    violation = np.concatenate([motion, signorini, _coulomb(gamma, tangential, mu * normal)], 1)
    solved = status == jfric.Status.OK
    assert np.abs(violation[solved]).max() < 1e-10
    # Each of these problems has one solution (found by trying all modes).
    assert solved.all()


# One contact whose normal and tangential motion are coupled.


@functools.cache
def _rod() -> jfric.Problem:
    """M^-1 = [[1, 1/2], [1/2, 1]] in (x, z): pressing the contact accelerates it along x."""
    return jfric.Problem(
        ("x", "z"),
        {
            "contact": jfric.Contact("z", "x", jfric.Coulomb(0.5)),
            "load": {"x": jfric.Load("x", 0.0), "z": jfric.Load("z", -1.0)},
        },
        initial={"x": jfric.InitialState(v=1.0)},
        matrices=jfric.Matrices(M=np.linalg.inv([[1.0, 0.5], [0.5, 1.0]])),
        time=1e-2,
    )


@pytest.mark.parametrize(
    ("mu", "load", "status"),
    [
        (0.5, -1.0, jfric.Status.OK),
        (1.9, -1.0, jfric.Status.OK),
        # Friction turns the contact's inertia negative: pressing cannot be balanced ...
        (2.1, -1.0, jfric.Status.INCONSISTENT),
        (5.0, -1.0, jfric.Status.INCONSISTENT),
        # ... and pulling can be in two ways: take-off, or contact with any such force.
        (5.0, 1.0, jfric.Status.INCONSISTENT),
        (0.5, 1.0, jfric.Status.OK),
    ],
)
def test_painleve(mu, load, status):
    problem = jfric.set_parameters(_rod(), {"contact.mu": mu, "load.z.F": load})
    solution = jfric.simulate(problem, ts=np.zeros(1))
    assert solution.status == status
    if status == jfric.Status.INCONSISTENT:
        kind = jfric.Flag.NO_MODE if load < 0.0 else jfric.Flag.SEVERAL_MOTIONS
        assert jfric.Flag(int(solution.flags)) == kind
    if status == jfric.Status.OK:
        # In slip z" = load + (1 - mu/2) lambda_N for the load in the coordinates of M^-1.
        push = np.linalg.inv([[1.0, 0.5], [0.5, 1.0]])
        pulled = (np.linalg.inv(push) @ np.array([0.0, load]))[1]
        expected = max(0.0, -pulled / (1.0 - 0.5 * mu))
        assert float(solution.lambda_n[0, 0]) == pytest.approx(expected, rel=1e-12)


def test_sliding_the_other_way_is_no_paradox():
    values = {"contact.mu": 5.0, "initial.x.v": -1.0}
    solution = jfric.simulate(jfric.set_parameters(_rod(), values), ts=np.zeros(1))
    assert solution.status == jfric.Status.OK
    # lambda_T = + mu lambda_N lifts the contact: the force is smaller than at rest.
    assert float(solution.lambda_n[0, 0]) == pytest.approx(1.0 / (1.0 + 2.5), rel=1e-12)


@pytest.mark.slow
def test_two_supports_share_the_load():
    problem = jfric.Problem(
        ("x", "z"),
        {
            "mass": {"x": jfric.Mass("x", 2.0), "z": jfric.Mass("z", 2.0)},
            "contact": {
                "left": jfric.Contact("z", "x", jfric.Coulomb(0.3)),
                "right": jfric.Contact("z", "x", jfric.Coulomb(0.3)),
            },
            "load": {
                "weight": jfric.Load("z", -20.0),
                "push": jfric.Load("x", jfric.PiecewiseLinear([0.0, 1.0], [0.0, 10.0])),
            },
        },
        time=1.0,
    )
    solution = jfric.simulate(problem, ts=np.array([0.0, 0.3, 0.9]))
    assert solution.status == jfric.Status.OK
    assert int(solution.flags) & int(jfric.Flag.REDUNDANT)
    np.testing.assert_allclose(solution.lambda_n, 10.0, rtol=1e-13)
    # Stick with the load shared until 6 N, then slip at the limit.
    expected = np.array([[0.0, 0.0], [-1.5, -1.5], [-3.0, -3.0]])
    np.testing.assert_allclose(solution.lambda_t, expected, rtol=0, atol=1e-13)
    assert float(solution.q[1, 0]) == 0.0
    slip = [e["time"] for e in solution.event_table()]
    np.testing.assert_allclose(slip, 0.6, rtol=1e-12)


# Impacts.


@functools.partial(jax.jit, static_argnames="independent")
@functools.partial(jax.vmap, in_axes=(0, 0, 0, 0, 0, None))
def _impact(D, velocity, touching, e, mu, independent):
    small = jnp.full(velocity.shape, 1e-15)
    return solve_impact(D, velocity, touching, e, mu, mu, small, independent=independent)


def _random_impacts(seed: int, contacts: int, *, mu: float, e: float, equal: bool):
    """More degrees of freedom than directions, so that these are independent."""
    rng = RNG(seed)
    n = 2 * contacts + 3
    A = rng.normal(size=(BATCH, n, n))
    M_inverse = np.linalg.inv(A @ A.transpose(0, 2, 1) + n * np.eye(n))
    W = rng.normal(size=(BATCH, 2 * contacts, n))
    D = W @ M_inverse @ W.transpose(0, 2, 1)
    velocity = rng.normal(size=(BATCH, 2 * contacts))
    touching = rng.random((BATCH, contacts)) < 0.8
    touching[:, 0] = True
    # Touching contacts approach or rest; others are somewhere.
    normal = velocity[:, contacts:]
    normal[touching] = -np.abs(normal[touching])
    normal[rng.random((BATCH, contacts)) < 0.1] = 0.0
    width = 1 if equal else contacts
    restitution = np.tile(e * rng.random((BATCH, width)), (1, contacts // width))
    return D, velocity, touching, restitution, mu * rng.random((BATCH, contacts))


def _impact_violation(D, velocity, touching, e, mu, result, speed=None) -> np.ndarray:
    """Largest violation of Newton's and Coulomb's laws in each impact, relative to ``speed``
    (default: the largest velocity)."""
    contacts = touching.shape[1]
    impulse, after = np.asarray(result.impulse), np.asarray(result.velocity)
    moved = velocity + np.einsum("bij,bj->bi", D, impulse)
    speed = np.abs(velocity).max(1, keepdims=True) if speed is None else speed
    scale = speed / np.diagonal(D, axis1=1, axis2=2).mean(1, keepdims=True)
    change = np.abs(moved - after).max(1) / speed[:, 0]
    tangential, normal = impulse[:, :contacts] / scale, impulse[:, contacts:] / scale
    rebound = (after[:, contacts:] + e * velocity[:, contacts:]) / speed
    newton = np.abs(np.minimum(normal, rebound))
    absent = np.maximum(np.abs(normal), np.abs(tangential))
    gamma = after[:, :contacts] / speed
    coulomb = _coulomb(gamma, tangential, mu * normal)
    law = np.where(touching, np.maximum(newton, coulomb), absent)
    return np.maximum(change, law.max(1))


def _energy_gain(velocity, result) -> np.ndarray:
    """Work of the impulses over the kinetic energy that they could at most exchange."""
    impulse, after = np.asarray(result.impulse), np.asarray(result.velocity)
    work = 0.5 * np.sum(impulse * (velocity + after), axis=1)
    return work / np.maximum(np.sum(np.abs(impulse * velocity), axis=1), 1e-300)


@pytest.mark.parametrize("contacts", [pytest.param(n, marks=_group(f"i{n}")) for n in (1, 2, 4)])
def test_random_impacts_obey_the_laws(contacts):
    """Any friction and restitution; an impact without a unique outcome must say so."""
    for mu in (0.5, 3.0):
        systems = _random_impacts(contacts, contacts, mu=mu, e=1.0, equal=False)
        result = _impact(*systems, False)
        solved = np.asarray(result.solved)
        violation = _impact_violation(*systems, result)
        assert violation[solved].max() < 1e-10
        # With mu = 0.5 each of these problems has one solution (found by trying all modes); with
        # mu = 3 some have several.
        assert solved.mean() >= (1.0 if mu < 1.0 else 0.9)


@pytest.mark.parametrize("contacts", [pytest.param(n, marks=_group(f"i{n}")) for n in (1, 2, 4)])
def test_slow_impacts_of_contacts_that_slide_fast(contacts):
    """Sliding velocities must not blur approaches many orders of magnitude slower."""
    slow = 1e-12
    D, velocity, *rest = _random_impacts(20 + contacts, contacts, mu=0.5, e=1.0, equal=False)
    velocity[:, contacts:] *= slow
    result = _impact(D, velocity, *rest, False)
    assert np.asarray(result.solved).all()
    speed = np.abs(velocity[:, contacts:]).max(1, keepdims=True)
    hits = speed[:, 0] > 0.1 * slow
    # Velocities near 1 are rounded to 1e-16.
    violation = _impact_violation(D, velocity, *rest, result, np.maximum(speed, 0.1 * slow))
    assert hits.mean() > 0.5
    assert violation[hits].max() < 1e-2


@pytest.mark.parametrize("contacts", [pytest.param(n, marks=_group(f"i{n}")) for n in (1, 2, 4)])
@pytest.mark.parametrize("kind", ["frictionless", "plastic", "uncoupled"])
def test_impacts_do_not_gain_energy(contacts, kind):
    """With one coefficient of restitution for all contacts.

    Friction and restitution together may gain energy (Kane's paradox), but not where normal and
    tangential motion are uncoupled.
    """
    mu, e = {"frictionless": (0.0, 1.0), "plastic": (0.5, 0.0), "uncoupled": (0.5, 1.0)}[kind]
    D, *rest = _random_impacts(10 + contacts, contacts, mu=mu, e=e, equal=True)
    if kind == "uncoupled":
        D[:, :contacts, contacts:] = D[:, contacts:, :contacts] = 0.0
    result = _impact(D, *rest, False)
    solved = np.asarray(result.solved)
    assert solved.all()
    assert _energy_gain(rest[0], result).max() < 1e-12


@_group("i4")
def test_impacts_do_not_depend_on_the_order_of_contacts():
    D, velocity, touching, e, mu = _random_impacts(5, 4, mu=0.5, e=1.0, equal=False)
    order = RNG(1).permutation(4)
    rows = np.concatenate([order, 4 + order])
    first = _impact(D, velocity, touching, e, mu, False)
    second = _impact(
        D[:, rows][:, :, rows], velocity[:, rows], touching[:, order], e[:, order], mu[:, order],
        False,
    )  # fmt: skip
    both = np.asarray(first.solved & second.solved)
    np.testing.assert_array_equal(first.solved, second.solved)
    np.testing.assert_allclose(
        np.asarray(second.velocity)[both], np.asarray(first.velocity)[both][:, rows],
        rtol=0, atol=1e-10,
    )  # fmt: skip


@pytest.mark.parametrize("restarts", [0, 2])
def test_a_decision_that_comes_no_further_starts_again_and_then_flips_one(restarts):
    """Always the same two contacts violate their laws."""
    state, found = start_pivoting(), []
    for _ in range(4 * (TRIES + 2)):
        flips = select_flips(jnp.array([False, True, True]), state, restarts=restarts)
        found.append((bool(flips.restart), flips.chosen.tolist()))
        state = flips.pivoting
    once, again = [(False, [False, True, True])] * (TRIES + 1), [(True, [False, True, False])]
    last = [(False, [False, True, False])] * (len(found) - (restarts + 1) * len(once) - restarts)
    assert found == (once + again) * restarts + once + last
    assert (int(state.flips), int(state.restarts)) == (len(found), restarts)
