"""Buffers of fixed size for outputs and events, common to all solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.choice import select
from jfric.numerics.loops import skipped
from jfric.results.dense import Dense, finished
from jfric.results.solution import Events, Solution
from jfric.results.status import Flag
from jfric.system.mechanics import Mechanics


class Records(NamedTuple):
    """Output buffers of a run, and the number of outputs that are written in order.

    A row contains all values of one output or one event, so that a pass writes few buffers. There
    are more rows than outputs and events: a pass writes a block of rows, whether or not it fills
    them.
    """

    #: q, v, a, lambda_t, lambda_n, z; NaN at times that the trajectory did not reach.
    output_values: Float[Array, "m f"]
    #: Modes, segments.
    output_modes: Int[Array, "m i"]
    #: Time, q, v, v before.
    event_values: Float[Array, "E e"]
    #: Contact, mode before, mode after, whether the event is an impact.
    event_modes: Int[Array, "E 4"]
    written: Int[Array, ""]
    #: What controllers set, see :mod:`jfric.solvers.control_loops`.
    commands: Float[Array, "m c"]
    #: Pieces of the trajectory, where dense output is required.
    dense: Dense | None = None


def empty_records(
    mechanics: Mechanics, count: int = 0, capacity: int = 0, slots: int = 0, commands: int = 0
) -> Records:
    """Buffers for ``count`` outputs, ``slots`` of them in one pass, with ``commands`` of
    controllers, and ``capacity`` events."""
    n, nt, nu = mechanics.n, mechanics.n_contacts, mechanics.n_unilateral
    ns = mechanics.piecewise.count
    dtype = mechanics.K.dtype
    rows, width = count + slots, 3 * n + nt + nu + len(mechanics.piecewise.states)
    spare = int(capacity > 0)
    return Records(
        output_values=jnp.full((rows, width), jnp.nan, dtype),
        output_modes=jnp.full((rows, nt + ns), -1, jnp.int32),
        event_values=jnp.full((capacity + spare, 1 + 3 * n), jnp.nan, dtype),
        event_modes=jnp.full((capacity + spare, 4), -1, jnp.int32),
        written=jnp.asarray(0, jnp.int32),
        commands=jnp.full((rows, commands), jnp.nan, dtype),
    )


def slots_per_pass(count: int) -> int:
    """Outputs that one pass may write; a pass that covers more ends at the last of them."""
    return min(count, max(2, min(64, count // 12)))


def last_writable(records: Records, ts, slots: int) -> Float[Array, ""]:
    """Time up to which a pass with ``slots`` can write outputs; infinite if it can write all."""
    count = ts.shape[0]
    if count == 0:
        return jnp.asarray(jnp.inf, ts.dtype)
    last = records.written + slots - 1
    return select(last < count, ts[jnp.minimum(last, count - 1)], jnp.inf)


def write_rows(records: Records, ts, rows: Callable, t_new, on, slots: int) -> Records:
    """Write the outputs up to ``t_new`` that are not written yet, ``slots`` at most.

    ``rows(times, inside)``: values and modes of one block of outputs, those ``inside`` used.
    """
    count = ts.shape[0]
    index = records.written + jnp.arange(slots, dtype=jnp.int32)
    times = ts[jnp.minimum(index, count - 1)]
    inside = on & (index < count) & (times <= t_new)
    values, modes = rows(times, inside)
    # Rows after the last one inside are still empty, and stay so.
    values = select(inside[:, None], values, jnp.nan)
    modes = select(inside[:, None], modes, -1)
    start = (records.written, jnp.zeros_like(records.written))
    return records._replace(
        output_values=jax.lax.dynamic_update_slice(records.output_values, values, start),
        output_modes=jax.lax.dynamic_update_slice(records.output_modes, modes, start),
        written=records.written + jnp.sum(inside, dtype=jnp.int32),
    )


def write_outputs(
    records: Records, ts, evaluate: Callable, state: Any, h, t_new, mode, segment, on
) -> Records:
    """Write the outputs that lie in ``(t, t_new]`` (from ``t`` on for the first).

    ``evaluate``: row of all values at a fraction of the step of length ``h``.
    """
    if ts.shape[0] == 0:
        return records

    def rows(times, inside):
        s = select(inside, ((times - state.t) - state.t_rest) / h, 0.0)

        def values():
            return jax.vmap(evaluate)(s)

        # Most passes write none.
        nothing = jnp.zeros((s.shape[0], records.output_values.shape[1]), s.dtype)
        return skipped(inside.any(), values, nothing), jnp.concatenate([mode, segment])

    return write_rows(records, ts, rows, t_new, on, slots_per_pass(ts.shape[0]))


def write_events(
    records: Records,
    changed: Bool[Array, " c"],
    time,
    old,
    new,
    impacted: Bool[Array, " c"],
    q,
    v,
    v_before,
    count,
) -> tuple[Records, Int[Array, ""]]:
    """Write one record for each contact or element in ``changed``, from index ``count`` on."""
    capacity = records.event_values.shape[0] - 1
    total = count + jnp.sum(changed, dtype=jnp.int32)
    if capacity < 0 or changed.shape[0] == 0:
        return records, total
    position = count + jnp.cumsum(changed, dtype=jnp.int32) - 1
    # Records that are not logged go to the last row, which is never read.
    where = select(changed, jnp.minimum(position, capacity), capacity)
    rows = changed.shape[0]
    values = jnp.concatenate([time[None], q, v, v_before])
    modes = jnp.stack(
        [jnp.arange(rows, dtype=jnp.int32), old, new, impacted.astype(jnp.int32)], axis=1
    )
    if rows == 1:
        # Written in place: the compiler makes machine code of a whole loop only without a scatter.
        start = (where[0], jnp.zeros_like(where[0]))
        event_values = jax.lax.dynamic_update_slice(records.event_values, values[None], start)
        event_modes = jax.lax.dynamic_update_slice(records.event_modes, modes, start)
    else:
        values = jnp.broadcast_to(values, (rows, *values.shape))
        event_values = records.event_values.at[where].set(values, mode="drop")
        event_modes = records.event_modes.at[where].set(modes, mode="drop")
    return records._replace(event_values=event_values, event_modes=event_modes), total


def solution_of(
    mechanics: Mechanics,
    records: Records,
    ts,
    capacity: int,
    state: Any,
    status,
    event_names: tuple[str, ...] = (),
    command_names: tuple[str, ...] = (),
) -> Solution:
    """Solution of a run, from its buffers ``records``; ``capacity``: events that they hold."""
    n, nt, count = mechanics.n, mechanics.n_contacts, ts.shape[0]
    values, modes = records.output_values[:count], records.output_modes[:count]
    ends = np.cumsum([n, n, n, nt, mechanics.n_unilateral])
    q, v, a, lambda_t, lambda_n, z = jnp.split(values, ends, axis=1)
    nd = mechanics.n_dofs
    z = jnp.concatenate([z, v[:, nd:]], axis=1)
    log, events = records.event_values[:capacity], records.event_modes[:capacity]
    flags, dense = state.flags, None
    if records.dense is not None:
        dense = finished(records.dense)
        full = dense.count > dense.t.shape[0]
        flags = flags | select(full, int(Flag.DENSE_FULL), 0)
    return Solution(
        ts=ts,
        q=q[:, :nd],
        v=v[:, :nd],
        a=a[:, :nd],
        lambda_n=lambda_n,
        lambda_t=lambda_t,
        mode=modes[:, :nt],
        segment=modes[:, nt:],
        z=z,
        events=Events(
            time=log[:, 0],
            contact=events[:, 0],
            from_mode=events[:, 1],
            to_mode=events[:, 2],
            impact=events[:, 3] == 1,
            q=log[:, 1 : 1 + nd],
            v=log[:, 1 + n : 1 + n + nd],
            v_before=log[:, 1 + 2 * n : 1 + 2 * n + nd],
            count=state.event_count,
        ),
        status=status,
        flags=flags,
        final=state,
        steps=state.steps,
        axes=mechanics.axes[:nd],
        names=mechanics.contact_names + mechanics.piecewise.names,
        segment_labels=mechanics.piecewise.labels,
        states=mechanics.states,
        dense=dense,
        event_names=event_names,
        commands=records.commands[:count],
        command_names=command_names,
    )
