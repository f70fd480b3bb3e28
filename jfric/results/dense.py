"""A trajectory between its outputs: piece after piece, each as polynomials."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.errors import ProblemError
from jfric.numerics.polynomials import horner
from jfric.numerics.printing import printable

if TYPE_CHECKING:
    from jfric.results.pieces import Piece
    from jfric.results.solution import Solution

#: Number of pieces that ``dense=True`` reserves space for.
DEFAULT_PIECES = 1024
#: Side whose values are used where a piece ends and the next begins.
Side = Literal["before", "after"]
SIDES = ("before", "after")
_CURVES = ("q", "v", "a", "lambda_t", "lambda_n")


@printable
class Moment(NamedTuple):
    """A trajectory at given times ``t`` [s]: arrays with the axes of the times in front.

    Values are NaN (mode and segment: -1) at times that the run did not reach. Values at the start,
    in between and at the end::

        >>> moment = jfric.simulate(problem, dense=True).evaluate(jnp.array([0.0, 0.1, 4.0]))
        >>> moment.q.shape, moment.a[0].tolist(), round(float(moment.q[2, 0]), 9)
        ((3, 1), [14.0], 0.32)
    """

    t: Float[Array, "*times"]
    #: Positions, velocities and accelerations [m, rad and per s, s^2].
    q: Float[Array, "*times n"]
    v: Float[Array, "*times n"]
    a: Float[Array, "*times n"]
    #: Friction forces of all contacts, normal forces of the unilateral ones [N].
    lambda_t: Float[Array, "*times nt"]
    lambda_n: Float[Array, "*times nu"]
    #: :class:`jfric.Mode` of each contact, segment of each piecewise-linear element.
    mode: Int[Array, "*times nt"]
    segment: Int[Array, "*times ns"]
    #: States of elements, as :attr:`jfric.Solution.states` names them.
    z: Float[Array, "*times z"]


class Dense(eqx.Module):
    """Pieces of a trajectory in order of time, at most ``P``.

    On piece ``i`` all quantities are polynomials in ``s = (time - t[i]) / h[i]``, ``0 <= s <= 1``.
    """

    #: Start [s] (infinite in unused rows), length [s] and end [s] of each piece.
    t: Float[Array, " P"]
    h: Float[Array, " P"]
    end: Float[Array, " P"]
    #: Coefficients of q, v, a, lambda_t, lambda_n and z as columns, constant term first.
    table: Float[Array, "P p k"]
    #: Modes, then segments.
    modes: Int[Array, "P c"]
    #: Pieces of the trajectory; more than ``P`` if the space did not suffice.
    count: Int[Array, ""]
    #: Degrees of freedom, contacts, unilateral contacts.
    sizes: tuple[int, int, int] = eqx.field(static=True)

    def evaluate(self, t, *, side: Side = "before") -> Moment:
        """The trajectory at the times ``t`` [s], an array of any shape; see
        :meth:`jfric.Solution.evaluate`."""
        if side not in SIDES:
            raise ProblemError(f"side: found {side!r}, allowed are 'before' and 'after'")
        t = jnp.asarray(t, self.t.dtype)
        found = jax.vmap(lambda x: self._at(x, side))(t.ravel())
        return jax.tree.map(lambda x: x.reshape(*t.shape, *x.shape[1:]), found)

    def _at(self, t: Float[Array, ""], side: Side) -> Moment:
        starts, time = jax.lax.stop_gradient((self.t, t))
        behind = jnp.searchsorted(starts, time, side="left" if side == "before" else "right")
        i = jnp.clip(behind - 1, 0, starts.shape[0] - 1)
        # A time that rounding has put after the end of the run belongs to the end.
        slack = 4 * jnp.finfo(t.dtype).eps * jnp.abs(time)
        known = (self.count > 0) & (time >= starts[0]) & (time <= self.end[i] + slack)
        moves = known & (self.h[i] > 0)
        s = jnp.where(moves, (t - self.t[i]) / jnp.where(moves, self.h[i], 1.0), 0.0)
        values = jnp.where(known, horner(self.table[i], s), jnp.nan)
        modes = jnp.where(known, self.modes[i], -1)
        n, nt, nu = self.sizes
        q, v, a, lambda_t, lambda_n, z = jnp.split(values, np.cumsum([n, n, n, nt, nu]))
        return Moment(t, q, v, a, lambda_t, lambda_n, modes[:nt], modes[nt:], z)


def coefficients(piece: Piece) -> tuple[Float[Array, "p k"], Int[Array, " c"]]:
    """All polynomials of a piece as columns, filled up to one length, and its modes."""
    curves = [getattr(piece, name) for name in _CURVES]
    curves += [] if piece.z is None else [piece.z]
    length = max(x.shape[0] for x in curves)
    filled = [jnp.pad(x, ((0, length - x.shape[0]), (0, 0))) for x in curves]
    return jnp.concatenate(filled, axis=1), jnp.concatenate([piece.mode, piece.segment])


def empty_dense(table, modes, sizes: tuple[int, int, int], capacity: int) -> Dense:
    """Space for ``capacity`` pieces of the shapes ``table`` (p, k) and ``modes`` (c,), and a spare
    row for pieces that are not kept."""
    rows, dtype = capacity + 1, table.dtype
    return Dense(
        t=jnp.full((rows,), jnp.inf, dtype),
        h=jnp.zeros((rows,), dtype),
        end=jnp.full((rows,), -jnp.inf, dtype),
        table=jnp.zeros((rows, *table.shape), dtype),
        modes=jnp.full((rows, *modes.shape), -1, jnp.int32),
        count=jnp.asarray(0, jnp.int32),
        sizes=sizes,
    )


def store(dense: Dense, piece: Piece, on) -> Dense:
    """``dense`` with one more piece where ``on``."""
    spare = dense.t.shape[0] - 1
    row = jnp.where(on, jnp.minimum(dense.count, spare), spare)
    table, modes = coefficients(piece)

    def put(buffer, value):
        start = (row, *(jnp.zeros_like(row),) * value.ndim)
        return jax.lax.dynamic_update_slice(buffer, value[None].astype(buffer.dtype), start)

    new = {"t": piece.t, "h": piece.h, "end": piece.end, "table": table, "modes": modes}
    rows = {name: put(getattr(dense, name), x) for name, x in new.items()}
    return dataclasses.replace(dense, count=dense.count + on.astype(jnp.int32), **rows)


def finished(dense: Dense) -> Dense:
    """``dense`` without its spare row."""
    capacity = dense.t.shape[0] - 1
    used = jnp.arange(capacity) < dense.count

    def kept(x, nothing):
        return jnp.where(used.reshape(-1, *(1,) * (x.ndim - 1)), x[:capacity], nothing)

    empty = {"t": jnp.inf, "h": 0.0, "end": -jnp.inf, "table": 0.0, "modes": -1}
    changed = {name: kept(getattr(dense, name), x) for name, x in empty.items()}
    return dataclasses.replace(dense, **changed)


def dense_from_outputs(solution: Solution) -> Dense:
    """Pieces between the outputs and logged events of a solver that has no polynomials.

    Positions are cubics through positions and velocities at both ends (Hermite); velocities and
    accelerations are their derivatives; reactions are straight lines from output to output.
    """
    log, m = solution.events, solution.ts.shape[0]
    logged = jnp.arange(log.time.shape[0]) < log.count
    reached = jnp.isfinite(solution.q.sum(axis=1))
    known = jnp.concatenate([logged, reached])
    times = jnp.where(known, jnp.concatenate([log.time, solution.ts]), jnp.inf)
    # Events first: their result is the start of the motion to an output at the same time.
    order = jnp.argsort(jax.lax.stop_gradient(times), stable=True)
    t = times[order]
    q, before, after = (
        jnp.where(known[:, None], jnp.concatenate(parts), 0.0)[order]
        for parts in ((log.q, solution.q), (log.v_before, solution.v), (log.v, solution.v))
    )
    # Events before the first output and after the last one have no reactions.
    first, last = solution.ts[0], jnp.max(jnp.where(reached, solution.ts, -jnp.inf))
    used = jnp.isfinite(t[1:]) & (t[:-1] >= first) & (t[1:] <= last)
    h = jnp.where(used, t[1:] - t[:-1], 0.0)
    length = jnp.where(h > 0, h, 1.0)[:, None]
    rise, start, end = q[1:] - q[:-1], h[:, None] * after[:-1], h[:, None] * before[1:]
    cubic = [q[:-1], start, 3.0 * rise - 2.0 * start - end, start + end - 2.0 * rise]
    speed = [cubic[1] / length, 2.0 * cubic[2] / length, 3.0 * cubic[3] / length]
    rate = [speed[1] / length, 2.0 * speed[2] / length]
    reactions = jnp.concatenate([solution.lambda_t, solution.lambda_n], axis=1)
    at_nodes = _between(t, solution.ts, jnp.where(reached[:, None], reactions, 0.0))
    line = [at_nodes[:-1], at_nodes[1:] - at_nodes[:-1]]

    def filled(parts):
        parts = jnp.stack(parts, axis=1)
        return jnp.pad(parts, ((0, 0), (0, 4 - parts.shape[1]), (0, 0)))

    table = jnp.concatenate([filled(x) for x in (cubic, speed, rate, line)], axis=2)
    # Unused pieces go to the end.
    place = jnp.argsort(~used, stable=True)
    n, nt = solution.q.shape[1], solution.mode.shape[1]
    return Dense(
        t=jnp.where(used, t[:-1], jnp.inf)[place],
        h=h[place],
        end=jnp.where(used, t[1:], -jnp.inf)[place],
        table=jnp.where(used[:, None, None], table, 0.0)[place],
        modes=_modes(solution, t, m)[place],
        count=jnp.sum(used, dtype=jnp.int32),
        sizes=(n, nt, solution.lambda_n.shape[1]),
    )


def _between(t, ts, values):
    """Linear interpolation of ``values`` (m, k) at ``ts`` (m,) to the times ``t``."""
    i = jnp.clip(jnp.searchsorted(ts, t, side="right") - 1, 0, max(ts.shape[0] - 2, 0))
    j = jnp.minimum(i + 1, ts.shape[0] - 1)
    h = ts[j] - ts[i]
    moves = (h > 0) & jnp.isfinite(t)
    s = jnp.where(moves, (jnp.where(moves, t, 0.0) - ts[i]) / jnp.where(h > 0, h, 1.0), 0.0)
    return values[i] + s[:, None] * (values[j] - values[i])


def _modes(solution: Solution, t, m: int) -> Int[Array, "P c"]:
    """Modes between the nodes ``t``: those of the next output, unless an event comes first."""
    log, end = solution.events, t[1:]
    following = jnp.minimum(jnp.searchsorted(solution.ts, end, side="left"), m - 1)
    modes = jnp.concatenate([solution.mode, solution.segment], axis=1)[following]
    logged = jnp.arange(log.time.shape[0]) < log.count
    if log.time.shape[0] == 0:
        return modes
    inside = (log.time >= end[:, None]) & (log.time <= solution.ts[following][:, None]) & logged
    columns = []
    for contact in range(modes.shape[1]):
        mine = inside & (log.contact == contact)
        columns.append(
            jnp.where(mine.any(axis=1), log.from_mode[jnp.argmax(mine, axis=1)], modes[:, contact])
        )
    return jnp.stack(columns, axis=1) if columns else modes
