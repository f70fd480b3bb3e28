"""Rules of a disc that slips and spins: friction force and torque depend on both together.

Every point of the disc rubs with Coulomb's law under an even pressure. With the slip ``v`` (2,) of
its centre, its spin ``w`` and ``s = R w``, friction dissipates ``mu N d(|v|, |s|)``, where ``d`` is
the mean of ``|v + w x r|`` over the disc, and friction is the derivative of that::

    sliding    (lambda_T, torque / R) = -mu N (phi v, psi s)
    stick      (lambda_T, torque / R) within the points that these reach

Here velocities and frictions have three components, ``(v, s)`` and ``(lambda_T, torque / R)``;
their product is the power. Source: Z. Farkas, G. Bartels, T. Unger, D. E. Wolf, Frictional
coupling between sliding and spinning motion, Phys. Rev. Lett. 90 (2003), 248302.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import inverse, matmul, matvec

#: Rounds of the mean; enough for the smallest complement.
ROUNDS = 8
#: Complements below this value count as zero.
SMALLEST = 1e-30


class Elliptic(NamedTuple):
    """Integrals over ``0 <= x <= pi/2`` with ``D = sqrt(1 - m sin^2 x)``: of ``cos^2 x / D``, of
    ``sin^2 x / D``, and of ``sin^2 x cos^2 x / D^3``.

    ``K = B + D``, ``E = B + (1 - m) D`` are those of the first and second kind; ``D - B = m C``.
    """

    B: Float[Array, ""]
    D: Float[Array, ""]
    C: Float[Array, ""]


def elliptic(m, complement) -> Elliptic:
    """Integrals for the parameter ``0 <= m <= 1`` and its ``complement`` ``1 - m``, which is more
    accurate than by subtraction. ``D`` and ``C`` grow like the logarithm of the complement.

    The method is the arithmetic-geometric mean; the sum runs over its differences divided by ``m``,
    so that ``B``, ``D`` and ``C`` have all digits where they are nearly those of a circle. Source:
    R. Bulirsch, Numerical calculation of elliptic integrals and elliptic functions, Numer. Math. 7
    (1965)::

        >>> found = elliptic(jnp.asarray(0.0), jnp.asarray(1.0))
        >>> [round(float(x) * 16 / np.pi, 9) for x in found]
        [4.0, 4.0, 1.0]
    """
    b = jnp.sqrt(jnp.maximum(complement, SMALLEST))
    a, difference = 0.5 * (1.0 + b), 0.5 / (1.0 + b)
    total, b = difference * difference, jnp.sqrt(b)

    def narrowed(_, means):
        a, b, difference, weight, total = means
        a, b = 0.5 * (a + b), jnp.sqrt(a * b)
        difference, weight = 0.25 * m * difference * difference / a, 2.0 * weight
        return a, b, difference, weight, total + weight * difference * difference

    # An unrolled loop would take most of the compile time of programs that differentiate it often.
    means = a, b, difference, jnp.ones_like(a), total
    a, *_, total = jax.lax.fori_loop(0, ROUNDS, narrowed, means)
    K = 0.5 * np.pi / a
    return Elliptic(K * (0.5 - m * total), K * (0.5 + m * total), 2.0 * total * K)


#: Rounds of Newton's method for the normal of the limit surface; they converge in a few.
NORMAL = 6
#: Rounds for the friction that holds best, and the parts of a step that each round tries.
HOLDING, PARTS = 20, (1.0, 0.5, 0.25, 0.0625)
#: Added to the diagonal of ``D``, relative to its trace, for directions that friction cannot move.
REGULAR = 1e-13
_FORCE, _TORQUE = 4.0 / (3.0 * np.pi), 4.0 / (9.0 * np.pi)
#: Force over ``torque / R`` where slip and spin are equal.
_EVEN = 3.0


class Mixture(NamedTuple):
    """Proportion of slip and spin: whether slip is larger, the larger square, the smaller square
    over the larger (``m``), ``1 - m``, and elliptic integrals of these."""

    slips: Array
    large: Float[Array, ""]
    m: Float[Array, ""]
    complement: Float[Array, ""]
    integrals: Elliptic


def _mixture(slip, spin) -> Mixture:
    """Mixture from the squares of slip and spin; at rest finite, but without meaning."""
    slips = slip >= spin
    large, small = select(slips, slip, spin), select(slips, spin, slip)
    large = select(large > 0, large, 1.0)
    m, complement = small / large, (large - small) / large
    return Mixture(slips, large, m, complement, elliptic(m, complement))


def _force(m, complement, x: Elliptic):
    """Product of ``phi`` and the larger speed; in pure slip the force over ``mu N``."""
    del m
    return _FORCE * (2.0 * x.B + complement * x.D)


def _torque_slipping(m, complement, x: Elliptic):
    """Product of ``psi`` and the larger speed where there is more slip."""
    del m, complement
    return _TORQUE * (x.C + 3.0 * x.B - x.D)


def _torque_spinning(m, complement, x: Elliptic):
    """Product of ``psi`` and the larger speed where there is more spin."""
    return _TORQUE * ((3.0 - m) * x.B + complement * (3.0 - 2.0 * m) * x.D)


def disc_friction(gamma: Float[Array, " 3"]) -> Float[Array, " 3"]:
    """Friction ``(phi v, psi s)`` for the velocity ``(v, s)``; zero at rest::

    >>> [round(float(x), 6) for x in disc_friction(jnp.array([0.0, 0.0, -2.0]))]
    [0.0, 0.0, -0.666667]
    """
    slip, spin = jnp.sum(gamma[:2] * gamma[:2]), gamma[2] * gamma[2]
    x = _mixture(slip, spin)
    of = x.m, x.complement, x.integrals
    force = _force(*of)
    torque = select(x.slips, _torque_slipping(*of), _torque_spinning(*of))
    speed = jnp.sqrt(x.large)
    moves = jnp.maximum(slip, spin) > 0
    share = jnp.stack([force, force, torque]) / speed
    return select(moves, share * gamma, 0.0)


class Gauge(NamedTuple):
    """Point of the limit surface on the ray through a friction, with ``mu N = 1``.

    ``size``: the friction over that point; ``normal`` (3,): outward unit normal of the surface
    there.
    """

    size: Float[Array, ""]
    normal: Float[Array, " 3"]


def disc_gauge(friction: Float[Array, " 3"]) -> Gauge:
    """Gauge of a friction ``x``: ``max(x . n / d(n))`` over all ``n``; zero without friction. The
    size is twice differentiable. Newton's method finds the ratio of slip and spin (the smaller over
    the larger) of the normal::

        >>> float(disc_gauge(jnp.array([0.0, 0.6, 0.0])).size).__round__(9)
        0.6
    """
    force, torque = jnp.sum(friction[:2] * friction[:2]), friction[2] * friction[2]
    slips = force >= _EVEN * _EVEN * torque
    large, small = select(slips, force, torque), select(slips, torque, force)
    acts = large > 0
    large = select(acts, large, 1.0)
    ratio = small / large

    def missed(part, ratio):
        """Defect and slope where velocities have ``part`` times the ratio of the frictions."""
        m = jnp.minimum(part * part * ratio, 1.0)
        of = m, 1.0 - m, elliptic(m, 1.0 - m)
        x = of[2]
        force, slipping, spinning = (f(*of) for f in (_force, _torque_slipping, _torque_spinning))
        off = select(slips, part * slipping - force, part * force - spinning)
        bends = select(slips, x.D - x.C, x.B + 2.0 * of[1] * x.D)
        return off, _FORCE * bends * (1.0 + part * ratio), of

    still = jax.lax.stop_gradient(ratio)
    most = jax.lax.rsqrt(jnp.maximum(still, jnp.finfo(still.dtype).tiny))
    part = select(slips, 4.0 - 9.0 * still, 2.0 / (3.0 + still / 3.0))

    def improved(_, part):
        off, slope, _of = missed(part, still)
        return jnp.clip(part - off / slope, 0.0, most)

    part = jax.lax.fori_loop(0, NORMAL, improved, jnp.minimum(part, most))
    off, slope, _ = missed(part, ratio)
    part = part - off / jax.lax.stop_gradient(slope)
    _, _, of = missed(part, ratio)
    m, complement, x = of
    slipping = _force(*of) + m * _torque_slipping(*of)
    spinning = _TORQUE * ((3.0 + 5.0 * m) * x.B + complement * (3.0 + m) * x.D)
    dissipated = select(slips, slipping, spinning)
    size = (large + part * small) / (jnp.sqrt(large) * dissipated)
    along = select(slips, jnp.ones_like(part), part), select(slips, part, 1.0)
    normal = jnp.stack([along[0], along[0], along[1]]) * friction
    length = jnp.sqrt(jnp.sum(normal * normal))
    normal = normal / select(length > 0, length, 1.0)
    return Gauge(select(acts, size, 0.0), normal)


class Held(NamedTuple):
    """The friction (3,) at rest that holds best, the direction (3,) of length one in which sliding
    begins, and whether friction holds."""

    friction: Float[Array, " 3"]
    direction: Float[Array, " 3"]
    holds: Array


def disc_holding(D: Float[Array, "3 3"], free: Float[Array, " 3"], limit, inside: float) -> Held:
    """Friction of a disc that leaves the least acceleration.

    ``D``: accelerations of sliding by unit frictions, ``free``: that without friction, ``limit``:
    ``mu N``; friction holds up to ``1 - inside`` of it. Where it cannot hold, ``x = -limit (phi v,
    psi s)`` with ``(v, s)`` in the direction ``n`` of the acceleration that is left, ``free + D x =
    kappa n``. Newton's method finds ``n`` and ``kappa``. It starts from the direction of ``free``
    or the normal of the limit surface at the friction that would hold, whichever is better.
    """
    D, free, limit = jax.lax.stop_gradient((0.5 * (D + D.T), free, limit))
    eye = jnp.eye(3, dtype=D.dtype)
    scale = jnp.trace(D)
    scale = select(scale > 0, scale, 1.0)
    needed = -matvec(inverse(D + REGULAR * scale * eye), free)
    gauge = disc_gauge(needed)
    holds = gauge.size <= (1.0 - inside) * limit
    bends = jax.jacfwd(disc_friction)

    def left(n, kappa):
        return free - limit * matvec(D, disc_friction(n)) - kappa * n

    def kappa_of(n):
        return jnp.maximum(jnp.sum(n * left(n, 0.0)), 0.0)

    def improved(_, n):
        kappa = kappa_of(n)
        J = -limit * matmul(D, bends(n)) - kappa * eye
        J = jnp.concatenate([J, -n[:, None]], axis=1)
        J = jnp.concatenate([J, jnp.append(n, 0.0)[None, :]])
        change = matvec(inverse(J), jnp.append(-left(n, kappa), 0.0))[:3]
        tried = jnp.stack([_unit(n + part * change) for part in (0.0, *PARTS)])
        off = jax.vmap(lambda n: jnp.sum(left(n, kappa_of(n)) ** 2))(tried)
        return tried[jnp.argmin(select(jnp.isfinite(off), off, jnp.inf))]

    rubs = limit > 0
    pushed = _unit(free)
    start = jnp.stack([-gauge.normal, pushed])
    off = jax.vmap(lambda n: jnp.sum(left(n, kappa_of(n)) ** 2))(start)
    n = jax.lax.fori_loop(0, HOLDING, improved, start[jnp.argmin(off)])
    n = select(rubs, n, pushed)
    best = select(holds, needed, -limit * disc_friction(n))
    return Held(select(rubs, best, 0.0), n, holds)


def disc_nearest(friction: Float[Array, " 3"], limit) -> Float[Array, " 3"]:
    """The friction within the limits of a disc that is nearest to ``friction``.

    What is left of it, ``w``, has the direction of a velocity: ``w + limit (phi v, psi s) =
    friction``. A last step of Newton's method carries the derivatives::

        >>> [round(float(x), 9) for x in disc_nearest(jnp.array([3.0, 4.0, 0.0]), 0.5)]
        [0.3, 0.4, 0.0]
    """
    eye = jnp.eye(3, dtype=friction.dtype)
    found = disc_holding(eye, -friction, limit, 0.0)
    left = jax.lax.stop_gradient(friction) - found.friction
    J = eye + jax.lax.stop_gradient(limit * jax.jacfwd(disc_friction)(left))
    left = left - matvec(inverse(J), left + limit * disc_friction(left) - friction)
    return select(found.holds, friction, friction - left)


def _unit(x: Float[Array, " 3"]) -> Float[Array, " 3"]:
    length = jnp.sqrt(jnp.sum(x * x))
    return x / select(length > 0, length, 1.0)
