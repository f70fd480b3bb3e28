"""Whether any admissible impulses keep contacts at rest, even where reactions are undetermined.

With Coulomb's law a body on redundant contacts may have a solution that slides next to one that
rests: the normal forces are not unique, and another distribution finds less friction. Rest is then
the answer, as for limit loads. It is found by the *associated* problem: impulses of the held
contacts in their friction cone ``K``, relative velocities in the dual cone::

    lambda in K,   gamma = gamma_0 + D lambda in K*,   lambda^T gamma = 0

These are the conditions of a minimum of ``lambda^T D lambda / 2 + gamma_0^T lambda``, which has
``gamma = 0`` if any impulse in ``K`` has. ``K`` is spanned by its two edges ``lambda_T = -mu+``
and ``lambda_T = +mu-`` for ``lambda_N = 1``. Contacts that slide keep their direction.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.contact.contact_problem import ContactProblem
from jfric.contact.semismooth_newton import solve_linear
from jfric.numerics.choice import select
from jfric.numerics.lemke import lemke
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.results.modes import Mode


class Basis(NamedTuple):
    """Multipliers that carry: first and second edge of each unilateral contact's cone, friction
    elements inside their limits, and those at the upper one."""

    first: Bool[Array, " nu"]
    second: Bool[Array, " nu"]
    inside: Bool[Array, " nf"]
    upper: Bool[Array, " nf"]


class _Edges(NamedTuple):
    """``lambda = fixed + E a`` and the rows ``R gamma`` that complement ``a >= 0``: both edges of
    each cone, then friction elements from the lower limit on; ``used`` marks those that exist."""

    E: Float[Array, "m k"]
    R: Float[Array, "k m"]
    fixed: Float[Array, " m"]
    used: Bool[Array, " k"]
    span: Float[Array, " nf"]


def _edges(p: ContactProblem, held: Bool[Array, " nt"], mode: Int[Array, " nt"]) -> _Edges:
    nt, nu = p.decided.shape[0], p.touching.shape[0]
    nf, dtype = nt - nu, p.D.dtype
    side = select(mode == Mode.SLIP_POS, 1, select(mode == Mode.SLIP_NEG, -1, 0))
    held = held | (side == 0)
    own, slides = held[nf:], select(side[nf:] > 0, -p.mu_positive, p.mu_negative)
    slides = select(p.decided[nf:], slides, 0.0)
    rubs = own & p.decided[nf:]
    first = select(rubs, -p.mu_positive, select(own, 0.0, slides))
    second = select(rubs, p.mu_negative, 0.0)
    unit = jnp.eye(nu, dtype=dtype)
    zero = jnp.zeros((nf, nu), dtype)
    edge = [jnp.concatenate([zero, unit * mu[None, :], unit]) for mu in (first, second)]
    # Velocities of held contacts count along their edges, those of the others along the normals.
    row = [
        jnp.concatenate([zero, unit * select(rubs, mu, 0.0)[None, :], unit])
        for mu in (first, second)
    ]
    friction = jnp.eye(nt + nu, nf, dtype=dtype)
    at_limit = select(side > 0, -p.cap_positive, p.cap_negative)[:nf]
    lower = select(held[:nf], -p.cap_positive[:nf], at_limit)
    return _Edges(
        E=jnp.concatenate([*edge, friction], axis=1),
        R=jnp.concatenate([*row, friction], axis=1).T,
        fixed=jnp.concatenate([lower, jnp.zeros((2 * nu,), dtype)]),
        used=jnp.concatenate([p.touching, p.touching & rubs, held[:nf]]),
        span=(p.cap_positive + p.cap_negative)[:nf],
    )


def rest_basis(
    problem: ContactProblem, held: Bool[Array, " nt"], mode: Int[Array, " nt"], needed=True
) -> tuple[Basis, Bool[Array, ""]]:
    """Basis that keeps the contacts ``held`` at rest if any does, and whether one was found. Other
    contacts slide to the side of their ``mode``."""
    p, nu = problem, problem.touching.shape[0]
    e = _edges(p, held, mode)
    nf = e.span.shape[0]
    inner = select(e.used[:, None] & e.used[None, :], matmul(e.R, matmul(p.D, e.E)), 0.0)
    right = matvec(e.R, p.gamma + matvec(p.D, e.fixed))
    speed = jnp.max(jnp.abs(select(e.used, right, 0.0)), initial=jnp.finfo(p.D.dtype).tiny)
    right = select(e.used, right / speed, 1.0)
    size = 2 * nu + nf
    bounded = select(e.used[2 * nu :], 1.0, 0.0)[:, None] * jnp.eye(nf, size, 2 * nu)
    M = jnp.block([[inner, bounded.T], [-bounded, jnp.zeros((nf, nf))]]).astype(p.D.dtype)
    limit = select(e.used[2 * nu :], e.span / speed, 1.0)
    found = lemke(M, jnp.concatenate([right, limit]), needed=needed)
    basic, upper = found.basic[:size] & e.used, found.basic[size:]
    inside = basic[2 * nu :] & ~upper
    return Basis(basic[:nu], basic[nu : 2 * nu], inside, upper), found.solved


def rest_impulses(
    problem: ContactProblem, held: Bool[Array, " nt"], mode: Int[Array, " nt"], basis: Basis
) -> Float[Array, " m"]:
    """Impulses (m,) of the multipliers in ``basis``, by one linear system; differentiable."""
    p, e = problem, _edges(problem, held, mode)
    carry = jnp.concatenate([basis.first, basis.second, basis.inside])
    above = select(basis.upper, e.span, 0.0)
    fixed = e.fixed.at[: above.shape[0]].add(above)
    mask = carry[:, None] & carry[None, :]
    identity = jnp.eye(carry.shape[0], dtype=p.D.dtype)
    system = select(mask, matmul(e.R, matmul(p.D, e.E)), identity)
    right = -matvec(e.R, p.gamma + matvec(p.D, fixed))
    return fixed + matvec(e.E, solve_linear(system, select(carry, right, 0.0)))
