"""Reactions of active contacts: a masked linear system in contact space.

Rows are ordered tangents (nt), then normals (nu). With ``W`` the stacked directions and
``D = W M^-1 W^T``, the active rows ``a`` satisfy ``W_a dv = r_a`` where ``dv = M^-1 W^T lambda``
and ``lambda = S y``: ``S`` expresses the friction of a sliding contact by its normal force.
The same equations hold for accelerations and forces, and for velocity jumps and impulses. Where
friction acts along other directions ``R`` than those of sliding, ``D = W M^-1 R^T``.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import (
    UNROLLED_INVERSE,
    Elimination,
    diagonal_of,
    eliminate,
    least_norm,
    matmul,
    matvec,
    null_space,
)
from jfric.numerics.loops import once, where_any
from jfric.numerics.tolerances import REDUNDANT, ROUNDINGS, tolerance_of
from jfric.results.modes import Mode

#: Relative accelerations below this part of their contributions come from a pivot that counts as
#: zero, in such pivots.
UNMOVED = 100.0
#: Rows up to which the forces of redundant contacts are computed in any case: a choice costs more.
FEW_ROWS = 2


#: The components of each unilateral contact with friction in a plane, which share one gap.
Planes = tuple[tuple[int, ...], ...]


class Coupling(NamedTuple):
    """The matrix ``S``: the identity, and ``lambda_T = ratio lambda_N`` for unilateral contacts.

    ``carrier`` (nu,): contact whose normal force that is; None where it is each contact's own.
    """

    ratio: Float[Array, " nu"]
    carrier: np.ndarray | None = None

    def after(self, D: Float[Array, "k m"]) -> Float[Array, "k m"]:
        """The product ``D S``."""
        nu = self.ratio.shape[0]
        if nu == 0:
            return D
        nt = D.shape[1] - nu
        caused = D[:, nt - nu : nt] * self.ratio[None, :]
        if self.carrier is not None:
            return D.at[:, nt + self.carrier].add(caused)
        return jnp.concatenate([D[:, :nt], D[:, nt:] + caused], axis=1)

    def before(self, X: Float[Array, "m k"]) -> Float[Array, "m k"]:
        """The product ``S X``."""
        nu = self.ratio.shape[0]
        if nu == 0:
            return X
        nt = X.shape[0] - nu
        normal = X[nt:] if self.carrier is None else X[nt + self.carrier]
        follows = X[nt - nu : nt] + self.ratio[:, None] * normal
        return jnp.concatenate([X[: nt - nu], follows, X[nt:]])


def coupling(
    mode: Int[Array, " nt"],
    kinetic_positive: Float[Array, " nt"],
    kinetic_negative: Float[Array, " nt"],
    n_friction: int,
    planes: Planes = (),
) -> Coupling:
    """Coupling ``lambda_T = -s mu lambda_N`` of sliding contacts; in :data:`Planes` the first
    component has the normal force."""
    m, p, n = mode[n_friction:], kinetic_positive[n_friction:], kinetic_negative[n_friction:]
    ratio = select(m == Mode.SLIP_POS, -p, select(m == Mode.SLIP_NEG, n, 0.0))
    carrier = None
    if planes:
        carrier = np.arange(mode.shape[0] - n_friction)
        for i, *others in planes:
            carrier[np.asarray(others) - n_friction] = i - n_friction
    return Coupling(ratio, carrier)


def no_coupling(dtype) -> Coupling:
    """Coupling without sliding friction: the identity."""
    return Coupling(jnp.zeros((0,), dtype))


def active_rows(mode: Int[Array, " nt"], n_friction: int, planes: Planes = ()) -> Bool[Array, " m"]:
    """Rows that hold an equation: tangents that stick and normals that are closed, one normal for
    each of the :data:`Planes`."""
    closed = mode[n_friction:] != Mode.OPEN
    for _, *others in planes:
        closed = closed.at[np.asarray(others) - n_friction].set(False)
    return jnp.concatenate([mode == Mode.STICK, closed])


class Reactions(NamedTuple):
    """Operators that give reactions from the right-hand side of the active rows.

    ``motion``: reactions for the motion; redundant rows carry none. ``force``: reactions of
    minimum norm, with the same motion. ``pivot``: smallest relative pivot; a negative one means
    that accelerations need not exist or be unique (Painleve). ``dependent``: active rows that
    follow from others, or whose pivot vanishes through friction. The operators do not enforce these
    rows: the caller must check whether the motion obeys them. ``unique``: whether forces that the
    equations leave open cause no motion; the friction of a sliding contact whose normal force is
    open does cause one. ``null``: columns of reactions that the equations leave open, one for each
    of ``dependent`` rows, else zeros; None for one contact, or where reactions are always unique.
    """

    motion: Float[Array, "m m"]
    force: Float[Array, "m m"]
    pivot: Float[Array, ""]
    redundant: Bool[Array, ""]
    dependent: Bool[Array, " m"]
    unique: Bool[Array, ""]
    null: Float[Array, "m m"] | None = None


def reaction_operator(
    D: Float[Array, "m m"],
    active: Bool[Array, " m"],
    S: Coupling,
    *,
    independent: bool,
    n_normals: int = 0,
    causes: Float[Array, "n m"] | None = None,
    size: Float[Array, " m"] | None = None,
    forces: bool = True,
) -> Reactions:
    """Operators ``R`` with ``lambda = R r``.

    ``independent``: active rows are known to be linearly independent, whatever the friction.
    Otherwise redundant ones (two supports under one rigid body) are found: accelerations are
    unique, forces are not. The last ``n_normals`` rows are the last to be called dependent.
    ``causes``: accelerations by unit reactions, times square roots of inertias. It is needed where
    ``D`` is not symmetric: forces without motion in contact space may cause motion elsewhere.
    ``size``: diagonal of ``D`` without joints, where joints cancel a part of it. ``forces``:
    whether reactions of minimum norm, their null space and uniqueness are needed, not the motion
    alone.
    """
    m = D.shape[0]
    if m == 0:
        one = jnp.ones((), D.dtype)
        return Reactions(D, D, one, jnp.asarray(False), active, jnp.asarray(True))
    if m == 2 and (independent or S.ratio.shape[0] == 1):
        return _of_two_rows(D, active, S, independent=independent)
    mask = active[:, None] & active[None, :]
    B = select(mask, S.after(D), jnp.eye(m, dtype=D.dtype))
    # Unit diagonal of the frictionless part: translations and rotations become comparable.
    weight = select(active, comparable(D, size), 1.0)
    scaled = B * weight[:, None] * weight[None, :]
    if independent:
        result = eliminate(scaled, 0.0, active=active)
    else:
        result = eliminate(
            scaled, tolerance_of(D.dtype, REDUNDANT), jnp.arange(m) >= m - n_normals, active
        )
    X = select(mask, result.inverse * weight[:, None] * weight[None, :], 0.0)
    motion = S.before(X)
    if m > UNROLLED_INVERSE:
        # Otherwise the compiler computes each entry, one by one, inside products with vectors.
        motion = once(motion, active.any())
    redundant = result.dependent.any()
    if independent or not forces:
        unique = jnp.asarray(True)
        return Reactions(motion, motion, result.pivot, redundant, result.dependent, unique)
    shared = functools.partial(_shared, D, active, S, weight, result, motion, causes, size)
    if m <= FEW_ROWS:
        motion, force, unique, null = shared()
    else:
        # Most systems are not redundant; finding out costs more than the rest.
        # The results are stored arrays: the compiler would compute them anew in each product.
        otherwise = motion, motion, jnp.asarray(True), jnp.zeros_like(motion)
        motion, force, unique, null = where_any(redundant, shared, otherwise)
    return Reactions(motion, force, result.pivot, redundant, result.dependent, unique, null)


def comparable(D: Float[Array, "m m"], size: Float[Array, " m"] | None) -> Float[Array, " m"]:
    """Factors of rows that make translations and rotations comparable; ``size`` as in
    :func:`reaction_operator`."""
    own = diagonal_of(D)
    if size is not None:
        # Pivots are compared with the rounding of what cancels: its rest has fewer digits.
        known = ROUNDINGS * float(jnp.finfo(D.dtype).eps) / tolerance_of(D.dtype, REDUNDANT)
        own = jnp.maximum(own, known * size)
    return jax.lax.rsqrt(select(own > 0, own, 1.0))


def spread(found: Reactions, at: int, count: int) -> Reactions:
    """Reactions ``found`` with ``count`` additional rows from ``at`` on, which carry nothing."""

    def wider(x):
        for axis in range(x.ndim):
            first, last = jnp.split(x, [at], axis=axis)
            shape = [count if i == axis else n for i, n in enumerate(x.shape)]
            x = jnp.concatenate([first, jnp.zeros(shape, x.dtype), last], axis=axis)
        return x

    return found._replace(
        motion=wider(found.motion),
        force=wider(found.force),
        dependent=wider(found.dependent),
        null=None if found.null is None else wider(found.null),
    )


def _of_two_rows(D, active, S: Coupling, *, independent: bool) -> Reactions:
    """Reactions in closed form, for one contact or two rows that are independent.

    Friction enters where only the normal of a contact is active: the contact slides.
    """
    (tt, tn), (nt, nn) = D
    along = nn + nt * S.ratio[0] if S.ratio.shape[0] else nn
    determinant, first, second = tt * nn - tn * nt, active[0], active[1]
    pair, carries, dependent = first & second, second, jnp.zeros((2,), bool)
    if not independent:
        least = tolerance_of(D.dtype, REDUNDANT)
        pair = pair & (jnp.abs(determinant) > least * tt * nn)
        carries = second & (pair | (jnp.abs(along) > least * nn))
        dependent = jnp.stack([first & second & ~pair, second & ~carries])
    alone = select(carries, along, select(first & ~second, tt, 1.0))
    inverse = 1.0 / select(pair, determinant, alone)
    cross = select(pair, inverse, 0.0)
    row = select(pair, nn, select(first & ~second, 1.0, 0.0)) * inverse
    other = select(pair, tt, select(carries, 1.0, 0.0)) * inverse
    X = jnp.stack([jnp.stack([row, -tn * cross]), jnp.stack([-nt * cross, other])])
    scale = select(pair, tt * nn, select(carries, nn, 1.0))
    pivot = select(pair, determinant, select(carries, along, 1.0)) / scale
    motion = S.before(X)
    if independent:
        return Reactions(motion, motion, pivot, dependent.any(), dependent, ~dependent[1])
    # Two rows in one direction leave these forces open; they cause no motion.
    null = jnp.stack([jnp.ones_like(tn), -tn / nn])
    share = null[:, None] * matvec(motion.T, null)[None, :] / jnp.sum(null * null)
    force = motion - select(dependent[0], share, 0.0)
    return Reactions(motion, force, pivot, dependent.any(), dependent, ~dependent[1])


def _shared(D, active, S: Coupling, weight, result: Elimination, motion, causes, own_size):
    """``motion``, reactions of minimum norm, whether ``null`` causes no motion, and ``null``."""
    # Forces that do no work on the motion: a dependent row balanced by independent ones.
    dependent = result.dependent
    N = S.before(null_space(result, weight, active))
    moved, size = matmul(D, N), matmul(jnp.abs(D), jnp.abs(N))
    unmoved = UNMOVED * tolerance_of(D.dtype, REDUNDANT)
    # In velocities that a unit impulse causes, translations and rotations are comparable.
    scale = comparable(D, own_size)[:, None]
    largest = jnp.max(size * scale, axis=0)
    unique = jnp.all(jnp.abs(moved) * scale <= unmoved * largest[None, :])
    if causes is not None:
        moved, size = matmul(causes, N), matmul(jnp.abs(causes), jnp.abs(N))
        unique = unique & jnp.all(jnp.abs(moved) <= unmoved * jnp.max(size, axis=0, keepdims=True))
    force = least_norm(motion, N, dependent)
    return motion, select(dependent.any(), force, motion), unique, N


def spanned(
    D: Float[Array, "m m"], active: Bool[Array, " m"], size: Float[Array, " m"] | None
) -> tuple[Bool[Array, " m"], Float[Array, "m m"]]:
    """Rows that are combinations of the active ones, and the weights of these combinations.

    The active rows then determine the relative motion of these rows, too: they are held.
    """
    none = no_coupling(D.dtype)
    R = reaction_operator(D, active, none, independent=False, size=size, forces=False)
    weights = matmul(D, R.motion)
    rest = diagonal_of(D) - jnp.sum(weights * D, axis=1)
    small = tolerance_of(D.dtype, REDUNDANT)
    return ~active & (rest * comparable(D, size) ** 2 <= small), weights
