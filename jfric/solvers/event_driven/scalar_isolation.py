"""Earliest zero of the two guards of one contact, in scalars.

The same certificate as :mod:`jfric.solvers.event_driven.isolation`. What is used several times is
one number: the compiler then computes it once.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.numerics.loops import once
from jfric.numerics.tolerances import ROUNDINGS
from jfric.solvers.event_driven.constants import LEADING, Constants
from jfric.solvers.event_driven.isolation import AT_END
from jfric.solvers.event_driven.scalar_series import value, value_and_size, value_and_slope

#: What is known of a guard on the step, if not the place of its only zero.
NO_ZERO, UNDECIDED = 2.0, 3.0
#: Where the only zero is at the end of the step.
LAST = 1.0


class Guard(NamedTuple):
    """A guard on a step, and what is known of it."""

    coefficients: list
    #: Number of leading coefficients that are zero; whether it vanishes identically.
    order: Array
    null: Bool[Array, ""]
    #: Bound on what the coefficients leave out; sum of the magnitudes of all contributions.
    remainder: Float[Array, ""]
    magnitude: Float[Array, ""]
    #: What counts as zero at the start of the step, and comes too near to zero after it.
    zero: Float[Array, ""] | float = 0.0
    #: Whether it may stay at zero.
    stays: Bool[Array, ""] | bool = False


class Isolated(NamedTuple):
    """Like :class:`jfric.solvers.event_driven.isolation.Isolation`, guard by guard."""

    root: Float[Array, ""]
    guard: list
    decided: Bool[Array, ""]
    undecided: list
    retry: Float[Array, ""]
    near: Bool[Array, ""]
    resolution: Float[Array, ""]


def isolate(guards: list[Guard], c: Constants, on) -> Isolated:
    """Certify both guards on ``[0, 1]`` and locate the earliest zero."""
    known = once(
        [_certificate(*g, c) for g in guards],
        on,
    )
    guesses = [jnp.where(k <= 1.0, k, NO_ZERO) for k in known]
    one_zero = [k <= 1.0 for k in known]
    undecided = [k == UNDECIDED for k in known]
    first = [guesses[0] <= guesses[1], guesses[0] > guesses[1]]
    any_zero, in_doubt = one_zero[0] | one_zero[1], undecided[0] | undecided[1]
    order = jnp.where(first[0], guards[0].order, guards[1].order)
    chosen = choose(first[0], guards[0].coefficients, guards[1].coefficients, order)
    root = once(_newton(chosen, order, jnp.minimum(jnp.minimum(*guesses), 1.0), c.newton), on)
    eps = jnp.finfo(root.dtype).eps
    # To the rounding error of the guard itself, far below that of what it is made of.
    at, own = value_and_size(chosen, root)
    converged = jnp.abs(at) <= ROUNDINGS * eps * own
    ends = (first[0] & (known[0] == LAST)) | (first[1] & (known[1] == LAST))
    converged = converged | (ends & (root >= 1.0))
    passed = [
        z & ~f & (value(g.coefficients, root) < -1e3 * eps * g.magnitude)
        for z, f, g in zip(one_zero, first, guards, strict=True)
    ]
    converged, missed = once((converged, passed[0] | passed[1]), on)
    decided = ~in_doubt & (~any_zero | (converged & ~missed))
    # Another guard that is negative at the zero found has an earlier one.
    earlier = any_zero & converged & ~in_doubt
    # Newton's method has not got down to a zero very near the start.
    near = any_zero & ~converged & ~in_doubt
    shorter = jnp.where(near, jnp.minimum(4.0 * root, 0.5), 0.5)
    bounds = [jnp.maximum(g.remainder, g.zero) for g in guards]
    return Isolated(
        resolution=jnp.where(first[0], *bounds),
        root=jnp.where(any_zero, root, NO_ZERO),
        guard=[f & any_zero for f in first],
        decided=decided,
        undecided=[d | (z & ~decided) for d, z in zip(undecided, one_zero, strict=True)],
        retry=jnp.where(earlier, 0.75 * root, shorter),
        near=near,
    )


def choose(first: Bool[Array, ""], one: list, other: list, order) -> list:
    """The coefficients of ``one`` guard or the ``other``; ``order`` of them are zero by
    construction."""
    chosen = [jax.lax.select(first, a, b) for a, b in zip(one, other, strict=True)]
    for k in range(LEADING):
        chosen[k] = jnp.where(k < order, 0.0, chosen[k])
    return chosen


@functools.partial(jax.jit, static_argnums=7)
def _certificate(p: list, order, null, remainder, magnitude, near, stays, c: Constants):
    """Place of the only zero on the step (roughly), or ``NO_ZERO``, or ``UNDECIDED``.

    Traced once for both guards. ``p``: one number for each order, as a compiled function would turn
    an array of a batch around.
    """
    degree = min(len(p) - 1, c.certificate_order)
    tail = sum(jnp.abs(x) for x in p[degree + 1 :])
    # Power to Bernstein coefficients: sums of neighbours, row by row of Pascal's triangle.
    dropped = sum(jnp.where(k < order, jnp.abs(p[k]), 0.0) for k in range(LEADING))
    left_out = tail + remainder + c.rounding * magnitude
    rounded = left_out + dropped
    bound = jnp.where(order == 0, jnp.maximum(rounded, near), rounded)
    row = [x * (1.0 / math.comb(degree, k)) for k, x in enumerate(p[: degree + 1])]
    b = []
    while row:
        b.append(row[0])
        row = [x + y for x, y in itertools.pairwise(row)]
    # All positive: no zero. Positive, then at most one in doubt, then negative: one zero. Signs
    # are 2, 1 and 0, and must not rise.
    known = [k < order for k in range(LEADING)]
    lower, zero = -bound, jnp.zeros_like(bound)
    one, two = zero + 1.0, zero + 2.0
    rises, count, total, last = jnp.asarray(False), zero, zero, two
    largest = zero
    before = after = zero
    for i, x in enumerate(b):
        positive = x > bound if i >= LEADING else (x > bound) | known[i]
        sign = jnp.where(positive, two, jnp.where(x < lower, zero, one))
        rises = rises | (sign > last)
        largest = jnp.maximum(largest, jnp.abs(x))
        total, last = total + sign, sign
        count = count + jnp.where(positive, one, zero)
        before = jnp.where(positive, x, before)
    for i, x in reversed(list(enumerate(b))):
        positive = x > bound if i >= LEADING else (x > bound) | known[i]
        after = jnp.where(positive, after, x)
    # See the other search.
    held = (largest <= rounded + near) & (null | (stays & (left_out <= near)))
    no_zero = (count == degree + 1.0) & ~null | held
    one_zero = ~rises & (last == 0.0) & (total - 2.0 * count <= 1.0)
    fraction = before / jnp.maximum(before - after, jnp.finfo(bound.dtype).tiny)
    guess = (jnp.maximum(count - 1.0, 0.0) + jnp.clip(fraction, 0.05, 0.95)) / degree
    steep = jnp.abs(b[-1]) <= AT_END * degree * (b[-2] - b[-1])
    ends = (count == float(degree)) & ~rises & steep & (jnp.abs(b[-1]) <= rounded)
    found = jnp.where(ends, LAST, jnp.where(one_zero, guess, UNDECIDED))
    return jnp.where(no_zero, NO_ZERO, jnp.where(null, UNDECIDED, found))


def _newton(y: list, order, guess, steps: int):
    """Newton's method on the guard ``y`` divided by ``s^order``, kept inside the step."""
    power = order.astype(guess.dtype)
    s = guess
    for _ in range(steps):
        at, slope = value_and_slope(y, s)
        reduced = slope - power * at / s
        safe = jnp.where(reduced == 0, 1.0, reduced)
        following = jnp.where(reduced == 0, s, s - at / safe)
        # Never to the known zero at the start.
        s = jnp.clip(following, 0.125 * s, 1.0)
    return s


def with_derivatives(y: list, s):
    """The zero ``s`` of ``y``, with first and second derivatives: those of two Newton steps."""
    s = jax.lax.stop_gradient(s)
    level = jax.lax.stop_gradient(value(y, s))
    for _ in range(2):
        at, slope = value_and_slope(y, s)
        s = s - (at - level) / jnp.where(slope == 0, 1.0, slope)
    return s
