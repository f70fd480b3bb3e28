"""Rules for impacts of one contact: who hits, restitution, accumulation, mode and energy after."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.contact.rules.kind import Flag, inverse
from jfric.contact.rules.modes import closed_mode
from jfric.numerics.tolerances import FAST, tolerances
from jfric.results.modes import Mode


def restitution(after, before, e):
    """Velocity that Newton's law keeps from becoming negative: ``gamma_N+ + e gamma_N-``, zero
    where there is an impulse."""
    return after + e * before


def slides_through(sliding, approach) -> Bool[Array, "*k"]:
    """Whether a contact slides too fast for an impact to end it. Its velocity would only blur those
    that decide."""
    return sliding > FAST * approach


def time_of_bounces(approach, pull, e) -> Float[Array, "*k"]:
    """How long a sequence of impacts lasts that begins with the velocity ``approach``.

    Flights of ``2 e v / a``, then ``e`` times that, ...: ``2 e v / a / (1 - e)`` under the
    acceleration ``pull``. Infinite where it does not end.
    """
    ends = (pull > 0) & (approach > 0) & (e < 1)
    flight = 2.0 * e * approach / jnp.where(ends, pull, 1.0)
    return jnp.where(ends, flight / jnp.where(ends, 1.0 - e, 1.0), jnp.inf)


class Hit(NamedTuple):
    """A contact at an impact.

    ``accumulates``: this is the end of a sequence, which takes the time ``rest`` more. ``e``: the
    restitution that holds.
    """

    hits: Bool[Array, "*k"]
    accumulates: Bool[Array, "*k"]
    e: Float[Array, "*k"]
    rest: Float[Array, "*k"]

    def due(self, t) -> Float[Array, "*k"]:
        """When the sequence that ends here would have ended; minus infinity where there is none."""
        later = t + jnp.where(self.accumulates, self.rest, 0.0)
        return jnp.where(self.accumulates, later, -jnp.inf)


def drowns(approach, pull, e, gap, resolution) -> Bool[Array, "*k"]:
    """Whether a sequence of impacts is lost where gaps up to ``resolution`` count as zero.

    An impact is found where it happens up to the rounding of the coordinates, or late, at a ``gap``
    beyond that, where something else happened in the flight and the gap counted as zero then. A
    body that falls ``d`` further gains ``2 a d`` of ``v^2``; rebounds up to
    ``v^2 = 2 a d / (1 - e^2)`` may get back what they lose, and go on without end.
    """
    rounding = tolerances(jnp.result_type(approach)).late * resolution
    further = jnp.where(jnp.abs(gap) > rounding, resolution, rounding)
    return ((e * approach) ** 2 * (1.0 - e * e) <= 2.0 * pull * further) & (e < 1)


def hit(mode, touching, approach, small, *, pull, e, negligible, gap, resolution) -> Hit:
    """Whether a contact that is ``touching`` hits, and with which restitution.

    Approach velocities up to ``small`` are none. Where a sequence lasts no longer than
    ``negligible``, or :func:`drowns`, the contact closes at once. A contact that is closed does not
    rebound.
    """
    hits = touching & (approach > small)
    rest = time_of_bounces(approach, pull, e)
    ends = (rest <= negligible) | drowns(approach, pull, e, gap, resolution)
    accumulates = hits & (e > 0) & ends
    e = jnp.where(accumulates | (mode != Mode.OPEN), 0.0, e)
    return Hit(hits, accumulates, e, rest)


def is_loose(mode, unpressed) -> Bool[Array, "*k"]:
    """Whether a contact that touches would take part in an impact otherwise, or not at all, if its
    gap were ever so small: nothing presses it (``unpressed``: its normal force is zero)."""
    return (mode == Mode.OPEN) | unpressed


def is_unannounced(hits, mode, known) -> Bool[Array, "*k"]:
    """Whether a contact hits whose gap no event has found to be zero: at the start, say. ``known``:
    zeros of its gap that are known."""
    return hits & (mode == Mode.OPEN) & (known == 0)


def moment_of_touch(gap, rate, acceleration):
    """Time from an instant at which the ``gap`` is zero to that of the touch: zero, with the
    derivatives that it has where the gap is not quite closed and closes at this ``rate``."""
    gap = gap - jax.lax.stop_gradient(gap)
    first = -gap / rate
    return first - 0.5 * acceleration * first * first / rate


def ends_chatter(velocity, scale, since, passed) -> Bool[Array, "*k"]:
    """Whether a relative velocity after an impact is the end of a sequence that accumulates.

    Contacts that push each other off, such as the corners of a rocking block, bounce in ever
    shorter flights even without restitution. ``since``: time since the last impact; ``passed``:
    since the start. ``scale``: the largest relative velocity so far.
    """
    limits = tolerances(jnp.result_type(velocity))
    soon = since <= limits.chatter_time * passed
    return soon & (jnp.abs(velocity) <= limits.chatter_velocity * scale)


class AfterImpact(NamedTuple):
    """The mode after an impact, and whether it is closed although it moves a little."""

    mode: Int[Array, "*k"]
    chatters: Bool[Array, "*k"]


def mode_after_impact(
    frictionless: Flag,
    found,
    touching,
    after: tuple[Any, Any],
    small: tuple[Any, Any],
    e,
    *,
    smooth: Flag = False,
    ends: tuple[Any, Any] | None = None,
) -> AfterImpact:
    """Mode of a unilateral contact from its relative velocities (tangent, normal) ``after``.

    ``found``: the mode in which it took its impulse; one that is ``smooth`` takes none along the
    tangent. ``small``: velocities that count as zero. ``ends``: whether the velocities are the end
    of a sequence, see :func:`ends_chatter`.
    """
    mode = closed_mode(frictionless, after[0], small[0])
    rubs = inverse(frictionless)
    mode = jnp.where((found == Mode.STICK) & rubs & inverse(smooth), Mode.STICK, mode)
    rests = touching & ((jnp.abs(after[1]) <= small[1]) | ((found != Mode.OPEN) & (e == 0.0)))
    chatters = jnp.zeros(jnp.shape(mode), bool)
    if ends is not None:
        chatters = touching & ~rests & ends[1]
        mode = jnp.where(ends[0] & rubs, Mode.STICK, mode)
    mode = jnp.where(rests | chatters, mode, Mode.OPEN)
    return AfterImpact(mode.astype(jnp.int32), chatters)


def element_after_impact(mode, before, after, small, ends: Any = False) -> Int[Array, "*k"]:
    """Mode of friction with a given normal force, which takes no part in an impact.

    It goes on as it was unless the jump set it in motion.
    """
    moved = jnp.where(ends, Mode.STICK, closed_mode(False, after, small))
    return jnp.where(jnp.abs(after - before) <= small, mode, moved).astype(jnp.int32)


def known_after_impact(mode, following, touching, known) -> tuple[Any, Any]:
    """Known zeros of the two guards: the gap of a contact that leaves is zero, its rate is not.

    ``known``: of the second guard, which a contact that stays in its mode keeps.
    """
    leaves = (touching & (following == Mode.OPEN)).astype(jnp.int32)
    return leaves, jnp.where(following == mode, known, 0).astype(jnp.int32)


def impulse_energy(impulse, before, after):
    """Energy that an impulse adds to the motion of a contact with the relative velocities
    ``before`` and ``after``, the work on moving partners left out."""
    return 0.5 * impulse * (before + after)


def energy_gain(energy, scale):
    """``energy`` that impulses add, zero up to rounding: what they lose is no gain either.

    ``scale``: energies that it is made of.
    """
    return jnp.where(energy <= tolerances(jnp.result_type(energy)).energy * scale, 0.0, energy)


def is_unique(pivot) -> Bool[Array, "*k"]:
    """Whether a pivot of the active contacts leaves one motion: a redundant set (pivot zero) mostly
    has unique velocities, a negative pivot has not."""
    return pivot >= -tolerances(jnp.result_type(pivot)).pivot


def hits_in_step(before, impulse) -> Bool[Array, "*k"]:
    """Whether a contact with the gap rate ``before`` was approached and pushed in a time step."""
    return (before < 0.0) & (impulse > 0.0)


def rests_after_step(before, after, e) -> Bool[Array, "*k"]:
    """Whether the rebound of a time step is none: the forces take it back within the step.

    ``before``, ``after``: gap rates at the ends of the step without contacts.
    """
    return -e * before <= jnp.maximum(before - after, 0.0)
