"""The loop that all solvers share."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jfric.numerics.loops import run_passes


def test_a_batch_knows_its_state_at_once():
    """The state is tied to what it depends on: no round in which it does not seem batched."""
    rounds = []

    @jax.custom_batching.custom_vmap
    def halfway(x, target):
        return 0.5 * (x + target)

    @halfway.def_vmap
    def _rule(axis_size, batched, x, target):
        rounds.append(batched)
        return 0.5 * (x + target), True

    def run(target):
        def body(state, buffers, on):
            x, _, count = state
            return (halfway(x, target), x, count + 1), buffers

        start = (jnp.zeros(()), jnp.zeros(()), jnp.asarray(0))
        state, _ = run_passes(
            body,
            lambda state: state[2] < 60,
            start,
            (),
            max_steps=60,
            adjoint="none",
            given=target,
        )
        return state

    targets = jnp.arange(4.0)
    last, before, count = jax.vmap(run)(targets)
    np.testing.assert_allclose(last, targets)
    np.testing.assert_allclose(before, targets)
    assert np.all(count == 60)
    assert rounds == [[True, True]]
