"""Equations of the static problem in given modes, and the inequalities that keep these modes.

With ``x = (q, lambda_T, lambda_N)``, every mode is a linear system ``A x = b``::

    all     K q - W_T^T lambda_T - W_N^T lambda_N = f
    stick   W_T q = s_0               slip    lambda_T = -s (cap + mu lambda_N)
    closed  W_N q = -gap              open    lambda_N = lambda_T = 0

and is accepted where ``margins = G x + h >= 0``::

    stick   c+ + lambda_T,  c- - lambda_T,  lambda_N        slip  s (W_T q - s_0),  lambda_N
    open    gap + W_N q                                     closed without friction  lambda_N
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.results.modes import Mode
from jfric.statics.static_problem import StaticProblem


class ModeEquations(NamedTuple):
    """``A x = b`` and ``margins = G x + h``; ``used`` marks the margins that the modes have.

    Margins come in three rows of ``nt``: the first, second and third of each contact.
    """

    A: Float[Array, "m m"]
    b: Float[Array, " m"]
    G: Float[Array, "g m"]
    h: Float[Array, " g"]
    used: Bool[Array, " g"]


def mode_equations(problem: StaticProblem, mode: Int[Array, " nt"]) -> ModeEquations:
    """Equations and inequalities of the modes ``mode``."""
    p, dtype = problem, problem.K.dtype
    n, nt, nu = p.K.shape[0], p.W_T.shape[0], p.W_N.shape[0]
    nf = nt - nu
    stick, is_open = mode == Mode.STICK, mode == Mode.OPEN
    side = side_of(mode)
    negative = side < 0
    cap = jnp.where(negative, p.cap_kinetic[1], p.cap_kinetic[0])
    mu = jnp.where(negative, p.mu_kinetic[1], p.mu_kinetic[0])
    eye_t, eye_n = jnp.eye(nt, dtype=dtype), jnp.eye(nu, dtype=dtype)
    own = jnp.concatenate([jnp.zeros((nf, nu), dtype), eye_n])
    # Each block is for all contacts and has zero rows for those that are in another mode.
    tangent = jnp.concatenate([p.W_T, jnp.zeros((nt, nt + nu), dtype)], axis=1)
    normal = jnp.concatenate([p.W_N, jnp.zeros((nu, nt + nu), dtype)], axis=1)
    friction = jnp.concatenate([jnp.zeros((nt, n), dtype), eye_t, 0.0 * own], axis=1)
    own_force = jnp.concatenate([jnp.zeros((nt, n + nt), dtype), own], axis=1)
    force = own_force[nf:]
    opened = is_open[nf:]
    A = jnp.concatenate(
        [
            jnp.concatenate([p.K, -p.W_T.T, -p.W_N.T], axis=1),
            jnp.where(stick[:, None], tangent, friction + (side * mu)[:, None] * own_force),
            jnp.where(opened[:, None], force, normal),
        ]
    )
    b = jnp.concatenate(
        [p.f, jnp.where(stick, p.slip0, -side * cap), jnp.where(opened, 0.0, -p.gap0)]
    )

    unilateral = jnp.asarray(p.unilateral, bool)
    slides = side != 0
    glued = stick[:, None]
    gap_rows = jnp.concatenate([jnp.zeros((nf, n + nt + nu), dtype), normal])
    gap = jnp.concatenate([jnp.zeros((nf,), dtype), p.gap0])
    upper, lower = p.mu_static[0][:, None] * own_force, p.mu_static[1][:, None] * own_force
    first = jnp.where(glued, upper + friction, side[:, None] * tangent)
    first = jnp.where(is_open[:, None], gap_rows, first)
    h_first = jnp.where(stick, p.cap_static[0], jnp.where(is_open, gap, -side * p.slip0))
    second = jnp.where(glued, lower - friction, own_force)
    h_second = jnp.where(stick, p.cap_static[1], 0.0)
    closed = unilateral & ~is_open
    used = jnp.concatenate([stick | slides | is_open, stick | closed, stick & unilateral])
    G = jnp.concatenate([first, second, own_force])
    h = jnp.concatenate([h_first, h_second, jnp.zeros((nt,), dtype)])
    return ModeEquations(
        A, b, jnp.where(used[:, None], G, 0.0), jnp.where(used, h, 1.0), jax.lax.stop_gradient(used)
    )


def side_of(mode: Int[Array, " nt"]) -> Float[Array, " nt"]:
    """Side to which each contact slides: +1, -1, or 0."""
    zero = jnp.zeros(mode.shape)
    return jnp.where(mode == Mode.SLIP_POS, 1.0, jnp.where(mode == Mode.SLIP_NEG, -1.0, zero))


def split(problem: StaticProblem, x: Float[Array, " m"]):
    """``(q, lambda_T, lambda_N)`` of the unknowns ``x``."""
    n, nt = problem.K.shape[0], problem.W_T.shape[0]
    return x[:n], x[n : n + nt], x[n + nt :]


def static_residual(problem: StaticProblem, x: Float[Array, " m"]) -> Float[Array, ""]:
    """Largest relative violation of equilibrium, contact and friction; zero for an exact state.

    A certificate, whoever computed ``x``, which does not use modes: for each contact the violation
    of every admissible state is measured, and the smallest counts. Forces are divided by the
    largest force, lengths by the largest length.
    """
    p, nf = problem, problem.n_friction
    q, lambda_t, lambda_n = split(p, x)
    push = p.W_T.T @ lambda_t + p.W_N.T @ lambda_n
    force = _largest(p.f, jnp.abs(p.K) @ jnp.abs(q), lambda_t, lambda_n)
    # If nothing moves, rounding errors are no lengths: use the load over the largest stiffness.
    stiffest = jnp.max(jnp.abs(p.K), initial=0.0)
    least = jnp.where(stiffest > 0, force / jnp.where(stiffest > 0, stiffest, 1.0), 0.0)
    length = _largest(q, p.gap0, p.slip0, p.q0, least[None])
    unbalanced = jnp.max(jnp.abs(p.K @ q - p.f - push), initial=0.0) / force
    normal = p.own_normal(lambda_n)
    slip = (p.W_T @ q - p.slip0) / length
    static = p.cap_static + p.mu_static * normal
    kinetic = p.cap_kinetic + p.mu_kinetic * normal
    outside = jnp.maximum(-lambda_t - static[0], lambda_t - static[1])
    stick = jnp.maximum(jnp.abs(slip), jnp.maximum(outside, 0.0) / force)
    positive = jnp.maximum(jnp.maximum(-slip, 0.0), jnp.abs(lambda_t + kinetic[0]) / force)
    negative = jnp.maximum(jnp.maximum(slip, 0.0), jnp.abs(lambda_t - kinetic[1]) / force)
    law = jnp.minimum(stick, jnp.minimum(positive, negative))
    law = jnp.where(p.frictionless, jnp.abs(lambda_t) / force, law)
    gap = (p.gap0 + p.W_N @ q) / length
    pulls = jnp.maximum(-lambda_n, 0.0) / force
    closed = jnp.maximum(law[nf:], jnp.maximum(jnp.abs(gap), pulls))
    carried = jnp.maximum(jnp.abs(lambda_n), jnp.abs(lambda_t[nf:])) / force
    apart = jnp.maximum(jnp.maximum(-gap, 0.0), carried)
    violation = jnp.concatenate([law[:nf], jnp.minimum(closed, apart)])
    return jnp.maximum(unbalanced, jnp.max(violation, initial=0.0))


def _largest(*parts):
    size = jnp.max(jnp.concatenate([jnp.abs(part) for part in parts]), initial=0.0)
    return jnp.where(size > 0, size, 1.0)
