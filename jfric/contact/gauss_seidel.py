"""Projected Gauss-Seidel: contacts are solved one by one, with the impulses of all others held.

The method is simple, needs little memory and never fails badly, but converges linearly, and slowly
where contacts are strongly coupled. The impulse of a contact with friction in a plane is exact
except for the direction in which it slides.

Source: M. Jean, The non-smooth contact dynamics method, Comput. Methods Appl. Mech. Engrg. 177
(1999).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.contact import rules
from jfric.contact.contact_problem import ContactProblem
from jfric.contact.natural_map import residual_in_units
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import diagonal_of, inverse, matvec

#: Sweeps over all contacts after which the method gives up.
SWEEPS = 2000


def gauss_seidel(
    problem: ContactProblem, tolerance: float
) -> tuple[Float[Array, " m"], Int[Array, ""]]:
    """Impulses (m,) of a problem in units that meet ``tolerance``, and the number of sweeps."""

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
    own, planes = p.own, np.asarray(p.planes, int).reshape(-1, 2)
    lines = np.setdiff1d(np.arange(nt), planes)
    groups = [(lines, _along_a_line)]
    for here, rows in ((planes[:, 0] < nf, planes), (planes[:, 0] >= nf, _rows(nt, own, planes))):
        groups.append((rows[here], _in_plane))
    for rows, of_one in groups:
        if rows.shape[0]:
            at = jnp.asarray(rows)
            impulse = jax.lax.fori_loop(
                0, rows.shape[0], lambda k, x, at=at, of_one=of_one: of_one(p, at[k], x), impulse
            )
    return impulse


def _rows(nt: int, own, planes) -> np.ndarray:
    """Rows (p, 3) of both tangents and the normal of each plane."""
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


def _in_plane(p: ContactProblem, at, x):
    """Impulses after the contact in the rows ``at`` (both tangents; for a unilateral contact the
    normal, too) is solved. If it slides, its normal impulse uses the latest ratio of friction."""
    own, block, ones = x[at], p.D[at][:, at], jnp.ones((2,), x.dtype)
    free = p.gamma[at] + p.D[at] @ x - block @ own
    rubs, limit = p.decided[at[0]], p.cap_positive[at[0]]
    if at.shape[0] == 2:
        held = rules.holding_friction(block, free, ones, select(rubs, limit, 0.0))
        return x.at[at].set(held)
    mu, normal = p.mu_positive[at[0] - p.nf], block[2, 2]
    ratio = own[:2] / select(own[2] > 0, own[2], 1.0)
    given = normal + jnp.sum(block[2, :2] * ratio)
    pressed = jnp.maximum(-free[2] / select(given > 0, given, normal), 0.0)
    pushed = free[:2] + block[:2, 2] * pressed
    sliding = select(rubs, limit + mu * pressed, 0.0)
    slid = jnp.append(rules.holding_friction(block[:2, :2], pushed, ones, sliding), pressed)
    holding = -matvec(inverse(block), free)
    most = limit + mu * holding[2]
    sticks = rubs & (holding[2] >= 0) & (jnp.sum(holding[:2] ** 2) <= most * most)
    carries = p.touching[at[2] - p.nt] & (normal > 0) & (free[2] < 0)
    return x.at[at].set(select(carries, select(sticks, holding, slid), 0.0))
