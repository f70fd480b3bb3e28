"""The assembled system and the matrices of a step, computed once where they never change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.numerics.linear_algebra import UNROLLED_INVERSE, eliminate, matmul
from jfric.solvers.time_stepping.scheme import Scheme
from jfric.system.joints import generalised_inverse
from jfric.system.mechanics import Mechanics, WithContacts

#: Systems with one contact and up to this many degrees of freedom run in scalars.
SCALARS = 4


class StepMatrices(NamedTuple):
    """Matrices of a step without contact, ``free = Bq q + Bv v + push impulse``, and of contacts.

    With ``A = M + h theta C + h^2 theta^2 K``: ``push = A^-1``, ``X = A^-1 W^T``, ``D = W X``.
    Joints with the directions ``J`` are eliminated: ``hold = A^-1 J^T (J A^-1 J^T)^-1`` gives the
    velocity that they require, and ``push = A^-1 - hold J A^-1``.
    """

    Bq: Float[Array, "n n"]
    Bv: Float[Array, "n n"]
    push: Float[Array, "n n"]
    X: Float[Array, "n m"]
    D: Float[Array, "m m"]
    hold: Float[Array, "n k"] | None = None


def step_matrices(scheme: Scheme, h, M, C, K, W, J=None) -> StepMatrices:
    """Matrices of a step of length ``h`` for the given stiffness and damping."""
    n = M.shape[0]
    theta = scheme.theta
    push, hold = _inverse(M + h * theta * (C + h * theta * K)), None
    if J is not None:
        along = matmul(push, J.T)
        hold = matmul(along, generalised_inverse(matmul(J, along))[0])
        push = push - matmul(hold, matmul(J, push))
    X = matmul(push, W.T)
    return StepMatrices(
        Bq=-h * matmul(push, K),
        Bv=jnp.eye(n, dtype=M.dtype) - h * matmul(push, h * theta * K + C),
        push=push,
        X=X,
        D=matmul(W, X),
        hold=hold,
    )


def _inverse(a):
    # Not symmetric positive definite where a stiffness or damping is negative.
    return eliminate(a, 0.0).inverse if a.shape[0] <= UNROLLED_INVERSE else jnp.linalg.inv(a)


class Prepared(WithContacts):
    """The assembled system and its step. Rows: tangents (nt), then normals (nu)."""

    mechanics: Mechanics
    scheme: Scheme
    h: Float[Array, ""]
    W: Float[Array, "m n"]
    #: ``M^-1 W^T`` and ``W M^-1 W^T``.
    MW: Float[Array, "n m"]
    D_mass: Float[Array, "m m"]
    #: Diagonal of ``D_mass`` without the part that joints take away; None without joints.
    D_size: Float[Array, " m"] | None
    end: Float[Array, ""]
    #: The step's matrices where they never change, else None.
    constant: StepMatrices | None
    #: Whether static and kinetic coefficients differ for some contact.
    breakaway: bool = eqx.field(static=True)
    method: str = eqx.field(static=True)

    def at(self, t, q, v) -> Prepared:
        """System as evaluated at one instant, where something depends on position."""
        if self.mechanics.varying is None:
            return self
        mechanics = self.mechanics.at(t, q, v)
        return replace(self, mechanics=mechanics, **contact_space(mechanics))

    @property
    def partners_move(self) -> bool:
        """Whether belts or supports have a velocity."""
        return any(b is not None for b in self.mechanics.belts) or bool(
            self.mechanics.base_functions
        )

    @property
    def in_scalars(self) -> bool:
        """Whether the step is decomposed into scalars: one contact, few degrees of freedom."""
        small = self.nt == 1 and self.mechanics.n <= SCALARS
        return small and self.constant is not None and self.method in ("auto", "closed-form")


def contact_space(mechanics: Mechanics) -> dict[str, Any]:
    """Matrices ``W``, ``M^-1 W^T`` and ``W M^-1 W^T``, by field of :class:`Prepared`."""
    W = jnp.concatenate([mechanics.W_T, mechanics.W_N])
    MW, size = mechanics.accelerations(W, W)
    return {"W": W, "MW": MW, "D_mass": matmul(W, MW), "D_size": size}
