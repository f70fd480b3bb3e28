"""Earliest zero of polynomial guards on a step, with a certificate.

On the step ``s in [0, 1]`` a guard is ``g(s) = sum_k c_k s^k`` plus a remainder of known bound.
In Bernstein form, all coefficients positive proves that there is no zero; exactly one change of
sign proves exactly one zero (Descartes' rule). All other cases are undecided, and the caller
retries with half the step. Zeros at the start are known with their multiplicity and divided out:
the first ``order`` coefficients are zero and the rule holds for the others.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matvec
from jfric.numerics.loops import once, skipped
from jfric.numerics.polynomials import combine, evaluate, horner, horner_with_slope, pick
from jfric.numerics.tolerances import ROUNDINGS

#: Leading coefficients of a guard that may vanish before it counts as identically zero.
LEADING = 5
#: A zero within this fraction of a step from its end counts as a zero at the end.
AT_END = 1e-9
#: Results of the certificate for a guard, other than the place of its only zero inside the step.
LAST, NO_ZERO, UNDECIDED = 1.0, 2.0, 3.0


class Isolation(NamedTuple):
    """Result of the certificate of a step.

    ``root``: the earliest zero of any guard, 2 where no guard has one; ``guard``: the guard that
    has this zero. ``decided`` is False where the step must be shortened, to the fraction ``retry``;
    ``undecided`` marks the guards that the certificate could not decide. ``near``: there is exactly
    one zero, so close to the start that only a shorter step can find its place.
    """

    root: Float[Array, ""]
    guard: Bool[Array, " g"]
    decided: Bool[Array, ""]
    undecided: Bool[Array, " g"]
    retry: Float[Array, ""]
    near: Bool[Array, ""]
    #: Values of the guard with the zero that cannot be distinguished from zero.
    resolution: Float[Array, ""]
    #: Coefficients of the guard that seems to be first.
    chosen: Float[Array, " p"]
    #: Values of the polynomials at the zero, at the end of the step where there is none.
    values: Float[Array, " k"]


@functools.cache
def _bernstein_matrix(degree: int, dtype: str) -> np.ndarray:
    """Power to Bernstein coefficients: ``b_i = sum_k C(i,k)/C(n,k) c_k``."""
    n = degree
    rows = [[math.comb(i, k) / math.comb(n, k) for k in range(n + 1)] for i in range(n + 1)]
    return np.asarray(rows, dtype)


def _pascal(c: Float[Array, " k"]) -> Float[Array, " k"]:
    """Bernstein coefficients of ``c`` by sums of neighbours, row by row of Pascal's triangle: half
    as many operations as with :func:`_bernstein_matrix`."""
    n = c.shape[0] - 1
    row, b = [c[k] * (1.0 / math.comb(n, k)) for k in range(n + 1)], []
    while row:
        b.append(row[0])
        row = [x + y for x, y in itertools.pairwise(row)]
    return jnp.stack(b)


def isolate(
    coefficients: Float[Array, "p k"],
    order: Int[Array, " g"],
    remainder: Float[Array, " g"],
    zero: Float[Array, " g"] | float = 0.0,
    *,
    rows: Float[Array, "g k"] | None = None,
    null: Bool[Array, " g"] | None = None,
    stays: Bool[Array, " g"] | None = None,
    ending: Float[Array, " g"] | None = None,
    certificate_order: int,
    degree: int = 0,
    rounding: float,
    newton: int,
    apart: bool = False,
    on: Bool[Array, ""] | None = None,
) -> Isolation:
    """Certify all guards on ``[0, 1]`` and locate the earliest zero.

    Guards are the combinations ``rows`` of the polynomials in ``coefficients`` (None: these
    themselves); there is at least one guard. Coefficients of a guard below index ``order`` count as
    zero, the one at ``order`` is positive; a guard in ``null`` vanishes identically and holds. A
    guard in ``stays`` holds where it cannot be distinguished from zero on the whole step
    (:func:`jfric.contact.rules.may_stay_at_zero`). ``remainder`` bounds the part that the
    polynomials leave out. A guard that comes as close to zero as ``zero`` cannot be distinguished
    from one that reaches it. Zeros are found to rounding error. ``ending``: fraction of its
    magnitude up to which a guard that is zero only at the end of the step is zero there, not before
    (0: no such guard). ``degree``: that of the polynomials, where zero coefficients were left out.
    ``apart``: for a program that will be lowered. ``on``: whether the trajectory is running.
    """
    on = jnp.asarray(True) if on is None else on
    top = coefficients.shape[0] - 1
    degree = min(max(top, degree), certificate_order)
    size = jnp.abs(coefficients)
    head_size, tail = jnp.sum(size[: degree + 1], axis=0), jnp.sum(size[degree + 1 :], axis=0)
    total = head_size + tail
    magnitude = total if rows is None else matvec(jnp.abs(rows), total)
    tail = tail if rows is None else matvec(jnp.abs(rows), tail)
    leading = jnp.abs(combine(coefficients[:LEADING], rows))
    vanishing = jnp.arange(leading.shape[0], dtype=jnp.int32)[:, None] < order[None, :]
    dropped = jnp.sum(select(vanishing, leading, 0.0), axis=0)
    magnitude, tail, dropped = once((magnitude, tail, dropped), on)
    left_out = tail + remainder + rounding * magnitude
    rounded = left_out + dropped
    bound = select(order == 0, jnp.maximum(rounded, zero), rounded)
    head = coefficients[: degree + 1]
    transform = jnp.asarray(_bernstein_matrix(degree, size.dtype.name)[:, : head.shape[0]])
    few = rows is None or rows.shape[0] < rows.shape[1]
    if apart:
        b = combine(head, rows)
    else:
        b = transform @ combine(head, rows) if few else combine(transform @ head, rows)
    null, stays = (jnp.zeros(order.shape, bool) if x is None else x for x in (null, stays))

    def certificate(b, *of_guard):
        return _certificate(_pascal(b) if apart else b, *of_guard)

    # Where the polynomials leave out more, a shorter step decides more.
    stays = stays & (left_out <= zero)
    ends_there, at_end = jnp.zeros(order.shape, bool), jnp.zeros_like(bound)
    if ending is not None:
        ends_there = ending > 0
        at_end = select(ends_there, jnp.maximum(ending * magnitude, zero), 0.0)
    of_guards = bound, rounded, rounded + zero, at_end, order, null, stays
    found = jax.vmap(certificate)(b.T, *of_guards)
    found = once(found, on)
    ends_there = ends_there & (found == LAST)
    # A trajectory that has ended has no events: an undefined place of one would lead to undefined
    # values in reverse mode.
    one_zero, undecided = (found <= LAST) & on, (found == UNDECIDED) & on
    # Newton's method on the guard that seems to be first; the others are checked there.
    guess = select(one_zero, found, NO_ZERO)
    first = jnp.arange(guess.shape[0]) == jnp.argmin(guess)
    power = jnp.sum(select(first, order, 0))
    chosen = pick(coefficients, rows, first)
    chosen = select(jnp.arange(top + 1) < power, 0.0, chosen)
    any_zero = jnp.any(one_zero)
    guess = jnp.minimum(jnp.min(guess), 1.0)

    def located():
        root = _newton(chosen, power, guess, newton)
        # Includes the value of the guard itself, which each use would otherwise recompute.
        return root, evaluate(jnp.concatenate([coefficients, chosen[:, None]], axis=1), root)

    end = jnp.sum(coefficients, axis=0), jnp.sum(chosen)[None]
    nowhere = jnp.ones_like(guess), jnp.concatenate(end)
    root, values = skipped(any_zero, located, nowhere)
    inside = any_zero & ~jnp.any(first & ends_there)
    root = select(inside, root, 1.0)
    values = select(inside, values, nowhere[1])
    values, own_value = values[:-1], values[-1]
    there = values if rows is None else matvec(rows, values)
    eps = jnp.finfo(b.dtype).eps
    # To the rounding error of the guard itself at this place, which is far below that of its terms
    # and of its value at the end of a long step.
    own = horner(jnp.abs(chosen), root)
    converged = jnp.abs(own_value) <= ROUNDINGS * eps * own
    converged = converged | (jnp.any(first & (found == LAST)) & (root >= 1.0))
    passed = one_zero & ~first & ~ends_there & (there < -1e3 * eps * magnitude)
    decided = ~jnp.any(undecided) & (~any_zero | (converged & ~jnp.any(passed)))
    # Another guard that is negative at the zero found has an earlier one.
    earlier = any_zero & converged & ~jnp.any(undecided)
    # Newton's method has not reached a zero very close to the start.
    near = any_zero & ~converged & ~jnp.any(undecided)
    shorter = select(near, jnp.minimum(4.0 * root, 0.5), 0.5)
    return Isolation(
        root=select(any_zero, root, NO_ZERO),
        guard=first & any_zero,
        decided=decided,
        undecided=undecided | (one_zero & ~decided),
        retry=select(earlier, 0.75 * root, shorter),
        near=near,
        resolution=jnp.sum(select(first, jnp.maximum(remainder, zero), 0.0)),
        chosen=chosen,
        values=values,
    )


def watched_zero(leading, zero, null):
    """Values (lists or arrays of orders) of each guard that cannot be distinguished from zero on a
    step: the threshold at the start, or, for a guard taken as identically zero, all that vanished
    there."""
    vanished = sum(jnp.maximum(jnp.abs(a), b) for a, b in zip(leading, zero, strict=True))
    return select(null, vanished, zero[0])


def _certificate(b: Float[Array, " k"], bound, rounded, resolution, at_end, order, null, stays):
    """Approximate place of the only zero of one guard, or ``LAST``, ``NO_ZERO`` or ``UNDECIDED``,
    as proved by the Bernstein coefficients ``b`` of the guard.

    No zero: all coefficients are positive. Exactly one: positive coefficients, at most one in
    doubt, then negative ones. The first ``order`` count as positive. One at the end, as for an
    event at an output or where a load changes: all are positive except the last, which ``rounded``
    cannot distinguish from zero, or which is below ``at_end``. A guard that vanishes with its first
    derivatives (``null``) must remain so, within ``resolution``. A guard that ``stays`` at zero has
    no zero on a step too short to distinguish it from zero: shorter steps would decide less.
    """
    degree = b.shape[0] - 1
    known = jnp.concatenate(
        [
            jnp.arange(LEADING, dtype=jnp.int32) < order,
            jnp.zeros((max(degree + 1 - LEADING, 0),), bool),
        ]
    )
    positive = (b > bound) | known[: degree + 1]
    count, negatives = (jnp.sum(x.astype(b.dtype)) for x in (positive, b < -bound))
    # Place where signs change from positive to not positive, at most once.
    edge = positive[:-1] != positive[1:]
    before, after = (jnp.sum(select(edge, x, 0.0)) for x in (b[:-1], b[1:]))
    after = select(count == 0.0, b[0], after)
    falls = (positive[0] | (count == 0.0)) & (jnp.sum(edge.astype(b.dtype)) <= 1.0)
    # The coefficient in doubt lies between positive and negative ones.
    undecided = degree + 1.0 - count - negatives
    in_place = (undecided == 0.0) | ((undecided == 1.0) & (after >= -bound))
    one_zero = falls & (negatives >= 1.0) & in_place
    fraction = before / jnp.maximum(before - after, jnp.finfo(b.dtype).tiny)
    guess = (jnp.maximum(count - 1.0, 0.0) + jnp.clip(fraction, 0.05, 0.95)) / degree
    steep = jnp.abs(b[-1]) <= AT_END * degree * (b[-2] - b[-1])
    ends = steep & (jnp.abs(b[-1]) <= rounded) | (jnp.abs(b[-1]) < at_end)
    ends = ends & falls & (count == degree)
    held = (null | stays) & (jnp.max(jnp.abs(b)) <= resolution)
    no_zero = (count == degree + 1.0) | held
    found = select(ends, LAST, select(one_zero, guess, UNDECIDED))
    return select(no_zero, NO_ZERO, select(null, UNDECIDED, found))


def _newton(coefficients, order, guess, steps: int):
    """Newton's method on the guard divided by ``s^order``, kept inside the step.

    The loop is not unrolled: the compiler would repeat the preceding operations in every step.
    There is no bracket: it would triple the work, and a zero that is not found shortens the step.
    """
    power = order.astype(guess.dtype)

    def body(_, s):
        value, slope = horner_with_slope(coefficients, s)
        reduced = slope - power * value / s
        safe = select(reduced == 0, 1.0, reduced)
        following = select(reduced == 0, s, s - value / safe)
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
    # For a second derivative the zero moves, too.
    s = with_root_derivative(coefficients, s)
    change = horner(tangents[0], s)
    _, slope = horner_with_slope(coefficients, s)
    return s, -change / select(slope == 0, 1.0, slope)
