"""Fixed-size buffers for outputs and events, filled pass by pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.complementarity import rules
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State
from jfric.solvers.event_driven.transitions import Signs


class Outputs(NamedTuple):
    """Values at the requested times; not a number where the trajectory did not get."""

    q: Float[Array, "m n"]
    v: Float[Array, "m n"]
    a: Float[Array, "m n"]
    lambda_t: Float[Array, "m nt"]
    lambda_n: Float[Array, "m nu"]
    mode: Int[Array, "m nt"]
    segment: Int[Array, "m ns"]


class Records(NamedTuple):
    """Output buffers of a run, and how many outputs are written.

    Rows hold all values of one output or one event: a pass then writes few buffers. There are more
    rows than outputs and events: a pass writes a block of rows, whether or not it fills them.
    """

    #: q, v, a, lambda_t, lambda_n.
    output_values: Float[Array, "m f"]
    #: Modes, segments.
    output_modes: Int[Array, "m i"]
    #: Time, q, v, v before.
    event_values: Float[Array, "E e"]
    #: Contact, mode before, mode after, whether an impact.
    event_modes: Int[Array, "E 4"]
    written: Int[Array, ""]


def empty_records(prepared: Prepared, count: int, capacity: int) -> Records:
    """Buffers for ``count`` outputs and ``capacity`` events."""
    n, nt, nu = prepared.mechanics.n, prepared.nt, prepared.nu
    ns = prepared.mechanics.piecewise.count
    dtype = prepared.D.dtype
    rows = count + slots_per_pass(count) if count else 0
    spare = int(capacity > 0)
    return Records(
        output_values=jnp.full((rows, 3 * n + nt + nu), jnp.nan, dtype),
        output_modes=jnp.full((rows, nt + ns), -1, jnp.int32),
        event_values=jnp.full((capacity + spare, 1 + 3 * n), jnp.nan, dtype),
        event_modes=jnp.full((capacity + spare, 4), -1, jnp.int32),
        written=jnp.asarray(0, jnp.int32),
    )


def outputs(prepared: Prepared, records: Records, count: int) -> Outputs:
    """The ``count`` outputs by name."""
    n, nt = prepared.mechanics.n, prepared.nt
    q, v, a, rest = jnp.split(records.output_values[:count], (n, 2 * n, 3 * n), axis=1)
    modes = records.output_modes[:count]
    return Outputs(q, v, a, rest[:, :nt], rest[:, nt:], modes[:, :nt], modes[:, nt:])


def slots_per_pass(count: int) -> int:
    """Outputs that one pass may write; a pass that covers more ends at the last of them."""
    return min(count, max(2, min(64, count // 12)))


def reported_modes(prepared: Prepared, mode, signs: Signs):
    """Modes as users see them: see :func:`jfric.complementarity.rules.reported_mode`."""
    return rules.reported_mode(prepared.kind.frictionless, mode, signs.null[: prepared.nt])


def reported_segments(prepared: Prepared, segment):
    """Segments as users see them: those of equal name are one."""
    labels = prepared.mechanics.piecewise.labels
    if not labels:
        return segment
    size = prepared.mechanics.piecewise.segments
    table = [[names.index(names[min(i, len(names) - 1)]) for i in range(size)] for names in labels]
    return jnp.take_along_axis(jnp.asarray(table, jnp.int32), segment[:, None], axis=1)[:, 0]


def write_outputs(
    records: Records, ts, evaluate: Callable, state: State, h, t_new, mode, segment, on
) -> Records:
    """Evaluate the outputs that lie in ``(t, t_new]`` (from ``t`` on for the first).

    ``evaluate``: all values at a fraction of the step of length ``h``.
    """
    count = ts.shape[0]
    if count == 0:
        return records
    slots = slots_per_pass(count)
    index = records.written + jnp.arange(slots, dtype=jnp.int32)
    times = ts[jnp.minimum(index, count - 1)]
    inside = on & (index < count) & (times <= t_new)
    s = jnp.where(inside, ((times - state.t) - state.t_rest) / h, 0.0)

    # Rows after the last one inside are still empty, and stay so.
    values = jnp.concatenate(jax.vmap(evaluate)(s)[:5], axis=1)
    values = jnp.where(inside[:, None], values, jnp.nan)
    modes = jnp.where(inside[:, None], jnp.concatenate([mode, segment]), -1)
    start = (records.written, jnp.zeros_like(records.written))
    return records._replace(
        output_values=jax.lax.dynamic_update_slice(records.output_values, values, start),
        output_modes=jax.lax.dynamic_update_slice(records.output_modes, modes, start),
        written=records.written + jnp.sum(inside, dtype=jnp.int32),
    )


def write_events(
    records: Records, changed, time, old, new, impacted, q, v, v_before, count
) -> tuple[Records, Int[Array, ""]]:
    """One record for each contact or element in ``changed``, from index ``count`` on."""
    capacity = records.event_values.shape[0] - 1
    total = count + jnp.sum(changed, dtype=jnp.int32)
    if capacity < 0 or changed.shape[0] == 0:
        return records, total
    position = count + jnp.cumsum(changed, dtype=jnp.int32) - 1
    # What is not logged goes to the last row, which nobody reads.
    where = jnp.where(changed, jnp.minimum(position, capacity), capacity)
    rows = changed.shape[0]
    values = jnp.concatenate([time[None], q, v, v_before])
    modes = jnp.stack(
        [jnp.arange(rows, dtype=jnp.int32), old, new, impacted.astype(jnp.int32)], axis=1
    )
    if rows == 1:
        # Written in place: the compiler makes machine code of a whole loop without a scatter.
        start = (where[0], jnp.zeros_like(where[0]))
        event_values = jax.lax.dynamic_update_slice(records.event_values, values[None], start)
        event_modes = jax.lax.dynamic_update_slice(records.event_modes, modes, start)
    else:
        values = jnp.broadcast_to(values, (rows, *values.shape))
        event_values = records.event_values.at[where].set(values, mode="drop")
        event_modes = records.event_modes.at[where].set(modes, mode="drop")
    return records._replace(event_values=event_values, event_modes=event_modes), total
