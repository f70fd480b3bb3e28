"""The static contact problem: equilibrium, and the laws of contact and friction in displacements.

The unknowns are positions and reactions::

    K q = f + W_T^T lambda_T + W_N^T lambda_N
    0 <= g_N = gap + W_N q  _|_  lambda_N >= 0
    lambda_T in -mu N Sign(s),     s = W_T q - s_0

``s`` is the sliding displacement from a reference state. ``N`` is a given normal force or the
contact's own ``lambda_N``. Source: V. Janovsky, Numerical analysis of a lumped parameter friction
model, 2015, equation (1), whose ``u_nu <= 0`` is ``-g_N``.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.errors import ProblemError
from jfric.numerics.linear_algebra import matvec
from jfric.system.assembly import assemble
from jfric.system.elements import AbstractForce
from jfric.system.features import require_features
from jfric.system.piecewise import FORMS
from jfric.system.problem import Problem


class StaticProblem(eqx.Module):
    """Arrays of the problem above: ``n`` degrees of freedom, ``nt = nf + nu`` contacts.

    Friction elements with a given normal force come first (``nf``), then unilateral contacts
    (``nu``). Limits of friction: ``-c+ <= lambda_T <= c-`` with ``c = cap + mu lambda_N``; stick
    holds up to the static limits, sliding has the kinetic ones, at the velocity of the belt.
    """

    K: Float[Array, "n n"]
    f: Float[Array, " n"]
    W_T: Float[Array, "nt n"]
    W_N: Float[Array, "nu n"]
    #: Tangential positions in the reference state: ``s = W_T q - slip0``.
    slip0: Float[Array, " nt"]
    gap0: Float[Array, " nu"]
    #: Limits that do not depend on an unknown, for the two directions of sliding, then coefficients
    #: of the own normal force (zero for friction elements); static and kinetic.
    cap_static: Float[Array, "2 nt"]
    cap_kinetic: Float[Array, "2 nt"]
    mu_static: Float[Array, "2 nt"]
    mu_kinetic: Float[Array, "2 nt"]
    #: Velocity of the partner's surface along each tangent.
    belt: Float[Array, " nt"]
    q0: Float[Array, " n"]
    #: Contacts without a tangent.
    frictionless: Bool[Array, " nt"]
    unilateral: tuple[bool, ...] = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    #: Whether each contact has a tangent, as known before tracing.
    rubs: tuple[bool, ...] = eqx.field(static=True)

    @property
    def n_friction(self) -> int:
        """Number of friction elements with a given normal force."""
        return len(self.unilateral) - self.W_N.shape[0]

    def own_normal(self, lambda_n: Float[Array, " nu"]) -> Float[Array, " nt"]:
        """Normal reaction of each contact; zero for friction elements."""
        return jnp.concatenate([jnp.zeros((self.n_friction,), self.K.dtype), lambda_n])


def both_limits(pairs: Sequence[tuple], dtype) -> Float[Array, "2 nt"]:
    """Limits of friction (2, nt), first all forwards, from ``pairs`` (forwards, backwards) of each
    contact."""
    if not pairs:
        return jnp.zeros((2, 0), dtype)
    return jnp.stack([jnp.stack([jnp.asarray(p[i], dtype) for p in pairs]) for i in (0, 1)])


def static_problem(problem: Problem, t=None) -> StaticProblem:
    """The static problem with the loads at the time ``t`` [s] (default: the start).

    The reference state is the initial position of ``problem``.
    """
    problem = problem.resolved()
    mechanics = assemble(problem)
    dtype = mechanics.K.dtype
    start = jnp.asarray(problem.time.start, dtype)
    t = start if t is None else jnp.asarray(t, dtype)
    q0 = jnp.stack([jnp.asarray(problem.initial[d].q, dtype) for d in problem.dofs])
    z0, _ = mechanics.base_motion(start)
    z, _ = mechanics.base_motion(t)
    f = mechanics.f0 + matvec(mechanics.K_base, z)
    for direction, load in zip(mechanics.load_directions, mechanics.load_functions, strict=True):
        f = f + direction * load(t)
    nf, nu, nt = mechanics.n_friction, mechanics.n_unilateral, mechanics.n_contacts
    given = [jnp.asarray(force(t), dtype) for force in mechanics.normal_forces]
    fixed = jnp.stack([*given, *[jnp.zeros((), dtype)] * nu]) if nt else jnp.zeros((0,), dtype)
    own = jnp.arange(nt) >= nf
    static = both_limits([law.static() for law in mechanics.laws], dtype)
    belt = mechanics.belt_velocities(t)
    kinetic = both_limits(
        [law.kinetic(jnp.abs(v)) for law, v in zip(mechanics.laws, belt, strict=True)], dtype
    )
    return StaticProblem(
        K=mechanics.K,
        f=f,
        W_T=mechanics.W_T,
        W_N=mechanics.W_N,
        slip0=matvec(mechanics.W_T, q0) + matvec(mechanics.W_T_base, z0 - z),
        gap0=mechanics.gap0 + matvec(mechanics.W_N_base, z),
        cap_static=static * fixed,
        cap_kinetic=kinetic * fixed,
        mu_static=jnp.where(own, static, 0.0),
        mu_kinetic=jnp.where(own, kinetic, 0.0),
        belt=belt,
        q0=q0,
        frictionless=jnp.asarray(mechanics.frictionless, bool),
        unilateral=(False,) * nf + (True,) * nu,
        axes=mechanics.axes,
        names=mechanics.contact_names,
        rubs=tuple(not x for x in mechanics.frictionless),
    )


def require_static(problem: Problem) -> None:
    """Raise :class:`ProblemError` for elements whose force is not linear in the position."""
    require_features(problem, "a static problem", ("belts", "events"))
    for section in problem.elements:
        for where, element in problem.labelled(section).items():
            if not isinstance(element, AbstractForce) and section not in FORMS:
                continue
            raise ProblemError(
                f"{where}: equilibria are computed for linear springs, contacts and friction, "
                f"found a {type(element).__name__}; use springs and contacts, or follow the load "
                "with the solver quasi-static"
            )


def require_no_belt(problem: Problem) -> None:
    """Raise :class:`ProblemError` for belts: Coulomb's law is applied to displacements."""
    for where, element in problem.labelled("friction", "contact").items():
        if element.belt is not None:
            raise ProblemError(
                f"{where}.belt: the static problem from a reference state has no velocities, "
                'found a belt; ask for the rest states (meaning="rest")'
            )
