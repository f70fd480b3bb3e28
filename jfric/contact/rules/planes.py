"""Rules of friction in a plane: its limits, sliding friction, how sliding starts and stops; limits
of friction in pins.

Limits are an :class:`Ellipse`, or those of a :class:`Disc`, which also spins; both have the same
methods. In a plane, forces and velocities have two components (the last axis), and the limits form
an ellipse with the half axes ``mu N``, ``mu`` (2,); with ``E = diag(mu)``::

    stick    |E^-1 lambda_T| <= N,    sliding    lambda_T = -N E^2 gamma_T / |E gamma_T|

The code uses the ratio of the two coefficients, so that both may be zero. Where one coefficient
holds along all directions, ``mu`` (1,) has only this one. A disc has three components, see
:mod:`jfric.contact.rules.discs`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.contact.rules.discs import disc_friction, disc_gauge, disc_holding
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import inverse, matvec
from jfric.numerics.tolerances import ROUNDINGS
from jfric.results.modes import Mode

#: Newton steps for the friction that holds best; they converge from one side, in a few steps.
NEWTON = 12
#: Friction sticks if it is this far inside its limit, relative to the limit. The margin of stick is
#: a difference of squares of larger forces; with a value below its errors neither mode would be
#: taken.
INSIDE = 1e-6


def ratio_of(mu: Float[Array, " 2"]) -> Float[Array, ""]:
    """Ratio ``mu_2 / mu_1``; 1 where both are equal, also where both are zero."""
    same = mu[0] == mu[1]
    return select(same, 1.0, mu[1] / select(same | (mu[0] == 0.0), 1.0, mu[0]))


def _stretch(mu: Float[Array, " k"]) -> Float[Array, " 2"] | None:
    """Ratios of both coefficients to the first; None where there is only one."""
    return None if mu.shape[0] == 1 else jnp.stack([jnp.ones_like(mu[0]), ratio_of(mu)])


def cone_margin(mu: Float[Array, " k"], normal, friction) -> Float[Array, ""]:
    """Margin ``(mu_1 N)^2 - |lambda_T|^2``, for an ellipse ``mu_1 mu_2`` times ``N^2 - |E^-1
    lambda_T|^2``: positive while stick lasts."""
    limit, first = mu[0] * mu[-1] * normal * normal, friction[0] * friction[0]
    second = friction[1] * friction[1]
    if mu.shape[0] == 1:
        return limit - first - second
    r = ratio_of(mu)
    return limit - r * friction[0] * friction[0] - second / r


def cone_size(mu: Float[Array, " k"], normal, friction, times) -> Float[Array, " l"]:
    """Magnitudes of the Taylor coefficients of :func:`cone_margin`, from those (l,) and (l, 2) of
    normal force and friction; ``times``: product of two series."""
    size = mu[0] * mu[-1] * times(normal, normal)
    first, second = (times(friction[:, i], friction[:, i]) for i in (0, 1))
    if mu.shape[0] == 1:
        return size + first + second
    r = ratio_of(mu)
    return size + r * first + second / r


def speed_of(gamma: Float[Array, " 2"]) -> Float[Array, ""]:
    """Magnitude of a sliding velocity; differentiable where it is not zero."""
    squared = jnp.sum(gamma * gamma)
    moves = squared > 0
    return select(moves, jnp.sqrt(select(moves, squared, 1.0)), 0.0)


def kinetic_ratio(mu: Float[Array, " k"], gamma) -> Float[Array, " 2"]:
    """Ratio ``-lambda_T / N`` of sliding with the velocity ``gamma``; zero at rest."""
    stretch, weighted, factor = _stretch(mu), gamma, mu[0]
    if stretch is not None:
        weighted, factor = stretch * gamma, factor * stretch
    # |E gamma|^2 / mu_1^2, the squared speed where both coefficients are the same.
    squared = jnp.sum(weighted * weighted)
    return factor * weighted / jnp.sqrt(select(squared > 0, squared, 1.0))


class Onset(NamedTuple):
    """Start of sliding from rest: its direction (c,), and whether friction can hold instead."""

    direction: Float[Array, " c"]
    holds: Bool[Array, ""]


def holding_friction(
    D: Float[Array, "2 2"], free, mu: Float[Array, " k"], normal
) -> Float[Array, " 2"]:
    """Friction (2,) at rest within its limits that leaves the least sliding acceleration.

    ``D`` (2, 2): accelerations of sliding by unit frictions, ``free`` (2,) that without friction.
    The friction minimises ``lambda^T D lambda / 2 + free^T lambda`` within the ellipse. On its edge
    ``(D + kappa E^-2) lambda = -free``; Newton's method on ``1/R - 1/|lambda|`` finds ``kappa >=
    0``. Source: A. R. Conn, N. I. M. Gould, P. L. Toint, Trust-region methods (2000), section 7.3.
    """
    return _holding(D, free, mu, normal)[0]


def _holding(D, free, mu, normal):
    """Friction of :func:`holding_friction`; friction in coordinates in which the ellipse is a
    circle, or the opposite of the push where the limit is zero; and whether friction holds."""
    stretch, radius, b = _stretch(mu), mu[0] * normal, free
    if stretch is not None:
        D, b = D * stretch[:, None] * stretch[None, :], free * stretch
    D = 0.5 * (D + D.T)
    first, both, second = D[0, 0], D[0, 1], D[1, 1]
    mean, half = 0.5 * (first + second), 0.5 * (first - second)
    spread = jnp.sqrt(half * half + both * both)
    determinant = first * second - both * both
    # Other contacts, or joints, may hold one of the directions. Motions there are rounding errors,
    # so the response along the other direction may stand for both.
    held = determinant <= ROUNDINGS * jnp.finfo(D.dtype).eps * (mean + spread) ** 2
    way = select(half >= 0, D[0], D[1])
    part = jnp.sum(way * b) / select(jnp.any(way != 0), jnp.sum(way * way), 1.0)
    b = select(held, part * way, b)
    mean, spread = select(held, 2.0 * mean, mean), select(held, 0.0, spread)
    D = select(held, mean * jnp.eye(2, dtype=D.dtype), D)
    determinant = select(held, mean * mean, determinant)

    adjugate = jax.lax.rev(D, (0, 1)) * np.array([[1.0, -1.0], [-1.0, 1.0]], D.dtype)

    def solved(kappa, b):
        scale = determinant + kappa * (2.0 * mean + kappa)
        return (matvec(adjugate, b) + kappa * b) / select(scale > 0, scale, 1.0)

    size, safe = jnp.sqrt(jnp.sum(b * b)), select(radius > 0, radius, 1.0)

    def improved(_, kappa):
        x = -solved(kappa, b)
        squared = jnp.sum(x * x)
        length = jnp.sqrt(squared)
        slope = jnp.sum(x * solved(kappa, x))
        more = squared * (length - safe) / safe / select(slope > 0, slope, 1.0)
        return select(slope > 0, jnp.maximum(kappa + more, 0.0), kappa)

    # A loop: written out, the steps would take most of the compile time of programs that call this.
    kappa = jnp.maximum(size / safe - (mean + spread), 0.0)
    kappa = jax.lax.fori_loop(0, NEWTON, improved, kappa)
    x = -solved(kappa, b)
    holds = jnp.sqrt(jnp.sum(x * x)) <= (1.0 - INSIDE) * radius
    # Without friction the body goes where it is pushed.
    pulled = -b / select(size > 0, size, 1.0)
    held = select(radius > 0, x, 0.0)
    return held if stretch is None else held * stretch, select(radius > 0, x, pulled), holds


def onset(D, free, mu, normal) -> Onset:
    """Start of sliding from rest, along the normal of the ellipse at the friction that holds best.

    Arguments as in :func:`holding_friction`.
    """
    _, x, holds = _holding(D, free, mu, normal)
    stretch = _stretch(mu)
    direction = -x if stretch is None else -x / stretch
    size = jnp.sqrt(jnp.sum(direction * direction))
    return Onset(direction / select(size > 0, size, 1.0), holds)


class Ellipse(NamedTuple):
    """Limits of friction along two directions, by two coefficients, or by one for both."""

    mu: Float[Array, " k"]

    @property
    def lengths(self) -> Float[Array, " 2"]:
        """Factors that turn all components of a velocity into linear ones: ones."""
        return jnp.ones((2,), self.mu.dtype)

    def limit(self, normal) -> Float[Array, ""]:
        """The :meth:`margin` without friction."""
        return self.mu[0] * self.mu[-1] * normal * normal

    def margin(self, normal, friction) -> Float[Array, ""]:
        """Margin of friction to its limit; positive while stick lasts."""
        return cone_margin(self.mu, normal, friction)

    def size(self, normal, friction, times) -> Float[Array, " l"]:
        """Magnitudes of the margin's Taylor coefficients, see :func:`cone_size`."""
        return cone_size(self.mu, normal, friction, times)

    def kinetic(self, gamma) -> Float[Array, " 2"]:
        """Ratio ``-lambda_T / N`` of sliding."""
        return kinetic_ratio(self.mu, gamma)

    def holding(self, D, free, normal) -> Float[Array, " 2"]:
        """Friction at rest that leaves the least acceleration, see :func:`holding_friction`."""
        return holding_friction(D, free, self.mu, normal)

    def onset(self, D, free, normal) -> Onset:
        """Direction in which sliding starts from rest, and whether friction holds."""
        return onset(D, free, self.mu, normal)


class Disc(NamedTuple):
    """Limits of the friction force and torque of a disc with this ``radius`` [m], for two
    components of slip and the spin."""

    mu: Float[Array, ""]
    radius: Float[Array, ""]

    @property
    def lengths(self) -> Float[Array, " 3"]:
        """Factors that turn all components of a velocity into linear ones: the radius for spin."""
        one = jnp.ones_like(self.mu)
        return jnp.stack([one, one, self.radius])

    def limit(self, normal) -> Float[Array, ""]:
        """The :meth:`margin` without friction."""
        return self.mu * self.mu * normal * normal

    def margin(self, normal, friction) -> Float[Array, ""]:
        """Margin of friction to its limit; positive while stick lasts."""
        size = disc_gauge(friction / self.lengths).size
        return self.limit(normal) - size * size

    def size(self, normal, friction, times) -> Float[Array, " l"]:
        """Magnitudes of the margin's Taylor coefficients, from those (l,) and (l, 3): the limit
        surface contains all ``|lambda_T| + 3/2 |torque| / R <= mu N``."""
        friction = friction / self.lengths * jnp.asarray((1.0, 1.0, 1.5), friction.dtype)
        all_of_it = jnp.sum(friction, axis=1)
        return self.mu * self.mu * times(normal, normal) + times(all_of_it, all_of_it)

    def kinetic(self, gamma) -> Float[Array, " 3"]:
        """Ratio ``-lambda_T / N`` of sliding."""
        return self.mu * self.lengths * disc_friction(gamma * self.lengths)

    def holding(self, D, free, normal) -> Float[Array, " 3"]:
        """Friction at rest that leaves the least acceleration."""
        return self.lengths * self._held(D, free, normal).friction

    def onset(self, D, free, normal) -> Onset:
        """Direction in which sliding starts from rest, and whether friction holds."""
        found = self._held(D, free, normal)
        return Onset(found.direction / self.lengths, found.holds)

    def _held(self, D, free, normal):
        x = self.lengths
        return disc_holding(D * x[:, None] * x[None, :], free * x, self.mu * normal, INSIDE)


def time_to_stop(gamma, rate) -> Float[Array, ""]:
    """Time after which the sliding velocity ``gamma`` (c,) vanishes if it continues to change at
    ``rate`` (c,), all components in one unit; infinite where it grows. The derivatives are those of
    the end of sliding."""
    still, rate = jax.lax.stop_gradient((gamma, rate))
    squared, falls = jnp.sum(gamma * still), -jnp.sum(still * rate)
    stops = (falls > 0) & (squared > 0)
    return select(stops, squared / select(stops, falls, 1.0), jnp.inf)


def plane_mode(modes):
    """The mode of all directions of a plane (c,) from those found for each: the plane slides where
    one direction does, unless the first is open."""
    closed = select(jnp.all(modes == Mode.STICK), Mode.STICK, Mode.SLIP_POS)
    return select(modes[0] == Mode.OPEN, Mode.OPEN, closed)


#: Newton steps (for one pin they converge from one side), and those after them that carry
#: derivatives; each of these doubles the order of the derivatives.
PIN_NEWTON = 8
DIFFERENTIATED = 2


def pin_limits(reaction: Float[Array, "k 2"], radius: Float[Array, " k"]) -> Float[Array, " k"]:
    """Limits ``r |R|`` of the torques without their coefficients [N m]."""
    squared = jnp.sum(reaction * reaction, axis=-1)
    loaded = squared > 0
    return radius * select(loaded, jnp.sqrt(select(loaded, squared, 1.0)), 0.0)


def sliding_limits(
    free: Float[Array, "k 2"],
    by_torque: Float[Array, "k 2 k"],
    ratio: Float[Array, " k"],
    radius: Float[Array, " k"],
) -> Float[Array, " k"]:
    """Limits ``L = r |R|`` of friction torques in pins over ``mu``, with the pins' own reactions
    ``R``, which depend on the torques; by Newton's method, NaN if that does not converge.

    For all pins at once: with the reactions ``free`` (k, 2) without friction in them, their change
    ``by_torque`` (k, 2, k) by unit torques, and ``ratio`` (k,) of each torque to ``L``::

        L_i = r_i |free_i + sum_j by_torque_ij ratio_j L_j|

    The right-hand side contracts, in some weighted maximum norm, if the spectral radius of
    ``A_ij = r_i |by_torque_ij ratio_j|`` is below one: then there is one solution.
    """
    response, one = by_torque * ratio, jnp.eye(radius.shape[0], dtype=free.dtype)

    def right(L):
        return pin_limits(free + jnp.sum(response * L, axis=-1), radius)

    def step(L, free, response):
        def right(L):
            return pin_limits(free + jnp.sum(response * L, axis=-1), radius)

        return L + matvec(inverse(one - jax.jacfwd(right)(L)), right(L) - L)

    still = jax.lax.stop_gradient((free, response))
    L = jax.lax.stop_gradient(pin_limits(free, radius))
    L = jax.lax.fori_loop(0, PIN_NEWTON, lambda _, L: step(L, *still), L)
    for _ in range(DIFFERENTIATED):
        L = step(L, free, response)
    missed = jnp.max(jnp.abs(jax.lax.stop_gradient(right(L) - L)))
    found = missed <= jnp.finfo(L.dtype).eps ** 0.5 * jnp.max(jax.lax.stop_gradient(L))
    return select(found, L, jnp.nan)


def limits_are_unique(
    by_torque: Float[Array, "k 2 k"], ratio: Float[Array, " k"], radius: Float[Array, " k"]
) -> Bool[Array, ""]:
    """Whether the equation of :func:`sliding_limits` has one solution, whatever ``free`` is."""
    A = jnp.sqrt(jnp.sum((by_torque * ratio) ** 2, axis=1)) * radius[:, None]
    one = jnp.ones_like(radius)
    # For A >= 0 the inverse of I - A is nonnegative exactly if the spectral radius is below one.
    x = matvec(inverse(jnp.eye(len(radius), dtype=A.dtype) - A), one)
    return jnp.all(x > 0)
