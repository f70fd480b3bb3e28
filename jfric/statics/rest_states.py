"""States in which a system with friction can stay at rest, whatever its history.

They are positions and reactions with::

    K q = f + W_T^T lambda_T + W_N^T lambda_N
    -c+ <= lambda_T <= c-,   lambda_N >= 0 and g_N = 0 (closed),   lambda_N = 0 and g_N >= 0 (open)

For each choice of closed contacts they form a convex polyhedron; its extent in every coordinate
follows from linear programs. A running belt keeps its contact sliding: the friction force is then
the limit itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.errors import ProblemError
from jfric.numerics.elimination import solve_general
from jfric.numerics.printing import printable
from jfric.results.modes import Mode
from jfric.statics.held_position import held, is_mechanism, reactions_at_rest, require_held, sides
from jfric.statics.polyhedron import Polyhedron, extent, polyhedron_of
from jfric.statics.static_mode_equations import mode_equations, split
from jfric.statics.static_problem import StaticProblem, require_static, static_problem
from jfric.system.joint_equations import joint_equations
from jfric.system.problem import Problem

#: Number of unilateral contacts up to which every choice of closed ones is tried.
MAX_UNILATERAL = 8


@printable
class RestStates(eqx.Module):
    """Sets of rest states, one row for each choice of closed contacts.

    A mechanism is evaluated at its initial position ``q``: contacts without a gap there are closed,
    and a row is a choice of the sides on which joints with friction push.

    The rows with ``exists`` count, ``count`` of them. Each is a convex set of positions and
    reactions; ``q_low`` and ``q_high`` (p, n) [m, rad], ``lambda_t_low``, ``lambda_t_high`` (p, nt)
    and ``lambda_n_low``, ``lambda_n_high`` (p, nu) [N], ``reaction_low`` and ``reaction_high`` (p,
    k) [N, N m] are its extent in each coordinate, infinite where it has no end; ``axes``, ``names``
    and ``joints``: names of degrees of freedom, contacts and reactions.
    ``closed``: which unilateral contacts are closed. Under ``vmap`` arrays have the batch axis in
    front. The friction force that holds a block is unique::

        >>> block = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "friction": jfric.Friction("x", limit=3.0),
        ...         "load": jfric.Load("x", 2.0),
        ...     },
        ... )
        >>> found = jfric.equilibria(block, meaning="rest")
        >>> int(found.count), found.lambda_t_low[0].tolist(), found.lambda_t_high[0].tolist()
        (1, [-2.0], [-2.0])
    """

    q_low: Float[Array, "p n"]
    q_high: Float[Array, "p n"]
    lambda_t_low: Float[Array, "p nt"]
    lambda_t_high: Float[Array, "p nt"]
    lambda_n_low: Float[Array, "p nu"]
    lambda_n_high: Float[Array, "p nu"]
    reaction_low: Float[Array, "p k"]
    reaction_high: Float[Array, "p k"]
    closed: Bool[Array, "p nu"]
    exists: Bool[Array, " p"]
    count: Int[Array, ""]
    axes: tuple[str, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    joints: tuple[str, ...] = eqx.field(static=True)

    def table(self) -> list[dict[str, Any]]:
        """The sets of one problem as rows: intervals (low, high) by name of the coordinate."""
        nu = self.closed.shape[-1]
        normals = self.names[len(self.names) - nu :]
        groups = dict(zip(_GROUPS, (self.axes, self.names, normals, self.joints), strict=True))

        def intervals(group: Any, i: Any) -> dict[str, tuple[float, float]]:
            low, high = (getattr(self, f"{group}_{end}")[i].tolist() for end in ("low", "high"))
            return dict(zip(groups[group], zip(low, high, strict=True), strict=True))

        return [
            {group: intervals(group, i) for group in groups}
            | {"closed": tuple(np.asarray(normals, object)[np.asarray(self.closed[i])])}
            for i in np.flatnonzero(np.asarray(self.exists))
        ]


#: Groups of unknowns, in the order of their parts.
_GROUPS = ("q", "lambda_t", "lambda_n", "reaction")


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
    return polyhedron_of(found, G, h, equations.used & ~dropped)


class RestSets(NamedTuple):
    """Rest states of a problem: a polyhedron of unknowns for each choice of closed contacts."""

    #: Unilateral contacts that may carry, in each choice.
    closed: Bool[Array, "p nu"]
    sets: Polyhedron
    #: Function from unknowns to positions, frictions, normal forces and reactions of joints.
    split: Callable
    axes: tuple[str, ...]
    names: tuple[str, ...]
    joints: tuple[str, ...]


def rest_sets(problem: Problem, t) -> RestSets:
    """All rest states of ``problem``: for a mechanism at its initial position, else anywhere."""
    if is_mechanism(problem):
        here = held(problem, t)
        nt, nu = here.mechanics.n_contacts, here.mechanics.n_unilateral
        carries = jnp.asarray(sides(here.mechanics))
        sets = jax.vmap(lambda c: reactions_at_rest(here, c))(carries)
        joints = tuple(e.name for e in joint_equations(problem.resolved()) if not e.rubs)

        def parts(x):
            return here.q, x[:nt], x[nt : nt + nu], x[nt + nu :]

        names = here.mechanics.axes, here.mechanics.contact_names, joints
        return RestSets(carries & here.closed, sets, parts, *names)
    static = static_problem(problem, t)
    closed = jnp.asarray(patterns(static))
    sets = jax.vmap(lambda c: polyhedron(static, c))(closed)

    def unknowns(x):
        return *split(static, x), x[:0]

    return RestSets(closed, sets, unknowns, static.axes, static.names, ())


@eqx.filter_jit
def rest_states(problem: Problem, t) -> RestStates:
    """Rest states of ``problem``: :func:`jfric.equilibria` with ``meaning="rest"``."""
    found = rest_sets(problem, t)
    low, high, exists = jax.vmap(extent)(found.sets)
    bounds: dict[str, Any] = {
        f"{group}_{end}": part
        for end, bound in (("low", low), ("high", high))
        for group, part in zip(_GROUPS, jax.vmap(found.split)(bound), strict=True)
    }
    return RestStates(
        **bounds,
        closed=found.closed,
        exists=exists,
        count=jnp.sum(exists, dtype=jnp.int32),
        axes=found.axes,
        names=found.names,
        joints=found.joints,
    )


def require_rest(problem: Problem) -> None:
    """Raise :class:`jfric.ProblemError` for problems whose states of rest cannot be computed."""
    if is_mechanism(problem):
        require_held(problem)
    else:
        require_static(problem)
