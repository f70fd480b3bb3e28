"""Curves of cubic pieces through values at knots, straight beyond the first and the last.

On the interval from ``x_i`` to ``x_i + h`` with values ``y_0``, ``y_1`` and slopes ``d_0``,
``d_1``, in Hermite's form with ``u = (x - x_i)/h``::

    y(x) = y_0 + h u d_0 + (y_1 - y_0 - h d_0) u^2 (3 - 2 u) + h (d_1 - d_0) u^2 (u - 1)

Slopes are those of the natural cubic spline (twice continuously differentiable), of the spline with
zero slope at both ends, or those that keep the curve monotone wherever the values are (once
continuously differentiable; F. N. Fritsch, J. Butland, "A method for constructing local monotone
piecewise cubic interpolants", SIAM J. Sci. Stat. Comput. 5 (1984)).
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.numerics.choice import select


def natural_slopes(x: Float[Array, " k"], y: Float[Array, " k"]) -> Float[Array, " k"]:
    """Slopes at the knots of the natural cubic spline: no curvature at both ends."""
    return _spline(x, y, flat=False)


def flat_slopes(x: Float[Array, " k"], y: Float[Array, " k"]) -> Float[Array, " k"]:
    """Slopes at the knots of the cubic spline with zero slope at both ends."""
    return _spline(x, y, flat=True)


def _spline(x, y, *, flat: bool):
    h = jnp.diff(x)
    secant = jnp.diff(y) / h
    if x.shape[0] == 2:
        return jnp.concatenate([secant, secant]) * (0.0 if flat else 1.0)
    one = jnp.ones((1,), x.dtype)
    along = 0.0 if flat else 1.0
    lower = jnp.concatenate([h[1:], along * one])
    upper = jnp.concatenate([along * one, h[:-1]])
    inside = 2.0 * (h[:-1] + h[1:])
    diagonal = jnp.concatenate([2.0 * one, inside, 2.0 * one])
    right = 3.0 * (h[1:] * secant[:-1] + h[:-1] * secant[1:])
    ends = 3.0 * along * secant[:1], 3.0 * along * secant[-1:]
    right = jnp.concatenate([ends[0], right, ends[1]])
    A = jnp.diag(diagonal) + jnp.diag(lower, -1) + jnp.diag(upper, 1)
    return _solve(A, right)


def monotone_slopes(x: Float[Array, " k"], y: Float[Array, " k"]) -> Float[Array, " k"]:
    """Slopes at the knots for a curve that turns only where the values do."""
    h = jnp.diff(x)
    secant = jnp.diff(y) / h
    if x.shape[0] == 2:
        return jnp.concatenate([secant, secant])
    a, b = secant[:-1], secant[1:]
    first, second = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    same = a * b > 0
    safe_a, safe_b = select(same, a, 1.0), select(same, b, 1.0)
    inside = select(same, (first + second) / (first / safe_a + second / safe_b), 0.0)
    # At an end half of the curvature remains, within the limits that keep the curve monotone.
    ends = (1.5 * secant[:1] - 0.5 * inside[:1], 1.5 * secant[-1:] - 0.5 * inside[-1:])
    start, end = (
        select(d * s > 0, d, 0.0) for d, s in zip(ends, (secant[:1], secant[-1:]), strict=True)
    )
    return jnp.concatenate([start, inside, end])


def _solve(A: Float[Array, "k k"], b: Float[Array, " k"]) -> Float[Array, " k"]:
    """Solution of ``A x = b``. Rows of ``A`` are dominated by their diagonal, so that elimination
    needs no exchange of rows."""
    size = b.shape[0]
    rows = jnp.concatenate([A, b[:, None]], axis=1)
    for i in range(size):
        pivot = rows[i] / rows[i, i]
        rows = (rows - rows[:, i : i + 1] * pivot[None, :]).at[i].set(pivot)
    return rows[:, -1]


def evaluate(
    x: Float[Array, " k"], y: Float[Array, " k"], slopes: Float[Array, " k"], at: Float[Array, ""]
) -> Float[Array, ""]:
    """Value of the curve at ``at``; straight before the first knot and beyond the last."""
    # Branches, not limits: at the knots of the ends derivatives are those of the curve.
    before, beyond = at < x[0], at > x[-1]
    inside = select(before, x[0], select(beyond, x[-1], at))
    here = jnp.arange(x.shape[0] - 1) == jnp.sum(inside >= x[1:-1])

    def of_piece(values):
        return jnp.sum(select(here, values, 0.0))

    x0, h = of_piece(x[:-1]), of_piece(jnp.diff(x))
    y0, rise = of_piece(y[:-1]), of_piece(jnp.diff(y))
    d0, d1 = of_piece(slopes[:-1]), of_piece(slopes[1:])
    u = (inside - x0) / h
    curve = y0 + h * u * d0 + (rise - h * d0) * u * u * (3.0 - 2.0 * u)
    curve = curve + h * (d1 - d0) * u * u * (u - 1.0)
    line = select(beyond, slopes[-1] * (at - x[-1]), 0.0)
    return curve + select(before, slopes[0] * (at - x[0]), line)


def least(x, y, slopes) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Place of the minimum of the curve between its first and last knot, and its value."""
    h, rise = jnp.diff(x), jnp.diff(y)
    d0, d1 = slopes[:-1] * h, slopes[1:] * h
    # y = y_0 + d0 u + square u^2 + cube u^3
    square, cube = 3.0 * rise - 2.0 * d0 - d1, d0 + d1 - 2.0 * rise
    root = jnp.sqrt(jnp.maximum(square * square - 3.0 * cube * d0, 0.0))
    far = -square - select(square < 0, -root, root)
    u = jnp.stack([_ratio(far, 3.0 * cube), _ratio(d0, far)])
    turns = y[:-1] + u * (d0 + u * (square + u * cube))
    # The knots' own values: the polynomial at the end of a piece is rounded.
    values = jnp.concatenate([y, select((u > 0) & (u < 1), turns, jnp.inf).ravel()])
    lowest = jnp.argmin(values)
    return jnp.concatenate([x, (x[:-1] + h * u).ravel()])[lowest], values[lowest]


def _ratio(a, b):
    return select(b != 0, a / select(b != 0, b, 1.0), 0.0)
