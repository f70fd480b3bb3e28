"""Lemke's method for linear complementarity problems.

Find ``z >= 0`` with ``w = M z + q >= 0`` and ``w^T z = 0``. The covering variable ``z0`` is
driven out of the basis by complementary pivots. Ties of the ratio test are broken by a generic
perturbation of ``q`` that is carried symbolically, so that degenerate problems do not cycle.

Source: Cottle, Pang, Stone, The Linear Complementarity Problem, section 4.4.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.choice import select
from jfric.numerics.loops import once

#: Ratios closer than this many rounding errors of the largest entry are a tie.
TIE = 1e3
#: Rows and columns of tables up to this size are selected by masks.
MASKED = 16


class LemkeResult(NamedTuple):
    """Solution ``z`` (m,), mask of basic variables, whether ``z0`` left the basis, pivots made."""

    z: Float[Array, " m"]
    basic: Bool[Array, " m"]
    solved: Bool[Array, ""]
    pivots: Int[Array, ""]


class _Tableau(NamedTuple):
    """Table of ``basic = constant[:, 0] + table @ nonbasic``; the second constant is a
    perturbation.

    ``both``: the table, then the two constants. ``largest``: largest magnitude in the table.
    """

    both: Float[Array, "m k"]
    largest: Float[Array, ""]
    rows: Int[Array, " m"]
    columns: Int[Array, " n"]
    entering: Int[Array, ""]
    done: Bool[Array, ""]
    solved: Bool[Array, ""]
    pivots: Int[Array, ""]


def lemke(
    M: Float[Array, "m m"], q: Float[Array, " m"], *, needed: Bool[Array, ""] | bool = True
) -> LemkeResult:
    """Solve the complementarity problem ``0 <= M z + q  _|_  z >= 0``.

    Rows should be scaled to similar size. ``needed``: where False no pivots are made; a batch then
    waits only for the trajectories that need a solution.
    """
    m = q.shape[0]
    labels = np.arange(m, dtype=np.int32)
    cover = 2 * m
    size = jnp.maximum(jnp.max(jnp.abs(q)), jnp.finfo(q.dtype).tiny)
    constant = jnp.stack([q / size, jnp.asarray(_generic(m), q.dtype)], axis=1)
    both = jnp.concatenate([M, jnp.ones((m, 1), q.dtype), constant], axis=1)
    start = _Tableau(
        both=both,
        largest=_largest(both),
        rows=jnp.asarray(labels),
        columns=jnp.asarray(np.append(labels + m, cover), jnp.int32),
        entering=jnp.asarray(cover, jnp.int32),
        done=jnp.all(q >= 0) | ~jnp.asarray(needed),
        solved=jnp.all(q >= 0),
        pivots=jnp.asarray(0, jnp.int32),
    )
    limit = 20 + 10 * m

    def running(t: _Tableau):
        return ~t.done & (t.pivots < limit)

    end = jax.lax.while_loop(running, lambda t: _pivot(t, cover), start)
    z, basic = _by_label(end.rows, end.both[:, -2], m)
    return LemkeResult(size * z, basic, end.solved, end.pivots)


def _by_label(rows, values, m: int):
    """Values of the variables ``z``, zero unless basic, and mask of the basic ones."""
    if m > MASKED:
        basic = jnp.zeros((2 * m + 1,), bool).at[rows].set(True)[m : 2 * m]
        return jnp.zeros((2 * m + 1,), values.dtype).at[rows].set(values)[m : 2 * m], basic
    at = rows[:, None] == np.arange(m, 2 * m, dtype=np.int32)[None]
    return jnp.sum(select(at, values[:, None], 0.0), axis=0), at.any(axis=0)


def _generic(m: int) -> np.ndarray:
    """Positive numbers without simple relations, by multiples of the golden ratio."""
    return 0.5 + np.modf(0.6180339887498949 * np.arange(1, m + 1))[0]


def _largest(both: Float[Array, "m k"]):
    """Largest magnitude of the table, by halves where it is large: comparing one element after the
    other would take longer than the rest of a pivot."""
    size = jnp.abs(both[:, :-2])
    while size.shape[0] > MASKED:
        half = (size.shape[0] + 1) // 2
        size = jnp.maximum(size[:half], size[-half:])
    return jnp.max(jnp.max(size, axis=0))


def _taken(x: Float[Array, "m n"], chosen: Bool[Array, " k"], axis: int) -> Float[Array, " l"]:
    """Chosen row or column of ``x``, zeros if none is chosen; by a mask in small tables, as an
    index would need a gather in a batch."""
    if x.shape[0] <= MASKED:
        return jnp.sum(select(jnp.expand_dims(chosen, 1 - axis), x, 0.0), axis=axis)
    found = jax.lax.dynamic_index_in_dim(x, jnp.argmax(chosen), axis, keepdims=False)
    return select(jnp.any(chosen), found, 0.0)


def _pivot(t: _Tableau, cover: int) -> _Tableau:
    m = t.rows.shape[0]
    eps = jnp.finfo(t.both.dtype).eps
    at_column = jnp.concatenate([t.columns == t.entering, np.zeros((2,), bool)])
    column = _taken(t.both, at_column, 1)
    starts = t.pivots == 0
    # In the first pivot z0 grows until the most negative row is feasible.
    falls = starts | (column < -TIE * eps * t.largest)
    rate = select(starts, 1.0, select(falls, -column, 1.0))
    ratio = select(falls, t.both[:, -2] / rate, jnp.inf)
    least = jnp.min(ratio)
    tie = falls & (ratio <= least + TIE * eps * jnp.maximum(1.0, jnp.abs(least)))
    # The covering variable leaves as soon as possible; otherwise the perturbation decides.
    second = select(t.rows == cover, -jnp.inf, t.both[:, -1] / rate)
    leaves = jnp.arange(m) == jnp.argmin(select(tie, second, jnp.inf))
    leaving = jnp.sum(select(leaves, t.rows, 0), dtype=jnp.int32)
    ray = ~falls.any()

    pivot = jnp.sum(select(leaves, column, 0.0))
    inverse = 1.0 / select(pivot == 0, 1.0, pivot)
    row = select(at_column, inverse, -inverse * _taken(t.both, leaves, 0))
    row = select(ray, 0.0, row)
    # Factors instead of selections: large tables are then computed in one go.
    left, others = select(at_column & ~ray, 0.0, 1.0), select(leaves & ~ray, 0.0, 1.0)
    share = select(leaves, 1.0, column)
    if m > MASKED:
        # Otherwise they would be recomputed for each entry.
        row, share, left, others = once((row, share, left, others), ~t.done)
    both = t.both * (others[:, None] * left[None]) + share[:, None] * row[None]
    complement = select(leaving < m, leaving + m, leaving - m)
    solved = leaving == cover
    return _Tableau(
        both=both,
        largest=_largest(both),
        rows=select(leaves & ~ray, t.entering, t.rows),
        columns=select(at_column[:-2] & ~ray, leaving, t.columns),
        entering=complement,
        done=solved | ray,
        solved=solved & ~ray,
        pivots=t.pivots + 1,
    )
