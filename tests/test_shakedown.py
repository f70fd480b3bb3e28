"""Slip that dies out, period after period, until the force of a contact only touches its limit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import jfric

MU, N, F, HELD, DAMPING = 0.4, 0.6, 0.3, 0.6, 0.05


def damper() -> jfric.Problem:
    """A mass with a friction damper behind a spring."""
    return jfric.Problem(
        ["x", "y"],
        {
            "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 0.1)},
            "spring": {"a": jfric.Spring("x", 1.0), "b": jfric.Spring(("x", "y"), HELD)},
            "damper": {"a": jfric.Damper("x", 0.05), "b": jfric.Damper(("x", "y"), DAMPING)},
            "friction": jfric.Friction("y", jfric.Coulomb(MU), N=N),
            "load": jfric.Load("x", jfric.Harmonic(F, 1.0)),
        },
    )


@pytest.mark.slow
def test_slip_that_dies_out_ends_no_run():
    """At the frequency at which the force in the linear response just reaches the limit the contact
    creeps to the only place at which it may stick: by slips ever shorter, down to rounding. The
    force is at its limit then, and both modes are within rounding of each other."""

    def response(w):
        return F / complex(1.0 + HELD - w**2, 2 * DAMPING * w)

    def too_much(w):
        return abs(complex(HELD, DAMPING * w) * response(w)) - MU * N

    onset = brentq(too_much, 0.7, 1.2, xtol=1e-14)
    random = np.random.default_rng(0)
    count, periods = 256, 200
    near = random.choice([0.0, 1e-13, -1e-13, 1e-11, -1e-11, 1e-9], count)
    omegas = onset * (1.0 + near)
    # The load is F sin(w t).
    x, dx = np.imag(response(onset)), np.real(onset * response(onset))
    starts = np.array([x, 0.0, dx]) + 10.0 ** random.uniform(-10, -2, (count, 1)) * random.normal(
        size=(count, 3)
    )
    problem = damper()
    solver = jfric.EventDriven(adjoint="none", max_events=0, max_steps=10**6)

    @jax.jit
    def after(omegas, starts):
        def one(omega, start):
            values = {"load.F.omega": omega, "initial.y.q": start[1], "initial.y.v": 0.0}
            values |= {"initial.x.q": start[0], "initial.x.v": start[2]}
            there = jfric.set_parameters(problem, values)
            end = 2 * jnp.pi / omega * periods
            found = jfric.simulate(there, solver, end=end)
            return found.status, found.final.q, found.final.v

        return jax.vmap(one)(omegas, starts)

    status, q, v = after(jnp.asarray(omegas), jnp.asarray(starts))
    assert (np.asarray(status) == 0).all()
    # What is left falls with the square of the number of periods.
    np.testing.assert_allclose(q, np.tile([x, 0.0], (count, 1)), atol=5e-4)
    np.testing.assert_allclose(v, np.tile([dx, 0.0], (count, 1)), atol=5e-4)
