"""Rules for the mode of one contact: the next mode, its known zeros, and the mode to try first."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.contact.rules.guards import Flag, GuardSign, Kind, chosen, inverse, slides, slip
from jfric.numerics.choice import select
from jfric.numerics.tolerances import tolerances
from jfric.results.modes import Mode


def closed_mode(frictionless: Flag, gamma, small) -> Int[Array, "*k"]:
    """Mode of a closed contact from its sliding velocity ``gamma``: stick where that is zero
    (at most ``small``)."""
    mode = select(jnp.abs(gamma) <= small, Mode.STICK, slip(gamma > 0))
    return chosen(frictionless, jnp.full_like(mode, Mode.SLIP_POS), mode).astype(jnp.int32)


def projected_mode(friction, upper, lower) -> Int[Array, "*k"]:
    """Mode of a contact with the trial value ``friction``: sliding where that is beyond one of the
    limits ``-upper <= lambda_T <= lower``."""
    below = select(friction > lower, Mode.SLIP_NEG, Mode.STICK)
    return select(friction < -upper, Mode.SLIP_POS, below)


def sliding_in_mode(mode, gamma) -> Float[Array, "*k"]:
    """Sliding velocity of a contact in its mode: zero where it sticks, whatever rounding errors
    ``gamma`` has."""
    return select(mode == Mode.STICK, 0.0, gamma)


class NextMode(NamedTuple):
    """Result of :func:`next_mode`: the mode to which violated guards lead.

    ``hits``: the contact closes with an approach velocity. ``touching``: its gap is zero.
    ``pressed``: the bodies would penetrate here, and only other contacts can prevent that.
    """

    mode: Int[Array, "*k"]
    hits: Bool[Array, "*k"]
    touching: Bool[Array, "*k"]
    pressed: Bool[Array, "*k"]


class Drift(NamedTuple):
    """Relative motion of a redundant contact that contradicts its mode, by sign (0: none): sliding
    in stick, and opening in contact."""

    tangent: Int[Array, "*k"]
    normal: Int[Array, "*k"]


def next_mode(
    kind: Kind,
    mode,
    first: GuardSign,
    second: GuardSign,
    closed,
    *,
    drift: Drift | None = None,
) -> NextMode:
    """The mode that the signs of the two guards lead to.

    The guards are the two limits in stick (of unlimited contacts: friction and normal force), the
    sliding velocity and the normal force in slip, and the gap. ``closed``: the mode in which a
    contact closes, see :func:`closed_mode`.
    """
    stick = mode == Mode.STICK
    over, below = first.violated, second.violated
    pulls = below
    if kind.unlimited is not False:
        # Where limits are zero, any friction at all is too much, to either side.
        pulls = select(stick & inverse(kind.unlimited), over & below, below)
        below = select(stick & kind.unlimited, ~over & ~first.null, below)
    elif kind.unilateral is not False:
        pulls = select(stick, over & below, below)
    # A sliding velocity of the wrong sign reverses; one that reaches zero sticks.
    reverse = select(first.order == 0, slip(mode != Mode.SLIP_POS), Mode.STICK)
    from_stick = select(over, Mode.SLIP_POS, select(below, Mode.SLIP_NEG, mode))
    following = select(stick, from_stick, select(over, reverse, mode))
    if drift is not None:
        # A contact that cannot stick together with others slides as these carry it.
        carried = slip(drift.tangent > 0)
        following = select(stick & (drift.tangent != 0), carried, following)
    no = jnp.zeros(jnp.shape(mode), bool)
    hits = touching = pressed = no
    if kind.unilateral is not False:
        is_open = mode == Mode.OPEN
        closes = kind.unilateral & is_open & over
        opens = kind.unilateral & ~is_open & pulls
        if drift is not None:
            opens = opens | (kind.unilateral & ~is_open & (drift.normal > 0))
            pressed = kind.unilateral & ~is_open & (drift.normal < 0)
        following = select(opens, Mode.OPEN, select(closes, closed, following))
        touching = ~is_open | (first.order >= 1) | over
        hits = closes & (first.order <= 1)
    return NextMode(following.astype(jnp.int32), hits, touching, pressed)


def known_zeros(mode, following, known, at_rest) -> tuple[Int[Array, "*k"], Int[Array, "*k"]]:
    """Numbers of leading coefficients of the two guards that are zero in the mode ``following``.

    The sliding velocity starts from zero after stick, whichever direction is tried; so do the gap
    and its rate after contact. Guards of a mode that stays keep their ``known`` zeros. ``at_rest``:
    whether the sliding velocity just reached zero.
    """
    changed = following != mode
    rested = (mode == Mode.STICK) | at_rest | (slides(mode) & (known[0] >= 1))
    first = select(following == Mode.OPEN, 2, select(slides(following) & rested, 1, 0))
    return (
        select(changed, first, known[0]).astype(jnp.int32),
        select(changed, 0, known[1]).astype(jnp.int32),
    )


class Trial(NamedTuple):
    """Forces of a contact at an event, in the mode that ends.

    ``acceleration``: of sliding; ``compliance``: its change by a unit of friction while other
    reactions follow; ``alone``: its change while they do not. ``static_positive``,
    ``static_negative``: static coefficients.
    """

    friction: Any
    normal: Any
    acceleration: Any
    compliance: Any
    alone: Any
    static_positive: Any
    static_negative: Any


def predicted_mode(
    mode, fired_first, fired_second, trial: Trial, stays: Any = False
) -> Int[Array, "*k"]:
    """The mode to try first after a guard reached zero.

    The proposal saves passes. It decides only where static limits allow several motions: a contact
    that sticks then continues to do so. A contact whose sliding velocity reached zero sticks, or
    slides back if the friction that would hold it (the others unchanged) is beyond its limit, or
    has no effect. ``stays``: the present state does not determine the next mode, because the guard
    is only touched, a function of time breaks at this instant, or several contacts change together.
    A contact that sticks or stops then sticks, and its later derivatives decide.
    """
    gives = trial.compliance > tolerances(jnp.result_type(trial.alone)).pivot * trial.alone
    needed = trial.acceleration / select(gives, trial.compliance, 1.0)
    holding = trial.friction - needed
    limit = (1.0 + tolerances(jnp.result_type(holding)).excess) * trial.normal
    stop = select(holding > limit * trial.static_negative, Mode.SLIP_NEG, Mode.STICK)
    stop = select(holding < -limit * trial.static_positive, Mode.SLIP_POS, stop)
    stop = select(stays, Mode.STICK, stop)
    carried = select(trial.acceleration == 0, Mode.STICK, slip(trial.acceleration > 0))
    stop = select(gives, stop, carried)
    slid, passes = slides(mode), (mode == Mode.STICK) & ~jnp.asarray(stays)
    following = select(fired_first & slid, stop, mode)
    following = select(passes & fired_first, Mode.SLIP_POS, following)
    following = select(passes & fired_second, Mode.SLIP_NEG, following)
    return select(slid & fired_second, Mode.OPEN, following).astype(jnp.int32)


def has_jumped(velocity, small) -> Bool[Array, "*k"]:
    """Whether a relative velocity that should be zero is beyond rounding. ``small``: velocities
    that count as zero elsewhere."""
    limits = tolerances(jnp.result_type(small))
    return jnp.abs(velocity) > limits.jump / limits.zero * small


def released(kind: Kind, mode, known, gamma, jumped, opened: Any = False) -> tuple[Any, Any]:
    """Mode after the velocity of a belt or base jumped, and known zeros of its first guard.

    A body cannot follow at once. A sticking contact whose tangential velocity ``jumped`` slides
    with the sliding velocity ``gamma``; so does one that was at its limit without sliding. A closed
    contact whose normal velocity jumped (``opened``) opens with zero gap, and its velocity decides
    whether it hits or separates.
    """
    if kind.frictionless is not True:
        moves = (mode != Mode.OPEN) & jumped & inverse(kind.frictionless)
        mode = select(moves, slip(gamma > 0), mode)
        known = select(moves, 0, known)
    if kind.unilateral is not False:
        opens = kind.unilateral & opened & (mode != Mode.OPEN)
        mode = select(opens, Mode.OPEN, mode)
        known = select(opens, 1, known)
    return mode.astype(jnp.int32), known


def starts_open(gap, gap_zero, gap_rate: Any = 0.0, small: Any = 0.0) -> Bool[Array, "*k"]:
    """Whether a contact starts open: it has a gap, or its gap changes."""
    return (gap > gap_zero) | (jnp.abs(gap_rate) > small)


def reported_mode(
    frictionless: Flag, mode, null: Any = False, in_plane: Any = False
) -> Int[Array, "*k"]:
    """Mode that results report; ``in_plane``: whether sliding has two directions.

    A contact that slides with a velocity of zero (``null``), held by others at the edge of its
    cone, sticks. A frictionless one is closed.
    """
    slid = slides(mode)
    stuck = select(slid & in_plane, Mode.SLIP, select(slid & null, Mode.STICK, mode))
    closed = select(slid, Mode.CLOSED, mode)
    return chosen(frictionless, closed, stuck).astype(jnp.int32)


def holds_next(
    holds: Bool[Array, " nt"], reverses: Bool[Array, " nt"], released: Bool[Array, " nt"]
) -> Bool[Array, " nt"]:
    """Contacts that static limits hold in the next trial of a step of finite length. A contact that
    would reverse within the step is held first; one that slid nevertheless (``released``) is never
    held again."""
    return (holds | reverses) & ~released
