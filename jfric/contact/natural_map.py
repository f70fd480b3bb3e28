"""The contact laws as equations of projection: one check of impulses, and the modes they imply.

Impulses ``P`` and relative velocities ``gamma = gamma_0 + D P`` obey the laws where they solve ::

    F(P) = P - proj(P - gamma) = 0
    normals       proj(x) = max(x, 0)
    one tangent   proj(x) = x clipped to the limits of friction
    a plane       proj(x) = the point of the disc nearest to x, of the radius c+

with the limits under the normal impulses ``max(P_N - gamma_N, 0)``. All functions here except
:func:`impulse_residual` and :func:`missed_velocities` need a problem in the units of
:meth:`jfric.contact.contact_problem.ContactProblem.in_units`.

Source: P. Alart, A. Curnier, A mixed formulation for frictional contact problems prone to Newton
like solution methods, Comput. Methods Appl. Mech. Engrg. 92 (1991).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.contact import rules
from jfric.contact.contact_problem import ContactProblem
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matvec
from jfric.results.modes import Mode


def natural_map(
    problem: ContactProblem, impulse: Float[Array, " m"], gamma: Float[Array, " m"]
) -> Float[Array, " m"]:
    """The map ``F`` of ``impulse`` with the relative velocities ``gamma`` that belong to it."""
    p, trial = problem, impulse - gamma
    tangent, normal = jnp.split(trial, [p.nt])
    normal = select(p.touching, jnp.maximum(normal, 0.0), 0.0)
    upper, lower = p.limits(normal)
    friction = jnp.clip(tangent, -upper, lower)
    if p.planes:
        squared = _squared(p, tangent)
        outside = squared > upper**2
        length = jnp.sqrt(select(outside, squared, 1.0))
        disc = select(outside, tangent * upper / length, tangent)
        friction = select(_alone(p), friction, disc)
    friction = select(p.decided, friction, p.kept_sliding(upper, lower))
    return impulse - jnp.concatenate([friction, normal])


def modes_of(
    problem: ContactProblem, impulse: Float[Array, " m"], gamma: Float[Array, " m"]
) -> Int[Array, " nt"]:
    """Modes (nt,) by the place of ``P - gamma``: inside the limits, beyond one of them, or open."""
    p, trial = problem, impulse - gamma
    tangent, normal = jnp.split(trial, [p.nt])
    upper, lower = p.limits(jnp.maximum(normal, 0.0))
    mode = rules.projected_mode(tangent, upper, lower)
    if p.planes:
        both = select(_squared(p, tangent) > upper**2, Mode.SLIP_POS, Mode.STICK)
        mode = select(_alone(p), mode, both)
    mode = select(p.decided, mode, rules.slip(p.sliding >= 0))
    closed = p.of_tangents(p.touching & (normal > 0.0), True)
    return select(closed, mode, Mode.OPEN).astype(jnp.int32)


def residual_in_units(problem: ContactProblem, impulse: Float[Array, " m"]) -> Float[Array, ""]:
    """Value of :func:`impulse_residual` for a problem that is in units."""
    p, change = problem, matvec(problem.D, impulse)
    defect = jnp.abs(natural_map(p, impulse, p.gamma + change))
    involved = jnp.concatenate([p.decided & p.of_tangents(p.touching, True), p.touching])
    speeds = select(involved, jnp.maximum(jnp.abs(p.gamma), jnp.abs(change)), 0.0)
    scale = jnp.maximum(jnp.max(speeds, initial=0.0), jnp.finfo(p.D.dtype).tiny)
    # NaN passes through the maxima; such a residual counts as infinite.
    worst = jnp.max(defect, initial=0.0) / scale
    return select(jnp.isnan(worst), jnp.inf, worst)


def impulse_residual(problem: ContactProblem, impulse: Float[Array, " m"]) -> Float[Array, ""]:
    """Violation of the laws by impulses of any method, relative; zero is exact.

    The largest entry of the natural map, as a relative velocity, is divided by the largest relative
    velocity without impulses or caused by them.
    """
    scaled, factor = problem.in_units()
    rows = impulse[problem.kept()] if problem.planes else impulse
    return residual_in_units(scaled, rows / factor)


def missed_velocities(
    problem: ContactProblem, impulse: Float[Array, " m"], gamma: Float[Array, " m"]
) -> Float[Array, " m"]:
    """The natural map of impulses and relative velocities ``gamma``, as velocities; zero in rows
    that carry nothing."""
    scaled, factor = problem.in_units()
    if problem.planes:
        impulse, gamma = impulse[problem.kept()], gamma[problem.kept()]
    return problem.full(natural_map(scaled, impulse / factor, gamma * factor) / factor)


def _alone(p: ContactProblem) -> np.ndarray:
    return p.partner == np.arange(p.nt)


def _squared(p: ContactProblem, tangent):
    """Squares of the friction in the plane of each tangent."""
    return tangent**2 + tangent[p.partner] ** 2
