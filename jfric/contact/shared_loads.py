"""Distribution of a load over contacts at rest, where equilibrium allows several.

Reactions that balance each other, ``N y``, cause no motion. Contacts hold at rest as long as any
``y`` keeps all limits, ``g = A (lambda + N y) + C n >= 0``, linear in reactions ``lambda`` and
given normal forces ``n``. The reactions of smallest norm are taken as long as they keep all limits.
Otherwise some limits are ``tight``: fully used, while the others take the rest. Where one more
limit is passed, it becomes tight as well, or replaces one that its increase relieves, both of least
index (the dual simplex method with the rule of Bland, which ends). Where it can replace none, no
admissible reactions exist::

    g_j = c + sum_i alpha_i g_i < 0,    alpha <= 0,   g_i >= 0

Limits of friction in planes are cones. For these a constant preload ``N y`` is added, the one that
leaves the largest margin to all limits::

    maximise d    subject to    a_j (lambda + N y) + c_j >= d,
                                (mu N_k - d)^2 >= |E_k^-1 lambda_k|^2

by Newton's method on logarithmic barriers; where a limit is passed, a new preload is computed.

Sources: V. Chvatal, Linear Programming (1983), chapters 3 and 10; S. Boyd, L. Vandenberghe, Convex
Optimization (2004), chapter 11.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import (
    diagonal_matrix,
    diagonal_of,
    eliminate,
    inverse,
    matmul,
    matvec,
)
from jfric.numerics.tolerances import ROUNDINGS, tolerance_of

#: Newton steps; factor by which each sharpens the barriers, and the final sharpness; and the
#: largest forces considered, relative to those that were found.
NEWTON, SHARPER, SHARPEST, LARGEST = 100, 1.4, 1e12, 1e3
#: Below this, unless the precision needs more: the square of the part of a limit by which balanced
#: reactions change it, a part of the largest share, and a part of the largest force by which a
#: margin may be below zero.
SMALL = 1e-9


class Sharing(NamedTuple):
    """Distribution of a load over contacts at rest: limits (g,) that are ``tight``, or, where
    friction acts in planes, a ``preload`` (m,); the other is None."""

    tight: Bool[Array, " g"] | None
    preload: Float[Array, " m"] | None


class Room(NamedTuple):
    """Room for reactions (m,) that balance each other to raise limits (g,), which are scaled.

    ``spread``: smallest changes of reactions, in the metric of the mobilities, that raise each
    limit; ``gram``: changes of all limits by these; ``scale``: factors of the limits.
    """

    spread: Float[Array, "m g"]
    gram: Float[Array, "g g"]
    scale: Float[Array, " g"]


def room(D: Float[Array, "m m"], null: Float[Array, "m m"], limits: Float[Array, "g m"]) -> Room:
    """Room of the columns ``null``, balanced reactions or zeros, under the rows of ``limits``."""
    diagonal = diagonal_of(D)
    # In velocities that impulses cause, translations and rotations are comparable.
    weight = jnp.sqrt(select(diagonal > 0, diagonal, 1.0))
    columns = weight[:, None] * null
    size = jnp.sum(columns * columns, axis=0)
    used = size > 0
    columns = columns * select(used, 1.0 / jnp.sqrt(select(used, size, 1.0)), 0.0)[None, :]
    own = diagonal_matrix(select(used, 0.0, 1.0).astype(D.dtype))
    inner = eliminate(matmul(columns.T, columns) + own, 0.0, active=used).inverse
    rows = limits / weight[None, :]
    largest = jnp.sum(rows * rows, axis=1)
    scale = select(largest > 0, 1.0 / jnp.sqrt(select(largest > 0, largest, 1.0)), 0.0)
    rows = rows * scale[:, None]
    along = matmul(columns, matmul(inner, matmul(columns.T, rows.T)))
    return Room(along / weight[:, None], matmul(rows, along), scale)


def _shares(room: Room, tight: Bool[Array, " g"]) -> Float[Array, "g g"]:
    """Matrix from the values of the ``tight`` limits to the shares that bring them to zero."""
    both = tight[:, None] & tight[None, :]
    gram = select(both, room.gram, jnp.eye(tight.shape[0], dtype=room.gram.dtype))
    return select(both, eliminate(gram, 0.0, active=tight).inverse, 0.0)


class Shared(NamedTuple):
    """Changes of reactions (m,) by the values of limits (g,), and the magnitudes of the terms of
    these changes."""

    change: Float[Array, "m g"]
    size: Float[Array, "m g"]


def shared(room: Room, tight: Bool[Array, " g"]) -> Shared:
    """Changes that bring the ``tight`` limits to zero."""
    shares = _shares(room, tight) * room.scale[None, :]
    change, size = -matmul(room.spread, shares), matmul(jnp.abs(room.spread), jnp.abs(shares))
    # Terms that cancel leave rounding errors, which count as no change.
    rounding = ROUNDINGS * jnp.finfo(change.dtype).eps
    return Shared(select(jnp.abs(change) <= rounding * size, 0.0, change), size)


def exchange(
    room: Room,
    tight: Bool[Array, " g"],
    passed: Bool[Array, " g"],
    fixed: Bool[Array, " g"],
    above: Bool[Array, " g"],
) -> tuple[Bool[Array, " g"], Bool[Array, ""]]:
    """Limits that are tight next where some are ``passed``, and whether that helps: if not, no
    reactions hold. Limits that are ``fixed`` must be zero; they may also be passed from ``above``.
    """
    place = jnp.arange(tight.shape[0])
    enters = place == jnp.argmax(passed & ~tight)
    column = jnp.sum(select(enters[None, :], room.gram, 0.0), axis=1)
    alpha = matvec(_shares(room, tight), select(tight, column, 0.0))
    alpha = select((enters & above).any(), -alpha, alpha)
    own = jnp.sum(select(enters, column, 0.0))
    small = tolerance_of(own.dtype, SMALL)
    grows = own - jnp.abs(jnp.sum(select(tight, alpha * column, 0.0))) > small
    relieved = tight & ~fixed & (alpha > small * jnp.max(jnp.abs(alpha), initial=0.0))
    leaves = relieved & (place == jnp.argmax(relieved)) & ~grows
    helps = (passed & ~tight).any() & (own > small) & (grows | relieved.any())
    return select(helps, (tight & ~leaves) | enters, tight), helps


class Limits(NamedTuple):
    """Limits of scaled reactions (m,) that must stay positive: linear ones (g,) where they are
    ``used``, and cones, each of a height, its components (c,) and whether it is used."""

    linear: Callable[[Float[Array, " m"]], Float[Array, " g"]]
    used: Bool[Array, " g"]
    cones: Callable[[Float[Array, " m"]], list[tuple[Float[Array, ""], Float[Array, " c"], Array]]]


class Preload(NamedTuple):
    """Reactions (m,) that balance each other, and whether they make all limits hold that did not
    hold before."""

    reactions: Float[Array, " m"]
    helps: Bool[Array, ""]


def preload(null: Float[Array, "m m"], reactions: Float[Array, " m"], limits: Limits) -> Preload:
    """Preload with which the ``reactions`` keep the largest margin to the ``limits``."""
    k, dtype = null.shape[1], reactions.dtype
    size = jnp.sqrt(jnp.sum(null * null, axis=0))
    columns = null / select(size > 0, size, 1.0)[None, :]
    free = select(size > 0, 0.0, 1.0)

    def margins(x):
        """Margins to linear limits (``LARGEST`` where not used) and cones, at preload ``x``."""
        at = reactions + matvec(columns, x)
        return select(limits.used, limits.linear(at), LARGEST), limits.cones(at)

    def smallest(x):
        lines, cones = margins(x)
        found = [jnp.min(lines, initial=LARGEST)]
        for height, along, used in cones:
            margin = height - jnp.sqrt(jnp.sum(along * along))
            found.append(select(used, margin, LARGEST))
        return jnp.min(jnp.stack(found))

    def barrier(x, sharp):
        y, d = x[:k], x[k]
        lines, cones = margins(y)
        value = -sharp * d - jnp.sum(jnp.log(lines - d))
        for height, along, used in cones:
            inside = (height - d) ** 2 - jnp.sum(along * along)
            value = value - select(used, jnp.log(select(used, inside, 1.0)), 0.0)
        value = value - jnp.log(LARGEST - d) - jnp.log(LARGEST**2 - jnp.sum(y * y))
        return value + 0.5 * jnp.sum(free * y * y)

    def improved(_, carry):
        x, sharp, best, largest = carry
        slope, curvature = jax.grad(barrier)(x, sharp), jax.hessian(barrier)(x, sharp)
        step = -matvec(inverse(curvature), slope)
        decrement = jnp.sqrt(jnp.maximum(-jnp.sum(step * slope), 0.0))
        step = step / (1.0 + decrement)
        x = select(jnp.all(jnp.isfinite(step)), x + step, x)
        sharp = jnp.minimum(sharp * select(decrement < 1.0, SHARPER, 1.0), SHARPEST)
        found = smallest(x[:k])
        best = select(found > largest, x[:k], best)
        return x, sharp, best, jnp.maximum(largest, found)

    none = jnp.zeros((k,), dtype)
    # A limit that no preload changes says nothing about how large a preload should be.
    own = jax.vmap(lambda x: limits.linear(reactions + x))(columns.T) - limits.linear(reactions)
    small = tolerance_of(dtype, SMALL)
    limits = limits._replace(used=limits.used & (jnp.abs(own) > small).any(axis=0))
    before = smallest(none)
    start = jnp.append(none, jnp.minimum(before, 0.0) - 1.0)
    carry = start, jnp.ones((), dtype), none, before
    _, _, best, after = jax.lax.fori_loop(0, NEWTON, improved, carry)
    helps = (after > -small) & (after > before + small)
    return Preload(matvec(columns, best), helps)
