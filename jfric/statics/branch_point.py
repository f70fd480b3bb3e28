"""A point of a branch: the state in given modes at a value of the parameter, and its derivative.

In one combination of modes ``A(p) x = b(p)`` and ``margins = G(p) x + h(p)``, hence::

    A dx/dp = db/dp - dA/dp x
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.statics.static_mode_equations import mode_equations
from jfric.statics.static_problem import static_problem
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem


class BranchPoint(NamedTuple):
    """Unknowns ``x = (q, lambda_T, lambda_N)`` with their derivative, and margins with theirs.

    ``size`` and ``margin_size``: magnitudes of the terms of unknowns and margins. ``turn``: sign of
    the determinant of ``A``. ``A`` and ``r = dA/dp x - db/dp``: the tangent ``(x', p')`` of the
    branch satisfies ``A x' + r p' = 0``.
    """

    p: Float[Array, ""]
    mode: Int[Array, " nt"]
    x: Float[Array, " m"]
    dx: Float[Array, " m"]
    size: Float[Array, " m"]
    margin: Float[Array, " g"]
    rate: Float[Array, " g"]
    margin_size: Float[Array, " g"]
    used: Bool[Array, " g"]
    turn: Float[Array, ""]


def branch_point(problem: Problem, path: str, p, mode, t) -> BranchPoint:
    """The point in the modes ``mode`` at ``p``; not finite if they leave the state undetermined."""
    equations, slopes = _equations(problem, path, p, mode, t)
    A, b = equations.A, equations.b
    inverse = jnp.linalg.inv(A)
    x = inverse @ b
    x = x + inverse @ (b - A @ x)
    dx = inverse @ (slopes.b - slopes.A @ x)
    G, h = equations.G, equations.h
    size = jnp.maximum(jnp.abs(inverse) @ jnp.abs(b), jnp.abs(x))
    # If nothing moves, rounding errors are no lengths: use the forces over the largest stiffness.
    n = len(problem.axes)
    stiffest = jnp.max(jnp.abs(A[:n, :n]))
    least = jnp.max(size[n:], initial=0.0) / jnp.where(stiffest > 0, stiffest, jnp.inf)
    size = size.at[:n].set(jnp.maximum(size[:n], least))
    return BranchPoint(
        p=jnp.asarray(p, A.dtype),
        mode=mode,
        x=x,
        dx=dx,
        size=size,
        margin=jnp.where(equations.used, G @ x + h, 1.0),
        rate=G @ dx + slopes.G @ x + slopes.h,
        margin_size=jnp.abs(G) @ size + jnp.abs(h),
        used=equations.used,
        turn=jnp.linalg.slogdet(A)[0],
    )


class Linearised(NamedTuple):
    """``A x' + r p' = 0`` at a state ``x``, with margins and their derivatives in x and p."""

    A: Float[Array, "m m"]
    r: Float[Array, " m"]
    defect: Float[Array, " m"]
    G: Float[Array, "g m"]
    margin: Float[Array, " g"]
    drift: Float[Array, " g"]
    used: Bool[Array, " g"]


def linearised(problem: Problem, path: str, p, mode, x, t) -> Linearised:
    """The equations of the modes ``mode`` around the state ``x`` at ``p``."""
    equations, slopes = _equations(problem, path, p, mode, t)
    return Linearised(
        A=equations.A,
        r=slopes.A @ x - slopes.b,
        defect=equations.A @ x - equations.b,
        G=equations.G,
        margin=equations.G @ x + equations.h,
        drift=slopes.G @ x + slopes.h,
        used=equations.used,
    )


def _equations(problem: Problem, path: str, p, mode, t):
    def at(p):
        equations = mode_equations(static_problem(set_parameters(problem, {path: p}), t), mode)
        return equations._replace(used=jnp.zeros(())), equations.used

    p = jnp.asarray(p, jnp.result_type(float))
    equations, slopes, used = jax.jvp(at, (p,), (jnp.ones_like(p),), has_aux=True)
    return equations._replace(used=used), slopes
