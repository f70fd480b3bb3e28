"""Earliest zero of polynomial guards on a step, with a certificate.

On the step ``s in [0, 1]`` a guard is ``g(s) = sum_k c_k s^k`` plus a remainder of known bound.
In Bernstein form, all coefficients positive proves that there is no zero; exactly one change of
sign proves exactly one zero (Descartes' rule). Anything else is undecided and the caller retries
with half the step. Zeros at the start are known with their multiplicity and divided out: the
first ``lead`` coefficients are zero and the rule holds for the others.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.linear_algebra import matvec
from jfric.numerics.polynomials import combine, evaluate, horner, horner_with_slope, pick
from jfric.numerics.tolerances import ROUNDINGS
from jfric.solvers.event_driven.constants import LEADING

#: A zero this part of a step away from its end is one at the end.
AT_END = 1e-9


class Isolation(NamedTuple):
    """What the certificate says of a step.

    ``root``: the earliest zero of any guard, 2 where none has one; ``guard``: whose it is.
    ``decided`` is False where the step must be shortened, to the fraction ``retry``;
    ``doubtful`` names the guards that the certificate could not decide. ``near``: there is exactly
    one zero, so near the start that a shorter step is needed to find its place.
    """

    root: Float[Array, ""]
    guard: Bool[Array, " g"]
    decided: Bool[Array, ""]
    doubtful: Bool[Array, " g"]
    retry: Float[Array, ""]
    near: Bool[Array, ""]
    #: What cannot be told from zero of the guard that has it.
    resolution: Float[Array, ""]


@functools.cache
def _bernstein_matrix(degree: int, dtype: str) -> np.ndarray:
    """Power to Bernstein coefficients: ``b_i = sum_k C(i,k)/C(n,k) c_k``."""
    n = degree
    rows = [[math.comb(i, k) / math.comb(n, k) for k in range(n + 1)] for i in range(n + 1)]
    return np.asarray(rows, dtype)


def isolate(
    coefficients: Float[Array, "p k"],
    lead: Int[Array, " g"],
    remainder: Float[Array, " g"],
    zero: Float[Array, " g"] | float = 0.0,
    *,
    rows: Float[Array, "g k"] | None = None,
    null: Bool[Array, " g"] | None = None,
    certificate_order: int,
    rounding: float,
    newton: int,
) -> Isolation:
    """Certify all guards on ``[0, 1]`` and locate the earliest zero.

    Guards are the combinations ``rows`` of the polynomials in ``coefficients`` (None: these
    themselves). Those of a guard below index ``lead`` count as zero, the one at ``lead`` is
    positive; a guard in ``null`` vanishes identically and holds. ``remainder`` bounds what the
    polynomials leave out. A guard that comes as near to zero as ``zero`` has not been told from one
    that reaches it. Zeros are found to rounding error. At least one guard.
    """
    order = coefficients.shape[0] - 1
    degree = min(order, certificate_order)
    size = jnp.abs(coefficients)
    total, tail = jnp.sum(size, axis=0), jnp.sum(size[degree + 1 :], axis=0)
    magnitude = total if rows is None else matvec(jnp.abs(rows), total)
    tail = tail if rows is None else matvec(jnp.abs(rows), tail)
    leading = jnp.abs(combine(coefficients[:LEADING], rows))
    vanishing = jnp.arange(leading.shape[0], dtype=jnp.int32)[:, None] < lead
    dropped = jnp.sum(jnp.where(vanishing, leading, 0.0), axis=0)
    rounded = tail + dropped + remainder + rounding * magnitude
    bound = jnp.where(lead == 0, jnp.maximum(rounded, zero), rounded)
    head = coefficients[: degree + 1]
    transform = jnp.asarray(_bernstein_matrix(degree, size.dtype.name))
    few = rows is None or rows.shape[0] < rows.shape[1]
    b = transform @ combine(head, rows) if few else combine(transform @ head, rows)
    no_zero, one_zero, guess = _classify(b, bound, lead, degree)
    # Positive up to a zero at the end: an event at an output or where a load changes.
    known = jnp.arange(degree, dtype=jnp.int32)[:, None] < lead
    all_but_last = jnp.all((b[:-1] > bound) | known, axis=0)
    steep = jnp.abs(b[-1]) <= AT_END * degree * (b[-2] - b[-1])
    ends = all_but_last & steep & (jnp.abs(b[-1]) <= rounded)
    one_zero, guess = one_zero | ends, jnp.where(ends, 1.0, guess)
    if null is not None:
        # What vanishes with its first derivatives must go on doing so.
        quiet = jnp.all(jnp.abs(b) <= rounded + zero, axis=0)
        no_zero, one_zero = no_zero | (null & quiet), one_zero & ~null
    # Newton's method on the guard that seems to be first; the others are checked there.
    guess = jnp.where(one_zero, guess, 2.0)
    first = jnp.arange(guess.shape[0]) == jnp.argmin(guess)
    power = jnp.sum(jnp.where(first, lead, 0))
    chosen = pick(coefficients, rows, first)
    chosen = jnp.where(jnp.arange(order + 1) < power, 0.0, chosen)
    any_zero = jnp.any(one_zero)
    root = _newton(chosen, power, jnp.minimum(jnp.min(guess), 1.0), newton)
    there = evaluate(coefficients, root)
    there = there if rows is None else matvec(rows, there)
    eps = jnp.finfo(b.dtype).eps
    # To the rounding error of the guard itself, far below that of what it is made of.
    own = jnp.sum(jnp.abs(chosen))
    converged = jnp.abs(horner(chosen, root)) <= ROUNDINGS * eps * own
    converged = converged | (jnp.any(first & ends) & (root >= 1.0))
    passed = one_zero & ~first & (there < -1e3 * eps * magnitude)
    doubtful = ~(no_zero | one_zero)
    decided = ~jnp.any(doubtful) & (~any_zero | (converged & ~jnp.any(passed)))
    # Another guard that is negative at the zero found has an earlier one.
    earlier = any_zero & converged & ~jnp.any(doubtful)
    # Newton's method has not got down to a zero very near the start.
    near = any_zero & ~converged & ~jnp.any(doubtful)
    shorter = jnp.where(near, jnp.minimum(4.0 * root, 0.5), 0.5)
    return Isolation(
        root=jnp.where(any_zero, root, 2.0),
        guard=first & any_zero,
        decided=decided,
        doubtful=doubtful | (one_zero & ~decided),
        retry=jnp.where(earlier, 0.75 * root, shorter),
        near=near,
        resolution=jnp.sum(jnp.where(first, jnp.maximum(remainder, zero), 0.0)),
    )


def watched_zero(leading, zero, null):
    """What cannot be told from zero on a step, for each guard (lists or arrays of orders): what
    counts as zero at its start; all that vanished there where a guard is taken for zero itself."""
    vanished = sum(jnp.maximum(jnp.abs(a), b) for a, b in zip(leading, zero, strict=True))
    return jnp.where(null, vanished, zero[0])


def _classify(b, bound, lead, degree: int):
    """No zero, exactly one zero, and where the control polygon crosses.

    Exactly one: positive coefficients, at most one in doubt, negative ones. All counts go into
    one sum, five bits each.
    """
    count = degree + 1
    index = jnp.arange(count, dtype=jnp.int32)[:, None]
    known = index < lead
    positive = (b > bound) | known
    negative = (b < -bound) & ~known
    first = jnp.zeros_like(positive[:1])
    back_up = positive & jnp.concatenate([first, ~positive[:-1]])
    back_down = ~negative & jnp.concatenate([first, negative[:-1]])
    code = (
        positive.astype(jnp.int32)
        + (negative.astype(jnp.int32) << 5)
        + (back_up.astype(jnp.int32) << 10)
        + (back_down.astype(jnp.int32) << 15)
    )
    total = jnp.sum(code, axis=0, dtype=jnp.int32)
    positives, negatives = total & 31, (total >> 5) & 31
    monotone = (total >> 10) == 0
    no_zero = positives == count
    one_zero = monotone & (negatives >= 1) & (positives + negatives >= degree)
    before = jnp.sum(jnp.where(index == positives - 1, b, 0.0), axis=0)
    after = jnp.sum(jnp.where(index == positives, b, 0.0), axis=0)
    fraction = before / jnp.maximum(before - after, jnp.finfo(b.dtype).tiny)
    whole = jnp.maximum(positives - 1, 0).astype(b.dtype)
    guess = (whole + jnp.clip(fraction, 0.05, 0.95)) / degree
    return no_zero, one_zero, guess


def _newton(coefficients, lead, guess, steps: int):
    """Newton's method on the guard divided by ``s^lead``, kept inside the step.

    A loop, not written out: the compiler would repeat what comes before it in every step. There
    is no bracket: it would triple the work, and a zero that is not found shortens the step.
    """
    power = lead.astype(guess.dtype)

    def body(_, s):
        value, slope = horner_with_slope(coefficients, s)
        reduced = slope - power * value / s
        safe = jnp.where(reduced == 0, 1.0, reduced)
        following = jnp.where(reduced == 0, s, s - value / safe)
        # Never to the known zero at the start.
        return jnp.clip(following, 0.125 * s, 1.0)

    return jax.lax.fori_loop(0, steps, body, guess)


@jax.custom_jvp
def with_root_derivative(coefficients: Float[Array, " p"], s):
    """The zero ``s``, with its derivative by the implicit function theorem.

    ``ds = -dg / g'`` where ``dg`` is the change of the guard at fixed ``s``.
    """
    del coefficients
    return s


@with_root_derivative.defjvp
def _with_root_derivative_jvp(primals, tangents):
    coefficients, s = primals
    # The zero moves for a second derivative, too.
    s = with_root_derivative(coefficients, s)
    change = horner(tangents[0], s)
    _, slope = horner_with_slope(coefficients, s)
    return s, -change / jnp.where(slope == 0, 1.0, slope)
