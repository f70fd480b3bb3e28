"""Equations of motion, reactions and guards of one contact in a fixed mode, as rows of scalars.

The same equations as :mod:`jfric.solvers.event_driven.mode_equations` and
:mod:`jfric.solvers.event_driven.guards`; rows are over ``(q, v, w)``. With magnitudes in place of
numbers and sums in place of differences, they bound rounding errors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.contact.reactions import REDUNDANT_PIVOT
from jfric.numerics.linear_algebra import matmul
from jfric.results.modes import Mode
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.scalar_given import ScalarGiven
from jfric.solvers.event_driven.scalar_rows import (
    Row,
    combine,
    dot,
    magnitudes,
    select,
    times,
    total,
)


class Operators(NamedTuple):
    """Products of matrices that stay the same during a run. Rows: tangent, then normal."""

    M_inverse: Float[Array, "n n"]
    #: ``M^-1 K`` and ``M^-1 C``; ``W M^-1 K`` and ``W M^-1 C``.
    K: Float[Array, "n n"]
    C: Float[Array, "n n"]
    WK: Float[Array, "m n"]
    WC: Float[Array, "m n"]
    #: ``W M^-1``.
    WM: Float[Array, "m n"]
    W: Float[Array, "m n"]


def operators(prepared: Prepared) -> tuple[Operators, Operators]:
    """The products, and the same products of magnitudes."""
    mechanics = prepared.mechanics

    def products(M_inverse, K, C, WM, W):
        return Operators(
            M_inverse,
            matmul(M_inverse, K),
            matmul(M_inverse, C),
            matmul(WM, K),
            matmul(WM, C),
            WM,
            W,
        )

    parts = (mechanics.M_inverse, mechanics.K, mechanics.C, prepared.MW.T, prepared.W)
    return products(*parts), products(*(jnp.abs(x) for x in parts))


class Reaction(NamedTuple):
    """``lambda = X r`` from the right-hand sides of the active rows, in one mode.

    ``slide``: friction of a sliding element over its given normal force. ``ratio``: friction over
    normal force of a sliding contact. ``pivot``: as in
    :class:`jfric.contact.reactions.Reactions`. ``blocked``: whether that vanishes, so that
    no normal force changes the normal acceleration.
    """

    tt: Any
    tn: Any
    nt: Any
    nn: Any
    slide: Any
    ratio: Any
    pivot: Any
    blocked: Any = False

    def apply(self, r: list[Row]) -> list[Row]:
        """Rows of the reactions from rows of right-hand sides (tangent, and normal if any)."""
        if len(r) == 1:
            return [combine([self.tt], r)]
        return [combine([self.tt, self.tn], r), combine([self.nt, self.nn], r)]


def reaction(prepared: Prepared, mode) -> Reaction:
    """The reactions of the one contact in ``mode``."""
    D = prepared.D
    positive, negative = prepared.kinetic_positive[0], prepared.kinetic_negative[0]
    stick = mode == Mode.STICK
    ratio = jnp.where(
        mode == Mode.SLIP_POS, -positive, jnp.where(mode == Mode.SLIP_NEG, negative, 0.0)
    )
    one = jnp.ones_like(ratio)
    if prepared.nu == 0:
        holds = stick & (D[0, 0] > 0)
        inverse = jnp.where(holds, 1.0 / jnp.where(holds, D[0, 0], 1.0), 0.0)
        return Reaction(inverse, 0.0, 0.0, 0.0, ratio, 0.0, one)
    (tt, tn), nn = (D[0, 0], D[0, 1]), D[1, 1]
    determinant = tt * nn - tn * tn
    holds = stick & (determinant > 0)
    inverse = jnp.where(holds, 1.0 / jnp.where(holds, determinant, 1.0), 0.0)
    along = nn + ratio * tn
    closed = ~stick & (mode != Mode.OPEN)
    rough = not prepared.mechanics.frictionless[0]
    blocked = closed & (jnp.abs(along) < REDUNDANT_PIVOT * nn) if rough else False
    carries = closed & ~blocked if rough else closed
    press = jnp.where(carries, 1.0 / jnp.where(carries, along, 1.0), 0.0)
    cross = -tn * inverse
    return Reaction(
        tt=nn * inverse,
        tn=jnp.where(stick, cross, ratio * press),
        nt=cross,
        nn=jnp.where(stick, tt * inverse, press),
        slide=0.0,
        ratio=ratio,
        pivot=jnp.where(closed, along / nn, one),
        blocked=blocked,
    )


class Motion(NamedTuple):
    """Rows over ``(q, v, w)``: accelerations, friction, and the normal force that it belongs to.

    Of a blocked contact the normal force that it would carry without friction: unless that is
    negative, so that the contact opens, there is no motion, or more than one.
    """

    a: list[Row]
    friction: Row
    normal_force: Row


def motion(
    prepared: Prepared, x: Operators, g: ScalarGiven, X: Reaction, *, magnitude: bool
) -> Motion:
    """Accelerations and reactions; ``g`` and ``X`` hold magnitudes if ``magnitude``."""
    n, m = prepared.mechanics.n, prepared.W.shape[0]
    sign = 1.0 if magnitude else -1.0
    residuals = []
    for r in range(m):
        pushed = combine([x.WM[r, i] for i in range(n)], g.force)
        residuals.append(
            [
                *(x.WK[r, j] for j in range(n)),
                *(x.WC[r, j] for j in range(n)),
                *combine([1.0, sign], [g.acceleration[r], pushed]),
            ]
        )
    reactions = X.apply(residuals)
    given = [*[0.0] * (2 * n), *g.normal]
    if prepared.nf and (magnitude or prepared.mechanics.laws[0].velocity_independent):
        reactions[0] = combine([1.0, X.slide], [reactions[0], given])
    if g.basis.others > n:
        # Friction of a law that depends on the sliding velocity comes last.
        last = [0.0] * len(given)
        last[-1] = 1.0
        reactions[0] = combine([1.0, 1.0], [reactions[0], last])
    a = []
    for i in range(n):
        free = [
            *(sign * x.K[i, j] for j in range(n)),
            *(sign * x.C[i, j] for j in range(n)),
            *combine([x.M_inverse[i, j] for j in range(n)], g.force),
        ]
        a.append(combine([1.0, *(x.WM[r, i] for r in range(m))], [free, *reactions]))
    if not prepared.nu:
        return Motion(a, reactions[0], given)
    normal_force = reactions[1]
    if X.blocked is not False:
        needed = combine([1.0 / prepared.D[1, 1]], [residuals[1]])
        normal_force = select(X.blocked, needed, normal_force)
    return Motion(a, reactions[0], normal_force)


def with_exact_rows(prepared: Prepared, mode, a: list[Row], g: ScalarGiven) -> list[Row]:
    """Accelerations of degrees of freedom that the contact alone prescribes, without rounding."""
    n = prepared.mechanics.n
    for r, dof, held in held_dofs(prepared, mode):
        exact = [*[0.0] * (2 * n), *combine([1.0 / prepared.W[r, dof]], [g.acceleration[r]])]
        a = [select(held, exact, row) if i == dof else row for i, row in enumerate(a)]
    return a


def held_dofs(prepared: Prepared, mode):
    """(row, degree of freedom, whether it holds) for rows that act on one alone."""
    mechanics = prepared.mechanics
    (tangent,) = mechanics.single_tangent
    if tangent is not None:
        yield 0, tangent, mode == Mode.STICK
    for dof in mechanics.single_normal:
        if dof is not None:
            yield 1, dof, mode != Mode.OPEN


def projected(prepared: Prepared, x: Operators, g: ScalarGiven, X: Reaction, mode, q, v):
    """The state on the constraints of its mode, as
    :func:`jfric.solvers.event_driven.mode_equations.project` puts it there."""
    n, m = prepared.mechanics.n, prepared.W.shape[0]
    w = g.basis.w
    active = [mode == Mode.STICK, mode != Mode.OPEN][:m]
    prescribed = [dot(row, w) for row in g.velocity]
    relative = [total(x.W[r, i] * v[i] for i in range(n)) for r in range(m)]
    defects = [jnp.where(active[r], prescribed[r] - relative[r], 0.0) for r in range(m)]
    changes = X.apply([[d] for d in defects])
    v = [v[i] + total(times(x.WM[r, i], changes[r][0]) for r in range(m)) for i in range(n)]
    gap: Any = 0.0
    if prepared.nu:
        gap = dot(g.gap, w)
        missing = -(gap + total(x.W[1, i] * q[i] for i in range(n)))
        missing = jnp.where(active[1], missing, 0.0)
        q = [q[i] + missing * (x.WM[0, i] * X.tn + x.WM[1, i] * X.nn) for i in range(n)]
    for r, dof, held in held_dofs(prepared, mode):
        inverse = 1.0 / prepared.W[r, dof]
        v[dof] = jnp.where(held, prescribed[r] * inverse, v[dof])
        if r == 1:
            q[dof] = jnp.where(held, -gap * inverse, q[dof])
    return q, v


def guard_rows(
    prepared: Prepared, x: Operators, g: ScalarGiven, y: Motion, mode, *, magnitude: bool
) -> list[Row]:
    """The two guards of the contact."""
    n = prepared.mechanics.n
    sign = 1.0 if magnitude else -1.0
    empty: Row = [0.0] * n
    one = [*empty, *empty, 1.0, *[0.0] * (g.basis.size - 1)]
    frictionless = prepared.mechanics.frictionless[0]
    gamma = [
        *empty,
        *(x.W[0, i] for i in range(n)),
        *combine([sign], [g.velocity[0]]),
    ]
    if frictionless:
        first = one
    else:
        first = (
            gamma if magnitude else select(mode == Mode.SLIP_POS, gamma, combine([-1.0], [gamma]))
        )
    second = one
    if not frictionless:
        positive, negative = prepared.static_positive[0], prepared.static_negative[0]
        stick = mode == Mode.STICK
        first = select(stick, combine([positive, 1.0], [y.normal_force, y.friction]), first)
        second = select(stick, combine([negative, sign], [y.normal_force, y.friction]), second)
    if prepared.nu:
        is_open = mode == Mode.OPEN
        gap = [*(x.W[1, i] for i in range(n)), *empty, *g.gap]
        limited = (mode == Mode.STICK) & ~prepared.unlimited[0]
        first = select(is_open, gap, first)
        second = select(is_open, one, select(limited, second, y.normal_force))
    return [first, second]


class Magnitudes(NamedTuple):
    """What is given, the motion and the guards, all from magnitudes."""

    g: ScalarGiven
    y: Motion
    guards: list[Row]


def magnitude_rows(
    prepared: Prepared, absolute: Operators, g: ScalarGiven, X: Reaction, mode
) -> Magnitudes:
    """Rows that bound the contributions to those of a mode."""
    static = jnp.maximum(prepared.static_positive[0], prepared.static_negative[0])
    assert g.bound is not None
    waves = [*g.basis.sizes(), *[0.0] * g.basis.others]
    sized = g.bound._replace(basis=g.basis._replace(w=waves))
    blocked = X.blocked
    tt, tn, nt, nn = magnitudes(list(X[:4]))
    slide = static if prepared.nf else 0.0
    X = Reaction(tt, tn, nt, nn, slide=slide, ratio=0.0, pivot=1.0, blocked=blocked)
    y = motion(prepared, absolute, sized, X, magnitude=True)
    return Magnitudes(sized, y, guard_rows(prepared, absolute, sized, y, mode, magnitude=True))
