"""Contacts that hold a load together in a mode, and values that passes in one mode share: large
systems compute them once for many passes."""

from __future__ import annotations

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.reactions import spanned
from jfric.contact.shared_loads import Limits, Preload, Sharing, exchange, preload
from jfric.numerics.choice import select
from jfric.numerics.isolation import LEADING
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.numerics.loops import Shared, once, where_any
from jfric.results.modes import Mode
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.guards import force_limits
from jfric.solvers.event_driven.mode_equations import (
    ModeEquations,
    mode_equations,
    reactions_in_mode,
)
from jfric.solvers.event_driven.prepared import Prepared, constants
from jfric.solvers.event_driven.state import State, kinetic, relative_velocities
from jfric.solvers.event_driven.transitions import Signs, Transition, compliances
from jfric.system.piecewise import Inner


def share_loads(
    prepared: Prepared,
    state: State,
    equations: ModeEquations,
    step: Step,
    signs: Signs,
    transition: Transition,
) -> tuple[Sharing | None, Bool[Array, ""]]:
    """Distribution of loads among contacts from now on, and whether other reactions hold what the
    present ones do not, before any mode changes.

    Mode changes that have other reasons than forces come first.
    """
    if (now := state.sharing) is None:
        return None, jnp.asarray(False)
    nt, nf, mode = prepared.nt, prepared.nf, state.mode
    sticks, closed = mode == Mode.STICK, mode != Mode.OPEN
    presses = closed & (jnp.arange(nt) >= nf)
    # Without limits friction must be zero.
    fixed = jnp.concatenate([sticks & prepared.unlimited, jnp.zeros((nt,), bool)])
    of_force = jnp.concatenate([sticks, sticks | presses])
    violated, null = signs.violated[: 2 * nt], signs.null[: 2 * nt]
    passed = of_force & select(fixed, ~null, violated)
    of_contact = jnp.pad(passed[:nt] | passed[nt:], (0, transition.violated.shape[0] - nt))
    others = transition.violated & ~of_contact
    # Where different shares would move something, none must be chosen.
    shared = equations.redundant & equations.unique
    needed = shared & passed.any() & ~others.any()

    def rearranged():
        if now.tight is not None and equations.room is not None:
            tight, helps = exchange(equations.room, now.tight, passed, fixed, fixed & ~violated)
            return Sharing(tight, None), helps
        assert now.preload is not None
        more, helps = _preload(prepared, state, equations.null, step, of_force, fixed)
        return Sharing(None, now.preload + more), helps

    found, helps = where_any(needed, rearranged, (now, jnp.asarray(False)))
    helps = helps & needed
    return jax.tree.map(lambda x, y: select(helps, x, y), found, now), helps


def _preload(prepared: Prepared, state: State, null, step: Step, of_force, fixed) -> Preload:
    """Additional self-balanced reactions with the largest margin; all forces are relative to the
    largest."""
    nt, mechanics = prepared.nt, prepared.mechanics
    values = jax.lax.stop_gradient(step.at(prepared, jnp.zeros_like(step.h)))
    reactions = jnp.concatenate([values.lambda_t, values.lambda_n])
    rows = force_limits(prepared, state.mode, state.inner)
    m = len(reactions)
    size = jnp.concatenate([reactions, values.normal])
    largest = jnp.max(jnp.abs(size), initial=0.0)
    scale = select(largest > 0, largest, 1.0)
    given = matvec(rows[:, m:], values.normal / scale)
    planes = [np.asarray(own) for own in mechanics.planes if len(own) == 2]

    def cones(x):
        found, normal = [], jnp.concatenate([values.normal / scale, x[nt:]])
        for own in planes:
            mu, used = prepared.static_positive[own], state.mode[own[0]] == Mode.STICK
            along = jnp.stack([x[own[0]], x[own[1]] / rules.ratio_of(mu)])
            found.append((mu[0] * normal[own[0]], along, used))
        return found

    limits = Limits(
        linear=lambda x: matvec(rows[:, :m], x) + given,
        used=of_force & ~np.tile(mechanics.in_plane, 2) & ~fixed,
        cones=cones,
    )
    found = preload(null, reactions / scale, limits)
    return found._replace(reactions=found.reactions * scale)


def one_motion(
    prepared: Prepared, state: State, equations: ModeEquations, step: Step, signs: Signs
) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    """Whether the motion does not depend on how contacts without a motion of their own share the
    load, and whether open ones among them may carry a part of it.

    Contacts that carry their limit because others stick may carry less, and open ones with a gap
    that stays zero may be pressed: one distribution was chosen, and the choice must not matter.
    """
    nt, nf, mode = prepared.nt, prepared.nf, state.mode
    # A given normal force of zero leaves nothing to carry.
    ends = [step.at(prepared, jnp.full_like(step.h, s)).normal for s in (0.0, 1.0)]
    pressing = jnp.abs(jax.lax.stop_gradient(jnp.stack(ends))).max(axis=0, initial=0.0)
    normal = jnp.concatenate([pressing, jnp.ones((prepared.nu,), pressing.dtype)])
    limited = (prepared.static_positive + prepared.static_negative) * normal > 0
    touches = (mode == Mode.OPEN) & signs.null[:nt] & (jnp.arange(nt) >= nf)
    assert signs.motion is not None
    motion = signs.motion[:nt]
    closed = select(motion == 0, Mode.STICK, rules.slip(motion > 0))
    closed = select(prepared.frictionless, Mode.SLIP_POS, closed)
    wider = select(equations.held & limited, Mode.STICK, select(touches, closed, mode))
    wider, asked = wider.astype(mode.dtype), jnp.any(wider != mode)
    rubbing = prepared.mechanics.rubbing
    if rubbing.size:
        # The equations of a mode leave their friction out.
        asked = asked | rules.slides(mode[rubbing]).any()
        prepared = _with_friction_in_planes(prepared, state)

    def carrying():
        found = reactions_in_mode(prepared, wider, equations.held & False)
        return found.unique, found.redundant & touches.any()

    return where_any(asked, carrying, (jnp.asarray(True), jnp.asarray(False)))


def _with_friction_in_planes(prepared: Prepared, state: State) -> Prepared:
    """Copy with the coefficients of sliding in planes; at rest with those of any direction."""
    gamma = relative_velocities(prepared, state.t, state.v)[: prepared.nt]
    for rows in map(np.asarray, prepared.mechanics.planes):
        along = gamma[rows]
        rests = (state.known[rows[0]] >= 1) | jnp.all(along == 0.0)
        gamma = gamma.at[rows].set(select(rests, jnp.ones_like(along), along))
    pair = kinetic(prepared, state, gamma)
    return eqx.tree_at(lambda p: (p.kinetic_positive, p.kinetic_negative), prepared, pair)


def held_by_others(prepared: Prepared, mode: Int[Array, " nt"], t) -> Bool[Array, " nt"]:
    """Closed contacts in a sliding mode whose sliding velocity the sticking ones keep at zero.

    No law determines how two supports under one rigid body share a load. One that has reached its
    limit goes on carrying this limit while the other takes the rest: stick lasts as long as any
    admissible forces hold the body. As the contact at its limit does not slide, this limit is the
    static one.
    """
    nt = prepared.nt
    nobody = jnp.zeros((nt,), bool)
    if nt < 2 or prepared.independent:
        return nobody
    active = prepared.active_rows(mode)
    D = prepared.D
    if prepared.own_WM is not None:
        # Whether others decide a sliding velocity is a matter of directions, not of reactions.
        D = matmul(prepared.own_WM, prepared.W.T)
    inside, weights = jax.lax.stop_gradient(spanned(D, active, prepared.D_size))
    held = rules.slides(mode) & inside[:nt] & ~prepared.frictionless
    held = held & ~jnp.asarray(prepared.mechanics.in_plane)
    if any((*prepared.mechanics.belts, *prepared.mechanics.base_functions)):
        demanded, size = jax.lax.stop_gradient(_prescribed(prepared, t))
        caused = matmul(demanded, weights.T) - demanded
        size = matmul(size, jnp.abs(weights).T) + size
        still = jnp.abs(caused) <= constants(size.dtype).zero * size
        held = held & still.all(axis=0)[:nt]
    return held


def held_at_rest(prepared: Prepared, state: State) -> Bool[Array, " nt"]:
    """Contacts in a sliding mode that were at rest at this instant. Their static limits hold until
    all other modes have been tried and the contacts move nevertheless.

    The friction of a contact that slides is lower. If this lower friction were used at once, others
    would have to let go of a body that admissible forces hold, and the order of the contacts would
    decide the outcome.
    """
    nt = prepared.nt
    if not prepared.releases:
        return jnp.zeros((nt,), bool)
    rested = rules.slides(state.mode) & (state.known[:nt] >= 1) & ~state.released
    return rested & ~prepared.frictionless & ~jnp.asarray(prepared.mechanics.in_plane)


def _prescribed(prepared: Prepared, t) -> tuple[Float[Array, "l m"], Float[Array, "l m"]]:
    """Derivatives at ``t`` of the velocities that belts and bases prescribe, and their sizes."""
    mechanics = prepared.mechanics
    values, sizes = [], []
    for k in range(LEADING):
        base = [(f.derivative(t, k + 1), f.size(t, k + 1)) for f in mechanics.base_functions]
        belt = [
            (0.0, 0.0) if f is None else (f.derivative(t, k), f.size(t, k)) for f in mechanics.belts
        ]
        value, size = (_row(prepared, [x[i] for x in belt]) for i in (0, 1))
        if base:
            rate, largest = (jnp.stack([jnp.asarray(x[i]) for x in base]) for i in (0, 1))
            value = value - matvec(prepared.W_base, rate)
            size = size + matvec(jnp.abs(prepared.W_base), largest)
        values.append(value)
        sizes.append(size)
    return jnp.stack(values), jnp.stack(sizes)


def _row(prepared: Prepared, of_belts: list) -> Float[Array, " m"]:
    dtype = prepared.D.dtype
    entries = [jnp.asarray(x, dtype) for x in of_belts]
    return jnp.concatenate([jnp.stack(entries), jnp.zeros((prepared.nu,), dtype)])


class InMode(NamedTuple):
    """Values that passes in one mode share.

    ``rests``: contacts that static limits hold, see :func:`held_at_rest`; ``natural``: longest
    sensible step [s]; ``compliance``: accelerations of sliding caused by unit frictions, with the
    other reactions following.
    """

    mode: Int[Array, " nt"]
    inner: Inner
    rests: Bool[Array, " nt"]
    sharing: Sharing | None
    equations: ModeEquations
    natural: Float[Array, ""]
    compliance: Float[Array, " nt"]


def in_mode(prepared: Prepared, frozen: Prepared, flow, state: State, on=True) -> InMode:
    """Shared values for the mode of ``state``; ``frozen``: ``prepared`` as a constant of
    derivatives; ``on``: whether the trajectory is still running."""
    rests = held_at_rest(prepared, state)
    held = held_by_others(prepared, state.mode, state.t) | rests
    equations = mode_equations(prepared, state.mode, state.inner, held, state.sharing)
    if not (flow.lowered or prepared.many):
        # Few numbers: the compiler would recompute them at each of their uses.
        equations = once(equations, on)
    still, now = jax.lax.stop_gradient(equations), state
    if prepared.mechanics.varying is not None:
        now = jax.lax.stop_gradient(state)
    natural, compliance = flow.natural_step(frozen, still, now), compliances(prepared, still.P)
    return InMode(state.mode, state.inner, rests, state.sharing, equations, natural, compliance)


def shared_by_passes(prepared: Prepared, flow) -> Shared | None:
    """Values that passes share; None for small systems, or if they vary with time or position."""
    if not prepared.many or prepared.driven:
        return None

    def holds(made: InMode, state: State):
        now = state.mode, state.inner, held_at_rest(prepared, state), state.sharing
        same = jax.tree.map(lambda x, y: jnp.all(x == y), made[: len(now)], now)
        return jnp.all(jnp.stack(jax.tree.leaves(same)))

    frozen = jax.lax.stop_gradient(prepared)
    return Shared(functools.partial(in_mode, prepared, frozen, flow), holds)
