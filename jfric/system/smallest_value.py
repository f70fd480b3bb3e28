"""The smallest value of a function of time on an interval, bounded and not only sampled.

On a smooth piece ``f(t + s) = sum_j p_j s^j + sum_i A_i sin(w_i s + a_i)``. Around the middle ``m``
of an interval of half-width ``r``, with the harmonics that vary slowly there (``w r <= 1``)::

    f >= f(m) - |f'(m)| r - B r^2 / 2 - sum_fast |A_i|,     B >= |f''|

Intervals whose bound is negative are halved: branch and bound.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import eval_context

from jfric.numerics.tolerances import tolerance_of
from jfric.system.functions import AbstractFunction

#: Evaluations after which the search ends.
MOST = 1 << 20
#: The lowest value is known to this part of the magnitudes.
PRECISE = 1e-9
#: Values below zero by up to this part of the magnitudes of their terms are not negative; in single
#: precision by its rounding.
ROUNDING = 1e-12


class Pieces(NamedTuple):
    """All smooth pieces of a function on an interval; (P,), and (P, number of terms)."""

    start: np.ndarray
    length: np.ndarray
    polynomial: np.ndarray
    amplitude: np.ndarray
    angle: np.ndarray
    omega: np.ndarray


class Negative(NamedTuple):
    """A time [s] at which a function is negative, and its value there."""

    t: float
    value: float


def pieces(function: AbstractFunction, start: float, end: float) -> Pieces:
    """The pieces of ``function`` from ``start`` to ``end`` [s]."""
    # A concrete function may be looked at while something else is traced.
    with eval_context():
        breaks = np.unique(np.asarray(function.breakpoints(), float))
        breaks = breaks[(breaks > start) & (breaks < end)]
        begin = np.concatenate([[start], breaks])
        polynomial, harmonics = function.components(begin)
        count = begin.shape[0]

        def table(columns) -> np.ndarray:
            rows = [np.broadcast_to(np.asarray(c, float), (count,)) for c in columns]
            return np.stack(rows, axis=1) if rows else np.zeros((count, 0))

        return Pieces(
            begin,
            np.append(breaks, end) - begin,
            table(polynomial),
            *(table([h[i] for h in harmonics]) for i in range(3)),
        )


def find_negative(function: AbstractFunction, start: float, end: float) -> Negative | None:
    """The smallest value of ``function`` between ``start`` and ``end`` [s] if it is negative.

    Values below zero by rounding do not count; those by up to ``PRECISE`` may be missed. If the
    bound has not decided after a million evaluations, none of which was negative, the result is
    None: the function is then closer to zero than its oscillations allow to decide.
    """
    p = pieces(function, start, end)
    powers = p.length[:, None] ** np.arange(p.polynomial.shape[1])
    size = np.sum(np.abs(p.polynomial) * powers, axis=1) + np.sum(np.abs(p.amplitude), axis=1)
    slack = tolerance_of(jnp.result_type(float), ROUNDING) * size
    which, none = np.arange(p.start.shape[0]), np.zeros(p.start.shape)
    ends = np.concatenate([_values(p, which, none)[0], _values(p, which, p.length)[0]])
    ends = np.where(ends < -np.tile(slack, 2), ends, 0.0)
    times = np.concatenate([p.start, p.start + p.length])
    best = Negative(float(times[ends.argmin()]), float(ends.min()))
    middle, radius, done = 0.5 * p.length, 0.5 * p.length, 0
    while middle.size and done < (MOST if best.value == 0.0 else MOST >> 4):
        done += middle.size
        value, low = _bounds(p, which, middle, radius)
        negative = np.where(value < -slack[which], value, 0.0)
        i = int(negative.argmin())
        if negative[i] < best.value:
            best = _lowest_near(p, which[i : i + 1], middle[i : i + 1], radius[i])
        # Drop intervals that cannot be negative, and those that cannot be below the lowest value.
        keep = low < np.minimum(-slack, best.value - PRECISE * size)[which]
        which, radius = np.repeat(which[keep], 2), np.repeat(0.5 * radius[keep], 2)
        middle = np.repeat(middle[keep], 2) + radius * np.tile([-1.0, 1.0], int(keep.sum()))
    return best if best.value < 0.0 else None


def _lowest_near(p: Pieces, which, s, radius: float) -> Negative:
    """The lowest of a few Newton steps for a zero of the slope, from ``s`` (1,) on."""
    low, high = s - radius, s + radius
    best = (float(_values(p, which, s)[0][0]), float(s[0]))
    for _ in range(6):
        _, slope, _, rate = _values(p, which, s)
        angle = p.omega[which] * s[:, None] + p.angle[which]
        bend = -np.sum(p.amplitude[which] * p.omega[which] ** 2 * np.sin(angle), axis=1)
        for j in range(2, p.polynomial.shape[1]):
            bend = bend + j * (j - 1) * p.polynomial[which, j] * s ** (j - 2)
        step = (slope + rate.sum(axis=1)) / np.where(bend > 0.0, bend, np.inf)
        s = np.clip(s - step, low, high)
        best = min(best, (float(_values(p, which, s)[0][0]), float(s[0])))
    return Negative(float(p.start[which[0]]) + best[1], best[0])


def _values(p: Pieces, which, s):
    """Values at ``s`` after the start of the pieces ``which``, first derivatives of the
    polynomials, and value and derivative of each harmonic."""
    coefficients = p.polynomial[which]
    value, slope = np.zeros(s.shape), np.zeros(s.shape)
    for j in reversed(range(coefficients.shape[1])):
        value, slope = value * s + coefficients[:, j], slope * s + value
    angle = p.omega[which] * s[:, None] + p.angle[which]
    wave = p.amplitude[which] * np.sin(angle)
    rate = p.amplitude[which] * p.omega[which] * np.cos(angle)
    return value + wave.sum(axis=1), slope, wave, rate


def _bounds(p: Pieces, which, middle, radius):
    """Values (k,) in the middles of intervals, and lower bounds on them."""
    value, slope, wave, rate = _values(p, which, middle)
    amplitude, omega = np.abs(p.amplitude[which]), np.abs(p.omega[which])
    slow = omega * radius[:, None] <= 1.0
    slope = slope + np.sum(np.where(slow, rate, 0.0), axis=1)
    bend = np.sum(np.where(slow, amplitude * omega**2, 0.0), axis=1)
    far = middle + radius
    for j in range(2, p.polynomial.shape[1]):
        bend = bend + j * (j - 1) * np.abs(p.polynomial[which, j]) * far ** (j - 2)
    fast = np.sum(np.where(slow, 0.0, wave + amplitude), axis=1)
    return value, value - fast - np.abs(slope) * radius - 0.5 * bend * radius**2
