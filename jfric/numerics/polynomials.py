"""Polynomials by their coefficients, constant term first: values, slopes, combinations."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matmul, matvec

#: Degree of the polynomials through sampled values; a high one amplifies rounding errors.
DEGREE = {"float64": 8, "float32": 4}


def horner(coefficients: Float[Array, "p ..."] | Sequence, s) -> Float[Array, ...]:
    """Value at ``s`` of the polynomial with the given coefficients, constant term first."""
    value = coefficients[-1]
    for k in range(len(coefficients) - 2, -1, -1):
        value = value * s + coefficients[k]
    return value


def powers(s, count: int) -> Float[Array, " p"]:
    """Powers ``1, s, ..., s^(count - 1)``; at least two."""
    table = jnp.stack([jnp.ones_like(s), s])
    while table.shape[0] < count:
        table = jnp.concatenate([table, table * (table[-1] * s)])
    return table[:count]


@jax.custom_jvp
def evaluate(coefficients: Float[Array, "p k"], s) -> Float[Array, " k"]:
    """Values at ``s`` of several polynomials on which many other values depend.

    The loop keeps the compiler from repeating the evaluation at each use; it has two rounds, as a
    single one would be unrolled.
    """

    def body(i, _):
        # Depends on the round, as otherwise the evaluation would be moved out of the loop.
        return horner(coefficients, select(i < 2, s, 0.0))

    return jax.lax.fori_loop(0, 2, body, jnp.zeros_like(coefficients[0]))


@evaluate.defjvp
def _evaluate_jvp(primals, tangents):
    (coefficients, s), (change, ds) = primals, tangents
    value, slope = horner_with_slope(coefficients, s)
    return value, horner(change, s) + slope * ds


@jax.custom_jvp
def with_derivatives(coefficients: Float[Array, "p k"], s, value) -> Float[Array, " k"]:
    """Known ``value`` of the polynomials at ``s``, with the derivatives of :func:`evaluate`."""
    del coefficients, s
    return value


@with_derivatives.defjvp
def _with_derivatives_jvp(primals, tangents):
    coefficients, s, value = primals
    _, change = _evaluate_jvp((coefficients, s), tangents[:2])
    return with_derivatives(coefficients, s, value), change


def horner_with_slope(coefficients: Float[Array, "p ..."] | Sequence, s):
    """Value and first derivative at ``s``."""
    value, slope = coefficients[-1], jnp.zeros_like(coefficients[-1])
    for k in range(len(coefficients) - 2, -1, -1):
        slope = slope * s + value
        value = value * s + coefficients[k]
    return value, slope


def combine(
    coefficients: Float[Array, "p k"], rows: Float[Array, "g k"] | None
) -> Float[Array, "p g"]:
    """Linear combinations of polynomials; with ``rows`` None the polynomials themselves."""
    return coefficients if rows is None else matmul(coefficients, rows.T)


def pick(
    coefficients: Float[Array, "p k"], rows: Float[Array, "g k"] | None, chosen: Bool[Array, " g"]
) -> Float[Array, " p"]:
    """Combination that ``chosen`` marks (at most one is True)."""
    if rows is None:
        return jnp.sum(select(chosen, coefficients, 0.0), axis=1)
    return matvec(coefficients, jnp.sum(select(chosen[:, None], rows, 0.0), axis=0))


@functools.cache
def nodes_and_fit(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev-Lobatto nodes on [0, 1] and the matrix from values there to coefficients."""
    degree = DEGREE[dtype]
    nodes = 0.5 * (1.0 - np.cos(np.pi * np.arange(degree + 1) / degree))
    vandermonde = np.vander(nodes, degree + 1, increasing=True)
    return nodes.astype(dtype), np.linalg.inv(vandermonde).astype(dtype)


def through_ends(polynomial, values):
    """Polynomial that meets the first and the last value to rounding, as the fit loses digits."""
    polynomial = polynomial.at[0].set(values[0])
    return polynomial.at[-1].add(values[-1] - jnp.sum(polynomial, axis=0))
