"""One combination of modes as a candidate: its solution, or its line of solutions, and whether the
inequalities accept it."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.elimination import solve_general
from jfric.statics.static_problem import StaticProblem, mode_equations, static_residual

#: Size, as a part of the terms of a margin, below which the margin is zero.
ON_EDGE = 1e-12
#: Distance, as a part of the largest value, below which solutions are the same.
SAME = 1e-10


class Candidate(NamedTuple):
    """Solutions ``x`` to ``x_to`` in one combination of modes; equal for a unique solution.

    ``accepted``: the inequalities hold. ``continuum``: ``x`` and ``x_to`` are the ends of a
    segment of solutions, infinite where it has no end. ``boundary``: some margin is zero.
    ``unresolved``: a family with more than one parameter, which is not decided here. ``near_to`` is
    ``x_to`` with a finite stand-in for infinite ends.
    """

    x: Float[Array, " m"]
    x_to: Float[Array, " m"]
    near: Float[Array, " m"]
    near_to: Float[Array, " m"]
    size: Float[Array, " m"]
    accepted: Bool[Array, ""]
    continuum: Bool[Array, ""]
    boundary: Bool[Array, ""]
    unresolved: Bool[Array, ""]
    residual: Float[Array, ""]


def single(x, size, *, accepted, boundary, unresolved, residual) -> Candidate:
    """A candidate with the one solution ``x``."""
    no = jnp.asarray(False)
    return Candidate(x, x, x, x, size, accepted, no, boundary, unresolved, residual)


def candidate(problem: StaticProblem, mode: Int[Array, " nt"]) -> Candidate:
    """The solutions in the modes ``mode``."""
    equations = mode_equations(problem, mode)
    G, h, used = equations.G, equations.h, equations.used
    found = solve_general(equations.A, equations.b)
    line = found.nullity == 1
    v = jnp.where(line, jnp.sum(found.null, axis=1), 0.0)
    margin, zero = G @ found.x + h, ON_EDGE * (jnp.abs(G) @ found.size + jnp.abs(h))
    rate = G @ v
    still = jnp.abs(rate) <= SAME * (jnp.abs(G) @ jnp.abs(v))
    safe = jnp.where(still, 1.0, rate)
    reach = jnp.where(used & ~still, -margin / safe, 0.0)
    low = jnp.max(jnp.where(used & ~still & (rate > 0), reach, -jnp.inf), initial=-jnp.inf)
    high = jnp.min(jnp.where(used & ~still & (rate < 0), reach, jnp.inf), initial=jnp.inf)
    low, high = jnp.where(line, low, 0.0), jnp.where(line, high, 0.0)
    slack = jnp.max(jnp.where(used & ~still, zero / jnp.abs(safe), 0.0), initial=0.0)
    empty = low > high + slack
    single = ~empty & (high - low <= slack)
    low, high = jnp.where(single, high, low), high
    holds = jnp.all(~used | ~still | (margin >= -zero))
    accepted = found.consistent & (found.nullity <= 1) & holds & ~empty
    length = 1e3 * jnp.max(found.size) / jnp.maximum(jnp.max(jnp.abs(v)), 1e-300)
    x, x_to = _at(found.x, v, low), _at(found.x, v, high)
    near = _at(found.x, v, jnp.clip(low, -length, length))
    return Candidate(
        x=x,
        x_to=x_to,
        near=near,
        near_to=_at(found.x, v, jnp.clip(high, -length, length)),
        size=found.size,
        accepted=accepted,
        continuum=accepted & line & ~single,
        boundary=accepted & ~line & jnp.any(used & (margin <= zero)),
        unresolved=found.consistent & (found.nullity > 1),
        residual=static_residual(problem, near),
    )


def _at(x, v, z):
    return x + jnp.where(v == 0.0, 0.0, jnp.where(v == 0.0, 0.0, z) * v)


def distinct(found: Candidate, lengths: int) -> Bool[Array, " c"]:
    """Accepted candidates of a batch, each solution once; solutions on a continuum belong to it.

    ``lengths``: number of unknowns that are positions; the others are forces.
    """
    kept = found.accepted
    size = jnp.max(jnp.where(kept[:, None], found.size, 0.0), axis=0, initial=0.0)
    q, force = (jnp.max(part, initial=0.0) for part in (size[:lengths], size[lengths:]))
    is_length = jnp.arange(size.shape[0]) < lengths
    scale = jnp.where(is_length, q, force)
    scale = jnp.where(scale > 0, scale, 1.0)
    start, end = found.near / scale, found.near_to / scale
    covers = _on_segment(start, end, start) & _on_segment(start, end, end)
    covers = covers & kept[:, None] & kept
    first = jnp.arange(kept.shape[0])[:, None] < jnp.arange(kept.shape[0])
    return kept & ~jnp.any(covers & (first | ~covers.T), axis=0)


def _on_segment(start, end, points):
    """Whether point j lies on segment i."""
    d = end - start
    squared = jnp.sum(d * d, axis=1)[:, None]
    offset = points[None] - start[:, None]
    along = jnp.sum(offset * d[:, None], axis=2) / jnp.where(squared > 0, squared, 1.0)
    nearest = offset - jnp.clip(along, 0.0, 1.0)[..., None] * d[:, None]
    return jnp.max(jnp.abs(nearest), axis=2) <= SAME
