"""Relative velocities with the laws that decide them: one problem for impacts, steps and statics.

Relative velocities (or accelerations) ``gamma = gamma_0 + D lambda`` of tangents and normals, with
the friction limits ``c+ = cap+ + mu+ lambda_N`` and ``c- = cap- + mu- lambda_N``::

    0 <= gamma_N  _|_  lambda_N >= 0
    one tangent   -c+ <= lambda_T <= c-, at a limit where it slides: lambda_T = -c+ for gamma_T > 0
    a plane       |lambda_T| <= c+, opposite to gamma_T where it slides (in units of the half axes)
"""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.contact import rules
from jfric.contact.reactions import Planes
from jfric.numerics.linear_algebra import diagonal_of


class ContactProblem(eqx.Module):
    """Rows: tangents (nt) of friction elements (nf), then of unilateral contacts; normals (nu).

    ``decided``: tangents with zero sliding velocity; others keep the direction of ``sliding``
    (+1, -1, or 0 for no friction). ``touching``: normals that may carry a force. ``cap``: limits
    that do not depend on a normal force of this problem.

    ``planes``: tangents that belong together. Their limits are the half axes of the ellipse, the
    same both ways; both are decided. Of a unilateral contact each has a normal; those of the first
    carry.
    """

    D: Float[Array, "m m"]
    gamma: Float[Array, " m"]
    decided: Bool[Array, " nt"]
    touching: Bool[Array, " nu"]
    sliding: Float[Array, " nt"]
    mu_positive: Float[Array, " nc"]
    mu_negative: Float[Array, " nc"]
    cap_positive: Float[Array, " nt"]
    cap_negative: Float[Array, " nt"]
    planes: Planes = eqx.field(static=True, default=())

    @property
    def nt(self) -> int:
        """How many tangents there are."""
        return self.decided.shape[0]

    @property
    def nf(self) -> int:
        """How many of them have given limits."""
        return self.nt - self.mu_positive.shape[0]

    @property
    def carriers(self) -> np.ndarray:
        """Tangents of unilateral contacts whose normals carry: the first ones of planes."""
        second = [j for _, j in self.planes]
        return np.asarray([i for i in range(self.nf, self.nt) if i not in second], int)

    @property
    def own(self) -> np.ndarray:
        """Place of each tangent's contact among the :attr:`carriers`, their number for given
        limits."""
        carriers = self.carriers
        own = np.full((self.nt,), carriers.shape[0])
        own[carriers] = np.arange(carriers.shape[0])
        for i, j in self.planes:
            own[j] = own[i]
        return own

    @property
    def partner(self) -> np.ndarray:
        """The other direction of each tangent in a plane; itself for one alone."""
        found = np.arange(self.nt)
        for i, j in self.planes:
            found[i], found[j] = j, i
        return found

    def of_tangents(self, x: Array, otherwise) -> Array:
        """For each tangent (nt,) what ``x`` has for its normal, ``otherwise`` for given limits."""
        given = jnp.full((self.nf,), otherwise, x.dtype)
        return jnp.concatenate([given, x[self.own[self.nf :]] if self.planes else x])

    def limits(self, normal: Float[Array, " nu"]) -> tuple[Float[Array, " nt"], ...]:
        """Limits ``(c+, c-)`` of the friction impulses: ``-c+ <= lambda_T <= c-``."""
        nf = self.nf
        normal = normal[self.own[nf:]] if self.planes else normal
        return (
            self.cap_positive.at[nf:].add(self.mu_positive * normal),
            self.cap_negative.at[nf:].add(self.mu_negative * normal),
        )

    def kept_sliding(self, upper, lower) -> Float[Array, " nt"]:
        """Friction of tangents that are not decided, at the given limits."""
        return jnp.where(self.sliding > 0, -upper, jnp.where(self.sliding < 0, lower, 0.0))

    def kept(self) -> np.ndarray:
        """Rows of the full problem that carry."""
        return np.concatenate([np.arange(self.nt), self.nt - self.nf + self.carriers])

    def full(self, impulse: Float[Array, " k"]) -> Float[Array, " m"]:
        """Impulses of all rows from those of the rows that carry."""
        if not self.planes:
            return impulse
        return jnp.zeros(self.gamma.shape, impulse.dtype).at[self.kept()].set(impulse)

    def in_units(self) -> tuple[ContactProblem, Float[Array, " k"]]:
        """The problem of the rows that carry, in units in which ``D`` has a diagonal of ones and
        limits in planes are circles; and the factor from its impulses to the given ones.

        Translations and rotations, light and heavy bodies become comparable.
        """
        p, nt, nf = self, self.nt, self.nf
        D, gamma, touching, mean = p.D, p.gamma, p.touching, diagonal_of(p.D)
        stretch = None
        if p.planes:
            rows, stretch = p.kept(), jnp.ones((p.kept().shape[0],), D.dtype)
            D, gamma, touching = D[np.ix_(rows, rows)], gamma[rows], touching[p.carriers - nf]
            limit = p.cap_positive.at[nf:].add(p.mu_positive)
            for i, j in p.planes:
                stretch = stretch.at[j].set(rules.ratio_of(jnp.stack([limit[i], limit[j]])))
            D, gamma = D * stretch[:, None] * stretch[None, :], gamma * stretch
            diagonal = diagonal_of(D)
            mean = diagonal.at[:nt].set(0.5 * (diagonal[:nt] + diagonal[p.partner]))
        weight = jnp.where(mean > 0, mean, 1.0) ** -0.5
        factor = weight if stretch is None else weight * stretch
        along = factor[:nt]
        # In units of its own a tangent's limit is that times the unit of the normal.
        normal = weight[nt:][p.own[nf:]] if p.planes else weight[nt:]
        ratio = normal / along[nf:]
        scaled = dataclasses.replace(
            p,
            D=D * weight[:, None] * weight[None, :],
            gamma=gamma * weight,
            touching=touching,
            mu_positive=p.mu_positive * ratio,
            mu_negative=p.mu_negative * ratio,
            cap_positive=p.cap_positive / along,
            cap_negative=p.cap_negative / along,
        )
        return scaled, factor
