"""Outputs and events of a run, written block by block."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.solvers.records import Records
from jfric.solvers.time_stepping.blocks import Block, Steps
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.state import State

#: Outputs that are examined together.
WINDOW = 256


class Wanted(NamedTuple):
    """Requested outputs: the step in which each lies, and its place in the step (0 to 1)."""

    step: Int[Array, " m"]
    fraction: Float[Array, " m"]


def wanted(ts, start, h, whole, rest) -> Wanted:
    """Place of outputs in ``whole`` steps of length ``h`` from ``start`` on, then one of ``rest``.

    The end of a step belongs to this step.
    """
    place = (ts - start) / h
    # A time that rounding moved past the end of a step belongs to that end.
    nearest = jnp.round(place)
    slack = 8 * jnp.finfo(place.dtype).eps * (1.0 + jnp.abs(ts / h))
    near = jnp.abs(place - nearest) <= slack
    place = place + jax.lax.stop_gradient(jnp.where(near, nearest - place, 0.0))
    step = jnp.maximum(jnp.ceil(place) - 1.0, 0.0)
    whole = jnp.asarray(whole, place.dtype)
    fraction = jnp.where(step >= whole, (ts - start - whole * h) / rest, place - step)
    step = jnp.minimum(step, whole)
    outside = jax.lax.stop_gradient(jnp.clip(fraction, 0.0, 1.0) - fraction)
    return Wanted(step.astype(jnp.int32), fraction + outside)


def write_outputs(
    prepared: Prepared, records: Records, want: Wanted, b: Block, first, valid
) -> Records:
    """Write the outputs that lie in the ``valid`` steps of ``b``, the first of which has the number
    ``first``. Between the ends of a step the motion is a straight line."""
    count = want.step.shape[0]
    if count == 0:
        return records
    inside = (want.step >= first) & (want.step < first + valid)
    size = min(count, WINDOW)
    windows = -(-count // size)

    def window(records: Records, number) -> Records:
        # The last window overlaps outputs already written: they are written again, unchanged.
        at = jnp.minimum(number * size, count - size)
        here = jax.lax.dynamic_slice(inside, (at,), (size,))

        def write(records: Records) -> Records:
            step = jax.lax.dynamic_slice(want.step, (at,), (size,))
            s = jax.lax.dynamic_slice(want.fraction, (at,), (size,))[:, None]
            row = jnp.clip(step - first, 0, b.times.shape[0] - 1)
            x, y = b.motions(row), b.rows(row)
            shown = prepared.mechanics.piecewise.shown
            modes = [y.mode, jax.vmap(shown)(y.segment)]
            values = jnp.concatenate(
                [
                    jnp.where(s == 1.0, new, old) + (s - (s == 1.0).astype(s.dtype)) * (new - old)
                    for old, new in ((x.q_before, x.q), (x.v_before, x.v))
                ]
                + [(x.v - x.v_before) / prepared.h, y.impulse / prepared.h],
                axis=1,
            )
            return records._replace(
                output_values=_merged(records.output_values, at, here, values),
                output_modes=_merged(
                    records.output_modes, at, here, jnp.concatenate(modes, axis=1)
                ),
            )

        return jax.lax.cond(here.any(), write, lambda r: r, records)

    if windows == 1:
        return window(records, 0)
    numbers = jnp.arange(windows, dtype=jnp.int32)
    return jax.lax.scan(lambda r, k: (window(r, k), None), records, numbers)[0]


def _merged(buffer, at, here, values):
    old = jax.lax.dynamic_slice_in_dim(buffer, at, here.shape[0])
    new = jnp.where(here[:, None], values, old)
    return jax.lax.dynamic_update_slice_in_dim(buffer, new, at, 0)


class Logged(NamedTuple):
    """Events so far, whether several share a step of the block, and the first row with one."""

    count: Int[Array, ""]
    several: Bool[Array, ""]
    row: Int[Array, ""]


def write_events(
    prepared: Prepared, records: Records, b: Block, x: Steps, valid, state: State
) -> tuple[Records, Logged]:
    """Write changes of mode and impacts in the ``valid`` first steps ``x`` of ``b``."""
    shown = jax.vmap(prepared.mechanics.piecewise.shown)
    modes = jnp.concatenate([x.mode, shown(x.segment)], axis=1)
    modes_before = jnp.concatenate([x.mode_before, shown(x.segment_before)], axis=1)
    length, contacts = modes.shape
    if contacts == 0:
        none = Logged(state.event_count, jnp.asarray(False), jnp.asarray(0, jnp.int32))
        return records, none
    row = jnp.arange(length, dtype=jnp.int32)
    others = jnp.zeros((length, contacts - prepared.nt), bool)
    elements = jnp.zeros((length, prepared.nf), bool)
    impact = jnp.concatenate([elements, x.impact, others], axis=1)
    begins = (row == 0) & ~state.settled
    changed = ((modes != modes_before) & ~begins[:, None]) | impact
    changed = changed & (row < valid)[:, None]
    # Both directions of a plane are one contact.
    own = ~np.isin(np.arange(contacts), [j for _, j in prepared.mechanics.planes])
    changed = changed & own[None, :]
    each = jnp.sum(changed, axis=1, dtype=jnp.int32)
    total = state.event_count + jnp.sum(each, dtype=jnp.int32)
    logged = Logged(total, jnp.any(each > 1), jnp.argmax(each > 0).astype(jnp.int32))
    capacity = records.event_values.shape[0] - 1
    if capacity < 0:
        return records, logged

    def write(records: Records) -> Records:
        flat = changed.ravel()
        size = min(capacity, flat.shape[0])
        # No sorting: a loop that sorts cannot become one piece of machine code.
        where = jnp.nonzero(flat, size=size, fill_value=flat.shape[0])[0]
        found = where < flat.shape[0]
        step, contact = jnp.divmod(jnp.where(found, where, 0), contacts)
        slot = jnp.where(found, state.event_count + jnp.arange(size, dtype=jnp.int32), capacity)
        here = b.motions(step)
        times = (b.times[step] + prepared.h)[:, None]
        values = jnp.concatenate([times, here.q, here.v, here.v_before], axis=1)
        codes = [
            contact,
            modes_before[step, contact],
            modes[step, contact],
            impact[step, contact],
        ]
        codes = jnp.stack([c.astype(jnp.int32) for c in codes], axis=1)
        return records._replace(
            event_values=records.event_values.at[slot].set(values, mode="drop"),
            event_modes=records.event_modes.at[slot].set(codes, mode="drop"),
        )

    fits = changed.any() & (state.event_count < capacity)
    return jax.lax.cond(fits, write, lambda r: r, records), logged
