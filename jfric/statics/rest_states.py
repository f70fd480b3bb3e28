"""Where a system with friction can stay at rest, whatever its history.

Positions and reactions with::

    K q = f + W_T^T lambda_T + W_N^T lambda_N
    -c+ <= lambda_T <= c-,   lambda_N >= 0 and g_N = 0 (closed),   lambda_N = 0 and g_N >= 0 (open)

For each choice of closed contacts they form a convex polyhedron; its extent in every coordinate
follows from linear programs. A running belt keeps its contact sliding: the friction force is then
the limit itself.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.errors import ProblemError
from jfric.numerics.elimination import solve_general
from jfric.numerics.linear_program import maximise
from jfric.results.modes import Mode
from jfric.statics.static_mode_equations import mode_equations, split
from jfric.statics.static_problem import StaticProblem, static_problem
from jfric.system.problem import Problem

#: Unilateral contacts up to which every choice of closed ones is tried.
MAX_UNILATERAL = 8
#: Rounding error of a margin, relative to the numbers it is made of.
ROUNDING = 1e-13


class RestStates(eqx.Module):
    """Sets of rest states, one row for each choice of closed contacts.

    Those with ``exists`` count, ``count`` of them. Each is a convex set of positions and reactions;
    ``q_low`` and ``q_high`` (p, n) [m, rad], ``lambda_t_low``, ``lambda_t_high`` (p, nt) and
    ``lambda_n_low``, ``lambda_n_high`` (p, nu) [N] are its extent in each coordinate, infinite
    where it has no end; ``axes`` and ``names`` are those of degrees of freedom and contacts.
    ``closed``: which unilateral contacts are closed. Under ``vmap`` arrays have the batch axis in
    front.
    """

    q_low: Float[Array, "p n"]
    q_high: Float[Array, "p n"]
    lambda_t_low: Float[Array, "p nt"]
    lambda_t_high: Float[Array, "p nt"]
    lambda_n_low: Float[Array, "p nu"]
    lambda_n_high: Float[Array, "p nu"]
    closed: Bool[Array, "p nu"]
    exists: Bool[Array, " p"]
    count: Int[Array, ""]
    axes: tuple[str, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def table(self) -> list[dict[str, Any]]:
        """The sets of one problem as rows: intervals (low, high) by name of coordinate."""
        nu = self.closed.shape[-1]
        normals = self.names[len(self.names) - nu :]
        return [
            {
                "q": _intervals(self.axes, self.q_low[i], self.q_high[i]),
                "lambda_t": _intervals(self.names, self.lambda_t_low[i], self.lambda_t_high[i]),
                "lambda_n": _intervals(normals, self.lambda_n_low[i], self.lambda_n_high[i]),
                "closed": tuple(np.asarray(normals, object)[np.asarray(self.closed[i])]),
            }
            for i in np.flatnonzero(np.asarray(self.exists))
        ]


def _intervals(names, low, high) -> dict[str, tuple[float, float]]:
    return {n: (float(a), float(b)) for n, a, b in zip(names, low, high, strict=True)}


class Polyhedron(NamedTuple):
    """``x = origin + N z`` with ``A z + b >= 0``; empty where not ``consistent``. ``size``:
    magnitude of the parts of ``b``; ``used`` marks the inequalities that there are."""

    origin: Float[Array, " m"]
    N: Float[Array, "m m"]
    A: Float[Array, "g m"]
    b: Float[Array, " g"]
    size: Float[Array, " g"]
    used: Bool[Array, " g"]
    consistent: Bool[Array, ""]


def patterns(static: StaticProblem) -> np.ndarray:
    """All choices of closed unilateral contacts (p, nu); raises for too many."""
    nu = static.W_N.shape[0]
    if nu > MAX_UNILATERAL:
        raise ProblemError(
            f"contact: found {nu} unilateral contacts, rest states are computed for at most "
            f"{MAX_UNILATERAL}"
        )
    return np.asarray(list(itertools.product([False, True], repeat=nu)), bool).reshape(2**nu, nu)


def polyhedron(static: StaticProblem, closed: Bool[Array, " nu"]) -> Polyhedron:
    """The rest states with the contacts ``closed`` closed and the others open."""
    p, dtype = static, static.K.dtype
    n, nt = p.K.shape[0], p.W_T.shape[0]
    shut = jnp.concatenate([jnp.ones((p.n_friction,), bool), closed])
    # The sliding velocity is opposite to the belt's.
    drawn = jnp.where(p.belt > 0, Mode.SLIP_NEG, jnp.where(p.belt < 0, Mode.SLIP_POS, Mode.STICK))
    mode = jnp.where(p.frictionless, Mode.CLOSED, drawn)
    mode = jnp.where(shut, mode, Mode.OPEN).astype(jnp.int32)
    equations = mode_equations(p, mode)
    # Sticking contacts may be anywhere; sliding on a belt is no displacement.
    free = jnp.concatenate(
        [jnp.zeros((n,), bool), mode == Mode.STICK, jnp.zeros((p.W_N.shape[0],), bool)]
    )
    A = jnp.where(free[:, None], 0.0, equations.A)
    found = solve_general(A, jnp.where(free, 0.0, equations.b))
    slides = rules.slides(mode)
    dropped = jnp.concatenate([slides, jnp.zeros((2 * nt,), bool)])
    G = jnp.where(dropped[:, None], 0.0, equations.G)
    h = jnp.where(dropped, jnp.asarray(1.0, dtype), equations.h)
    return Polyhedron(
        origin=found.x,
        N=found.null,
        A=G @ found.null,
        b=G @ found.x + h,
        size=jnp.abs(G) @ found.size + jnp.abs(h),
        used=equations.used & ~dropped,
        consistent=found.consistent,
    )


def rest_states(problem: Problem, *, t=None) -> RestStates:
    """See :func:`jfric.equilibria` with ``meaning="rest"``."""
    return _solve(problem, t)


@eqx.filter_jit
def _solve(problem: Problem, t) -> RestStates:
    static = static_problem(problem, t)
    closed = jnp.asarray(patterns(static))
    low, high, exists = jax.vmap(lambda c: _extent(polyhedron(static, c)))(closed)
    parts = [jax.vmap(lambda x: split(static, x))(bound) for bound in (low, high)]
    (q_low, t_low, n_low), (q_high, t_high, n_high) = parts
    return RestStates(
        q_low=q_low,
        q_high=q_high,
        lambda_t_low=t_low,
        lambda_t_high=t_high,
        lambda_n_low=n_low,
        lambda_n_high=n_high,
        closed=closed,
        exists=exists,
        count=jnp.sum(exists, dtype=jnp.int32),
        axes=static.axes,
        names=static.names,
    )


def _extent(p: Polyhedron):
    """Lower and upper bounds of all unknowns, and whether there is a point at all."""
    zero = jnp.zeros((p.N.shape[1],), p.N.dtype)
    # Differences below the rounding error of their parts are zero: a set may be a point.
    p = p._replace(b=jnp.where(jnp.abs(p.b) <= ROUNDING * p.size, 0.0, p.b))
    _, feasible = maximise(zero, p.A, p.b)
    exists = feasible & p.consistent

    def bound(direction):
        z, bounded = maximise(direction, p.A, p.b)
        # A coordinate that the free ones do not move has one value.
        fixed = jnp.all(direction == 0.0)
        return jnp.where(fixed, 0.0, jnp.where(bounded, direction @ z, jnp.inf))

    highest = p.origin + jax.vmap(bound)(p.N)
    lowest = p.origin - jax.vmap(bound)(-p.N)
    return (
        jnp.where(exists, lowest, jnp.nan),
        jnp.where(exists, highest, jnp.nan),
        exists,
    )
