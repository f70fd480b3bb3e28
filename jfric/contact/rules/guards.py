"""Rules for one guard of a contact: its sign right after an instant, and whether it only touches.

A guard is a function of time that stays positive while a mode lasts. Right after the instant
``s = 0`` it is the series ``c_0 + c_1 s + c_2 s^2 + ...``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jfric.numerics.choice import select
from jfric.numerics.tolerances import tolerances
from jfric.results.modes import Mode

#: A fact about one contact that is known at compile time (a Python bool, which leaves no trace in
#: the compiled code), or one element for each of several contacts.
Flag: TypeAlias = bool | np.ndarray | Bool[Array, "*k"]


class Kind(NamedTuple):
    """Kind of a contact, whatever its motion.

    ``unilateral``: it may open; else friction with a given normal force. ``frictionless``: it has
    no tangent; a contact with a coefficient of zero has one. ``unlimited``: unilateral, and both
    its limits of friction are zero; its guards in stick are its friction, which must vanish, and
    its normal force.
    """

    unilateral: Flag
    frictionless: Flag = False
    unlimited: Flag = False


def chosen(flag: Flag, one, other):
    """The value ``one`` where ``flag``, else the ``other``."""
    if isinstance(flag, bool):
        return one if flag else other
    return select(flag, one, other)


def inverse(flag: Flag) -> Flag:
    """Logical ``not`` of a flag."""
    return not flag if isinstance(flag, bool) else ~flag


def slides(mode) -> Bool[Array, "*k"]:
    """Whether a mode is one of the two sliding ones."""
    return (mode == Mode.SLIP_POS) | (mode == Mode.SLIP_NEG)


def slip(forward):
    """The sliding mode with a positive sliding velocity where ``forward``, else the other."""
    return select(forward, Mode.SLIP_POS, Mode.SLIP_NEG)


#: Rounding errors of an acceleration, in those of the force at its limit whose excess causes it:
#: both have different terms and masses.
FROM_REST = 10.0


class GuardSign(NamedTuple):
    """A guard right after an instant.

    ``order``: number of leading coefficients that vanish. ``null``: all of them do, the guard is
    zero identically and holds. ``violated``: the first that does not vanish is negative.
    """

    order: Int[Array, "*k"]
    null: Bool[Array, "*k"]
    violated: Bool[Array, "*k"]


def guard_sign(
    leading: Iterable, zero: Iterable, *, known: Any = 0, of_force: Flag = False
) -> GuardSign:
    """Sign of a guard by the first coefficient that does not vanish (:func:`guard_order`,
    :func:`sign_of_order`); a guard without one holds."""
    leading = list(leading)
    order = guard_order(leading, zero, known=known, of_force=of_force)
    return sign_of_order(order, leading)


def sign_of_order(order: Int[Array, "*k"], leading: Iterable) -> GuardSign:
    """The sign of a guard of which the first ``order`` of the coefficients ``leading`` vanish."""
    leading, violated = list(leading), jnp.zeros(jnp.shape(order), bool)
    for k, value in enumerate(leading):
        violated = violated | ((order == k) & (value < 0))
    return GuardSign(order, order == len(leading), violated)


def guard_order(
    leading: Iterable, zero: Iterable, *, known: Any = 0, of_force: Flag = False
) -> Int[Array, "*k"]:
    """How many leading coefficients of a guard vanish.

    ``leading``: coefficients ``c_0, c_1, ...``; ``zero``: magnitudes up to which each counts as
    zero. The first ``known`` are zero by construction, whatever rounding left there; for forces
    (``of_force``), which may jump, only if they are not far beyond rounding. Where the limit of a
    force is only touched, the next coefficient decides.
    """
    leading, zero = list(leading), list(zero)
    order = jnp.zeros(jnp.shape(leading[0]), jnp.int32)
    still = jnp.ones(order.shape, bool)
    for k, (value, size) in enumerate(zip(leading, zero, strict=True)):
        magnitude = jnp.abs(value)
        vanishes = magnitude <= size
        trusted = k < known
        if trusted is not False:
            if of_force is not False:
                within = magnitude <= tolerances(value.dtype).known * size
                trusted = trusted & (within | inverse(of_force))
            vanishes = vanishes | trusted
        if of_force is not False and 1 <= k < len(leading) - 1:
            touched = touches_limit(value, leading[k + 1], k, zero[0])
            vanishes = vanishes | (of_force & touched)
        still = still & vanishes
        order = order + still.astype(jnp.int32)
    return order


def zero_acceleration(zero, mode, known) -> Any:
    """Magnitude up to which the acceleration of sliding (``zero`` by its own terms) counts as zero.

    It is larger where sliding begins from rest. Stick ends where its force is within rounding of
    the limit; if slip then found more than rounding, neither mode would be taken.
    """
    return zero * select(slides(mode) & (known == 1), FROM_REST, 1.0)


def touches_limit(value, following, k: int, resolution) -> Bool[Array, "*k"]:
    """Whether a limit ``value s^k + following s^(k+1)`` of a force falls, but turns before it is
    further below zero than can be resolved. Such a limit is only touched, and holds afterwards.

    The turn is at ``s = -k value / ((k+1) following)``.
    """
    turn = jnp.abs(value) / select(following > 0, following, 1.0) * (k / (k + 1.0))
    depth = jnp.abs(value) * turn**k / (k + 1.0)
    return (value < 0) & (following > 0) & (depth <= resolution)


def may_stay_at_zero(sign: GuardSign, bounced: Flag) -> Bool[Array, "*k"]:
    """Whether a guard that is zero at an instant may stay indistinguishable from zero: it is
    touched, or rises and falls by less than can be resolved. The gap of a contact that has just
    ``bounced`` may not: its velocity opens it, and the next impact comes, however soon."""
    return sign.null | (sign.order >= select(bounced, 2, 1))


def turns_at_zero(slope, curvature, resolution, value=None) -> Bool[Array, "*k"]:
    """Whether a guard that comes to zero turns there, as far as can be resolved (it grazes).

    Its extreme value ``value - slope^2 / (2 curvature)`` is within ``resolution`` of zero: a double
    root. ``value``: None at a zero of the guard.
    """
    squared = slope * slope
    if value is not None:
        squared = squared - 2.0 * curvature * value
    return squared <= 2.0 * jnp.abs(curvature) * resolution


def arrives_unseen(sign: GuardSign, known) -> Bool[Array, "*k"]:
    """Whether a guard that falls below zero is zero although no event has found that: it touches
    zero, reaches it at a break of a load, or a load sets the body in motion from rest."""
    return sign.violated & (sign.order >= 1) & (known == 0)


def comes_to_rest(mode, first: GuardSign, known) -> Bool[Array, "*k"]:
    """Whether a sliding velocity is zero although no event has found that: other events happened at
    this instant, or a function of time broke. The contact is at rest, and its next mode is decided
    from there, as after an event."""
    return slides(mode) & (first.order >= 1) & (known == 0)


def is_tie(mode, first: GuardSign, second: GuardSign) -> Bool[Array, "*k"]:
    """Whether a sticking contact carries exactly its limit, for a time or at this instant only:
    stick and sliding are both possible. A contact without a normal force at an instant is at both
    limits, has no friction to slide with, and is no tie."""
    reached = (first.order >= 1) != (second.order >= 1)
    return (mode == Mode.STICK) & (first.null | second.null | reached)
