"""The planar friction problem as a linear complementarity problem.

Relative velocities (or accelerations) ``gamma = gamma_0 + D lambda`` of tangents and normals,
with the friction limits ``c+ = cap+ + mu+ lambda_N`` and ``c- = cap- + mu- lambda_N``. With
``a = lambda_T + c+`` and ``gamma_T = p - n``::

    0 <= xi_N = gamma_N         _|_  lambda_N >= 0
    0 <= p    = gamma_T + n     _|_  a >= 0
    0 <= b    = c+ + c- - a     _|_  n >= 0

Source: Pfeiffer, Glocker, Multibody Dynamics with Unilateral Contacts, section 5.3.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.lemke import lemke
from jfric.numerics.linear_algebra import diagonal_of, matmul, matvec
from jfric.results.modes import Mode


class ContactProblem(NamedTuple):
    """Rows: tangents (nt) of friction elements (nf), then of unilateral contacts (nu); normals.

    ``decided``: tangents with zero sliding velocity; others keep the direction of ``sliding``
    (+1, -1, or 0 for no friction). ``touching``: normals that may carry a force. ``cap``: limits
    that do not depend on a normal force of this problem.
    """

    D: Float[Array, "m m"]
    gamma: Float[Array, " m"]
    decided: Bool[Array, " nt"]
    touching: Bool[Array, " nu"]
    sliding: Float[Array, " nt"]
    mu_positive: Float[Array, " nu"]
    mu_negative: Float[Array, " nu"]
    cap_positive: Float[Array, " nt"]
    cap_negative: Float[Array, " nt"]


class ContactSolution(NamedTuple):
    """Modes that obey all laws (if ``solved``), and the pivots it took."""

    mode: Int[Array, " nt"]
    solved: Bool[Array, ""]
    pivots: Int[Array, ""]


def solve_contacts(problem: ContactProblem, *, needed: Bool[Array, ""] | bool = True):
    """Modes of all contacts by Lemke's method; see :class:`ContactSolution`.

    Friction elements that are not decided keep their sliding direction; unilateral contacts that
    do not touch are open.
    """
    p, nt, nu = problem, problem.decided.shape[0], problem.touching.shape[0]
    nf = nt - nu
    # Unit diagonal: translations and rotations become comparable.
    weight = jnp.where(diagonal_of(p.D) > 0, diagonal_of(p.D), 1.0) ** -0.5
    D = p.D * weight[:, None] * weight[None, :]
    gamma, wt, wn = p.gamma * weight, weight[:nt], weight[nt:]
    mu_p, mu_n = (mu * wn / wt[nf:] for mu in (p.mu_positive, p.mu_negative))
    cap_p, cap_n = p.cap_positive / wt, p.cap_negative / wt

    # lambda_T = a - ratio lambda_N - fixed
    slides = jnp.where(p.decided, 1.0, p.sliding)
    ratio = jnp.where(slides[nf:] > 0, mu_p, jnp.where(slides[nf:] < 0, -mu_n, 0.0))
    fixed = jnp.where(slides > 0, cap_p, jnp.where(slides < 0, -cap_n, 0.0))
    own = jnp.concatenate([jnp.zeros((nf, nu), D.dtype), jnp.eye(nu, dtype=D.dtype)])
    push = jnp.concatenate([-own * ratio[None, :], jnp.eye(nu, dtype=D.dtype)])
    gamma = gamma - matvec(D[:, :nt], fixed)
    normal = matmul(D, push)

    active = jnp.concatenate([p.touching, p.decided, p.decided])
    zero, unit = jnp.zeros((nt, nt), D.dtype), jnp.eye(nt, dtype=D.dtype)
    M = jnp.block(
        [
            [normal[nt:], D[nt:, :nt], jnp.zeros((nu, nt), D.dtype)],
            [normal[:nt], D[:nt, :nt], unit],
            [own * (mu_p + mu_n)[None, :], -unit, zero],
        ]
    )
    M = jnp.where(active[:, None] & active[None, :], M, 0.0)
    q = jnp.concatenate([gamma[nt:], gamma[:nt], jnp.zeros_like(cap_p)])
    # Rows without a decision may be much larger than those with one.
    speed = jnp.max(jnp.abs(jnp.where(active, q, 0.0)), initial=0.0)
    speed = jnp.maximum(speed, jnp.finfo(D.dtype).tiny)
    q = q.at[nu + nt :].set(cap_p + cap_n) / speed
    result = lemke(M, jnp.where(active, q, 1.0), needed=needed)

    a, n = result.basic[nu : nu + nt], result.basic[nu + nt :]
    mode = jnp.where(a, jnp.where(n, Mode.SLIP_NEG, Mode.STICK), Mode.SLIP_POS)
    kept = jnp.where(p.sliding < 0, Mode.SLIP_NEG, Mode.SLIP_POS)
    mode = jnp.where(p.decided, mode, kept)
    closed = jnp.concatenate([jnp.ones((nf,), bool), result.basic[:nu]])
    mode = jnp.where(closed, mode, Mode.OPEN).astype(jnp.int32)
    return ContactSolution(mode, result.solved, result.pivots)
