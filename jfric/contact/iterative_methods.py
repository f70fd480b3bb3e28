"""Contact problems by iteration: projected Gauss-Seidel sweeps and semismooth Newton steps."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.contact_problem import ContactProblem, modes_of, natural_map, residual_in_units
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import (
    ROTATED,
    UNROLLED_INVERSE,
    diagonal_of,
    eliminate,
    inverse,
    matvec,
)
from jfric.results.modes import Mode

#: Sweeps over all contacts after which the method gives up.
SWEEPS = 2000


def gauss_seidel(
    problem: ContactProblem, tolerance: float
) -> tuple[Float[Array, " m"], Int[Array, ""]]:
    """Impulses (m,) of a problem in units that meet ``tolerance``, and the number of sweeps.

    Contacts are solved one by one, with the impulses of all others held. The method is simple,
    needs little memory and never fails badly, but converges linearly, and slowly where contacts are
    strongly coupled. The impulse of a contact with friction in a plane is exact except for the
    direction in which it slides. Source: M. Jean, The non-smooth contact dynamics method, Comput.
    Methods Appl. Mech. Engrg. 177 (1999).
    """

    def running(carry):
        impulse, sweeps = carry
        return (residual_in_units(problem, impulse) > tolerance) & (sweeps < SWEEPS)

    def once(carry):
        impulse, sweeps = carry
        return sweep(problem, impulse), sweeps + 1

    start = (jnp.zeros_like(problem.gamma), jnp.asarray(0, jnp.int32))
    return jax.lax.while_loop(running, once, start)


def sweep(problem: ContactProblem, impulse: Float[Array, " m"]) -> Float[Array, " m"]:
    """Impulses (m,) after one sweep over friction along lines, then over friction in planes."""
    p, nt, nf = problem, problem.nt, problem.nf
    lines = np.setdiff1d(np.arange(nt), [row for own in p.planes for row in own])
    groups: list[tuple[np.ndarray, Callable]] = [(lines, _along_a_line)]
    for count in (2, 3):
        planes = np.asarray([own for own in p.planes if len(own) == count], int)
        planes = planes.reshape(-1, count)
        given, others = planes[planes[:, 0] < nf], planes[planes[:, 0] >= nf]
        groups += [(given, _with_limit), (_rows(nt, p.own, others), _in_plane)]
    for rows, of_one in groups:
        if rows.shape[0]:
            at = jnp.asarray(rows)
            impulse = jax.lax.fori_loop(
                0, rows.shape[0], lambda k, x, at=at, of_one=of_one: of_one(p, at[k], x), impulse
            )
    return impulse


def _rows(nt: int, own, planes) -> np.ndarray:
    """Rows of the tangents and the normal of each plane."""
    return np.concatenate([planes, nt + own[planes[:, :1]]], axis=1)


def _along_a_line(p: ContactProblem, at, x):
    i, nf, nn = at, p.nf, p.touching.shape[0]
    diagonal = diagonal_of(p.D)
    diagonal = select(diagonal > 0, diagonal, 1.0)

    def relaxed(x, row):
        return x[row] - (p.gamma[row] + p.D[row] @ x) / diagonal[row]

    upper, lower = p.cap_positive[i], p.cap_negative[i]
    if nn:
        own = jnp.asarray(p.own)[i]
        n, carries, c = jnp.minimum(own, nn - 1), own < nn, jnp.maximum(i - nf, 0)
        row = p.nt + n
        press = select(p.touching[n], jnp.maximum(relaxed(x, row), 0.0), 0.0)
        press = select(carries, press, x[row])
        x = x.at[row].set(press)
        upper = upper + select(carries, p.mu_positive[c] * press, 0.0)
        lower = lower + select(carries, p.mu_negative[c] * press, 0.0)
    side = p.sliding[i]
    kept = select(side > 0, -upper, select(side < 0, lower, 0.0))
    friction = jnp.clip(relaxed(x, i), -upper, lower)
    return x.at[i].set(select(p.decided[i], friction, kept))


def _held(block, free, limit):
    """Friction of a plane, of two tangents or of a disc, that holds best."""
    if free.shape[0] > 2:
        return rules.disc_holding(block, free, limit, 0.0).friction
    return rules.holding_friction(block, free, jnp.ones((2,), free.dtype), limit)


def _size(friction):
    """The limit that friction in a plane needs."""
    if friction.shape[0] > 2:
        return rules.disc_gauge(friction).size
    return jnp.sqrt(jnp.sum(friction**2))


def _free(p: ContactProblem, at, x):
    """Own impulses of the rows ``at``, their velocities without these, and the matrix of both."""
    own, block = x[at], p.D[at][:, at]
    return own, p.gamma[at] + p.D[at] @ x - block @ own, block


def _with_limit(p: ContactProblem, at, x):
    """Impulses after the friction in the tangents ``at``, which has a given limit, is solved."""
    _, free, block = _free(p, at, x)
    limit = select(p.decided[at[0]], p.cap_positive[at[0]], 0.0)
    return x.at[at].set(_held(block, free, limit))


def _in_plane(p: ContactProblem, at, x):
    """Impulses after the contact in the rows ``at``, tangents and a normal, is solved. If it
    slides, its normal impulse uses the latest ratio of friction."""
    own, free, block = _free(p, at, x)
    rubs, limit = p.decided[at[0]], p.cap_positive[at[0]]
    mu, normal = p.mu_positive[at[0] - p.nf], block[-1, -1]
    ratio = own[:-1] / select(own[-1] > 0, own[-1], 1.0)
    given = normal + jnp.sum(block[-1, :-1] * ratio)
    pressed = jnp.maximum(-free[-1] / select(given > 0, given, normal), 0.0)
    pushed = free[:-1] + block[:-1, -1] * pressed
    sliding = select(rubs, limit + mu * pressed, 0.0)
    slid = jnp.append(_held(block[:-1, :-1], pushed, sliding), pressed)
    holding = -matvec(inverse(block), free)
    most = limit + mu * holding[-1]
    sticks = rubs & (holding[-1] >= 0) & (_size(holding[:-1]) <= most)
    carries = p.touching[at[-1] - p.nt] & (normal > 0) & (free[-1] < 0)
    return x.at[at].set(select(carries, select(sticks, holding, slid), 0.0))


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
    number of steps from the modes ``start``.

    The equations of projection (:func:`jfric.contact.contact_problem.natural_map`) are piecewise
    linear: a step is the linear system of the modes in which the argument of the projection lies,
    ``gamma = 0`` of sticking rows and closed normals and ``lambda_T = -+ c+-`` of sliding friction.
    A few steps suffice from good modes; from bad ones there is no guarantee. Source: P. Alart, A.
    Curnier, A mixed formulation for frictional contact problems prone to Newton like solution
    methods, Comput. Methods Appl. Mech. Engrg. 92 (1991).
    """

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
    """The best of several points along the direction of Newton's method from ``x``, by the
    generalised derivative of ``equations`` and, where reactions are redundant, least squares.

    Source: V. Acary, M. Bremond, O. Huber, On solving contact problems with Coulomb friction:
    formulations and numerical comparisons, in: Advanced Topics in Nonsmooth Dynamics (2018).
    """
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
