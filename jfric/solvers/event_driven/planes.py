"""Friction in planes on a step: how sliding begins, how far a step may go, and where sliding stops.

A stop in a plane is no change of sign: the direction of sliding turns towards the load, in general
without end. Steps that shrink with the remaining time keep their order; once the remaining time is
negligible, the rest of the motion is one straight line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.contact import rules
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import eliminate, inverse, matmul, matvec
from jfric.numerics.tolerances import later
from jfric.solvers.event_driven.advance import Advance
from jfric.solvers.event_driven.inputs import basis_after
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.smooth_piece import SmoothPiece
from jfric.solvers.event_driven.state import (
    Onset,
    State,
    components,
    kinetic,
    plane_limits,
    relative_velocities,
    velocity_tolerance,
)

#: Fraction of the time to the end of sliding that a step may take.
PART = 0.5
#: Time to the end of sliding, relative to the elapsed time and to the time scale of the motion,
#: that is covered by a straight line.
LEFT = 1e-13
#: Rounding error above which a direction of sliding counts as unknown.
BLURRED = 1e-3
#: Rounds over several planes that begin to slide at one instant.
ROUNDS = 60
#: Sliding acceleration with which Newton's method begins, relative to that without friction: small,
#: as the direction is known better than the speed, which the first step finds.
PUSH = 1e-5
#: Regularisation of directions that depend on each other, relative to the mobility of all.
REGULAR = 1e-12


def _resting(prepared: Prepared, state: State) -> Bool[Array, " np"]:
    """Planes in which sliding begins from rest."""
    first = np.asarray([rows[0] for rows in prepared.mechanics.planes])
    return rules.slides(state.mode[first]) & (state.known[first] >= 1)


class Begun(NamedTuple):
    """Start of a step.

    ``piece``: the equations at its start, where the direction of sliding may not be defined yet;
    ``guess``: accelerations (n,) as a function of the time after the start, close to those on a
    first short step; ``pivot``: that of the normal forces of contacts, which their friction
    changes; negative values mean the same as in :class:`jfric.contact.reactions.Reactions`.
    """

    piece: SmoothPiece
    guess: Callable
    pivot: Float[Array, ""] | None


def begun(piece: SmoothPiece, still: SmoothPiece) -> Begun:
    """Start of a step, see :class:`Begun`; ``still``: the piece without derivatives."""
    prepared, state = piece.prepared, piece.state
    planes, nf = prepared.mechanics.planes, prepared.nf
    rows, parts = np.concatenate(planes), components(prepared.mechanics)
    first = np.asarray([own[0] for own in planes])
    owner = np.repeat(np.arange(len(planes)), [len(own) for own in planes])
    rests, none = _resting(prepared, state), jnp.zeros(rows.shape, state.q.dtype)
    start = jnp.zeros_like(state.t), still.state.q, still.state.v
    # Without the friction of contacts (it changes their normal forces) and of planes that begin to
    # slide.
    of_contact = first >= nf
    moving = rules.slides(state.mode[first]) & of_contact & ~rests
    without = still.beginning(Onset(rests | moving, none, rests & False))
    z = without.at(*start)
    free = matvec(without.rates, z)
    W, now = still.prepared.W[rows], without.quantities(z[None])
    normal = jnp.concatenate([now.normal[0], now.lambda_n[0]])[first]
    sliding = matvec(W, free) - matvec(still.g.acceleration[rows], still.g.w)
    moves = matmul(still.equations.P, W.T)
    D = matmul(W, moves)
    # Changes of the normal forces by unit frictions.
    presses = jnp.zeros((len(planes), len(rows)), D.dtype)
    if of_contact.any():
        changes = matmul(still.equations.L[still.plane_rows[1]], W.T)
        presses = presses.at[np.flatnonzero(of_contact)].set(changes)
    gamma = jnp.zeros((prepared.nt,), state.q.dtype)
    at_rest = [plane_limits(still.prepared, k, gamma) for k in range(len(planes))]
    ratio = kinetic(still.prepared, still.state, now.gamma[0])[0][rows]

    def load(k, friction, ratio):
        """The plane's normal force under friction of this ``ratio``, and other causes of motion."""
        own = parts[k]
        outer = friction.at[own].set(0.0)
        alone = normal[k] + matvec(presses[k][None], outer)[0]
        gain = 1.0 - jnp.sum(presses[k, own] * ratio[own])
        carried = jnp.maximum(alone / select(gain > 0, gain, 1.0), 0.0)
        return carried, sliding[own] + matvec(D[own], outer)

    def one_round(_, found):
        friction, ratio = found
        for k in range(len(planes)):
            own = parts[k]
            carried, pulled = load(k, friction, ratio)
            held = at_rest[k].holding(D[own, own], pulled, carried)
            held = select(rests[k], held, ratio[own] * carried)
            friction = friction.at[own].set(held)
            kept = select(rests[k] & (carried > 0), held, 0.0)
            kept = kept / select(carried > 0, carried, 1.0)
            ratio = ratio.at[own].set(select(rests[k], kept, ratio[own]))
        return friction, ratio

    ratio = select(moving[owner], -ratio, 0.0)
    found = jnp.zeros_like(sliding), ratio
    rounds = ROUNDS if len(planes) > 1 or of_contact.any() else 1
    found = jax.lax.fori_loop(0, rounds, one_round, found)
    onsets = []
    for k in range(len(planes)):
        carried, pulled = load(k, *found)
        onsets.append(at_rest[k].onset(D[parts[k], parts[k]], pulled, carried))
    direction = jnp.concatenate([x.direction for x in onsets])
    holds = jnp.stack([x.holds for x in onsets])
    beginning, pivot = piece.beginning(Onset(rests, direction, holds)), None
    if of_contact.any():
        gain = still.gain(still.equations, found[1][np.flatnonzero(of_contact[owner])])
        pivot = eliminate(gain, 0.0).pivot
    first = still.beginning(Onset(rests, direction, holds)).acceleration(*start)
    lengths = jnp.concatenate([x.lengths for x in at_rest])
    size = jnp.max(jnp.abs(sliding * lengths))
    # A resting contact begins to slide as it is pushed, relative to partners that move freely.
    resting = rests[owner]
    push = select(resting, PUSH * size * direction, 0.0)
    scale = jnp.trace(D * lengths[:, None] * lengths[None, :])
    scale = select(scale > 0, scale, 1.0) * jnp.diag(1.0 / (lengths * lengths))
    own = select(resting[:, None] & resting[None, :], D, 0.0)
    own = inverse(own + select(resting, REGULAR, 1.0)[:, None] * scale)

    def guess(s):
        now = matvec(still.g.acceleration[rows], basis_after(prepared, still.g, s))
        ahead = now - matvec(still.g.acceleration[rows], still.g.w)
        return first + matvec(moves, matvec(own, select(resting, ahead + push, 0.0)))

    return Begun(beginning, guess, pivot)


def without_friction(prepared: Prepared, state: State) -> Onset:
    """Onset for planes that slide as if they had no friction: its stiffness grows without bound
    towards the end of sliding, where :func:`longest_step` and the error limit the step, and
    consists of rounding errors where sliding begins."""
    planes = prepared.mechanics.planes
    slides = rules.slides(state.mode[np.asarray([rows[0] for rows in planes])])
    none = jnp.zeros((sum(map(len, planes)),), state.q.dtype)
    return Onset(slides, none, slides & False)


def roundings_of_direction(piece: SmoothPiece) -> Float[Array, ""]:
    """Rounding error of the directions of sliding, in units of the floating-point precision and at
    least 1: ratio of the velocities to their difference, with which a plane slides (small next to a
    moving belt, say). ``piece``: without derivatives."""
    prepared, state, g = piece.prepared, piece.state, piece.g
    W, given = prepared.W, g.velocity
    gamma = jnp.abs(matvec(W, state.v) - matvec(given, g.w))
    size = matvec(jnp.abs(W), jnp.abs(state.v)) + matvec(jnp.abs(given), jnp.abs(g.w))
    first, rows = zip(*((own[0], list(own)) for own in prepared.mechanics.planes), strict=True)
    speed, parts = (jnp.stack([jnp.max(x[np.asarray(own)]) for own in rows]) for x in (gamma, size))
    slides = rules.slides(state.mode[np.asarray(first)]) & ~_resting(prepared, state)
    most = BLURRED / jnp.finfo(speed.dtype).eps
    ratio = parts / select(slides, jnp.maximum(speed, parts / most), 1.0)
    return jnp.maximum(jnp.max(select(slides & (parts > 0), ratio, 1.0)), 1.0)


def longest_step(piece: SmoothPiece) -> Float[Array, ""]:
    """Longest step towards the end of sliding in a plane [s]; ``piece``: without derivatives."""
    prepared, state, g = piece.prepared, piece.state, piece.g
    a = piece.acceleration(jnp.zeros_like(state.t), state.q, state.v)
    nt = prepared.nt
    gamma = matvec(prepared.W[:nt], state.v) - matvec(g.velocity[:nt], g.w)
    rate = matvec(prepared.W[:nt], a) - matvec(g.acceleration[:nt], g.w)
    left = [
        select(rules.slides(state.mode[own[0]]), _left(prepared, k, gamma, rate), jnp.inf)
        for k, own in enumerate(prepared.mechanics.planes)
    ]
    left = select(_resting(prepared, state), jnp.inf, jnp.stack(left))
    return PART * jnp.min(left)


def stop(prepared: Prepared, state: State, ahead: Advance, natural) -> Advance:
    """Continue to the end of sliding in a plane where the time to it is negligible."""
    nt, values = prepared.nt, ahead.values
    now = prepared.at(ahead.t, ahead.q, ahead.v)
    gamma = relative_velocities(now, ahead.t, ahead.v)[:nt]
    small = velocity_tolerance(now, ahead.t, ahead.v_scale)[:nt]
    rate = matvec(now.W[:nt], values.a) - values.prescribed_rate
    negligible = LEFT * jnp.minimum(ahead.t - state.start, natural)
    ends, times = [], []
    for k, rows in enumerate(map(np.asarray, prepared.mechanics.planes)):
        left = _left(prepared, k, gamma, rate)
        slow = (left <= negligible) | jnp.all(jnp.abs(gamma[rows]) <= small[rows])
        times.append(left)
        ends.append(rules.slides(state.mode[rows[0]]) & slow & jnp.isfinite(left))
    stops, left = jnp.stack(ends), jnp.stack(times)
    stops = stops & ahead.accepted & ~ahead.fired.any()
    last = jnp.max(select(stops, left, 0.0))
    t, rest = later(ahead.t, ahead.t_rest, last)
    limits = jnp.concatenate([prepared.breakpoints, prepared.end[None]])
    passes = jnp.any((limits > ahead.t) & (limits < t))
    stops = stops & ~passes
    on = stops.any()
    last = select(on, last, 0.0)
    fired = ahead.fired
    for k, pair in enumerate(prepared.mechanics.planes):
        fired = fired.at[pair[0]].set(fired[pair[0]] | stops[k])
    return ahead._replace(
        t=select(on, t, ahead.t),
        t_rest=select(on, rest, ahead.t_rest),
        q=ahead.q + last * (ahead.v + 0.5 * last * values.a),
        v=ahead.v + last * values.a,
        # Steps were short only because of this stop.
        h_max=select(on, jnp.inf, ahead.h_max),
        fired=fired,
    )


def at_rest_after_impact(prepared: Prepared, t, v, v_scale, mode) -> Bool[Array, " nt"]:
    """Components of planes in which an impact, of whatever contact, has left no sliding velocity:
    whether sliding begins again or friction holds is decided from rest."""
    gamma = jnp.abs(relative_velocities(prepared, t, v)[: prepared.nt])
    small = velocity_tolerance(prepared, t, v_scale)[: prepared.nt]
    found = jnp.zeros(gamma.shape, bool)
    for rows in map(np.asarray, prepared.mechanics.planes):
        rests = rules.slides(mode[rows[0]]) & jnp.all(gamma[rows] <= small[rows])
        found = found.at[rows].set(rests)
    return found


def _left(prepared: Prepared, k: int, gamma, rate) -> Float[Array, ""]:
    """Time to the end of sliding in a plane, from sliding velocities and accelerations (nt,)."""
    rows, lengths = np.asarray(prepared.mechanics.planes[k]), plane_limits(prepared, k).lengths
    return rules.time_to_stop(gamma[rows] * lengths, rate[rows] * lengths)


def all_components(prepared: Prepared, flips: Bool[Array, " c"]) -> Bool[Array, " c"]:
    """Contacts to flip, extended to all components of their planes."""
    for i, *others in prepared.mechanics.planes:
        flips = flips.at[np.asarray(others)].set(flips[i])
    return flips


def first_step(prepared: Prepared, state: State, flips: Bool[Array, " c"]) -> Float[Array, ""]:
    """Longest step to try after modes flip. The length of the step to this instant does not limit
    the next one if a plane flips: too short a step would leave a sliding velocity of rounding
    errors."""
    h_max = state.h_max
    for i, *_ in prepared.mechanics.planes:
        h_max = select(flips[i], jnp.inf, h_max)
    return h_max
