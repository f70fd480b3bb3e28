"""Reactions of two rows in closed form, beside the equations that they solve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jfric.contact.impact import solve_impact
from jfric.contact.reactions import Coupling, no_coupling, reaction_operator


def _solved(D, active, ratio, right):
    """Reactions of minimum norm with ``(D S lambda)_i = right_i`` for active rows, by pinv."""
    S = np.eye(2)
    if ratio is not None:
        S[0, 1] = ratio
    chosen = np.flatnonzero(active)
    x = np.zeros(2)
    # A sliding contact's friction follows its normal force, a sticking one's does not.
    x[chosen] = np.linalg.pinv((D @ S)[np.ix_(chosen, chosen)], rcond=1e-9) @ right[chosen]
    return S @ x


@pytest.mark.parametrize("active", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("kind", ["contact", "frictions", "parallel"])
def test_reactions_are_those_of_the_equations(kind, active):
    rng = np.random.default_rng(0)
    for _ in range(30):
        W = rng.normal(size=(2, 3))
        if kind == "parallel":
            W[0] = rng.uniform(0.3, 3.0) * W[1]
        D = W @ np.diag(rng.uniform(0.2, 5.0, 3)) @ W.T
        slides = kind == "contact" and not active[0]
        ratio = rng.uniform(-0.4, 0.4) if slides else 0.0
        S = no_coupling(jnp.float64) if kind == "frictions" else Coupling(jnp.asarray([ratio]))
        found = reaction_operator(
            jnp.asarray(D), jnp.asarray(active), S, independent=kind == "frictions"
        )
        right = D @ rng.normal(size=2)
        both = all(active)
        assert bool(found.redundant) == (kind == "parallel" and both)
        assert bool(found.unique)
        expected = _solved(D, active, ratio if slides else None, right)
        np.testing.assert_allclose(found.force @ right, expected, rtol=1e-8, atol=1e-8)
        # The same motion by either.
        moved = D @ np.asarray(found.motion @ right)
        np.testing.assert_allclose(moved, D @ expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("small", [1e-2, 3e-4, 4e-5])
def test_rounding_of_a_row_that_joints_nearly_hold_is_no_direction(small):
    """Three frictions on one degree of freedom: with rounding errors of the mobility before joints
    took most of it away, ``D`` has more than one direction."""
    rng = np.random.default_rng(29)
    g = np.array([1.0, 1.0 - small, small])
    for _ in range(40):
        noise = rng.uniform(-2e-16, 2e-16, (3, 3))
        D, right = np.outer(g, g) + noise + noise.T, g * rng.uniform(0.1, 1.0)
        found = reaction_operator(
            jnp.asarray(D),
            jnp.ones((3,), bool),
            no_coupling(jnp.float64),
            independent=False,
            size=jnp.ones((3,)),
        )
        assert bool(found.redundant)
        assert bool(found.unique)
        expected = g * (g @ right) / (g @ g) ** 2
        np.testing.assert_allclose(found.force @ right, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("small", [3e-4, 4e-5])
def test_contacts_that_joints_nearly_hold_take_no_part_in_an_impact(small):
    """Four contacts without friction on one degree of freedom bounce as one, whatever rounding
    errors the mobility before joints has left."""
    rng = np.random.default_rng(29)
    g, nothing, all_of_them = np.array([1.0, 1.0 - small, small, 0.5]), jnp.zeros(4), jnp.ones(4)
    v, near = jnp.concatenate([nothing, -0.7 * jnp.asarray(g)]), jnp.full(8, 1e-12)

    @jax.jit
    def hit(D):
        return solve_impact(
            D, v, all_of_them > 0, 0.5 * all_of_them, jnp.zeros(4), jnp.zeros(4), near,
            independent=False, size=jnp.ones(8),
        )  # fmt: skip

    for _ in range(20):
        noise = rng.uniform(-2e-16, 2e-16, (4, 4))
        D = np.eye(8)
        D[4:, 4:] = np.outer(g, g) + noise + noise.T
        found = hit(jnp.asarray(D))
        assert bool(found.solved)
        np.testing.assert_allclose(found.velocity[4:], 0.35 * g, rtol=1e-5)
