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
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.errors import ProblemError
from jfric.numerics.elimination import solve_general
from jfric.numerics.printing import Shown, printable, short
from jfric.results.modes import Mode
from jfric.results.status import Status
from jfric.statics.held_position import (
    Polyhedron,
    extent,
    held,
    is_mechanism,
    margin,
    polyhedron_of,
    reactions_at_rest,
    require_held,
    sides,
)
from jfric.statics.path_names import checked_path
from jfric.statics.static_problem import (
    Parts,
    StaticProblem,
    mode_equations,
    require_static,
    static_problem,
)
from jfric.system.joint_equations import joint_equations
from jfric.system.model import build
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem
from jfric.system.validation import validate

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
    front. After the example of :func:`jfric.limit_load`, the friction force that holds the block
    against 2 N is unique::

        >>> loaded = jfric.set_parameters(block, {"load.F": 2.0})
        >>> found = jfric.equilibria(loaded, meaning="rest")
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

    def _shown(self) -> Shown:
        if isinstance(self.exists, Tracer) or self.exists.ndim != 1:
            names = "q_low", "q_high", "count"
            return Shown("Rest states", (), [(n, short(getattr(self, n))) for n in names])
        rows, choices = [], self.table()
        for row in choices:
            closed = ", ".join(row["closed"]) or "none"
            for group in _GROUPS:
                for name, ends in row[group].items():
                    label = name if group == "q" else f"{group}.{name}"
                    rows.append((closed, label, *(f"{x + 0.0:.10g}" for x in ends)))
        below = "" if choices else "there is no rest state"
        return Shown("Rest states", ("closed contacts", "", ">from", ">to"), rows, below)

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
        forces = Parts(0, here.mechanics.n_contacts, here.mechanics.n_unilateral)
        carries = jnp.asarray(sides(here.mechanics))
        sets = jax.vmap(lambda c: reactions_at_rest(here, c))(carries)
        joints = tuple(e.name for e in joint_equations(problem.resolved()) if not e.rubs)

        def parts(x):
            return here.q, *forces.of(x)[1:]

        names = here.mechanics.axes, here.mechanics.contact_names, joints
        return RestSets(carries & here.closed, sets, parts, *names)
    static = static_problem(problem, t)
    closed = jnp.asarray(patterns(static))
    sets = jax.vmap(lambda c: polyhedron(static, c))(closed)
    return RestSets(closed, sets, static.parts.of, static.axes, static.names, ())


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


#: Number of steps of the parameter in the search for the first loss of equilibrium.
SCAN = 64
_HALVINGS = 60
#: Distance before the limit, as a part of the way, at which carrying contacts are determined.
_BEFORE = 1e-7


@printable
class LimitLoad(eqx.Module):
    """The limit ``parameter``, and the rest state there.

    Positions ``q`` (n,) [m, rad] of the degrees of freedom ``axes``; friction forces ``lambda_t``
    (nt,) and normal forces ``lambda_n`` (nu,) [N] of the contacts ``names``; ``reactions`` (k,)
    [N, N m] of the equations ``joints``. ``status``:
    ``OK``; ``INCONSISTENT`` where there is no rest state at the start; ``MAX_STEPS`` if there is
    one at all values (``parameter`` is then the stop). The state at the limit is one of several
    where reactions or positions are not unique. Example: see :func:`jfric.limit_load`.
    """

    parameter: Float[Array, ""]
    q: Float[Array, " n"]
    lambda_t: Float[Array, " nt"]
    lambda_n: Float[Array, " nu"]
    reactions: Float[Array, " k"]
    status: Int[Array, ""]
    axes: tuple[str, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    joints: tuple[str, ...] = eqx.field(static=True)


def limit_load(problem: Problem, path: str, start, stop, *, t=None) -> LimitLoad:
    """The value of a parameter at which the last rest state of ``problem`` is lost.

    The margin ``s`` of the rest states is the largest number by which all inequalities (limits of
    friction, contact forces, gaps) can be tightened at once; there is a rest state where
    ``s >= 0``. The limit is the first zero of ``s`` on the way from one value to another.

    The search covers the parameter ``path`` from ``start`` to ``stop``. ``t`` [s]: time at which
    loads are taken (default: the start). A loss and return within a 64th of the interval is not
    noticed. A mechanism is evaluated at its initial position, which may depend on the parameter
    (``initial.theta.q``). Works under ``jit``, ``vmap`` and ``jvp``. Raises
    :class:`jfric.ProblemError` for unknown parameters, and for problems whose states of rest cannot
    be computed. A block of 10 N that friction holds up to 3 N::

        >>> block = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "friction": jfric.Friction("x", jfric.Coulomb(0.3), N=10.0),
        ...         "load": jfric.Load("x", 0.0),
        ...     },
        ... )
        >>> round(float(jfric.limit_load(block, "load.F", 0.0, 10.0).parameter), 6)
        3.0
    """
    problem = build(problem)
    require_rest(problem)
    name = checked_path(problem, path)
    for value in (start, stop):
        if not isinstance(value, Tracer):
            validate(set_parameters(problem, {name: value}))
    # Arrays, so that another number causes no new compilation.
    start, stop = (jnp.asarray(x, jnp.result_type(float)) for x in (start, stop))
    t = None if t is None else jnp.asarray(t, jnp.result_type(float))
    return _solve(problem, name, start, stop, t)


@eqx.filter_jit
def _solve(problem: Problem, path: str, start, stop, t) -> LimitLoad:
    def margins(p):
        found = rest_sets(set_parameters(problem, {path: p}), t)
        s, x = jax.vmap(margin)(found.sets)
        return found, jnp.where(jnp.isnan(s), -jnp.inf, s), x

    def at(p, chosen=None):
        found, s, x = margins(p)
        best = jnp.argmax(s) if chosen is None else chosen
        return s[best], found.split(x[best])

    begin, end = jax.lax.stop_gradient((start, stop))

    def narrowed(i, carry):
        """A grid of ``SCAN`` steps up to the first loss, then halving from ``held`` to ``gone``."""
        held, gone, lost, at_start = carry
        on_grid = begin + jnp.minimum(i, SCAN) * ((end - begin) / SCAN)
        p = jnp.where(lost, 0.5 * (held + gone), on_grid)
        holds = at(p)[0] >= 0.0
        held, gone = jnp.where(holds, p, held), jnp.where(holds, gone, p)
        return held, gone, lost | ~holds, at_start | (~holds & (i == 0))

    no = jnp.asarray(False)
    search = jax.lax.fori_loop(0, SCAN + 1 + _HALVINGS, narrowed, (begin, begin, no, no))
    last_held, _, lost, at_start = search
    p = jax.lax.stop_gradient(jnp.where(lost, last_held, stop))
    # Contacts that are closed on the way, not only at the limit: a body about to tip may stand
    # there on one foot.
    _, before, _ = margins(p - _BEFORE * (p - begin))
    chosen = jax.lax.stop_gradient(jnp.argmax(before))
    (s, state), (slope, rate) = jax.jvp(lambda p: at(p, chosen), (p,), (jnp.ones_like(p),))
    # Implicit function theorem: the zero of s moves with all other numbers of the problem.
    slope, rate = jax.lax.stop_gradient((slope, rate))
    moves = lost & jnp.isfinite(s) & (slope != 0.0)
    shift = jnp.where(moves, -s / jnp.where(moves, slope, 1.0), 0.0)
    state = jax.tree.map(lambda x, dx: x + jnp.where(moves, dx * shift, 0.0), state, rate)
    status = jnp.where(at_start, int(Status.INCONSISTENT), int(Status.OK))
    status = jnp.where(lost, status, int(Status.MAX_STEPS)).astype(jnp.int32)
    q, lambda_t, lambda_n, reactions = state
    of = rest_sets(problem, t)
    names = of.axes, of.names, of.joints
    return LimitLoad(p + shift, q, lambda_t, lambda_n, reactions, status, *names)
