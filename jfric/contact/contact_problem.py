"""The problem that impacts, time steps and statics share: relative velocities and their laws.
Relative velocities (or accelerations) ``gamma = gamma_0 + D lambda`` of tangents and normals, with
the friction limits ``c+ = cap+ + mu+ lambda_N`` and ``c- = cap- + mu- lambda_N``::

    0 <= gamma_N  _|_  lambda_N >= 0
    one tangent   -c+ <= lambda_T <= c-, at a limit where it slides: lambda_T = -c+ for gamma_T > 0
    a plane       |lambda_T| <= c+, opposite to gamma_T where it slides (in units of the half axes)
"""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.reactions import Planes
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import diagonal_of, matvec
from jfric.results.modes import Mode


class ContactProblem(eqx.Module):
    """Data of a contact problem, in rows of tangents (nt) and normals (nu).

    Tangents: those of friction elements (nf), then those of unilateral contacts. ``decided``:
    tangents with zero sliding velocity; others keep the direction of ``sliding`` (+1, -1, or 0 for
    no friction). ``touching``: normals that may carry a force. ``cap``: limits that do not depend
    on a normal force of this problem.

    ``planes``: pairs of tangents in one plane. Their limits are the half axes of the ellipse, equal
    to both sides, and both are decided. All tangents of a unilateral contact have a normal; only
    the normal of the first one carries. A third tangent is the spin of a disc, times its radius
    (:mod:`jfric.contact.rules.discs`).
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
        """Number of tangents."""
        return self.decided.shape[0]

    @property
    def nf(self) -> int:
        """Number of tangents with given limits."""
        return self.nt - self.mu_positive.shape[0]

    @property
    def carriers(self) -> np.ndarray:
        """Tangents of unilateral contacts whose normals carry; in a plane only the first one."""
        again = [j for _, *others in self.planes for j in others]
        return np.asarray([i for i in range(self.nf, self.nt) if i not in again], int)

    @property
    def own(self) -> np.ndarray:
        """Index of each tangent's contact among the :attr:`carriers`; the number of carriers where
        limits are given."""
        carriers = self.carriers
        own = np.full((self.nt,), carriers.shape[0])
        own[carriers] = np.arange(carriers.shape[0])
        for i, *others in self.planes:
            own[others] = own[i]
        return own

    @property
    def partner(self) -> np.ndarray:
        """Index of the other tangent in the plane of each tangent; its own index along a line, and
        of a spin."""
        found = np.arange(self.nt)
        for i, j, *_ in self.planes:
            found[i], found[j] = j, i
        return found

    @property
    def discs(self) -> np.ndarray:
        """Tangents (d, 3) of each disc that slips and spins."""
        return np.asarray([own for own in self.planes if len(own) > 2], int).reshape(-1, 3)

    def of_tangents(self, x: Array, otherwise) -> Array:
        """Entry of ``x`` for each tangent's normal (nt,); ``otherwise`` where limits are given."""
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
        """Friction of tangents that are not decided, at the limits ``upper`` and ``lower``."""
        return select(self.sliding > 0, -upper, select(self.sliding < 0, lower, 0.0))

    def kept(self) -> np.ndarray:
        """Indices of the rows of the full problem that carry."""
        return np.concatenate([np.arange(self.nt), self.nt - self.nf + self.carriers])

    def full(self, impulse: Float[Array, " k"]) -> Float[Array, " m"]:
        """Impulses of all rows from those of the rows that carry."""
        if not self.planes:
            return impulse
        return jnp.zeros(self.gamma.shape, impulse.dtype).at[self.kept()].set(impulse)

    def in_units(self) -> tuple[ContactProblem, Float[Array, " k"]]:
        """The rows that carry, in units in which ``D`` has a unit diagonal and limits in planes are
        circles; and the factor from its impulses to those of this problem.

        These units make translations and rotations, light and heavy bodies comparable.
        """
        p, nt, nf = self, self.nt, self.nf
        D, gamma, touching, mean = p.D, p.gamma, p.touching, diagonal_of(p.D)
        stretch = None
        if p.planes:
            rows, stretch = p.kept(), jnp.ones((p.kept().shape[0],), D.dtype)
            D, gamma, touching = D[np.ix_(rows, rows)], gamma[rows], touching[p.carriers - nf]
            limit = p.cap_positive.at[nf:].add(p.mu_positive)
            for i, j, *_ in p.planes:
                stretch = stretch.at[j].set(rules.ratio_of(jnp.stack([limit[i], limit[j]])))
            D, gamma = D * stretch[:, None] * stretch[None, :], gamma * stretch
            diagonal = diagonal_of(D)
            mean = diagonal.at[:nt].set(0.5 * (diagonal[:nt] + diagonal[p.partner]))
            if (discs := p.discs).size:
                mean = mean.at[discs].set(jnp.mean(diagonal[discs], axis=1, keepdims=True))
        weight = select(mean > 0, mean, 1.0) ** -0.5
        factor = weight if stretch is None else weight * stretch
        along = factor[:nt]
        # A coefficient is scaled by the unit of the normal over that of the tangent.
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


def natural_map(
    problem: ContactProblem, impulse: Float[Array, " m"], gamma: Float[Array, " m"]
) -> Float[Array, " m"]:
    """The map ``F`` of ``impulse`` with the relative velocities ``gamma`` that belong to it.

    Impulses ``P`` and relative velocities ``gamma = gamma_0 + D P`` obey the laws of contact where
    they solve these equations of projection::

        F(P) = P - proj(P - gamma) = 0
        normals       proj(x) = max(x, 0)
        one tangent   proj(x) = x clipped to the limits of friction
        a plane       proj(x) = the point nearest to x of the circle of the radius c+, or of the
                      limits of a disc that also spins

    with the limits under the normal impulses ``max(P_N - gamma_N, 0)``. The problem, also that of
    :func:`modes_of` and :func:`residual_in_units`, has the units of
    :meth:`ContactProblem.in_units`. Source: P. Alart, A. Curnier, A mixed formulation for
    frictional contact problems prone to Newton like solution methods, Comput. Methods Appl. Mech.
    Engrg. 92 (1991).
    """
    p, trial = problem, impulse - gamma
    tangent, normal = jnp.split(trial, [p.nt])
    normal = select(p.touching, jnp.maximum(normal, 0.0), 0.0)
    upper, lower = p.limits(normal)
    friction = jnp.clip(tangent, -upper, lower)
    if p.planes:
        squared = _squared(p, tangent)
        outside = squared > upper**2
        length = jnp.sqrt(select(outside, squared, 1.0))
        nearest = select(outside, tangent * upper / length, tangent)
        friction = select(_alone(p), friction, nearest)
    if (discs := p.discs).size:
        nearest = jax.vmap(rules.disc_nearest)(tangent[discs], upper[discs[:, 0]])
        friction = friction.at[discs].set(nearest)
    friction = select(p.decided, friction, p.kept_sliding(upper, lower))
    return impulse - jnp.concatenate([friction, normal])


def modes_of(
    problem: ContactProblem, impulse: Float[Array, " m"], gamma: Float[Array, " m"]
) -> Int[Array, " nt"]:
    """Modes (nt,) by the place of ``P - gamma``: inside the limits, beyond one of them, or open."""
    p, trial = problem, impulse - gamma
    tangent, normal = jnp.split(trial, [p.nt])
    upper, lower = p.limits(jnp.maximum(normal, 0.0))
    mode = rules.projected_mode(tangent, upper, lower)
    if p.planes:
        both = select(_squared(p, tangent) > upper**2, Mode.SLIP_POS, Mode.STICK)
        mode = select(_alone(p), mode, both)
    if (discs := p.discs).size:
        outside = jax.vmap(rules.disc_gauge)(tangent[discs]).size > upper[discs[:, 0]]
        mode = mode.at[discs].set(select(outside, Mode.SLIP_POS, Mode.STICK)[:, None])
    mode = select(p.decided, mode, rules.slip(p.sliding >= 0))
    closed = p.of_tangents(p.touching & (normal > 0.0), True)
    return select(closed, mode, Mode.OPEN).astype(jnp.int32)


def residual_in_units(problem: ContactProblem, impulse: Float[Array, " m"]) -> Float[Array, ""]:
    """Value of :func:`impulse_residual` for a problem that is in units."""
    p, change = problem, matvec(problem.D, impulse)
    defect = jnp.abs(natural_map(p, impulse, p.gamma + change))
    involved = jnp.concatenate([p.decided & p.of_tangents(p.touching, True), p.touching])
    speeds = select(involved, jnp.maximum(jnp.abs(p.gamma), jnp.abs(change)), 0.0)
    scale = jnp.maximum(jnp.max(speeds, initial=0.0), jnp.finfo(p.D.dtype).tiny)
    # NaN passes through the maxima; such a residual counts as infinite.
    worst = jnp.max(defect, initial=0.0) / scale
    return select(jnp.isnan(worst), jnp.inf, worst)


def impulse_residual(problem: ContactProblem, impulse: Float[Array, " m"]) -> Float[Array, ""]:
    """Violation of the laws by impulses of any method, relative; zero is exact.

    The largest entry of the natural map, as a relative velocity, is divided by the largest relative
    velocity without impulses or caused by them.
    """
    scaled, factor = problem.in_units()
    rows = impulse[problem.kept()] if problem.planes else impulse
    return residual_in_units(scaled, rows / factor)


def missed_velocities(
    problem: ContactProblem, impulse: Float[Array, " m"], gamma: Float[Array, " m"]
) -> Float[Array, " m"]:
    """The natural map of impulses and relative velocities ``gamma``, as velocities; zero in rows
    that carry nothing."""
    scaled, factor = problem.in_units()
    if problem.planes:
        impulse, gamma = impulse[problem.kept()], gamma[problem.kept()]
    return problem.full(natural_map(scaled, impulse / factor, gamma * factor) / factor)


def _alone(p: ContactProblem) -> np.ndarray:
    return p.partner == np.arange(p.nt)


def _squared(p: ContactProblem, tangent):
    """Squares of the friction in the plane of each tangent."""
    return tangent**2 + tangent[p.partner] ** 2
