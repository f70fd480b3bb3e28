"""Motion ``u'' = F - K u - C u'`` in closed form, and the first zero of a combination of it.

**Motion.** Velocity and acceleration obey ``dy/ds = B y`` with ``B = [[0, 1], [-K, -C]]``.
Functions of ``B`` are ``p + r B``: two numbers, found for any sign of ``K`` and ``C`` alike.

**First zero** of ``g``, any combination of displacement, velocity and one: ``g`` moves like the
displacement, with its own ``F``. With ``|g''| <= b`` on the rest of the time, ``g`` has no zero
before that of the parabola ``g + g' s - b s^2 / 2``. Going from zero to zero of such parabolas
never passes a zero of ``g``, and converges to the first one quadratically. The bound follows from
``g''^2 + K g'^2``, which decreases if ``K`` and ``C`` are positive. Once ``2 b g < g'^2`` with
``g' < 0`` a zero follows for certain, and a short series gives its place to rounding error.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.choice import select
from jfric.numerics.loops import once
from jfric.numerics.polynomials import horner_with_slope
from jfric.numerics.tolerances import ROUNDINGS

#: Largest number of parabolas in one search, which otherwise ends before the zero.
MAX_PARABOLAS = 60
#: A zero is near if ``2 b g <= NEAR g'^2``: about 0.17 time scales of the motion at most. Series of
#: this order have converged there, and so has Newton's method on them after this number of rounds.
NEAR = 0.3
NEAR_ORDER = 12
NEWTON = 4


class Oscillator(NamedTuple):
    """Equation ``u'' = F - K u - C u'`` of the velocity; the initial acceleration contains
    ``F``."""

    K: Float[Array, ""]
    C: Float[Array, ""]


class _Propagator(NamedTuple):
    """Integral ``p + r B`` of ``exp(B s)`` over a time; motion after it is a combination."""

    p: Float[Array, "*g"]
    r: Float[Array, "*g"]


@functools.partial(jax.jit, static_argnames="order")
def propagator(x: Oscillator, s, order: int) -> _Propagator:
    """Sum of ``s (B s)^k / (k + 1)!``, with ``B^2 = -K - C B``."""
    stiff, damp = x.K * s * s, x.C * s
    p, r = jnp.full_like(s, 1.0 / math.factorial(order)), jnp.zeros_like(s)
    for j in range(order - 1, 0, -1):
        p, r = 1.0 / math.factorial(j) - stiff * r, p - damp * r
    return _Propagator(p * s, r * s * s)


class Motion(NamedTuple):
    """Displacement and its first four derivatives at one instant; arrays for several motions."""

    u: Float[Array, "*g"]
    v: Float[Array, "*g"]
    a: Float[Array, "*g"]
    jerk: Float[Array, "*g"]
    snap: Float[Array, "*g"]

    def after(self, step: _Propagator) -> tuple:
        """Displacement, velocity and acceleration after a step."""
        return (
            self.u + step.p * self.v + step.r * self.a,
            self.v + step.p * self.a + step.r * self.jerk,
            self.a + step.p * self.jerk + step.r * self.snap,
        )


def motion(x: Oscillator, u, v, a) -> Motion:
    """The motion with this displacement, velocity and acceleration."""
    jerk = -(x.K * v + x.C * a)
    return Motion(u, v, a, jerk, -(x.K * a + x.C * jerk))


class Reached(NamedTuple):
    """End of a search: ``g`` is zero there if ``found``, and, as far as can be resolved, turns
    there if it ``grazes``."""

    s: Float[Array, "*g"]
    found: Bool[Array, "*g"]
    grazes: Bool[Array, "*g"]


class Search(NamedTuple):
    """Settings of the search for a zero of ``g``, which is positive at first.

    ``order``: how many of ``g`` and its derivatives are zero at the start; ``wanted``: whether the
    result will be used; ``terms``: order of the series; ``size``: magnitude of the terms of ``g``;
    ``zero``: values that cannot be distinguished from zero. ``turns(slope, curvature, zero, g)``:
    whether ``g`` grazes zero.
    """

    order: Int[Array, "*g"]
    wanted: Bool[Array, "*g"]
    terms: int
    size: Float[Array, "*g"]
    zero: Float[Array, "*g"]
    turns: Callable


def first_zero(x: Oscillator, g: Motion, way: Search, h) -> Reached:
    """First zero of ``g`` within the time ``h``. The search has no derivatives."""
    x, g, h = jax.lax.stop_gradient((x, g, h))
    way = way._replace(size=jax.lax.stop_gradient(way.size), zero=jax.lax.stop_gradient(way.zero))
    near = _near_zero(x, g, way, h)
    step = once(propagator(x, near.s, way.terms), jnp.any(way.wanted))
    y = series(x, g.after(step))

    def newton(_, further):
        value, rate = horner_with_slope(y, further)
        return further - value / select(rate < 0, rate, -1.0)

    further = jax.lax.fori_loop(0, NEWTON, newton, near.further)
    # Where it turns before the zero, or too soon afterwards to be distinguished.
    value, slope, bend = y[0], y[1], 2.0 * y[2]
    grazes = (bend > 0) & way.turns(slope, bend, way.zero, value)
    further = select(grazes, -slope / select(grazes, bend, 1.0), further)
    found = near.found & (near.s + further <= h)
    further, found, grazes = once(
        (select(found, further, 0.0), found, found & grazes), jnp.any(way.wanted)
    )
    return Reached(near.s + further, found, grazes)


def series(x: Oscillator, point: tuple, order: int = NEAR_ORDER) -> list:
    """Coefficients of a motion about an instant, from displacement, velocity and acceleration."""
    u, v, a = point
    y = [u, v, 0.5 * a]
    for j in range(3, order + 1):
        y.append(-(x.K * y[j - 2] * (1.0 / (j * (j - 1))) + x.C * y[j - 1] * (1.0 / j)))
    return y


def corrected(y: list):
    """Shift in time of a zero at the start of a series, with its first and second derivatives."""
    further = jnp.zeros_like(y[0])
    # Two steps from the zero give first and second derivatives of its time.
    for _ in range(2):
        value, rate = horner_with_slope(y, further)
        further = further - value / select(rate < 0, rate, -1.0)
    return further


def above_exponential(x):
    """Bound of ``exp(x)`` by products alone, for ``0 <= x <= 250``: ``(1 - x/64)^-64``. At the
    longest step of a motion, ``x = 6.8``, it is half as much again."""
    found = 1.0 / (1.0 - jnp.minimum(x / 64.0, 0.98))
    for _ in range(6):
        found = found * found
    return found


class _Near(NamedTuple):
    """A time near the zero, or at the end of the search, and an estimate of the remaining time."""

    s: Float[Array, "*g"]
    found: Bool[Array, "*g"]
    further: Float[Array, "*g"]


def _near_zero(x: Oscillator, start: Motion, way: Search, h) -> _Near:
    """Time at which a zero is near, at most ``h``, by steps from parabola to parabola."""
    order, wanted, terms, size, zero, _ = way
    omega = jnp.sqrt(jnp.abs(x.K))
    # Negative stiffness or damping adds energy.
    feeding = select(x.K < 0, omega, 0.0) + jnp.maximum(-x.C, 0.0)
    growth = above_exponential(feeding * h)
    rate = (omega + jnp.abs(x.C)) * growth
    energy = jnp.sqrt(start.a * start.a + jnp.abs(x.K) * start.v * start.v)
    curvature = growth * energy * (1.0 + 1e-9)
    close = ROUNDINGS * jnp.finfo(h.dtype).eps
    close = close * (size + h * jnp.abs(start.v))
    curvature, close = once((curvature, close), jnp.any(wanted))

    # A motion that starts away from zero has reached zero when it cannot be distinguished from it.
    zero = select(order == 0, zero, 0.0)

    def parabola(g, slope):
        root = jnp.sqrt(slope * slope + 2.0 * curvature * g)
        falls = slope < 0
        top = select(falls, 2.0 * g, slope + root)
        bottom = select(falls, root - slope, curvature)
        return select(bottom > 0, top / select(bottom > 0, bottom, 1.0), jnp.inf)

    def near(g, slope):
        # A zero follows for certain, so near that a series of few terms reaches it.
        return (slope < 0) & (2.0 * curvature * g <= NEAR * slope * slope)

    g, slope = start.u - zero, start.v
    first = parabola(select(order == 0, g, 0.0), select(order <= 1, slope, 0.0))
    # With more zeros at the start no other zero is nearer than this time.
    apart = select(rate > 0, 1.0 / select(rate > 0, rate, 1.0), h)
    first = select(order >= 2, apart, first)

    def running(s, step):
        u, v, _ = start.after(step)
        return wanted & (s < h) & ~near(u - zero, v)

    def body(carry):
        s, step, count = carry
        u, v, _ = start.after(step)
        further = jnp.minimum(s + parabola(jnp.maximum(u - zero, close), v), h)
        s = select(running(s, step), further, s)
        return s, propagator(x, s, terms), count + 1

    def any_running(carry):
        s, step, count = carry
        return eqxi.unvmap_any(running(s, step)) & (count < MAX_PARABOLAS)

    s = jnp.minimum(first, h)
    carry = s, propagator(x, s, terms), jnp.asarray(0)
    s, step, _ = jax.lax.while_loop(any_running, body, carry)
    u, v, _ = start.after(step)
    further = jnp.maximum(parabola(jnp.maximum(u - zero, 0.0), jnp.minimum(v, 0.0)), 0.0)
    return _Near(s, wanted & near(u - zero, v), further)
