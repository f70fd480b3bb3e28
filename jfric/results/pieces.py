"""Pieces of a trajectory for observables: smooth, one after another, as polynomials.

A piece is the part of a solver's step up to its end or to the earliest event: no contact changes
its mode inside. The solver's dense output on a piece is a polynomial in ``s = (time - t) / h``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.polynomials import horner, horner_with_slope, powers
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem

#: Gauss nodes of a piece: exact to degree 27. Steps are short enough for the higher terms of a
#: product of two motions to be far below rounding.
GAUSS_NODES = 14
#: Nodes (Chebyshev, both ends included) of the interpolant whose extremum is located.
EXTREMUM_NODES = 19
NEWTON_STEPS = 5


class Point(NamedTuple):
    """A trajectory at one instant, in SI units: the argument of an observable's function.

    Example: see :class:`jfric.results.observables.Observable`.
    """

    #: Time, positions, velocities, accelerations.
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
    #: Sliding velocity of each contact where the solver knows it better than from ``v``.
    slides: Float[Array, " nt"] | None = None
    #: Forces of springs, dampers and stops where the solver knows them better.
    forces: Float[Array, " k"] | None = None
    #: Elongations of springs in series with sliders, None where there are none.
    z: Float[Array, " z"] | None = None

    @property
    def sliding_velocity(self) -> Float[Array, " nt"]:
        """Sliding velocity of each contact."""
        if self.slides is not None:
            return self.slides
        motion = self.mechanics.complete(self.q, self.v, self.z)
        return self.mechanics.sliding_at(self.t, *motion)


#: Quantities that an impact changes in addition to velocities.
_FORCES = ("a", "lambda_t", "lambda_n")

Function = Callable[[Point], Float[Array, "..."]]


class Piece(NamedTuple):
    """A smooth piece of a trajectory, on ``[t, end]``; coefficients first, constant term first.

    The length ``h`` is zero where a pass only logged an event. Example: see
    :class:`jfric.results.observables.Observable`.
    """

    #: Start, end and length [s]; coefficients of positions, velocities, accelerations and forces.
    t: Float[Array, ""]
    end: Float[Array, ""]
    h: Float[Array, ""]
    q: Float[Array, "p n"]
    v: Float[Array, "p n"]
    a: Float[Array, "r n"]
    lambda_t: Float[Array, "p nt"]
    lambda_n: Float[Array, "p nu"]
    #: As in :class:`Point`.
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    #: Events before this piece, those at its start, and the time at which these are logged.
    events_before: Int[Array, ""]
    events: Int[Array, ""]
    impacts: Int[Array, ""]
    event_time: Float[Array, ""]
    #: As in :class:`Point`.
    problem: Problem
    mechanics: Mechanics
    #: Velocity before the events at its start.
    v_before: Float[Array, " n"]
    #: Sliding displacement of each contact over a piece without inertia, proportional to ``s``: a
    #: load that jumps slides a contact in no time.
    slip: Float[Array, " nt"] | None = None
    #: Whether a load jumps on this piece: the system moves in no time.
    jumps: Bool[Array, ""] | None = None
    #: Forces of springs, dampers and stops where they do not follow from the motion.
    forces: Float[Array, "p k"] | None = None
    #: Number of logs of each user event before this piece, and including its start.
    own: tuple[Int[Array, " e"], Int[Array, " e"]] | None = None
    #: Position before the events at its start, where they may change it.
    q_before: Float[Array, " n"] | None = None
    #: Elongations of springs in series with sliders, None where there are none.
    z: Float[Array, "p z"] | None = None

    @property
    def useful(self) -> Bool[Array, ""]:
        """Whether the piece contains motion or events."""
        moves = (self.end > self.t) | (self.events > 0)
        return moves if self.jumps is None else moves | self.jumps

    def at(self, s: Float[Array, ""]) -> Point:
        """Point of the trajectory at the fraction ``s`` of the piece."""
        return self._point(s, *(horner(p, s) for p in self._polynomials()))

    def before(self) -> Point:
        """Position and velocity just before the events at the start; forces are unknown there."""
        after = self.at(jnp.zeros((), self.t.dtype))
        unknown = {name: jnp.full_like(getattr(after, name), jnp.nan) for name in _FORCES}
        q = after.q if self.q_before is None else self.q_before
        return after._replace(q=q, v=self.v_before, **unknown)

    def between(self, start, end) -> Piece:
        """Part of the piece between two times [s]; with its initial events only if it begins
        there."""
        first = jnp.clip(start, self.t, self.end)
        last = jnp.clip(end, first, self.end)
        length = jnp.where(self.h > 0, self.h, 1.0)
        s, part = (first - self.t) / length, (last - first) / length
        part = jnp.where(self.h > 0, part, 1.0)
        names = [x for x in CURVES if getattr(self, x) is not None]
        curves = {x: _part_of(getattr(self, x), s, part) for x in names}
        inside = (self.t >= start) & (self.t < end)
        counts = {x: jnp.where(inside, getattr(self, x), 0) for x in ("events", "impacts")}
        slip = None if self.slip is None else self.slip * part
        return self._replace(t=first, end=last, h=last - first, slip=slip, **curves, **counts)

    def sample(self, function: Function, nodes: tuple[float, ...]) -> Float[Array, "m ..."]:
        """Values of ``function`` at fixed fractions of the piece."""
        s = jnp.asarray(nodes, self.q.dtype)
        # One product for each: the compiler omits those that the function does not use.
        values = [jnp.asarray(_powers(nodes, p.shape[0]), p.dtype) @ p for p in self._polynomials()]
        return jax.vmap(lambda s, *row: function(self._point(s, *row)))(s, *values)

    def integrals(self, function: Function) -> Float[Array, " k"]:
        """Integrals of ``function`` (k,) over the time of the piece (Gauss-Legendre)."""
        nodes, weights = _gauss(GAUSS_NODES)
        values = self.sample(function, nodes)
        return self.h * (jnp.asarray(weights, values.dtype) @ values)

    def maxima(self, function: Function) -> Float[Array, " k"]:
        """Largest values of ``function`` (k,) on the piece, its ends included.

        Newton's method on the interpolant improves the best of :data:`EXTREMUM_NODES` nodes. The
        place needs no derivative: it is an end, or the slope is zero there.
        """
        nodes = _chebyshev(EXTREMUM_NODES)
        values = self.sample(function, nodes)
        x = _extremal(jax.lax.stop_gradient(values))
        return jnp.maximum(jnp.max(values, axis=0), _interpolated(values, x))

    def _polynomials(self):
        return [x for x in (getattr(self, name) for name in CURVES) if x is not None]

    def _point(self, s, q, v, a, lambda_t, lambda_n, *others) -> Point:
        rest = list(others)
        forces = None if self.forces is None else rest.pop(0)
        slides = None
        if self.slip is not None:
            passes = self.h > 0
            slides = jnp.where(passes, self.slip / jnp.where(passes, self.h, 1.0), 0.0)
        return Point(
            self._time(s),
            q,
            v,
            a,
            lambda_t,
            lambda_n,
            self.mode,
            self.segment,
            self.problem,
            self.mechanics,
            slides,
            forces,
            None if self.z is None else rest.pop(0),
        )

    def _time(self, s):
        """Time at ``s``; at the end just before it, where functions of time may jump."""
        t = self.t + s * self.h
        unit = jnp.finfo(t.dtype).eps * jnp.maximum(jnp.abs(self.t), jnp.abs(self.end))
        ends = (self.h > 0) & (t >= self.end - unit)
        before = jnp.maximum(self.t, self.end - unit)
        return jnp.where(ends, t + jax.lax.stop_gradient(before - t), t)


#: Fields of a piece that are polynomials, in the order that a point takes them.
CURVES = ("q", "v", "a", "lambda_t", "lambda_n", "forces", "z")


def _part_of(coefficients: Float[Array, "p n"], s, part) -> Float[Array, "p n"]:
    """Coefficients in ``x`` of the polynomials at ``s + part x``."""
    count = coefficients.shape[0]
    row, column = np.indices((count, count))
    order = np.maximum(column - row, 0)
    chosen = np.array([[math.comb(k, i) for k in range(count)] for i in range(count)], float)
    shifted = powers(s, count)[order] * jnp.asarray(chosen, coefficients.dtype)
    return powers(part, count)[:, None] * (shifted @ coefficients)


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
def _chebyshev_matrix(count: int) -> np.ndarray:
    """Matrix from values at the Chebyshev nodes to Chebyshev coefficients in ``2 s - 1``."""
    x = 2.0 * np.asarray(_chebyshev(count)) - 1.0
    return np.linalg.inv(np.polynomial.chebyshev.chebvander(x, count - 1))


@functools.cache
def _slope_matrix(count: int) -> np.ndarray:
    """Matrix from values at the Chebyshev nodes to power coefficients of the slope in
    ``2 s - 1``."""
    table = np.zeros((count - 1, count))
    for j, column in enumerate(_chebyshev_matrix(count).T):
        slope = np.polynomial.chebyshev.cheb2poly(np.polynomial.chebyshev.chebder(column))
        table[: slope.size, j] = slope
    return table


def _extremal(values: Float[Array, "m k"]) -> Float[Array, " k"]:
    """Place in ``[-1, 1]``, near the largest of each column, of the interpolant's maximum."""
    count = values.shape[0]
    x = 2.0 * np.asarray(_chebyshev(count)) - 1.0
    best = jnp.arange(count)[:, None] == jnp.argmax(values, axis=0)[None, :]
    at, low, high = (
        jnp.sum(jnp.where(best, jnp.asarray(n, values.dtype)[:, None], 0.0), axis=0)
        for n in (x, np.r_[x[0], x[:-1]], np.r_[x[1:], x[-1]])
    )
    slope = jnp.asarray(_slope_matrix(count), values.dtype) @ values

    def newton(_, x):
        value, curvature = horner_with_slope(slope, x)
        bends = curvature < 0
        moved = x - value / jnp.where(bends, curvature, 1.0)
        return jnp.where(bends, jnp.clip(moved, low, high), x)

    return jax.lax.fori_loop(0, NEWTON_STEPS, newton, at)


def _interpolated(values: Float[Array, "m k"], x: Float[Array, " k"]) -> Float[Array, " k"]:
    """Interpolant of each column at its ``x`` (Clenshaw's recurrence)."""
    c = jnp.asarray(_chebyshev_matrix(values.shape[0]), values.dtype) @ values
    after, current = jnp.zeros_like(x), c[-1]
    for k in range(values.shape[0] - 2, 0, -1):
        after, current = current, c[k] + 2.0 * x * current - after
    return c[0] + x * current - after
