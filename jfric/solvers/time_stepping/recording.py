"""Outputs and events of a run, written block by block into buffers of fixed size."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.solution import Events
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.rows import Row
from jfric.solvers.time_stepping.state import Motion, State

#: Outputs that are looked at together.
WINDOW = 256


class Wanted(NamedTuple):
    """Requested outputs: the step that each lies in, and where in it (0 to 1)."""

    step: Int[Array, " m"]
    fraction: Float[Array, " m"]


def wanted(ts, start, h, whole, rest) -> Wanted:
    """``whole`` steps of length ``h`` from ``start`` on, then one of length ``rest``.

    The end of a step belongs to it.
    """
    place = (ts - start) / h
    # A time that rounding moved past the end of a step belongs to that end.
    nearest = jnp.round(place)
    slack = 8 * jnp.finfo(place.dtype).eps * (1.0 + jnp.abs(ts / h))
    place = jnp.where(jnp.abs(place - nearest) <= slack, nearest, place)
    step = jnp.maximum(jnp.ceil(place) - 1.0, 0.0)
    fraction = jnp.where(step >= whole, (ts - start - whole * h) / rest, place - step)
    step = jnp.minimum(step, whole)
    return Wanted(step.astype(jnp.int32), jnp.clip(fraction, 0.0, 1.0))


class Records(NamedTuple):
    """Buffers of a run: rows hold all values of one output, or of one event."""

    #: q, v, a, lambda_t, lambda_n.
    output_values: Float[Array, "m f"]
    #: Modes, segments.
    output_modes: Int[Array, "m i"]
    #: Time, q, v, v before.
    event_values: Float[Array, "E e"]
    #: Contact, mode before, mode after, whether an impact.
    event_modes: Int[Array, "E 4"]


def empty_records(prepared: Prepared, count: int, capacity: int) -> Records:
    """Buffers for ``count`` outputs and ``capacity`` events."""
    n, rows = prepared.mechanics.n, prepared.W.shape[0]
    modes = prepared.nt + prepared.mechanics.piecewise.count
    dtype = prepared.h.dtype
    return Records(
        output_values=jnp.full((count, 3 * n + rows), jnp.nan, dtype),
        output_modes=jnp.full((count, modes), -1, jnp.int32),
        event_values=jnp.full((capacity, 1 + 3 * n), jnp.nan, dtype),
        event_modes=jnp.full((capacity, 4), -1, jnp.int32),
    )


class Block(NamedTuple):
    """Rows of a block with the motion before each of them."""

    first: Int[Array, ""]
    valid: Int[Array, ""]
    times: Float[Array, " L"]
    rows: Row
    q_before: Float[Array, "L n"]
    v_before: Float[Array, "L n"]
    modes: Int[Array, "L c"]
    modes_before: Int[Array, "L c"]


def block(prepared: Prepared, motion: Motion, first, valid, times, rows: Row) -> Block:
    """``first``: number of the first step; ``valid``: rows that count; ``times`` (L,): starts."""
    shown = jax.vmap(prepared.mechanics.piecewise.shown)(rows.segment)
    modes = jnp.concatenate([rows.mode, shown], axis=1)
    before = jnp.concatenate([motion.mode, prepared.mechanics.piecewise.shown(motion.segment)])
    return Block(
        first=first,
        valid=valid,
        times=times,
        rows=rows,
        q_before=_shifted(motion.q, rows.q),
        v_before=_shifted(motion.v, rows.v),
        modes=modes,
        modes_before=_shifted(before, modes),
    )


def _shifted(first, rows):
    return jnp.concatenate([first[None], rows[:-1]])


def write_outputs(prepared: Prepared, records: Records, want: Wanted, b: Block) -> Records:
    """Outputs that lie in the steps of ``b``; between the ends of a step motion is a line."""
    count = want.step.shape[0]
    if count == 0:
        return records
    inside = (want.step >= b.first) & (want.step < b.first + b.valid)
    size = min(count, WINDOW)
    windows = -(-count // size)

    def window(records: Records, number) -> Records:
        # The last window reaches back over outputs already written: written again, the same.
        at = jnp.minimum(number * size, count - size)
        here = jax.lax.dynamic_slice(inside, (at,), (size,))

        def write(records: Records) -> Records:
            step = jax.lax.dynamic_slice(want.step, (at,), (size,))
            s = jax.lax.dynamic_slice(want.fraction, (at,), (size,))[:, None]
            row = jnp.clip(step - b.first, 0, b.times.shape[0] - 1)
            values = jnp.concatenate(
                [
                    jnp.where(s == 1.0, new[row], old[row] + s * (new[row] - old[row]))
                    for old, new in ((b.q_before, b.rows.q), (b.v_before, b.rows.v))
                ]
                + [
                    (b.rows.v[row] - b.v_before[row]) / prepared.h,
                    b.rows.impulse[row] / prepared.h,
                ],
                axis=1,
            )
            return records._replace(
                output_values=_merged(records.output_values, at, here, values),
                output_modes=_merged(records.output_modes, at, here, b.modes[row]),
            )

        return jax.lax.cond(here.any(), write, lambda r: r, records)

    if windows == 1:
        return window(records, 0)
    numbers = jnp.arange(windows)
    return jax.lax.scan(lambda r, k: (window(r, k), None), records, numbers)[0]


def _merged(buffer, at, here, values):
    old = jax.lax.dynamic_slice_in_dim(buffer, at, here.shape[0])
    new = jnp.where(here[:, None], values, old)
    return jax.lax.dynamic_update_slice_in_dim(buffer, new, at, 0)


class Logged(NamedTuple):
    """Events so far, whether several of them share a step of the block, the first such row."""

    count: Int[Array, ""]
    several: Bool[Array, ""]
    row: Int[Array, ""]


def write_events(prepared: Prepared, records: Records, b: Block, state: State):
    """Changes of mode and impacts in ``b``: records, and :class:`Logged`."""
    length, contacts = b.modes.shape
    if contacts == 0:
        return records, Logged(state.event_count, jnp.asarray(False), jnp.asarray(0, jnp.int32))
    row = jnp.arange(length)
    others = jnp.zeros((length, contacts - prepared.nt), bool)
    elements = jnp.zeros((length, prepared.nf), bool)
    impact = jnp.concatenate([elements, b.rows.impact, others], axis=1)
    begins = (row == 0) & ~state.settled
    changed = ((b.modes != b.modes_before) & ~begins[:, None]) | impact
    changed = changed & (row < b.valid)[:, None]
    each = jnp.sum(changed, axis=1, dtype=jnp.int32)
    total = state.event_count + jnp.sum(each, dtype=jnp.int32)
    capacity = records.event_values.shape[0]

    def write(records: Records) -> Records:
        flat = changed.ravel()
        size = min(capacity, flat.shape[0])
        (where,) = jnp.nonzero(flat, size=size, fill_value=flat.shape[0])
        found = where < flat.shape[0]
        step, contact = jnp.divmod(jnp.where(found, where, 0), contacts)
        slot = jnp.where(found, state.event_count + jnp.arange(size), capacity)
        values = jnp.concatenate(
            [
                (b.times[step] + prepared.h)[:, None],
                b.rows.q[step],
                b.rows.v[step],
                b.v_before[step],
            ],
            axis=1,
        )
        codes = [
            contact,
            b.modes_before[step, contact],
            b.modes[step, contact],
            impact[step, contact],
        ]
        codes = jnp.stack([c.astype(jnp.int32) for c in codes], axis=1)
        return records._replace(
            event_values=records.event_values.at[slot].set(values, mode="drop"),
            event_modes=records.event_modes.at[slot].set(codes, mode="drop"),
        )

    if capacity:
        fits = changed.any() & (state.event_count < capacity)
        records = jax.lax.cond(fits, write, lambda r: r, records)
    return records, Logged(total, jnp.any(each > 1), jnp.argmax(each > 0).astype(jnp.int32))


def events(prepared: Prepared, records: Records, count) -> Events:
    """The event log by name."""
    n = prepared.mechanics.n
    values, modes = records.event_values, records.event_modes
    return Events(
        time=values[:, 0],
        contact=modes[:, 0],
        from_mode=modes[:, 1],
        to_mode=modes[:, 2],
        impact=modes[:, 3] == 1,
        q=values[:, 1 : 1 + n],
        v=values[:, 1 + n : 1 + 2 * n],
        v_before=values[:, 1 + 2 * n :],
        count=count,
    )
