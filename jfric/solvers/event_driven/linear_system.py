"""Equations of a mode as rows over ``z = (q, v, w)``, with the basis ``w`` of the inputs.

A mode with linear equations is one system ``dz/ds = A z``, loads included. For large systems,
reactions and guards are computed order by order from the coefficients of ``z`` instead, as such
rows would cost more than all their uses. Rounding errors are bounded by the same matrices with the
magnitudes of all contributions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.numerics.linear_algebra import matmul, matvec
from jfric.solvers.event_driven.guards import Quantities, guard_magnitudes, guards
from jfric.solvers.event_driven.inputs import Given
from jfric.solvers.event_driven.mode_equations import ModeEquations, reaction_sizes
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.state import State


class LinearSystem(NamedTuple):
    """Generator, and rows of reactions and guards."""

    z: Float[Array, " z"]
    A: Float[Array, "z z"]
    #: lambda_t, lambda_n, normal forces of friction elements, prescribed rates of tangents,
    #: elongations of elements with sliders.
    reactions: Float[Array, "r z"]
    guards: Float[Array, "g z"]
    #: Relative velocities of tangents and normals.
    relative: Float[Array, "m z"]
    #: Quantities of which guards are made, each of shape (z, ...).
    quantities: Quantities


class Made(NamedTuple):
    """Reactions and guards as in :class:`LinearSystem`, at points, orders or basis vectors."""

    reactions: Float[Array, "p r"]
    guards: Float[Array, "p g"]
    relative: Float[Array, "p m"]
    #: Quantities of which guards are made, each of shape (p, ...).
    quantities: Quantities


class Coefficients(NamedTuple):
    """Motion, basis and forces order by order: ``k``-th derivatives times ``h^k / k!``."""

    q: Float[Array, "p n"]
    v: Float[Array, "p n"]
    a: Float[Array, "p n"]
    w: Float[Array, "p b"]
    force: Float[Array, "p n"]

    def along(self, positions=None, velocities=None, given=None) -> Float[Array, "p k"]:
        """Linear combinations of positions, velocities and basis, by the rows of each."""
        parts = ((self.q, positions), (self.v, velocities), (self.w, given))
        found = [matmul(x, rows.T) for x, rows in parts if rows is not None]
        return sum(found[1:], found[0])

    def reactions(self, L) -> Float[Array, "p m"]:
        """Reactions to the forces."""
        return matmul(self.force, L.T)


class _Rows(NamedTuple):
    """Basis vectors of ``z`` as points for :func:`make`, which then finds rows over ``z``."""

    n: int
    size: int
    force: Float[Array, "n z"]
    #: Rows of reactions that do not follow from forces.
    own: Float[Array, "m z"] | float

    def along(self, positions=None, velocities=None, given=None) -> Float[Array, "z k"]:
        parts = ((positions, self.n), (velocities, self.n), (given, self.size - 2 * self.n))
        first = next(rows for rows, _ in parts if rows is not None)
        if not len(first):
            return jnp.zeros((self.size, 0), first.dtype)
        rows = [jnp.zeros((len(first), n), first.dtype) if x is None else x for x, n in parts]
        return jnp.concatenate(rows, axis=1).T

    def reactions(self, L) -> Float[Array, "z m"]:
        return (matmul(L, self.force) + self.own).T


def linear_system(
    prepared: Prepared, equations: ModeEquations, g: Given, state: State, force
) -> LinearSystem:
    """The system of the current mode; ``force`` (n,) is an extra constant force."""
    forces = jnp.concatenate([-equations.K, -equations.C, _given_force(equations.f, force, g)], 1)
    z = jnp.concatenate([state.q, state.v, g.w])
    return build(prepared, equations, g, state, z, forces, equations.P, magnitude=False)


def magnitude_system(
    prepared: Prepared, equations: ModeEquations, g: Given, state: State, force
) -> LinearSystem:
    """Linear system with the magnitudes of all contributions to that of the mode."""
    absolute, bounded, force = _magnitudes(prepared, equations, g, force)
    F = _given_force(absolute.f, force, bounded)
    forces = jnp.concatenate([absolute.K, absolute.C, F], axis=1)
    z = jnp.concatenate([state.q_scale, state.v_scale, bounded.w])
    # The projector cancels: its contributions, not its entries, determine the rounding error.
    P = prepared.mechanics.inverse_size + matmul(absolute.PQ, prepared.WM_size)
    return build(prepared, absolute, bounded, state, z, forces, P, magnitude=True)


def _magnitudes(prepared: Prepared, equations: ModeEquations, g: Given, force):
    """Magnitudes of the equations, of the inputs and of the extra force."""
    assert g.bound is not None
    magnitudes = (jnp.abs(x) for x in equations[:9])
    absolute = ModeEquations(*magnitudes, *equations[9:])  # pyright: ignore[reportCallIssue]
    L, Q = reaction_sizes(prepared, equations)
    absolute = absolute._replace(L=L, Q=Q)
    if absolute.share is not None:
        absolute = absolute._replace(share=jnp.abs(absolute.share))
    if absolute.carried is not None:
        absolute = absolute._replace(carried=absolute.carried.sized())
    return absolute, g.bound, jnp.abs(force)


def _given_force(f, force, g: Given) -> Float[Array, "n b"]:
    """Constant and applied forces, over the basis."""
    return jnp.concatenate([(f + force)[:, None] + g.force[:, :1], g.force[:, 1:]], axis=1)


def build(
    prepared, equations, g, state, z, forces, P, *, magnitude, own=(0.0, 0.0)
) -> LinearSystem:
    """Linear system of ``forces`` (n, z); ``own``: rows of accelerations (n, z) and reactions (m,
    z) that do not follow from forces."""
    n, size = prepared.mechanics.n, z.shape[0]
    points = _Rows(n, size, forces, own[1])
    acceleration = points.along(given=g.acceleration).T
    rates = matmul(P, forces) + matmul(equations.PQ, acceleration) + own[0]
    velocity = points.along(velocities=jnp.eye(n, dtype=z.dtype)).T
    A = jnp.concatenate([velocity, rates, points.along(given=g.A).T])
    made = make(prepared, equations, g, state, points, magnitude=magnitude)
    return LinearSystem(z, A, made.reactions.T, made.guards.T, made.relative.T, made.quantities)


def make(
    prepared: Prepared,
    equations: ModeEquations,
    g: Given,
    state: State,
    points: Coefficients | _Rows,
    *,
    magnitude: bool,
) -> Made:
    """Reactions, guards and relative velocities from motion, basis and forces; with ``magnitude``,
    the sums of the magnitudes of all contributions."""
    nt, nf, mechanics = prepared.nt, prepared.nf, prepared.mechanics
    sized = jnp.abs if magnitude else (lambda x: x)
    minus = 1.0 if magnitude else -1.0
    reactions = points.reactions(equations.L)
    if prepared.driven:
        reactions = reactions + points.along(given=matmul(equations.Q, g.acceleration))
    carried = equations.carried
    normal = points.along(given=g.normal)
    if carried is not None:
        normal = points.along(carried.q, carried.v, g.normal)
    one = points.along(given=(jnp.arange(g.w.shape[0]) == 0).astype(g.w.dtype)[None])
    if equations.share is not None:
        reactions = reactions + matmul(jnp.concatenate([normal, one], axis=1), equations.share.T)
    lambda_t, lambda_n = reactions[:, :nt], reactions[:, nt:]
    if nf:
        own = lambda_t[:, :nf] + equations.sliding[None, :] * normal
        lambda_t = jnp.concatenate([own, lambda_t[:, nf:]], axis=1)
    relative = points.along(velocities=sized(prepared.W), given=minus * g.velocity)
    directions = sized(mechanics.piecewise.directions)
    elongation = points.along(positions=directions, given=g.elongation)
    if carried is not None and mechanics.carried is not None:
        loads = points.along(carried.rows.q, carried.rows.v)
        elongation = elongation.at[:, mechanics.carried.places].add(loads)
    quantities = Quantities(
        one=one,
        gamma=relative[:, :nt],
        lambda_t=lambda_t,
        lambda_n=lambda_n,
        normal=normal,
        gap=points.along(positions=sized(mechanics.W_N), given=g.gap),
        elongation=elongation,
        elongation_rate=points.along(velocities=directions, given=g.elongation_rate),
        margin=lambda_t[:, :0],
        region=lambda_t[:, :0],
    )
    assemble = guard_magnitudes if magnitude else guards
    # In planes guards are not linear; the Runge-Kutta flow evaluates them.
    rows = lambda_t[:, :0]
    if not mechanics.planes:
        rows = assemble(prepared, state.mode, state.inner, quantities)
    rates = points.along(given=g.acceleration[:nt])
    of_sliders = elongation[:, mechanics.piecewise.tables :]
    return Made(
        jnp.concatenate([lambda_t, lambda_n, normal, rates, of_sliders], axis=1),
        rows,
        relative,
        quantities,
    )


class Series(NamedTuple):
    """Recurrence of the coefficients from those of one order less: ``f = forces z``,
    ``a = P f + given w``."""

    forces: Float[Array, "n z"]
    P: Float[Array, "n n"]
    given: Float[Array, "n b"]
    A: Float[Array, "b b"]
    h: Float[Array, ""]

    def coefficients(
        self, z, first: int, last: int, made: Callable[[Coefficients], Made]
    ) -> tuple[Coefficients, Made]:
        """Orders ``first`` to ``last`` from ``z`` of order ``first``, and the results of ``made``.

        A single loop over the orders: XLA compiles it to one piece of machine code.
        """

        def following(z, k):
            q, v, w = z
            f = matvec(self.forces, jnp.concatenate(z))
            a = matvec(self.P, f) + matvec(self.given, w)
            scale = self.h / (k + 1.0)
            point = Coefficients(*(x[None] for x in (q, v, a, w, f)))
            return (scale * v, scale * a, scale * matvec(self.A, w)), (point, made(point))

        orders = jnp.arange(first, last + 1, dtype=self.h.dtype)
        return _joined(jax.lax.scan(following, z, orders)[1])

    def after(self, x: Coefficients):
        """State ``z`` of the order after the last one of ``x``."""
        scale = self.h / x.q.shape[0]
        return scale * x.v[-1], scale * x.a[-1], scale * matvec(self.A, x.w[-1])


def _joined(found):
    """Arrays with one row for each round of a loop."""
    return jax.tree.map(lambda x: x[:, 0], found)


def series(equations: ModeEquations, g: Given, force, h) -> Series:
    """The recurrence of the current mode."""
    forces = [-equations.K, -equations.C, _given_force(equations.f, force, g)]
    given = matmul(equations.PQ, g.acceleration)
    return Series(jnp.concatenate(forces, axis=1), equations.P, given, g.A, h)


def magnitudes_by_order(
    prepared: Prepared, equations: ModeEquations, g: Given, state: State, force, h, orders: int
) -> tuple[Coefficients, Made]:
    """Magnitudes of all contributions to the first ``orders`` coefficients."""
    absolute, bounded, force = _magnitudes(prepared, equations, g, force)
    F = _given_force(absolute.f, force, bounded)
    M_inverse, WM = prepared.mechanics.inverse_size, prepared.WM_size

    def following(z, k):
        q, v, w = z
        f = matvec(absolute.K, q) + matvec(absolute.C, v) + matvec(F, w)
        rows = matvec(WM, f) + matvec(bounded.acceleration, w)
        a = matvec(M_inverse, f) + matvec(absolute.PQ, rows)
        scale = h / (k + 1.0)
        point = Coefficients(*(x[None] for x in (q, v, a, w, f)))
        made = make(prepared, absolute, bounded, state, point, magnitude=True)
        return (scale * v, scale * a, scale * matvec(bounded.A, w)), (point, made)

    start = (state.q_scale, state.v_scale, bounded.w)
    return _joined(jax.lax.scan(following, start, jnp.arange(orders, dtype=h.dtype))[1])


def sizes_of(
    prepared: Prepared, equations: ModeEquations, g: Given, state: State, force, q, v, w
) -> Made:
    """Magnitudes of all contributions, from magnitudes (p, ...) of motion and basis."""
    absolute, bounded, force = _magnitudes(prepared, equations, g, force)
    F = _given_force(absolute.f, force, bounded)
    f = matmul(q, absolute.K.T) + matmul(v, absolute.C.T) + matmul(w, F.T)
    points = Coefficients(q, v, v, w, f)
    return make(prepared, absolute, bounded, state, points, magnitude=True)
