"""Violation of the laws of contact and friction by motions: one check for all solvers.

The check uses positions, velocities and forces only, not the modes that a solver reports. For each
contact the violation of every admissible state is measured and the smallest counts::

    open     lambda_N = lambda_T = 0,  g_N >= 0
    stick    g_N = 0, lambda_N >= 0,  gamma_T = 0,  -mu_s(+) N <= lambda_T <= mu_s(-) N
    slip     g_N = 0, lambda_N >= 0,  s gamma_T >= 0,  lambda_T = -s mu_d(s) N

(friction with a given normal force has no open state and no gap; in a plane both components obey
the laws of :mod:`jfric.contact.rules.planes` together). Forces, velocities and lengths
are divided by the largest of their kind in the motion.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.contact import rules
from jfric.numerics.choice import select
from jfric.results.solution import Solution
from jfric.system.assembly import assemble
from jfric.system.forces import applied_force, normal_forces_at
from jfric.system.laws import AbstractLaw
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem


def contact_residual(problem: Problem, solution: Solution) -> Float[Array, "m nt"]:
    """Violation of the contact laws at each output and contact, relative; zero is exact.

    ``solution``: a motion of ``problem`` by any solver. :mod:`jfric.contact.residual` defines the
    violation. Returns an array (m, nt) of outputs and contacts::

        >>> solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 4.0, 5))
        >>> bool(jfric.contact_residual(problem, solution).max() < 1e-12)
        True
    """
    mechanics = assemble(problem)
    if mechanics.n_contacts == 0:
        return jnp.zeros((solution.ts.shape[0], 0))
    s = solution
    normal = jax.vmap(lambda *state: _normal_forces(mechanics, *state))(
        s.ts, s.q, s.v, s.lambda_t, s.lambda_n, s.segment, s.z
    )
    scales = _scales(mechanics, solution, normal)

    def one(t, q, v, lambda_t, lambda_n, normal, z):
        q, v = mechanics.complete(q, v, z)
        return _violation(mechanics, scales, t, q, v, lambda_t, lambda_n, normal)

    return jax.vmap(one)(s.ts, s.q, s.v, s.lambda_t, s.lambda_n, normal, s.z)


def motion_residual(problem: Problem, solution: Solution) -> Float[Array, "m n"]:
    """Relative defect of the equation of motion at each output.

    The equation is ``M dv/dt = f + W_N^T lambda_N + R_T^T lambda_T + J^T lambda_J``, with the
    reactions ``lambda_J`` of joints. Returns for a ``solution`` of ``problem`` an array (m, n) of
    outputs and degrees of freedom, relative to the largest inertia force or reaction of the motion.
    Piecewise-linear elements act in the segments of the solution. Zero up to rounding::

        >>> solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 4.0, 5))
        >>> bool(jfric.motion_residual(problem, solution).max() < 1e-12)
        True
    """
    mechanics = assemble(problem)

    def terms(t, q, v, a, lambda_t, lambda_n, segment, z):
        q, v = mechanics.complete(q, v, z)
        a = jnp.pad(a, (0, mechanics.n_states))
        f = applied_force(mechanics, t, q, v, segment, z)
        here = mechanics.at(t, q, v)
        reaction = here.R_T.T @ lambda_t + here.W_N.T @ lambda_n
        # Reactions that balance each other leave rounding errors of their own size.
        carried = jnp.abs(here.R_T.T) @ jnp.abs(lambda_t)
        carried = carried + jnp.abs(here.W_N.T) @ jnp.abs(lambda_n)
        if here.tied is not None:
            joint = here.tied.reactions(f + reaction)
            reaction = reaction + here.tied.J.T @ joint
            carried = carried + jnp.abs(here.tied.J.T) @ jnp.abs(joint)
        inertia = here.M @ a
        return inertia - f - reaction, jnp.abs(inertia) + jnp.abs(f) + carried

    defect, size = jax.vmap(terms)(
        solution.ts,
        solution.q,
        solution.v,
        solution.a,
        solution.lambda_t,
        solution.lambda_n,
        solution.segment,
        solution.z,
    )
    # Rates of states are no accelerations.
    defect, size = (x[:, : mechanics.n_dofs] for x in (defect, size))
    return jnp.abs(defect) / jnp.maximum(jnp.max(size), jnp.finfo(size.dtype).tiny)


def _normal_forces(mechanics: Mechanics, t, q, v, lambda_t, lambda_n, segment, z):
    """Normal forces of all contacts; for pins the limit of the torque without its coefficient."""
    q, v = mechanics.complete(q, v, z)
    normal = jnp.concatenate([normal_forces_at(mechanics, t, q, v, segment), lambda_n])
    if mechanics.pins is None:
        return normal
    here = mechanics.at(t, q, v)
    assert here.tied is not None
    f = applied_force(here, t, q, v, segment, z) + here.R_T.T @ lambda_t + here.W_N.T @ lambda_n
    limits = rules.pin_limits(mechanics.pins.of(here.tied.reactions(f)), mechanics.pins.radius)
    return normal.at[mechanics.pins.at].set(limits)


def _scales(mechanics: Mechanics, solution: Solution, normal):
    tiny = jnp.finfo(solution.q.dtype).tiny

    def largest(x):
        return jnp.maximum(jnp.max(jnp.abs(x), initial=0.0), tiny)

    q, v = jax.vmap(mechanics.complete)(solution.q, solution.v, solution.z)
    gamma = jax.vmap(mechanics.sliding_at)(solution.ts, q, v)
    force = jnp.maximum(largest(solution.lambda_t), largest(normal))
    speed = jnp.maximum(largest(gamma), largest(solution.v))
    return force, speed, largest(solution.q)


def _of_plane(mechanics: Mechanics, rows, normal, gamma, friction):
    """Excess of friction in a plane over its limit, and its distance from sliding friction [N]."""
    laws = [mechanics.laws[row] for row in rows]
    if len(rows) > 2:
        return _of_disc(laws[0], normal, gamma, friction)
    fast = jnp.sqrt(jnp.sum(gamma * gamma))
    static = jnp.stack([jnp.asarray(law.static()[0], gamma.dtype) for law in laws])
    kinetic = jnp.stack([jnp.asarray(law.kinetic(fast)[0], gamma.dtype) for law in laws])
    r = select(static[0] == static[1], 1.0, static[1] / static[0])
    carried = jnp.sqrt(friction[0] ** 2 + (friction[1] / r) ** 2)
    outside = jnp.maximum(carried - static[0] * normal, 0.0)
    slides = jnp.max(jnp.abs(friction + rules.kinetic_ratio(kinetic, gamma) * normal))
    return outside, select(fast > 0, slides, jnp.inf)


def _of_disc(law: AbstractLaw, normal, gamma, friction):
    """Excess of a disc's friction over its limit, and its distance from sliding friction [N]."""
    mu = jnp.asarray(law.static()[0], gamma.dtype)
    limits = rules.Disc(mu, law.spins_within)
    found = friction / limits.lengths
    outside = jnp.maximum(rules.disc_gauge(found).size - mu * normal, 0.0)
    slides = jnp.max(jnp.abs(found + limits.kinetic(gamma) / limits.lengths * normal))
    return outside, select(jnp.any(gamma != 0.0), slides, jnp.inf)


def _violation(mechanics: Mechanics, scales, t, q, v, lambda_t, lambda_n, normal):
    force, speed, length = scales
    nf = mechanics.n_friction
    gamma = mechanics.sliding_at(t, q, v) / speed
    static = [law.static() for law in mechanics.laws]
    kinetic = [
        law.kinetic(jnp.abs(g * speed)) for law, g in zip(mechanics.laws, gamma, strict=True)
    ]
    s_pos, s_neg, d_pos, d_neg = (
        jnp.stack([pair[i] for pair in pairs]) for pairs in (static, kinetic) for i in (0, 1)
    )
    outside = jnp.maximum(-lambda_t - s_pos * normal, lambda_t - s_neg * normal)
    stick = jnp.maximum(jnp.abs(gamma), jnp.maximum(outside, 0.0) / force)
    positive = jnp.maximum(jnp.maximum(-gamma, 0.0), jnp.abs(lambda_t + d_pos * normal) / force)
    negative = jnp.maximum(jnp.maximum(gamma, 0.0), jnp.abs(lambda_t - d_neg * normal) / force)
    closed = jnp.minimum(stick, jnp.minimum(positive, negative))
    for rows in map(np.asarray, mechanics.planes):
        i = rows[0]
        both = _of_plane(mechanics, rows, normal[i], gamma[rows] * speed, lambda_t[rows])
        found = jnp.minimum(
            jnp.maximum(jnp.max(jnp.abs(gamma[rows])), both[0] / force), both[1] / force
        )
        closed = closed.at[rows].set(found)
    gap = mechanics.gaps(t, q) / length
    pulls = jnp.maximum(-lambda_n, 0.0) / force
    touching = jnp.maximum(closed[nf:], jnp.maximum(jnp.abs(gap), pulls))
    apart = jnp.maximum(
        jnp.maximum(-gap, 0.0), jnp.maximum(jnp.abs(lambda_n), jnp.abs(lambda_t[nf:])) / force
    )
    return jnp.concatenate([closed[:nf], jnp.minimum(touching, apart)])
