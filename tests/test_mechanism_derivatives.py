"""Derivatives of a mechanism of bodies and joints, both ways, of a batch."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.results.columns import reactions_at_outputs

NAMES = ("parameters.l", "parameters.m", "friction.mu", "contact.e")
AT = np.array([0.8, 1.5, 0.1, 0.5])


def pendulum() -> jfric.Problem:
    """A rod on a pin with friction: it falls from level against a wall, flies back, and sticks."""
    rod = jfric.Body(
        "$m",
        "$m*$l**2/12",
        at=("$l/2", 0.0),
        angle=0.0,
        points={"pin": ("-$l/2", 0.0), "tip": ("$l/2", 0.0)},
    )
    return jfric.Problem(
        [],
        {
            "body": {"rod": rod},
            "ground": jfric.Ground({"top": (-0.3, 0.0), "low": (-0.3, -1.0)}),
            "gravity": jfric.Gravity(9.81),
            "pin": jfric.Pin(("rod.pin", "ground")),
            "friction": jfric.Friction("rod_phi", jfric.Coulomb(0.1), N=20.0),
            "contact": jfric.Contact(point="rod.tip", line=("ground.top", "ground.low"), e=0.5),
        },
        parameters={"m": 1.5, "l": 0.8},
        time=1.2,
    )


@pytest.mark.slow
def test_derivatives_of_impact_time_rest_and_reaction():
    """With respect to a length, a mass, mu and e, against differences of the fourth order."""
    problem = pendulum()

    def values(x, solver):
        """Time of the impact, the angle where it sticks, the pin's reaction on the way there, and
        the time of the end."""
        changed = jfric.set_parameters(problem, dict(zip(NAMES, x, strict=True)))
        solution = jfric.simulate(changed, solver, ts=jnp.array([0.9, 1.2]))
        reaction = reactions_at_outputs(changed, solution)[0, 1]
        found = [solution.events.time[0], solution.q[1, 2], reaction, solution.events.time[2]]
        return jnp.stack(found)

    solver = jfric.EventDriven(rtol=1e-11, max_steps=80)

    def with_values(x):
        found = values(x, solver)
        return found, found

    h = 1e-3 * np.diag(AT)
    points = np.concatenate([[AT], AT + h, AT - h, AT + 2 * h, AT - 2 * h, [1.02 * AT]])
    forward = jax.jit(jax.vmap(jax.jacfwd(with_values, has_aux=True)))
    slopes, found = (np.asarray(x) for x in forward(jnp.asarray(points)))
    near, far = found[1:5] - found[5:9], found[9:13] - found[13:17]
    expected = ((8 * near - far) / (12 * np.diagonal(h))[:, None]).T
    np.testing.assert_allclose(slopes[0], expected, rtol=1e-7, atol=1e-7)
    # Friction and restitution play no part before the impact; the mass does beside friction.
    assert slopes[0, 0, 3] == 0.0
    assert np.all(np.abs(np.delete(slopes[0], 3, axis=1)) > 1e-3)

    weights = jnp.array([1.0, 0.7, 0.3, -0.5])
    backward = dataclasses.replace(solver, adjoint="reverse")
    total = jax.jit(jax.vmap(jax.grad(lambda x: weights @ values(x, backward))))
    gradients = total(jnp.asarray(points[[0, 17]]))
    expected = np.einsum("i,bij->bj", np.asarray(weights), slopes[[0, 17]])
    np.testing.assert_allclose(gradients, expected, rtol=1e-8, atol=1e-9)
