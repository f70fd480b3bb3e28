"""Floquet multipliers: eigenvalues of the monodromy matrix, with derivatives and exact zeros."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float, Int

from jfric.numerics.linear_algebra import eigenvalues, matmul, singular_values

#: Singular values, as parts of the largest one, below which they are rounding errors of directions
#: that sticking has erased.
ERASED = 1e-13
#: Distance from one below which a multiplier is one: a contact that sticks for a whole cycle stays
#: where it is put.
NEUTRAL = 1e-9


def none_grows(largest):
    """Whether small deviations do not grow; ``largest``: size of the largest multiplier."""
    return largest <= 1.0 + NEUTRAL


def erased(a: Float[Array, "x x"]) -> Int[Array, ""]:
    """Number of multipliers that are exactly zero: the dimension that powers of ``a`` erase."""
    size = a.shape[0]
    largest = jnp.max(jnp.abs(a))

    def smaller(carry):
        a, _, count = carry
        u, values, _ = singular_values(a)
        zero = values <= ERASED * size * largest
        # The part of a on its own range has the same eigenvalues except zeros. Columns of u that
        # belong to a singular value of zero may be zero themselves: nothing uses them.
        u = jnp.where(zero[None, :], 0.0, u)
        return matmul(u.T, matmul(a, u)), count, jnp.sum(zero).astype(jnp.int32)

    def grows(carry):
        # If a power takes no more dimensions to zero than the one before, no further one does.
        _, before, count = carry
        return count > before

    start = a, jnp.asarray(-1, jnp.int32), jnp.asarray(0, jnp.int32)
    return jax.lax.while_loop(grows, smaller, start)[2]


def multipliers(
    a: Float[Array, "x x"],
) -> tuple[Complex[Array, " x"], Complex[Array, "x x"]]:
    """Eigenvalues of ``a``, the largest first, and eigenvectors as columns; those of erased
    directions are exactly zero."""
    values, vectors = eigenvalues(a)
    order = jnp.argsort(-jnp.abs(values), stable=True)
    filled = jnp.where(jnp.all(jnp.isfinite(a)), a, jnp.eye(a.shape[0], dtype=a.dtype))
    count = a.shape[0] - erased(jax.lax.stop_gradient(filled))
    zero = jnp.arange(a.shape[0], dtype=jnp.int32) >= count
    known = jnp.isfinite(values).all()
    values = jnp.where(zero & known, 0.0, values[order])
    return values, vectors[:, order]
