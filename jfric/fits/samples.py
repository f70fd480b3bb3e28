"""Signals of a trajectory at given times, for fits: only the requested signals are evaluated.

A pass of the event-driven solver may cover many samples. They are evaluated in windows, contiguous
pieces of the output, from the polynomials of the pass; the next pass follows when all samples on
this one are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.numerics.loops import keep, run_passes
from jfric.numerics.polynomials import horner, with_derivatives
from jfric.results.signals import Signal
from jfric.results.status import Status
from jfric.solvers.base import AbstractSolver
from jfric.solvers.records import empty_records
from jfric.system.control import driven
from jfric.system.problem import Problem
from jfric.system.start import started

#: Samples that are evaluated together.
WINDOW = 48


class _Piece(NamedTuple):
    """Motion over the last pass: polynomials in ``(time - t)/h`` up to the time ``end``."""

    t: Float[Array, ""]
    h: Float[Array, ""]
    end: Float[Array, ""]
    table: Float[Array, "p k"]


class _Carry(NamedTuple):
    state: Any
    piece: _Piece
    #: Samples written so far.
    written: Int[Array, ""]


def sample_signals(
    problem: Problem, solver: AbstractSolver, signals: Sequence[Signal], ts: Float[Array, " m"]
) -> tuple[Float[Array, "m k"], Int[Array, ""]]:
    """Values of ``signals`` at the times ``ts``, which do not decrease, and the status of the
    trajectory; NaN at times that the trajectory does not reach."""
    problem = driven(started(problem))
    prepared = solver.prepare(problem)
    mechanics = prepared.mechanics
    dtype = mechanics.K.dtype
    target = jnp.asarray(prepared.end, dtype)
    state = solver.begin(problem, prepared, target)
    force, none = jnp.zeros((mechanics.n,), dtype), jnp.zeros((0,), dtype)
    records = empty_records(mechanics)
    one_pass = solver.next_pass(problem, prepared, state, none, target, force)
    columns = _columns(signals, mechanics.n)
    # A last sample that rounding put behind the end belongs to the end.
    slack = 4 * jnp.finfo(dtype).eps * jnp.abs(target)
    ts = jnp.where((ts > target) & (ts <= target + slack), target, ts)
    window = min(WINDOW, ts.shape[0])
    padded = jnp.concatenate([ts, jnp.full((window,), jnp.inf, dtype)])

    def one(s, on) -> tuple[Any, _Piece]:
        new, _, piece = one_pass.call(s, records, on)
        assert piece is not None
        piece = piece()
        table = jnp.stack([getattr(piece, f)[:, i] for f, i in columns], axis=1)
        # A pass that only settles modes covers no time.
        moves = new.t > s.t
        end = jnp.where(moves, new.t, -jnp.inf)
        return new, _Piece(s.t, jnp.where(moves, piece.h, 1.0), end, table)

    def exhausted(c: _Carry):
        return padded[c.written] > c.piece.end

    def active(c: _Carry):
        goes_on = solver.unfinished(prepared, c.state, target)
        ends = ~goes_on | (c.state.steps >= solver.max_steps)
        return (c.state.status == int(Status.OK)) & ~(ends & exhausted(c))

    def body(c: _Carry, y, on):
        fresh = exhausted(c)
        state, piece = keep(fresh, one(c.state, on & fresh), (c.state, c.piece))
        times = jax.lax.dynamic_slice_in_dim(padded, c.written, window)
        inside = on & (times <= piece.end)
        y = _overwritten(y, c.written, piece, times, inside)
        written = c.written + jnp.sum(inside, dtype=jnp.int32)
        return _Carry(state, piece, written), y

    table = jax.eval_shape(lambda s: one(s, True), state)[1].table
    nothing = _Piece(
        state.t, jnp.ones((), dtype), jnp.asarray(-jnp.inf, dtype), jnp.zeros(table.shape, dtype)
    )
    carry = _Carry(state, nothing, jnp.asarray(0, jnp.int32))
    y = jnp.full((padded.shape[0], len(columns)), jnp.nan, dtype)
    carry, y = run_passes(
        body, active, carry, y, max_steps=solver.max_steps, adjoint=solver.adjoint
    )
    state = carry.state
    status = solver.outcome(prepared, state, target)
    return _assembled(mechanics, signals, columns, ts, y[: ts.shape[0]]), status


def _overwritten(
    y: Float[Array, "r k"], written, piece: _Piece, times: Float[Array, " w"], inside
) -> Float[Array, "r k"]:
    """The output with values at the next ``times``, where these lie ``inside`` the piece."""
    # Infinite times would give undefined derivatives in reverse mode.
    s = (jnp.where(inside, times, piece.t) - piece.t) / piece.h
    old = jax.lax.dynamic_slice_in_dim(y, written, times.shape[0])
    values = jax.lax.stop_gradient(horner(piece.table[:, None, :], s[:, None]))
    values = jax.vmap(with_derivatives, (None, 0, 0))(piece.table, s, values)
    new = jnp.where(inside[:, None], values, old)
    return jax.lax.dynamic_update_slice_in_dim(y, new, written, 0)


def _columns(signals: Sequence[Signal], n: int) -> list[tuple[str, int]]:
    """Polynomials from which the signals are made; sliding velocities need the whole motion."""
    wanted = [(s.field, s.index) for s in signals if s.field != "sliding_velocity"]
    if len(wanted) < len(signals):
        motion = [(field, i) for field in "qv" for i in range(n)]
        return motion + [w for w in wanted if w not in motion]
    return list(dict.fromkeys(wanted))


def _assembled(mechanics, signals, columns, ts, y) -> Float[Array, "m k"]:
    found = []
    for signal in signals:
        if signal.field == "sliding_velocity":
            n = mechanics.n
            slides = jax.vmap(mechanics.sliding_at)(ts, y[:, :n], y[:, n : 2 * n])
            found.append(slides[:, signal.index])
        else:
            found.append(y[:, columns.index((signal.field, signal.index))])
    return jnp.stack(found, axis=1)
