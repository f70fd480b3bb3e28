"""Numerical trouble is a status of one trajectory; and one check of the compiler itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric import Problem


def block(load: float | jfric.Harmonic, end: float = 1e6) -> Problem:
    """A block of 2 kg on the ground, limit 10 N, on a spring."""
    return Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 2.0),
            "spring": jfric.Spring("x", 50.0),
            "friction": jfric.Friction("x", limit=10.0),
            "load": jfric.Load("x", load),
        },
        initial={"x": jfric.InitialState(0.1, 0.0)},
        time=end,
    )


def test_a_full_event_log_is_a_status_and_the_motion_is_complete() -> None:
    problem = block(jfric.Harmonic(40.0, 3.0), end=20.0)
    full = jfric.simulate(problem, jfric.EventDriven(max_events=4))
    assert full.status == jfric.Status.MAX_EVENTS
    assert int(full.events.count) > 4
    complete = jfric.simulate(problem)
    assert complete.status == jfric.Status.OK
    assert jnp.all(full.final.q == complete.final.q)


def test_one_bad_lane_leaves_the_batch_alone() -> None:
    problem = block(16.0, end=5.0)

    def run(k):
        solution = jfric.simulate(jfric.set_parameters(problem, {"spring.k": k}))
        return solution.status, solution.final.q[0]

    status, q = jax.jit(jax.vmap(run))(jnp.array([50.0, jnp.nan, 80.0]))
    assert status.tolist() == [jfric.Status.OK, jfric.Status.NON_FINITE, jfric.Status.OK]
    assert q[0] == pytest.approx(float(run(50.0)[1]), abs=1e-14)


def test_the_compiler_is_sane() -> None:
    """jax 0.10.2 returns wrong rows here on CPU, without an error (jax issue 39103)."""
    key = jax.random.key(0)
    A = jax.random.normal(key, (20_000, 6, 6))
    x = jax.random.normal(key, (20_000, 6))

    def size(a, b):
        return jnp.sum(jnp.abs(a @ b))

    fused = jax.jit(jax.vmap(size))(A, x)
    np.testing.assert_allclose(fused, np.abs(np.einsum("nij,nj->ni", A, x)).sum(1), rtol=1e-12)
