"""Loop over blocks of steps, and the shorter step that reaches the end."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.loops import Adjoint
from jfric.results.status import Flag, Status
from jfric.solvers.base import REST
from jfric.solvers.records import Records
from jfric.solvers.time_stepping.blocks import Block, Steps, run_block
from jfric.solvers.time_stepping.inputs import load_tables
from jfric.solvers.time_stepping.prepared import Motion, Prepared, State, changing, with_step

#: Steps in one block: in scalars a whole block stays in the cache, and its overhead is small.
BLOCK, BLOCK_OF_ARRAYS = 1024, 128
#: Number of events up to which the steps of a closed form are checked.
JUDGED = 4


class Span(NamedTuple):
    """Whole steps from ``start``, then a last one of length ``rest`` to the end; ``steps`` counts
    both."""

    start: Float[Array, ""]
    whole: Int[Array, ""]
    steps: Int[Array, ""]
    rest: Float[Array, ""]


def span(start, end, h, *, derivatives: bool) -> Span:
    """Number of steps of length ``h`` between ``start`` and ``end``, and the remainder.

    With ``derivatives`` a last step is there also where none is shorter: it carries those by the
    end of the run.
    """
    length = (end - start) / h
    slack = jnp.maximum(REST, 8 * jnp.finfo(length.dtype).eps * jnp.abs(length))
    count = jnp.maximum(jnp.floor(jax.lax.stop_gradient(length) + slack), 0.0)
    has_rest = length - count > slack
    steps = (count + has_rest.astype(count.dtype)).astype(jnp.int32)
    ends = has_rest | ((count > 0) & derivatives)
    rest = end - start - (steps - 1).astype(count.dtype) * h
    rest = jnp.where(has_rest, rest, h + jnp.where(ends, rest - jax.lax.stop_gradient(rest), 0.0))
    return Span(start, steps - ends.astype(jnp.int32), steps, rest)


def run(
    prepared: Prepared,
    state: State,
    records: Records,
    ts,
    end,
    force,
    *,
    max_steps: int,
    adjoint: Adjoint,
) -> tuple[State, Records]:
    """Run from ``state`` to ``end`` under an extra constant ``force`` (n,)."""
    s = span(state.t, end, prepared.h, derivatives=adjoint != "none")
    want = wanted(ts, s.start, prepared.h, s.whole, s.rest)
    steps = jnp.minimum(s.steps, max_steps)
    size = max(1, min(BLOCK if prepared.in_scalars else BLOCK_OF_ARRAYS, max_steps))
    short = with_step(prepared, s.rest)

    def phase(carry, last):
        # Whole steps first, then the shorter one: outside the loop over blocks, whose steps would
        # be slower if their numbers changed.
        chosen = _keep(last, changing(short), changing(prepared))
        step = eqx.tree_at(changing, prepared, chosen, is_leaf=lambda x: x is None)
        tables = load_tables(step.mechanics, step.scheme, step.h, size)
        limit = jnp.where(last, steps, jnp.minimum(s.whole, steps))

        def active(carry):
            state, _, done = carry
            return (done < limit) & (state.status == int(Status.OK))

        def one_block(carry):
            state, records, done = carry
            count = jnp.minimum(limit - done, size)
            steps = (done + jnp.arange(size, dtype=jnp.int32)).astype(prepared.h.dtype)
            times = s.start + prepared.h * steps
            state, records, made = _advance(
                step, tables, state, records, want, done, count, times, force
            )
            done = done + made
            reached = s.start + prepared.h * done.astype(prepared.h.dtype)
            t = jnp.where(done == s.steps, end, reached)
            return eqx.tree_at(lambda x: x.t, state, t), records, done

        if adjoint != "reverse":
            return jax.lax.while_loop(active, one_block, carry), None

        # Only the input of a block is stored; the block is repeated in the backward pass.
        def maybe(carry, _):
            return jax.lax.cond(active(carry), one_block, lambda c: c, carry), None

        return jax.lax.scan(jax.checkpoint(maybe), carry, length=-(-max_steps // size))[0], None

    carry = (state, records, jnp.asarray(0, jnp.int32))
    phases = jnp.asarray([False, True])
    (new, records, _), _ = jax.lax.scan(phase, carry, phases)
    jumps = prepared.mechanics.jumps()
    passed = jnp.any((jumps > s.start) & (jumps < new.t))
    flags = new.flags | jnp.where(passed, int(Flag.STEP_RESOLUTION), 0)
    return eqx.tree_at(lambda x: x.flags, new, flags.astype(jnp.int32)), records


def _keep(which, a, b):
    return jax.tree.map(lambda x, y: jnp.where(which, x, y), a, b)


def _advance(prepared, tables, state: State, records, want: Wanted, first, count, times, force):
    """State, records and steps made, after ``count`` steps from the first of ``times`` on.

    Steps of a block after the last one are computed and discarded.
    """
    motion = Motion(state.q, state.v, state.mode, state.segment, state.steps > 0)
    b = run_block(prepared, motion, times, force, tables)
    size = times.shape[0]
    if prepared.nt + prepared.mechanics.piecewise.count == 0:
        quiet = b.quiet & (count == size)
    else:
        quiet = b.quiet & (count == size) & state.settled
    records, o = jax.lax.cond(
        quiet,
        lambda records: (records, _nothing(b, state, count)),
        lambda records: _outcome(prepared, b, state, records, count),
        records,
    )
    records = write_outputs(prepared, records, want, b, first, o.valid)
    moved = o.valid > 0
    end = b.motions(jnp.maximum(o.valid - 1, 0)[None])
    new = Motion(end.q[0], end.v[0], o.mode, o.segment, motion.settled)
    new = _keep(moved, new, motion)
    flags, iterations = state.flags | o.flags, o.valid
    if b.flags is not None:
        seen = jnp.arange(size, dtype=jnp.int32) < o.valid
        flags = flags | jnp.bitwise_or.reduce(jnp.where(seen, b.flags, 0))
    if b.iterations is not None:
        kept = jnp.arange(size, dtype=jnp.int32) < o.valid
        iterations = jnp.sum(jnp.where(kept, b.iterations, 0), dtype=jnp.int32)
    state = State(
        t=state.t,
        q=new.q,
        v=new.v,
        mode=new.mode,
        segment=new.segment,
        settled=state.settled | moved,
        residual=jnp.maximum(state.residual, o.residual),
        iterations=state.iterations + iterations,
        status=o.code,
        flags=flags.astype(jnp.int32),
        steps=state.steps + o.valid,
        event_count=o.event_count,
    )
    return state, records, o.valid


class Outcome(NamedTuple):
    """Number of steps of a block that count, the status after them, and their results."""

    valid: Int[Array, ""]
    code: Int[Array, ""]
    event_count: Int[Array, ""]
    flags: Int[Array, ""]
    residual: Float[Array, ""]
    #: Modes and segments after these steps.
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]


def _nothing(b: Block, state: State, count) -> Outcome:
    """Outcome of a whole block in which nothing happened."""
    zero = jnp.asarray(0, jnp.int32)
    residual = jnp.zeros((), state.q.dtype) if b.residual is None else jnp.max(b.residual)
    count = count.astype(jnp.int32)
    return Outcome(count, zero, state.event_count, zero, residual, state.mode, state.segment)


def _outcome(prepared, b: Block, state: State, records: Records, count):
    steps = b.steps()
    index = jnp.arange(b.times.shape[0], dtype=jnp.int32)
    fails = (steps.status != int(Status.OK)) & (index < count)
    valid = jnp.where(fails.any(), jnp.argmax(fails).astype(jnp.int32), count)
    code = jnp.where(fails.any(), steps.status[jnp.argmax(fails)], int(Status.OK))
    records, logged = write_events(prepared, records, b, steps, valid, state)
    flags = jnp.where(logged.count > state.event_count, int(Flag.STEP_RESOLUTION), 0)
    flags = flags | jnp.where(logged.several, int(Flag.SIMULTANEOUS), 0)
    if b.residual is None:
        # The closed form checks itself in every step. The check of the residual, which is slower
        # than a block of steps, examines the first events of a run and its last step.
        picked = jnp.stack([logged.row, jnp.maximum(valid - 1, 0)])
        residual = jax.lax.cond(
            ((state.event_count < JUDGED) | (valid < index.shape[0])) & (valid > 0),
            lambda: jnp.max(jax.lax.stop_gradient(b.rows(picked).residual)),
            lambda: jnp.zeros((), state.q.dtype),
        )
    else:
        residual = jnp.max(jnp.where(index < valid, b.residual, 0.0))
    last = jnp.maximum(valid - 1, 0)
    return records, Outcome(
        valid,
        code.astype(jnp.int32),
        logged.count,
        flags.astype(jnp.int32),
        residual,
        steps.mode[last],
        steps.segment[last] if steps.segment.shape[1] else state.segment,
    )


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
