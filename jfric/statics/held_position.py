"""Rest of a mechanism at a given position: reactions that balance it there.

The unknowns are forces of contacts and reactions of joints, at rest in the initial position::

    f(t, q) + W_T^T lambda_T + W_N^T lambda_N + J^T lambda_J = 0
    -c+ <= lambda_T <= c-,   lambda_N >= 0 where closed,   both zero where open

They form a convex polyhedron for each choice of the side on which joints with friction push.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from jfric.errors import ProblemError
from jfric.numerics.elimination import General, equilibrate, solve_general
from jfric.numerics.lemke import lemke
from jfric.statics.static_problem import both_limits
from jfric.system.assembly import assemble, energies
from jfric.system.description import AbstractProblem
from jfric.system.elements import AbstractForce
from jfric.system.features import FEATURES, require_features, varying_parts
from jfric.system.forces import applied_force, normal_forces_at
from jfric.system.joint_equations import joint_equations
from jfric.system.mechanics import Mechanics
from jfric.system.piecewise import FORMS
from jfric.system.problem import Problem
from jfric.system.start import started


def maximise(
    c: Float[Array, " d"], A: Float[Array, "g d"], b: Float[Array, " g"]
) -> tuple[Float[Array, " d"], Bool[Array, ""]]:
    """The ``z`` that maximises ``c^T z`` subject to ``A z + b >= 0``, and whether there is one.

    With ``z = u - v`` and multipliers ``y`` the conditions of an optimum are complementary, and
    solved by Lemke's method::

        0 <= u  _|_  -c - A^T y >= 0,   0 <= v  _|_  c + A^T y >= 0,   0 <= y  _|_  A z + b >= 0

    Source: Cottle, Pang, Stone, The Linear Complementarity Problem, section 1.2.
    There is none where no ``z`` is feasible, and where the maximum is infinite; with ``c = 0`` the
    second result tells whether there is a feasible ``z``.
    """
    g, d = A.shape
    row, column = equilibrate(A)
    scaled = A * row[:, None] * column
    right, aim = row * b, column * c
    size = jnp.max(jnp.abs(right), initial=0.0)
    right = right / jnp.where(size > 0, size, 1.0)
    wanted = jnp.max(jnp.abs(aim), initial=0.0)
    aim = aim / jnp.where(wanted > 0, wanted, 1.0)
    M = jnp.block(
        [
            [jnp.zeros((2 * d, 2 * d), A.dtype), jnp.concatenate([-scaled.T, scaled.T])],
            [scaled, -scaled, jnp.zeros((g, g), A.dtype)],
        ]
    )
    result = lemke(M, jnp.concatenate([-aim, aim, right]))
    z = result.z[:d] - result.z[d : 2 * d]
    return z * column * jnp.where(size > 0, size, 1.0), result.solved


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


#: Gap, as a part of the lengths of a system, up to which a contact counts as closed.
CLOSED = 1e-9
#: Number of joints with friction up to which every choice of sides is tried.
MAX_SIDES = 8

#: Name of this computation in messages.
WHO = "a state of rest of a mechanism"


def is_mechanism(problem: AbstractProblem) -> bool:
    """Whether rest depends on the position alone: directions depend on it, there are joints, or
    forces are not linear."""
    if joint_equations(problem) or varying_parts(problem):
        return True
    if any(problem.section(form) for form in FORMS):
        return True
    elements = [x for group in problem.elements.values() for x in group.values()]
    if any(isinstance(x, AbstractForce) for x in elements) or problem.section("link_spring"):
        return True
    return any(not x.has_linear_force() for x in energies(problem).values())


#: Features that a state of rest may have: limits in pins are not convex in the reactions.
AT_REST = FEATURES.keys() - {"planes", "sliders", "states", "pins", "belts"}


def require_held(problem: AbstractProblem, who: str = WHO, takes: Iterable[str] = AT_REST) -> None:
    """Raise :class:`ProblemError` for what ``who`` cannot represent: features outside ``takes`` and
    joints that prescribe a motion."""
    require_features(problem, who, takes)
    problem = started(problem.resolved())
    equations = joint_equations(problem)
    t, q, _ = problem.start()
    rest = jnp.zeros_like(q)
    rate = [
        e.function(t, q, rest)
        if e.on_velocities
        else jax.jvp(e.function, (t, q), (jnp.ones_like(t), rest))[1]
        for e in equations
    ]
    for equation, value in zip(equations, rate, strict=True):
        if not isinstance(value, Tracer) and value != 0.0:
            raise ProblemError(
                f"{equation.label}: prescribes a motion with the rate {float(value):g} at the "
                f"start, which {who} cannot represent"
            )


class Held(NamedTuple):
    """The mechanism at rest: ``x = (lambda_T, lambda_N, lambda_J)`` and the conditions on it.

    ``closed`` (nu,): unilateral contacts without a gap; ``reactions``: names of ``lambda_J``.
    """

    mechanics: Mechanics
    q: Float[Array, " n"]
    force: Float[Array, " n"]
    #: Directions of all unknowns.
    R: Float[Array, "m n"]
    closed: Bool[Array, " nu"]
    #: Combinations of unknowns that are zero: reactions without power.
    balanced: Float[Array, "b m"]
    #: Limits that do not depend on the unknowns, for both directions of sliding.
    cap: Float[Array, "2 nt"]
    mu: Float[Array, "2 nt"]


def held(problem: Problem, t=None) -> Held:
    """The static problem of ``problem`` at its initial position, with the loads at ``t`` [s]."""
    problem = started(problem.resolved())
    mechanics = assemble(problem)
    start, q, _ = (x.astype(mechanics.K.dtype) for x in problem.start())
    t = start if t is None else jnp.asarray(t, q.dtype)
    rest = jnp.zeros_like(q)
    here = mechanics.at(t, q, rest)
    nf, nt, nu = here.n_friction, here.n_contacts, here.n_unilateral
    J, balanced = _reactions(problem, here, t, q)
    static = both_limits([law.static() for law in here.laws], q.dtype)
    given = normal_forces_at(here, t, q, rest)
    own = np.arange(nt) >= nf
    size = jnp.abs(here.gap0) + jnp.abs(here.W_N) @ jnp.abs(q)
    size = size + jnp.max(jnp.abs(q), initial=0.0)
    gap = jax.lax.stop_gradient(here.gaps(t, q))
    R = jnp.concatenate([here.R_T, here.W_N, J])
    return Held(
        mechanics=here,
        q=q,
        force=applied_force(here, t, q, rest),
        R=R,
        balanced=jnp.pad(balanced, ((0, 0), (R.shape[0] - J.shape[0], 0))),
        closed=gap <= CLOSED * jax.lax.stop_gradient(size),
        cap=static * jnp.pad(given, (0, nu)),
        mu=jnp.where(own, static, 0.0),
    )


def _reactions(
    problem: AbstractProblem, here: Mechanics, t, q
) -> tuple[Float[Array, "k n"], Float[Array, "b k"]]:
    """Directions of the reactions of joints, and combinations of these reactions that are zero.
    Chosen velocities are held by a force along each degree of freedom, without power together."""
    if here.tied is None:
        return jnp.zeros((0, q.shape[0]), q.dtype), jnp.zeros((0, 0), q.dtype)
    J, balanced = here.tied.J, []
    equations = [e for e in joint_equations(problem) if not e.rubs]
    for i, equation in enumerate(equations):
        own = equation.held
        if own is None:
            continue
        J = J.at[i].set(jnp.zeros_like(J[i]).at[own.of.rows[own.row]].set(1.0))
        if own.row == 0:
            S = own.of.matrix(t, q)
            balanced.append(jnp.pad(S.T, ((0, 0), (i, J.shape[0] - i - S.shape[0]))))
    return J, jnp.concatenate([jnp.zeros((0, J.shape[0]), q.dtype), *balanced])


def sides(mechanics: Mechanics) -> np.ndarray:
    """All choices (p, nu) of unilateral contacts that may carry, one of the two sides of each joint
    with friction; raises for too many joints."""
    pairs, nu = mechanics.opposed, mechanics.n_unilateral
    if len(pairs) > MAX_SIDES:
        raise ProblemError(
            f"joint: found {len(pairs)} joints with friction, {WHO} is computed for at most "
            f"{MAX_SIDES}"
        )
    rows = []
    for choice in itertools.product((0, 1), repeat=len(pairs)):
        row = np.ones(nu, bool)
        for pair, side in zip(pairs, choice, strict=True):
            row[pair[1 - side]] = False
        rows.append(row)
    return np.asarray(rows, bool).reshape(len(rows), nu)


def reactions_at_rest(held: Held, carries: Bool[Array, " nu"]) -> Polyhedron:
    """The reactions that balance the mechanism if the closed contacts in ``carries`` push."""
    here, dtype = held.mechanics, held.q.dtype
    nf, nt, nu = here.n_friction, here.n_contacts, here.n_unilateral
    m = held.R.shape[0]
    push = held.closed & carries
    may_rub = jnp.concatenate([jnp.ones((nf,), bool), push]) & ~np.asarray(here.frictionless, bool)
    absent = ~jnp.concatenate([may_rub, push, jnp.ones((m - nt - nu,), bool)])
    none = jnp.where(absent[:, None], jnp.eye(m, dtype=dtype), 0.0)
    A = jnp.concatenate([held.R.T, held.balanced, none])
    zero = jnp.zeros((A.shape[0] - held.force.shape[0],), dtype)
    found = solve_general(A, jnp.concatenate([-held.force, zero]))
    pressed = jnp.zeros((nt, m), dtype).at[nf + np.arange(nu), nt + np.arange(nu)].set(1.0)
    rubs = jnp.eye(nt, m, dtype=dtype)
    normal = jnp.eye(nu, m, nt, dtype=dtype)
    G = jnp.concatenate(
        [held.mu[0][:, None] * pressed + rubs, held.mu[1][:, None] * pressed - rubs, normal]
    )
    h = jnp.concatenate([held.cap[0], held.cap[1], jnp.zeros((nu,), dtype)])
    used = jnp.concatenate([may_rub, may_rub, push])
    G, h = jnp.where(used[:, None], G, 0.0), jnp.where(used, h, 1.0)
    return polyhedron_of(found, G, h, jax.lax.stop_gradient(used))
