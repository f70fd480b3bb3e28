"""Newton's method for the equations of harmonic balance, at a parameter or along a curve."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.periodic.harmonic_balance_equations import Setting, residual
from jfric.system.problem import Problem

#: Most Newton steps, and number of steps without progress that ends them.
STEPS, STUCK = 60, 6
#: Parts of a Newton step that are tried.
PARTS = tuple(0.5**i for i in range(8))
#: Relative residual of a solution, in units of rounding, and one that needs no further step.
TOLERANCE, ENOUGH = 2e5, 5e2
#: Relative size of directions that nothing determines (mean reactions of contacts that never
#: slide): these stay unchanged.
UNDETERMINED = 1e-10


class Place(NamedTuple):
    """Coefficients ``y`` (u,) and the value ``p`` of the parameter, or a direction of both."""

    y: Float[Array, " u"]
    p: Float[Array, ""]


class Corrected(NamedTuple):
    """A solution, if ``converged``, with the tangent of the curve there."""

    at: Place
    tangent: Place
    #: Largest of the relative residuals.
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    iterations: Int[Array, ""]


class Carry(NamedTuple):
    """State of Newton's method between two steps."""

    u: Float[Array, " w"]
    worst: Float[Array, ""]
    merit: Float[Array, ""]
    count: Int[Array, ""]
    stuck: Int[Array, ""]


def correct(
    problem: Problem, setting: Setting, start: Place, along: Place, unit: Place, level, steep
) -> Corrected:
    """The solution on the plane through ``start`` at right angles to ``along``.

    ``unit``: units of coefficients (u,) and parameter. With ``along`` in the direction of the
    parameter alone, the result is the solution at the parameter of ``start``. ``level``: number of
    harmonics used, the others are zero. ``steep``: see :func:`motion`.
    """
    split = start.y.shape[0]
    normal = jnp.append(along.y / unit.y**2, along.p / unit.p**2)
    origin = jnp.append(start.y, start.p)
    eps = float(jnp.finfo(start.y.dtype).eps)
    tolerance, enough = TOLERANCE * eps, ENOUGH * eps

    orders = np.r_[0, np.tile(np.arange(1, setting.harmonics + 1), 2)]
    part = jnp.asarray(np.repeat(orders, split // orders.size), jnp.int32) <= level

    def equations(u):
        found, scale = residual(problem, setting, u[:split], u[split], steep)
        return jnp.where(part, found / scale, u[:split])

    def jacobian(u):
        found = jax.jacfwd(equations)(u)
        scale = residual(problem, setting, u[:split], u[split], steep)[1]
        fixed = jnp.where(part, UNDETERMINED * _of_reactions(unit, scale), 0.0)
        return jnp.vstack([found, normal[None, :]]).at[:-1, :-1].add(jnp.diag(fixed))

    def measured(u):
        found = equations(u)
        size = jnp.max(jnp.abs(found))
        return jnp.where(jnp.isfinite(size), size, jnp.inf), jnp.sqrt(jnp.sum(found * found))

    def goes_on(c: Carry):
        patience = jnp.where(c.worst > tolerance, STUCK, 1)
        return (c.worst > enough) & (c.count < STEPS) & (c.stuck < patience)

    def step(c: Carry) -> Carry:
        left = jnp.append(equations(c.u), jnp.sum(normal * (c.u - origin)))
        move = jnp.linalg.solve(jacobian(c.u), left)
        parts = jnp.asarray(PARTS, c.u.dtype)
        tried = c.u[None, :] - parts[:, None] * move[None, :]
        return _best_of(tried, *jax.vmap(measured)(tried), c)

    first = Carry(origin, *measured(origin), jnp.asarray(0, jnp.int32), jnp.asarray(0, jnp.int32))
    # A start that solves the equations lies on the plane.
    end = jax.lax.while_loop(goes_on, step, first)
    matrix = jacobian(end.u)
    tangent = jnp.linalg.solve(matrix, jnp.zeros_like(end.u).at[-1].set(1.0))
    length = jnp.sqrt(jnp.sum((tangent / jnp.append(unit.y, unit.p)) ** 2))
    tangent = tangent / length
    ok = (end.worst <= tolerance) & jnp.all(jnp.isfinite(end.u))
    return Corrected(
        Place(end.u[:split], end.u[split]),
        Place(tangent[:split], tangent[split]),
        end.worst,
        ok,
        end.count,
    )


def _best_of(tried, worst, merit, before: Carry) -> Carry:
    """The best of the ``tried`` points, by their largest residuals and merits."""
    merit = jnp.where(jnp.isfinite(merit), merit, jnp.inf)
    best = jnp.argmin(merit)
    stuck = jnp.where(merit[best] < 0.9 * before.merit, 0, before.stuck + 1)
    return Carry(tried[best], worst[best], merit[best], before.count + 1, stuck)


def _of_reactions(unit: Place, scale):
    """Reciprocal scales of the equations of reactions, whose unit is infinite; zero for others."""
    return jnp.where(jnp.isinf(unit.y), 1.0 / scale, 0.0)


@eqx.filter_jit
def correct_many(
    problem: Problem, setting: Setting, starts: Place, along: Place, unit: Place, level, steep
) -> Corrected:
    """Solutions of :func:`correct` from many starts (b, u), side by side."""
    return jax.vmap(lambda start: correct(problem, setting, start, along, unit, level, steep))(
        starts
    )
