"""Impulses of contacts whose modes are known, modes that impulses imply, and their unit scale.

With ``gamma = gamma_0 + D lambda`` and the limits ``c+-`` of :mod:`contact_lcp`, sticking rows
and closed normals have ``gamma = 0``; sliding friction is at its limit, ``lambda_T = -+ c+-``.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.contact.contact_lcp import ContactProblem
from jfric.numerics.linear_algebra import UNROLLED_INVERSE, diagonal_of, eliminate, matvec
from jfric.results.modes import Mode


def impulses_in_mode(problem: ContactProblem, mode: Int[Array, " nt"]) -> Float[Array, " m"]:
    """Impulses (m,) of tangents and normals in the given modes, by one linear system.

    Differentiable in all numbers of ``problem``. Not finite where the modes leave the impulses
    undetermined.
    """
    p, nt, nu = problem, problem.decided.shape[0], problem.touching.shape[0]
    nf = nt - nu
    closed = (mode[nf:] != Mode.OPEN) & p.touching
    carries = jnp.concatenate([jnp.ones((nf,), bool), closed])
    sticks = p.decided & (mode == Mode.STICK) & carries
    active = jnp.concatenate([sticks, closed])
    # The side of sliding: +1, -1, or 0 where there is no friction.
    side = jnp.where(mode == Mode.SLIP_POS, 1.0, jnp.where(mode == Mode.SLIP_NEG, -1.0, 0.0))
    side = jnp.where(carries, jnp.where(p.decided, side, p.sliding), 0.0)
    fixed = jnp.where(side > 0, -p.cap_positive, jnp.where(side < 0, p.cap_negative, 0.0))
    own = side[nf:]
    ratio = jnp.where(own > 0, -p.mu_positive, jnp.where(own < 0, p.mu_negative, 0.0))
    # lambda = [fixed, 0] + S y: sliding friction follows its normal force.
    normal = p.D[:, nt:] + p.D[:, nf:nt] * ratio[None, :]
    system = jnp.concatenate([p.D[:, :nt], normal], axis=1)
    identity = jnp.eye(nt + nu, dtype=p.D.dtype)
    system = jnp.where(active[:, None] & active[None, :], system, identity)
    right = -(p.gamma + matvec(p.D[:, :nt], fixed))
    y = solve_linear(system, jnp.where(active, right, 0.0))
    tangential = y[:nt] + fixed
    tangential = tangential.at[nf:].add(ratio * y[nt:])
    return jnp.concatenate([tangential, y[nt:]])


def solve_linear(a: Float[Array, "m m"], b: Float[Array, " m"]) -> Float[Array, " m"]:
    """``a^-1 b``; written out for few rows, where calling a library costs more than the sum."""
    if a.shape[0] <= UNROLLED_INVERSE:
        return matvec(eliminate(a, 0.0).inverse, b)
    return jnp.linalg.solve(a, b)


def modes_of(
    problem: ContactProblem, impulse: Float[Array, " m"], gamma: Float[Array, " m"]
) -> Int[Array, " nt"]:
    """Modes in which ``lambda - gamma / diag(D)`` lies: inside a limit, beyond it, or open."""
    p, nt, nu = problem, problem.decided.shape[0], problem.touching.shape[0]
    nf = nt - nu
    diagonal = diagonal_of(p.D)
    trial = impulse - gamma / jnp.where(diagonal > 0, diagonal, 1.0)
    normal_force = jnp.maximum(trial[nt:], 0.0)
    upper, lower = limits(p, normal_force)
    mode = jnp.where(
        trial[:nt] < -upper,
        Mode.SLIP_POS,
        jnp.where(trial[:nt] > lower, Mode.SLIP_NEG, Mode.STICK),
    )
    kept = jnp.where(p.sliding < 0, Mode.SLIP_NEG, Mode.SLIP_POS)
    mode = jnp.where(p.decided, mode, kept)
    is_open = ~p.touching | (trial[nt:] <= 0.0)
    is_open = jnp.concatenate([jnp.zeros((nf,), bool), is_open])
    return jnp.where(is_open, Mode.OPEN, mode).astype(jnp.int32)


def limits(problem: ContactProblem, normal_force: Float[Array, " nu"]):
    """Limits ``(c+, c-)`` (nt,) of the friction impulses: ``-c+ <= lambda_T <= c-``."""
    nf = problem.decided.shape[0] - problem.touching.shape[0]
    return (
        problem.cap_positive.at[nf:].add(problem.mu_positive * normal_force),
        problem.cap_negative.at[nf:].add(problem.mu_negative * normal_force),
    )


def unit_scale(problem: ContactProblem) -> tuple[ContactProblem, Float[Array, " m"]]:
    """The problem with a unit diagonal, and the factor from its impulses to the given ones.

    Translations and rotations, light and heavy bodies become comparable.
    """
    p, nt, nu = problem, problem.decided.shape[0], problem.touching.shape[0]
    nf = nt - nu
    diagonal = diagonal_of(p.D)
    weight = jnp.where(diagonal > 0, diagonal, 1.0) ** -0.5
    wt, wn = weight[:nt], weight[nt:]
    ratio = wn / wt[nf:]
    scaled = p._replace(
        D=p.D * weight[:, None] * weight[None, :],
        gamma=p.gamma * weight,
        mu_positive=p.mu_positive * ratio,
        mu_negative=p.mu_negative * ratio,
        cap_positive=p.cap_positive / wt,
        cap_negative=p.cap_negative / wt,
    )
    return scaled, weight
