"""A box on two corners, whose directions depend on position: thrown, tipped over, and at rest."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric

WIDE, HIGH, G = 0.2, 0.12, 9.81


def _box() -> jfric.Problem:
    corners = {
        name: jfric.Contact(
            gap=f"y {sign} {WIDE}*sin(phi) - {HIGH}*cos(phi)",
            sliding=f"x {sign} {WIDE}*cos(phi) + {HIGH}*sin(phi)",
            law=jfric.Coulomb(0.3),
        )
        for name, sign in (("left", "-"), ("right", "+"))
    }
    masses = {"x": jfric.Mass("x", 2.0), "y": jfric.Mass("y", 2.0), "phi": jfric.Mass("phi", 0.05)}
    return jfric.Problem(
        {"x": "translation", "y": "translation", "phi": "rotation"},
        {"mass": masses, "contact": corners, "load": jfric.Load("y", -2.0 * G)},
        initial={"y": jfric.InitialState(HIGH)},
        time=2.0,
    )


@pytest.mark.slow
def test_thrown_boxes_come_to_rest():
    """Rounding errors of bodies at rest decide nothing: no run creeps or ends without a motion."""
    rng, count = np.random.default_rng(1), 128
    bounds = ((-2, 2), (-1, 1), (-4, 4), (-0.6, 0.6), (0.25, 0.5), (0.05, 0.9), (0, 0.6))
    start = np.stack([rng.uniform(*b, count) for b in bounds])
    # One that is at rest from the start, one that slides to rest, one that falls flat.
    start[:, 0] = 0, 0, 0, 0, HIGH, 0.3, 0
    start[:, 1] = 1, 0, 0, 0, HIGH, 0.3, 0
    start[:, 2] = 0, 0, 0, 0, 0.2, 0.3, 0

    def run(x):
        names = ("x.v", "y.v", "phi.v", "phi.q", "y.q")
        values = {f"initial.{name}": value for name, value in zip(names, x, strict=False)}
        for corner in ("left", "right"):
            values |= {f"contact.{corner}.mu": x[5], f"contact.{corner}.e": x[6]}
        solver = jfric.EventDriven(adjoint="none", max_steps=2000)
        found = jfric.simulate(jfric.set_parameters(_box(), values), solver)
        return found.status, found.final.q, found.final.v

    status, q, v = (np.asarray(x) for x in jax.jit(jax.vmap(run))(jnp.asarray(start.T)))
    assert (status == int(jfric.Status.OK)).all()
    side = np.sin(q[:, 2]) * WIDE
    gaps = q[:, 1] + np.stack([-side, side]) - HIGH * np.cos(q[:, 2])
    assert gaps.min() > -1e-12
    energy = v[:, 0] ** 2 + v[:, 1] ** 2 + 0.025 * v[:, 2] ** 2 + 2.0 * G * q[:, 1]
    first = start[0] ** 2 + start[1] ** 2 + 0.025 * start[2] ** 2 + 2.0 * G * start[4]
    assert (energy <= first * (1.0 + 1e-12)).all()
    np.testing.assert_allclose(q[:3, 1], HIGH, atol=1e-15)
    np.testing.assert_allclose(q[1, 0], 1.0 / (2 * 0.3 * G), rtol=1e-12)
    assert np.abs(v[:3]).max() < 1e-15
    assert np.isclose(np.abs(q[:, 1]), HIGH, atol=1e-9).mean() > 0.5
