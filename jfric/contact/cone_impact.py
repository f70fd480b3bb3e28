"""Impacts where contacts rub in planes: a complementarity problem with second-order cones.

For each touching contact, with ``E = diag(mu)`` and the relative velocities ``gamma+`` after::

    0 <= gamma_N+ + e gamma_N-   _|_   Lambda_N >= 0
    |E^-1 Lambda_T| <= Lambda_N,    Lambda_T = -Lambda_N E^2 gamma_T+ / |E gamma_T+|  (sliding)

Contacts take their impulses in turn, each exactly but for the direction in which it slides, until
nothing changes; Newton's method on the equations of the modes found then removes what is left. One
contact alone ends in few rounds. The laws judge the result. Source of the rounds: M. Jean, The
non-smooth contact dynamics method, Comput. Methods Appl. Mech. Eng. 177 (1999).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.closed_form import Coefficients, contact_impulse, contact_numbers
from jfric.contact.impact import LEFT_OUT, ImpactResult
from jfric.contact.reactions import REDUNDANT_PIVOT, UNMOVED, Planes
from jfric.numerics.linear_algebra import diagonal_of, inverse, matvec
from jfric.results.modes import Mode

#: Most rounds over all contacts, and the change of a round, relative to the velocities, after which
#: nothing changes.
ROUNDS, UNCHANGED = 500, 1e-14
#: Steps of Newton's method behind the rounds.
NEWTON = 6


class Laws(NamedTuple):
    """Data that decide an impact.

    ``D`` (m, m), ``velocity`` (m,): relative velocities before, tangents then normals; ``touching``
    (nu,): contacts with zero gap; ``e`` (nu,); coefficients of friction (nt,) for sliding to either
    side, in planes both the same: that of the direction.
    """

    D: Float[Array, "m m"]
    velocity: Float[Array, " m"]
    touching: Bool[Array, " nu"]
    e: Float[Array, " nu"]
    positive: Float[Array, " nt"]
    negative: Float[Array, " nt"]

    @property
    def target(self) -> Float[Array, " m"]:
        """Velocities before, those of normals with the restitution: what impulses take away."""
        normal = self.velocity[self.positive.shape[0] :]
        rebound = rules.restitution(normal, normal, self.e)
        return jnp.concatenate([self.velocity[: self.positive.shape[0]], rebound])


def solve_cone_impact(
    laws: Laws, planes: Planes, tolerance: Float[Array, " m"], *, independent: bool
) -> ImpactResult:
    """Velocities and impulses after an impact; ``tolerance``: velocities that count as zero."""
    still, tolerance = jax.lax.stop_gradient((laws, tolerance))
    units = _units(laws, planes)
    near = jnp.maximum(tolerance, LEFT_OUT * jnp.max(jnp.abs(still.velocity), initial=0.0))
    start = _in_turn(still, units)
    mode = _modes(still, units, start, near)

    def missed(impulse):
        return _defect(laws, units, mode, impulse)

    def solve(defect, start):
        def one_step(_, x):
            return x - _solved(jax.jacfwd(defect)(x), defect(x), independent)

        return jax.lax.fori_loop(0, NEWTON, one_step, start)

    def tangent_solve(linear, y):
        return _solved(jax.jacfwd(linear)(jnp.zeros_like(y)), y, independent)

    impulse = jax.lax.custom_root(missed, start, solve, tangent_solve)
    after = laws.velocity + matvec(laws.D, impulse)
    found = jax.lax.stop_gradient(impulse)
    solved = _holds(still, units, found, near)
    if not independent:
        solved = solved & _is_unique(still, units, mode, found, near)
    return ImpactResult(impulse, after, mode, solved)


def _units(laws: Laws, planes: Planes) -> list[tuple[int, tuple[int, ...]]]:
    """The normal's row of each contact and its tangents."""
    nt, nu = laws.positive.shape[0], laws.e.shape[0]
    second = {j for _, j in planes}
    of_plane = {i: (i, j) for i, j in planes}
    rows = [i for i in range(nt - nu, nt) if i not in second]
    return [(i + nu, of_plane.get(i, (i,))) for i in rows]


def _in_turn(laws: Laws, units) -> Float[Array, " m"]:
    """Impulses by rounds over the contacts."""
    D, target, nt = laws.D, laws.target, laws.positive.shape[0]
    weight = jnp.sqrt(jnp.where(diagonal_of(D) > 0, diagonal_of(D), 1.0))
    scale = jnp.max(jnp.abs(target) / weight, initial=0.0)

    def unfinished(state):
        i, _, change = state
        return (i < ROUNDS) & (change > UNCHANGED * scale)

    def one_round(state):
        i, impulse, _ = state
        before = impulse
        for normal, tangents in units:
            rows = np.asarray((*tangents, normal))
            own = impulse[rows]
            free = target[rows] + matvec(D[rows], impulse.at[rows].set(0.0))
            of_one = _in_plane if len(tangents) == 2 else _along_a_line
            mu = laws.positive[rows[:-1]], laws.negative[rows[:-1]]
            taken = of_one(D[rows[:, None], rows[None, :]], free, own, *mu)
            on = laws.touching[normal - nt] & (D[normal, normal] > 0)
            impulse = impulse.at[rows].set(jnp.where(on, taken, 0.0))
        return i + 1, impulse, jnp.max(jnp.abs(impulse - before) * weight)

    none = jnp.zeros_like(target)
    return jax.lax.while_loop(unfinished, one_round, (0, none, jnp.full((), jnp.inf, D.dtype)))[1]


def _along_a_line(D, free, own, positive, negative):
    """Impulse of a contact with one tangent, the others given."""
    del own
    rubs = ((positive[0] > 0) | (negative[0] > 0)) & (D[0, 0] > 0)
    tangent = jnp.where(rubs, D[0, 0], 1.0)
    coupling, back = (jnp.where(rubs, x, 0.0) for x in (D[0, 1], D[1, 0]))
    mu = Coefficients(*(positive[0], negative[0]) * 2)
    numbers = contact_numbers(((tangent, coupling), (back, D[1, 1])), mu)
    along, across, _, _ = contact_impulse(numbers, free[0], free[1])
    return jnp.stack([jnp.where(rubs, along, 0.0), across])


def _in_plane(D, free, own, mu, _):
    """Impulse of a contact with two tangents, the others given; where the contact slides, the
    normal impulse is that with the ratio of friction so far."""
    rubs = jnp.all(mu > 0)
    holding = -matvec(inverse(D), free)
    sticks = rubs & (holding[2] >= 0) & (rules.cone_margin(mu, holding[2], holding[:2]) >= 0)
    ratio = own[:2] / jnp.where(own[2] > 0, own[2], 1.0)
    given = D[2, 2] + jnp.sum(D[2, :2] * ratio)
    pressed = jnp.maximum(-free[2] / jnp.where(given > 0, given, D[2, 2]), 0.0)
    held = rules.holding_friction(D[:2, :2], free[:2] + D[:2, 2] * pressed, mu, pressed)
    slid = jnp.append(jnp.where(rubs, held, 0.0), pressed)
    return jnp.where(free[2] >= 0, 0.0, jnp.where(sticks, holding, slid))


def _modes(laws: Laws, units, impulse, near) -> Int[Array, " nt"]:
    """Modes that the impulses tell of; those of friction elements mean nothing."""
    after = laws.velocity + matvec(laws.D, impulse)
    mode = jnp.full(laws.positive.shape, Mode.SLIP_POS, jnp.int32)
    for normal, tangents in units:
        rows = np.asarray(tangents)
        side = rules.slip(after[rows[0]] > 0) if len(tangents) == 1 else Mode.SLIP_POS
        rests = jnp.all(jnp.abs(after[rows]) <= near[rows]) & jnp.all(_rubs(laws, rows))
        closed = jnp.where(rests, Mode.STICK, side)
        mode = mode.at[rows].set(jnp.where(impulse[normal] > 0, closed, Mode.OPEN))
    return mode.astype(jnp.int32)


def _rubs(laws: Laws, rows):
    return (laws.positive[rows] > 0) | (laws.negative[rows] > 0)


def _ratio(laws: Laws, tangents, after):
    """``-Lambda_T / Lambda_N`` of sliding with the velocities ``after`` along the tangents."""
    rows = np.asarray(tangents)
    if len(tangents) == 2:
        return rules.kinetic_ratio(laws.positive[rows], after)
    return jnp.where(after > 0, laws.positive[rows], -laws.negative[rows])


def _defect(laws: Laws, units, mode, impulse) -> Float[Array, " m"]:
    """Residual of the equations of the modes, as velocities."""
    change = matvec(laws.D, impulse)
    after, rebound = laws.velocity + change, laws.target + change
    weight = jnp.where(diagonal_of(laws.D) > 0, diagonal_of(laws.D), 1.0)
    defect = impulse
    for normal, tangents in units:
        rows = np.asarray(tangents)
        ratio = _ratio(laws, tangents, jnp.where(mode[rows] == Mode.STICK, 1.0, after[rows]))
        slides = weight[rows] * (impulse[rows] + ratio * impulse[normal])
        closed = mode[rows[0]] != Mode.OPEN
        along = jnp.where(mode[rows] == Mode.STICK, after[rows], slides)
        defect = defect.at[rows].set(jnp.where(closed, along, impulse[rows]))
        across = jnp.where(closed, rebound[normal], impulse[normal])
        defect = defect.at[normal].set(across)
    return defect


def _solved(J, y, independent: bool):
    """The solution of ``J x = y``, of least norm where rows depend on each other."""
    if independent:
        return matvec(inverse(J), y)
    # Unit diagonal: translations and rotations become comparable.
    size = jnp.sqrt(jnp.where(diagonal_of(J) > 0, diagonal_of(J), 1.0))
    scaled = J / size[:, None] / size[None, :]
    return jnp.linalg.pinv(scaled, rtol=REDUNDANT_PIVOT) @ (y / size) / size


def _is_unique(laws: Laws, units, mode, impulse, near) -> Bool[Array, ""]:
    """Whether impulses that the equations leave open move nothing; contacts left without an impulse
    that would do as well with one have a share."""
    nt = laws.positive.shape[0]
    change = matvec(laws.D, impulse)
    after, rebound = laws.velocity + change, laws.target + change
    for normal, tangents in units:
        rows = np.asarray(tangents)
        met = jnp.abs(rebound[normal]) <= near[normal]
        approached = laws.velocity[normal] < -near[normal]
        shares = (mode[rows[0]] == Mode.OPEN) & laws.touching[normal - nt] & met & approached
        rests = jnp.all(jnp.abs(after[rows]) <= near[rows]) & jnp.all(_rubs(laws, rows))
        side = rules.slip(after[rows[0]] > 0) if len(tangents) == 1 else Mode.SLIP_POS
        closed = jnp.where(rests, Mode.STICK, side).astype(mode.dtype)
        mode = mode.at[rows].set(jnp.where(shares, closed, mode[rows]))
    J = jax.jacfwd(lambda x: _defect(laws, units, mode, x))(impulse)
    size = jnp.sqrt(jnp.where(diagonal_of(J) > 0, diagonal_of(J), 1.0))
    _, values, right = jnp.linalg.svd(J / size[:, None] / size[None, :])
    null = (values <= REDUNDANT_PIVOT * values[0])[:, None] * right / size[None, :]
    speed = jnp.sqrt(jnp.where(diagonal_of(laws.D) > 0, diagonal_of(laws.D), 1.0))
    moved = jnp.abs(null @ laws.D.T) / speed[None, :]
    caused = jnp.abs(null) @ jnp.abs(laws.D.T) / speed[None, :]
    return jnp.all(moved <= UNMOVED * jnp.max(caused, axis=1, keepdims=True))


def _holds(laws: Laws, units, impulse, near) -> Bool[Array, ""]:
    """Whether impulses obey the laws, compared as the velocity changes that they alone cause."""
    nt = laws.positive.shape[0]
    change = matvec(laws.D, impulse)
    after, rebound = laws.velocity + change, laws.target + change
    weight = jnp.where(diagonal_of(laws.D) > 0, diagonal_of(laws.D), 1.0)
    slack = near / weight
    holds = jnp.all(jnp.isfinite(impulse))
    for normal, tangents in units:
        rows = np.asarray(tangents)
        pressed, friction = impulse[normal], impulse[rows]
        slow = jnp.all(jnp.abs(after[rows]) <= near[rows])
        slides = jnp.abs(friction + _ratio(laws, tangents, after[rows]) * pressed) <= slack[rows]
        if len(tangents) == 2:
            mu = laws.positive[rows]
            r = rules.ratio_of(mu)
            carried = jnp.sqrt(friction[0] ** 2 + (friction[1] / r) ** 2)
            within = carried <= mu[0] * pressed + slack[rows[0]]
        else:
            within = laws.positive[rows] * pressed + friction >= -slack[rows]
            within = within & (laws.negative[rows] * pressed - friction >= -slack[rows])
            within = jnp.all(within)
        closed = jnp.abs(rebound[normal]) <= near[normal]
        rubs = jnp.where(slow, within, jnp.all(slides))
        free = (jnp.abs(pressed) <= slack[normal]) & jnp.all(jnp.abs(friction) <= slack[rows])
        away = ~laws.touching[normal - nt] | (rebound[normal] >= -near[normal])
        holds = holds & ((free & away) | ((pressed >= -slack[normal]) & closed & rubs))
    return holds
