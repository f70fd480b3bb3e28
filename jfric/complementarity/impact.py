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

from jfric.complementarity.pivoting import flip_limit, select_flips, start_pivoting
from jfric.complementarity.reactions import active_rows, coupling, reaction_operator
from jfric.linear_algebra import matvec
from jfric.modes import Mode


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
    mode, solved = _decide(*frozen[:2], touching, *frozen[2:], independent)
    impulse, after, _ = _impulses(
        D, velocity, e, kinetic_positive, kinetic_negative, mode, independent
    )
    return ImpactResult(impulse, after, mode, solved)


def _impulses(D, velocity, e, kinetic_positive, kinetic_negative, mode, independent):
    nu = e.shape[0]
    nt = mode.shape[0]
    target = jnp.concatenate([-velocity[:nt], -(1.0 + e) * velocity[nt:]])
    S = coupling(mode, kinetic_positive, kinetic_negative, nt - nu)
    R = reaction_operator(D, active_rows(mode, nt - nu), S, independent=independent)
    impulse = matvec(R.force, target)
    return impulse, velocity + matvec(D, matvec(R.motion, target)), R.pivot


def _decide(D, velocity, touching, e, kinetic_positive, kinetic_negative, tolerance, independent):
    nu = touching.shape[0]
    nt = D.shape[0] - nu
    nf = nt - nu
    gamma_t, gamma_n = velocity[nf:nt], velocity[nt:]
    small_t, small_n = tolerance[nf:nt], tolerance[nt:]
    mu_p, mu_n = kinetic_positive[nf:], kinetic_negative[nf:]
    frictionless = (mu_p == 0.0) & (mu_n == 0.0)
    begin = jnp.where(frictionless, Mode.SLIP_POS, Mode.STICK)
    # Friction elements take no part: an active row would transmit an impulse.
    elements = jnp.full((nf,), Mode.SLIP_POS, jnp.int32)
    # Impulses are compared as the velocity changes that they alone would cause.
    slack = small_n / jnp.maximum(jnp.diagonal(D)[nt:], jnp.finfo(D.dtype).tiny)

    def check(mode):
        full = jnp.concatenate([elements, mode])
        impulse, after, pivot = _impulses(
            D, velocity, e, kinetic_positive, kinetic_negative, full, independent
        )
        force_t, force_n = impulse[nf:nt], impulse[nt:]
        after_t, after_n = after[nf:nt], after[nt:]
        pulls = (mode != Mode.OPEN) & (force_n < -slack)
        closes = (mode == Mode.OPEN) & touching & (after_n + e * gamma_n < -small_n)
        sticks = mode == Mode.STICK
        to_positive = sticks & (mu_p * force_n + force_t < -slack)
        to_negative = sticks & (mu_n * force_n - force_t < -slack)
        reverses = ((mode == Mode.SLIP_POS) & (after_t < -small_t)) | (
            (mode == Mode.SLIP_NEG) & (after_t > small_t)
        )
        following = jnp.where(closes, begin, mode)
        following = jnp.where(to_positive, Mode.SLIP_POS, following)
        following = jnp.where(to_negative, Mode.SLIP_NEG, following)
        following = jnp.where(reverses & ~frictionless, Mode.STICK, following)
        following = jnp.where(pulls, Mode.OPEN, following).astype(jnp.int32)
        return following, following != mode, pivot

    sliding = jnp.where(gamma_t > 0, Mode.SLIP_POS, Mode.SLIP_NEG)
    sliding = jnp.where(jnp.abs(gamma_t) <= small_t, Mode.STICK, sliding)
    sliding = jnp.where(frictionless, Mode.SLIP_POS, sliding)
    first = jnp.where(touching & (gamma_n <= small_n), sliding, Mode.OPEN).astype(jnp.int32)

    def running(carry):
        _, pivoting, done, _ = carry
        return ~done & (pivoting.flips < flip_limit(nu))

    def body(carry):
        mode, pivoting, _, _ = carry
        following, violated, pivot = check(mode)
        flips, pivoting = select_flips(violated, pivoting)
        return jnp.where(flips, following, mode), pivoting, ~violated.any(), pivot

    start = (first, start_pivoting(), jnp.asarray(False), jnp.ones((), D.dtype))
    mode, _, done, pivot = jax.lax.while_loop(running, body, start)
    # A redundant set (pivot zero) has unique velocities; a negative pivot has not.
    return jnp.concatenate([elements, mode]), done & (pivot > -1e-8)
