"""The loop over blocks of steps, and the shorter step that reaches the end."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.solvers.loops import Adjoint
from jfric.solvers.time_stepping.blocks import run_block
from jfric.solvers.time_stepping.judge import residuals
from jfric.solvers.time_stepping.prepared import Prepared, changing, with_step
from jfric.solvers.time_stepping.recording import (
    Records,
    Wanted,
    block,
    wanted,
    write_events,
    write_outputs,
)
from jfric.solvers.time_stepping.state import Motion, State
from jfric.status import Flag, Status

#: Steps in one block: of scalars a whole block stays in the cache, and hides its overhead.
BLOCK, BLOCK_OF_ARRAYS = 1024, 128
#: A rest of a step below this fraction is rounding error.
REST = 1e-9


class Span(NamedTuple):
    """Whole steps from ``start``, then a shorter one to the end; ``steps`` counts both."""

    start: Float[Array, ""]
    whole: Int[Array, ""]
    steps: Int[Array, ""]
    rest: Float[Array, ""]


def span(start, end, h) -> Span:
    """Steps of length ``h`` that fit between ``start`` and ``end``, and the rest."""
    length = (end - start) / h
    slack = jnp.maximum(REST, 8 * jnp.finfo(length.dtype).eps * jnp.abs(length))
    count = jnp.maximum(jnp.floor(jax.lax.stop_gradient(length) + slack), 0.0)
    has_rest = length - count > slack
    whole = count.astype(jnp.int32)
    return Span(
        start,
        whole,
        whole + has_rest.astype(jnp.int32),
        jnp.where(has_rest, end - start - count * h, h),
    )


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
    """From ``state`` to ``end`` under an extra constant ``force`` (n,)."""
    s = span(state.t, end, prepared.h)
    want = wanted(ts, s.start, prepared.h, s.whole, s.rest)
    steps = jnp.minimum(s.steps, max_steps)
    size = max(1, min(BLOCK if prepared.in_scalars else BLOCK_OF_ARRAYS, max_steps))
    short = with_step(prepared, s.rest)

    def active(carry):
        state, _, done = carry
        return (done < steps) & (state.status == int(Status.OK))

    def one_block(carry):
        state, records, done = carry
        last = done >= s.whole
        # The shorter step is a block of its own.
        step = eqx.tree_at(changing, prepared, _chosen(last, changing(short), changing(prepared)))
        count = jnp.where(last, 1, jnp.minimum(jnp.minimum(steps, s.whole) - done, size))
        times = s.start + prepared.h * (done + jnp.arange(size, dtype=jnp.int32))
        state, records, made = _advance(step, state, records, want, done, count, times, force)
        done = done + made
        reached = jnp.where(last & (made > 0), end, s.start + prepared.h * done)
        exact = (done == s.whole) & (s.steps == s.whole)
        state = eqx.tree_at(lambda x: x.t, state, jnp.where(exact, end, reached))
        return state, records, done

    carry = (state, records, jnp.asarray(0, jnp.int32))
    if adjoint == "forward":
        carry = jax.lax.while_loop(active, one_block, carry)
    else:
        # Only what enters a block is stored; the block is repeated on the way back.
        def maybe(carry, _):
            return jax.lax.cond(active(carry), one_block, lambda c: c, carry), None

        blocks = -(-max_steps // size) + 1
        carry, _ = jax.lax.scan(jax.checkpoint(maybe), carry, length=blocks)
    return carry[0], carry[1]


def _chosen(which, a, b):
    return jax.tree.map(lambda x, y: jnp.where(which, x, y), a, b)


def _advance(prepared, state: State, records, want: Wanted, first, count, times, force):
    """``count`` steps that begin at the first of ``times``: state, records, and steps made.

    The steps of a block behind the last one are computed and left out.
    """
    motion = Motion(state.q, state.v, state.mode, state.segment)
    rows = run_block(prepared, motion, times, force)
    index = jnp.arange(times.shape[0])
    frozen = jax.lax.stop_gradient(rows)
    finite = jnp.all(jnp.isfinite(frozen.q) & jnp.isfinite(frozen.v), axis=1)
    status = jnp.where(finite, frozen.status, int(Status.NON_FINITE))
    fails = (status != int(Status.OK)) & (index < count)
    valid = jnp.where(fails.any(), jnp.argmax(fails), count).astype(jnp.int32)
    code = jnp.where(fails.any(), status[jnp.argmax(fails)], int(Status.OK))

    b = block(prepared, motion, first, valid, times, rows)
    records = write_outputs(prepared, records, want, b)
    records, logged = write_events(prepared, records, b, state)
    residual = jnp.max(jnp.where(index < valid, frozen.residual, 0.0), initial=0.0)
    if prepared.in_scalars:
        # The closed form checks itself in every step; the judge looks at steps with events and
        # at the last one.
        picked = jnp.stack([jnp.clip(logged.row, 0, index.shape[0] - 1), jnp.maximum(valid - 1, 0)])
        worth = (logged.count > state.event_count) | (valid < index.shape[0])
        residual = jax.lax.cond(
            worth & (valid > 0),
            lambda: jnp.max(residuals(prepared, jax.lax.stop_gradient(b), picked, force)),
            lambda: jnp.zeros((), state.q.dtype),
        )
    flags = jnp.where(logged.count > state.event_count, int(Flag.STEP_RESOLUTION), 0)
    flags = flags | jnp.where(logged.several, int(Flag.SIMULTANEOUS), 0)
    last = jnp.maximum(valid - 1, 0)
    moved = valid > 0
    kept = index < valid
    new = State(
        t=state.t,
        q=jnp.where(moved, rows.q[last], state.q),
        v=jnp.where(moved, rows.v[last], state.v),
        mode=jnp.where(moved, rows.mode[last], state.mode),
        segment=jnp.where(moved, rows.segment[last], state.segment),
        settled=state.settled | moved,
        residual=jnp.maximum(state.residual, residual),
        iterations=state.iterations + jnp.sum(jnp.where(kept, rows.iterations, 0), dtype=jnp.int32),
        status=code.astype(jnp.int32),
        flags=(state.flags | flags).astype(jnp.int32),
        steps=state.steps + valid,
        event_count=logged.count,
    )
    return new, records, valid
