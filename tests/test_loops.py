"""The loop that all solvers share."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jfric.numerics.loops import Shared, run_passes


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


def test_what_rounds_share_is_made_anew_where_it_no_longer_holds():
    """The same rounds as without, in batches and with derivatives in both modes."""
    made = []

    def run(x, adjoint, several):
        def body(state, buffers, on, common=None):
            x, count = state
            factor = jnp.sin(1.0 + count // 3) if common is None else common[1]
            return (x * factor, count + 1), buffers

        def make(state):
            group = state[1] // 3
            jax.debug.callback(lambda group: made.append(int(group)), group)
            return group, jnp.sin(1.0 + group)

        shared = Shared(make, lambda made, state: made[0] == state[1] // 3) if several else None
        (x, _), _ = run_passes(
            body,
            lambda state: state[1] < 7 + (x > 1.0),
            (x, jnp.asarray(0)),
            (),
            max_steps=8,
            adjoint=adjoint,
            shared=shared,
        )
        return x

    x = jnp.asarray([0.5, 1.5, 2.5])
    for adjoint, derivative in (("forward", jax.jacfwd), ("reverse", jax.jacrev)):
        alone, together = (
            [f(x) for f in (jax.vmap(g), derivative(jax.vmap(g)))]
            for g in (lambda x, s=s, a=adjoint: run(x, a, s) for s in (False, True))
        )
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-15)
    jax.effects_barrier()
    made.clear()
    run(x[0], "none", True)
    jax.effects_barrier()
    assert made == [0, 1, 2]
