"""Many steps in one scan: a block, and what its steps leave behind."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jfric.solvers.time_stepping import one_contact, several_contacts
from jfric.solvers.time_stepping.inputs import StepInputs, step_inputs
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.rows import Row
from jfric.solvers.time_stepping.state import Motion
from jfric.solvers.time_stepping.tolerance import gains_energy
from jfric.status import Status


def run_block(prepared: Prepared, motion: Motion, times, force) -> Row:
    """Steps that begin at ``times`` (L,), under an extra constant ``force`` (n,); rows (L, ...)."""
    mechanics, scheme = prepared.mechanics, prepared.scheme
    inputs = jax.vmap(lambda t: step_inputs(mechanics, scheme, t, prepared.h, force))(times)
    if prepared.in_scalars:
        return _in_scalars(prepared, motion, inputs)
    _, rows = jax.lax.scan(lambda m, x: several_contacts.step(prepared, m, x), motion, inputs)
    return rows


def _in_scalars(prepared: Prepared, motion: Motion, inputs: StepInputs) -> Row:
    start = one_contact.pack(prepared, motion.q, motion.v, motion.mode)
    ends = one_contact.unpack(prepared, one_contact.run_steps(prepared, start, inputs))
    count = inputs.t.shape[0]
    happened = jax.lax.stop_gradient(ends.happened)
    status = jnp.where(happened >= one_contact.FAILED, int(Status.INCONSISTENT), int(Status.OK))
    impact = jnp.zeros((count, 0), bool)
    if prepared.nu:
        hit = jnp.mod(happened, one_contact.FAILED) >= one_contact.HIT
        impact = hit[:, None]

        def gains():
            earlier = jnp.concatenate([motion.v[None], ends.v[:-1]])
            before = earlier @ prepared.W.T - inputs.before
            after = ends.v @ prepared.W.T - inputs.after
            return hit & jax.vmap(gains_energy)(ends.impulse, before, after)

        # Looked at only where something hits.
        none = jnp.zeros((count,), bool)
        gained = jax.lax.stop_gradient(jax.lax.cond(hit.any(), gains, lambda: none))
        status = jnp.where(gained, int(Status.IMPACT_ENERGY), status)
    return Row(
        q=ends.q,
        v=ends.v,
        mode=jax.lax.stop_gradient(ends.mode).astype(jnp.int32)[:, None],
        segment=jnp.zeros((count, 0), jnp.int32),
        impulse=ends.impulse,
        impact=impact,
        residual=jnp.zeros((count,), ends.q.dtype),
        iterations=jnp.ones((count,), jnp.int32),
        status=status.astype(jnp.int32),
    )
