"""Shares of contacts that hold a load together, and whether the motion depends on them."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from jfric.contact import rules
from jfric.contact.shared_loads import Limits, Preload, Sharing, exchange, preload
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matvec
from jfric.numerics.loops import where_any
from jfric.results.modes import Mode
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.guards import force_limits
from jfric.solvers.event_driven.kinetic import kinetic
from jfric.solvers.event_driven.mode_equations import ModeEquations, reactions_in_mode
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State, relative_velocities
from jfric.solvers.event_driven.transitions import Signs, Transition


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
    pairs = np.asarray(prepared.mechanics.contact_planes, int)
    if len(pairs):
        # The equations of a mode leave their friction out.
        asked = asked | rules.slides(mode[pairs.ravel()]).any()
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
