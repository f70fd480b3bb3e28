"""Impacts: one complementarity problem at velocity level over all touching contacts.

Newton's restitution and Coulomb's law for impulses (Moreau)::

    0 <= gamma_N+ + e gamma_N-   _|_   Lambda_N >= 0
    Lambda_T in -mu Lambda_N Sign(gamma_T+)

Friction with a given (finite) normal force carries no impulse.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.closed_form import closed_form
from jfric.contact.contact_lcp import ContactProblem, solve_contacts
from jfric.contact.reactions import active_rows, coupling, reaction_operator
from jfric.numerics.linear_algebra import UNROLLED_INVERSE, diagonal_of, matvec
from jfric.numerics.loops import where_any
from jfric.results.modes import Mode

#: Velocities below this part of the largest come from rounding in redundant rows.
LEFT_OUT = 1e-9


class ImpactResult(NamedTuple):
    """Impulses (m,) on tangents and normals, relative velocities after, and the outcome."""

    impulse: Float[Array, " m"]
    velocity: Float[Array, " m"]
    mode: Int[Array, " nt"]
    solved: Bool[Array, ""]


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
) -> ImpactResult:
    """Velocities and impulses after an impact.

    ``velocity``: relative velocities before, tangents then normals. ``touching``: unilateral
    contacts with zero gap. ``tolerance``: velocities below it count as zero.
    """
    # The modes are discrete: they are found without derivatives, the impulses with them.
    frozen = jax.lax.stop_gradient((D, velocity, e, kinetic_positive, kinetic_negative, tolerance))
    mode = _decide(*frozen[:2], touching, *frozen[2:5])
    found = _impulses(D, velocity, e, kinetic_positive, kinetic_negative, mode, independent)
    still = jax.lax.stop_gradient(found)
    solved = _holds(*frozen[:2], touching, *frozen[2:], mode, still, independent)
    return ImpactResult(found.impulse, found.velocity, mode, solved)


class _Impulses(NamedTuple):
    impulse: Float[Array, " m"]
    velocity: Float[Array, " m"]
    pivot: Float[Array, ""]
    unique: Bool[Array, ""]


def _impulses(D, velocity, e, kinetic_positive, kinetic_negative, mode, independent):
    nu = e.shape[0]
    nt = mode.shape[0]
    normals = velocity[nt:]
    target = -jnp.concatenate([velocity[:nt], rules.restitution(normals, normals, e)])
    S = coupling(mode, kinetic_positive, kinetic_negative, nt - nu)
    R = reaction_operator(D, active_rows(mode, nt - nu), S, independent=independent)
    impulse = matvec(R.force, target)
    after = velocity + matvec(D, matvec(R.motion, target))
    return _Impulses(impulse, after, R.pivot, R.unique)


def _decide(D, velocity, touching, e, kinetic_positive, kinetic_negative):
    """Modes in closed form, or by Lemke's method; the laws judge them whether or not it claims to
    have ended well."""
    nu = touching.shape[0]
    nt = D.shape[0] - nu
    nf = nt - nu
    mu_p, mu_n = kinetic_positive[nf:], kinetic_negative[nf:]
    frictionless = (mu_p == 0.0) & (mu_n == 0.0)
    # Friction elements take no part: an active row would transmit an impulse.
    elements = jnp.zeros((nf,), bool)
    speed = jnp.abs(velocity) / jnp.sqrt(jnp.where(diagonal_of(D) > 0, diagonal_of(D), 1.0))
    fastest = jnp.max(jnp.where(touching & (velocity[nt:] < 0), speed[nt:], 0.0), initial=0.0)
    slow = ~rules.slides_through(speed[nf:nt], fastest)
    decided = jnp.concatenate([elements, touching & ~frictionless & slow])
    zero = jnp.zeros((nt,), D.dtype)
    direction = jnp.sign(velocity[:nt])
    direction = direction.at[nf:].set(jnp.where(frictionless, 0.0, direction[nf:]))
    normals = velocity[nt:]
    target = jnp.concatenate([velocity[:nt], rules.restitution(normals, normals, e)])
    problem = ContactProblem(D, target, decided, touching, direction, mu_p, mu_n, zero, zero)
    return closed_form(problem) if nt == nu == 1 else solve_contacts(problem).mode


def _holds(
    D,
    velocity,
    touching,
    e,
    kinetic_positive,
    kinetic_negative,
    tolerance,
    mode,
    found: _Impulses,
    independent: bool,
):
    """Whether the impulses of these modes obey the laws."""
    nu = touching.shape[0]
    nt = D.shape[0] - nu
    nf = nt - nu
    mu_p, mu_n = kinetic_positive[nf:], kinetic_negative[nf:]
    frictionless = (mu_p == 0.0) & (mu_n == 0.0)
    normals = velocity[nt:]
    impulse, after, pivot, unique = found
    # Impulses are compared as the velocity changes that they alone would cause.
    slack = tolerance[nt:] / jnp.maximum(diagonal_of(D)[nt:], jnp.finfo(D.dtype).tiny)
    small_t, small_n = tolerance[nf:nt], tolerance[nt:]
    force_t, force_n = impulse[nf:nt], impulse[nt:]
    after_t = after[nf:nt]
    contact = mode[nf:]
    rebound = rules.restitution(after[nt:], normals, e)
    # Rows that were left out as redundant are checked with the others.
    largest = jnp.max(jnp.abs(velocity), initial=0.0)
    near = LEFT_OUT * largest
    met = jnp.abs(rebound) <= jnp.maximum(small_n, near)
    closed = (force_n >= -slack) & met
    holds = jnp.where(contact == Mode.OPEN, ~touching | (rebound >= -small_n), closed)
    within = (mu_p * force_n + force_t >= -slack) & (mu_n * force_n - force_t >= -slack)
    slides = jnp.where(contact == Mode.SLIP_POS, after_t, -after_t) >= -small_t
    within = within & (jnp.abs(after_t) <= jnp.maximum(small_t, near))
    friction = jnp.where(contact == Mode.STICK, within, slides | frictionless)
    holds = holds & ((contact == Mode.OPEN) | friction)
    # A contact without impulse obeys them in whatever mode it was left.
    idle = (jnp.abs(force_n) <= slack) & (jnp.abs(force_t) <= slack) & (rebound >= -small_n)
    holds = holds | idle
    if nu > 1 and not independent:
        # Contacts left without impulse that would do as well with one: how they share it is open.
        shares = touching & (contact == Mode.OPEN) & met & (velocity[nt:] < -small_n)
        rests = ~frictionless & (jnp.abs(after_t) <= jnp.maximum(small_t, near))
        side = rules.slip(after_t > 0)
        wider = jnp.where(shares, jnp.where(rests, Mode.STICK, side), contact)
        wider = mode.at[nf:].set(wider.astype(mode.dtype))

        def still_unique():
            numbers = (D, velocity, e, kinetic_positive, kinetic_negative)
            return _impulses(*numbers, wider, independent).unique

        if D.shape[0] > UNROLLED_INVERSE:
            also = where_any(shares.any(), still_unique, jnp.asarray(True))
        else:
            also = still_unique()
        unique = unique & (also | ~shares.any())
    return holds.all() & unique & rules.is_unique(pivot)
