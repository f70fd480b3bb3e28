"""Radau collocation for accelerations that are stiff and not defined where a velocity vanishes.

On a step of length ``h`` from ``(q, v)`` the acceleration is a polynomial that obeys
``a = f(s, q, v)`` at Radau's nodes, all of them after the start. The method is stiffly accurate and
L-stable, of order ``2 k - 1`` at the end of a step; inside the step the order of the polynomials is
their degree. Source: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II (1996),
section IV.5.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import Polynomial, legendre

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import inverse
from jfric.numerics.polynomials import DEGREE
from jfric.numerics.runge_kutta import Stages

#: Largest number of inverses, and of steps with each, before a step counts as too long.
NEWTON = 20
#: Changes of the last Newton step, relative to the largest acceleration and in rounding errors:
#: converged, and still acceptable.
CONVERGED, GOOD = 4.0, 1e6
#: Fraction of the previous step below which a step must fall for an inverse to be used again.
FALLS = 0.1


class Tables(NamedTuple):
    """Tables for ``k`` nodes: velocities and positions (k, k) by unit accelerations; coefficients
    (p, k) of both polynomials, and the weights (k,) of the highest Legendre coefficient."""

    nodes: np.ndarray
    velocity: np.ndarray
    position: np.ndarray
    velocity_coefficients: np.ndarray
    position_coefficients: np.ndarray
    highest: np.ndarray


@functools.cache
def tables(degree: int) -> Tables:
    """Tables for positions of this ``degree``, which has two nodes less than coefficients."""
    k = degree - 1
    # Zeros of P_k - P_(k-1) on [-1, 1]: Radau's points with the right end, on [0, 1].
    ends = np.zeros(k + 1)
    ends[k - 1 :] = -1.0, 1.0
    nodes = np.sort(np.real(legendre.legroots(ends)))
    nodes[-1] = 1.0
    # Coefficients of these polynomials lose digits.
    nodes = 0.5 * (1.0 + nodes.astype(np.longdouble))
    velocities, positions = np.zeros((2, degree + 1, k), np.longdouble)
    for i in range(k):
        others = np.delete(nodes, i)
        lagrange = Polynomial.fromroots(others) / np.prod(nodes[i] - others)
        once, twice = lagrange.integ(1).coef, lagrange.integ(2).coef
        velocities[: len(once), i], positions[: len(twice), i] = once, twice
    powers = np.vander(nodes, degree + 1, increasing=True)
    highest = np.linalg.inv(legendre.legvander(2.0 * nodes.astype(float) - 1.0, k - 1))[-1]
    found = nodes, powers @ velocities, powers @ positions, velocities, positions, highest
    return Tables(*(x.astype(float) for x in found))


def collocation(
    acceleration: Callable,
    q: Float[Array, " n"],
    v: Float[Array, " n"],
    h,
    guess: Callable,
    parts: Float[Array, " n"] | None = None,
    degree: int | None = None,
) -> Stages:
    """Step of ``q'' = acceleration(s, q, v)`` of length ``h``, in the form of an explicit method.

    ``guess(s)`` (n,): accelerations from which Newton's method starts. The error is undefined where
    it does not converge. ``parts`` (n,): sizes of the terms that cancel in the accelerations, which
    are rounding errors of these terms in equilibrium. ``degree``: of the positions, by default that
    of polynomials in this precision; the order is ``2 degree - 3``.
    """
    dtype, n = q.dtype, q.shape[0]
    degree = DEGREE[dtype.name] if degree is None else degree
    nodes, _, _ = _nodes(dtype, degree)
    k = nodes.shape[0]

    def along(a):
        return _along(q, v, h, a, degree)

    def missed(a):
        return jax.vmap(acceleration)(h * nodes, *along(a)) - a

    def newton(a):
        return inverse(_missed_by(h, *_slopes(acceleration, h, *along(a), degree), degree))

    def solve(residual, start):
        del residual

        def improved(state):
            """Make steps with one inverse, as long as each is much shorter than the one before."""
            rounds, a, _, _ = state
            inverted = newton(a)

            def again(inner):
                i, a, size, _ = inner
                change = (inverted @ missed(a).reshape(-1)).reshape(k, n)
                now = jnp.max(jnp.abs(change)) / jnp.maximum(jnp.max(jnp.abs(a)), least)
                return i + 1, a + change, now, size

            def falls(inner):
                i, _, size, before = inner
                shrinks = (i == 0) | (size < FALLS * before)
                return (i < NEWTON) & (size > CONVERGED * eps) & shrinks

            none = jnp.full((), jnp.inf, dtype)
            _, a, size, before = jax.lax.while_loop(falls, again, (0, a, none, none))
            return rounds + 1, a, size, before

        def unfinished(state):
            rounds, _, size, before = state
            stalls = (size <= GOOD * eps) & (size >= 0.5 * before)
            return (rounds < NEWTON) & (size > CONVERGED * eps) & ~stalls

        none = jnp.full((), jnp.inf, dtype)
        _, a, size, _ = jax.lax.while_loop(unfinished, improved, (0, start, none, none))
        # An iteration that did not converge may have overflowed. The step is not taken, but a
        # derivative in reverse passes through it, and zero times infinity is not zero.
        return select(size <= GOOD * eps, a, 0.0), size

    def tangent_solve(linear, y):
        J = jax.jacfwd(linear)(jnp.zeros_like(y)).reshape(k * n, k * n)
        return (inverse(J) @ y.reshape(-1)).reshape(k, n)

    eps, least = float(jnp.finfo(dtype).eps), jnp.asarray(jnp.finfo(dtype).tiny, dtype)
    if parts is not None:
        least = jnp.maximum(least, jax.lax.stop_gradient(jnp.max(parts)))
    start = jax.lax.stop_gradient(jax.vmap(guess)(h * nodes))
    a, size = jax.lax.custom_root(missed, start, solve, tangent_solve, has_aux=True)
    found = _whole(q, v, h, a, degree)
    return found._replace(error=select(size <= GOOD * eps, found.error, jnp.nan))


def collocated_change(
    acceleration: Callable,
    q: Float[Array, " n"],
    v: Float[Array, " n"],
    h,
    found: Stages,
    change: Float[Array, " y"],
) -> Stages:
    """Result of the step ``found`` by :func:`collocation` for a small ``change`` of its start."""
    n, degree = q.shape[0], DEGREE[q.dtype.name]
    nodes, _, _ = _nodes(q.dtype, degree)
    dq, dv = change[:n], change[n:]
    by_q, by_v = _slopes(acceleration, h, *_along(q, v, h, found.slopes[:, n:], degree), degree)
    coasting = dq[None, :] + h * nodes[:, None] * dv[None, :]
    pull = jnp.sum(by_q * coasting[:, None, :], axis=-1) + by_v @ dv
    pull, J = pull.reshape(-1), _missed_by(h, by_q, by_v, degree)
    inverted = inverse(J)
    da = inverted @ pull
    # Small components have errors of the size of the largest ones.
    da = da + inverted @ (pull - J @ da)
    return _whole(dq, dv, h, da.reshape(-1, n), degree)


def _nodes(dtype, degree: int) -> tuple[Array, Array, Array]:
    """Nodes, velocities and positions at them by unit accelerations."""
    table = tables(degree)
    nodes, A, B = (jnp.asarray(x, dtype) for x in (table.nodes, table.velocity, table.position))
    return nodes, A, B


def _along(q, v, h, a, degree: int) -> tuple[Float[Array, "k n"], Float[Array, "k n"]]:
    """Positions and velocities at the nodes, from accelerations there."""
    nodes, A, B = _nodes(q.dtype, degree)
    velocity = v[None, :] + h * (A @ a)
    position = q[None, :] + h * nodes[:, None] * v[None, :] + h * h * (B @ a)
    return position, velocity


def _slopes(acceleration: Callable, h, position, velocity, degree: int) -> tuple[Array, Array]:
    """Derivatives (k, n, n) of accelerations at the nodes with respect to position and velocity."""
    nodes, _, _ = _nodes(position.dtype, degree)
    slopes = jax.vmap(jax.jacfwd(acceleration, argnums=(1, 2)))
    return slopes(h * nodes, position, velocity)


def _missed_by(h, by_q, by_v, degree: int) -> Float[Array, "kn kn"]:
    """Derivatives of the residuals at the nodes with respect to the accelerations there."""
    _, A, B = _nodes(by_q.dtype, degree)
    k, n, _ = by_q.shape
    J = h * h * by_q[:, :, None, :] * B[:, None, :, None]
    J = (J + h * by_v[:, :, None, :] * A[:, None, :, None]).reshape(k * n, k * n)
    return jnp.eye(k * n, dtype=by_q.dtype) - J


def _whole(q, v, h, a, degree: int) -> Stages:
    """The step whose accelerations at the nodes are ``a``."""
    table, dtype = tables(degree), q.dtype
    error = h * jnp.abs(jnp.asarray(table.highest, dtype) @ a)
    velocities = h * (jnp.asarray(table.velocity_coefficients, dtype) @ a)
    positions = h * h * (jnp.asarray(table.position_coefficients, dtype) @ a)
    dense = jnp.concatenate([positions.at[0].set(q).at[1].add(h * v), velocities.at[0].set(v)], 1)
    position, velocity = _along(q, v, h, a, degree)
    return Stages(
        end=jnp.concatenate([position[-1], velocity[-1]]),
        error=jnp.concatenate([h * error, error]),
        dense=dense,
        slopes=jnp.concatenate([velocity, a], axis=1),
    )
