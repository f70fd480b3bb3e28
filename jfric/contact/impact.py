"""Impacts: one complementarity problem at velocity level over all touching contacts.

Newton's restitution and Coulomb's law for impulses (Moreau)::

    0 <= gamma_N+ + e gamma_N-   _|_   Lambda_N >= 0
    Lambda_T in -mu Lambda_N Sign(gamma_T+),  in a plane within the cone of its two coefficients

With ``gamma_N+ + e gamma_N-`` for the normals this is the problem of a time step. Friction with a
given (finite) normal force carries no impulse.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.contact_methods import solve_impulses
from jfric.contact.contact_problem import ContactProblem, missed_velocities
from jfric.contact.direct_methods import closed_form, solve_contacts
from jfric.contact.reactions import UNMOVED, Planes, active_rows, coupling, reaction_operator
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import UNROLLED_INVERSE, diagonal_of, matvec
from jfric.numerics.loops import where_any
from jfric.numerics.tolerances import REDUNDANT, tolerance_of
from jfric.results.modes import Mode

#: Velocities below this part of the largest come from rounding in redundant rows.
LEFT_OUT = 1e-9


class ImpactResult(NamedTuple):
    """Impulses (m,) on tangents and normals, relative velocities (m,) after them, and the modes."""

    impulse: Float[Array, " m"]
    velocity: Float[Array, " m"]
    mode: Int[Array, " nt"]
    #: Whether no other impulses of these modes move the system differently.
    unique: Bool[Array, ""]
    #: Whether the impulses obey all laws.
    holds: Bool[Array, ""] | bool = True

    @property
    def solved(self) -> Bool[Array, ""]:
        """Whether one motion follows that obeys all laws."""
        return self.unique & self.holds


def solve_impact(
    D: Float[Array, "m m"],
    velocity: Float[Array, " m"],
    touching: Bool[Array, " nu"],
    e: Float[Array, " nu"],
    kinetic_positive: Float[Array, " nt"],
    kinetic_negative: Float[Array, " nt"],
    tolerance: Float[Array, " m"],
    *,
    independent: bool,
    planes: Planes = (),
    size: Float[Array, " m"] | None = None,
) -> ImpactResult:
    """Velocities and impulses after an impact.

    ``velocity``: relative velocities before, tangents then normals. ``touching``: unilateral
    contacts with zero gap. Coefficients: for sliding to either side; in ``planes`` those of each
    direction. ``tolerance``: velocities below it count as zero. ``size``: diagonal of ``D`` without
    joints, where joints cancel a part of it.
    """
    nt = velocity.shape[0] - touching.shape[0]
    rebound = rules.restitution(velocity[nt:], velocity[nt:], e)
    target = jnp.concatenate([velocity[:nt], rebound])
    laws = _laws(D, target, touching, kinetic_positive, kinetic_negative, planes)
    # The modes are discrete: they are found without derivatives, the impulses with them.
    still, before, tolerance = jax.lax.stop_gradient((laws, velocity, tolerance))
    near = jnp.maximum(
        tolerance, tolerance_of(velocity.dtype, LEFT_OUT) * jnp.max(jnp.abs(before), initial=0.0)
    )
    if planes:
        found = _in_planes(laws, velocity, still, before, near, independent)
    else:
        found = _along_lines(laws, velocity, still, before, near, independent, size)
    change = jax.lax.stop_gradient(found.velocity) - before
    holds = _obey(still, found.impulse, change, near)
    return found._replace(holds=holds)


def _obey(laws: ContactProblem, impulse, change, near) -> Bool[Array, ""]:
    """Whether impulses that change velocities so obey the laws, within ``near``."""
    impulse = jax.lax.stop_gradient(impulse)
    missed = missed_velocities(laws, impulse, laws.gamma + change)
    return jnp.all(jnp.abs(missed) <= near)


def _laws(D, target, touching, positive, negative, planes: Planes) -> ContactProblem:
    nt, nf = target.shape[0] - touching.shape[0], target.shape[0] - 2 * touching.shape[0]
    rubs = touching & ((positive[nf:] != 0.0) | (negative[nf:] != 0.0))
    zero = jnp.zeros((nt,), D.dtype)
    # Friction elements take no part: an active row would transmit an impulse.
    decided = jnp.concatenate([jnp.zeros((nf,), bool), rubs])
    limits = positive[nf:], negative[nf:], zero, zero
    return ContactProblem(D, target, decided, touching, zero, *limits, planes)


def _along_lines(
    laws: ContactProblem, velocity, still: ContactProblem, before, near, independent: bool, size
) -> ImpactResult:
    mode = _decide(still, before)
    force, motion, pivot, unique = _reactions(laws, mode, independent, size)
    impulse = matvec(force, -laws.gamma)
    other = matvec(motion, -laws.gamma)
    after = velocity + matvec(laws.D, other)
    if not independent:
        # Of impulses that rows share in any way, the smallest may need more friction than there is.
        change = jax.lax.stop_gradient(after) - before
        impulse = select(_obey(still, impulse, change, near), impulse, other)
    if laws.touching.shape[0] > 1 and not independent:
        change = jax.lax.stop_gradient(after) - before
        shares, wider = _shared(still, before, change, near, mode)

        def still_unique():
            return _reactions(still, wider, independent, size).unique

        if laws.D.shape[0] > UNROLLED_INVERSE:
            also = where_any(shares.any(), still_unique, jnp.asarray(True))
        else:
            also = still_unique()
        unique = unique & (also | ~shares.any())
    unique = unique & rules.is_unique(jax.lax.stop_gradient(pivot))
    return ImpactResult(impulse, after, mode, unique)


class _Reactions(NamedTuple):
    force: Float[Array, "m m"]
    motion: Float[Array, "m m"]
    pivot: Float[Array, ""]
    unique: Bool[Array, ""]


def _reactions(laws: ContactProblem, mode, independent: bool, size) -> _Reactions:
    nf = laws.nf
    none = jnp.zeros((nf,), laws.D.dtype)
    positive, negative = (jnp.concatenate([none, x]) for x in (laws.mu_positive, laws.mu_negative))
    S = coupling(mode, positive, negative, nf)
    active = active_rows(mode, nf)
    R = reaction_operator(laws.D, active, S, independent=independent, size=size)
    return _Reactions(R.force, R.motion, R.pivot, R.unique)


def _decide(p: ContactProblem, velocity) -> Int[Array, " nt"]:
    """Modes of an impact in closed form, or by Lemke's method; the laws check them afterwards,
    whether or not that method reports success."""
    nt, nf = p.nt, p.nf
    speed = jnp.abs(velocity) / jnp.sqrt(select(diagonal_of(p.D) > 0, diagonal_of(p.D), 1.0))
    hits = p.touching & (velocity[nt:] < 0)
    fastest = jnp.max(select(hits, speed[nt:], 0.0), initial=0.0)
    slow = ~rules.slides_through(speed[nf:nt], fastest)
    frictionless = (p.mu_positive == 0.0) & (p.mu_negative == 0.0)
    direction = jnp.sign(velocity[:nt])
    direction = direction.at[nf:].set(select(frictionless, 0.0, direction[nf:]))
    decided = p.decided.at[nf:].set(p.decided[nf:] & slow)
    p = dataclasses.replace(p, decided=decided, sliding=direction)
    return closed_form(p) if nt == p.touching.shape[0] == 1 else solve_contacts(p).mode


def _shared(p: ContactProblem, velocity, change, near, mode):
    """Contacts without an impulse that could as well carry one (its distribution is open), and the
    modes with these contacts closed."""
    nt = p.nt
    after, rebound = (velocity + change)[:nt], (p.gamma + change)[nt:]
    rests, side = _rests(p, after, near), rules.slip(after > 0)
    if p.planes:
        side = jnp.full_like(side, Mode.SLIP_POS)
    met = (jnp.abs(rebound) <= near[nt:]) & (velocity[nt:] < -near[nt:])
    shares = p.touching & met & (mode[p.carriers] == Mode.OPEN)
    closed = select(rests, Mode.STICK, side)
    wider = select(p.of_tangents(shares, False), closed, mode)
    return shares, wider.astype(jnp.int32)


def _rests(p: ContactProblem, sliding, near) -> Bool[Array, " nt"]:
    """Whether each tangent (nt,) rests at these ``sliding`` velocities."""
    rests = p.decided & (jnp.abs(sliding) <= near[: p.nt])
    found = rests & rests[p.partner] if p.planes else rests
    return found.at[p.discs].set(rests[p.discs].all(axis=1, keepdims=True))


def _in_planes(
    laws: ContactProblem, velocity, still: ContactProblem, before, near, independent: bool
) -> ImpactResult:
    found = solve_impulses(laws, exact=True)
    after = velocity + matvec(laws.D, found.impulse)
    # A contact at rest sticks, also where one of the frictions that hold it is at its limit.
    rests = _rests(still, jax.lax.stop_gradient(after)[: still.nt], near)
    mode = select(rests & (found.mode != Mode.OPEN), Mode.STICK, found.mode)
    unique = jnp.asarray(True)
    if not independent:
        unique = _is_unique(still, before, near, mode, jax.lax.stop_gradient(found.impulse))
    return ImpactResult(found.impulse, after, mode, unique)


def _is_unique(laws: ContactProblem, velocity, near, mode, impulse) -> Bool[Array, ""]:
    """Whether the impulses that the equations of the modes leave open cause no motion."""
    p, factor = laws.in_units()
    kept = laws.kept()
    x, before, near = impulse[kept] / factor, velocity[kept] * factor, near[kept] * factor
    _, mode = _shared(p, before, matvec(p.D, x), near, mode)
    J = jax.jacfwd(lambda x: _equations(p, mode, x))(x)
    size = jnp.sqrt(select(diagonal_of(J) > 0, diagonal_of(J), 1.0))
    _, values, right = jnp.linalg.svd(J / size[:, None] / size[None, :])
    redundant = tolerance_of(J.dtype, REDUNDANT)
    null = (values <= redundant * values[0])[:, None] * right / size[None, :]
    moved, caused = jnp.abs(null @ p.D.T), jnp.abs(null) @ jnp.abs(p.D.T)
    return jnp.all(moved <= UNMOVED * redundant * jnp.max(caused, axis=1, keepdims=True))


def _equations(p: ContactProblem, mode, impulse) -> Float[Array, " m"]:
    """Defects (m,) of the equations that hold in the modes, in units."""
    gamma, nt = p.gamma + matvec(p.D, impulse), p.nt
    sliding, stick = gamma[:nt], mode == Mode.STICK
    upper, lower = p.limits(impulse[nt:])
    one = select(sliding > 0, upper, -lower)
    squared = sliding**2 + sliding[p.partner] ** 2
    moves = ~stick & (squared > 0)
    both = upper * sliding / jnp.sqrt(select(moves, squared, 1.0))
    limit = select(p.partner == np.arange(nt), one, select(moves, both, 0.0))
    if (discs := p.discs).size:
        ratio = jax.vmap(rules.disc_friction)(sliding[discs])
        limit = limit.at[discs].set(upper[discs[:, :1]] * ratio)
    friction = impulse[:nt] + select(mode == Mode.OPEN, 0.0, limit)
    normal = select(mode[p.carriers] == Mode.OPEN, impulse[nt:], gamma[nt:])
    return jnp.concatenate([select(stick, sliding, friction), normal])
