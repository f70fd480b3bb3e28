"""Impacts: velocity jumps over all touching contacts at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.impact import ImpactResult, solve_impact
from jfric.contact.reactions import no_coupling, reaction_operator
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import diagonal_of, matvec
from jfric.numerics.loops import where_any
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.mode_equations import put_on_gaps
from jfric.solvers.event_driven.prepared import Prepared, constants
from jfric.solvers.event_driven.state import (
    State,
    plane_limits,
    prescribed_velocities,
    relative_velocities,
    together,
    velocity_tolerance,
)

#: Rounding errors of velocities after an impact of several contacts, in units of ``zero``.
PIVOTED = 64.0


class ImpactLimits(NamedTuple):
    """Settings of the solver: the fraction of the time since the start that may be neglected of an
    accumulating sequence, and whether impacts may gain energy."""

    accumulation: float
    gain: bool


class Impact(NamedTuple):
    """State right after an impact."""

    t: Float[Array, ""]
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    #: Reference size for rounding errors of ``v``.
    v_scale: Float[Array, " n"]
    mode: Int[Array, " nt"]
    impacted: Bool[Array, " nt"]
    #: Time at which the sequence of impacts that ends here accumulates.
    due: Float[Array, " nt"]
    zeno: Bool[Array, ""]
    #: Whether only one motion follows, and whether the impulses obey all laws.
    unique: Bool[Array, ""]
    holds: Bool[Array, ""] | bool
    #: Energy that the impulses add; zero where they add none [J].
    gained: Float[Array, ""]
    #: Whether unpressed contacts share the impact, and whether no event led to it.
    shared: Bool[Array, ""]
    unannounced: Bool[Array, ""]


def impact(
    prepared: Prepared, state: State, step: Step, touching, unpressed, gap, accumulation: float
) -> Impact:
    """Velocity jump over all touching contacts, and modes by the velocities after it.

    ``gap`` (nu,): the part of the gaps that does not depend on ``q``. ``unpressed`` (nu,): contacts
    without a normal force. ``accumulation``: negligible remaining time of a sequence of impacts, as
    a fraction of the time since the start.
    """
    mechanics, nt, nf = prepared.mechanics, prepared.nt, prepared.nf
    velocity = relative_velocities(prepared, state.t, state.v)
    approaches = touching & (velocity[nt:] < 0.0)
    first = rules.is_unannounced(approaches, state.mode[nf:], state.known[nf:nt])
    unannounced = first.any() & (first == approaches).all()
    state = _at_touch(prepared, state, step, velocity[nt:], first, unannounced)
    velocity = relative_velocities(prepared, state.t, state.v)
    small = jax.lax.stop_gradient(velocity_tolerance(prepared, state.t, state.v_scale))
    if nt > 1:
        # The error that pivoting leaves is relative to the largest velocity of all.
        largest = jnp.max(jax.lax.stop_gradient(jnp.abs(velocity)))
        small = small + PIVOTED * constants(small.dtype).zero * largest
    hit = rules.hit(
        state.mode[nf:],
        touching,
        -velocity[nt:],
        small[nt:],
        pull=_of_first(prepared, -2.0 * step.leading[2, nf:nt] / (step.h * step.h)),
        e=mechanics.e,
        negligible=accumulation * (state.t - state.start),
        gap=_of_first(prepared, step.leading[0, nf:nt]),
        resolution=_of_first(prepared, step.zero[0, nf:nt]),
    )
    due = jnp.concatenate([jnp.full((nf,), -jnp.inf, hit.rest.dtype), hit.due(state.t)])
    result = _impulses(prepared, velocity, touching, hit.e, small + jnp.finfo(small.dtype).tiny)
    v = state.v + matvec(prepared.MW, result.impulse)
    after = relative_velocities(prepared, state.t, v)
    ends = _ends_chatter(prepared, state, after)
    closed = rules.mode_after_impact(
        np.asarray(mechanics.frictionless[nf:], bool),
        result.mode[nf:],
        touching,
        (after[nf:nt], after[nt:]),
        (small[nf:nt], small[nt:]),
        hit.e,
        smooth=np.asarray(mechanics.smooth_impact, bool),
        ends=(ends[nf:nt], ends[nt:]),
    )
    # Work of the impulses on moving partners: relative velocities minus those of the body.
    partner = velocity - matvec(prepared.W, state.v)
    energy = 0.5 * jnp.sum(state.v * matvec(mechanics.M, state.v))
    scale = energy + jnp.abs(jnp.sum(result.impulse * partner))
    gained = jnp.sum(rules.impulse_energy(result.impulse, velocity, after))
    elements = rules.element_after_impact(
        state.mode[:nf], velocity[:nf], after[:nf], small[:nf], ends[:nf]
    )
    mode = together(prepared, jnp.concatenate([elements, closed.mode]))
    v = _onto_constraints(prepared, v, prescribed_velocities(prepared, state.t), mode, ends.any())
    unilateral = jnp.concatenate([jnp.zeros((nf,), bool), hit.hits])
    again = np.asarray([j for _, *others in mechanics.contact_planes for j in others], int)
    unilateral = unilateral.at[again].set(False)
    caused = matvec(jnp.abs(prepared.MW), jnp.abs(result.impulse))
    pushed = diagonal_of(prepared.D)[nt:] * result.impulse[nt:] > small[nt:]
    loose = rules.is_loose(state.mode[nf:], unpressed) & touching & pushed
    loose = loose.at[again - nf].set(False)
    return Impact(
        t=state.t,
        q=_onto_gaps(prepared, state.q, gap, touching),
        v=v,
        v_scale=jax.lax.stop_gradient(jnp.abs(v) + caused),
        mode=mode,
        impacted=unilateral,
        due=due,
        zeno=jnp.any(hit.accumulates | closed.chatters),
        unique=result.unique,
        holds=result.holds,
        gained=jax.lax.stop_gradient(rules.energy_gain(gained, scale)),
        shared=jnp.sum(loose) > 1,
        unannounced=unannounced,
    )


def _at_touch(prepared: Prepared, state: State, step: Step, rate, first, needed) -> State:
    """State at the touch of the contacts ``first``, where no event has found it: at this instant,
    with the derivatives that an impact shortly afterwards has."""
    gap, curvature = (
        _of_first(prepared, step.leading[k, prepared.nf : prepared.nt]) for k in (0, 2)
    )
    i = jnp.argmax(first)
    rate = select(needed, rate[i], -1.0)
    tau = rules.moment_of_touch(gap[i], rate, 2.0 * curvature[i] / (step.h * step.h))
    tau = select(needed, tau, 0.0)
    begun = step.completed(needed, constants(tau.dtype).short_order)
    a = begun.split(prepared, begun.table[0]).a
    q, v = state.q + tau * (state.v + 0.5 * tau * a), state.v + tau * a
    return eqx.tree_at(lambda s: (s.t, s.q, s.v), state, (state.t + tau, q, v))


def _impulses(prepared: Prepared, velocity, touching, e, small) -> ImpactResult:
    mechanics, planes = prepared.mechanics, prepared.mechanics.contact_planes
    smooth = jnp.asarray((False,) * prepared.nf + mechanics.smooth_impact)
    mu = prepared.kinetic_positive, prepared.kinetic_negative
    gamma, lengths = jnp.zeros((prepared.nt,), velocity.dtype), jnp.ones_like(velocity)
    for k, own in enumerate(mechanics.planes):
        if own in planes:
            limits = plane_limits(prepared, k, gamma)
            mu = tuple(side.at[own[0] : own[-1] + 1].set(limits.mu) for side in mu)
            # The spin of a disc as a velocity of its rim.
            lengths = lengths.at[np.asarray(own)].set(limits.lengths)
    positive, negative = (select(smooth, 0.0, side) for side in mu)
    others: Any = {
        "independent": prepared.independent if planes else prepared.regular,
        "planes": planes,
        "size": prepared.D_size,
    }
    if all(len(own) == 2 for own in planes):
        return solve_impact(prepared.D, velocity, touching, e, positive, negative, small, **others)
    D, gamma, small = prepared.D * lengths[:, None] * lengths, velocity * lengths, small * lengths
    found = solve_impact(D, gamma, touching, e, positive, negative, small, **others)
    return found._replace(impulse=found.impulse * lengths, velocity=found.velocity / lengths)


def _of_first(prepared: Prepared, values: Float[Array, " nu"]) -> Float[Array, " nu"]:
    """Values with all components of a plane set to that of the first."""
    nf = prepared.nf
    for i, *others in prepared.mechanics.contact_planes:
        values = values.at[np.asarray(others) - nf].set(values[i - nf])
    return values


def _onto_gaps(prepared: Prepared, q, gap, touching):
    """Positions with gaps of exactly zero at touching contacts: otherwise the errors of many
    impacts would add up, and contacts that hit at once would drift apart."""
    mechanics, nt = prepared.mechanics, prepared.nt
    active = jnp.concatenate([jnp.zeros((nt,), bool), touching])
    for _, *others in mechanics.contact_planes:
        active = active.at[nt + np.asarray(others) - prepared.nf].set(False)
    none = no_coupling(prepared.D.dtype)
    how = {"independent": prepared.independent, "size": prepared.D_size, "forces": False}
    R = reaction_operator(prepared.D, active, none, **how)
    missing = select(touching, -(gap + matvec(mechanics.W_N, q)), 0.0)
    q = q + matvec(prepared.MW, matvec(R.motion[:, nt:], missing))
    return put_on_gaps(prepared, q, gap, active & ~R.dependent)


def _ends_chatter(prepared: Prepared, state: State, after) -> Bool[Array, " m"]:
    """Relative velocities after an impact that end an accumulating sequence."""
    if not state.last_impact.shape[0]:
        return jnp.zeros(after.shape, bool)
    fastest = matvec(jnp.abs(prepared.W), state.fastest[0])
    return rules.ends_chatter(
        jax.lax.stop_gradient(after),
        _comparable(prepared, fastest),
        state.t - state.last_impact[0],
        state.t - state.start,
    )


def _comparable(prepared: Prepared, velocity) -> Float[Array, " m"]:
    """Relative velocity (m,) at each contact that is equivalent to the largest one of all contacts.

    Velocities are compared by the energy of the impulses that would cause them, so that sliding and
    rotating contacts, light and heavy bodies are comparable.
    """
    weight = jnp.sqrt(diagonal_of(prepared.D))
    return weight * jnp.max(velocity / select(weight > 0, weight, 1.0), initial=0.0)


def _onto_constraints(prepared: Prepared, v, prescribed, mode, needed):
    """Velocities that satisfy the constraints of closed and sticking contacts, where ``needed``.

    The remainder of an accumulating sequence is neglected once, here, so that not every mode that
    is tried decides about it again.
    """
    if prepared.nu < 2:
        return v

    def projected():
        active = prepared.active_rows(mode)
        # Without friction: a projection in the metric of the masses, which adds no energy.
        none = no_coupling(prepared.D.dtype)
        how = {"independent": prepared.regular, "size": prepared.D_size, "forces": False}
        R = reaction_operator(prepared.D, active, none, **how)
        defect = select(active & needed, prescribed - matvec(prepared.W, v), 0.0)
        return v + matvec(prepared.MW, matvec(R.motion, defect))

    return where_any(needed, projected, v) if prepared.many else projected()


def no_impact(prepared: Prepared, state: State) -> Impact:
    """The given state as an :class:`Impact` that changes nothing."""
    false, true = jnp.asarray(False), jnp.asarray(True)
    nothing = jnp.zeros((), state.v.dtype)
    return Impact(
        t=state.t,
        q=state.q,
        v=state.v,
        v_scale=state.v_scale,
        mode=state.mode,
        impacted=jnp.zeros((prepared.nt,), bool),
        due=state.due,
        zeno=false,
        unique=true,
        holds=true,
        gained=nothing,
        shared=false,
        unannounced=false,
    )
