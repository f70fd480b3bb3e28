"""The Runge-Kutta flow: any system, through diffrax's explicit methods.

A step's motion is the polynomial of the method's dense output. Quantities linear in the motion
follow from it, and the others are sampled at Chebyshev-Lobatto nodes. The certificate holds for
these polynomials, widened by the method's error estimate and the tail of the sampled series. Events
found on them are then reached by real steps, so that the state at an event is the solver's, not the
interpolant's.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.numerics.choice import select
from jfric.numerics.collocation import GOOD, collocated_change, collocation
from jfric.numerics.isolation import LEADING
from jfric.numerics.linear_algebra import matmul, matvec
from jfric.numerics.polynomials import DEGREE, nodes_and_fit, through_ends
from jfric.numerics.runge_kutta import Stages, stages, tables
from jfric.solvers.event_driven.exact_flow import natural_step
from jfric.solvers.event_driven.first_event import Found, first_event
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.guards import Quantities, guard_magnitudes, guards
from jfric.solvers.event_driven.inputs import Given, given
from jfric.solvers.event_driven.mode_equations import reaction_sizes
from jfric.solvers.event_driven.planes import (
    begun,
    roundings_of_direction,
    without_friction,
)
from jfric.solvers.event_driven.prepared import Prepared, constants
from jfric.solvers.event_driven.small_change import UNRESOLVED, change_error
from jfric.solvers.event_driven.smooth_piece import SmoothPiece, smooth_piece
from jfric.solvers.event_driven.state import plane_limits
from jfric.solvers.event_driven.varying_piece import regions_of, varying_piece
from jfric.solvers.states import generic_change
from jfric.system.functions import powers_of_time
from jfric.system.load_friction import CarriedRows

#: Relative threshold for leading coefficients that count as zero.
ZERO = 1e-11
#: Tolerance above which it says nothing about what counts as zero.
LOOSE = 1e-9
#: Negligible changes of accelerations, in rounding errors of the direction of sliding.
TURNED = 4.0
#: Fraction of the largest velocity, in the metric of the masses, below which velocities are not
#: resolved where directions depend on position or friction acts in planes.
HELD = 1e-6


class Pieces(NamedTuple):
    """Equations of the steps from an instant, with and without derivatives."""

    piece: SmoothPiece
    quiet: SmoothPiece


class RungeKuttaFlow(eqx.Module):
    """Explicit Runge-Kutta steps with error control to the relative tolerance ``rtol``."""

    rtol: float = eqx.field(static=True)
    method: str = eqx.field(static=True, default="dopri8")
    #: Events are landed on by real steps.
    lands: bool = eqx.field(static=True, default=True)
    #: Whether the program will be lowered.
    lowered: bool = eqx.field(static=True, default=False)
    #: Whether there will be derivatives: their errors then take part in the choice of steps.
    derivatives: bool = eqx.field(static=True, default=True)
    looks_first: ClassVar[bool] = False

    def zero(self, dtype) -> float:
        """Fraction of the sum of its contributions below which a quantity counts as zero."""
        return threshold(smallest_tolerance(self, dtype), dtype)

    def natural_step(self, prepared, equations, state):
        """Longest sensible step [s]: a fraction of the linear part's time scale."""
        if prepared.mechanics.varying is None:
            return 0.5 * natural_step(prepared, equations)
        g = given(prepared, equations, state.t)
        # The length of a step has no derivative: everything here is a constant.
        piece = varying_piece(prepared, equations, g, state, jnp.zeros_like(state.q))
        piece = dataclasses.replace(piece, still=True)
        if prepared.mechanics.planes:
            piece = piece.beginning(without_friction(prepared, state))
        return 0.5 * natural_step(prepared, piece.linearised())

    def _stages(
        self, piece: SmoothPiece, quiet: SmoothPiece, h, guess: Callable | None, unbalanced
    ):
        """Motion on a step, and, for derivatives, a small change of its start with the result at
        its end; ``quiet``: the piece without derivatives."""
        prepared, state = piece.prepared, piece.state
        if guess is not None:
            parts = unbalanced
            if prepared.mechanics.planes:
                # Slow sliding turns by rounding errors, and accelerations turn with it.
                parts = unbalanced * (TURNED / GOOD) * roundings_of_direction(quiet)
            found = collocation(piece.acceleration, state.q, state.v, h, guess, parts)
            if not self.derivatives:
                return found, None, None
            assert state.change is not None
            start, still = jax.lax.stop_gradient(((state.q, state.v, h), found))
            change = jax.lax.stop_gradient(state.change)
            return found, change, collocated_change(quiet.acceleration, *start, still, change)
        if self.derivatives:
            change = generic_change(prepared.inertia_scale, jax.lax.stop_gradient(h))
            found, moved = _with_change(self.method, piece, quiet, h, change)
            return found, change, moved

        def field(s, y):
            q, v = jnp.split(y, 2)
            return jnp.concatenate([v, piece.acceleration(s, q, v)])

        return stages(self.method, field, jnp.concatenate([state.q, state.v]), h), None, None

    def first_event(
        self, prepared, state, step, signs, natural, on, refine=None, degree: int = 0, breaks=None
    ) -> Found:
        """The earliest event on a step."""
        how = {"refine": refine, "apart": self.lowered, "degree": degree, "breaks": breaks}
        return first_event(prepared, state, step, signs, natural, on, **how)

    def pieces(self, prepared, equations, g: Given, state, force, still=None) -> Pieces:
        """Equations of all steps from an instant; ``still``: as in :meth:`step`."""
        make = smooth_piece if prepared.mechanics.varying is None else varying_piece
        piece = make(prepared, equations, g, state, force)
        return Pieces(piece, piece.frozen(still))

    def step(self, prepared, equations, g: Given, state, h, force, still=None, pieces=None) -> Step:
        """Polynomials on ``[t, t + h]``, and whether the error is acceptable; ``still``: the
        system, the equations and the state without derivatives, ``pieces``: result of
        :meth:`pieces`, where they are known."""
        if pieces is None:
            pieces = self.pieces(prepared, equations, g, state, force, still)
        piece, quiet = pieces
        beginning, rests, pivot, guess = piece, None, None, None
        if prepared.mechanics.planes:
            # Stiff towards the end of sliding, and not defined where it begins.
            beginning, guess, pivot = begun(piece, quiet)
            assert beginning.onset is not None
            rests = beginning.onset.rests.any()
        elif prepared.implicit:
            begins = piece.acceleration(jnp.zeros_like(h), state.q, state.v)
            guess = lambda s: begins  # noqa: E731
        leading, scales, relative, unbalanced = _start(
            beginning, h, quiet if beginning is piece else None
        )
        found, change, moved = self._stages(piece, quiet, h, guess, unbalanced)
        rtol = smallest_tolerance(self, state.q.dtype)
        ratio, bound = _error(rtol, quiet, *jax.lax.stop_gradient((found, h)), unbalanced)
        if moved is not None and change is not None:
            astray = change_error(prepared, equations, change, moved, jax.lax.stop_gradient(h))
            if rests is not None:
                # Where sliding begins, its direction has no derivative.
                astray = select(rests, 0.0, astray)
            ratio = jnp.maximum(ratio, astray / rtol)
        implicit = guess is not None
        order = DEGREE[h.dtype.name] - 1 if implicit else tables(self.method).order
        factor, accepted = factor_of_step(ratio, order)
        if prepared.mechanics.has_edges:
            found = _if_accepted(found, jnp.concatenate([state.q, state.v]), accepted)
        table, missed = _polynomials(piece, found.dense, h, rests, apart=self.lowered)
        values = guards(prepared, state.mode, state.inner, piece.quantities(table))
        missed = quiet.magnitudes(jax.lax.stop_gradient(missed)[None])
        tail = guard_magnitudes(prepared, state.mode, state.inner, missed)[0]
        zero = threshold(rtol, table.dtype)
        return Step(
            h=h,
            table=table,
            rows=piece.rows,
            guard_table=values,
            guard_rows=None,
            zero=zero * scales,
            leading=leading,
            unbalanced=unbalanced,
            relative_zero=zero * relative[1],
            relative_leading=relative[0],
            remainder=tail + bound * jnp.sum(scales[:2], axis=0),
            accepted=accepted,
            h_next=jax.lax.stop_gradient(h * factor),
            pivot=pivot,
            change=moved.end if moved is not None and implicit else None,
        )


def _with_change(
    method: str, piece: SmoothPiece, quiet: SmoothPiece, h, change: Float[Array, " y"]
) -> tuple[Stages, Stages]:
    """Explicit step of the motion and of a small ``change`` of its start; ``quiet``: the piece
    without derivatives."""
    n = piece.state.q.shape[0]

    def field(s, x):
        q, v, dy = x[:n], x[n : 2 * n], jax.lax.stop_gradient(x[2 * n :])
        now, *where = jax.lax.stop_gradient((s, q, v))
        _, dv = jax.jvp(functools.partial(quiet.acceleration, now), where, [dy[:n], dy[n:]])
        return jnp.concatenate([v, piece.acceleration(s, q, v), dy[n:], dv])

    start = jnp.concatenate([piece.state.q, piece.state.v, change])
    return stages(method, field, start, h).split(2 * n)


def _if_accepted(found: Stages, start, accepted) -> Stages:
    """Replace a step that is too long by rest: it may have left the domain of the equations, or
    grown beyond all numbers.

    Where the equations are not defined at its start, the values stay undefined.
    """
    kept = accepted | ~jnp.isfinite(jnp.sum(found.slopes[0]))
    rest = jnp.zeros_like(found.dense).at[0].set(start)
    still = Stages(start, jnp.zeros_like(start), rest, jnp.zeros_like(found.slopes))
    return jax.tree.map(lambda x, y: select(kept, x, y), found, still)


def _polynomials(
    piece: SmoothPiece, motion: Float[Array, "p y"], h, rests: Bool[Array, ""] | None, *, apart
):
    """Coefficients (p, z) on the step, and bounds (z,) on their truncation errors.

    The motion and powers of time are polynomials; all other quantities are interpolated at nodes.
    ``rests``: whether sliding in a plane begins from rest, where it has no direction yet: the value
    at the start is then that of the polynomial through the other nodes.
    ``apart``: for a program that will be lowered, which unrolls loops.
    """
    nodes, fit = nodes_and_fit(motion.dtype.name)
    n, count = motion.shape[1] // 2, motion.shape[0]
    exact = powers_of_time(piece.prepared.mechanics.functions())
    if exact > count:
        exact = 1
    known = 2 * n + exact
    inside = jnp.asarray(np.vander(nodes, count, increasing=True), motion.dtype) @ motion
    times = h * jnp.asarray(nodes, motion.dtype)
    where = times, inside[:, :n], inside[:, n:]
    sampled = jax.lax.map(lambda x: piece.at(*x), where) if apart else jax.vmap(piece.at)(*where)
    sampled = sampled[:, known:]
    if rests is not None:
        weights = jnp.asarray(_to_start(nodes), motion.dtype)
        sampled = sampled.at[0].set(select(rests, weights @ sampled[1:], sampled[0]))
    others = through_ends(jnp.asarray(fit) @ sampled, sampled)
    row, column = jnp.arange(count)[:, None], jnp.arange(exact)[None, :]
    powers = select(row == column, jnp.stack([h**k for k in range(exact)])[None, :], 0.0)
    missed = jnp.abs(others[-1]) + jnp.abs(others[-2]) / 16
    return jnp.concatenate([motion, powers, others], axis=1), jnp.pad(missed, (known, 0))


def _to_start(nodes: np.ndarray) -> np.ndarray:
    """Weights of the values at all nodes except the first, at zero, for the value there."""
    others = nodes[1:].astype(float)
    pairs = others[None, :] / (others[None, :] - others[:, None] + np.eye(len(others)))
    return np.prod(np.where(np.eye(len(others), dtype=bool), 1.0, pairs), axis=1)


def smallest_tolerance(flow: RungeKuttaFlow, dtype) -> float:
    """Tolerance of a step, not below the resolution of the precision."""
    return max(flow.rtol, 64 * float(jnp.finfo(dtype).eps))


def threshold(rtol: float, dtype) -> float:
    """Fraction of its contributions below which a leading coefficient of a guard is zero.

    A coefficient hidden by the integration error is zero: otherwise this error would decide ties.
    Errors of loose steps do decide them: next to contributions of large forces that cancel, what
    moves a light body would vanish, too, and neither stick nor sliding would fit.
    """
    return max(ZERO, constants(dtype).zero, 30 * min(rtol, LOOSE))


def factor_of_step(ratio, order: int):
    """Ratio of the next step to this one, and whether this one is accepted; ``ratio``: its error
    over the tolerance, which may be undefined where the step is much too long."""
    ratio = select(jnp.isnan(ratio), jnp.inf, ratio)
    factor = 0.9 * jnp.exp(jnp.log(jnp.maximum(ratio, 1e-12)) / -order)
    accepted = jax.lax.stop_gradient(ratio <= 1.0)
    return select(accepted, jnp.clip(factor, 0.3, 6.0), jnp.clip(factor, 0.1, 0.8)), accepted


def _start(piece: SmoothPiece, h, frozen: SmoothPiece | None):
    """Leading coefficients of the guards at the start of the step and their magnitudes; ``frozen``:
    ``piece`` as a constant, where it is known.

    The flow is differentiated exactly: positions are known to their fourth derivative, velocities
    to the third, forces to the second; higher derivatives count as zero.
    """
    prepared, equations, g, state = piece.prepared, piece.equations, piece.g, piece.state
    z = piece.derivatives(state.q, state.v, frozen)
    at = piece.quantities(z)
    factor = jnp.stack([h**k / math.factorial(k) for k in range(LEADING)])[:, None]

    def series(values, known: int = LEADING):
        found = values[:known]
        found = jnp.stack(found) if isinstance(found, list) else found
        missing = ((0, LEADING - len(found), 0), (0, 0, 0))
        return jax.lax.pad(found, jnp.zeros((), found.dtype), missing) * factor

    carried, stretches = prepared.mechanics.carried, series(at.elongation)
    if carried is not None:
        loads = series(at.elongation, 3 if prepared.mechanics.has_curved_forces else 4)
        stretches = stretches.at[:, carried.places].set(loads[:, carried.places])
    one = (jnp.arange(LEADING) == 0).astype(h.dtype)[:, None]
    quantities = Quantities(
        one=one,
        gamma=series(at.gamma, 4),
        lambda_t=series(at.lambda_t, 3),
        lambda_n=series(at.lambda_n, 3),
        normal=series(at.normal, 3),
        gap=series(at.gap),
        elongation=stretches,
        elongation_rate=series(at.elongation_rate, 4),
        margin=series(at.margin, 3),
        region=series(at.region, 3),
    )
    leading = guards(prepared, state.mode, state.inner, quantities)
    n, nt = prepared.mechanics.n, prepared.nt
    f, a, bends = piece.force_sizes(z), z[1:3, n : 2 * n], piece.bending(z)
    K, C, P = jnp.abs(equations.K), jnp.abs(equations.C), prepared.mechanics.inverse_size
    MW, (L, Q) = jnp.abs(prepared.MW), reaction_sizes(prepared, equations)
    bound = g.bound
    assert bound is not None
    still = f[0] + bound.force @ bound.w + K @ state.q_scale
    forces = [
        still + C @ state.v_scale,
        f[1] + K @ state.v_scale + C @ jnp.abs(a[0]),
        f[2] + K @ jnp.abs(a[0]) + C @ jnp.abs(a[1]),
    ]
    prescribed, w = bound.acceleration, bound.w
    drift = [prescribed @ w, prescribed @ bound.A @ w, prescribed @ bound.A @ bound.A @ w]
    drift = jnp.stack(drift) + bends
    reactions = [L @ f + Q @ x for f, x in zip(forces, drift, strict=True)]
    rates = [P @ f + MW @ r for f, r in zip(forces, reactions, strict=True)]
    relative = [jnp.abs(prepared.W) @ r + x for r, x in zip(rates, drift, strict=True)]
    d = jnp.abs(prepared.mechanics.piecewise.directions)
    speed = jnp.abs(prepared.W) @ state.v_scale + bound.velocity @ w
    position = jnp.abs(prepared.mechanics.W_N) @ state.q_scale + bound.gap @ w
    length = d @ state.q_scale + bound.elongation @ w
    stretch = d @ state.v_scale + bound.elongation_rate @ w
    elongation = series([length, stretch, *(d @ x for x in rates)])
    if carried is not None and equations.carried is not None:
        rows, place = equations.carried.rows.sized(), carried.places
        loads = _load_sizes(rows, bound, state, rates, place)
        sizes = series(loads) + series(jnp.abs(at.elongation[:, place]))
        elongation = elongation.at[:, place].set(sizes)
    if equations.share is not None:
        given_forces = jnp.column_stack([at.normal[:3], one[:3]])
        owed = matmul(jnp.abs(given_forces), jnp.abs(equations.share).T)
        reactions = [r + x for r, x in zip(reactions, owed, strict=True)]
    friction, pressed = (
        series([x[part] for x in reactions]) for part in (slice(nt), slice(nt, None))
    )
    normal = series(jnp.abs(at.normal), 3)
    bounds = Quantities(
        one=one,
        gamma=series([speed[:nt], *(x[:nt] for x in relative)]),
        lambda_t=friction,
        lambda_n=pressed,
        normal=normal,
        gap=series([position, speed[nt:], *(x[nt:] for x in relative)]),
        elongation=elongation,
        elongation_rate=series([stretch, *(d @ x for x in rates)]),
        margin=_margin_sizes(prepared, friction, jnp.concatenate([normal, pressed], axis=1)),
        region=series(_region_sizes(prepared, state, rates, at.region)),
    )
    scales = guard_magnitudes(prepared, state.mode, state.inner, bounds)
    watched = 0 if prepared.regular else prepared.W.shape[0]
    moves = series(matmul(z, piece.system.relative[:watched].T), 4)
    sizes = series([x[:watched] for x in (speed, *relative)])
    if prepared.mechanics.varying is not None:
        scales, sizes = _resolved(scales), _resolved(sizes)
    moving = moves, jax.lax.stop_gradient(sizes)
    # By the velocities themselves: their scale takes part of this over, and would grow in each step
    # of a body that is held against a strong damper.
    less = still + C @ jnp.abs(state.v)
    unbalanced = P @ less + MW @ (L @ less + Q @ drift[0])
    return leading, jax.lax.stop_gradient(scales), moving, jax.lax.stop_gradient(unbalanced)


def _load_sizes(
    rows: CarriedRows, bound: Given, state, rates, place: slice
) -> list[Float[Array, " k"]]:
    """Magnitudes of loads and their derivatives, from those of their rows and of accelerations."""
    motion = [state.q_scale, state.v_scale, *rates]
    w, found = bound.w, []
    for k in range(len(motion) - 1):
        given = matvec(bound.elongation, w)[place]
        found.append(matvec(rows.q, motion[k]) + matvec(rows.v, motion[k + 1]) + given)
        w = matvec(bound.A, w)
    return found


def _region_sizes(prepared: Prepared, state, rates, region) -> list[Float[Array, " nr"]]:
    """Magnitudes of the left sides of polygons' inequalities, and of their derivatives."""
    mechanics = prepared.mechanics
    if not mechanics.polygons:
        return [region[0]]
    W = jnp.abs(jax.jacfwd(lambda q: regions_of(mechanics, q))(state.q))
    corners = jnp.stack([jnp.max(jnp.abs(p.corners)) for p in mechanics.polygons])
    lengths = jnp.concatenate([corners, corners]) + matvec(W, state.q_scale)
    motion = [matvec(W, x) for x in (state.v_scale, *rates)]
    return [lengths, motion[0], *(x + jnp.abs(region[2]) for x in motion[1:])]


def _resolved(sizes: Float[Array, "l k"]) -> Float[Array, "l k"]:
    """Magnitudes of coefficients, none below the rounding errors of those before.

    A body at rest on curved contacts has velocities of rounding errors, and forces that these
    change: a change of a guard below a fraction of these errors in the whole step decides nothing.
    """
    before = jnp.pad(jax.lax.cummax(sizes[:-1], axis=0), ((1, 0), (0, 0)))
    return jnp.maximum(sizes, jnp.finfo(sizes.dtype).eps ** 0.5 * before)


def _margin_sizes(prepared: Prepared, friction, normal) -> Float[Array, "l np"]:
    """Magnitudes of the coefficients of margins, from those of friction and normal forces."""

    def times(a, b):
        return jnp.convolve(a, b)[:LEADING]

    planes = prepared.mechanics.planes
    found = [
        plane_limits(prepared, k).size(normal[:, rows[0]], friction[:, rows], times)
        for k, rows in enumerate(map(np.asarray, planes))
    ]
    return jnp.stack(found, axis=1) if planes else friction[:, :0]


def _terms(piece: SmoothPiece, s, q, v, v_scale) -> Float[Array, " n"]:
    """Magnitudes of the terms of accelerations, which formulas do not show: the change of the
    accelerations if all positions and velocities change by their own size, up or down."""
    size = jnp.concatenate([jnp.maximum(jnp.abs(q), piece.state.q_scale), v_scale])
    along = jnp.split(jnp.sign(generic_change(piece.prepared.inertia_scale)) * size, 2)
    _, found = jax.jvp(functools.partial(piece.acceleration, s), [q, v], along)
    return select(jnp.isfinite(found), jnp.abs(found), 0.0)


def _error(rtol: float, piece: SmoothPiece, found: Stages, h, unbalanced):
    """Error relative to tolerance and scale of each component, and relative to the scale.

    Velocities are not resolved below a thousandth of the effect that forces and reactions would
    have if they did not cancel (accelerations ``unbalanced``), as rounding error would be mistaken
    for integration error; nor are states below a thousandth of the terms of their rates. Where
    directions depend on position, and where friction acts in planes, nothing is resolved below a
    millionth of the square root of the energy: velocities held by joints and contacts, or not
    turned by parallel friction, are rounding errors alone.
    """
    state, n = piece.state, piece.state.q.shape[0]
    size = jnp.abs(found.end)
    v_scale = jnp.maximum(size[n:], state.v_scale)
    v_scale = jnp.maximum(v_scale, h * jnp.max(jnp.abs(found.slopes[:, n:]), axis=0))
    v_scale = jnp.maximum(v_scale, UNRESOLVED * h * unbalanced)
    if piece.prepared.mechanics.n_states:
        # At both ends: a step that is much too long has large ones where it ends.
        begins = _terms(piece, jnp.zeros_like(h), state.q, state.v, state.v_scale)
        terms = jnp.minimum(begins, _terms(piece, h, found.end[:n], found.end[n:], v_scale))
        v_scale = jnp.maximum(v_scale, UNRESOLVED * h * terms)
    if (bristles := piece.prepared.mechanics.bristles) is not None:
        # Rates of bristles are differences, too.
        v_scale = v_scale.at[np.asarray(bristles.states)].max(1e-3 * bristles.sizes)
    if piece.prepared.mechanics.varying is not None or piece.prepared.mechanics.planes:
        weight, nd = piece.prepared.inertia_scale[:n], piece.prepared.mechanics.n_dofs
        held = HELD * jnp.max((weight * v_scale)[:nd]) / weight[:nd]
        v_scale = v_scale.at[:nd].max(held)
    q_scale = jnp.maximum(jnp.maximum(size[:n], state.q_scale), h * v_scale)
    scale = jnp.concatenate([q_scale, v_scale])
    relative = jnp.max(jnp.abs(found.error) / jnp.maximum(scale, jnp.finfo(h.dtype).tiny))
    relative = jax.lax.stop_gradient(relative)
    # All numbers that enter the polynomials take part.
    whole = relative + jnp.sum(found.dense) + jnp.sum(found.slopes)
    relative = select(jnp.isfinite(whole), relative, jnp.inf)
    return relative / rtol, jnp.minimum(relative, rtol) * 10
