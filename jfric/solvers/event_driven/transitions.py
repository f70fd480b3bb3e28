"""Changes of mode at an instant, from the signs of the guards' first non-vanishing derivatives."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jfric.complementarity.contact_lcp import ContactProblem, solve_contacts
from jfric.linear_algebra import matmul, matvec
from jfric.modes import Mode
from jfric.solvers.event_driven.constants import constants
from jfric.solvers.event_driven.given import Given, basis_after
from jfric.solvers.event_driven.polynomials import Step, Values
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import (
    State,
    closed_mode,
    relative_velocities,
    velocity_tolerance,
)


class Signs(NamedTuple):
    """Signs of the guards right after the start of a step.

    ``lead``: number of vanishing leading coefficients. ``null``: all of them vanish.
    """

    lead: Int[Array, " g"]
    null: Bool[Array, " g"]
    violated: Bool[Array, " g"]
    #: Whether active contacts will not do what is demanded of them (m,): 1 if the relative velocity
    #: grows, -1 if it falls, 0 if all is well.
    drift: Int[Array, " m"]


def guard_signs(step: Step, state: State, dependent: Bool[Array, " m"]) -> Signs:
    """The first non-vanishing derivative decides; a guard that vanishes identically holds.

    ``state.known`` leading coefficients are zero by construction, whatever rounding left there.
    Forces may jump: what was known of the limits of a sticking contact, or of the normal force of
    a closed one, is not zero any more if it is far beyond rounding.
    """
    leading = jax.lax.stop_gradient(step.leading)
    sticks, closed = state.mode == Mode.STICK, state.mode != Mode.OPEN
    of_forces = jnp.concatenate([sticks, closed, jnp.zeros((2 * state.segment.shape[0],), bool)])
    count = leading.shape[0]
    index = jnp.arange(count, dtype=jnp.int32)[:, None]
    forgotten = of_forces & (jnp.abs(leading) > constants(leading.dtype).known * step.zero)
    vanishes = (jnp.abs(leading) <= step.zero) | ((index < state.known) & ~forgotten)
    lead, null, value = _first_coefficient(leading, vanishes)
    for k in range(1, count - 1):
        touched = of_forces & (lead == k) & touches(leading[k], leading[k + 1], k, step.zero[0])
        value = jnp.where(touched, leading[k + 1], value)
        lead = jnp.where(touched, k + 1, lead)
    drift = jnp.zeros(dependent.shape, jnp.int32)
    if step.relative_leading.shape[1]:
        leading = jax.lax.stop_gradient(step.relative_leading)
        _, still, sign = _first_coefficient(leading, jnp.abs(leading) <= step.relative_zero)
        drift = jnp.where(dependent & ~still, jnp.sign(sign), 0.0).astype(jnp.int32)
    return Signs(lead, null, value < 0, drift)


def touches(value, following, k: int, resolution):
    """Whether a limit ``value s^k + following s^(k+1)`` of a force falls, but turns before it is
    further below zero than can be resolved. It is touched, and holds right after that."""
    turn = jnp.abs(value) / jnp.where(following > 0, following, 1.0) * (k / (k + 1.0))
    depth = jnp.abs(value) * turn**k / (k + 1.0)
    return (value < 0) & (following > 0) & (depth <= resolution)


def arrives_unseen(violated, lead, known):
    """Whether a sliding velocity is found to be zero that no event has made zero: it touches zero,
    or a load sets the body in motion from rest."""
    return violated & (lead >= 1) & (known == 0)


def _first_coefficient(leading, vanishes):
    """Index of the first coefficient that does not vanish, whether all do, and the coefficient."""
    lead = jnp.zeros((leading.shape[1],), jnp.int32)
    still = jnp.ones((leading.shape[1],), bool)
    value = jnp.ones((leading.shape[1],), leading.dtype)
    for k in range(leading.shape[0]):
        found = still & ~vanishes[k]
        value = jnp.where(found, leading[k], value)
        still = still & vanishes[k]
        lead = lead + still.astype(jnp.int32)
    return lead, still, value


#: Relative velocities beyond this fraction of their contributions are no rounding errors: the
#: partner's velocity has jumped.
JUMP = 1e-6


def at_breakpoint(prepared: Prepared, state: State) -> Bool[Array, ""]:
    """Whether a load, belt or base may have jumped at this instant, or the problem been changed."""
    return jnp.any(prepared.breakpoints == state.t) | (state.steps == 0)


def release_after_jump(prepared: Prepared, state: State, prescribed) -> State:
    """Let go where the velocity of a belt or base jumped: a body cannot follow at once.

    Sticking contacts slide; closed ones open with zero gap, and hit or separate by their
    velocities. ``prescribed`` (m,): relative velocities of tangents and normals after the jump.
    """
    nt, nf = prepared.nt, prepared.nf
    if nt == 0 or not any((*prepared.mechanics.belts, *prepared.mechanics.base_functions)):
        return state
    relative = matvec(prepared.W, state.v) - prescribed
    small = velocity_tolerance(prepared, state.t, state.v_scale)
    limit = JUMP / constants(small.dtype).zero
    jumped = (jnp.abs(relative) > limit * small) & at_breakpoint(prepared, state)
    sliding = jnp.where(relative[:nt] > 0, Mode.SLIP_POS, Mode.SLIP_NEG)
    # Also what carried its limit without sliding.
    slides = (state.mode != Mode.OPEN) & jumped[:nt] & ~prepared.slippery
    mode = jnp.where(slides, sliding, state.mode)
    known = state.known.at[:nt].set(jnp.where(slides, 0, state.known[:nt]))
    if prepared.nu:
        opens = jnp.concatenate([jnp.zeros((nf,), bool), jumped[nt:]]) & (mode != Mode.OPEN)
        mode = jnp.where(opens, Mode.OPEN, mode)
        known = known.at[:nt].set(jnp.where(opens, 1, known[:nt]))
    return eqx.tree_at(lambda s: (s.mode, s.known), state, (mode.astype(jnp.int32), known))


class Transition(NamedTuple):
    """Modes that violated guards lead to, and contacts that close with an approach velocity."""

    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    violated: Bool[Array, " c"]
    impact: Bool[Array, ""]
    #: Unilateral contacts with zero gap.
    touching: Bool[Array, " nu"]


def next_modes(prepared: Prepared, state: State, signs: Signs) -> Transition:
    """For each contact and element, the mode that its violated guards lead to."""
    nt, nf = prepared.nt, prepared.nf
    mode = state.mode
    first, second = signs.violated[:nt], signs.violated[nt : 2 * nt]
    stick, is_open = mode == Mode.STICK, mode == Mode.OPEN
    pulls = jnp.where(stick & ~prepared.unlimited, first & second, second)
    # Without limits any friction at all is too much, to either side.
    second = jnp.where(stick & prepared.unlimited, ~first & ~signs.null[:nt], second)
    opposite = jnp.where(mode == Mode.SLIP_POS, Mode.SLIP_NEG, Mode.SLIP_POS)
    # A sliding velocity of the wrong sign reverses; one that reaches zero sticks.
    slip = jnp.where(first, jnp.where(signs.lead[:nt] == 0, opposite, Mode.STICK), mode)
    from_stick = jnp.where(first, Mode.SLIP_POS, jnp.where(second, Mode.SLIP_NEG, mode))
    following = jnp.where(stick, from_stick, slip)
    # What cannot stick together with others slides as they carry it.
    carried = jnp.where(signs.drift[:nt] > 0, Mode.SLIP_POS, Mode.SLIP_NEG)
    following = jnp.where(stick & (signs.drift[:nt] != 0), carried, following)
    impact = jnp.asarray(False)
    penetrates = jnp.zeros((nt,), bool)
    touching = jnp.zeros((prepared.nu,), bool)
    if prepared.nu:
        unilateral = jnp.arange(nt) >= nf
        opens = unilateral & ~is_open & pulls
        following = jnp.where(opens, Mode.OPEN, following)
        drift = jnp.concatenate([jnp.zeros((nf,), jnp.int32), signs.drift[nt:]])
        following = jnp.where(~is_open & (drift > 0), Mode.OPEN, following)
        # Only other contacts can help.
        penetrates = ~is_open & (drift < 0)
        velocity = relative_velocities(prepared, state.t, state.v)[:nt]
        small = velocity_tolerance(prepared, state.t, state.v_scale)[:nt]
        closes = is_open & first
        following = jnp.where(closes, closed_mode(prepared, velocity, small), following)
        touching = jnp.where(is_open, (signs.lead[:nt] >= 1) | first, True)[nf:]
        impact = jnp.any(closes & (signs.lead[:nt] <= 1))
    segment = state.segment
    piecewise = prepared.mechanics.piecewise
    if piecewise.count:
        ns = piecewise.count
        g1, g2 = signs.violated[2 * nt : 2 * nt + ns], signs.violated[2 * nt + ns :]
        segment = _following_segment(piecewise, segment, g1, g2)
    violated = jnp.concatenate([(following != mode) | penetrates, segment != state.segment])
    return Transition(
        following.astype(jnp.int32), segment.astype(jnp.int32), violated, impact, touching
    )


#: Part of a step after which accelerations decide what they leave open at its start.
SOON = 1e-3
#: How often a decision may start once more: from the accelerations, and from those soon after.
RESTARTS = 2


def modes_from_rest(
    prepared: Prepared, state: State, start: tuple[Step, Given], signs: Signs, needed
) -> Int[Array, " nt"]:
    """Modes by the accelerations alone, as one complementarity problem over all contacts.

    A proposal for decisions on which pivoting makes no progress: higher derivatives are judged by
    the signs of the guards afterwards.
    """
    step, g = start
    s = jnp.where(state.pivoting.restarts == 0, 0.0, SOON).astype(step.h.dtype)
    values = step.at(prepared, s)
    prescribed = matvec(g.acceleration, basis_after(prepared, g, s * step.h))
    nt, nf = prepared.nt, prepared.nf
    mode, lead = state.mode, signs.lead[:nt]
    slips = (mode == Mode.SLIP_POS) | (mode == Mode.SLIP_NEG)
    direction = jnp.where(mode == Mode.SLIP_POS, 1.0, jnp.where(mode == Mode.SLIP_NEG, -1.0, 0.0))
    rests = (mode == Mode.STICK) | (slips & (lead >= 1))
    velocity = relative_velocities(prepared, state.t, state.v)[:nt]
    small = velocity_tolerance(prepared, state.t, state.v_scale)[:nt]
    is_open = mode == Mode.OPEN
    rests = rests | (is_open & (jnp.abs(velocity) <= small))
    direction = jnp.where(is_open, jnp.sign(velocity), direction)
    touching = (~is_open | (lead >= 2))[nf:]
    near = jnp.concatenate([jnp.ones((nf,), bool), touching])
    reactions = jnp.concatenate([values.lambda_t, values.lambda_n])
    free = matvec(prepared.W, values.a) - prescribed
    pressing = jnp.concatenate([values.normal, jnp.zeros((prepared.nu,), free.dtype)])
    # What rests is held up to its static limit.
    positive = jnp.where(rests, prepared.static_positive, prepared.kinetic_positive)
    negative = jnp.where(rests, prepared.static_negative, prepared.kinetic_negative)
    problem = ContactProblem(
        D=prepared.D,
        gamma=free - matvec(prepared.D, reactions),
        decided=rests & near & ~prepared.slippery,
        touching=touching,
        sliding=jnp.where(prepared.slippery, 0.0, direction),
        mu_positive=positive[nf:],
        mu_negative=negative[nf:],
        cap_positive=positive * pressing,
        cap_negative=negative * pressing,
    )
    return solve_contacts(problem, needed=needed).mode


def anticipate(
    prepared: Prepared, P, state: State, values: Values, fired
) -> tuple[Int[Array, " nt"], Int[Array, " ns"]]:
    """Modes and segments to try first after the guard in ``fired`` reached zero.

    Only a guess that saves passes: the signs of the guards decide as ever. A contact whose
    sliding velocity reached zero sticks, or slides back if the force that would hold it (the
    others unchanged) is beyond its limit.
    """
    nt = prepared.nt
    mode, segment = state.mode, state.segment
    first, second = fired[:nt], fired[nt : 2 * nt]
    force, rate = values.lambda_t, values.a
    pressing = jnp.concatenate([values.normal, values.lambda_n])
    W = prepared.mechanics.W_T
    compliance = jnp.sum(matmul(W, P) * prepared.mechanics.R_T, axis=1)
    acceleration = matvec(W, rate) - values.prescribed_rate
    holding = force - acceleration / jnp.where(compliance > 0, compliance, 1.0)
    beyond = 1.0 + 1e-6
    stop = jnp.where(
        holding > beyond * prepared.static_negative * pressing, Mode.SLIP_NEG, Mode.STICK
    )
    stop = jnp.where(holding < -beyond * prepared.static_positive * pressing, Mode.SLIP_POS, stop)
    slides = (mode == Mode.SLIP_POS) | (mode == Mode.SLIP_NEG)
    following = jnp.where(first & slides, stop, mode)
    stick = mode == Mode.STICK
    following = jnp.where(stick & first, Mode.SLIP_POS, following)
    following = jnp.where(stick & second, Mode.SLIP_NEG, following)
    following = jnp.where(slides & second, Mode.OPEN, following)
    piecewise = prepared.mechanics.piecewise
    if piecewise.count:
        ns = piecewise.count
        segment = _following_segment(
            piecewise, segment, fired[2 * nt : 2 * nt + ns], fired[2 * nt + ns :]
        )
    return following.astype(jnp.int32), segment.astype(jnp.int32)


def _following_segment(piecewise, segment, first, second):
    after = jnp.asarray(piecewise.next, jnp.int32)
    chosen = jnp.take_along_axis(after, segment[:, None, None], axis=1)[:, 0]
    return jnp.where(first, chosen[:, 0], jnp.where(second, chosen[:, 1], segment))


def known_after(prepared: Prepared, state: State, mode, segment, at_rest) -> Int[Array, " g"]:
    """Zeros that the guards of new modes have by construction.

    The sliding velocity starts from zero after stick, whichever direction is tried; the gap and
    its rate after contact. A guard of a new segment is zero if it is the violated one up to sign.
    Contacts and elements that did not change keep what is known. ``at_rest`` (nt,): contacts whose
    sliding velocity just reached zero.
    """
    nt = prepared.nt
    changed = mode != state.mode
    slides = (mode == Mode.SLIP_POS) | (mode == Mode.SLIP_NEG)
    slid = (state.mode == Mode.SLIP_POS) | (state.mode == Mode.SLIP_NEG)
    rested = (state.mode == Mode.STICK) | at_rest | (slid & (state.known[:nt] >= 1))
    first = jnp.where(mode == Mode.OPEN, 2, jnp.where(slides & rested, 1, 0))
    parts = [
        jnp.where(changed, first, state.known[:nt]),
        jnp.where(changed, 0, state.known[nt : 2 * nt]),
    ]
    piecewise = prepared.mechanics.piecewise
    if piecewise.count:
        ns = piecewise.count
        rows = jnp.arange(ns)
        old, new = piecewise.guards[rows, state.segment], piecewise.guards[rows, segment]
        after = jnp.asarray(piecewise.next, jnp.int32)[rows, state.segment]
        moved = segment != state.segment
        for g in (0, 1):
            zero = jnp.zeros((ns,), bool)
            for h in (0, 1):
                fired = after[:, h] == segment
                same = jnp.all(new[:, g] == old[:, h], axis=-1)
                mirrored = jnp.all(new[:, g] == -old[:, h], axis=-1)
                zero = zero | (fired & (same | mirrored))
            kept = state.known[2 * nt + g * ns : 2 * nt + (g + 1) * ns]
            parts.append(jnp.where(moved, zero.astype(jnp.int32), kept))
    return jnp.concatenate(parts).astype(jnp.int32)
