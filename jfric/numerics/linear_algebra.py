"""Small dense linear algebra for loops that run in large batches.

Matrices of mechanical systems are tiny; calls to library routines then cost more than the
arithmetic. Which form pays is decided here, once.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Complex, Float

from jfric.numerics.choice import select

#: Products of matrix and vector with up to this many entries are sums that the compiler fuses with
#: the surrounding operations; larger ones call the library.
FUSED_ENTRIES = 150
#: Largest number of terms in the fused sums of a product of two matrices.
FUSED_TERMS = 10
#: Matrices up to this size are inverted by unrolled elimination.
UNROLLED_INVERSE = 5
#: Size up to which elimination is unrolled where each round searches for its row.
SEARCHED = 2
#: Pivot beyond which a row that should come first does come first.
FIRST = 1e-3
#: Matrices up to this size are decomposed by rotations, larger ones by a library.
ROTATED = 32
#: Sweeps over all pairs of columns; convergence is quadratic, and 6 to 10 are usual.
MAX_SWEEPS = 30


def matvec(a: Float[Array, "m n"], x: Float[Array, " n"]) -> Float[Array, " m"]:
    """Product ``a @ x``."""
    m, n = a.shape
    if n == 0 or m == 0:
        return jnp.zeros((m,), a.dtype)
    if m * n > FUSED_ENTRIES:
        return a @ x
    return jax.lax.reduce_sum(a * jax.lax.broadcast_in_dim(x, (m, n), (1,)), (1,))


def matmul(a: Float[Array, "l m"], b: Float[Array, "m n"]) -> Float[Array, "l n"]:
    """Product ``a @ b``."""
    (l, m), n = a.shape, b.shape[1]
    if 0 in (l, m, n):
        return jnp.zeros((l, n), a.dtype)
    if m > FUSED_TERMS:
        return a @ b
    # Indices with None would take three times as long to trace.
    terms = jax.lax.broadcast_in_dim(a, (l, m, n), (0, 1))
    return jax.lax.reduce_sum(terms * jax.lax.broadcast_in_dim(b, (l, m, n), (1, 2)), (1,))


def diagonal_of(a: Float[Array, "m m"]) -> Float[Array, " m"]:
    """Entries on the diagonal, by a selection: indexing each entry takes ten times as many
    operations to trace."""
    return jax.lax.reduce_sum(select(np.eye(a.shape[0], dtype=bool), a, 0.0), (1,))


def diagonal_matrix(x: Float[Array, " m"]) -> Float[Array, "m m"]:
    """Matrix with ``x`` on its diagonal, as a selection."""
    return select(np.eye(x.shape[0], dtype=bool), x, 0.0)


def picked(x: Array, rows) -> Array:
    """Entries ``x[rows]`` along the first axis, for known ``rows`` within the array: a slice where
    they follow each other. Indexing with an array would take five operations to trace."""
    rows = np.asarray(rows)
    flat = rows.ravel()
    if np.array_equal(rows, np.arange(x.shape[0])):
        return x
    if flat.size and np.array_equal(flat, np.arange(flat[0], flat[0] + flat.size)):
        found = jax.lax.slice_in_dim(x, int(flat[0]), int(flat[0]) + flat.size)
    else:
        found = jax.lax.gather(
            x,
            flat.astype(np.int32)[:, None],
            jax.lax.GatherDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,)),
            (1, *x.shape[1:]),
            mode="promise_in_bounds",
        )
    return found if rows.ndim == 1 else found.reshape(*rows.shape, *x.shape[1:])


def placed(x: Array, rows, values: Array) -> Array:
    """``x`` with ``values`` at known ``rows`` within the array, along the first axis: a single
    operation where the rows follow each other."""
    rows = np.asarray(rows)
    if not rows.size or np.array_equal(rows, np.arange(x.shape[0])):
        return values if rows.size else x
    if not np.array_equal(rows, np.arange(rows[0], rows[0] + rows.size)):
        return x.at[rows].set(values)
    start = (int(rows[0]), *(0,) * (x.ndim - 1))
    return jax.lax.dynamic_update_slice(x, values, start)


def _picked(a: Array, k, axis: int = 0) -> Array:
    """Row or column ``k`` (within the array), traced or not, in few operations."""
    if isinstance(k, int):
        return jax.lax.index_in_dim(a, k, axis, keepdims=False)
    start, size = [0] * a.ndim, [*a.shape]
    start[axis], size[axis] = k, 1
    found = jax.lax.dynamic_slice(a, start, size, allow_negative_indices=False)
    return jax.lax.squeeze(found, (axis,))


class Elimination(NamedTuple):
    """Result of :func:`eliminate`.

    ``inverse``: of the block of independent rows, zero elsewhere. ``reduced``: columns of dependent
    rows as combinations of those of independent ones; its other columns have no meaning. ``pivot``:
    smallest pivot of an independent row.
    """

    inverse: Float[Array, "m m"]
    reduced: Float[Array, "m m"]
    dependent: Bool[Array, " m"]
    pivot: Float[Array, ""]


def eliminate(
    a: Float[Array, "m m"],
    threshold: float,
    first: Bool[Array, " m"] | None = None,
    active: Bool[Array, " m"] | None = None,
) -> Elimination:
    """Gauss-Jordan elimination on the diagonal, leaving dependent rows out.

    Meant for matrices with unit diagonal scale whose principal minors are positive in every regular
    case. With a ``threshold`` the largest pivot comes first, so that independent rows are well
    conditioned; a pivot below the threshold marks a row as dependent on earlier ones: the row and
    its column are left out. Rows in ``first`` come before all others, as long as they have a pivot.
    A negative pivot is information about the contacts, and is reported, not avoided. Rows and
    columns that are not ``active`` are those of the identity and need no operations.
    """
    active = jnp.ones((a.shape[0],), bool) if active is None else active
    return Elimination(*_exchange(threshold, a, first, active))


def null_space(
    found: Elimination, weight: Float[Array, " m"], active: Bool[Array, " m"]
) -> Float[Array, "m m"]:
    """Null space, by columns: each ``dependent`` row and the independent ones that balance it.

    Other columns are zero. ``weight``: scale of rows and columns before the elimination ``found``;
    ``active``: rows that take part.
    """
    balance, dependent = found.reduced * weight[:, None] / weight[None, :], found.dependent
    columns = select(dependent[None, :] & active[:, None], -balance, 0.0)
    own = jnp.eye(dependent.shape[0], dtype=balance.dtype)
    return select(dependent[:, None] & dependent[None, :], own, columns)


def least_norm(
    x: Float[Array, "m k"], N: Float[Array, "m m"], dependent: Bool[Array, " m"]
) -> Float[Array, "m k"]:
    """``x`` without its part in the ``dependent`` columns of ``N``, whose other columns are
    zero."""
    gram = N.T @ N + diagonal_matrix(select(dependent, 0.0, 1.0).astype(N.dtype))
    inner = eliminate(gram, 0.0, active=dependent).inverse
    return x - N @ (inner @ (N.T @ x))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _exchange(threshold: float, a, first, active):
    """Elimination in place: the column of a pivot that is done holds the column of the inverse. A
    loop has one round for each active row; where rows are few, one round for each row is
    unrolled."""
    m = a.shape[0]
    # With a threshold each round searches for its row: a loop over rounds is as fast, and shorter.
    few = m <= (SEARCHED if threshold else UNROLLED_INVERSE)
    carry = (a, jnp.zeros((m,), bool), jnp.asarray(jnp.inf, a.dtype))
    if few and not threshold:
        for i in range(m):
            carry = _pivoted(threshold, i, carry)
        return carry[0], *carry

    def largest(a, left):
        size = diagonal_of(a)
        if first is not None:
            size = select(first & (size > FIRST), size + 1e3, size)
        return jnp.argmax(select(left, size, -jnp.inf))

    def body(i, carry):
        *carry, left = carry
        i = largest(carry[0], left) if threshold else jnp.argmax(left)
        return *_pivoted(threshold, i, carry), left & (np.arange(m) != i)

    # Rows that are not active change nothing: skipping them pays only in a loop.
    carry = (*carry, jnp.ones((m,), bool) if few else active)
    if few:
        for i in range(m):
            carry = body(i, carry)
    else:
        carry = jax.lax.fori_loop(0, jnp.sum(active), body, carry)
    a, dependent, pivot = carry[:3]
    outside = dependent[:, None] | dependent[None, :]
    return select(outside, 0.0, a), a, dependent, pivot


def _pivoted(threshold: float, k, carry):
    """One round of :func:`_exchange`, with the pivot of row ``k``."""
    a, dependent, smallest = carry
    m = a.shape[0]
    at = np.arange(m) == k
    row = _picked(a, k)
    value, column = _picked(row, k), _picked(a, k, 1)
    smaller, used = jnp.minimum(smallest, value), at
    if threshold:
        skip = jnp.abs(value) < threshold
        reciprocal = select(skip, 0.0, 1.0 / select(skip, 1.0, value))
        column, used = select(skip, 0.0, column), at & ~skip
        smaller, dependent = select(skip, smallest, smaller), dependent | (skip & at)
    else:
        # Every pivot is used: there is no decision.
        reciprocal = 1.0 / value
    row = select(at, 1.0, row) * reciprocal
    factor = jax.lax.broadcast_in_dim(select(at, -1.0, column), (m, m), (0,))
    product = factor * jax.lax.broadcast_in_dim(row, (m, m), (1,))
    return select(at[:, None] | used[None, :], 0.0, a) - product, dependent, smaller


@_exchange.defjvp
def _exchange_jvp(threshold, primals, tangents):
    """Derivatives of the inverse and of the combinations, by products; a pivot only decides."""
    inverse, reduced, dependent, pivot = found = _exchange(threshold, *primals)
    change = -(inverse @ tangents[0])
    unit = diagonal_matrix(dependent.astype(inverse.dtype))
    combined = select(dependent[None, :] & ~dependent[:, None], reduced, 0.0)
    none = np.zeros(dependent.shape, jax.dtypes.float0)
    return found, (change @ inverse, change @ (combined - unit), none, jnp.zeros_like(pivot))


class SingularValues(NamedTuple):
    """Factors of ``a = u @ diag(values) @ vt``; the values are in no particular order.

    Columns of ``u`` that belong to a value of zero may be zero.
    """

    u: Float[Array, "m m"]
    values: Float[Array, " m"]
    vt: Float[Array, "m m"]


def singular_values(a: Float[Array, "m m"]) -> SingularValues:
    """Singular value decomposition, of small matrices by one-sided Jacobi rotations.

    The rotations are plain array operations instead of a call to LAPACK for each matrix. They run
    over whole batches at once, also on machines with one processor, where jaxlib 0.10.1 loses the
    interface version of such calls in longer programs. Use it without derivatives.

    In round ``r`` of a sweep column ``i`` is rotated with column ``r - i`` (modulo m): in m rounds
    every pair meets.

    Source: J. Demmel, K. Veselic, Jacobi's method is more accurate than QR (1992), algorithm 4.1.
    """
    m = a.shape[0]
    if m > ROTATED:
        return SingularValues(*jnp.linalg.svd(a))
    index = jnp.arange(m)
    epsilon = jnp.finfo(a.dtype).eps

    def rotate(r, carry):
        w, v, largest = carry
        partner = (r - index) % m
        other = w[:, partner]
        size = jnp.sum(w * w, axis=0)
        product = jnp.sum(w * other, axis=0)
        both = jnp.sqrt(size) * jnp.sqrt(size[partner])
        # Columns of rounding errors alone have no direction that a rotation could change.
        skip = (partner == index) | (jnp.abs(product) <= epsilon * both)
        skip = skip | (both <= (m * epsilon) ** 2 * jnp.max(size))
        zeta = (size[partner] - size) / (2.0 * select(skip, 1.0, product))
        sign = select(zeta == 0, select(index < partner, 1.0, -1.0), jnp.sign(zeta))
        t = select(skip, 0.0, sign / (jnp.abs(zeta) + jnp.hypot(1.0, zeta)))
        c = 1.0 / jnp.hypot(1.0, t)
        s = c * t
        cosine = select(skip, 0.0, jnp.abs(product) / select(skip, 1.0, both))
        c, s = c[None, :], s[None, :]
        w = c * w - s * other
        v = c * v - s * v[:, partner]
        return w, v, jnp.maximum(largest, jnp.max(cosine))

    def sweep(carry):
        w, v, _, count = carry
        zero = jnp.zeros((), a.dtype)
        return *jax.lax.fori_loop(0, m, rotate, (w, v, zero)), count + 1

    def unfinished(carry):
        *_, largest, count = carry
        return (largest > m * epsilon) & (count < MAX_SWEEPS)

    start = (a, jnp.eye(m, dtype=a.dtype), jnp.asarray(jnp.inf, a.dtype), 0)
    w, v, _, _ = jax.lax.while_loop(unfinished, sweep, start)
    values = jnp.sqrt(jnp.sum(w * w, axis=0))
    u = w / select(values > 0, values, 1.0)[None, :]
    return SingularValues(u, values, v.T)


def determinant_sign(a: Float[Array, "m m"]) -> Float[Array, ""]:
    """Sign of the determinant: 1, -1, or 0; by elimination with the largest pivot of each column.

    Small matrices need no call of LAPACK, as in :func:`singular_values`.
    """
    m = a.shape[0]
    if m > ROTATED:
        return jnp.linalg.slogdet(a)[0]
    index = jnp.arange(m)

    def body(k, carry):
        a, sign = carry
        chosen = jnp.argmax(select(index >= k, jnp.abs(a[:, k]), -1.0))
        row = a[chosen]
        a = a.at[chosen].set(a[k]).at[k].set(row)
        pivot = row[k]
        factor = select(index > k, a[:, k] / select(pivot == 0, 1.0, pivot), 0.0)
        swapped = select(chosen == k, 1.0, -1.0)
        return a - factor[:, None] * row[None, :], sign * swapped * jnp.sign(pivot)

    return jax.lax.fori_loop(0, m, body, (a, jnp.ones((), a.dtype)))[1]


def inverse(A: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """Inverse by Gauss-Jordan elimination with partial pivoting, in plain operations: a large batch
    of small systems runs without a library call for each."""
    m = A.shape[0]
    rows = jnp.arange(m)

    def eliminated(k, both):
        size = select(rows >= k, jnp.abs(both[:, k]), -1.0)
        pivot = jnp.argmax(size)
        first, other = both[k], both[pivot]
        both = both.at[pivot].set(first).at[k].set(other)
        row = other / other[k]
        both = both - select(rows == k, 0.0, both[:, k])[:, None] * row[None, :]
        return both.at[k].set(row)

    start = jnp.concatenate([A, jnp.eye(m, dtype=A.dtype)], axis=1)
    return jax.lax.fori_loop(0, m, eliminated, start)[:, m:]


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
