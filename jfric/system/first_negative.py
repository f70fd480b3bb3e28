"""First time at which a function becomes negative, where it is known only while a program runs.

This is the counterpart of :mod:`jfric.system.smallest_value` for traced numbers. From ``t`` on, the
search takes the longest of several steps ``h`` on which a lower bound proves that the function
stays above zero. Around the middle ``m`` of the step, with the harmonics that vary slowly on it
(``w h <= 2``)::

    f >= f(m) - |f'(m)| h/2 - B (h/2)^2 / 2 - sum_fast |A_i|,     B >= |f''|

The steps shrink towards a zero that is crossed, and pass one that is touched.
"""

from __future__ import annotations

from collections.abc import Iterable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.numerics.choice import select
from jfric.numerics.tolerances import tolerances
from jfric.system.functions import AbstractFunction, Constant

#: Number of lengths that are tried, each half of the one before.
LENGTHS = 52
#: Steps after which the search ends, with the function too close to zero to decide.
MOST = 1 << 18


def negative_from(functions: Iterable[AbstractFunction], start, end) -> Float[Array, ""]:
    """First instant [s] between ``start`` and ``end`` from which on one of ``functions`` is
    negative; infinite where none is.

    Values below zero by rounding do not count. The result has no derivative.
    """
    first = jnp.asarray(jnp.inf, jnp.result_type(float))
    for function in functions:
        first = jnp.minimum(first, _negative_from(function, start, end))
    return first


def _negative_from(function: AbstractFunction, start, end):
    function, start, end = jax.lax.stop_gradient((function, start, end))
    dtype = jnp.result_type(float)
    start, end = jnp.asarray(start, dtype), jnp.asarray(end, dtype)
    if isinstance(function, Constant):
        return select((function.value < 0.0) & (start < end), start, jnp.inf)
    breaks = jnp.append(function.breakpoints(), end).astype(dtype)
    halves = 0.5 ** jnp.arange(LENGTHS, dtype=dtype)

    def unfinished(carry):
        t, negative, count = carry
        return (t < end) & ~negative & (count < MOST)

    def step(carry):
        t, _, count = carry
        goal = jnp.minimum(jnp.min(select(breaks > t, breaks, jnp.inf)), end)
        lengths = halves * (goal - t)
        # NaN decides nothing here; the run itself deals with it.
        holds = ~_falls_below(function, t, lengths) & (t + lengths > t)
        longest = jnp.max(select(holds, lengths, 0.0))
        after = select(holds[0], goal, t + longest)
        return after, ~holds.any(), count + 1

    t, negative, _ = jax.lax.while_loop(
        unfinished, step, (start, jnp.asarray(False), jnp.asarray(0, jnp.int32))
    )
    return select(negative, t, jnp.inf)


def _falls_below(function: AbstractFunction, t, lengths):
    """Whether a lower bound over each of ``lengths`` on the smooth piece from ``t`` on is below
    zero by more than rounding."""
    polynomial, harmonics = function.components(t)
    r = 0.5 * lengths
    value, slope, bend = jnp.zeros_like(r), jnp.zeros_like(r), jnp.zeros_like(r)
    rounding = jnp.zeros_like(r)
    for j, (p, size) in enumerate(zip(polynomial, function.magnitudes(t), strict=True)):
        value = value + p * r**j
        rounding = rounding + size * lengths**j
        if j >= 1:
            slope = slope + j * p * r ** (j - 1)
        if j >= 2:
            bend = bend + j * (j - 1) * jnp.abs(p) * lengths ** (j - 2)
    for amplitude, angle, omega in harmonics:
        wave = angle + omega * r
        size, slow = jnp.abs(amplitude), jnp.abs(omega) * r <= 1.0
        value = value + select(slow, amplitude * jnp.sin(wave), -size)
        slope = slope + select(slow, amplitude * omega * jnp.cos(wave), 0.0)
        bend = bend + select(slow, size * omega**2, 0.0)
        rounding = rounding + size
    lowest = value - jnp.abs(slope) * r - 0.5 * bend * r * r
    return lowest < -tolerances(lowest.dtype).zero * rounding
