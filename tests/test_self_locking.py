"""Friction that leaves no solution with finite forces, in time stepping.

Sliding on a tangent that leans into the normal presses harder, and at the limit infinitely: the
pivot ``D_nn - mu D_nt`` vanishes. Impulses still have a solution: they stop the sliding at once
(D. E. Stewart, SIAM Review 42 (2000), section 5: impact without collision). No contact may be
left without a force because the pivot is zero.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric

jax.config.update("jax_enable_x64", True)

SOLVERS = [
    jfric.MoreauJean(1e-3),
    jfric.MoreauJean(1e-3, method="lemke"),
    jfric.MoreauJean(1e-3, method="gauss-seidel"),
    jfric.StabilisedMidpoint(1e-3),
]
NAMES = [f"{type(solver).__name__} {solver.method}" for solver in SOLVERS]


def _wedge(mu: float, neighbour: bool) -> jfric.Problem:
    """A point on a tangent at 45 degrees to its normal, moving into it."""
    dofs = ["x", "y", *(["z"] if neighbour else [])]
    contact = {"wedge": jfric.Contact("y", {"x": 1.0, "y": 1.0}, jfric.Coulomb(mu))}
    if neighbour:
        contact["other"] = jfric.Contact("z")
    return jfric.Problem(
        dofs,
        {
            "mass": {d: jfric.Mass(d, 1.0) for d in dofs},
            "contact": contact,
            "load": jfric.Load("y", -10.0),
        },
        initial={"x": jfric.InitialState(0.0, 1.0)},
        time=0.1,
    )


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
@pytest.mark.parametrize("neighbour", [False, True], ids=["alone", "with a neighbour"])
@pytest.mark.parametrize("mu", [1.0 - 1e-7, 1.0, 1.0 + 1e-7])
def test_self_locking_stops_within_a_step(solver, neighbour, mu):
    solution = jfric.simulate(_wedge(mu, neighbour), solver, ts=jnp.linspace(0.02, 0.1, 5))
    assert int(solution.status) == 0
    # It went on for half of one step at most, and rests with lambda_T = 0, lambda_N = 10.
    assert 0.0 <= float(solution.final.q[0]) <= 1e-3
    np.testing.assert_allclose(solution.v, 0.0, atol=1e-12)
    np.testing.assert_allclose(solution.lambda_n[:, 0], 10.0, rtol=1e-9)
    np.testing.assert_allclose(solution.lambda_t[:, 0], 0.0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
@pytest.mark.parametrize("mu", [1.0 - 1e-7, 1.0, 1.0 + 1e-7, 1.5])
def test_a_rod_at_the_edge_of_painleve_does_not_fall_through(solver, mu):
    contact = jfric.Contact({"y": 1.0, "phi": -1.0}, {"x": 1.0, "phi": 2.0}, jfric.Coulomb(mu))
    dofs = {"x": "translation", "y": "translation", "phi": "rotation"}
    problem = jfric.Problem(
        dofs,
        {
            "mass": {d: jfric.Mass(d, 1.0) for d in dofs},
            "contact": contact,
            "load": jfric.Load("y", -10.0),
        },
        initial={"x": jfric.InitialState(0.0, -1.0)},
        time=0.05,
    )
    ts = jnp.linspace(0.0, 0.05, 26)
    solution = jfric.simulate(problem, solver, ts=ts)
    if int(solution.status) == 0:
        gaps = np.asarray(solution.q) @ np.asarray([0.0, 1.0, -1.0])
        assert gaps.min() > -1e-12
    else:
        assert int(solution.status) == int(jfric.Status.INCONSISTENT)
