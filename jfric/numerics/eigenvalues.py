"""Eigenvalues with derivatives, and the pair of eigenvalues that meets at a coalescence."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

from jfric.numerics.choice import select


@jax.custom_jvp
def eigenvalues(
    a: Float[Array, "x x"],
) -> tuple[Complex[Array, " x"], Complex[Array, "x x"]]:
    """Eigenvalues of ``a``, NaN where it is not finite, and eigenvectors as columns."""
    values, vectors, _ = _decomposed(a)
    return values, vectors


def _decomposed(a):
    known = jnp.all(jnp.isfinite(a))
    filled = select(known, a, jnp.eye(a.shape[0], dtype=a.dtype))
    values, left, right = jax.lax.linalg.eig(filled, compute_left_eigenvectors=True)
    return select(known, values, jnp.nan), right, left


@eigenvalues.defjvp
def _eigenvalues_jvp(primals, tangents):
    """``d lambda = w^H da v / (w^H v)``; eigenvectors have no derivatives here."""
    values, right, left = _decomposed(primals[0])
    change = tangents[0].astype(right.dtype)
    product = jnp.sum(jnp.conj(left) * right, axis=0)
    moved = jnp.sum(jnp.conj(left) * (change @ right), axis=0)
    one = product == 0
    slopes = select(one, 0.0, moved / select(one, 1.0, product))
    return (values, right), (slopes, jnp.zeros_like(right))


def nearest_eigenvalue(a: Float[Array, "x x"], near) -> Complex[Array, ""]:
    """Eigenvalue of ``a`` nearest to the number ``near``."""
    values, _ = eigenvalues(a)
    return values[jnp.argmin(jnp.abs(values - near))]


def nearest_pair(a: Float[Array, "x x"], near) -> tuple[Complex[Array, ""], Complex[Array, ""]]:
    """Mean of the two eigenvalues of ``a`` nearest to the number ``near``, and the square of half
    their difference.

    Both are smooth where the two meet, with derivatives of first order, although the eigenvalues
    themselves have none there: ``a`` is restricted to the plane that belongs to both. Source:
    T. Kato, Perturbation Theory for Linear Operators (1995), section II.2.
    """
    fixed = jax.lax.stop_gradient(a)
    values, _ = eigenvalues(fixed)
    one, two = values[jnp.argsort(jnp.abs(values - near))[:2]]
    size, eye = a.shape[0], jnp.eye(a.shape[0], dtype=a.dtype)
    # Sum and product are known to rounding where the eigenvalues are known to its root only.
    square = fixed @ fixed - (one + two) * fixed + one * two * eye
    u, _, vh = jnp.linalg.svd(square)
    right, left = jnp.conj(vh[size - 2 :].T), jnp.conj(u[:, size - 2 :].T)
    right, left = jax.lax.stop_gradient((right, left))
    b = jnp.linalg.solve(left @ right, left @ a.astype(right.dtype) @ right)
    mean = 0.5 * (b[0, 0] + b[1, 1])
    half = 0.5 * (b[0, 0] - b[1, 1])
    return mean, half * half + b[0, 1] * b[1, 0]
