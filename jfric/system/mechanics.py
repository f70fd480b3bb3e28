"""The assembled equations of motion: arrays that solvers work with.

Between events::

    M dv/dt = f(t, q, v) + W_N^T lambda_N + R_T^T lambda_T

``f`` holds springs, dampers, piecewise-linear elements in their segment, loads and nonlinear
forces. Contacts are ordered: friction elements with a given normal force first, then unilateral
contacts; ``W_T`` has a row for each, ``W_N`` one for each unilateral contact. Bases are
coordinates with prescribed motion: every direction has a part on them. ``R_T`` is ``W_T`` but for
friction elements with a ``reaction`` of their own.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.numerics.linear_algebra import UNROLLED_INVERSE, eliminate, matvec
from jfric.system.description import AbstractProblem, element_label
from jfric.system.elements import AbstractForce
from jfric.system.functions import AbstractFunction
from jfric.system.laws import AbstractLaw, Coulomb
from jfric.system.piecewise import PiecewiseElements, assemble_piecewise


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
        return not self.nonlinear and all(law.velocity_independent for law in self.laws)

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
        return self.gap0 + matvec(self.W_N, q) + matvec(self.W_N_base, z)

    def belt_velocities(self, t) -> Float[Array, " nt"]:
        """Velocity of the partner's surface along each tangent, motion of bases included."""
        _, z_dot = self.base_motion(t)
        zero = jnp.zeros_like(self.K[0, 0])
        belts = [zero if b is None else b(t) for b in self.belts]
        own = jnp.stack(belts) if belts else jnp.zeros((0,))
        return own - matvec(self.W_T_base, z_dot)

    def sliding_velocities(self, t, v) -> Float[Array, " nt"]:
        """Sliding velocities ``gamma_T = W_T v - v_belt`` [m/s]."""
        return matvec(self.W_T, v) - self.belt_velocities(t)


def mass_matrix(problem: AbstractProblem) -> Float[Array, "n n"]:
    """Mass matrix of a resolved problem."""
    axes = problem.axes
    result = _matrix(problem.matrices.M, len(axes))
    for element in problem.section("mass").values():
        w = element.direction.vector(axes)
        result = result + element.m * jnp.outer(w, w)
    return result


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
    M = mass_matrix(problem)
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
    W_T = _rows([None if d is None else d.vector(both) for d in tangents], n + nb)
    W_N = _rows([c.normal.vector(both) for c in contacts.values()], n + nb)
    loads = problem.section("load").values()
    nonlinear = tuple(
        e
        for group in problem.elements.values()
        for e in group.values()
        if isinstance(e, AbstractForce)
    )
    return Mechanics(
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
        gap0=_stack([c.gap for c in contacts.values()]),
        e=_stack([c.e for c in contacts.values()]),
        piecewise=assemble_piecewise(problem),
        nonlinear=nonlinear,
        axes=axes,
        contact_names=tuple(
            [element_label("friction", k) for k in friction]
            + [element_label("contact", k) for k in contacts]
        ),
        frictionless=tuple(
            [False] * len(friction) + [c.tangent is None for c in contacts.values()]
        ),
        redirected=tuple([f.redirected for f in friction.values()] + [False] * len(contacts)),
        smooth_impact=tuple(c.impact == "none" for c in contacts.values()),
        single_tangent=tuple(_single(d, axes) for d in tangents),
        pair_tangent=tuple(_pair(d, axes) for d in tangents),
        single_normal=tuple(_single(c.normal, axes) for c in contacts.values()),
        only_dof=tuple(_only(d, axes) for d in (*tangents, *(c.normal for c in contacts.values()))),
    )


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
