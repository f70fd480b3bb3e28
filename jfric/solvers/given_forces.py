"""Checks of numbers that are known only inside a run, as those that a sweep or a fit varies:
whether they are allowed at its start, and from when on a given normal force or friction limit is
negative, which ends the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.numerics.choice import select
from jfric.numerics.loops import keep
from jfric.numerics.tolerances import sooner, tolerances
from jfric.results.status import Status
from jfric.system.bounds import numbers_hold
from jfric.system.functions import AbstractFunction, Constant
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem
from jfric.system.start_checks import starts_inside


def status_of_numbers(problem: Problem, mechanics: Mechanics, t, until, q=None) -> Int[Array, ""]:
    """Status of a run from ``t`` to ``until`` [s] before it begins: the :class:`jfric.Status` of
    numbers that are not finite or not allowed, of an end that is not after the start, and of
    positions ``q`` (n,), where they are given, that penetrate; else ``OK``."""
    finite, inside = numbers_hold(problem)
    finite = finite & jnp.isfinite(t) & jnp.isfinite(until)
    status = jnp.asarray(int(Status.OK), jnp.int32)
    if q is not None:
        status = select(starts_inside(mechanics, t, q), int(Status.PENETRATION), status)
    status = select(inside & (until > t), status, int(Status.OUT_OF_BOUNDS))
    return select(finite, status, int(Status.NON_FINITE)).astype(jnp.int32)


def first_negative_force(mechanics: Mechanics, t, until) -> Float[Array, ""]:
    """Instant [s] between ``t`` and ``until`` from which on a given normal force is negative;
    infinite if none is."""
    return negative_from(mechanics.normal_forces, t, until).astype(mechanics.K.dtype)


def ending_at(moment, mechanics: Mechanics, until, call: Callable) -> Callable:
    """One pass ``(state, records, on, *shared)`` of a run that ends at ``moment`` [s].

    ``call(state, records, on, until, *shared)``: a pass of the solver; its third result gives the
    piece of the trajectory for the state after the pass.
    """

    def one_pass(state, records, on, *shared):
        if not mechanics.n_friction:
            new, records, piece = call(state, records, on, until, *shared)
            return new, records, lambda: piece(new)
        over = state.t >= moment
        # A pass needs time ahead, even where its result is not used.
        reach = select(over, until, sooner(until, moment))
        new, records, piece = call(state, records, on & ~over, reach, *shared)
        code = jnp.asarray(int(Status.NEGATIVE_FORCE), jnp.int32)
        new = keep(~over, new, eqx.tree_at(lambda s: s.status, state, code))
        return new, records, lambda: piece(new)

    return one_pass


#: Number of lengths that are tried, each half of the one before.
LENGTHS = 52
#: Steps after which the search ends, with the function too close to zero to decide.
MOST = 1 << 18


def negative_from(functions: Iterable[AbstractFunction], start, end) -> Float[Array, ""]:
    """First instant [s] between ``start`` and ``end`` from which on one of ``functions`` is
    negative; infinite where none is. Numbers may be traced; with numbers that are known
    :func:`jfric.system.function_checks.find_negative` tells more.

    From ``t`` on, the search takes the longest of several steps ``h`` on which a lower bound proves
    that the function stays above zero. Around the middle ``m`` of the step, with the harmonics that
    vary slowly on it (``w h <= 2``)::

        f >= f(m) - |f'(m)| h/2 - B (h/2)^2 / 2 - sum_fast |A_i|,     B >= |f''|

    The steps shrink towards a zero that is crossed, and pass one that is touched. Values below zero
    by rounding do not count. The result has no derivative.
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
