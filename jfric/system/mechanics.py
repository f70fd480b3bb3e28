"""The assembled equations of motion: arrays that solvers work with.

Between events::

    M dv/dt = f(t, q, v) + W_N^T lambda_N + R_T^T lambda_T

``f`` holds springs, dampers, piecewise-linear elements in their segment, loads and nonlinear
forces. Contacts are ordered: friction elements with a given normal force first, then unilateral
contacts; ``W_T`` has a row for each, ``W_N`` one for each unilateral contact. Bases are
coordinates with prescribed motion: every direction has a part on them. ``R_T`` is ``W_T`` but for
friction elements with a ``reaction`` of their own.

Where mass matrix and directions depend on position (:mod:`jfric.system.varying`), these are those
of one instant: of the start, or those that :meth:`Mechanics.at` gives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.linear_algebra import UNROLLED_INVERSE, eliminate, matvec
from jfric.system.description import AbstractProblem, element_label
from jfric.system.elements import AbstractForce, Gap, Lagrangian
from jfric.system.functions import AbstractFunction
from jfric.system.laws import AbstractLaw, Coulomb
from jfric.system.piecewise import PiecewiseElements, assemble_piecewise
from jfric.system.state_function import StateFunction, bound_to
from jfric.system.varying import Energies, Varying, linear_displacement


class Mechanics(eqx.Module):
    """Arrays and functions of one system; see the module's equation.

    ``n`` degrees of freedom, ``nb`` bases, ``nt = nf + nu`` contacts of which ``nu`` unilateral.
    """

    M: Float[Array, "n n"]
    M_inverse: Float[Array, "n n"]
    C: Float[Array, "n n"]
    K: Float[Array, "n n"]
    #: Constant force of preloaded springs.
    f0: Float[Array, " n"]
    #: Forces from the motion of the bases: ``K_base z + C_base z'``.
    K_base: Float[Array, "n nb"]
    C_base: Float[Array, "n nb"]
    base_functions: tuple[AbstractFunction, ...]
    load_directions: Float[Array, "nl n"]
    load_functions: tuple[AbstractFunction, ...]
    W_T: Float[Array, "nt n"]
    W_T_base: Float[Array, "nt nb"]
    #: ``R_T`` where it differs from ``W_T``, else None.
    reactions: Float[Array, "nt n"] | None
    belts: tuple[AbstractFunction | None, ...]
    laws: tuple[AbstractLaw, ...]
    #: Normal forces of the friction elements (nf of them).
    normal_forces: tuple[AbstractFunction, ...]
    W_N: Float[Array, "nu n"]
    W_N_base: Float[Array, "nu nb"]
    gap0: Float[Array, " nu"]
    e: Float[Array, " nu"]
    piecewise: PiecewiseElements
    nonlinear: tuple[AbstractForce, ...]
    axes: tuple[str, ...] = eqx.field(static=True)
    contact_names: tuple[str, ...] = eqx.field(static=True)
    #: Contacts without a tangent direction.
    frictionless: tuple[bool, ...] = eqx.field(static=True)
    #: Unilateral contacts whose impacts carry no tangential impulse.
    smooth_impact: tuple[bool, ...] = eqx.field(static=True)
    #: For each contact, whether its friction acts along another direction than that of sliding.
    redirected: tuple[bool, ...] = eqx.field(static=True)
    #: For each contact, the one degree of freedom whose velocity is the sliding velocity, or None.
    single_tangent: tuple[int | None, ...] = eqx.field(static=True)
    #: For each contact between two degrees of freedom, these two, or None.
    pair_tangent: tuple[tuple[int, int] | None, ...] = eqx.field(static=True)
    #: For each unilateral contact, the one degree of freedom that its normal acts on, or None.
    single_normal: tuple[int | None, ...] = eqx.field(static=True)
    #: For tangents, then normals, the one degree of freedom that they act on, whatever bases they
    #: act on, or None.
    only_dof: tuple[int | None, ...] = eqx.field(static=True)
    #: What depends on position, or None.
    varying: Varying | None = None
    #: Of tangents, then normals, where something depends on position: relative velocity at rest,
    #: and relative acceleration along the motion without acceleration.
    rate: Any = None
    bias: Any = None

    def at(self, t, q, v) -> Mechanics:
        """The same as seen at one instant: gaps are ``gap0 + W_N q`` there."""
        varying = self.varying
        if varying is None:
            return self
        M, nt = varying.mass(t, q), self.n_contacts
        W = jnp.concatenate([self.W_T, self.W_N])
        nothing = jnp.zeros((W.shape[0],), q.dtype)
        rate, bias, gap0, reactions = nothing, nothing, self.gap0, self.reactions
        if varying.rows:
            now, rows = varying.at(t, q, v), np.asarray(varying.rows)
            W, rate = W.at[rows].set(now.W), rate.at[rows].set(now.rate)
            bias = bias.at[rows].set(now.bias)
            normal = rows >= nt
            fixed = (now.value - matvec(now.W, q))[normal]
            gap0 = gap0.at[rows[normal] - nt].set(fixed)
            if reactions is not None:
                reactions = reactions.at[rows[~normal]].set(now.W[~normal])
        return replace(
            self,
            M=M,
            M_inverse=_inverse(M),
            W_T=W[:nt],
            W_N=W[nt:],
            reactions=reactions,
            gap0=gap0,
            rate=rate,
            bias=bias,
        )

    def displacements(self, t, q) -> Float[Array, " m"]:
        """Along the tangents and gaps, without the motion of bases and belts."""
        fixed = [matvec(self.W_T, q), self.gap0 + matvec(self.W_N, q)]
        found, varying = jnp.concatenate(fixed), self.varying
        if varying is None or not varying.rows:
            return found
        return found.at[np.asarray(varying.rows)].set(varying.values(t, q))

    @property
    def R_T(self) -> Float[Array, "nt n"]:
        """Directions in which friction acts on the degrees of freedom."""
        return self.W_T if self.reactions is None else self.reactions

    @property
    def n(self) -> int:
        """Number of degrees of freedom."""
        return len(self.axes)

    @property
    def n_friction(self) -> int:
        """Number of friction elements with a given normal force."""
        return len(self.normal_forces)

    @property
    def n_unilateral(self) -> int:
        """Number of unilateral contacts."""
        return self.W_N.shape[0]

    @property
    def n_contacts(self) -> int:
        """Number of contacts of both kinds."""
        return len(self.laws)

    @property
    def has_linear_modes(self) -> bool:
        """Whether the equations in every mode are linear with constant coefficients."""
        varies = self.nonlinear or self.varying is not None
        return not varies and all(law.velocity_independent for law in self.laws)

    def functions(self) -> list[AbstractFunction]:
        """All functions of time that the equations hold."""
        belts = [b for b in self.belts if b is not None]
        return [*self.base_functions, *self.load_functions, *belts, *self.normal_forces]

    def breakpoints(self) -> Float[Array, " b"]:
        """Times that no step may straddle, unsorted."""
        return jnp.concatenate([jnp.zeros((0,)), *(f.breakpoints() for f in self.functions())])

    def frequency(self):
        """Largest angular frequency of the functions of time [rad/s]."""
        result = jnp.zeros(())
        for function in self.functions():
            result = jnp.maximum(result, function.frequency())
        return result

    def base_motion(self, t):
        """Displacement and velocity of the bases, each (nb,)."""
        if not self.base_functions:
            return jnp.zeros((0,)), jnp.zeros((0,))
        dtype = self.K.dtype
        return (
            jnp.stack([jnp.asarray(f(t), dtype) for f in self.base_functions]),
            jnp.stack([jnp.asarray(f.derivative(t), dtype) for f in self.base_functions]),
        )

    def gaps(self, t, q) -> Float[Array, " nu"]:
        """Gaps ``g_N`` of the unilateral contacts [m]."""
        z, _ = self.base_motion(t)
        return self.displacements(t, q)[self.n_contacts :] + matvec(self.W_N_base, z)

    def belt_velocities(self, t) -> Float[Array, " nt"]:
        """Velocity of the partner's surface along each tangent, motion of bases included."""
        _, z_dot = self.base_motion(t)
        zero = jnp.zeros_like(self.K[0, 0])
        belts = [zero if b is None else b(t) for b in self.belts]
        own = jnp.stack(belts) if belts else jnp.zeros((0,))
        if self.rate is not None:
            own = own - self.rate[: self.n_contacts]
        return own - matvec(self.W_T_base, z_dot)

    def sliding_velocities(self, t, v) -> Float[Array, " nt"]:
        """Sliding velocities ``gamma_T = W_T v - v_belt`` [m/s] with the directions as they are."""
        return matvec(self.W_T, v) - self.belt_velocities(t)

    def sliding_at(self, t, q, v) -> Float[Array, " nt"]:
        """The same with the directions at the positions ``q``."""
        return self.at(t, q, v).sliding_velocities(t, v)


def mass_matrix(problem: AbstractProblem) -> Float[Array, "n n"]:
    """Mass matrix of a resolved problem, at its start where it depends on position."""
    result = _fixed_mass(problem)
    t, q = _start(problem)
    return sum((energies.mass(t, q) for energies in _energies(problem)), result)


def _fixed_mass(problem: AbstractProblem) -> Float[Array, "n n"]:
    axes = problem.axes
    result = _matrix(problem.matrices.M, len(axes))
    for element in problem.section("mass").values():
        w = element.direction.vector(axes)
        result = result + element.m * jnp.outer(w, w)
    return result


def _start(problem: AbstractProblem):
    """Time and positions at the start."""
    dtype = jnp.result_type(float)
    q = [jnp.asarray(problem.initial[dof].q, dtype) for dof in problem.dofs]
    return jnp.asarray(problem.time.start, dtype), jnp.stack(q)


def energies_of(problem: AbstractProblem, element: Lagrangian) -> Energies:
    """The energies of ``element``, with the parameters of ``problem``."""
    given = element.kinetic, element.potential, element.dissipation
    return Energies(*(None if what is None else bound_to(problem, what) for what in given))


def _energies(problem: AbstractProblem) -> list[Energies]:
    return [energies_of(problem, x) for x in problem.section("lagrangian").values()]


def displacement_functions(problem: AbstractProblem) -> dict[str, tuple[int, StateFunction]]:
    """Displacements of a resolved problem that are functions: row among tangents, then normals, and
    function, by the path of the field."""
    friction, contacts = problem.section("friction"), problem.section("contact")
    nf, nt = len(friction), len(friction) + len(contacts)
    fields: list[tuple[str, int, Any]] = [
        (f"{element_label('friction', k)}.sliding", i, f.sliding)
        for i, (k, f) in enumerate(friction.items())
    ]
    for i, (name, c) in enumerate(contacts.items()):
        label = element_label("contact", name)
        gap = c.gap.function if isinstance(c.gap, Gap) else None
        fields += [(f"{label}.sliding", nf + i, c.sliding), (f"{label}.gap", nt + i, gap)]
    return {k: (row, bound_to(problem, w)) for k, row, w in fields if w is not None}


class WithContacts(eqx.Module):
    """Something made from a :class:`Mechanics`, with the usual symbols for numbers of contacts."""

    mechanics: eqx.AbstractVar[Mechanics]

    @property
    def nt(self) -> int:
        """Number of contacts."""
        return self.mechanics.n_contacts

    @property
    def nf(self) -> int:
        """Number of friction elements with a given normal force."""
        return self.mechanics.n_friction

    @property
    def nu(self) -> int:
        """Number of unilateral contacts."""
        return self.mechanics.n_unilateral


def assemble(problem: AbstractProblem) -> Mechanics:
    """Assemble ``problem`` (expressions are resolved first)."""
    problem = problem.resolved()
    axes, bases = problem.axes, problem.bases
    n, nb = len(axes), len(bases)
    both = axes + bases
    # Rows for the degrees of freedom, columns for degrees of freedom and bases.
    K = jnp.zeros((n, n + nb)).at[:, :n].set(_matrix(problem.matrices.K, n))
    C = jnp.zeros((n, n + nb)).at[:, :n].set(_matrix(problem.matrices.C, n))
    f0 = jnp.zeros((n,))
    for spring in problem.section("spring").values():
        w = spring.direction.vector(both)
        K = K + spring.k * jnp.outer(w[:n], w)
        f0 = f0 + spring.k * spring.x0 * w[:n]
    for damper in problem.section("damper").values():
        w = damper.direction.vector(both)
        C = C + damper.c * jnp.outer(w[:n], w)
    friction = problem.section("friction")
    contacts = problem.section("contact")
    tangents = [f.direction for f in friction.values()] + [c.tangent for c in contacts.values()]
    normals = [c.normal for c in contacts.values()]
    W_T, W_N = (
        _rows([None if d is None else d.vector(both) for d in side], n + nb)
        for side in (tangents, normals)
    )
    gap0 = _stack([jnp.zeros(()) if isinstance(c.gap, Gap) else c.gap for c in contacts.values()])
    # What is found to be linear joins the constant matrices.
    M, start = _fixed_mass(problem), _start(problem)
    curved, forces = [], []
    for energies in _energies(problem):
        if energies.has_constant_mass():
            M = M + energies.mass(*start)
        else:
            curved.append(energies)
        if energies.has_linear_force():
            rest = jnp.zeros((n,))
            along_q, along_v = (
                jax.jacfwd(energies.force, argnums=i)(axes, start[0], rest, rest) for i in (2, 3)
            )
            K, C = K.at[:, :n].add(-along_q), C.at[:, :n].add(-along_v)
            f0 = f0 + energies.force(axes, start[0], rest, rest)
        else:
            forces.append(energies)
    displacements = {}
    for label, (row, g) in displacement_functions(problem).items():
        if not linear_displacement(g):
            displacements[label] = (row, g)
            continue
        rest, nt = jnp.zeros((n,)), W_T.shape[0]
        w = jax.jacfwd(g, argnums=1)(start[0], rest)
        if row < nt:
            W_T = W_T.at[row, :n].set(w)
        else:
            W_N, gap0 = W_N.at[row - nt, :n].set(w), gap0.at[row - nt].set(g(start[0], rest))
    varying = None
    if curved or displacements:
        varying = Varying(
            M,
            tuple(curved),
            tuple(g for _, g in displacements.values()),
            rows=tuple(row for row, _ in displacements.values()),
            labels=(*(["lagrangian.kinetic"] if curved else []), *displacements),
        )
    loads = problem.section("load").values()
    nonlinear = tuple(
        e
        for group in problem.elements.values()
        for e in group.values()
        if isinstance(e, AbstractForce)
    )
    nonlinear += tuple(forces)
    found = Mechanics(
        M=M,
        M_inverse=_inverse(M),
        C=C[:, :n],
        K=K[:, :n],
        f0=f0,
        K_base=-K[:, n:],
        C_base=-C[:, n:],
        base_functions=tuple(b.displacement for b in problem.section("base").values()),
        load_directions=_rows([load.direction.vector(axes) for load in loads], n),
        load_functions=tuple(load.F for load in loads),
        W_T=W_T[:, :n],
        W_T_base=W_T[:, n:],
        reactions=_reactions(friction.values(), W_T[:, :n], axes),
        belts=tuple(e.belt for e in (*friction.values(), *contacts.values())),
        laws=tuple(
            [f.coefficients for f in friction.values()]
            + [c.law if c.law is not None else Coulomb(0.0) for c in contacts.values()]
        ),
        normal_forces=tuple(f.normal_force for f in friction.values()),
        W_N=W_N[:, :n],
        W_N_base=W_N[:, n:],
        gap0=gap0,
        e=_stack([c.e for c in contacts.values()]),
        piecewise=assemble_piecewise(problem),
        nonlinear=nonlinear,
        axes=axes,
        contact_names=tuple(
            [element_label("friction", k) for k in friction]
            + [element_label("contact", k) for k in contacts]
        ),
        frictionless=tuple([False] * len(friction) + [c.frictionless for c in contacts.values()]),
        redirected=tuple([f.redirected for f in friction.values()] + [False] * len(contacts)),
        smooth_impact=tuple(c.impact == "none" for c in contacts.values()),
        single_tangent=tuple(_single(d, axes) for d in tangents),
        pair_tangent=tuple(_pair(d, axes) for d in tangents),
        single_normal=tuple(_single(d, axes) for d in normals),
        only_dof=tuple(_only(d, axes) for d in (*tangents, *normals)),
        varying=varying,
    )
    if varying is None:
        return found
    v = jnp.stack([jnp.asarray(problem.initial[dof].v, M.dtype) for dof in problem.dofs])
    return found.at(*start, v)


def _reactions(friction, W_T, axes):
    """Rows of ``R_T``, or None where all are those of ``W_T``."""
    if not any(f.redirected for f in friction):
        return None
    own = [
        f.reaction.vector(axes) if f.redirected else w for f, w in zip(friction, W_T, strict=False)
    ]
    return jnp.concatenate([jnp.stack(own), W_T[len(own) :]])


def _single(direction, axes) -> int | None:
    """Index of the only coordinate of ``direction`` if it is a degree of freedom."""
    if direction is None or not direction.is_single or direction.names[0] not in axes:
        return None
    return axes.index(direction.names[0])


def _only(direction, axes) -> int | None:
    """Index of the only degree of freedom that ``direction`` has a part along."""
    dofs = [] if direction is None else [name for name in direction.names if name in axes]
    return axes.index(dofs[0]) if len(dofs) == 1 else None


def _pair(direction, axes) -> tuple[int, int] | None:
    """Indices of the two degrees of freedom whose difference ``direction`` is."""
    if direction is None or direction.signs != (-1, 1):
        return None
    if any(name not in axes for name in direction.names):
        return None
    return axes.index(direction.names[0]), axes.index(direction.names[1])


def _matrix(entries, n: int):
    if entries is None:
        return jnp.zeros((n, n))
    if isinstance(entries, (tuple, list)):
        return jnp.stack([jnp.stack([jnp.asarray(x) for x in row]) for row in entries])
    return jnp.asarray(entries)


def _inverse(M):
    """Inverse of the mass matrix, symmetric and positive definite.

    Elimination written out for small ones: it gives exact reciprocals where the matrix is diagonal,
    and the library's routine takes long to compile.
    """
    if M.shape[0] <= UNROLLED_INVERSE:
        return eliminate(M, 0.0).inverse
    diagonal = jnp.diagonal(M)
    is_diagonal = jnp.all(jnp.where(jnp.eye(M.shape[0], dtype=bool), 0.0, M) == 0.0)
    safe = jnp.where(is_diagonal, jnp.eye(M.shape[0]), M)
    return jnp.where(is_diagonal, jnp.diag(1.0 / diagonal), jnp.linalg.inv(safe))


def _rows(rows: list, width: int):
    zero = jnp.zeros((width,))
    return jnp.stack([zero if r is None else r for r in rows]) if rows else jnp.zeros((0, width))


def _stack(values: list):
    return jnp.stack(values) if values else jnp.zeros((0,))
