"""Reactions that share a load: which of them hold, where equilibrium leaves several.

Reactions that balance each other, ``N y``, move nothing. Contacts at rest hold as long as any ``y``
keeps all limits, ``g = A (lambda + N y) + C n >= 0``, linear in reactions ``lambda`` and given
normal forces ``n``. As long as those of smallest norm keep them, these are taken. Otherwise some
limits are ``tight``: carried fully, and the others take the rest. Where one more is passed, it
becomes tight, too, or changes places with one that its increase relieves, both of least index (the
dual simplex method with the rule of Bland, which ends). Where there is none to change places with,
no admissible reactions exist::

    g_j = c + sum_i alpha_i g_i < 0,    alpha <= 0,   g_i >= 0

Limits of friction in planes are cones. There a constant preload ``N y`` is added, the one that
leaves the largest margin to all limits::

    maximise d    subject to    a_j (lambda + N y) + c_j >= d,
                                (mu N_k - d)^2 >= |E_k^-1 lambda_k|^2

by Newton's method on logarithmic barriers; where a limit is passed, another is looked for.

Sources: V. Chvatal, Linear Programming (1983), chapters 3 and 10; S. Boyd, L. Vandenberghe, Convex
Optimization (2004), chapter 11.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.numerics.linear_algebra import diagonal_of, eliminate, inverse, matmul, matvec
from jfric.numerics.tolerances import ROUNDINGS

#: Part of a limit below which reactions that balance each other do not change it, squared.
UNCHANGED = 1e-9
#: Newton steps; by what each sharpens the barriers, up to what; and the largest forces that are
#: looked for, relative to those that were found.
NEWTON, SHARPER, SHARPEST, LARGEST = 100, 1.4, 1e12, 1e3
#: Part of the largest force by which a margin may miss zero, and must grow.
MARGIN = 1e-9
#: Part of the largest share below which one is a rounding error.
SHARE = 1e-9


class Sharing(NamedTuple):
    """How contacts at rest share a load: limits (g,) that are ``tight``, or, where friction acts in
    planes, a ``preload`` (m,); the other is None."""

    tight: Bool[Array, " g"] | None
    preload: Float[Array, " m"] | None


class Room(NamedTuple):
    """Room for reactions (m,) that balance each other to raise limits (g,), which are scaled.

    ``spread``: smallest changes of reactions, in the metric of the mobilities, that raise each
    limit; ``gram``: what these change of all limits; ``scale``: factors of the limits.
    """

    spread: Float[Array, "m g"]
    gram: Float[Array, "g g"]
    scale: Float[Array, " g"]


def room(D: Float[Array, "m m"], null: Float[Array, "m m"], limits: Float[Array, "g m"]) -> Room:
    """``null``: columns of reactions that balance each other, or zeros; ``limits``: their rows."""
    diagonal = diagonal_of(D)
    # As velocities that impulses cause: translations and rotations become comparable.
    weight = jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0))
    columns = weight[:, None] * null
    size = jnp.sum(columns * columns, axis=0)
    used = size > 0
    columns = columns * jnp.where(used, 1.0 / jnp.sqrt(jnp.where(used, size, 1.0)), 0.0)[None, :]
    own = jnp.diag(jnp.where(used, 0.0, 1.0).astype(D.dtype))
    inner = eliminate(matmul(columns.T, columns) + own, 0.0, active=used).inverse
    rows = limits / weight[None, :]
    largest = jnp.sum(rows * rows, axis=1)
    scale = jnp.where(largest > 0, 1.0 / jnp.sqrt(jnp.where(largest > 0, largest, 1.0)), 0.0)
    rows = rows * scale[:, None]
    along = matmul(columns, matmul(inner, matmul(columns.T, rows.T)))
    return Room(along / weight[:, None], matmul(rows, along), scale)


def _shares(room: Room, tight: Bool[Array, " g"]) -> Float[Array, "g g"]:
    """Shares of the ``tight`` limits that bring them to zero, from their values."""
    both = tight[:, None] & tight[None, :]
    gram = jnp.where(both, room.gram, jnp.eye(tight.shape[0], dtype=room.gram.dtype))
    return jnp.where(both, eliminate(gram, 0.0, active=tight).inverse, 0.0)


class Shared(NamedTuple):
    """Changes of reactions (m,) from the values of limits (g,), and the magnitudes of what they are
    made of."""

    change: Float[Array, "m g"]
    size: Float[Array, "m g"]


def shared(room: Room, tight: Bool[Array, " g"]) -> Shared:
    """Changes that bring the ``tight`` limits to zero."""
    shares = _shares(room, tight) * room.scale[None, :]
    change, size = -matmul(room.spread, shares), matmul(jnp.abs(room.spread), jnp.abs(shares))
    # What cancels is not changed.
    rounding = ROUNDINGS * jnp.finfo(change.dtype).eps
    return Shared(jnp.where(jnp.abs(change) <= rounding * size, 0.0, change), size)


def exchange(
    room: Room,
    tight: Bool[Array, " g"],
    passed: Bool[Array, " g"],
    fixed: Bool[Array, " g"],
    above: Bool[Array, " g"],
) -> tuple[Bool[Array, " g"], Bool[Array, ""]]:
    """Limits that are tight next where some are ``passed``, and whether that helps: otherwise no
    reactions hold. Those that are ``fixed`` must be zero, and are passed from ``above``, too."""
    place = jnp.arange(tight.shape[0])
    enters = place == jnp.argmax(passed & ~tight)
    column = jnp.sum(jnp.where(enters[None, :], room.gram, 0.0), axis=1)
    alpha = matvec(_shares(room, tight), jnp.where(tight, column, 0.0))
    alpha = jnp.where((enters & above).any(), -alpha, alpha)
    own = jnp.sum(jnp.where(enters, column, 0.0))
    grows = own - jnp.abs(jnp.sum(jnp.where(tight, alpha * column, 0.0))) > UNCHANGED
    relieved = tight & ~fixed & (alpha > SHARE * jnp.max(jnp.abs(alpha), initial=0.0))
    leaves = relieved & (place == jnp.argmax(relieved)) & ~grows
    helps = (passed & ~tight).any() & (own > UNCHANGED) & (grows | relieved.any())
    return jnp.where(helps, (tight & ~leaves) | enters, tight), helps


class Limits(NamedTuple):
    """Limits that must stay positive, of reactions (m,), which are scaled: linear ones (g,) where
    they are ``used``, and cones, each of a height and its components (c,)."""

    linear: Callable[[Float[Array, " m"]], Float[Array, " g"]]
    used: Bool[Array, " g"]
    cones: Callable[[Float[Array, " m"]], list[tuple[Float[Array, ""], Float[Array, " c"], Array]]]


class Preload(NamedTuple):
    """Reactions (m,) that balance each other, and whether with them all limits hold where they did
    not."""

    reactions: Float[Array, " m"]
    helps: Bool[Array, ""]


def preload(null: Float[Array, "m m"], reactions: Float[Array, " m"], limits: Limits) -> Preload:
    """Preload with which the ``reactions`` keep the largest margin to the ``limits``."""
    k, dtype = null.shape[1], reactions.dtype
    size = jnp.sqrt(jnp.sum(null * null, axis=0))
    columns = null / jnp.where(size > 0, size, 1.0)[None, :]
    free = jnp.where(size > 0, 0.0, 1.0)

    def margins(x):
        """Margins to linear limits (``LARGEST`` where not used) and cones, at preload ``x``."""
        at = reactions + matvec(columns, x)
        return jnp.where(limits.used, limits.linear(at), LARGEST), limits.cones(at)

    def smallest(x):
        lines, cones = margins(x)
        found = [jnp.min(lines, initial=LARGEST)]
        for height, along, used in cones:
            margin = height - jnp.sqrt(jnp.sum(along * along))
            found.append(jnp.where(used, margin, LARGEST))
        return jnp.min(jnp.stack(found))

    def barrier(x, sharp):
        y, d = x[:k], x[k]
        lines, cones = margins(y)
        value = -sharp * d - jnp.sum(jnp.log(lines - d))
        for height, along, used in cones:
            inside = (height - d) ** 2 - jnp.sum(along * along)
            value = value - jnp.where(used, jnp.log(jnp.where(used, inside, 1.0)), 0.0)
        value = value - jnp.log(LARGEST - d) - jnp.log(LARGEST**2 - jnp.sum(y * y))
        return value + 0.5 * jnp.sum(free * y * y)

    def improved(_, carry):
        x, sharp, best, largest = carry
        slope, curvature = jax.grad(barrier)(x, sharp), jax.hessian(barrier)(x, sharp)
        step = -matvec(inverse(curvature), slope)
        decrement = jnp.sqrt(jnp.maximum(-jnp.sum(step * slope), 0.0))
        step = step / (1.0 + decrement)
        x = jnp.where(jnp.all(jnp.isfinite(step)), x + step, x)
        sharp = jnp.minimum(sharp * jnp.where(decrement < 1.0, SHARPER, 1.0), SHARPEST)
        found = smallest(x[:k])
        best = jnp.where(found > largest, x[:k], best)
        return x, sharp, best, jnp.maximum(largest, found)

    none = jnp.zeros((k,), dtype)
    before = smallest(none)
    start = jnp.append(none, jnp.minimum(before, 0.0) - 1.0)
    carry = start, jnp.ones((), dtype), none, before
    _, _, best, after = jax.lax.fori_loop(0, NEWTON, improved, carry)
    helps = (after > -MARGIN) & (after > before + MARGIN)
    return Preload(matvec(columns, best), helps)
