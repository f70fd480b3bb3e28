"""The assembled equations of motion: arrays that solvers work with.

Between events::

    M dv/dt = f(t, q, v) + W_N^T lambda_N + R_T^T lambda_T

``f`` holds springs, dampers, piecewise-linear elements in their segment, loads and nonlinear
forces. Contacts are ordered: friction elements with a given normal force first, then unilateral
contacts; ``W_T`` has a row for each, ``W_N`` one for each unilateral contact. Bases are
coordinates with prescribed motion: every direction has a part on them. ``R_T`` is ``W_T`` except
for friction elements with a ``reaction``.

Where mass matrix and directions depend on position (:mod:`jfric.system.varying`), the arrays hold
those of one instant: the start, or the instant of :meth:`Mechanics.at`. Reactions of joints are
eliminated there (:mod:`jfric.system.joints`): ``M_inverse`` gives the accelerations that joints
allow, and is singular.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import (
    ROTATED,
    UNROLLED_INVERSE,
    diagonal_matrix,
    diagonal_of,
    eliminate,
    matmul,
    matvec,
    picked,
    placed,
)
from jfric.numerics.linear_algebra import inverse as plain_inverse
from jfric.numerics.tolerances import REDUNDANT, tolerance_of
from jfric.system.bristles import Bristles
from jfric.system.contacts import ContactRow, PinFriction
from jfric.system.description import is_state_axis, with_short_names
from jfric.system.elements import AbstractForce
from jfric.system.functions import AbstractFunction
from jfric.system.joints import Tied
from jfric.system.laws import AbstractLaw
from jfric.system.load_friction import Carried
from jfric.system.piecewise import PiecewiseElements
from jfric.system.polygons import PolygonGap, in_regions
from jfric.system.state import BoundState
from jfric.system.varying import Varying


class Mobility(NamedTuple):
    """Accelerations ``M^-1 R^T``, and the mobilities (m,) of rows without the part that joints take
    away: sizes of their rounding errors; None without joints."""

    accelerations: Float[Array, "n m"]
    size: Float[Array, " m"] | None


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
    #: A row for each contact, in order.
    contacts: tuple[ContactRow, ...]
    W_N: Float[Array, "nu n"]
    W_N_base: Float[Array, "nu nb"]
    gap0: Float[Array, " nu"]
    e: Float[Array, " nu"]
    piecewise: PiecewiseElements
    nonlinear: tuple[AbstractForce, ...]
    #: Elements with a state, or None.
    bristles: Bristles | None
    axes: tuple[str, ...] = eqx.field(static=True)
    #: Parts that depend on position, or None.
    varying: Varying | None = None
    #: Tangents that belong together: the directions of each friction in a plane, two, or three
    #: where it spins.
    planes: tuple[tuple[int, ...], ...] = eqx.field(static=True, default=())
    #: Whether one law holds along all directions of each plane.
    even: tuple[bool, ...] = eqx.field(static=True, default=())
    #: Unilateral contacts on both sides of a joint with friction.
    opposed: tuple[tuple[int, int], ...] = eqx.field(static=True, default=())
    #: Pins with friction, whose normal forces follow from reactions, or None.
    pins: PinFriction | None = None
    #: Loads that friction grows with, or None.
    carried: Carried | None = None
    #: Relative velocities at rest, and relative accelerations along the motion without
    #: acceleration, of tangents, then normals; None where nothing depends on position.
    rate: Any = None
    bias: Any = None
    #: Equations of joints at that instant.
    tied: Tied | None = None

    def at(self, t, q, v) -> Mechanics:
        """The system at one instant, where gaps are ``gap0 + W_N q``."""
        varying = self.varying
        if varying is None:
            return self
        here = self._seen_at(t, q, v)
        # Masses of bodies are constant: one inverse for all instants.
        inverse = varying.M_inverse
        if varying.energies:
            # In plain operations: compilers lose library calls in programs of many instants.
            invert = inverse_of_mass if self.n <= UNROLLED_INVERSE else plain_inverse
            inverse = invert(here.M)
        tied = None
        if varying.joints is not None:
            tied = varying.joints.at(t, q, v, inverse)
            inverse = tied.inverse_of_mass(inverse)
            if self.pins is not None:
                tied = tied.with_force()
        return replace(here, M_inverse=inverse, tied=tied)

    def near(self, t, q, v) -> Mechanics:
        """The system with the masses, directions and joints of an instant near by, and with its
        present operators that solve the equations."""
        here, varying = self._seen_at(t, q, v), self.varying
        if varying is None or varying.joints is None or self.tied is None:
            return here
        now = varying.joints.seen(t, q, v)
        tied = self.tied._replace(value=now.value, J=now.W, rate=now.rate, bias=now.bias)
        return replace(here, tied=tied)

    def _seen_at(self, t, q, v) -> Mechanics:
        varying = self.varying
        assert varying is not None
        M, nt = varying.mass(t, q), self.n_contacts
        if not varying.rows:
            nothing = jnp.zeros((nt + self.n_unilateral,), q.dtype)
            return replace(self, M=M, rate=nothing, bias=nothing)
        W = jnp.concatenate([self.W_T, self.W_N])
        nothing = jnp.zeros((W.shape[0],), q.dtype)
        now, rows = varying.at(t, q, v), np.asarray(varying.rows)
        W, reactions, normal = placed(W, rows, now.W), self.reactions, rows >= nt
        fixed = picked(now.value - matvec(now.W, q), np.flatnonzero(normal))
        if reactions is not None:
            tangents = picked(now.W, np.flatnonzero(~normal))
            reactions = placed(reactions, rows[~normal], tangents)
        return replace(
            self,
            M=M,
            W_T=W[:nt],
            W_N=W[nt:],
            reactions=reactions,
            gap0=placed(self.gap0, rows[normal] - nt, fixed),
            rate=placed(nothing, rows, now.rate),
            bias=placed(nothing, rows, now.bias),
        )

    @property
    def polygons(self) -> tuple[PolygonGap, ...]:
        """Gaps of contacts with polygons."""
        return () if self.varying is None else self.varying.polygons

    @property
    def polygon_contacts(self) -> tuple[int, ...]:
        """Contacts with polygons, as indices among the unilateral contacts."""
        if not self.polygons or self.varying is None:
            return ()
        return tuple(row - self.n_contacts for row in self.varying.polygon_rows)

    def in_regions(self, regions: Int[Array, " np"]) -> Mechanics:
        """The system with polygons touched in these ``regions``, whatever region is nearest."""
        if not self.polygons:
            return self
        return replace(self, varying=in_regions(self.varying, regions))

    def accelerations(self, W: Float[Array, "m n"], R: Float[Array, "m n"]) -> Mobility:
        """Accelerations ``M^-1 R^T``; zero where joints hold the row of ``W`` itself."""
        found = matmul(self.M_inverse, R.T)
        if self.tied is None:
            return Mobility(found, None)
        # Rounding errors are no mobility.
        size = jnp.sum(jnp.abs(W.T) * matmul(self.inverse_size, jnp.abs(R.T)), axis=0)
        moves = jnp.abs(jnp.sum(W.T * found, axis=0)) > tolerance_of(size.dtype, REDUNDANT) * size
        return Mobility(select(moves, found, 0.0), size)

    @property
    def inverse_size(self) -> Float[Array, "n n"]:
        """Reference sizes for rounding errors of ``M_inverse``."""
        size = jnp.abs(self.M_inverse)
        if self.tied is None:
            return size
        MJ = jnp.abs(self.tied.MJ)
        return size + matmul(MJ, matmul(jnp.abs(self.tied.S), MJ.T))

    def displacements(self, t, q) -> Float[Array, " m"]:
        """Displacements along the tangents and gaps, without the motion of bases and belts;
        without meaning in rows that have only velocities."""
        fixed = [matvec(self.W_T, q), self.gap0 + matvec(self.W_N, q)]
        found, varying = jnp.concatenate(fixed), self.varying
        if varying is None or not varying.displaced:
            return found
        return placed(found, varying.displaced, varying.displacements_at(t, q))

    @property
    def R_T(self) -> Float[Array, "nt n"]:
        """Directions in which friction acts on the degrees of freedom."""
        return self.W_T if self.reactions is None else self.reactions

    @property
    def n(self) -> int:
        """Number of coordinates: degrees of freedom, and those of states of elements."""
        return len(self.axes)

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of all contacts."""
        return tuple(c.name for c in self.contacts)

    @property
    def laws(self) -> tuple[AbstractLaw, ...]:
        """Friction laws of all contacts."""
        return tuple(c.law for c in self.contacts)

    @property
    def belts(self) -> tuple[AbstractFunction | None, ...]:
        """Velocities of the partners' surfaces along the tangents, None where they rest."""
        return tuple(c.belt for c in self.contacts)

    @property
    def normal_forces(self) -> tuple[AbstractFunction, ...]:
        """Normal forces (nf of them) of friction elements, without the parts that grow with
        :attr:`carried`; those of pins are zero here."""
        return tuple(c.normal_force for c in self.contacts if c.normal_force is not None)

    @property
    def frictionless(self) -> tuple[bool, ...]:
        """Whether each contact has no tangent direction."""
        return tuple(c.frictionless for c in self.contacts)

    @property
    def smooth_impact(self) -> tuple[bool, ...]:
        """Whether the impacts of each unilateral contact carry no tangential impulse."""
        return tuple(c.smooth_impact for c in self.contacts if c.normal_force is None)

    @property
    def redirected(self) -> bool:
        """Whether any friction acts along another direction than that of sliding."""
        return any(c.redirected for c in self.contacts)

    @property
    def single_dofs(self) -> tuple[int | None, ...]:
        """Single coordinate of the direction of each tangent, then each normal; None for others."""
        unilateral = self.contacts[self.n_friction :]
        return tuple(
            [c.tangent.single for c in self.contacts] + [c.normal.single for c in unilateral]
        )

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
        return len(self.contacts)

    @property
    def modulated(self) -> tuple[int, ...]:
        """Friction elements whose normal force is not linear in the motion: it depends on position,
        fades as sliding gets faster, or grows with squares of loads."""
        rows = [i for i, c in enumerate(self.contacts) if (c.factor, c.fade) != (None, None)]
        squares = () if self.carried is None else self.carried.squares
        return tuple(sorted({*rows, *(x.row for x in squares)}))

    def excess(self, t, q, normal, fading, squares, left) -> Float[Array, " nf"]:
        """Parts of the normal forces of friction elements that are not linear in the motion:
        ``squares`` of loads, and what factors of position make of the linear part ``normal``. Of
        the squares and of the part ``fading``, constant parts left out, ``left`` is left."""
        own = [jnp.asarray(c.fading, q.dtype) for c in self.contacts[: self.n_friction]]
        lost = (1.0 - left) * (jnp.stack(own) + fading + squares)
        factors = self.factors(t, q)
        return normal * (factors - 1.0) + factors * (squares - lost)

    @property
    def fades(self) -> tuple[AbstractLaw | None, ...]:
        """Laws of the parts of the normal forces of friction elements that fade."""
        return tuple(c.fade for c in self.contacts[: self.n_friction])

    def factors(self, t, q) -> Float[Array, " nf"]:
        """Factors of all friction elements, one where they do not depend on position."""
        s = matvec(self.W_T, q) + matvec(self.W_T_base, self.base_motion(t)[0])
        one = jnp.ones((), q.dtype)
        rows = enumerate(self.contacts[: self.n_friction])
        factors = [one if c.factor is None else c.factor(s[i]) for i, c in rows]
        return jnp.stack(factors)

    @property
    def has_linear_modes(self) -> bool:
        """Whether the equations in every mode are linear with constant coefficients."""
        # Joints along constant directions leave a constant, singular inverse of the masses.
        bends = self.varying is not None and not self.varying.straight
        varies = self.has_curved_forces or bends or self.planes
        varies = varies or self.modulated or self.pins is not None
        return not varies and all(law.velocity_independent for law in self.laws)

    @property
    def has_curved_forces(self) -> bool:
        """Whether forces are not linear in the motion."""
        return bool(self.nonlinear) or self.bristles is not None

    @property
    def has_edges(self) -> bool:
        """Whether the equations may be undefined at some positions: a step that leads there is too
        long."""
        return self.has_curved_forces or self.varying is not None

    @property
    def stiff(self) -> bool:
        """Whether explicit steps would be short."""
        own = any(e.element.stiff for e in self.nonlinear if isinstance(e, BoundState))
        return own or (self.bristles is not None and self.bristles.stiff)

    @property
    def reacting(self) -> tuple[BoundState, ...]:
        """States whose rate depends on contacts."""
        return tuple(e for e in self.nonlinear if isinstance(e, BoundState) and e.reacts)

    def rates_by_contacts(self, t, q, v, lambda_t, lambda_n, gamma) -> Float[Array, " k"]:
        """Rates of the states :attr:`reacting`, by frictions and sliding velocities (nt,) and
        normal forces (nu,) of contacts."""
        names, unilateral = self.contact_names, self.contact_names[self.n_friction :]
        contacts = {f"lambda_t.{name}": x for name, x in zip(names, lambda_t, strict=True)}
        contacts |= {f"slip.{name}": x for name, x in zip(names, gamma, strict=True)}
        contacts |= {f"lambda_n.{name}": x for name, x in zip(unilateral, lambda_n, strict=True)}
        contacts = with_short_names(contacts)
        return jnp.stack([e.rate(self.axes, t, q, v, contacts) for e in self.reacting])

    def reaction_to_rates(self, rates: Float[Array, " k"]) -> Float[Array, " n"]:
        """Forces on all coordinates that give the states :attr:`reacting` these ``rates``."""
        found = jnp.zeros((self.n,), rates.dtype)
        return found.at[np.asarray([e.place for e in self.reacting])].set(rates)

    @property
    def n_states(self) -> int:
        """Number of coordinates of states of elements, which come last."""
        return sum(map(is_state_axis, self.axes))

    @property
    def n_dofs(self) -> int:
        """Number of degrees of freedom."""
        return self.n - self.n_states

    @property
    def states(self) -> tuple[str, ...]:
        """Names of all states: of springs in series with sliders, then those of coordinates."""
        own = tuple(axis.removeprefix("z.") for axis in self.axes[self.n_dofs :])
        return self.piecewise.states + own

    def complete(self, q, v, z=None):
        """Positions and velocities of all coordinates from those of the degrees of freedom and the
        states of elements; complete ones are returned unchanged."""
        if not self.n_states or q.shape[0] == self.n:
            return q, v
        assert z is not None
        return jnp.pad(q, (0, self.n_states)), jnp.concatenate([v, z[-self.n_states :]])

    @property
    def in_plane(self) -> np.ndarray | bool:
        """Whether each contact (nt,) is a component of friction in a plane; False where none is."""
        rows = np.asarray([row for own in self.planes for row in own], int)
        return np.isin(np.arange(self.n_contacts), rows) if rows.size else False

    @property
    def contact_planes(self) -> tuple[tuple[int, ...], ...]:
        """The :attr:`planes` of unilateral contacts. The other components have the gap of the
        first, which carries the normal force of all."""
        return tuple(own for own in self.planes if own[0] >= self.n_friction)

    @property
    def rubbing(self) -> np.ndarray:
        """All components of the :attr:`contact_planes`."""
        return np.asarray([row for own in self.contact_planes for row in own], int)

    def functions(self) -> list[AbstractFunction]:
        """All functions of time in the equations."""
        belts = [b for b in self.belts if b is not None]
        return [*self.base_functions, *self.load_functions, *belts, *self.normal_forces]

    def breakpoints(self) -> Float[Array, " b"]:
        """Times that no step may straddle, unsorted."""
        return jnp.concatenate([jnp.zeros((0,)), *(f.breakpoints() for f in self.functions())])

    def jumps(self) -> Float[Array, " b"]:
        """Times at which functions of time jump, unsorted."""
        return jnp.concatenate([jnp.zeros((0,)), *(f.jumps() for f in self.functions())])

    def frequency(self):
        """Largest angular frequency of the functions of time [rad/s]."""
        result = jnp.zeros(())
        for function in self.functions():
            result = jnp.maximum(result, function.frequency())
        return result

    def base_motion(self, t):
        """Displacement and velocity of the bases, each (nb,)."""
        if not self.base_functions:
            nothing = jnp.zeros((0,))
            return nothing, nothing
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
        """Sliding velocities ``gamma_T = W_T v - v_belt`` [m/s] with the present directions."""
        return matvec(self.W_T, v) - self.belt_velocities(t)

    def sliding_at(self, t, q, v) -> Float[Array, " nt"]:
        """Sliding velocities [m/s] with the directions at the positions ``q``."""
        return self.at(t, q, v).sliding_velocities(t, v)


class WithContacts(eqx.Module):
    """Base of classes made from a :class:`Mechanics`: usual symbols for numbers of contacts."""

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

    @property
    def independent(self) -> bool:
        """Whether the directions of all contacts are linearly independent by structure: each
        contact acts on a degree of freedom that no other contact touches, or there is only one.

        Friction that acts in another direction gives no information about the others: any two may
        make ``D`` singular.
        """
        mechanics = self.mechanics
        if mechanics.tied is not None:
            return False
        # The second component of friction in a plane has the normal of the first.
        again = {j for _, *others in mechanics.contact_planes for j in others}
        rows = [*enumerate(mechanics.contacts)]
        used = [c.tangent.only for _, c in rows if not c.frictionless]
        used += [c.normal.only for i, c in rows if i >= self.nf and i not in again]
        if len(used) == 1:
            return True
        return None not in used and len(set(used)) == len(used) and not mechanics.redirected


def inverse_of_mass(M):
    """Inverse of the mass matrix, symmetric and positive definite.

    Small matrices are inverted by elimination, written out: this gives exact reciprocals where the
    matrix is diagonal, and the library's routine takes long to compile. LAPACK is not called up to
    the size of :func:`jfric.numerics.linear_algebra.singular_values`, for the reason given there.
    """
    if M.shape[0] <= UNROLLED_INVERSE:
        return eliminate(M, 0.0).inverse
    alone = diagonal_of(M)
    is_diagonal = jnp.all(diagonal_matrix(alone) == M)
    safe = select(is_diagonal, np.eye(M.shape[0], dtype=M.dtype), M)
    invert = plain_inverse if M.shape[0] <= ROTATED else jnp.linalg.inv
    return select(is_diagonal, diagonal_matrix(1.0 / alone), invert(safe))
