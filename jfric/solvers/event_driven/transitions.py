"""Changes of mode at an instant, from the signs of the guards' first non-vanishing derivatives."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.contact_methods import solve_impulses
from jfric.contact.contact_problem import ContactProblem
from jfric.contact.direct_methods import solve_contacts
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import diagonal_of, matmul, matvec
from jfric.numerics.loops import once
from jfric.numerics.tolerances import tolerances
from jfric.results.modes import Mode
from jfric.results.status import Status
from jfric.solvers.event_driven.flow_step import Step, Values
from jfric.solvers.event_driven.inputs import Given, basis_after, given
from jfric.solvers.event_driven.linear_system import linear_system, magnitude_system
from jfric.solvers.event_driven.mode_equations import (
    mode_equations,
)
from jfric.solvers.event_driven.prepared import Prepared, constants
from jfric.solvers.event_driven.state import (
    State,
    relative_velocities,
    together,
    velocity_tolerance,
)

#: Velocity, relative to the one that counts as zero, at which a plane stops where others come to
#: rest: its direction turns, and no component is zero before all are.
TOGETHER = 100.0


class Signs(NamedTuple):
    """Signs of the guards right after the start of a step.

    The first three as in :class:`jfric.contact.rules.GuardSign`.
    """

    order: Int[Array, " g"]
    null: Bool[Array, " g"]
    violated: Bool[Array, " g"]
    #: Whether active contacts will not follow their prescribed motion (m,): 1 if the relative
    #: velocity grows, -1 if it falls, 0 if they follow.
    drift: Int[Array, " m"]
    #: Signs of relative velocities (m,) right after the start, 0 where they stay zero; None where
    #: no load can be shared.
    motion: Int[Array, " m"] | None
    #: Sliding velocities in planes relative to the one that counts as zero, infinite where they
    #: grow; None where planes are the only contacts.
    speeds: Float[Array, " np"] | None

    def of(self, part: slice) -> rules.GuardSign:
        """Signs of the guards in ``part``."""
        return rules.GuardSign(self.order[part], self.null[part], self.violated[part])


def guard_signs(
    prepared: Prepared, step: Step, state: State, dependent: Bool[Array, " m"], on: Bool[Array, ""]
) -> Signs:
    """Signs of the guards by their first non-vanishing derivative; one that vanishes identically
    holds. ``on``: whether the trajectory is running."""
    sticks, closed = state.mode == Mode.STICK, state.mode != Mode.OPEN
    others = jnp.zeros((prepared.n_guards - 2 * prepared.nt,), bool)
    of_force = jnp.concatenate([sticks, closed, others])
    leading, known = jax.lax.stop_gradient(step.leading), state.known
    if prepared.mechanics.planes:
        # Where sliding in a plane begins at rest, none of its guards is zero for that reason.
        slid = rules.slides(state.mode) & prepared.mechanics.in_plane
        known = select(jnp.pad(slid, (0, known.shape[0] - slid.shape[0])), 0, known)
    zero, nt = list(step.zero), prepared.nt
    of_sliding = rules.zero_acceleration(zero[1][:nt], state.mode, known[:nt])
    zero[1] = jnp.concatenate([of_sliding, zero[1][nt:]])
    if state.sharing is not None and state.sharing.preload is not None:
        # When the last preload has failed, what holds at rest is known less well than forces are.
        lifts = jnp.pad(~closed & (known[:nt] == 2), (0, len(known) - nt))
        zero[2] = zero[2] * select(lifts, tolerances(leading.dtype).known, 1.0)
    order = once(rules.guard_order(leading, zero, known=known, of_force=of_force), on)
    if state.sharing is not None and state.sharing.tight is not None:
        # Tight limits are zero by construction.
        tight = jnp.pad(state.sharing.tight, (0, len(others)))
        order = select(tight, len(leading), order)
    drift = motion = jnp.zeros(dependent.shape, jnp.int32)
    if step.relative_leading.shape[1]:
        relative = jax.lax.stop_gradient(step.relative_leading)
        moves = rules.guard_sign(relative, step.relative_zero)
        motion = select(moves.null, 0, select(moves.violated, -1, 1)).astype(jnp.int32)
        drift = select(dependent, motion, 0)
    shared = motion if prepared.shares else None
    speeds = None
    if prepared.mechanics.planes and step.relative_leading.shape[1]:
        speeds = _falling_speeds(prepared, step, state)
    return Signs(*rules.sign_of_order(order, leading), drift, shared, speeds)


def _falling_speeds(prepared: Prepared, step: Step, state: State) -> Float[Array, " np"]:
    gamma, rate = jax.lax.stop_gradient(step.relative_leading[:2])
    small, found = jax.lax.stop_gradient(step.relative_zero[0]), []
    ratio = jnp.abs(gamma) / select(small > 0, small, 1.0)
    for rows in map(np.asarray, prepared.mechanics.planes):
        slid = rules.slides(state.mode[rows[0]]) & (state.known[rows[0]] == 0)
        falls = slid & (jnp.sum(gamma[rows] * rate[rows]) <= 0.0)
        found.append(select(falls, jnp.max(ratio[rows]), jnp.inf))
    return jnp.stack(found)


def at_breakpoint(prepared: Prepared, t) -> Bool[Array, ""]:
    """Whether a function of time may have a breakpoint at this instant."""
    return jnp.any(prepared.breakpoints == t)


def may_jump(prepared: Prepared, state: State) -> Bool[Array, ""]:
    """Whether a load, belt or base may have jumped now, or the problem may have been changed."""
    return at_breakpoint(prepared, state.t) | (state.steps == 0)


def release_after_jump(prepared: Prepared, state: State, prescribed) -> State:
    """Release contacts where the velocity of a belt or base has jumped.

    ``prescribed`` (m,): relative velocities of tangents and normals after the jump.
    """
    nt, nf = prepared.nt, prepared.nf
    if prepared.mechanics.base_functions and prepared.mechanics.piecewise.count:
        # An elongation that was constant may begin to change.
        elements = slice(2 * nt, 2 * (nt + prepared.mechanics.piecewise.count))
        known = select(may_jump(prepared, state), 0, state.known[elements])
        state = eqx.tree_at(lambda s: s.known, state, state.known.at[elements].set(known))
    if nt == 0 or not any((*prepared.mechanics.belts, *prepared.mechanics.base_functions)):
        return state
    relative = matvec(prepared.W, state.v) - prescribed
    small = velocity_tolerance(prepared, state.t, state.v_scale)
    jumped = rules.has_jumped(relative, small) & may_jump(prepared, state)
    opened = jnp.concatenate([jnp.zeros((nf,), bool), jumped[nt:]])
    mode, known = rules.released(
        prepared.kind, state.mode, state.known[:nt], relative[:nt], jumped[:nt], opened
    )
    for rows in map(np.asarray, prepared.mechanics.planes):
        i = rows[0]
        known = known.at[i].set(select(jumped[rows].any(), 0, known[i]))
    known, mode = state.known.at[:nt].set(known), together(prepared, mode)
    return eqx.tree_at(lambda s: (s.mode, s.known), state, (mode, known))


def arrived_unseen(prepared: Prepared, state: State, signs: Signs) -> Bool[Array, ""]:
    """Whether a guard reached zero at this instant without a known cause, so that a small change of
    the system may change the outcome. A run may start at zero, but not at a limit."""
    nt, first = prepared.nt, state.steps == 0
    sticks, slides = state.mode == Mode.STICK, rules.slides(state.mode)
    breaks = at_breakpoint(prepared, state.t)
    unseen = rules.arrives_unseen(signs.of(slice(2 * nt)), state.known[: 2 * nt])
    at_limit = sticks & (breaks | first)
    own = jnp.concatenate([at_limit | ((breaks | slides) & ~first), at_limit | (breaks & ~first)])
    rests = at_rest(prepared, state, signs) & ~first
    return (jnp.any(unseen & own) | jnp.any(rests)) & (state.pivoting.flips == 0)


def at_rest(prepared: Prepared, state: State, signs: Signs) -> Bool[Array, " nt"]:
    """Contacts in a sliding mode that have come to rest, see
    :func:`jfric.contact.rules.comes_to_rest`."""
    first = signs.of(slice(prepared.nt))
    rests = rules.comes_to_rest(state.mode, first, state.known[: prepared.nt])
    rests = rests & ~jnp.asarray(prepared.mechanics.in_plane)
    if signs.speeds is not None:
        # Others at rest hold the velocity with which a plane slides, or it stops with them.
        others = rests | (rules.slides(state.mode) & (state.known[: prepared.nt] >= 1))
        limit = select(others.any(), TOGETHER, 1.0)
        for k, rows in enumerate(map(np.asarray, prepared.mechanics.planes)):
            rests = rests.at[rows].set(signs.speeds[k] <= limit)
    return rests


class Transition(NamedTuple):
    """Modes to which violated guards lead, and contacts that close with an approach velocity."""

    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    violated: Bool[Array, " c"]
    impact: Bool[Array, ""]
    #: Unilateral contacts with zero gap.
    touching: Bool[Array, " nu"]


def next_modes(prepared: Prepared, state: State, signs: Signs) -> Transition:
    """Modes to which violated guards lead, for each contact and element."""
    nt, nf, mode = prepared.nt, prepared.nf, state.mode
    closed, drift = mode, None
    if prepared.nu:
        velocity = relative_velocities(prepared, state.t, state.v)[:nt]
        small = velocity_tolerance(prepared, state.t, state.v_scale)[:nt]
        closed = rules.closed_mode(prepared.kind.frictionless, velocity, small)
    if not prepared.regular:
        normal = jnp.concatenate([jnp.zeros((nf,), jnp.int32), signs.drift[nt:]])
        drift = rules.Drift(signs.drift[:nt], normal)
    first, second = signs.of(slice(nt)), signs.of(slice(nt, 2 * nt))
    found = rules.next_mode(prepared.kind, mode, first, second, closed, drift=drift)
    following, touching = found.mode, found.touching
    for rows in map(np.asarray, prepared.mechanics.planes):
        # The first direction decides for all. A plane that friction could hold does not slide; one
        # that cannot stick together with others does.
        i, others = rows[0], rows[1:]
        sticks = mode[i] == Mode.STICK
        carried = sticks & (signs.drift[rows] != 0).any()
        other = select(sticks, Mode.SLIP_POS, Mode.STICK)
        both = select(first.violated[i] | carried, other, mode[i])
        if i >= nf:
            is_open = mode[i] == Mode.OPEN
            pulls = second.violated[i] & ~(sticks & first.violated[i])
            pulls = pulls | (signs.drift[nt + i - nf] > 0)
            closes = rules.plane_mode(closed[rows])
            both = select(pulls, Mode.OPEN, both)
            both = select(is_open, select(first.violated[i], closes, Mode.OPEN), both)
            touching = touching.at[others].set(touching[i])
        following = following.at[rows].set(both)
    # A contact at rest is no reason for others to move: it sticks before they are judged.
    rests = at_rest(prepared, state, signs)
    first_rests = rests.any() & ~found.hits.any()
    following = select(first_rests, select(rests, Mode.STICK, mode), following)
    segment = state.segment
    piecewise = prepared.mechanics.piecewise
    if piecewise.count:
        ns = piecewise.count
        g1, g2 = jnp.split(signs.violated[2 * nt : 2 * (nt + ns)], 2)
        segment = select(first_rests, segment, piecewise.following(segment, g1, g2))
    violated = jnp.concatenate([(following != mode) | found.pressed, segment != state.segment])
    for _, *others in prepared.mechanics.planes:
        violated = violated.at[np.asarray(others)].set(False)
    return Transition(following, segment, violated, jnp.any(found.hits), touching[nf:])


#: Fraction of a step after which accelerations decide what those at its start leave open.
SOON = 1e-3
#: How often a decision may start again: from the accelerations, and from those soon afterwards.
RESTARTS = 2


def modes_from_rest(
    prepared: Prepared, state: State, start: tuple[Step, Given], signs: Signs, needed
) -> Int[Array, " nt"]:
    """Modes by the accelerations alone, as one complementarity problem over all contacts.

    This is a proposal for decisions on which pivoting makes no progress. The signs of the guards
    judge higher derivatives afterwards.
    """
    step, g = start
    s = select(state.pivoting.restarts == 0, 0.0, SOON).astype(step.h.dtype)
    values = step.at(prepared, s)
    prescribed = matvec(g.acceleration, basis_after(prepared, g, s * step.h))
    nt, nf = prepared.nt, prepared.nf
    mode, order = state.mode, signs.order[:nt]
    slips = rules.slides(mode)
    direction = select(mode == Mode.SLIP_POS, 1.0, select(mode == Mode.SLIP_NEG, -1.0, 0.0))
    rests = (mode == Mode.STICK) | (slips & (order >= 1))
    velocity = relative_velocities(prepared, state.t, state.v)[:nt]
    small = velocity_tolerance(prepared, state.t, state.v_scale)[:nt]
    is_open = mode == Mode.OPEN
    rests = rests | (is_open & (jnp.abs(velocity) <= small))
    in_plane = jnp.asarray(prepared.mechanics.in_plane)
    if prepared.mechanics.planes:
        # Only the direction of sliding counts, and a plane that has begun to slide may hold.
        begins = (mode == Mode.STICK) | (slips & (state.known[:nt] >= 1))
        rests = select(in_plane, begins | at_rest(prepared, state, signs), rests)
        direction = select(in_plane, 0.0, direction)
    direction = select(is_open, jnp.sign(velocity), direction)
    touching = (~is_open | (order >= 2))[nf:]
    near = jnp.concatenate([jnp.ones((nf,), bool), touching])
    reactions = jnp.concatenate([values.lambda_t, values.lambda_n])
    if prepared.mechanics.planes:
        # A plane that slides keeps its present friction.
        kept = jnp.pad(in_plane & ~rests, (0, prepared.nu))
        reactions = select(kept, 0.0, reactions)
    free = matvec(prepared.W, values.a) - prescribed
    normal_force = jnp.concatenate([values.normal, jnp.zeros((prepared.nu,), free.dtype)])
    # A contact at rest is held up to its static limit.
    positive = select(rests, prepared.static_positive, prepared.kinetic_positive)
    negative = select(rests, prepared.static_negative, prepared.kinetic_negative)
    problem = ContactProblem(
        D=prepared.D,
        gamma=free - matvec(prepared.D, reactions),
        decided=rests & near & ~prepared.frictionless,
        touching=touching,
        sliding=select(prepared.frictionless, 0.0, direction),
        mu_positive=positive[nf:],
        mu_negative=negative[nf:],
        cap_positive=positive * normal_force,
        cap_negative=negative * normal_force,
        planes=tuple((int(i), int(j)) for i, j in prepared.mechanics.planes),
    )
    if not problem.planes:
        return solve_contacts(problem, needed=needed).mode
    found = solve_impulses(problem)
    return select(found.status == int(Status.OK), found.mode, mode)


def compliances(prepared: Prepared, P) -> Float[Array, " nt"]:
    """Accelerations of sliding caused by unit frictions, with the other reactions following."""
    return jnp.sum(matmul(prepared.mechanics.W_T, P) * prepared.mechanics.R_T, axis=1)


def predict(
    prepared: Prepared, compliance, state: State, values: Values, fired, stays, redundant
) -> tuple[Int[Array, " nt"], Int[Array, " ns"]]:
    """Modes and segments to try first after the guard in ``fired`` reached zero; ``stays``: as in
    :func:`jfric.contact.rules.predicted_mode`.

    Where reactions are ``redundant``, others may take more of the load.
    """
    nt, segment = prepared.nt, state.segment
    W = prepared.mechanics.W_T
    trial = rules.Trial(
        friction=values.lambda_t,
        normal=jnp.concatenate([values.normal, values.lambda_n]),
        acceleration=matvec(W, values.a) - values.prescribed_rate,
        compliance=compliance,
        alone=diagonal_of(prepared.D)[:nt],
        static_positive=prepared.static_positive,
        static_negative=prepared.static_negative,
    )
    mode = rules.predicted_mode(state.mode, fired[:nt], fired[nt : 2 * nt], trial, stays)
    if prepared.shares:
        mode = select(redundant & (state.mode == Mode.STICK), Mode.STICK, mode)
    for rows in map(np.asarray, prepared.mechanics.planes):
        # The mode of rest decides the next one.
        i = rows[0]
        stops = fired[i] & (state.mode[i] != Mode.OPEN)
        both = select(stops, Mode.STICK, state.mode[i])
        both = select(fired[nt + i], Mode.OPEN, both)
        if prepared.shares:
            both = select(redundant & (state.mode[i] == Mode.STICK), Mode.STICK, both)
        mode = mode.at[rows].set(both)
    piecewise = prepared.mechanics.piecewise
    if piecewise.count:
        ns = piecewise.count
        segment = piecewise.following(segment, *jnp.split(fired[2 * nt : 2 * (nt + ns)], 2))
    return mode, segment


def several_at_zero(prepared: Prepared, state: State, step: Step, fired, guards) -> Bool[Array, ""]:
    """Whether a limit of stick or a sliding velocity, the guard in ``fired``, reaches zero together
    with others, judged by the values of all ``guards`` there. The next modes are then decided for
    all of them at once, whatever their order."""
    nt = prepared.nt
    if nt < 2:
        return jnp.asarray(False)
    sticks = state.mode == Mode.STICK
    watched = jnp.concatenate([sticks | rules.slides(state.mode), sticks])
    watched = watched & (state.known[: 2 * nt] == 0)
    size = jnp.sum(jax.lax.stop_gradient(step.zero)[:, : 2 * nt], axis=0)
    fired = watched & fired[: 2 * nt]
    reached = fired | (watched & (jnp.abs(guards[: 2 * nt]) <= size))
    return jnp.any(fired) & (jnp.sum(reached) > 1)


def break_away(prepared: Prepared, state: State, force) -> State:
    """Mode to try first where friction elements stick: they slide if the friction needed to hold
    them is beyond its limit. This saves the pass that would detect it."""
    nt = prepared.nt
    nobody = jnp.zeros((nt,), bool)
    stuck = eqx.tree_at(lambda s: s.mode, state, jnp.full_like(state.mode, Mode.STICK))
    equations = mode_equations(prepared, stuck.mode, state.inner, nobody)
    of_mode = prepared, equations, given(prepared, equations, state.t), stuck, force
    limits, sizes = linear_system(*of_mode), magnitude_system(*of_mode)
    zero = constants(sizes.z.dtype).zero * matvec(sizes.guards, sizes.z)
    sign = rules.guard_sign([matvec(limits.guards, limits.z)], [zero])
    first, second = (rules.GuardSign(*(x[k : k + nt] for x in sign)) for k in (0, nt))
    found = rules.next_mode(prepared.kind, stuck.mode, first, second, stuck.mode).mode
    mode = select(state.mode == Mode.STICK, found, state.mode)
    known = known_after(prepared, state, mode, state.segment, nobody, state.known)
    return eqx.tree_at(lambda s: (s.mode, s.known), state, (mode, known))


def known_after(
    prepared: Prepared, state: State, mode, segment, at_rest, order: Int[Array, " g"]
) -> Int[Array, " g"]:
    """Zeros that the guards of new modes have by construction.

    Those of contacts follow from :func:`jfric.contact.rules.known_zeros`; elements that did not
    change keep their known zeros. ``at_rest`` (nt,): contacts whose sliding velocity just reached
    zero. ``order``: how many leading coefficients of the guards of the old modes vanish.
    """
    nt = prepared.nt
    known = state.known[:nt], state.known[nt : 2 * nt]
    parts = list(rules.known_zeros(state.mode, mode, known, at_rest))
    piecewise = prepared.mechanics.piecewise
    if piecewise.count:
        ns = piecewise.count
        vanish = order[2 * nt : 2 * (nt + ns)].reshape(2, ns).T >= 1
        zero = piecewise.known_zeros(state.segment, segment, vanish).astype(jnp.int32)
        moved = segment != state.segment
        for g in (0, 1):
            kept = state.known[2 * nt + g * ns : 2 * nt + (g + 1) * ns]
            parts.append(select(moved, zero[:, g], kept))
    parts.append(state.known[2 * (nt + piecewise.count) :])
    return jnp.concatenate(parts).astype(jnp.int32)


def reported_modes(prepared: Prepared, mode, signs: Signs) -> Int[Array, " nt"]:
    """Modes as reported to users, see :func:`jfric.contact.rules.reported_mode`."""
    null, in_plane = signs.null[: prepared.nt], prepared.mechanics.in_plane
    return rules.reported_mode(prepared.kind.frictionless, mode, null, in_plane)
