"""Springs in series with sliders that pull on each other: nodes without mass, joined by springs.

The springs of ``e`` elements, elongated by ``z``, hold the energy ``z^T K z/2``; sliders carry at
most ``R``::

    F = K z,   |F_i| <= R_i,   z_i' = x_i'  while slider i is stuck,  F_i = R_i sign(x_i' - z_i')
    while it slips

Where some slip, in the directions ``way``, their springs follow from those of the others:
``z_P = K_PP^-1 (R way - K_PS z_S)``. With ``K`` positive definite the rates are unique, whichever
sliders slip.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import diagonal_matrix, diagonal_of, eliminate, matmul, matvec


class _Springs(NamedTuple):
    """Elongations ``z = along (x - anchor) + fixed`` while the same sliders slip."""

    along: Float[Array, "e e"]
    fixed: Float[Array, " e"]


class CoupledSliders(eqx.Module):
    """Coupled elements, each with one spring and one slider, among ``e`` elements; rows of elements
    that are not coupled are zero."""

    K: Float[Array, "e e"]
    R: Float[Array, " e"]
    members: tuple[bool, ...] = eqx.field(static=True)

    @property
    def own(self) -> Float[Array, " e"]:
        """Stiffness (e,) of each element with all others held; one where it is not coupled."""
        return select(np.asarray(self.members), diagonal_of(self.K), 1.0)

    def _springs(self, way: Int[Array, " e"]) -> _Springs:
        slips = jnp.asarray(self.members) & (way != 0)
        both = slips[:, None] & slips[None, :]
        # Scaled to a unit diagonal, since stiffnesses may differ by orders of magnitude.
        size = 1.0 / jnp.sqrt(self.own)
        scaled = self.K * size[:, None] * size[None, :]
        block = select(both, scaled, jnp.eye(slips.size, dtype=self.K.dtype))
        inverse = eliminate(block, 0.0, active=slips).inverse
        inverse = select(both, inverse, 0.0) * size[:, None] * size[None, :]
        stuck = select(slips, 0.0, 1.0).astype(self.K.dtype)
        along = diagonal_matrix(stuck) - matmul(inverse, self.K * stuck[None, :])
        return _Springs(along, matvec(inverse, self.R * way))

    def elongations(self, way, x: Float[Array, " e"]) -> Float[Array, " e"]:
        """Elongations ``z``; as in ``x`` for stuck sliders and elements that are not coupled."""
        found = self._springs(way)
        return matvec(found.along, x) + found.fixed

    def forces(self, z: Float[Array, " e"]) -> Float[Array, " e"]:
        """Forces ``K z`` of the springs."""
        return matvec(self.K, z)

    def line(self, way, anchor: Float[Array, " e"]) -> tuple[Array, Array]:
        """Stiffness (e, e) and constant part (e,) of the force ``-(k x + f)``."""
        found = self._springs(way)
        stiffness = matmul(self.K, found.along)
        return stiffness, matvec(self.K, found.fixed) - matvec(stiffness, anchor)

    def guards(self, way, anchor: Float[Array, " e"]) -> tuple[Array, Array, Array]:
        """Coefficients of the elongations (e, 2, e), of their rates, and constants (e, 2) of the
        guards, in elongations of an element's own spring: limits while it is stuck, its sliding
        velocity while it slips."""
        stiffness, offset = self.line(way, anchor)
        per = 1.0 / self.own
        force, constant = stiffness * per[:, None], offset * per
        limit, stuck = self.R * per, way == 0
        nothing = jnp.zeros_like(force)
        alpha = jnp.stack([-force, force], axis=1)
        delta = jnp.stack([limit - constant, limit + constant], axis=1)
        slides = way[:, None] * (jnp.eye(limit.size, dtype=force.dtype) - self._springs(way).along)
        beta = jnp.stack([nothing, slides], axis=1)
        # While a slider slips there is nothing beyond its limit.
        never = jnp.stack([jnp.ones_like(limit), jnp.zeros_like(limit)], axis=1)
        here = stuck[:, None, None]
        return (
            select(here, alpha, 0.0),
            select(here, 0.0, beta),
            select(stuck[:, None], delta, never),
        )

    def sliding(self, way, rate: Float[Array, " e"]) -> Float[Array, " e"]:
        """Sliding velocities ``x' - z'`` at the ``rate`` of elongations."""
        return rate - matvec(self._springs(way).along, rate)
