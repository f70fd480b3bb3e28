"""Joints: bilateral constraints ``phi(t, q) = 0`` or ``psi(t, q, v) = 0``, eliminated before
contacts.

With ``J = dphi/dq``, or ``J = dpsi/dv``, and ``c`` the part of the equations' derivative without
``dv/dt``::

    M dv/dt = f + J^T lambda,    J dv/dt + c = 0,    S = (J M^-1 J^T)^+
    lambda = -S (c + J M^-1 f),    dv/dt = (M^-1 - M^-1 J^T S J M^-1) f - M^-1 J^T S c

``f`` holds all other forces, those of contacts included. Equations that follow from others leave
the motion as it is; reactions are then those of smallest norm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import (
    Elimination,
    diagonal_of,
    eliminate,
    least_norm,
    matmul,
    matvec,
    null_space,
)
from jfric.numerics.tolerances import REDUNDANT, ROUNDINGS, tolerance_of
from jfric.system.position_functions import Instant, Together, together
from jfric.system.state_function import ChosenVelocities, Held, Rate

#: Allowed violation of an equation, relative to its terms; the motion is projected on the equation.
TOLERANCE = 1e-6
#: Part of larger terms that cancel, for their rounding errors; for positions also a length.
SMALL = 1e-6
#: Rounds in which positions are projected on the constraints; each gains the digits of the first.
ROUNDS = 3


class JointEquation(NamedTuple):
    """One equation of a joint: ``function(t, q) = 0``, or one that is linear in velocities
    (:class:`jfric.system.state_function.Rate`).

    ``label``: name of the joint in messages; ``name``: name of its reaction in results, which is
    measured in ``unit``; ``rubs``: whether two contacts with friction represent it.
    """

    label: str
    name: str
    function: Callable
    unit: str
    rubs: bool = False

    @property
    def on_velocities(self) -> bool:
        """Whether the equation holds no position."""
        return isinstance(self.function, Rate)

    @property
    def held(self) -> Held | None:
        """Function of an equation that belongs to a set of equations, some of which follow from the
        others; else None."""
        own = self.function.function if isinstance(self.function, Rate) else None
        return own if isinstance(own, Held) else None


class Tied(NamedTuple):
    """Equations of all joints at one instant, ``k`` of them; see the module's equations."""

    value: Float[Array, " k"]
    J: Float[Array, "k n"]
    #: Part of the rate by time alone: ``J v + rate = 0``.
    rate: Float[Array, " k"]
    #: The vector ``c``.
    bias: Float[Array, " k"]
    #: The product ``M^-1 J^T``.
    MJ: Float[Array, "n k"]
    #: The matrix ``S`` for the motion: equations that follow from others carry no reaction.
    S: Float[Array, "k k"]
    #: Whether reactions are not unique.
    redundant: Bool[Array, ""]
    #: The elimination that gave ``S``: which equations follow from others.
    found: Inverted
    #: Stored :attr:`force`, or None.
    known_force: Float[Array, "k k"] | None = None

    @property
    def force(self) -> Float[Array, "k k"]:
        """The matrix ``S`` for reactions of smallest norm."""
        if self.known_force is not None:
            return self.known_force
        return self.found.least(self.S)

    def least(self, reactions: Float[Array, " k"]) -> Float[Array, " k"]:
        """Reactions of smallest norm that move the system as ``reactions`` do."""
        return self.found.least(reactions[:, None])[:, 0]

    def with_force(self) -> Tied:
        """The equations with :attr:`force` computed once, for callers that use it several times."""
        return self._replace(known_force=self.force)

    @property
    def acceleration(self) -> Float[Array, " n"]:
        """Accelerations that the constraints demand without any force."""
        return -matvec(self.MJ, matvec(self.S, self.bias))

    def reactions(self, f: Float[Array, " n"]) -> Float[Array, " k"]:
        """Reactions ``lambda`` where all other forces are ``f``."""
        return -matvec(self.force, self.bias + matvec(self.MJ.T, f))

    def inverse_of_mass(self, inverse: Float[Array, "n n"]) -> Float[Array, "n n"]:
        """Accelerations by unit forces; ``inverse``: those without joints."""
        return inverse - matmul(self.MJ, matmul(self.S, self.MJ.T))

    def position_size(self, q: Float[Array, " n"]) -> Float[Array, " k"]:
        """Reference sizes for rounding errors of ``value``, for positions as large as ``q``."""
        return _size(self.J, q) + jnp.max(jnp.abs(q)) + SMALL

    def velocity_size(self, v: Float[Array, " n"]) -> Float[Array, " k"]:
        """Reference sizes for errors of ``J v + rate``, for velocities as large as ``v``."""
        return _size(self.J, v) + jnp.abs(self.rate)

    def contradicted(self, q, v) -> Bool[Array, " k"]:
        """Equations whose accelerations the others do not allow; ``q``, ``v`` (n,): magnitudes."""
        a, bias = self.acceleration, jnp.abs(self.bias)
        left = jnp.abs(self.bias + matvec(self.J, a))
        length, tolerance = self.position_size(q), tolerance_of(a.dtype, TOLERANCE)
        curved = self.velocity_size(v) ** 2 / select(length > 0, length, 1.0)
        # Magnitudes of the terms of the acceleration, by all equations: they may cancel.
        made_of = matvec(jnp.abs(self.MJ), matvec(jnp.abs(self.S), bias))
        return left > tolerance * (bias + matvec(jnp.abs(self.J), made_of) + curved)

    def fails(self, v, q_size, v_size) -> Bool[Array, ""]:
        """Whether the equations contradict each other, or position and velocity do not meet them;
        ``q_size``, ``v_size`` (n,): magnitudes."""
        tolerance = tolerance_of(v.dtype, TOLERANCE)
        # A velocity that friction takes over from a moving surface is larger than those before.
        v_size = jnp.maximum(v_size, jnp.abs(v))
        off = jnp.abs(self.value) > tolerance * self.position_size(q_size)
        rate = jnp.abs(matvec(self.J, v) + self.rate)
        runs = rate > tolerance * self.velocity_size(v_size)
        return jnp.any(off | runs | self.contradicted(q_size, v_size))


class Joints(eqx.Module):
    """The equations of all joints, with numbers for their parameters."""

    #: Functions ``phi``, or None.
    values: Together | None
    #: Functions ``psi``, which come last.
    rates: tuple[Alone | ChosenVelocities, ...] = ()
    #: Number of equations in ``rates`` that follow from others.
    spare: int = eqx.field(static=True, default=0)

    @property
    def timed(self) -> bool:
        """Whether the equations of positions depend on time."""
        return self.values is not None and self.values.timed

    def seen(self, t, q, v) -> Instant:
        """Values and derivatives of all equations at one instant."""
        parts = [] if self.values is None else [self.values.at(t, q, v)]
        parts += [_on_velocities(psi, t, q, v) for psi in self.rates]
        return Instant(*(jnp.concatenate(x) for x in zip(*parts, strict=True)))

    def at(self, t, q, v, inverse: Float[Array, "n n"]) -> Tied:
        """All equations at one instant, and their solution; ``inverse``: of the mass matrix."""
        now = self.seen(t, q, v)
        MJ = matmul(inverse, now.W.T)
        S, found = generalised_inverse(matmul(now.W, MJ))
        dependent = found.of.dependent
        redundant = jnp.sum(dependent) > self.spare if self.spare else dependent.any()
        return Tied(now.value, now.W, now.rate, now.bias, MJ, S, redundant, found)

    def off(self, tied: Tied, t, q) -> Float[Array, " k"]:
        """Values at ``q`` (n,), zero for equations of velocities; ``tied``: at any instant."""
        found = jnp.zeros_like(tied.value)
        return found if self.values is None else found.at[: len(self.values)].set(self.values(t, q))

    def put_on(self, tied: Tied, t, q, rounds: int = ROUNDS) -> Float[Array, " n"]:
        """The position nearest to ``q``, in the metric of the masses, that all equations allow,
        after ``rounds`` of Newton's method; ``tied``: the equations near it."""
        if self.values is None:
            return q
        for _ in range(rounds):
            q = q - matvec(tied.MJ, matvec(tied.S, self.off(tied, t, q)))
        return q


def joints_of(functions: Sequence[Callable], n: int) -> Joints:
    """The equations ``functions`` on ``n`` coordinates: those on velocities come last."""
    fixed = [g for g in functions if not isinstance(g, Rate)]
    rates, spare = [], 0
    for rate in functions[len(fixed) :]:
        own = rate.function
        if not isinstance(own, Held):
            rates.append(Alone(rate))
        elif own.row == 0:
            rates.append(own.of)
            spare += len(own.of.names)
    return Joints(together(fixed, n) if fixed else None, tuple(rates), spare)


class Alone(eqx.Module):
    """One equation on velocities, as an array of one."""

    rate: Callable

    def off(self, t, q, v) -> Float[Array, " 1"]:
        """Value of the equation, which is zero where the velocities ``v`` meet it."""
        return self.rate(t, q, v)[None]


def _on_velocities(psi: Alone | ChosenVelocities, t, q, v) -> Instant:
    """Equations on velocities at one instant; zeros for those that follow from others."""
    W, rate = jax.jacfwd(psi.off, argnums=2)(t, q, v), psi.off(t, q, jnp.zeros_like(v))
    bias = jax.jvp(lambda t, q: psi.off(t, q, v), (t, q), (jnp.ones_like(t), v))[1]
    if isinstance(psi, ChosenVelocities):
        says = _largest(W[:, np.asarray(psi.rows)], len(psi.dofs) - len(psi.names))
        W, rate, bias = select(says[:, None], W, 0.0), *(says * x for x in (rate, bias))
    return Instant(jnp.zeros_like(rate), W, rate, bias)


def _largest(N: Float[Array, "m m"], rank: int) -> Float[Array, " m"]:
    """Ones for rows of a projection that span it, those that depend least on rounding."""
    N = jax.lax.stop_gradient(N)
    says = jnp.zeros((N.shape[0],), N.dtype)
    for _ in range(rank):
        i = jnp.argmax(select(says == 0.0, diagonal_of(N), -1.0))
        says, N = says.at[i].set(1.0), N - jnp.outer(N[:, i], N[i]) / N[i, i]
    return says


def _size(J: Float[Array, "k n"], x: Float[Array, " n"]) -> Float[Array, " k"]:
    """Sums of the magnitudes of the terms in ``J x``; slopes of zero have rounding errors, too."""
    largest = jnp.max(jnp.abs(J), axis=1) * jnp.max(jnp.abs(x))
    rounding = ROUNDINGS * float(jnp.finfo(x.dtype).eps) / tolerance_of(x.dtype, TOLERANCE)
    return matvec(jnp.abs(J), jnp.abs(x)) + max(SMALL, rounding) * largest


def off_velocity(tied: Tied, v) -> Float[Array, " n"]:
    """The smallest change of ``v``, in the metric of the masses, that meets the equations."""
    return -matvec(tied.MJ, matvec(tied.S, matvec(tied.J, v) + tied.rate))


class Inverted(NamedTuple):
    """An elimination of a symmetric matrix whose rows and columns were scaled by ``weight``."""

    of: Elimination
    weight: Float[Array, " k"]

    def least(self, x: Float[Array, "k m"]) -> Float[Array, "k m"]:
        """Columns ``x`` of smallest norm with the same products with the matrix."""
        k = len(self.weight)
        if k == 1:
            return x
        balance = null_space(self.of, self.weight, jnp.ones((k,), bool))
        return least_norm(x, balance, self.of.dependent)


def generalised_inverse(G: Float[Array, "k k"]) -> tuple[Float[Array, "k k"], Inverted]:
    """Generalised inverse of a symmetric, semi-definite matrix, which solves ``G x = r`` where
    there is a solution, and the elimination that gave the inverse."""
    own = diagonal_of(G)
    weight = jax.lax.rsqrt(select(own > 0, own, 1.0))
    found = eliminate(G * weight[:, None] * weight[None, :], tolerance_of(G.dtype, REDUNDANT))
    return found.inverse * weight[:, None] * weight[None, :], Inverted(found, weight)
