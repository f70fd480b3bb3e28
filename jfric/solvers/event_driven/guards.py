"""Guards: functions that stay positive while the mode lasts.

Each contact has two, then each piecewise-linear element has two, then each polygon has two, which
are positive in the region in which it is touched. With ``mu`` the static coefficients of the two
directions::

    stick   mu(+) N + lambda_T,  mu(-) N - lambda_T
    slip    s gamma_T,           lambda_N   (unilateral contacts)
    open    g_N

In a plane the first guard is the margin to the limit, which sliding keeps unless it begins while
friction could hold; the second is the normal force of a contact. Both are stored at the first
component.

If both limits hold the contact presses, unless both coefficients are zero. The second guard of a
contact with zero coefficients is its normal force in stick, too, and its friction must vanish
identically.

Guards are linear in the quantities of which they are made. The leading axis ``p`` of these may hold
anything that commutes with linear combinations: polynomial coefficients, points, or a basis.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.choice import select
from jfric.results.modes import Mode
from jfric.solvers.event_driven.prepared import Prepared
from jfric.system.piecewise import Inner


class Quantities(NamedTuple):
    """Quantities of which guards are made; ``one`` (p, 1) is the constant 1."""

    one: Float[Array, "p 1"]
    gamma: Float[Array, "p nt"]
    lambda_t: Float[Array, "p nt"]
    lambda_n: Float[Array, "p nu"]
    normal: Float[Array, "p nf"]
    gap: Float[Array, "p nu"]
    elongation: Float[Array, "p ns"]
    elongation_rate: Float[Array, "p ns"]
    #: Margin of friction in planes to its limits, see :mod:`jfric.contact.rules.planes`.
    margin: Float[Array, "p np"]
    #: Values of the inequalities of polygons' regions: the first of all, then the second.
    region: Float[Array, "p nr"]


def guards(prepared: Prepared, mode, inner: Inner, x: Quantities) -> Float[Array, "p g"]:
    """Values of all guards, from the quantities ``x``."""
    return _assemble(prepared, mode, inner, x, magnitude=False)


def guard_magnitudes(prepared: Prepared, mode, inner: Inner, x: Quantities) -> Float[Array, "p g"]:
    """Sums of the magnitudes of all contributions, from those of the quantities.

    A guard below the rounding error of this sum cannot be distinguished from zero.
    """
    return _assemble(prepared, mode, inner, x, magnitude=True)


def force_limits(prepared: Prepared, mode, inner: Inner) -> Float[Array, "g k"]:
    """Guards of contacts (2 nt) over reactions (m) and given normal forces (nf) alone."""
    nt, nu, nf = prepared.nt, prepared.nu, prepared.nf
    size = nt + nu + nf
    unit = jnp.eye(size, dtype=prepared.D.dtype)
    lambda_t, lambda_n, normal = jnp.split(unit, (nt, nt + nu), axis=1)

    def none(count: int):
        return jnp.zeros((size, count), unit.dtype)

    count, mechanics = prepared.mechanics.piecewise.count, prepared.mechanics
    x = Quantities(
        one=none(1),
        gamma=none(nt),
        lambda_t=lambda_t,
        lambda_n=lambda_n,
        normal=normal,
        gap=none(nu),
        elongation=none(count),
        elongation_rate=none(count),
        margin=none(len(mechanics.planes)),
        region=none(2 * len(mechanics.polygons)),
    )
    return guards(prepared, mode, inner, x)[:, : 2 * nt].T


def _assemble(prepared: Prepared, mode, inner: Inner, x: Quantities, *, magnitude: bool):
    return jax.vmap(lambda row: _one_row(prepared, mode, inner, row, magnitude=magnitude))(x)


def _one_row(prepared: Prepared, mode, inner: Inner, x: Quantities, *, magnitude: bool):
    """Guards of one coefficient of each quantity."""
    nf = prepared.nf
    minus = 1.0 if magnitude else -1.0
    normal_force = jnp.concatenate([x.normal, x.lambda_n])
    one = jnp.broadcast_to(x.one, x.gamma.shape)
    stick = mode == Mode.STICK
    sliding = select(mode == Mode.SLIP_POS, x.gamma, minus * x.gamma)
    sliding = select(prepared.frictionless, one, sliding)
    first = select(stick, prepared.static_positive * normal_force + x.lambda_t, sliding)
    second = select(stick, prepared.static_negative * normal_force + minus * x.lambda_t, one)
    if prepared.nu:
        m = mode[nf:]
        is_open, is_stick = m == Mode.OPEN, m == Mode.STICK
        one_u = one[nf:]
        apart = x.gap if prepared.let_go is None else select(prepared.let_go, one_u, x.gap)
        gap = select(is_open, apart, first[nf:])
        limited = is_stick & ~prepared.unlimited[nf:]
        pulls = select(is_open, one_u, select(limited, second[nf:], x.lambda_n))
        first = jnp.concatenate([first[:nf], gap])
        second = jnp.concatenate([second[:nf], pulls])
    for k, pair in enumerate(prepared.mechanics.planes):
        rows = np.asarray(pair)
        own, pulls = x.margin[k], one[pair[0]]
        if pair[0] >= nf:
            contact = pair[0] - nf
            opened, slid = mode[pair[0]] == Mode.OPEN, mode[pair[0]] == Mode.SLIP_POS
            # The margin of sliding is one: no rounding error may decide.
            own = select(slid, one[pair[0]], own) if magnitude else own
            own = select(opened, x.gap[contact], own)
            pulls = select(opened, pulls, x.lambda_n[contact])
        first, second = first.at[rows].set(one[rows]), second.at[rows].set(one[rows])
        first, second = first.at[pair[0]].set(own), second.at[pair[0]].set(pulls)
    parts = [first, second]
    piecewise = prepared.mechanics.piecewise
    if piecewise.count:
        alpha, beta, delta = jnp.moveaxis(piecewise.guards_at(inner), -1, 0)
        if magnitude:
            alpha, beta, delta = jnp.abs(alpha), jnp.abs(beta), jnp.abs(delta)
        own = [
            alpha[:, g] * x.elongation + beta[:, g] * x.elongation_rate + x.one * delta[:, g]
            for g in (0, 1)
        ]
        cross = piecewise.cross_guards(inner)
        if cross is not None:
            alpha, beta = (jnp.abs(y) for y in cross) if magnitude else cross
            of_all = alpha @ x.elongation + beta @ x.elongation_rate
            own = [y + of_all[:, g] for g, y in enumerate(own)]
        parts += own
    return jnp.concatenate([*parts, x.region])
