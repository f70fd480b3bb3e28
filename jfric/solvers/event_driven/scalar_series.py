"""Taylor series of a few degrees of freedom with linear equations, in scalars.

``q'' = A q + B q' + F w`` with the basis ``w`` of what is given. A loop over the order leaves one
array for each degree of freedom; in a batch its trajectories are innermost. Sums over the order
are written out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.solvers.event_driven.scalar_given import Basis
from jfric.solvers.event_driven.scalar_rows import Row, is_zero, times, total

#: Orders in one round of the loop. With more, one of XLA's code generators for CPUs computes each
#: number many times.
UNROLL = 1


class Series(NamedTuple):
    """Coefficients in ``s = time / h``, constant term first, to one order more than is used."""

    q: list[Float[Array, " p"]]
    #: Combinations of positions, velocities and loads.
    rows: list[Float[Array, " p"]]
    #: Sine and cosine of each harmonic.
    w: list[Float[Array, " p"]]
    #: ``h^j``, the coefficient of the power ``j`` of time.
    powers: list
    h: Any


class _Recurrence:
    """From two coefficients of the positions to the next, and combinations of them."""

    def __init__(self, a: list[Row], rows: list[Row], basis: Basis, h, *, magnitude: bool):
        n, p = len(a), basis.powers
        h2 = h * h
        self.magnitude, self.p = magnitude, p
        self.scales: list[Any] = [jnp.ones_like(h)]
        for _ in range(p - 1):
            self.scales.append(self.scales[-1] * h)

        def scaled(row: Row, of_q, of_v):
            loads = [times(of_q * s, x) for s, x in zip(self.scales, row[2 * n :], strict=False)]
            return (
                [times(of_q, x) for x in row[:n]],
                [times(of_v, x) for x in row[n : 2 * n]],
                loads,
                [times(of_q, x) for x in row[2 * n + p :]],
            )

        one = self.scales[0]
        self.a = [scaled(row, h2, h) for row in a]
        self.rows = [scaled(row, one, 1.0 / h) for row in rows]
        self.omegas = [omega * h for omega in basis.omegas]
        if magnitude:
            self.omegas = [jnp.abs(omega) for omega in self.omegas]

    def _combine(self, parts, now: list, rates: list, waves: list, here):
        of_q, of_v, loads, of_waves = parts
        return total(
            [
                *(times(x, y) for x, y in zip(of_q, now, strict=True)),
                *(times(x, y) for x, y in zip(of_v, rates, strict=True)),
                *(times(x, y) for x, y in zip(of_waves, waves, strict=True)),
                *(self._push(x, here[j]) for j, x in enumerate(loads) if not is_zero(x)),
            ]
        )

    @staticmethod
    def _push(load, here):
        """A power of time has a coefficient at its own order alone."""
        if isinstance(here, bool):
            return load if here else 0.0
        return jnp.where(here, load, 0.0)

    def next(self, now: list, following: list, waves: list, factor, inverse, here):
        """Coefficients of order ``k + 2`` and combinations of order ``k``.

        ``factor``: ``k + 1``; ``inverse``: of ``(k + 1)(k + 2)``; ``here[j]``: whether ``j = k``.
        """
        rates = [factor * u for u in following]
        later = [inverse * self._combine(x, now, rates, waves, here) for x in self.a]
        return later, [self._combine(x, now, rates, waves, here) for x in self.rows]

    def turned(self, waves: list, factor) -> list:
        """Coefficients of sines and cosines of order ``k + 1``."""
        result = []
        for j, omega in enumerate(self.omegas):
            sine, cosine = waves[2 * j : 2 * j + 2]
            further = omega / factor
            result += [further * cosine, further * sine if self.magnitude else -further * sine]
        return result


def series(a: list[Row], rows: list[Row], q: list, v: list, basis: Basis, h, order: int) -> Series:
    """Positions on a step of length ``h`` from the rows ``a`` of the accelerations."""
    p = basis.powers
    x = _Recurrence(a, rows, basis, h, magnitude=False)
    k = np.arange(order + 2)
    given = (
        jnp.asarray(k + 1.0, h.dtype),
        jnp.asarray(1.0 / ((k + 1.0) * (k + 2.0)), h.dtype),
        jnp.asarray(k[:, None] == np.arange(p)),
    )

    def step(carry, item):
        now, following, waves = carry
        factor, inverse, here = item
        later, combined = x.next(now, following, waves, factor, inverse, list(here))
        combined = [y + jnp.zeros_like(h) for y in combined]
        return (following, later, x.turned(waves, factor)), (now, combined, waves)

    start = (q, [h * u for u in v], basis.w[p:])
    columns, combined, waves = jax.lax.scan(step, start, given, unroll=UNROLL)[1]
    return Series(columns, combined, waves, x.scales, h)


def rounding_series(
    a: list[Row], rows: list[Row], q: list, v: list, basis: Basis, h, order: int
) -> list[list]:
    """Coefficients of the rows up to a low ``order``, all from magnitudes: their rounding."""
    p = basis.powers
    x = _Recurrence(a, rows, basis, h, magnitude=True)
    now, following, waves = q, [h * u for u in v], basis.w[p:]
    result = []
    for k in range(order + 1):
        inverse = 1.0 / ((k + 1) * (k + 2))
        here = [j == k for j in range(p)]
        later, combined = x.next(now, following, waves, k + 1.0, inverse, here)
        result.append(combined)
        now, following, waves = following, later, x.turned(waves, k + 1.0)
    return [list(row) for row in zip(*result, strict=True)]


def listed(y: Float[Array, " p"] | list) -> list:
    """One number for each order: what is summed over the order in several places is taken apart
    once."""
    if isinstance(y, list):
        return y
    return [jax.lax.index_in_dim(y, k, keepdims=False) for k in range(y.shape[0])]


# Compiled functions are traced once for all the polynomials of a step.


@jax.jit
def value(y: list, s):
    """Value at ``s``; ``y``: see :func:`listed`."""
    result = y[-1]
    for x in reversed(y[:-1]):
        result = result * s + x
    return result


@jax.jit
def value_and_slope(y: list, s):
    """Value and first derivative at ``s``."""
    result, slope = y[-2] + y[-1] * s, y[-1]
    for x in reversed(y[:-2]):
        result, slope = result * s + x, slope * s + result
    return result, slope


@jax.jit
def value_and_size(y: list, s):
    """Value at ``s``, and the sum of the magnitudes of the coefficients."""
    return value(y, s), size(y)


@jax.jit
def size(y: list):
    """Sum of the magnitudes of the coefficients."""
    return total([jnp.abs(x) for x in y])


@jax.jit
def slope_size(y: list):
    """The same for the derivative."""
    return total([jnp.abs(x) if k == 0 else (k + 1.0) * jnp.abs(x) for k, x in enumerate(y[1:])])


class Sizes(NamedTuple):
    """Sums of the magnitudes of the coefficients: of positions, velocities, basis functions."""

    q: list
    v: list
    w: list


def sizes(q: list[list], w: list[list], powers: list, h) -> tuple[Sizes, Sizes]:
    """Of all coefficients, and of the last two alone.

    ``q``: to one order more than ``w``, which only velocities have a use for.
    """

    def last_rates(y):
        k = len(y) - 1
        return (k - 1.0) * jnp.abs(y[-2]) + float(k) * jnp.abs(y[-1])

    whole = Sizes(
        [size(y[:-1]) for y in q],
        [slope_size(y) / h for y in q],
        [*powers, *(size(y) for y in w)],
    )
    last = Sizes(
        [size(y[-3:-1]) for y in q],
        [last_rates(y) / h for y in q],
        [*[0.0] * len(powers), *(size(y[-2:]) for y in w)],
    )
    return whole, last


def bound(row: Row, x: Sizes):
    """Bound of a combination, from the magnitudes of what it is made of."""
    return total(
        times(c if is_zero(c) else jnp.abs(c), y)
        for c, y in zip(row, (*x.q, *x.v, *x.w), strict=True)
    )


def combination(row: Row, x: Series, rates: list) -> Float[Array, " p"]:
    """The coefficients of any row; ``rates``: those of the velocities (one order less)."""
    n, p, count = len(x.q), len(x.powers), rates[0].shape[0]
    terms = [times(c, y[:count]) for c, y in zip(row[:n], x.q, strict=True)]
    terms += [times(c, y) for c, y in zip(row[n : 2 * n], rates, strict=True)]
    terms += [times(c, y[:count]) for c, y in zip(row[2 * n + p :], x.w, strict=True)]
    for j, c in enumerate(row[2 * n : 2 * n + p]):
        terms.append(times(times(c, x.powers[j]), jnp.asarray(np.arange(count) == j, x.h.dtype)))
    return total(terms) + jnp.zeros((count,), x.h.dtype)
