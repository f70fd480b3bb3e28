"""A body bounces on a carriage, whose friction sticks and slides between the impacts."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from references import carriage

import jfric

NORMAL = {"a": 0.8, "b": -2.4}
STILL = jfric.InitialState(q=0.0, v=0.0)
ELEMENTS = {
    "mass": {"a": jfric.Mass("a", 1.0), "b": jfric.Mass("b", 1.3)},
    "contact": jfric.Contact(NORMAL, e=0.7, gap=0.02),
    "friction": jfric.Friction("a", jfric.Coulomb(0.3), N=6.0),
    "load": {"b": jfric.Load("b", 0.45), "a": jfric.Load("a", 0.0)},
}
PROBLEM = jfric.Problem(("a", "b"), ELEMENTS, initial={"a": STILL, "b": STILL}, time=2.0)
PATHS = ("load.b.F", "load.a.F", "friction.mu", "contact.e", "contact.gap")


def _numbers(count: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    low, high = (0.2, -0.5, 0.1, 0.3, 0.002), (0.8, 0.5, 0.4, 0.9, 0.1)
    return rng.uniform(low, high, (count, len(PATHS)))


@pytest.mark.parametrize(
    ("kernel", "count"),
    [pytest.param(k, n, marks=pytest.mark.slow) for k, n in (("general", 64), ("lowered", 256))],
)
def test_bounces_end_although_friction_acts_in_between(kernel, count):
    """Impacts accumulate while the carriage sticks and slides between any two of them: flights that
    are lower than gaps can be told from zero end in contact, not in bounces without end."""
    solver = jfric.EventDriven(kernel=kernel, adjoint="none", max_steps=1000)
    numbers = _numbers(count)

    @jax.jit
    @jax.vmap
    def run(x):
        problem = jfric.set_parameters(PROBLEM, dict(zip(PATHS, x, strict=True)))
        found = jfric.simulate(problem, solver)
        return found.status, found.final.q, found.final.v

    status, q, v = (np.asarray(x) for x in run(numbers))
    assert not status.any(), np.unique(status, return_counts=True)
    bounced = 0
    for row, own_q, own_v in zip(numbers, q, v, strict=True):
        F_b, F_a, mu, e, gap = row
        masses, normal = (1.0, 1.3), tuple(NORMAL.values())
        expected = carriage.simulate(masses, normal, gap, e, 6.0 * mu, (F_a, F_b), 2.0)
        np.testing.assert_allclose(own_q, expected[0], rtol=0, atol=2e-9, err_msg=str(row))
        np.testing.assert_allclose(own_v, expected[1], rtol=0, atol=1e-8, err_msg=str(row))
        bounced += expected[2] > 60
    assert bounced > count // 10
