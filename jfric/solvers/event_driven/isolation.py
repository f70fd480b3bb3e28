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


class Isolation(NamedTuple):
    """What the certificate says of a step.

    ``root``: the earliest zero of any guard, 2 where none has one; ``guard``: whose it is.
    ``decided`` is False where the step must be shortened, to the fraction ``retry``;
    ``doubtful`` names the guards that the certificate could not decide.
    """

    root: Float[Array, ""]
    guard: Bool[Array, " g"]
    decided: Bool[Array, ""]
    doubtful: Bool[Array, " g"]
    retry: Float[Array, ""]


@functools.cache
def _bernstein_matrix(degree: int, dtype: str) -> np.ndarray:
    """Power to Bernstein coefficients: ``b_i = sum_k C(i,k)/C(n,k) c_k``."""
    n = degree
    rows = [[math.comb(i, k) / math.comb(n, k) for k in range(n + 1)] for i in range(n + 1)]
    return np.asarray(rows, dtype)


def horner(coefficients: Float[Array, "p ..."], s) -> Float[Array, ...]:
    """Value at ``s`` of the polynomial with the given coefficients, constant term first."""
    value = coefficients[-1]
    for k in range(coefficients.shape[0] - 2, -1, -1):
        value = value * s + coefficients[k]
    return value


def horner_with_slope(coefficients: Float[Array, "p ..."], s):
    """Value and first derivative at ``s``."""
    value, slope = coefficients[-1], jnp.zeros_like(coefficients[-1])
    for k in range(coefficients.shape[0] - 2, -1, -1):
        slope = slope * s + value
        value = value * s + coefficients[k]
    return value, slope


def isolate(
    coefficients: Float[Array, "p g"],
    lead: Int[Array, " g"],
    remainder: Float[Array, " g"],
    *,
    certificate_order: int,
    rounding: float,
    newton: int,
) -> Isolation:
    """Certify all guards on ``[0, 1]`` and locate the earliest zero.

    Coefficients below index ``lead`` must be zero, the one at ``lead`` positive. ``remainder``
    bounds what the polynomials leave out. Zeros are found to rounding error. At least one guard.
    """
    order = coefficients.shape[0] - 1
    degree = min(order, certificate_order)
    magnitude = jnp.sum(jnp.abs(coefficients), axis=0)
    tail = jnp.sum(jnp.abs(coefficients[degree + 1 :]), axis=0)
    bound = tail + remainder + rounding * magnitude
    c = coefficients[: degree + 1]
    b = jnp.asarray(_bernstein_matrix(degree, c.dtype.name)) @ c
    no_zero, one_zero, guess = _classify(b, bound, lead, degree)
    # Newton's method on the guard that seems to be first; the others are checked there.
    guess = jnp.where(one_zero, guess, 2.0)
    first = jnp.arange(guess.shape[0]) == jnp.argmin(guess)
    chosen = jnp.sum(jnp.where(first, coefficients, 0.0), axis=1)
    power = jnp.sum(jnp.where(first, lead, 0))
    any_zero = jnp.any(one_zero)
    size = jnp.sum(jnp.where(first, magnitude, 0.0))
    root, converged = _newton(chosen, power, jnp.minimum(jnp.min(guess), 1.0), size, newton)
    small = 1e3 * jnp.finfo(b.dtype).eps * magnitude
    passed = one_zero & ~first & (horner(coefficients, root) < -small)
    doubtful = ~(no_zero | one_zero)
    decided = ~jnp.any(doubtful) & (~any_zero | (converged & ~jnp.any(passed)))
    # Another guard that is negative at the zero found has an earlier one.
    earlier = any_zero & converged & ~jnp.any(doubtful)
    return Isolation(
        root=jnp.where(any_zero, root, 2.0),
        guard=first & any_zero,
        decided=decided,
        doubtful=doubtful | (one_zero & ~decided),
        retry=jnp.where(earlier, 0.75 * root, 0.5),
    )


def _classify(b, bound, lead, degree: int):
    """No zero, exactly one zero, and where the control polygon crosses.

    Exactly one: positive coefficients, at most one in doubt, negative ones. All counts go into
    one sum, five bits each.
    """
    count = degree + 1
    index = jnp.arange(count)[:, None]
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
    guess = (positives - 1 + jnp.clip(fraction, 0.05, 0.95)) / degree
    return no_zero, one_zero, guess


def _newton(coefficients, lead, guess, magnitude, steps: int):
    """Bracketed Newton iteration on the guard divided by ``s^lead``.

    A loop, not written out: the compiler would repeat what comes before it in every step.
    """
    power = lead.astype(guess.dtype)

    def body(_, carry):
        s, low, high = carry
        value, slope = horner_with_slope(coefficients, s)
        low = jnp.where(value > 0, s, low)
        high = jnp.where(value < 0, s, high)
        reduced = slope - power * value / s
        safe = jnp.where(reduced == 0, 1.0, reduced)
        following = jnp.where(reduced == 0, s, s - value / safe)
        # A converged step may land on the bracket itself; only a real escape is bisected.
        inside = (following >= low) & (following <= high)
        return jnp.where(inside, following, 0.5 * (low + high)), low, high

    start = (guess, jnp.zeros_like(guess), jnp.ones_like(guess))
    s, _, _ = jax.lax.fori_loop(0, steps, body, start)
    value = horner(coefficients, s)
    tolerance = 64 * jnp.finfo(guess.dtype).eps * magnitude
    return s, jnp.abs(value) <= tolerance


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
    change = horner(tangents[0], s)
    _, slope = horner_with_slope(coefficients, s)
    return s, -change / jnp.where(slope == 0, 1.0, slope)
