"""Rules for impacts of one contact: whether it hits, restitution, accumulation, mode and energy."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.contact.rules.guards import Flag, inverse
from jfric.contact.rules.modes import closed_mode
from jfric.numerics.choice import select
from jfric.numerics.tolerances import FAST, tolerances
from jfric.results.modes import Mode


def restitution(after, before, e):
    """Velocity that Newton's law keeps from becoming negative, ``gamma_N+ + e gamma_N-``; zero
    where there is an impulse."""
    return after + e * before


def slides_through(sliding, approach) -> Bool[Array, "*k"]:
    """Whether a contact slides too fast for an impact to end it. Its velocity would only add
    rounding errors to those that decide."""
    return sliding > FAST * approach


def time_of_bounces(approach, pull, e) -> Float[Array, "*k"]:
    """Duration of a sequence of impacts that begins with the velocity ``approach``.

    Flights of ``2 e v / a``, then ``e`` times that, ...: ``2 e v / a / (1 - e)`` under the
    acceleration ``pull``. Infinite where it does not end.
    """
    ends = (pull > 0) & (approach > 0) & (e < 1)
    flight = 2.0 * e * approach / select(ends, pull, 1.0)
    return select(ends, flight / select(ends, 1.0 - e, 1.0), jnp.inf)


class Hit(NamedTuple):
    """A contact at an impact.

    ``accumulates``: the impact ends a sequence, which would take the time ``rest`` more. ``e``: the
    restitution that applies.
    """

    hits: Bool[Array, "*k"]
    accumulates: Bool[Array, "*k"]
    e: Float[Array, "*k"]
    rest: Float[Array, "*k"]

    def due(self, t) -> Float[Array, "*k"]:
        """Time at which the sequence that is cut off here would end; minus infinity for none."""
        later = t + select(self.accumulates, self.rest, 0.0)
        return select(self.accumulates, later, -jnp.inf)


def drowns(approach, pull, e, gap, resolution) -> Bool[Array, "*k"]:
    """Whether a sequence of impacts is lost because gaps up to ``resolution`` count as zero.

    An impact is found at its place up to the rounding of the coordinates. It is found late, at a
    larger ``gap``, where something else happened in the flight while the gap counted as zero. A
    body that falls ``d`` further gains ``2 a d`` of ``v^2``, so rebounds up to
    ``v^2 = 2 a d / (1 - e^2)`` may regain what they lose, and continue without end.
    """
    rounding = tolerances(jnp.result_type(approach)).late * resolution
    further = select(jnp.abs(gap) > rounding, resolution, rounding)
    return ((e * approach) ** 2 * (1.0 - e * e) <= 2.0 * pull * further) & (e < 1)


def hit(mode, touching, approach, small, *, pull, e, negligible, gap, resolution) -> Hit:
    """Whether a contact that is ``touching`` hits, and with which restitution.

    Approach velocities up to ``small`` count as zero. Where a sequence lasts no longer than
    ``negligible``, or :func:`drowns`, the contact closes at once. A contact that is already closed
    does not rebound.
    """
    hits = touching & (approach > small)
    rest = time_of_bounces(approach, pull, e)
    ends = (rest <= negligible) | drowns(approach, pull, e, gap, resolution)
    accumulates = hits & (e > 0) & ends
    e = select(accumulates | (mode != Mode.OPEN), 0.0, e)
    return Hit(hits, accumulates, e, rest)


def is_loose(mode, unpressed) -> Bool[Array, "*k"]:
    """Whether a touching contact would act differently in an impact, or not at all, with the
    smallest gap: nothing presses it (``unpressed``: its normal force is zero)."""
    return (mode == Mode.OPEN) | unpressed


def is_unannounced(hits, mode, known) -> Bool[Array, "*k"]:
    """Whether a contact hits although no event has found the zero of its gap, as at the start.
    ``known``: number of known zeros of its gap."""
    return hits & (mode == Mode.OPEN) & (known == 0)


def moment_of_touch(gap, rate, acceleration):
    """Time from an instant at which the ``gap`` is zero to the touch. The value is zero; the
    derivatives are those of a gap that is not quite closed and closes at this ``rate``."""
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
    """Mode after an impact, and whether the contact counts as closed although it moves a little."""

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
    mode = select((found == Mode.STICK) & rubs & inverse(smooth), Mode.STICK, mode)
    rests = touching & ((jnp.abs(after[1]) <= small[1]) | ((found != Mode.OPEN) & (e == 0.0)))
    chatters = jnp.zeros(jnp.shape(mode), bool)
    if ends is not None:
        chatters = touching & ~rests & ends[1]
        mode = select(ends[0] & rubs, Mode.STICK, mode)
    mode = select(rests | chatters, mode, Mode.OPEN)
    return AfterImpact(mode.astype(jnp.int32), chatters)


def element_after_impact(mode, before, after, small, ends: Any = False) -> Int[Array, "*k"]:
    """Mode of friction with a given normal force, which takes no part in an impact.

    The mode stays unless the impact changes the sliding velocity.
    """
    moved = select(ends, Mode.STICK, closed_mode(False, after, small))
    return select(jnp.abs(after - before) <= small, mode, moved).astype(jnp.int32)


def known_after_impact(mode, following, touching, known) -> tuple[Any, Any]:
    """Numbers of known zeros of the two guards: a contact that leaves has zero gap, but no zero
    rate.

    ``known``: number for the second guard, which a contact that stays in its mode keeps.
    """
    leaves = (touching & (following == Mode.OPEN)).astype(jnp.int32)
    return leaves, select(following == mode, known, 0).astype(jnp.int32)


def impulse_energy(impulse, before, after):
    """Energy that an impulse adds to the motion of a contact with the relative velocities
    ``before`` and ``after``, without the work on moving partners."""
    return 0.5 * impulse * (before + after)


def energy_gain(energy, scale):
    """Energy that impulses add; zero up to rounding, and where they take energy.

    ``scale``: magnitude of the terms of ``energy``.
    """
    return select(energy <= tolerances(jnp.result_type(energy)).energy * scale, 0.0, energy)


def is_unique(pivot) -> Bool[Array, "*k"]:
    """Whether the motion is unique for a smallest ``pivot`` of the active contacts. A redundant set
    (pivot zero) mostly has unique velocities; one with a negative pivot has not."""
    return pivot >= -tolerances(jnp.result_type(pivot)).pivot


def hits_in_step(before, impulse) -> Bool[Array, "*k"]:
    """Whether a contact with the gap rate ``before`` was approached and pushed in a time step."""
    return (before < 0.0) & (impulse > 0.0)


def rests_after_step(before, after, e) -> Bool[Array, "*k"]:
    """Whether the forces cancel the rebound of a time step within the step.

    ``before``, ``after``: gap rates at the ends of the step without contacts.
    """
    return -e * before <= jnp.maximum(before - after, 0.0)
