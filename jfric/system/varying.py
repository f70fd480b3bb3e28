"""What of a system depends on its position: mass matrix, gaps, sliding displacements, joints.

Kinetic energy ``T``, potential ``V`` and Rayleigh's dissipation function ``D`` give::

    M(q, t) = d2T/dv2,    f(t, q, v) = dT/dq - (d2T/dv dq) v - d2T/dv dt - dV/dq - dD/dv

and displacements ``g(t, q)`` of contacts their directions ``W = dg/dq``. What the structure of
these functions shows to be constant joins constant matrices (:mod:`jfric.system.mechanics`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.interpreters.partial_eval import dce_jaxpr
from jaxtyping import Array, Float

from jfric.system.elements import AbstractForce
from jfric.system.joints import Joints
from jfric.system.state_function import Rate, StateFunction


class Energies(AbstractForce):
    """The energies of one :class:`jfric.Lagrangian`, with numbers for its parameters."""

    kinetic: StateFunction | None
    potential: StateFunction | None
    dissipation: StateFunction | None

    def mass(self, t, q) -> Float[Array, "n n"]:
        """``d2T/dv2``, which does not depend on velocities."""
        if self.kinetic is None:
            return jnp.zeros((q.shape[0],) * 2, q.dtype)
        momentum = jax.grad(self.kinetic, argnums=2)
        return jax.jacfwd(lambda v: momentum(t, q, v))(jnp.zeros_like(q))

    def total(self, t, q, v) -> Float[Array, ""]:
        """Kinetic and potential energy."""
        kinetic = jnp.zeros((), q.dtype) if self.kinetic is None else self.kinetic(t, q, v)
        return kinetic if self.potential is None else kinetic + self.potential(t, q)

    def force(self, axes, t, q, v):
        """Generalised forces but for those that accelerations cause."""
        return sum(self.parts(t, q, v), jnp.zeros_like(q))

    def parts(self, t, q, v) -> list[Float[Array, " n"]]:
        """What these are the sum of."""
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
        """Whether the mass matrix depends on nothing, by structure."""
        return not _depends(self._like(), lambda t, q, v: self.mass(t, q), 0, 1)

    def is_quadratic(self) -> bool:
        """Whether the mass matrix does not depend on velocities, by structure."""
        if self.kinetic is None:
            return True
        momentum = jax.grad(self.kinetic, argnums=2)
        return not _depends(self._like(), jax.jacfwd(momentum, argnums=2), 2)

    def has_linear_force(self) -> bool:
        """Whether the forces are linear in positions and velocities, by structure."""
        return _is_linear(self._like(), lambda t, q, v: self.force((), t, q, v))

    def _like(self):
        one = next(x for x in (self.kinetic, self.potential, self.dissipation) if x is not None)
        return _like(len(one.axes), 2)


class Instant(NamedTuple):
    """Displacements at one instant: values, directions, what time and motion alone do to them."""

    value: Float[Array, " k"]
    W: Float[Array, "k n"]
    #: Velocity at rest, and acceleration along the motion without acceleration.
    rate: Float[Array, " k"]
    bias: Float[Array, " k"]


class Varying(eqx.Module):
    """Mass matrix and displacements that depend on position, and joints."""

    #: Constant part of the mass matrix.
    M: Float[Array, "n n"]
    energies: tuple[Energies, ...]
    #: Displacements, then velocities of none, and the row of each among tangents, then normals.
    displacements: tuple[Callable, ...]
    rows: tuple[int, ...] = eqx.field(static=True)
    #: What to name in messages.
    labels: tuple[str, ...] = eqx.field(static=True)
    rates: tuple[Rate, ...] = ()
    joints: Joints | None = None

    def mass(self, t, q) -> Float[Array, "n n"]:
        """Mass matrix at an instant."""
        return sum((e.mass(t, q) for e in self.energies), self.M)

    @property
    def displaced(self) -> tuple[int, ...]:
        """Rows that have a displacement."""
        return self.rows[: len(self.displacements)]

    @property
    def rolling(self) -> tuple[int, ...]:
        """Rows that have none."""
        return self.rows[len(self.displacements) :]

    def values(self, t, q) -> Float[Array, " k"]:
        """Displacements that depend on position."""
        return jnp.stack([g(t, q) for g in self.displacements])

    def velocities(self, t, q, v) -> Float[Array, " r"]:
        """Velocities that are no rates of displacements."""
        return jnp.stack([g(t, q, v) for g in self.rates])

    def at(self, t, q, v) -> Instant:
        """Displacements, velocities and their derivatives."""
        along = (jnp.ones_like(t), v)
        parts = []
        if self.displacements:

            def rates(t, q):
                return jax.jvp(self.values, (t, q), (jnp.ones_like(t), v))[1]

            W = jax.jacfwd(self.values, argnums=1)(t, q)
            still = (jnp.ones_like(t), jnp.zeros_like(q))
            rate = jax.jvp(self.values, (t, q), still)[1]
            parts.append(Instant(self.values(t, q), W, rate, jax.jvp(rates, (t, q), along)[1]))
        if self.rates:
            W = jax.jacfwd(self.velocities, argnums=2)(t, q, v)
            rate = self.velocities(t, q, jnp.zeros_like(v))
            bias = jax.jvp(lambda t, q: self.velocities(t, q, v), (t, q), along)[1]
            parts.append(Instant(jnp.zeros_like(rate), W, rate, bias))
        return Instant(*(jnp.concatenate(x) for x in zip(*parts, strict=True)))


def linear_displacement(g: Callable, n: int) -> bool:
    """Whether ``g`` is a displacement linear in ``n`` positions and free of time, by structure."""
    return not isinstance(g, Rate) and _is_linear(_like(n, 1), g)


def linear_in_velocities(function: Callable, n: int) -> bool:
    """Whether a function ``(t, q, v)`` is linear in the ``n`` velocities, by structure."""
    return not _depends(_like(n, 2), jax.jacfwd(function, argnums=2), 2)


def depends_on_time(g: Callable, n: int) -> bool:
    """Whether a function of time and ``n`` positions depends on time, by structure."""
    return _depends(_like(n, 1), g, 0)


def _like(n: int, rows: int):
    dtype = jnp.result_type(float)
    return jax.ShapeDtypeStruct((), dtype), *[jax.ShapeDtypeStruct((n,), dtype)] * rows


def _depends(like, function: Callable, *arguments: int) -> bool:
    """Whether the value depends on any of the ``arguments``, by the operations that give it."""
    # Parameters may be tracers of somebody else's: constants of this trace.
    jaxpr = jax.make_jaxpr(function)(*like).jaxpr
    used = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[1]
    return any(used[i] for i in arguments)


#: Operations whose result is constant in pieces: tangents do not show them.
_STEPS = {
    *("floor", "ceil", "round", "sign", "rem", "nextafter", "convert_element_type"),
    *("gt", "lt", "ge", "le", "eq", "ne", "argmax", "argmin", "stop_gradient"),
}


def _has_steps(jaxpr) -> bool:
    for equation in jaxpr.eqns:
        if equation.primitive.name in _STEPS:
            kinds = [x.aval.dtype.kind for x in (*equation.invars, *equation.outvars)]
            if equation.primitive.name != "convert_element_type" or set(kinds) != {"f"}:
                return True
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns") and _has_steps(inner):
                return True
    return False


def _is_linear(like, function: Callable) -> bool:
    """Whether the first argument, time, plays no part, and the tangents by the others are the same
    everywhere."""
    if _has_steps(jax.make_jaxpr(function)(*like).jaxpr):
        return False
    count = len(like)

    def tangent(*x):
        at, along = x[:count], x[count:]
        zero = jnp.zeros_like(at[0])
        return jax.jvp(function, at, (zero, *along))[1]

    everywhere = not _depends((*like, *like[1:]), tangent, *range(count))
    return everywhere and not _depends(like, function, 0)
