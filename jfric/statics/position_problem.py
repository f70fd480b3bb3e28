"""The static problem of a mechanism, whose directions and forces depend on its position.

The unknowns are ``x = (q, lambda_T, lambda_N, lambda_J)``::

    f(t, q) + R_T^T lambda_T + W_N^T lambda_N + J^T lambda_J = 0,    phi(t, q) = 0
    0 <= g_N(t, q)  _|_  lambda_N >= 0
    lambda_T in -mu N Sign(s),     s = g_T(t, q) - g_T(t, q_0)

``s`` is the sliding distance of a contact from the reference state ``q_0``, the initial position.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.errors import ProblemError
from jfric.numerics.linear_algebra import matvec
from jfric.results.modes import Mode
from jfric.statics.held_position import AT_REST, require_held
from jfric.statics.reading import Reading
from jfric.statics.static_mode_equations import side_of
from jfric.statics.static_problem import both_limits
from jfric.system.assembly import assemble, displacement_functions
from jfric.system.forces import applied_force, normal_forces_at
from jfric.system.joint_equations import joint_equations
from jfric.system.mechanics import Mechanics
from jfric.system.piecewise import FORMS
from jfric.system.problem import Problem
from jfric.system.start import started
from jfric.system.state_function import Rate

#: Name of this computation in messages.
WHO = "the static problem of a mechanism from a reference state"


class Facts(NamedTuple):
    """Structure of a problem: numbers of unknowns, names, and kinds of contacts and axes."""

    n: int
    nf: int
    nu: int
    joints: tuple[str, ...]
    axes: tuple[str, ...]
    names: tuple[str, ...]
    #: Whether each contact has a tangent.
    rubs: tuple[bool, ...]
    #: Contacts on both sides of a joint with friction, of which one carries.
    opposed: tuple[tuple[int, int], ...]
    #: Which degrees of freedom (n,) are angles.
    turns: tuple[bool, ...]

    @property
    def nt(self) -> int:
        """Number of contacts."""
        return len(self.names)


def facts_of(problem: Problem, mechanics: Mechanics) -> Facts:
    """The structure of ``problem``, assembled as ``mechanics``."""
    problem = problem.resolved()
    return Facts(
        n=mechanics.n,
        nf=mechanics.n_friction,
        nu=mechanics.n_unilateral,
        joints=tuple(e.name for e in joint_equations(problem) if not e.rubs),
        axes=mechanics.axes,
        names=mechanics.contact_names,
        rubs=tuple(not x for x in mechanics.frictionless),
        opposed=mechanics.opposed,
        turns=tuple(kind == "rotation" for kind in problem.dofs.values()),
    )


class AtRest(NamedTuple):
    """A mechanism with loads as they are at the time ``t``, and its reference position."""

    mechanics: Mechanics
    t: Float[Array, ""]
    q0: Float[Array, " n"]
    #: Places of the contacts in the reference state: ``s = g_T(t, q) - slip0``.
    slip0: Float[Array, " nt"]


def at_rest(problem: Problem, t=None) -> AtRest:
    """``problem`` under the loads at ``t`` [s], by default at its start."""
    problem = started(problem.resolved())
    mechanics = assemble(problem)
    start, q0, _ = problem.start()
    t = start if t is None else jnp.asarray(t, q0.dtype)
    base = mechanics.base_motion(start)[0] - mechanics.base_motion(t)[0]
    slip0 = mechanics.displacements(t, q0)[: mechanics.n_contacts]
    return AtRest(mechanics, t, q0, slip0 + matvec(mechanics.W_T_base, base))


def forces_at(rest: AtRest, q: Float[Array, " n"]) -> Float[Array, " n"]:
    """All forces except those of contacts and joints."""
    return applied_force(rest.mechanics, rest.t, q, jnp.zeros_like(q))


def state_equations(
    rest: AtRest, x: Float[Array, " m"]
) -> tuple[Float[Array, " n"], Float[Array, " k"], Reading]:
    """Unbalanced forces, values of joints, and readings of contacts at the state ``x``."""
    mechanics, t = rest.mechanics, rest.t
    n, nt, nu = mechanics.n, mechanics.n_contacts, mechanics.n_unilateral
    q, lambda_t, lambda_n, lambda_j = jnp.split(x, np.cumsum([n, nt, nu]))
    still = jnp.zeros_like(q)
    R_T, W_N = _directions(mechanics, t, q)
    force = forces_at(rest, q) + matvec(R_T.T, lambda_t) + matvec(W_N.T, lambda_n)
    phi, varying = lambda_j, mechanics.varying
    if varying is not None and varying.joints is not None and varying.joints.values is not None:
        joints = varying.joints.values
        force = force + matvec(jax.jacfwd(joints, argnums=1)(t, q).T, lambda_j)
        phi = joints(t, q)
    slip = mechanics.displacements(t, q)[:nt] - rest.slip0
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


class Equations(NamedTuple):
    """Residuals and margins in given modes, as of :mod:`jfric.statics.static_mode_equations`."""

    residual: Float[Array, " m"]
    margin: Float[Array, " g"]
    used: Bool[Array, " g"]


def position_equations(
    rest: AtRest, facts: Facts, mode: Int[Array, " nt"], x: Float[Array, " m"]
) -> Equations:
    """Equations and inequalities of the modes ``mode`` at the state ``x``."""
    force, phi, r = state_equations(rest, x)
    nf, nt = facts.nf, facts.nt
    stick, is_open, side = mode == Mode.STICK, mode == Mode.OPEN, side_of(mode)
    unilateral = np.arange(nt) >= nf
    kinetic = jnp.where(side < 0, r.kinetic[1], r.kinetic[0])
    tangent = jnp.where(stick, r.slip, r.lambda_t + side * kinetic)
    normal = jnp.where(is_open[nf:], r.lambda_n, r.gap)
    none = jnp.zeros((nf,), x.dtype)
    gap, pressed = jnp.concatenate([none, r.gap]), jnp.concatenate([none, r.lambda_n])
    first = jnp.where(stick, r.static[0] + r.lambda_t, jnp.where(is_open, gap, side * r.slip))
    second = jnp.where(stick, r.static[1] - r.lambda_t, pressed)
    # The side of a joint that does not carry also has a gap of zero.
    beside = np.isin(np.arange(nt), [i for pair in facts.opposed for i in pair])
    looks = stick | (side != 0) | (is_open & ~beside)
    used = jnp.concatenate([looks, stick | (unilateral & ~is_open), stick & unilateral])
    margin = jnp.concatenate([first, second, pressed])
    return Equations(
        jnp.concatenate([force, tangent, normal, phi]),
        jnp.where(used, margin, 1.0),
        jax.lax.stop_gradient(used),
    )


def linearise(
    rest: AtRest, facts: Facts, mode: Int[Array, " nt"], x: Float[Array, " m"]
) -> tuple[Equations, Float[Array, "m m"], Float[Array, "g m"]]:
    """The equations at ``x``, and the derivatives of residuals and margins."""

    def at(x):
        found = position_equations(rest, facts, mode, x)
        return (found.residual, found.margin), found

    (A, G), found = jax.jacfwd(at, has_aux=True)(x)
    return found, A, G


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
