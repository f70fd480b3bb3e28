"""Large systems, whose reactions and guards are made order by order, not as rows over the state."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import jfric
from jfric.numerics.isolation import isolate
from jfric.numerics.lemke import MASKED, lemke
from jfric.numerics.linear_algebra import UNROLLED_INVERSE, eliminate
from jfric.solvers.event_driven.exact_flow import LARGE, ExactFlow
from jfric.solvers.event_driven.inputs import given
from jfric.solvers.event_driven.mode_equations import mode_equations
from jfric.solvers.event_driven.prepared import constants, prepare
from jfric.solvers.event_driven.state import initial_state


def feet(count: int, amplitude=5.0) -> jfric.Problem:
    """Masses in a row on a shaken ground, some on a belt, each with a contact below it."""
    axes = [f"{d}{i}" for i in range(count) for d in "xy"]
    rows = range(count)
    elements = {
        "mass": {a: jfric.Mass(a, 1.0 + 0.1 * k) for k, a in enumerate(axes)},
        "spring": {
            f"k{i}": jfric.Spring((f"x{i}", f"x{i + 1}"), 30.0 + i) for i in range(count - 1)
        }
        | {f"y{i}": jfric.Spring((f"y{i}", f"y{i + 1}"), 20.0) for i in range(count - 1)},
        "contact": {
            f"c{i}": jfric.Contact({f"y{i}": 1.0}, {f"x{i}": 1.0}, jfric.Coulomb(0.3), e=0.2)
            for i in rows
        },
        "friction": {"f": jfric.Friction("x0", law=jfric.Coulomb(0.2), N=2.0, belt=0.1)},
        "load": {f"g{i}": jfric.Load(f"y{i}", -9.81) for i in rows}
        | {"p": jfric.Load("x0", jfric.Harmonic(amplitude, 7.0))},
    }
    initial = {a: jfric.InitialState(q=0.0, v=0.05 * (k % 3)) for k, a in enumerate(axes)}
    return jfric.Problem(axes, elements, initial=initial, time=1.0)


@pytest.mark.slow
def test_coefficients_by_order_are_those_of_rows_over_the_state():
    problem = feet(6)
    prepared = prepare(problem)
    state = initial_state(problem, prepared)
    assert 2 * state.q.shape[0] + 3 > LARGE
    mode = jnp.asarray([1, 0, 1, 2, 3, 0, 1], jnp.int32)
    state = dataclasses.replace(state, mode=mode)
    held = jnp.zeros(mode.shape, bool)
    equations = mode_equations(prepared, mode, state.inner, held)
    g, h, force = given(prepared, equations, state.t), jnp.asarray(0.1), jnp.full((12,), 0.3)
    whole = ExactFlow(lowered=True).step(prepared, equations, g, state, h, force)
    begun = ExactFlow().step(prepared, equations, g, state, h, force)
    assert begun.later is not None
    step = begun.completed(jnp.asarray(True), 28)
    for name in ("leading", "zero", "relative_leading", "relative_zero", "unbalanced"):
        a, b = (np.asarray(getattr(x, name)) for x in (step, whole))
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-11, err_msg=name)
    for s in (0.0, 0.4, 1.0):
        for a, b in zip(step.at(prepared, s), whole.at(prepared, s), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
    guards = whole.guard_table @ whole.guard_rows.T
    np.testing.assert_allclose(step.guard_table, guards, rtol=1e-11, atol=1e-11)
    assert np.all(np.asarray(step.remainder) < 1e-11)
    # What is not needed may be zero, in the same shapes.
    idle = begun.completed(jnp.asarray(False), 28)
    assert idle.table.shape == step.table.shape
    assert not np.any(idle.table)


def test_short_steps_need_few_coefficients():
    problem = feet(6)
    c = constants(jnp.float64)

    @jax.jit
    def found():
        prepared = prepare(problem)
        state = initial_state(problem, prepared)
        mode = jnp.asarray([1, 0, 1, 2, 3, 0, 1], jnp.int32)
        state = dataclasses.replace(state, mode=mode)
        equations = mode_equations(prepared, mode, state.inner, jnp.zeros(mode.shape, bool))
        g, force = given(prepared, equations, state.t), jnp.zeros((12,))
        h = c.short * ExactFlow().natural_step(prepared, equations, state)
        begun = ExactFlow().step(prepared, equations, g, state, h, force)
        assert begun.later is not None
        return begun.later(c.short_order), begun.later(c.order)

    (*few, missed), (*every, missed_by_all) = found()
    for a, b in zip(few, every, strict=True):
        padded = np.pad(a, ((0, c.order - c.short_order), (0, 0)))
        np.testing.assert_allclose(padded, b, rtol=0, atol=1e-15 * np.abs(b).sum(axis=0).max())
    assert np.max(missed) < 2.0 * np.max(missed_by_all) < 1e-13


def test_a_damped_row_of_masses_moves_as_the_matrix_exponential_says():
    n, k, c = 13, 30.0, 0.7
    axes = [f"x{i}" for i in range(n)]
    pairs = list(itertools.pairwise(axes))
    elements = {
        "mass": {a: jfric.Mass(a, 1.0) for a in axes},
        "spring": {b: jfric.Spring((a, b), k) for a, b in pairs},
        "damper": {b: jfric.Damper((a, b), c) for a, b in pairs},
        "friction": {"f": jfric.Friction("x0", jfric.Coulomb(0.1), N=1e-9)},
    }
    start = {"x0": jfric.InitialState(q=0.1, v=1.0)}
    problem = jfric.Problem(axes, elements, initial=start, time=1.0)
    found = jfric.simulate(problem, ts=jnp.array([1.0]))
    assert int(found.status) == 0
    K = np.diff(np.eye(n), axis=0).T @ np.diff(np.eye(n), axis=0)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-k * K, -c * K]])
    x = np.zeros(2 * n)
    x[0], x[n] = 0.1, 1.0
    np.testing.assert_allclose(found.q[0], (scipy.linalg.expm(A) @ x)[:n], atol=1e-9)


def test_the_certificate_does_not_depend_on_coefficients_that_are_zero():
    table = np.random.default_rng(2).normal(size=(9, 5)) * 0.2 ** np.arange(9)[:, None]
    table[1] = -1.0
    order, remainder = jnp.zeros((5,), jnp.int32), jnp.zeros((5,))
    settings = {"certificate_order": 18, "rounding": 4e-15, "newton": 4}

    @jax.jit
    def both(table):
        padded = jnp.pad(table, ((0, 20), (0, 0)))
        whole = isolate(padded, order, remainder, **settings)
        return isolate(table, order, remainder, degree=28, **settings), whole

    for start, zeros in ((5.0, False), (0.6, True), (0.1, True)):
        short, whole = both(jnp.asarray(table).at[0].set(start))
        assert bool(short.root <= 1.0) == zeros
        short = short._replace(chosen=jnp.pad(short.chosen, (0, 20)))
        for a, b in zip(short, whole, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("m", [MASKED, 3 * MASKED])
def test_large_tables_are_pivoted_as_small_ones(m, monkeypatch):
    """Rows by their place give the same pivots as rows by masks, and a solution."""
    random = np.random.default_rng(m)
    half = random.normal(size=(m, m + 2))
    M, q = jnp.asarray(half @ half.T / m), jnp.asarray(random.normal(size=m))
    found = lemke(M, q)
    monkeypatch.setattr("jfric.numerics.lemke.MASKED", 1 if m <= MASKED else m)
    other = lemke(M, q)
    assert bool(found.solved)
    assert int(found.pivots) == int(other.pivots) > 1
    np.testing.assert_array_equal(found.basic, other.basic)
    np.testing.assert_allclose(found.z, other.z, rtol=1e-12)
    w = np.asarray(M @ found.z + q)
    assert w.min() > -1e-12
    assert np.asarray(found.z).min() >= 0
    np.testing.assert_allclose(w * found.z, 0.0, atol=1e-12)


def test_elimination_in_place_leaves_dependent_rows_out_and_has_derivatives():
    m = UNROLLED_INVERSE + 4
    half = np.random.default_rng(1).normal(size=(m, m - 1))
    half[3] = half[1] - 2.0 * half[2]
    a = half @ half.T
    a = a / np.sqrt(np.diag(a))[:, None] / np.sqrt(np.diag(a))
    active = np.arange(m) != 6
    a = jnp.asarray(np.where(active[:, None] & active, a, np.eye(m)))
    found = eliminate(a, 1e-9, active=jnp.asarray(active))
    (left,) = np.flatnonzero(found.dependent)
    assert left in (1, 2, 3)
    kept = [i for i in range(m) if i != left]
    block = np.asarray(a)[np.ix_(kept, kept)]
    inverse = np.asarray(found.inverse)
    np.testing.assert_allclose(inverse[np.ix_(kept, kept)], np.linalg.inv(block), rtol=1e-9)
    assert not np.any(inverse[left])
    reduced = np.asarray(found.reduced)[kept, left]
    np.testing.assert_allclose(block @ reduced, np.asarray(a)[kept, left], atol=1e-9)

    def size(x):
        scaled = a * (1.0 + x * jnp.eye(m))
        result = eliminate(scaled, 1e-3, active=jnp.asarray(active))
        combined = jnp.where(result.dependent, result.reduced, 0.0)[jnp.asarray(kept)]
        return jnp.sum(result.inverse[:5, :5]) + jnp.sum(combined**2)

    h = 1e-5
    slope = (size(h) - size(-h)) / (2 * h)
    np.testing.assert_allclose(jax.jacfwd(size)(0.0), slope, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(size)(0.0), slope, rtol=1e-6)


@pytest.mark.slow
def test_batches_and_derivatives_of_passes_that_share_their_equations():
    """Rows that change their modes at different times; both modes of differentiation."""

    exact, reverse = (jfric.EventDriven(adjoint=adjoint) for adjoint in ("auto", "reverse"))

    def last(size, solver=exact):
        found = jfric.simulate(feet(6, size), solver)
        return found.final.q, found.status, found.events.count

    sizes = jnp.asarray([4.0, 5.0, 6.0])
    q, status, count = jax.jit(jax.vmap(last))(sizes)
    alone = jax.jit(last)
    for k, size in enumerate(sizes):
        one = alone(size)
        np.testing.assert_allclose(q[k], one[0], rtol=0, atol=1e-12)
        assert (int(status[k]), int(count[k])) == (int(one[1]), int(one[2]))
    assert np.all(np.asarray(status) == 0)
    assert np.all(np.asarray(count) > 5)
    h = 1e-6
    slope = (alone(5.0 + h)[0] - alone(5.0 - h)[0]) / (2 * h)
    forward = jax.jit(jax.jacfwd(lambda x: last(x)[0]))(5.0)
    backward = jax.jit(jax.grad(lambda x: jnp.sum(last(x, reverse)[0])))(5.0)
    np.testing.assert_allclose(forward, slope, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(backward, jnp.sum(forward), rtol=1e-10)
