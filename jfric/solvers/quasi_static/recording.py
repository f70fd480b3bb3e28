"""Buffers for outputs and events."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.complementarity import rules
from jfric.solution import Events
from jfric.solvers.quasi_static.increment import Increment
from jfric.solvers.quasi_static.state import State
from jfric.system.mechanics import Mechanics


class Records(NamedTuple):
    """Outputs at the requested times, not a number where the history did not get, and events."""

    q: Float[Array, "m n"]
    v: Float[Array, "m n"]
    lambda_t: Float[Array, "m nt"]
    lambda_n: Float[Array, "m nu"]
    mode: Int[Array, "m nt"]
    segment: Int[Array, "m ns"]
    events: Events


def empty_records(mechanics: Mechanics, count: int, capacity: int) -> Records:
    """Buffers for ``count`` outputs and ``capacity`` events."""
    n, nt, nu = mechanics.n, mechanics.n_contacts, mechanics.n_unilateral

    def unknown(*shape):
        return jnp.full(shape, jnp.nan, mechanics.K.dtype)

    def unset(*shape):
        return jnp.full(shape, -1, jnp.int32)

    return Records(
        q=unknown(count, n),
        v=unknown(count, n),
        lambda_t=unknown(count, nt),
        lambda_n=unknown(count, nu),
        mode=unset(count, nt),
        segment=unset(count, mechanics.piecewise.count),
        events=Events(
            time=unknown(capacity),
            contact=unset(capacity),
            from_mode=unset(capacity),
            to_mode=unset(capacity),
            impact=jnp.zeros((capacity,), bool),
            q=unknown(capacity, n),
            v=unknown(capacity, n),
            v_before=unknown(capacity, n),
            count=jnp.asarray(0, jnp.int32),
        ),
    )


def shown(mechanics: Mechanics, state: State) -> Int[Array, " c"]:
    """Modes and segments as users see them."""
    mode = rules.reported_mode(np.asarray(mechanics.frictionless, bool), state.mode)
    return jnp.concatenate([mode, mechanics.piecewise.shown(state.segment)])


def write_outputs(
    records: Records, ts, old: State, step: Increment, fraction, new: State, modes, on
) -> Records:
    """Outputs on the straight way from ``old`` to ``new``, which is ``fraction`` of ``step``.

    At a jump of the load what comes after it replaces what came before.
    """
    if ts.shape[0] == 0:
        return records
    jump = new.t == old.t
    inside = on & jnp.where(jump, ts == old.t, (ts > old.t) & (ts <= new.t))
    length = jnp.where(jump, 1.0, new.t - old.t)
    share = fraction * jnp.where(jump, 1.0, jnp.clip((ts - old.t) / length, 0.0, 1.0))

    def line(start, change, buffer):
        values = start + share[:, None] * change
        return jnp.where(inside[:, None], values, buffer)

    nt = old.lambda_t.shape[0]
    return records._replace(
        q=line(old.q, step.q, records.q),
        v=jnp.where(inside[:, None], new.v, records.v),
        lambda_t=line(old.lambda_t, step.lambda_t, records.lambda_t),
        lambda_n=line(old.lambda_n, step.lambda_n, records.lambda_n),
        mode=jnp.where(inside[:, None], modes[:nt], records.mode),
        segment=jnp.where(inside[:, None], modes[nt:], records.segment),
    )


def write_events(
    records: Records, changed: Bool[Array, " c"], state: State, modes, v_before, total
) -> Records:
    """One record for each contact or spring in ``changed``, from index ``total`` on."""
    log = records.events
    capacity, rows = log.time.shape[0], changed.shape[0]
    if capacity == 0 or rows == 0:
        return records
    position = total + jnp.cumsum(changed, dtype=jnp.int32) - 1
    where = jnp.where(changed, position, capacity)

    def put(buffer, values):
        values = jnp.broadcast_to(values, (rows, *buffer.shape[1:]))
        return buffer.at[where].set(values, mode="drop")

    return records._replace(
        events=Events(
            time=put(log.time, state.t),
            contact=put(log.contact, jnp.arange(rows, dtype=jnp.int32)),
            from_mode=put(log.from_mode, state.recorded),
            to_mode=put(log.to_mode, modes),
            impact=log.impact,
            q=put(log.q, state.q),
            v=put(log.v, state.v),
            v_before=put(log.v_before, v_before),
            count=log.count,
        )
    )
