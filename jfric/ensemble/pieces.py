"""What observables see of a trajectory: one smooth piece after another, as polynomials.

A piece is the part of a solver's step up to its end or to the earliest event: no contact changes
its mode inside. The solver's dense output on it is a polynomial in ``s = (time - t) / h``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.solvers.event_driven.isolation import horner, horner_with_slope
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem

#: Gauss nodes of a piece: exact to degree 31. Steps are short enough for what a product of two
#: motions has beyond that to be far below rounding.
GAUSS_NODES = 16
#: Nodes (Chebyshev, both ends included) among which an extremum is looked for.
EXTREMUM_NODES = 17
NEWTON_STEPS = 5


class Point(NamedTuple):
    """A trajectory at one instant, in SI units: what a function of an observable receives."""

    t: Float[Array, ""]
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    a: Float[Array, " n"]
    #: Friction forces of all contacts, normal forces of the unilateral ones.
    lambda_t: Float[Array, " nt"]
    lambda_n: Float[Array, " nu"]
    #: :class:`jfric.Mode` of each contact, segment of each piecewise-linear element.
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    #: The system with the parameters of this trajectory, and its assembled matrices.
    problem: Problem
    mechanics: Mechanics

    @property
    def sliding_velocity(self) -> Float[Array, " nt"]:
        """Sliding velocity of each contact."""
        return self.mechanics.sliding_velocities(self.t, self.v)


Function = Callable[[Point], Float[Array, "..."]]


class Piece(NamedTuple):
    """A smooth piece of a trajectory, on ``[t, end]``; coefficients first, constant term first.

    Its length ``h`` is zero where a pass only logged an event.
    """

    t: Float[Array, ""]
    end: Float[Array, ""]
    h: Float[Array, ""]
    q: Float[Array, "p n"]
    v: Float[Array, "p n"]
    a: Float[Array, "r n"]
    lambda_t: Float[Array, "p nt"]
    lambda_n: Float[Array, "p nu"]
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    #: Events before this piece, those at its start, and the time that they are logged at.
    events_before: Int[Array, ""]
    events: Int[Array, ""]
    impacts: Int[Array, ""]
    event_time: Float[Array, ""]
    problem: Problem
    mechanics: Mechanics

    def at(self, s: Float[Array, ""]) -> Point:
        """The trajectory at the fraction ``s`` of the piece."""
        return self._point(s, *(horner(p, s) for p in self._polynomials()))

    def sample(self, function: Function, nodes: tuple[float, ...]) -> Float[Array, "m ..."]:
        """``function`` at fixed fractions of the piece."""
        powers = _powers(nodes, max(p.shape[0] for p in self._polynomials()))
        values = [jnp.asarray(powers[:, : p.shape[0]], p.dtype) @ p for p in self._polynomials()]
        s = jnp.asarray(nodes, self.q.dtype)
        return jax.vmap(lambda s, *x: function(self._point(s, *x)))(s, *values)

    def integral(self, function: Function) -> Float[Array, ...]:
        """Integral of ``function`` over the time of the piece (Gauss-Legendre)."""
        nodes, weights = _gauss(GAUSS_NODES)
        values = self.sample(function, nodes)
        return self.h * jnp.tensordot(jnp.asarray(weights, values.dtype), values, 1)

    def maximum(self, function: Function) -> Float[Array, ""]:
        """Largest value of the scalar ``function`` on the piece, its ends included.

        The best of :data:`EXTREMUM_NODES` nodes is polished by Newton's method on the derivative
        of the interpolant. The place needs no derivative: the slope is zero there, or it is an
        end.
        """
        nodes = _chebyshev(EXTREMUM_NODES)
        values = self.sample(function, nodes)
        s = _polished(jax.lax.stop_gradient(values), nodes)
        return jnp.maximum(jnp.max(values), function(self.at(s)))

    def _polynomials(self):
        return self.q, self.v, self.a, self.lambda_t, self.lambda_n

    def _point(self, s, q, v, a, lambda_t, lambda_n) -> Point:
        return Point(
            self.t + s * self.h,
            q,
            v,
            a,
            lambda_t,
            lambda_n,
            self.mode,
            self.segment,
            self.problem,
            self.mechanics,
        )


@functools.cache
def _powers(nodes: tuple[float, ...], count: int) -> np.ndarray:
    return np.vander(np.asarray(nodes), count, increasing=True)


@functools.cache
def _gauss(count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(count)
    return tuple((0.5 * (x + 1.0)).tolist()), tuple((0.5 * w).tolist())


@functools.cache
def _chebyshev(count: int) -> tuple[float, ...]:
    """Extrema of the Chebyshev polynomial on [0, 1], increasing, ends included."""
    return tuple((0.5 - 0.5 * np.cos(np.pi * np.arange(count) / (count - 1))).tolist())


@functools.cache
def _slope_matrix(count: int) -> np.ndarray:
    """Values at the Chebyshev nodes to power coefficients in ``x = 2 s - 1`` of the slope."""
    x = 2.0 * np.asarray(_chebyshev(count)) - 1.0
    to_chebyshev = np.linalg.inv(np.polynomial.chebyshev.chebvander(x, count - 1))
    columns = [
        np.polynomial.chebyshev.cheb2poly(np.polynomial.chebyshev.chebder(c))
        for c in to_chebyshev.T
    ]
    table = np.zeros((count - 1, count))
    for j, column in enumerate(columns):
        table[: column.size, j] = column
    return table


def _polished(values, nodes: tuple[float, ...]):
    """Fraction near the largest of ``values`` at which the interpolant is extremal."""
    count = len(nodes)
    x = 2.0 * np.asarray(nodes) - 1.0
    best = jnp.arange(count) == jnp.argmax(values)
    at, low, high = (
        jnp.sum(jnp.where(best, jnp.asarray(n, values.dtype), 0.0))
        for n in (x, np.r_[x[0], x[:-1]], np.r_[x[1:], x[-1]])
    )
    slope = jnp.asarray(_slope_matrix(count), values.dtype) @ values

    def newton(_, x):
        value, curvature = horner_with_slope(slope, x)
        bends = curvature < 0
        moved = x - value / jnp.where(bends, curvature, 1.0)
        return jnp.where(bends, jnp.clip(moved, low, high), x)

    return 0.5 * (jax.lax.fori_loop(0, NEWTON_STEPS, newton, at) + 1.0)
