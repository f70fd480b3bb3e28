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

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.errors import ProblemError
from jfric.numerics.linear_algebra import matvec
from jfric.results.modes import Mode
from jfric.system.assembly import assemble
from jfric.system.elements import AbstractForce
from jfric.system.features import require_features
from jfric.system.piecewise import FORMS
from jfric.system.problem import Problem

#: Size, relative to the largest force or length, below which a value counts as zero where modes
#: meet.
AT_CHANGE = 1e-9


class Reading(NamedTuple):
    """Sliding distances (nt,), gaps (nu,), forces, and limits of friction (2, nt), static and
    kinetic, for both directions of sliding."""

    slip: Any
    gap: Any
    lambda_t: Any
    lambda_n: Any
    static: Any
    kinetic: Any


class Parts(NamedTuple):
    """Numbers of positions, friction forces and normal forces among unknowns; the others, at their
    end, are reactions of joints."""

    n: int
    nt: int
    nu: int

    def of(self, x: Any) -> tuple[Any, Any, Any, Any]:
        """``(q, lambda_T, lambda_N, lambda_J)`` of unknowns ``x`` (..., m)."""
        n, slides = self.n, self.n + self.nt
        end = slides + self.nu
        return x[..., :n], x[..., n:slides], x[..., slides:end], x[..., end:]


def possible_modes(rubs: Sequence[bool], nf: int) -> list[tuple[Mode, ...]]:
    """The modes that each contact can have; ``rubs``: whether it has a tangent; those from number
    ``nf`` on can open."""
    with_friction = (Mode.STICK, Mode.SLIP_POS, Mode.SLIP_NEG)
    return [
        (*((Mode.OPEN,) if i >= nf else ()), *(with_friction if own else (Mode.CLOSED,)))
        for i, own in enumerate(rubs)
    ]


def as_table(modes: Sequence[tuple[Mode, ...]], contacts: int) -> np.ndarray:
    """Combinations of modes as an array (c, contacts)."""
    return np.asarray(modes, np.int32).reshape(len(modes), contacts)


def modes_of(
    reading: Reading, rubs: tuple[bool, ...], length: float, force: float
) -> list[tuple[Mode, ...]]:
    """The possible modes of each contact; several where modes meet.

    ``rubs`` (nt,): contacts that have a tangent; ``length``, ``force``: sizes that count as zero.
    """
    slip, lambda_t = np.asarray(reading.slip), np.asarray(reading.lambda_t)
    upper, lower = np.asarray(reading.static)
    nf = len(rubs) - len(reading.gap)
    result = []
    for i, has_tangent in enumerate(rubs):
        found = []
        unilateral = i >= nf
        if unilateral and reading.lambda_n[i - nf] <= force and abs(lambda_t[i]) <= force:
            found.append(Mode.OPEN)
        if not unilateral or abs(reading.gap[i - nf]) <= length:
            if not has_tangent:
                found.append(Mode.CLOSED)
            else:
                if abs(slip[i]) <= length:
                    found.append(Mode.STICK)
                if slip[i] >= -length and abs(lambda_t[i] + upper[i]) <= force:
                    found.append(Mode.SLIP_POS)
                if slip[i] <= length and abs(lambda_t[i] - lower[i]) <= force:
                    found.append(Mode.SLIP_NEG)
        result.append(tuple(found))
    return result


def combinations(
    choices: Sequence[Sequence[Mode]], opposed: Sequence[tuple[int, int]] = ()
) -> list[tuple[Mode, ...]]:
    """All combinations of the modes ``choices`` of each contact, the first varying slowest, in
    which one of the two ``opposed`` sides of each joint carries."""
    found = itertools.product(*choices)
    return [c for c in found if all((c[i] == Mode.OPEN) != (c[j] == Mode.OPEN) for i, j in opposed)]


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

    @property
    def parts(self) -> Parts:
        """Numbers of the unknowns of each kind."""
        return Parts(*map(len, (self.K, self.W_T, self.W_N)))

    def own_normal(self, lambda_n: Float[Array, " nu"]) -> Float[Array, " nt"]:
        """Normal reaction of each contact; zero for friction elements."""
        return jnp.concatenate([jnp.zeros((self.n_friction,), self.K.dtype), lambda_n])

    def reading(self, x: Float[Array, " m"]) -> tuple[Float[Array, " n"], Reading]:
        """Forces that are missing for the balance in the state ``x``, and its contacts."""
        q, lambda_t, lambda_n, _ = self.parts.of(x)
        force = self.K @ q - self.f - (self.W_T.T @ lambda_t + self.W_N.T @ lambda_n)
        normal = self.own_normal(lambda_n)
        return force, Reading(
            slip=self.W_T @ q - self.slip0,
            gap=self.gap0 + self.W_N @ q,
            lambda_t=lambda_t,
            lambda_n=lambda_n,
            static=self.cap_static + self.mu_static * normal,
            kinetic=self.cap_kinetic + self.mu_kinetic * normal,
        )


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


class Equations(NamedTuple):
    """Residuals and margins in given modes; ``used`` marks the margins that the modes have.

    Margins come in three rows of ``nt``: the first, second and third of each contact.
    """

    residual: Float[Array, " m"]
    margin: Float[Array, " g"]
    used: Bool[Array, " g"]


def in_modes(
    force: Float[Array, " n"],
    r: Reading,
    mode: Int[Array, " nt"],
    phi: Float[Array, " k"] | None = None,
    opposed: Sequence[tuple[int, int]] = (),
) -> Equations:
    """Equations and inequalities of the modes ``mode`` at a state.

    ``force``: forces that are not balanced; ``phi``: values of joints; ``opposed``: contacts on
    both sides of a joint, of which one carries. Residuals are zero::

        all     force                     slip    lambda_T + s (limit of sliding)
        stick   s                         closed  g_N
        joints  phi                       open    lambda_N, lambda_T

    and the modes are accepted where margins are not negative::

        stick   c+ + lambda_T,  c- - lambda_T,  lambda_N        slip  s (sliding),  lambda_N
        open    g_N                                             closed without friction  lambda_N
    """
    nt, nu = r.slip.shape[0], r.gap.shape[0]
    nf = nt - nu
    stick, is_open, side = mode == Mode.STICK, mode == Mode.OPEN, side_of(mode)
    unilateral = np.arange(nt) >= nf
    kinetic = jnp.where(side < 0, r.kinetic[1], r.kinetic[0])
    tangent = jnp.where(stick, r.slip, r.lambda_t + side * kinetic)
    normal = jnp.where(is_open[nf:], r.lambda_n, r.gap)
    none = jnp.zeros((nf,), force.dtype)
    gap, pressed = jnp.concatenate([none, r.gap]), jnp.concatenate([none, r.lambda_n])
    first = jnp.where(stick, r.static[0] + r.lambda_t, jnp.where(is_open, gap, side * r.slip))
    second = jnp.where(stick, r.static[1] - r.lambda_t, pressed)
    # The side of a joint that does not carry also has a gap of zero.
    beside = np.isin(np.arange(nt), [i for pair in opposed for i in pair])
    looks = stick | (side != 0) | (is_open & ~beside)
    used = jnp.concatenate([looks, stick | (unilateral & ~is_open), stick & unilateral])
    margin = jnp.where(used, jnp.concatenate([first, second, pressed]), 1.0)
    parts = [force, tangent, normal] if phi is None else [force, tangent, normal, phi]
    return Equations(jnp.concatenate(parts), margin, jax.lax.stop_gradient(used))


def with_derivatives(
    equations: Callable[[Array], Equations], x: Float[Array, " m"]
) -> tuple[Equations, Float[Array, "m m"], Float[Array, "g m"]]:
    """The ``equations`` at ``x``, and the derivatives of residuals and margins."""

    def at(x):
        found = equations(x)
        return (found.residual, found.margin), found

    (A, G), found = jax.jacfwd(at, has_aux=True)(x)
    return found, A, G


class ModeEquations(NamedTuple):
    """Equations that are linear: ``A x = b`` and ``margins = G x + h``, see :class:`Equations`."""

    A: Float[Array, "m m"]
    b: Float[Array, " m"]
    G: Float[Array, "g m"]
    h: Float[Array, " g"]
    used: Bool[Array, " g"]


def mode_equations(problem: StaticProblem, mode: Int[Array, " nt"]) -> ModeEquations:
    """Equations and inequalities (:func:`in_modes`) of the modes ``mode`` for the unknowns
    ``x = (q, lambda_T, lambda_N)``."""
    zero = jnp.zeros((sum(problem.parts),), problem.K.dtype)
    found, A, G = with_derivatives(lambda x: in_modes(*problem.reading(x), mode), zero)
    return ModeEquations(A, -found.residual, G, found.margin, found.used)


def side_of(mode: Int[Array, " nt"]) -> Float[Array, " nt"]:
    """Side to which each contact slides: +1, -1, or 0."""
    zero = jnp.zeros(mode.shape)
    return jnp.where(mode == Mode.SLIP_POS, 1.0, jnp.where(mode == Mode.SLIP_NEG, -1.0, zero))


def static_residual(problem: StaticProblem, x: Float[Array, " m"]) -> Float[Array, ""]:
    """Largest relative violation of equilibrium, contact and friction; zero for an exact state.

    A certificate, whoever computed ``x``, which does not use modes: for each contact the violation
    of every admissible state is measured, and the smallest counts. Forces are divided by the
    largest force, lengths by the largest length.
    """
    p, nf = problem, problem.n_friction
    q = x[: p.K.shape[0]]
    unbalanced, (slip, gap, lambda_t, lambda_n, static, kinetic) = p.reading(x)
    force = _largest(p.f, jnp.abs(p.K) @ jnp.abs(q), lambda_t, lambda_n)
    # If nothing moves, rounding errors are no lengths: use the load over the largest stiffness.
    stiffest = jnp.max(jnp.abs(p.K), initial=0.0)
    least = jnp.where(stiffest > 0, force / jnp.where(stiffest > 0, stiffest, 1.0), 0.0)
    length = _largest(q, p.gap0, p.slip0, p.q0, least[None])
    unbalanced = jnp.max(jnp.abs(unbalanced), initial=0.0) / force
    slip, gap = slip / length, gap / length
    outside = jnp.maximum(-lambda_t - static[0], lambda_t - static[1])
    stick = jnp.maximum(jnp.abs(slip), jnp.maximum(outside, 0.0) / force)
    positive = jnp.maximum(jnp.maximum(-slip, 0.0), jnp.abs(lambda_t + kinetic[0]) / force)
    negative = jnp.maximum(jnp.maximum(slip, 0.0), jnp.abs(lambda_t - kinetic[1]) / force)
    law = jnp.minimum(stick, jnp.minimum(positive, negative))
    law = jnp.where(p.frictionless, jnp.abs(lambda_t) / force, law)
    pulls = jnp.maximum(-lambda_n, 0.0) / force
    closed = jnp.maximum(law[nf:], jnp.maximum(jnp.abs(gap), pulls))
    carried = jnp.maximum(jnp.abs(lambda_n), jnp.abs(lambda_t[nf:])) / force
    apart = jnp.maximum(jnp.maximum(-gap, 0.0), carried)
    violation = jnp.concatenate([law[:nf], jnp.minimum(closed, apart)])
    return jnp.maximum(unbalanced, jnp.max(violation, initial=0.0))


def _largest(*parts):
    size = jnp.max(jnp.concatenate([jnp.abs(part) for part in parts]), initial=0.0)
    return jnp.where(size > 0, size, 1.0)
