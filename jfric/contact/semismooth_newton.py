"""Semismooth Newton's method on the equations of projection (:mod:`jfric.contact.natural_map`).

Along lines these are piecewise linear: a step is the linear system of the modes in which the
argument of the projection lies, ``gamma = 0`` of sticking rows and closed normals and
``lambda_T = -+ c+-`` of sliding friction. A few steps suffice from good modes; from bad ones there
is no guarantee. In planes a step uses the generalised derivative, takes the best of several
lengths, and solves by least squares where reactions are redundant.

Source: P. Alart, A. Curnier, A mixed formulation for frictional contact problems prone to Newton
like solution methods, Comput. Methods Appl. Mech. Engrg. 92 (1991); V. Acary, M. Bremond, O. Huber,
On solving contact problems with Coulomb friction: formulations and numerical comparisons, in:
Advanced Topics in Nonsmooth Dynamics (2018).
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact.contact_problem import ContactProblem
from jfric.contact.natural_map import modes_of, natural_map, residual_in_units
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import ROTATED, UNROLLED_INVERSE, eliminate, inverse, matvec
from jfric.results.modes import Mode

#: Linear systems after which the method gives up.
STEPS = 30
#: Lengths of steps that are tried.
LENGTHS = 0.5 ** np.arange(8)
#: Least-squares steps: added to the squares of singular values, relative to their sum.
REGULAR = 1e-13


def semismooth_newton(
    problem: ContactProblem, start: Int[Array, " nt"], tolerance: float
) -> tuple[Int[Array, " nt"], Bool[Array, ""], Int[Array, ""]]:
    """Modes of a problem of lines in units, whether they obey the laws to ``tolerance``, and the
    number of steps from the modes ``start``."""

    def running(carry):
        _, done, steps, lost = carry
        return ~done & ~lost & (steps < STEPS)

    def body(carry):
        mode, _, steps, _ = carry
        impulse = impulses_in_mode(problem, mode)
        done = residual_in_units(problem, impulse) <= tolerance
        following = modes_of(problem, impulse, problem.gamma + matvec(problem.D, impulse))
        # Modes that leave the impulses undetermined tell nothing about the next ones.
        lost = ~jnp.all(jnp.isfinite(impulse))
        return select(done, mode, following), done, steps + 1, lost

    no = jnp.asarray(False)
    carry = (start.astype(jnp.int32), no, jnp.asarray(0, jnp.int32), no)
    return jax.lax.while_loop(running, body, carry)[:3]


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
    side = select(mode == Mode.SLIP_POS, 1.0, select(mode == Mode.SLIP_NEG, -1.0, 0.0))
    side = select(carries, select(p.decided, side, p.sliding), 0.0)
    fixed = select(side > 0, -p.cap_positive, select(side < 0, p.cap_negative, 0.0))
    own = side[nf:]
    ratio = select(own > 0, -p.mu_positive, select(own < 0, p.mu_negative, 0.0))
    # lambda = [fixed, 0] + S y: sliding friction follows its normal force.
    normal = p.D[:, nt:] + p.D[:, nf:nt] * ratio[None, :]
    system = jnp.concatenate([p.D[:, :nt], normal], axis=1)
    identity = jnp.eye(nt + nu, dtype=p.D.dtype)
    system = select(active[:, None] & active[None, :], system, identity)
    right = -(p.gamma + matvec(p.D[:, :nt], fixed))
    y = solve_linear(system, select(active, right, 0.0))
    tangential = y[:nt] + fixed
    tangential = tangential.at[nf:].add(ratio * y[nt:])
    return jnp.concatenate([tangential, y[nt:]])


def solve_linear(a: Float[Array, "m m"], b: Float[Array, " m"]) -> Float[Array, " m"]:
    """Solution ``a^-1 b``, written out for few rows, where library calls cost more than sums."""
    if a.shape[0] <= UNROLLED_INVERSE:
        return matvec(eliminate(a, 0.0).inverse, b)
    return jnp.linalg.solve(a, b)


def newton_step(equations: Callable[[Array], Array], x: Float[Array, " m"]) -> Float[Array, " m"]:
    """The best of several points along the direction of Newton's method from ``x``."""
    slope, defect = jax.jacfwd(lambda x: (equations(x),) * 2, has_aux=True)(x)
    step = least_squares(slope, defect)
    tried = x[None, :] - jnp.asarray(LENGTHS, x.dtype)[:, None] * step[None, :]
    defects = jax.vmap(lambda x: jnp.sum(equations(x) ** 2))(tried)
    return tried[jnp.argmin(select(jnp.isnan(defects), jnp.inf, defects))]


def least_squares(slope: Float[Array, "m m"], defect: Float[Array, " m"]) -> Float[Array, " m"]:
    """Solution ``slope^-1 defect``; that of least squares where there is no inverse."""
    # Calls of LAPACK fail in long programs on one processor (jaxlib 0.10.1).
    inverted = inverse if slope.shape[0] <= ROTATED else jnp.linalg.inv
    whole = inverted(slope)
    exact = whole @ defect
    square = slope.T @ slope
    size = REGULAR * jnp.trace(square) * jnp.eye(square.shape[0], dtype=square.dtype)
    nearly = inverted(square + size) @ (slope.T @ defect)
    regular = jnp.max(jnp.abs(whole)) < 1.0 / jnp.sqrt(jnp.finfo(slope.dtype).eps)
    return select(regular, exact, nearly)


def differentiable(problem: ContactProblem, found: Float[Array, " m"]) -> Float[Array, " m"]:
    """The impulses ``found`` with the derivatives of the solution (implicit function theorem), of
    a problem in units."""

    def missed(x):
        return natural_map(problem, x, problem.gamma + matvec(problem.D, x))

    def tangent_solve(linear, y):
        return least_squares(jax.jacfwd(linear)(jnp.zeros_like(y)), y)

    return jax.lax.custom_root(missed, found, lambda _, x: x, tangent_solve)
