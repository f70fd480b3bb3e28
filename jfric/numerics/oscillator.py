"""The motion ``u'' = F - K u - C u'`` in closed form, and where its velocity first has a value.

**Motion.** Velocity and acceleration obey ``dy/ds = B y`` with ``B = [[0, 1], [-K, -C]]``.
Functions of ``B`` are ``p + r B``: two numbers, found for any sign of ``K`` and ``C`` alike.

**First zero** of ``g = u' + offset``. With ``|g''| <= b`` on the rest of the way, there is none
before that of the parabola ``g + g' s - b s^2 / 2``. Going from zero to zero of such parabolas
never passes a zero of ``g``, and converges to the first one quadratically. The bound follows from
``a^2 + K v^2``, which decreases if ``K`` and ``C`` are positive. Once ``2 b g < g'^2`` with
``g' < 0`` a zero follows for certain, and a short series gives its place to rounding error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.loops import once
from jfric.numerics.polynomials import horner, horner_with_slope
from jfric.numerics.tolerances import ROUNDINGS

#: Parabolas in one search; where that is not enough, it ends on the way.
MAX_PARABOLAS = 60
#: A zero is near if ``2 b g <= NEAR g'^2``: about 0.17 time scales of the motion at most. Series of
#: this order have converged there, and so has Newton's method on them after so many rounds.
NEAR = 0.3
NEAR_ORDER = 11
NEWTON = 4


class Oscillator(NamedTuple):
    """``u'' = F - K u - C u'``, by its velocity: ``F`` is in the acceleration at the start."""

    K: Float[Array, ""]
    C: Float[Array, ""]


class _Propagator(NamedTuple):
    """``integral of exp(B s) = p + r B`` over a time: motion after it is a linear combination."""

    p: Float[Array, ""]
    r: Float[Array, ""]


def propagator(x: Oscillator, s, order: int) -> _Propagator:
    """``s (1 + B s/2 (1 + B s/3 (1 + ...)))`` with ``B^2 = -K - C B``."""
    stiff, damp = x.K * s * s, x.C * s
    p, r = jnp.ones_like(s), jnp.zeros_like(s)
    for j in range(order, 1, -1):
        p, r = 1.0 - stiff * r * (1.0 / j), (p - damp * r) * (1.0 / j)
    return _Propagator(p * s, r * s * s)


class Motion(NamedTuple):
    """Displacement and its first four derivatives at one instant."""

    u: Float[Array, ""]
    v: Float[Array, ""]
    a: Float[Array, ""]
    jerk: Float[Array, ""]
    snap: Float[Array, ""]

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
    """How far a search got: ``g`` is zero there if ``found``, and, as far as can be resolved, turns
    there if it ``grazes``."""

    s: Float[Array, ""]
    u: Float[Array, ""]
    v: Float[Array, ""]
    found: Bool[Array, ""]
    grazes: Bool[Array, ""]


class Search(NamedTuple):
    """What is searched: ``offset`` in ``g = u' + offset``, positive at first; how many of ``g`` and
    its derivatives are zero at the start; whether the result will be used; the order of the series,
    and what cannot be told from zero.

    ``turns(slope, curvature, zero, g)``: whether ``g`` grazes zero.
    """

    offset: Float[Array, ""]
    order: Int[Array, ""]
    wanted: Bool[Array, ""]
    terms: int
    zero: Float[Array, ""]
    turns: Callable


def first_zero(x: Oscillator, start: Motion, way: Search, h, *, derivatives: bool) -> Reached:
    """Move until ``g`` is zero, for the time ``h`` at most.

    ``derivatives``: whether derivatives will be asked for. The search has none; they are those of
    the motion at its end.
    """
    offset = jax.lax.stop_gradient(way.offset)
    frozen = jax.lax.stop_gradient((x, start, h))
    near = _near_zero(*frozen[:2], way._replace(offset=offset), frozen[2])
    s, step = near.s, near.step
    if derivatives:
        s = jnp.where(s >= frozen[2], h, s)
        step = propagator(x, s, way.terms)
    u, v, a = once(start.after(step), way.wanted)

    # On to the zero by the series about this point.
    y = [v, a]
    for j in range(2, NEAR_ORDER + 1):
        y.append(-(x.K * y[j - 2] * (1.0 / (j * (j - 1))) + x.C * y[j - 1] * (1.0 / j)))

    def newton(y, offset, further):
        value, rate = horner_with_slope(y, further)
        return further - (value + offset) / jnp.where(rate < 0, rate, -1.0)

    still = jax.lax.stop_gradient(y)
    further = jax.lax.fori_loop(0, NEWTON, lambda _, z: newton(still, offset, z), near.further)
    # Where velocity turns before it is zero, or so soon after that nobody can tell.
    g, slope, bend = still[0] + offset, still[1], 2.0 * still[2]
    grazes = (bend > 0) & way.turns(slope, bend, way.zero, g)
    further = jnp.where(grazes, -slope / jnp.where(grazes, bend, 1.0), further)
    found = near.found & (near.s + further <= frozen[2])
    further, found, grazes = once(
        (jnp.where(found, further, 0.0), found, found & grazes), way.wanted
    )
    if derivatives:
        # Two steps from the zero give first and second derivatives of its time.
        for _ in range(2):
            further = jnp.where(found & ~grazes, newton(y, way.offset, further), further)
    path = [u] + [y[j] * (1.0 / (j + 1)) for j in range(NEAR_ORDER + 1)]
    return Reached(s + further, horner(path, further), horner(y, further), found, grazes)


class _Near(NamedTuple):
    """A time near the zero, or as far as the search got; an estimate of what is left."""

    s: Float[Array, ""]
    step: _Propagator
    found: Bool[Array, ""]
    further: Float[Array, ""]


def _near_zero(x: Oscillator, start: Motion, way: Search, h) -> _Near:
    """From parabola to parabola until a zero is near, for the time ``h`` at most."""
    offset, order, wanted, terms, zero, _ = way
    omega = jnp.sqrt(jnp.abs(x.K))
    # Negative stiffness or damping feeds energy.
    feeding = jnp.where(x.K < 0, omega, 0.0) + jnp.maximum(-x.C, 0.0)
    rate = (omega + jnp.abs(x.C)) * jnp.exp(feeding * h)
    energy = jnp.sqrt(start.a * start.a + jnp.abs(x.K) * start.v * start.v)
    curvature = rate * energy * (1.0 + 1e-9)
    close = ROUNDINGS * jnp.finfo(h.dtype).eps
    close = close * (jnp.abs(start.v) + h * energy + jnp.abs(offset))
    curvature, close = once((curvature, close), wanted)

    # What starts away from zero has reached it when it cannot be told from it.
    zero = jnp.where(order == 0, zero, 0.0)

    def guard(v, a):
        return v + offset - zero, a

    def parabola(g, slope):
        root = jnp.sqrt(slope * slope + 2.0 * curvature * g)
        falls = slope < 0
        top = jnp.where(falls, 2.0 * g, slope + root)
        bottom = jnp.where(falls, root - slope, curvature)
        return jnp.where(bottom > 0, top / jnp.where(bottom > 0, bottom, 1.0), jnp.inf)

    def near(g, slope):
        # A zero follows for certain, so near that few terms of a series reach it.
        return (slope < 0) & (2.0 * curvature * g <= NEAR * slope * slope)

    g, slope = guard(start.v, start.a)
    first = parabola(jnp.where(order == 0, g, 0.0), jnp.where(order <= 1, slope, 0.0))
    # With more zeros at the start no other is nearer than this.
    apart = jnp.where(rate > 0, 1.0 / jnp.where(rate > 0, rate, 1.0), h)
    first = jnp.where(order >= 2, apart, first)

    def running(s, step):
        _, v, a = start.after(step)
        return wanted & (s < h) & ~near(*guard(v, a))

    def body(carry):
        s, step, count = carry
        _, v, a = start.after(step)
        g, slope = guard(v, a)
        further = jnp.minimum(s + parabola(jnp.maximum(g, close), slope), h)
        s = jnp.where(running(s, step), further, s)
        return s, propagator(x, s, terms), count + 1

    def any_running(carry):
        s, step, count = carry
        return eqxi.unvmap_any(running(s, step)) & (count < MAX_PARABOLAS)

    s = jnp.minimum(first, h)
    carry = s, propagator(x, s, terms), jnp.asarray(0)
    s, step, _ = jax.lax.while_loop(any_running, body, carry)
    g, slope = guard(*start.after(step)[1:])
    further = jnp.maximum(parabola(jnp.maximum(g, 0.0), jnp.minimum(slope, 0.0)), 0.0)
    return _Near(s, step, wanted & near(g, slope), further)
