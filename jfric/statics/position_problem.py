"""The static problem of a mechanism, whose directions and forces depend on its position.

The unknowns are ``x = (q, lambda_T, lambda_N, lambda_J)``::

    f(t, q) + R_T^T lambda_T + W_N^T lambda_N + J^T lambda_J = 0,    phi(t, q) = 0
    0 <= g_N(t, q)  _|_  lambda_N >= 0
    lambda_T in -mu N Sign(s),     s = g_T(t, q) - g_T(t, q_0)

``s`` is the sliding distance of a contact from the reference state ``q_0``, the initial position.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.errors import ProblemError
from jfric.numerics.linear_algebra import matvec, singular_values
from jfric.statics.candidate import Candidate, single
from jfric.statics.held_position import AT_REST, is_mechanism, require_held
from jfric.statics.static_problem import (
    Equations,
    Parts,
    Reading,
    as_table,
    both_limits,
    combinations,
    in_modes,
    possible_modes,
    require_no_belt,
    require_static,
    with_derivatives,
)
from jfric.system.assembly import assemble, displacement_functions
from jfric.system.forces import applied_force, normal_forces_at
from jfric.system.joint_equations import joint_equations
from jfric.system.mechanics import Mechanics, WithContacts
from jfric.system.piecewise import FORMS
from jfric.system.problem import Problem
from jfric.system.start import started
from jfric.system.state_function import Rate

#: Name of this computation in messages.
WHO = "the static problem of a mechanism from a reference state"


class AtRest(WithContacts):
    """A mechanism with loads as they are at the time ``t``, and its reference position."""

    mechanics: Mechanics
    t: Float[Array, ""]
    q0: Float[Array, " n"]
    #: Places of the contacts in the reference state: ``s = g_T(t, q) - slip0``.
    slip0: Float[Array, " nt"]
    #: Names of the reactions of joints, and which degrees of freedom (n,) are angles.
    joints: tuple[str, ...] = eqx.field(static=True)
    turns: tuple[bool, ...] = eqx.field(static=True)

    @property
    def parts(self) -> Parts:
        """Numbers of the unknowns of each kind."""
        return Parts(self.mechanics.n, self.nt, self.nu)

    @property
    def rubs(self) -> tuple[bool, ...]:
        """Whether each contact has a tangent."""
        return tuple(not x for x in self.mechanics.frictionless)


def at_rest(problem: Problem, t=None) -> AtRest:
    """``problem`` under the loads at ``t`` [s], by default at its start."""
    problem = started(problem.resolved())
    mechanics = assemble(problem)
    start, q0, _ = problem.start()
    t = start if t is None else jnp.asarray(t, q0.dtype)
    base = mechanics.base_motion(start)[0] - mechanics.base_motion(t)[0]
    slip0 = mechanics.displacements(t, q0)[: mechanics.n_contacts]
    joints = tuple(e.name for e in joint_equations(problem) if not e.rubs)
    turns = tuple(kind == "rotation" for kind in problem.dofs.values())
    return AtRest(
        mechanics, t, q0, slip0 + matvec(mechanics.W_T_base, base), joints=joints, turns=turns
    )


def forces_at(rest: AtRest, q: Float[Array, " n"]) -> Float[Array, " n"]:
    """All forces except those of contacts and joints."""
    return applied_force(rest.mechanics, rest.t, q, jnp.zeros_like(q))


def state_equations(
    rest: AtRest, x: Float[Array, " m"]
) -> tuple[Float[Array, " n"], Float[Array, " k"], Reading]:
    """Unbalanced forces, values of joints, and readings of contacts at the state ``x``."""
    mechanics, t = rest.mechanics, rest.t
    q, lambda_t, lambda_n, lambda_j = rest.parts.of(x)
    still = jnp.zeros_like(q)
    R_T, W_N = _directions(mechanics, t, q)
    force = forces_at(rest, q) + matvec(R_T.T, lambda_t) + matvec(W_N.T, lambda_n)
    phi, varying = lambda_j, mechanics.varying
    if varying is not None and varying.joints is not None and varying.joints.values is not None:
        joints = varying.joints.values
        force = force + matvec(jax.jacfwd(joints, argnums=1)(t, q).T, lambda_j)
        phi = joints(t, q)
    slip = mechanics.displacements(t, q)[: rest.nt] - rest.slip0
    own, laws = normal_forces_at(mechanics, t, q, still), mechanics.laws
    own = jnp.concatenate([own, lambda_n])
    static = both_limits([law.static() for law in laws], q.dtype) * own
    kinetic = both_limits([law.kinetic(jnp.zeros_like(t)) for law in laws], q.dtype) * own
    return force, phi, Reading(slip, mechanics.gaps(t, q), lambda_t, lambda_n, static, kinetic)


def _directions(mechanics: Mechanics, t, q) -> tuple[Float[Array, "nt n"], Float[Array, "nu n"]]:
    """``R_T`` and ``W_N`` at ``q``, without the terms that only motion needs."""
    nt, varying = mechanics.n_contacts, mechanics.varying
    R = jnp.concatenate([mechanics.R_T, mechanics.W_N])
    if varying is not None and varying.displaced:
        moved = jax.jacfwd(varying.displacements_at, argnums=1)(t, q)
        R = R.at[np.asarray(varying.displaced)].set(moved)
    return R[:nt], R[nt:]


def position_equations(rest: AtRest, mode: Int[Array, " nt"], x: Float[Array, " m"]) -> Equations:
    """Equations and inequalities of the modes ``mode`` at the state ``x``."""
    force, phi, reading = state_equations(rest, x)
    return in_modes(force, reading, mode, phi, rest.mechanics.opposed)


def require_position(problem: Problem) -> None:
    """Raise :class:`ProblemError` for problems without a static problem from a reference state."""
    require_held(problem, WHO, AT_REST - {"carried", "position"})
    for label in problem.labelled(*FORMS):
        raise ProblemError(
            f"{label}: has a kink, which {WHO} cannot represent; use a contact, or follow the load "
            "with the solver quasi-static"
        )
    problem = problem.resolved()
    for equation in joint_equations(problem):
        if equation.on_velocities:
            raise ProblemError(
                f"{equation.label}: holds velocities, no position, which {WHO} cannot represent; "
                'ask for the rest states (meaning="rest")'
            )
    for label, (_, g) in displacement_functions(problem).items():
        if isinstance(g, Rate):
            raise ProblemError(
                f"{label}: is a sliding velocity, no displacement, which {WHO} cannot represent; "
                'ask for the rest states (meaning="rest")'
            )


def require_reference(problem: Problem) -> bool:
    """Whether ``problem`` is a mechanism; raises :class:`ProblemError` where it has no static
    problem from a reference state."""
    curved = is_mechanism(problem)
    if curved:
        require_position(problem)
    else:
        require_static(problem)
        require_no_belt(problem)
    return curved


#: Most steps of Newton's method, and largest turn [rad] and movement (in lengths of the problem).
STEPS, TURN, MOVE = 60, 0.5, 1.0
#: Last step of Newton's method, relative to the magnitudes of the unknowns.
NEAR = 1e-7
#: Largest residual and negative margin of a solution, relative to their terms.
SOLVED = 1e-10
#: Part of the largest singular value below which equations leave a direction undetermined.
SINGULAR = 1e-11
#: Largest number of combinations of modes that are tried.
MAX_MODES = 1024


def position_modes(rest: AtRest) -> np.ndarray:
    """All combinations of modes (c, nt); raises for too many."""
    each = possible_modes(rest.rubs, rest.nf)
    few = math.prod(map(len, each)) <= 64 * MAX_MODES
    table = combinations(each, rest.mechanics.opposed) if few else []
    if not few or len(table) > MAX_MODES:
        raise ProblemError(
            f"contact: found {rest.nt} contacts and frictions on a mechanism, whose static "
            f"problem is computed for at most {MAX_MODES} combinations of their modes"
        )
    return as_table(table, rest.nt)


def scales_of(rest: AtRest) -> Float[Array, " m"]:
    """Magnitudes of the unknowns: a length, one radian, a force."""
    q0, turns = rest.q0, np.asarray(rest.turns)
    force = jnp.max(jnp.abs(forces_at(rest, q0)), initial=0.0)
    stiffness = jnp.abs(jax.jacfwd(lambda q: forces_at(rest, q))(q0))
    force = jnp.maximum(force, jnp.max(jnp.where(turns[None, :], stiffness, 0.0), initial=0.0))
    force = jnp.where(force > 0, force, 1.0)
    length = jnp.max(jnp.where(turns, 0.0, jnp.abs(q0)), initial=0.0)
    stiffest = jnp.max(jnp.where(turns[None, :], 0.0, stiffness), initial=0.0)
    yields = jnp.where(stiffest > 0, force / _positive(stiffest), 1.0)
    length = jnp.where(length > 0, length, yields)
    positions = jnp.where(turns, 1.0, length)
    others = jnp.full((rest.nt + rest.nu + len(rest.joints),), force, q0.dtype)
    return jax.lax.stop_gradient(jnp.concatenate([positions, others]))


def position_candidates(rest: AtRest, modes: Int[Array, "c nt"]) -> Candidate:
    """The end points of Newton's method in each of ``modes``, from the reference position: the
    nearest solutions in these modes. There may be others."""
    scale = scales_of(rest)
    start = jnp.zeros_like(scale).at[: rest.mechanics.n].set(rest.q0)
    return jax.vmap(lambda mode: _candidate(rest, mode, start, scale))(modes)


def _candidate(rest: AtRest, mode, start, scale) -> Candidate:
    reach = jnp.where(np.asarray(rest.turns), TURN, MOVE) * scale[: rest.mechanics.n]

    def equations(rest, x):
        """Equations, with rows and columns scaled to be comparable."""
        found, A, G = with_derivatives(lambda x: position_equations(rest, mode, x), x)
        A = A * scale
        row = _positive(jnp.sum(jnp.abs(A), axis=1))
        return found, A / row[:, None], row, G

    def step(found, parts, row):
        # The smallest step, where others solve the equations as well.
        u, values, vt = parts
        used = values > SINGULAR * jnp.max(values)
        turned = jnp.where(used, matvec(u.T, found.residual / row) / _positive(values), 0.0)
        return -scale * matvec(vt.T, turned)

    still = jax.lax.stop_gradient(rest)

    def improved(carry):
        i, x, _, _ = carry
        found, A, row, _ = equations(still, x)
        dx = step(found, singular_values(A), row)
        far = jnp.max(jnp.abs(dx[: rest.mechanics.n]) / reach, initial=1.0)
        return i + 1, x + dx / far, x, jnp.max(jnp.abs(dx) / scale, initial=0.0)

    def goes_on(carry):
        return (carry[0] < STEPS) & (carry[3] > NEAR)

    begin = jnp.asarray(0, jnp.int32), jax.lax.stop_gradient(start)
    _, x, _, change = jax.lax.while_loop(
        goes_on, improved, (*begin, begin[1], jnp.asarray(jnp.inf, start.dtype))
    )
    # One step with the derivatives of the solution; at a solution the step itself is zero.
    found, A, row, G = equations(rest, x)
    A, row, G = jax.lax.stop_gradient((A, row, G))
    parts = singular_values(A)
    x = x + step(found, parts, row)
    found = position_equations(rest, mode, x)
    regular = jnp.min(parts.values) > SINGULAR * jnp.max(parts.values)
    defect = jnp.max(jnp.abs(jax.lax.stop_gradient(found.residual / row)), initial=0.0)
    size = _positive(jnp.abs(G) @ (scale + jnp.abs(x)))
    off = jax.lax.stop_gradient(jnp.where(found.used, found.margin / size, 1.0))
    solved = jnp.all(jnp.isfinite(x)) & (defect <= SOLVED) & (change <= NEAR)
    kept = solved & regular & jnp.all(off >= -SOLVED)
    return single(
        x,
        jax.lax.stop_gradient(jnp.maximum(jnp.abs(x), scale)),
        accepted=kept,
        boundary=kept & jnp.any(off <= SOLVED),
        unresolved=solved & ~regular,
        residual=jnp.maximum(defect, jnp.maximum(-jnp.min(off, initial=0.0), 0.0)),
    )


def _positive(x):
    return jnp.where(x > 0, x, 1.0)
