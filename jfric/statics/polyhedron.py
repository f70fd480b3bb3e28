"""A convex polyhedron of states of rest: its extent, and the margin of its inequalities."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.numerics.elimination import General
from jfric.numerics.linear_program import maximise

#: Rounding error of a margin, relative to its terms.
ROUNDING = 1e-13


class Polyhedron(NamedTuple):
    """``x = origin + N z`` with ``A z + b >= 0``; empty unless ``consistent``. ``size``: magnitude
    of the terms of ``b``; ``used`` marks the existing inequalities."""

    origin: Float[Array, " m"]
    N: Float[Array, "m m"]
    A: Float[Array, "g m"]
    b: Float[Array, " g"]
    size: Float[Array, " g"]
    used: Bool[Array, " g"]
    consistent: Bool[Array, ""]


def polyhedron_of(found: General, G, h, used) -> Polyhedron:
    """The solutions ``found`` of linear equations for which ``G x + h >= 0`` where ``used``."""
    return Polyhedron(
        origin=found.x,
        N=found.null,
        A=G @ found.null,
        b=G @ found.x + h,
        size=jnp.abs(G) @ found.size + jnp.abs(h),
        used=used,
        consistent=found.consistent,
    )


def extent(p: Polyhedron):
    """Lower and upper bounds of all unknowns, and whether the polyhedron has a point at all."""
    zero = jnp.zeros((p.N.shape[1],), p.N.dtype)
    # Differences below the rounding error of their terms are zero: a set may be a point.
    p = p._replace(b=jnp.where(jnp.abs(p.b) <= ROUNDING * p.size, 0.0, p.b))
    _, feasible = maximise(zero, p.A, p.b)
    exists = feasible & p.consistent

    def bound(direction):
        z, bounded = maximise(direction, p.A, p.b)
        # A coordinate that no free unknown moves has one value.
        fixed = jnp.all(direction == 0.0)
        return jnp.where(fixed, 0.0, jnp.where(bounded, direction @ z, jnp.inf))

    highest = p.origin + jax.vmap(bound)(p.N)
    lowest = p.origin - jax.vmap(bound)(-p.N)
    return (
        jnp.where(exists, lowest, jnp.nan),
        jnp.where(exists, highest, jnp.nan),
        exists,
    )


def margin(p: Polyhedron):
    """The margin ``s <= 1``, as a part of the terms of each inequality, and a state with this
    margin; NaN if the equations contradict each other."""
    steepest = jnp.max(jnp.abs(p.A), axis=1, initial=0.0)
    weight = jax.lax.stop_gradient(jnp.where(p.size > 0, p.size, steepest))
    last = jnp.zeros((1, p.A.shape[1]), p.A.dtype)
    A = jnp.block([[p.A, -jnp.where(p.used, weight, 0.0)[:, None]], [last, -jnp.ones((1, 1))]])
    aim = jnp.zeros((A.shape[1],), A.dtype).at[-1].set(1.0)
    z, solved = maximise(aim, A, jnp.concatenate([p.b, jnp.ones((1,), p.b.dtype)]))
    return jnp.where(solved & p.consistent, z[-1], jnp.nan), p.origin + p.N @ z[:-1]
