"""Position-dependent parts of a system: mass matrix, gaps, sliding displacements, joints.

Kinetic energy ``T``, potential ``V`` and Rayleigh's dissipation function ``D`` give::

    M(q, t) = d2T/dv2,    f(t, q, v) = dT/dq - (d2T/dv dq) v - d2T/dv dt - dV/dq - dD/dv

and displacements ``g(t, q)`` of contacts give their directions ``W = dg/dq``. Parts that are
constant by the structure of these functions join constant matrices (:mod:`jfric.system.mechanics`).
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.system.elements import AbstractForce
from jfric.system.joints import Joints
from jfric.system.polygons import PolygonGap
from jfric.system.position_functions import Instant, Together
from jfric.system.state_function import Rate, StateFunction, TextFunction, depends, is_linear, like


class AbstractEnergies(AbstractForce):
    """Mass matrix and forces of a part of a system that is described by its energies."""

    @abc.abstractmethod
    def mass(self, t, q) -> Float[Array, "n n"]:
        """The mass matrix ``d2T/dv2``, which does not depend on velocities."""

    @abc.abstractmethod
    def total(self, t, q, v) -> Float[Array, ""]:
        """Kinetic and potential energy."""

    @abc.abstractmethod
    def parts(self, t, q, v) -> list[Float[Array, " n"]]:
        """Terms of the generalised forces; :meth:`force` is the sum of all terms."""

    @abc.abstractmethod
    def has_constant_mass(self) -> bool:
        """Whether the mass matrix is constant, by structure."""

    @abc.abstractmethod
    def has_linear_force(self) -> bool:
        """Whether the forces are linear in positions and velocities, by structure."""

    def force(self, axes, t, q, v):
        """Generalised forces except for those that accelerations cause."""
        return sum(self.parts(t, q, v), jnp.zeros_like(q))


class Energies(AbstractEnergies):
    """The energies of one :class:`jfric.Lagrangian`, with numbers for its parameters."""

    kinetic: StateFunction | TextFunction | None
    potential: StateFunction | TextFunction | None
    dissipation: StateFunction | TextFunction | None

    def mass(self, t, q) -> Float[Array, "n n"]:
        """The mass matrix ``d2T/dv2``, which does not depend on velocities."""
        if self.kinetic is None:
            return jnp.zeros((q.shape[0],) * 2, q.dtype)
        momentum = jax.grad(self.kinetic, argnums=2)
        return jax.jacfwd(lambda v: momentum(t, q, v))(jnp.zeros_like(q))

    def total(self, t, q, v) -> Float[Array, ""]:
        """Kinetic and potential energy."""
        kinetic = jnp.zeros((), q.dtype) if self.kinetic is None else self.kinetic(t, q, v)
        return kinetic if self.potential is None else kinetic + self.potential(t, q)

    def parts(self, t, q, v) -> list[Float[Array, " n"]]:
        found = []
        if self.kinetic is not None:
            momentum = jax.grad(self.kinetic, argnums=2)
            slow = (jnp.ones_like(t), v, jnp.zeros_like(v))
            found += [jax.grad(self.kinetic, argnums=1)(t, q, v)]
            found += [-jax.jvp(momentum, (t, q, v), slow)[1]]
        if self.potential is not None:
            found += [-jax.grad(self.potential, argnums=1)(t, q)]
        if self.dissipation is not None:
            found += [-jax.grad(self.dissipation, argnums=2)(t, q, v)]
        return found

    def has_constant_mass(self) -> bool:
        """Whether the mass matrix is constant, by structure."""
        return not depends(self._like(), lambda t, q, v: self.mass(t, q), 0, 1)

    def is_quadratic(self) -> bool:
        """Whether the mass matrix does not depend on velocities, by structure."""
        if self.kinetic is None:
            return True
        momentum = jax.grad(self.kinetic, argnums=2)
        return not depends(self._like(), jax.jacfwd(momentum, argnums=2), 2)

    def has_linear_force(self) -> bool:
        """Whether the forces are linear in positions and velocities, by structure."""
        return is_linear(self._like(), lambda t, q, v: self.force((), t, q, v))

    def _like(self):
        one = next(x for x in (self.kinetic, self.potential, self.dissipation) if x is not None)
        return like(one.n, 2)


class Varying(eqx.Module):
    """Mass matrix and displacements that depend on position, and joints."""

    #: Constant part of the mass matrix.
    M: Float[Array, "n n"]
    #: Inverse of ``M``, of no use where energies add to the mass matrix.
    M_inverse: Float[Array, "n n"]
    energies: tuple[AbstractEnergies, ...]
    #: Displacements; rows of these, of ``touching``, then of ``rates``, among tangents, then
    #: normals.
    displacements: Together | None
    rows: tuple[int, ...] = eqx.field(static=True)
    #: Names for messages.
    labels: tuple[str, ...] = eqx.field(static=True)
    rates: tuple[Rate, ...] = ()
    joints: Joints | None = None
    #: Contacts in space (:class:`jfric.system.surfaces.Touching`), or None.
    touching: Any = None
    #: Gaps of polygons, among the displacements.
    polygons: tuple[PolygonGap, ...] = ()
    #: Rows of these gaps among tangents, then normals.
    polygon_rows: tuple[int, ...] = eqx.field(static=True, default=())
    #: Whether only joints vary, and their directions and rates are constant.
    straight: bool = eqx.field(static=True, default=False)

    def mass(self, t, q) -> Float[Array, "n n"]:
        """Mass matrix at an instant."""
        return sum((e.mass(t, q) for e in self.energies), self.M)

    @property
    def displaced(self) -> tuple[int, ...]:
        """Rows with a displacement."""
        return self.rows[: self._count]

    @property
    def rolling(self) -> tuple[int, ...]:
        """Rows with a velocity only."""
        return self.rows[self._count :]

    @property
    def _count(self) -> int:
        gaps = () if self.touching is None else self.touching.gaps
        return len(self.displacements or ()) + len(gaps)

    def displacements_at(self, t, q) -> Float[Array, " r"]:
        """Displacements of the rows :attr:`displaced`."""
        found = [] if self.displacements is None else [self.displacements(t, q)]
        found += [] if self.touching is None else [self.touching.values(q)]
        return jnp.concatenate(found)

    def velocities(self, t, q, v) -> Float[Array, " r"]:
        """Velocities that are no rates of displacements."""
        return jnp.stack([g(t, q, v) for g in self.rates])

    def at(self, t, q, v) -> Instant:
        """Displacements, velocities and their derivatives."""
        along = (jnp.ones_like(t), v)
        parts = []
        if self.displacements is not None:
            parts.append(self.displacements.at(t, q, v))
        if self.touching is not None:
            parts.append(self.touching.at(q, v))
        if self.rates:
            W = jax.jacfwd(self.velocities, argnums=2)(t, q, v)
            rate = self.velocities(t, q, jnp.zeros_like(v))
            bias = jax.jvp(lambda t, q: self.velocities(t, q, v), (t, q), along)[1]
            parts.append(Instant(jnp.zeros_like(rate), W, rate, bias))
        return Instant(*(jnp.concatenate(x) for x in zip(*parts, strict=True)))
