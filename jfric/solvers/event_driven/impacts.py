"""Impacts: velocity jumps over all touching contacts at once."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.complementarity.impact import solve_impact
from jfric.complementarity.reactions import active_rows, reaction_operator
from jfric.linear_algebra import matvec
from jfric.modes import Mode
from jfric.solvers.event_driven.constants import constants
from jfric.solvers.event_driven.polynomials import Step
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import (
    State,
    closed_mode,
    prescribed_velocities,
    relative_velocities,
    velocity_tolerance,
)

#: Rounding errors of velocities after an impact of several contacts, in units of ``zero``.
PIVOTED = 64.0
#: Part of the energy below which a gain is a rounding error.
GAIN = 1e-9


class ImpactLimits(NamedTuple):
    """Settings of the solver: part of the time since the start that an accumulating sequence may
    neglect, and whether impacts may gain energy."""

    accumulation: float
    gain: bool


class Impact(NamedTuple):
    """State right after an impact."""

    q: Float[Array, " n"]
    v: Float[Array, " n"]
    #: What rounding errors of ``v`` are relative to.
    v_scale: Float[Array, " n"]
    mode: Int[Array, " nt"]
    impacted: Bool[Array, " nt"]
    #: Time at which the sequence of impacts that ends here accumulates.
    due: Float[Array, " nt"]
    zeno: Bool[Array, ""]
    solved: Bool[Array, ""]
    #: Energy that the impulses add, if any [J].
    gained: Float[Array, ""]


def impact(
    prepared: Prepared, state: State, step: Step, touching, gap, accumulation: float
) -> Impact:
    """Velocity jump over all touching contacts, and modes by the velocities after it.

    ``gap`` (nu,): the part of the gaps that does not depend on ``q``. ``accumulation``: what is
    negligible of a sequence of impacts, as a part of the time since the start.
    """
    mechanics, nt, nf = prepared.mechanics, prepared.nt, prepared.nf
    velocity = relative_velocities(prepared, state.t, state.v)
    small = jax.lax.stop_gradient(velocity_tolerance(prepared, state.t, state.v_scale))
    if nt > 1:
        # What pivoting leaves undecided is relative to the largest velocity of all.
        largest = jnp.max(jax.lax.stop_gradient(jnp.abs(velocity)))
        small = small + PIVOTED * constants(small.dtype).zero * largest
    approach = -velocity[nt:]
    e = mechanics.e
    # Rest of an accumulating sequence of impacts: flights 2 e v/a, then e times that, ...
    pull = -2.0 * step.leading[2, nf:nt] / (step.h * step.h)
    rest = jnp.where(
        (pull > 0) & (approach > 0) & (e < 1),
        2.0 * e * approach / jnp.where(pull > 0, pull, 1.0) / jnp.where(e < 1, 1.0 - e, 1.0),
        jnp.inf,
    )
    hitting = touching & (approach > small[nt:])
    accumulates = hitting & (e > 0) & (rest <= accumulation * (state.t - state.start))
    is_open = state.mode[nf:] == Mode.OPEN
    e = jnp.where(accumulates | ~is_open, 0.0, e)
    end = jnp.where(accumulates, state.t + jnp.where(accumulates, rest, 0.0), -jnp.inf)
    due = jnp.concatenate([jnp.full((nf,), -jnp.inf, rest.dtype), end])
    smooth = jnp.asarray((False,) * nf + mechanics.smooth_impact)
    result = solve_impact(
        prepared.D,
        velocity,
        touching,
        e,
        jnp.where(smooth, 0.0, prepared.kinetic_positive),
        jnp.where(smooth, 0.0, prepared.kinetic_negative),
        small + 1e-300,
        independent=prepared.regular,
    )
    v = state.v + matvec(prepared.MW, result.impulse)
    after = relative_velocities(prepared, state.t, v)
    mode = closed_mode(prepared, after[:nt], small[:nt])
    stuck = jnp.concatenate([jnp.zeros((nf,), bool), result.mode[nf:] == Mode.STICK])
    mode = jnp.where(stuck & ~smooth & ~prepared.slippery, Mode.STICK, mode)
    rests = touching & (jnp.abs(after[nt:]) <= small[nt:])
    rests = rests | (touching & (result.mode[nf:] != Mode.OPEN) & (e == 0.0))
    ends = _ends_chatter(prepared, state, after)
    chatters = touching & ~rests & ends[nt:]
    rests = rests | chatters
    mode = jnp.where(ends[:nt] & ~prepared.slippery, Mode.STICK, mode)
    mode = mode.at[nf:].set(jnp.where(rests, mode[nf:], Mode.OPEN)).astype(jnp.int32)
    v = _onto_constraints(prepared, v, prescribed_velocities(prepared, state.t), mode, ends.any())
    after = relative_velocities(prepared, state.t, v)
    # Friction elements keep sticking or sliding unless the jump set them in motion.
    kept = jnp.abs(after[:nf] - velocity[:nf]) <= small[:nf]
    mode = mode.at[:nf].set(jnp.where(kept, state.mode[:nf], mode[:nf]))
    before, now = (0.5 * jnp.sum(x * matvec(mechanics.M, x)) for x in (state.v, v))
    # Work of the impulses on moving partners: relative velocities minus those of the body.
    partner = velocity - matvec(prepared.W, state.v)
    work = jnp.sum(result.impulse * partner)
    gained = now - before + work
    gained = jnp.where(gained <= GAIN * (before + jnp.abs(work)), 0.0, gained)
    unilateral = jnp.concatenate([jnp.zeros((nf,), bool), hitting])
    caused = matvec(jnp.abs(prepared.MW), jnp.abs(result.impulse))
    return Impact(
        q=_onto_gaps(prepared, state.q, gap, touching),
        v=v,
        v_scale=jax.lax.stop_gradient(jnp.abs(v) + caused),
        mode=mode,
        impacted=unilateral,
        due=due,
        zeno=jnp.any(accumulates | chatters),
        solved=result.solved,
        gained=jax.lax.stop_gradient(gained),
    )


def _onto_gaps(prepared: Prepared, q, gap, touching):
    """Positions at which the gaps of touching contacts are zero, not only to rounding: errors of
    many impacts would add up, and contacts that hit at once drift apart."""
    mechanics, nt = prepared.mechanics, prepared.nt
    active = jnp.concatenate([jnp.zeros((nt,), bool), touching])
    identity = jnp.eye(prepared.D.shape[0], dtype=prepared.D.dtype)
    R = reaction_operator(prepared.D, active, identity, independent=prepared.independent)
    missing = jnp.where(touching, -(gap + matvec(mechanics.W_N, q)), 0.0)
    q = q + matvec(prepared.MW, matvec(R.motion[:, nt:], missing))
    for j, dof in enumerate(mechanics.single_normal):
        if dof is not None:
            held = touching[j] & ~R.dependent[nt + j]
            q = q.at[dof].set(jnp.where(held, -gap[j] / mechanics.W_N[j, dof], q[dof]))
    return q


def _ends_chatter(prepared: Prepared, state: State, after) -> Bool[Array, " m"]:
    """Relative velocities after an impact that are the end of a sequence that accumulates.

    Contacts that push each other off, such as the corners of a rocking block, bounce in ever
    shorter flights even without restitution.
    """
    if not state.last_impact.shape[0]:
        return jnp.zeros(after.shape, bool)
    limits = constants(after.dtype)
    passed = state.t - state.start
    soon = state.t - state.last_impact[0] <= limits.chatter_time * passed
    fastest = matvec(jnp.abs(prepared.W), state.fastest[0])
    scale = _comparable(prepared, fastest)
    return soon & (jnp.abs(jax.lax.stop_gradient(after)) <= limits.chatter_velocity * scale)


def _comparable(prepared: Prepared, velocity) -> Float[Array, " m"]:
    """What the largest of the relative velocities (m,) is worth at each contact.

    Measured by the energy of the impulses that would cause them: of sliding and rotating contacts,
    of light and heavy bodies.
    """
    weight = jnp.sqrt(jnp.diagonal(prepared.D))
    return weight * jnp.max(velocity / jnp.where(weight > 0, weight, 1.0), initial=0.0)


def _onto_constraints(prepared: Prepared, v, prescribed, mode, needed):
    """Velocities that closed and sticking contacts allow, where ``needed``.

    What the end of an accumulating sequence neglects must not be decided again by every mode that
    is tried.
    """
    if prepared.nu < 2:
        return v
    active = active_rows(mode, prepared.nf)
    # Without friction: a projection in the metric of the masses, which adds no energy.
    identity = jnp.eye(prepared.D.shape[0], dtype=prepared.D.dtype)
    R = reaction_operator(prepared.D, active, identity, independent=prepared.regular)
    defect = jnp.where(active & needed, prescribed - matvec(prepared.W, v), 0.0)
    return v + matvec(prepared.MW, matvec(R.motion, defect))


def no_impact(prepared: Prepared, state: State) -> Impact:
    """The same state, in the shape of an impact."""
    false, true = jnp.asarray(False), jnp.asarray(True)
    nothing = jnp.zeros((), state.v.dtype)
    return Impact(
        q=state.q,
        v=state.v,
        v_scale=state.v_scale,
        mode=state.mode,
        impacted=jnp.zeros((prepared.nt,), bool),
        due=state.due,
        zeno=false,
        solved=true,
        gained=nothing,
    )
