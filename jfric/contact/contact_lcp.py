"""Friction along lines as a linear complementarity problem.

In the symbols of :mod:`jfric.contact.contact_problem`, with ``a = lambda_T + c+`` and
``gamma_T = p - n``::

    0 <= xi_N = gamma_N         _|_  lambda_N >= 0
    0 <= p    = gamma_T + n     _|_  a >= 0
    0 <= b    = c+ + c- - a     _|_  n >= 0

Source: Pfeiffer, Glocker, Multibody Dynamics with Unilateral Contacts, section 5.3.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jfric.contact.contact_problem import ContactProblem
from jfric.numerics.choice import select
from jfric.numerics.lemke import lemke
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.results.modes import Mode


class ContactSolution(NamedTuple):
    """Modes that obey all laws (if ``solved``), and the number of pivots."""

    mode: Int[Array, " nt"]
    solved: Bool[Array, ""]
    pivots: Int[Array, ""]


def solve_contacts(problem: ContactProblem, *, needed: Bool[Array, ""] | bool = True):
    """Modes of all contacts by Lemke's method; see :class:`ContactSolution`.

    Friction elements that are not decided keep their sliding direction; unilateral contacts that
    do not touch are open.
    """
    p, _ = problem.in_units()
    nt, nf, nu, D = p.nt, p.nf, p.touching.shape[0], p.D
    mu_p, mu_n, cap_p, cap_n = p.mu_positive, p.mu_negative, p.cap_positive, p.cap_negative
    # lambda_T = a - ratio lambda_N - fixed
    slides = select(p.decided, 1.0, p.sliding)
    ratio = select(slides[nf:] > 0, mu_p, select(slides[nf:] < 0, -mu_n, 0.0))
    fixed = select(slides > 0, cap_p, select(slides < 0, -cap_n, 0.0))
    own = jnp.concatenate([jnp.zeros((nf, nu), D.dtype), jnp.eye(nu, dtype=D.dtype)])
    push = jnp.concatenate([-own * ratio[None, :], jnp.eye(nu, dtype=D.dtype)])
    gamma = p.gamma - matvec(D[:, :nt], fixed)
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
    M = select(active[:, None] & active[None, :], M, 0.0)
    q = jnp.concatenate([gamma[nt:], gamma[:nt], jnp.zeros_like(cap_p)])
    # Rows without a decision may be much larger than the others and must not set the scale.
    speed = jnp.max(jnp.abs(select(active, q, 0.0)), initial=0.0)
    speed = jnp.maximum(speed, jnp.finfo(D.dtype).tiny)
    q = q.at[nu + nt :].set(cap_p + cap_n) / speed
    result = lemke(M, select(active, q, 1.0), needed=needed)

    a, n = result.basic[nu : nu + nt], result.basic[nu + nt :]
    mode = select(a, select(n, Mode.SLIP_NEG, Mode.STICK), Mode.SLIP_POS)
    kept = select(p.sliding < 0, Mode.SLIP_NEG, Mode.SLIP_POS)
    mode = select(p.decided, mode, kept)
    closed = jnp.concatenate([jnp.ones((nf,), bool), result.basic[:nu]])
    mode = select(closed, mode, Mode.OPEN).astype(jnp.int32)
    return ContactSolution(mode, result.solved, result.pivots)
