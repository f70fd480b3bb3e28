"""Linear systems that may be singular: Gauss-Jordan elimination with complete pivoting.

It uses plain array operations, so that a large batch of small systems runs without a library call
for each. The decisions have no derivatives; one step of refinement carries those of the solution.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.choice import select
from jfric.numerics.tolerances import tolerance_of

#: Pivots below this fraction of the largest entry of the scaled matrix, and defects of dependent
#: equations below this fraction of the numbers involved, are zero, unless the precision needs more.
ZERO = 1e-11


class General(NamedTuple):
    """All solutions of ``A x = b``: ``x + null @ y``.

    ``size``: magnitude of the contributions to each unknown, the reference size for rounding
    errors. ``null`` (m, m): a column for each free unknown, zero columns elsewhere. ``nullity``:
    number of free unknowns. ``consistent``: whether there is a solution.
    """

    x: Float[Array, " m"]
    size: Float[Array, " m"]
    null: Float[Array, "m m"]
    nullity: Int[Array, ""]
    consistent: Bool[Array, ""]


def solve_general(A: Float[Array, "r m"], b: Float[Array, " r"]) -> General:
    """All solutions of ``A x = b``, ``r`` equations for ``m`` unknowns."""
    frozen = jax.lax.stop_gradient(A)
    row, column = equilibrate(frozen)
    reduced, inverse, pivot = _reduce(frozen * row[:, None] * column)
    chosen = pivot.any(axis=0)
    # pivot[i, j]: equation i was solved for unknown j.
    place = pivot.T.astype(A.dtype)
    solve = column[:, None] * (place @ inverse) * row
    at = jax.lax.stop_gradient(b)
    x = solve @ at
    x = x + solve @ (at - frozen @ x)
    size = jnp.abs(solve) @ jnp.abs(at)
    size = jnp.maximum(size, jnp.abs(x))
    x = jax.lax.stop_gradient(x)
    x = x + solve @ (b - A @ x)
    free = select(chosen, 0.0, 1.0)
    null = jax.lax.stop_gradient(column[:, None] * (jnp.diag(free) - place @ reduced * free))
    null = null - solve @ (A @ null)
    # Equations without a pivot must hold by themselves.
    idle = ~pivot.any(axis=1)
    defect = jnp.abs(inverse @ (row * at))
    involved = jnp.abs(inverse) @ (row * jnp.abs(at))
    return General(
        x=x,
        size=size,
        null=null,
        nullity=jnp.sum(~chosen, dtype=jnp.int32),
        consistent=jnp.all(~idle | (defect <= tolerance_of(A.dtype, ZERO) * involved)),
    )


def equilibrate(A: Float[Array, "r m"]):
    """Factors of rows and columns after which the largest entry of each is near one."""
    size = jnp.abs(A)
    row, column = jnp.ones((A.shape[0],), A.dtype), jnp.ones((A.shape[1],), A.dtype)
    for _ in range(3):
        scaled = size * row[:, None] * column
        row = row * _factor(jnp.max(scaled, axis=1, initial=0.0))
        column = column * _factor(jnp.max(scaled, axis=0, initial=0.0))
    return row, column


def _factor(largest):
    return jax.lax.rsqrt(select(largest > 0, largest, 1.0))


def _reduce(A):
    """Reduced form ``(R, G, pivot)`` of ``A``, with ``R = G A``: unit columns at the pivots."""
    rows, columns = A.shape
    smallest = tolerance_of(A.dtype, ZERO) * jnp.max(jnp.abs(A), initial=0.0)

    def step(carry, _):
        R, G, pivot = carry
        taken_row, taken_column = pivot.any(axis=1), pivot.any(axis=0)
        left = ~taken_row[:, None] & ~taken_column
        candidates = select(left, jnp.abs(R), -1.0)
        best = jnp.argmax(candidates)
        here = jnp.arange(rows * columns).reshape(rows, columns) == best
        here = here & (candidates > smallest)
        found = here.any()
        in_row, in_column = here.any(axis=1), here.any(axis=0)
        value = jnp.sum(select(here, R, 0.0))
        scale = select(found, 1.0 / select(found, value, 1.0), 0.0)
        line = scale * jnp.sum(select(in_row[:, None], R, 0.0), axis=0)
        operation = scale * jnp.sum(select(in_row[:, None], G, 0.0), axis=0)
        factor = jnp.sum(select(in_column, R, 0.0), axis=1)
        R = select(in_row[:, None], line, R - factor[:, None] * line)
        G = select(in_row[:, None], operation, G - factor[:, None] * operation)
        return (R, G, pivot | here), None

    carry = (A, jnp.eye(rows, dtype=A.dtype), jnp.zeros((rows, columns), bool))
    carry, _ = jax.lax.scan(step, carry, None, length=min(rows, columns))
    return carry
