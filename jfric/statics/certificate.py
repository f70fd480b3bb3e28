"""Certificate of positions and reactions for the static problem, whoever computed them.

The certificate does not use modes: for each contact it measures the violation of every admissible
state, and the smallest counts. Forces are divided by the largest force, lengths by the largest
length.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.statics.static_mode_equations import split
from jfric.statics.static_problem import StaticProblem


def static_residual(problem: StaticProblem, x: Float[Array, " m"]) -> Float[Array, ""]:
    """Largest relative violation of equilibrium, contact and friction; zero for an exact state."""
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
