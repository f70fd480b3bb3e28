"""One step of a system with any number of contacts; one contact alone in closed form.

Forces are linearised once at the start of the step, which keeps the order of the scheme;
piecewise-linear elements stay in the segment that holds in the middle of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.contact_methods import Impulses
from jfric.contact.contact_problem import ContactProblem
from jfric.numerics.linear_algebra import diagonal_of, eliminate, matmul, matvec
from jfric.numerics.loops import where_any
from jfric.results.modes import Mode
from jfric.results.status import Status
from jfric.solvers.time_stepping.friction import (
    coefficients,
    in_closed_form,
    settled,
    shares,
    speeds,
)
from jfric.solvers.time_stepping.inputs import StepInputs
from jfric.solvers.time_stepping.predicted import (
    held_by_joints,
    put_back,
    seen_at_prediction,
    without_held,
)
from jfric.solvers.time_stepping.prepared import (
    DEPENDENT,
    Motion,
    Prepared,
    Row,
    gains_energy,
    step_matrices,
    touches,
)


def step(
    prepared: Prepared, motion: Motion, x: StepInputs, pushed: Float[Array, " n"] | None = None
) -> Row:
    """Result of the step with inputs ``x`` that begins with ``motion``.

    ``pushed``: velocity that the loads cause, if it is known already.
    """
    scheme, h, nt, nu = prepared.scheme, prepared.h, prepared.nt, prepared.nu
    mechanics, nf = prepared.mechanics, prepared.nf
    q, v = motion.q, motion.v
    frictionless = np.asarray(mechanics.frictionless, bool)
    end_weight, start_weight = h * scheme.theta, h * (1.0 - scheme.theta)
    prepared, x = seen_at_prediction(prepared, motion, x)
    segment = _segments(prepared, motion, x)
    matrices, impulse = _linearised(prepared, motion, segment, x)
    pushed = matvec(matrices.push, impulse) if pushed is None else pushed
    free = pushed + (matvec(matrices.Bq, q) + matvec(matrices.Bv, v))
    free = held_by_joints(prepared, matrices.hold, free, v)
    before = matvec(prepared.W, v) - x.before
    after = matvec(prepared.W, free) - x.after
    old = jnp.concatenate([jnp.full((nt,), scheme.kappa, v.dtype), mechanics.e])
    gamma = rules.restitution(after, before, old)
    touching = jnp.zeros((0,), bool)
    if nu:
        gap = x.gap + matvec(prepared.W[nt:], q)
        parts = jnp.abs(x.gap) + matvec(jnp.abs(prepared.W[nt:]), jnp.abs(q))
        way = h * (jnp.abs(before[nt:]) + jnp.abs(after[nt:]))
        touching = touches(gap + start_weight * before[nt:], parts, way)
        if mechanics.varying is not None:
            # The path along a curve is known to the order of the scheme only.
            touching = touching | (motion.mode[nf:] != Mode.OPEN)
            touching = touching.at[np.asarray(mechanics.opposed, int).ravel()].set(True)
    touching, blocked = without_held(prepared, touching, gamma, v, impulse)
    problem = _contacts(prepared, matrices.D, gamma, before, touching, motion.mode, x)
    # Rounding errors of the sliding velocities come from the velocities of which they are sums.
    size = matvec(jnp.abs(prepared.W), jnp.abs(v)) + jnp.abs(x.before)
    if prepared.in_scalars:
        solved, direction = in_closed_form(prepared, problem, motion.mode, before[0]), None
    elif mechanics.opposed:
        found = settled_on_sides(prepared, problem, motion.mode, before[:nt], size)
        solved, direction, touching, cycles = found
        blocked = blocked | cycles
    else:
        solved, direction = settled(prepared, problem, motion.mode, before[:nt], size)

    P, mode = solved.impulse, solved.mode
    closed = mode[nf:] != Mode.OPEN
    sticks = (mode == Mode.STICK) & ~frictionless
    active = jnp.concatenate([sticks, closed])
    # Sticking and closed contacts get their prescribed velocity without rounding error.
    prescribed = x.after - old * before
    v_new = free + matvec(matrices.X, P)
    v_new = _held(prepared, v_new, prescribed, active)
    q_new = q + (end_weight * v_new + start_weight * v)
    if scheme.stops and not all(mechanics.frictionless):
        v_new = _stopped(prepared, v_new, x.after, sticks, active)

    rests = closed & rules.rests_after_step(before[nt:], after[nt:], mechanics.e)
    shown = mode
    if direction is not None:
        # A redundant contact may carry nothing and yet be closed.
        rests = rests | (touching & ~closed & (direction[nt:] == 0))
        shown = jnp.where(mode == Mode.OPEN, rules.slip(direction[:nt] > 0), mode)
        # A contact at its limit that does not move is at rest, whatever the method reports.
        shown = jnp.where(direction[:nt] == 0, Mode.STICK, shown)
        if mechanics.planes:
            slides = mechanics.in_plane & rules.slides(shown)
            shown = jnp.where(slides, Mode.SLIP, shown)
    shown = jnp.where(frictionless, Mode.CLOSED, shown)
    is_open = jnp.concatenate([jnp.zeros((nf,), bool), ~rests])
    shown = jnp.where(is_open, Mode.OPEN, shown).astype(jnp.int32)
    impact = (motion.mode[nf:] == Mode.OPEN) & rules.hits_in_step(before[nt:], P[nt:])
    if mechanics.opposed:
        impact = impact & ~np.isin(np.arange(nu), np.asarray(mechanics.opposed))
    gains = jnp.asarray(False)
    if nu:
        gains = impact.any() & gains_energy(P, before, matvec(prepared.W, v_new) - x.after)
    q_new, put = put_back(prepared, mechanics, x.t + h, q_new, v_new, shown)
    status = jnp.where(solved.status == int(Status.OK), put, solved.status)
    flags = None
    if not (prepared.in_scalars or prepared.independent):
        judged = mode if mechanics.opposed else shown
        known = motion.settled & jnp.all(shown == motion.mode)
        flags = where_any(~known, lambda: shares(prepared, judged, before), jnp.zeros_like(status))
    status = jnp.where(blocked, int(Status.INCONSISTENT), status).astype(jnp.int32)
    solution = solved.residual, solved.iterations, status
    return Row(q_new, v_new, shown, segment, P, impact, gains, flags, *solution)


def _segments(prepared: Prepared, motion: Motion, x: StepInputs):
    """Segments that hold in the middle of the step."""
    piecewise = prepared.mechanics.piecewise
    segment = motion.segment
    if piecewise.count == 0:
        return segment
    w = piecewise.directions
    rate = matvec(w, motion.v) + x.stretch_rate
    stretch = matvec(w, motion.q) + x.stretch + 0.5 * prepared.h * matvec(w, motion.v)
    after = jnp.asarray(piecewise.next, jnp.int32)
    row = jnp.arange(piecewise.count)
    for _ in range(piecewise.segments):
        guard = piecewise.at(segment, "guards")
        value = guard[..., 0] * stretch[:, None] + guard[..., 1] * rate[:, None] + guard[..., 2]
        following = after[row, segment]
        segment = jnp.where(
            value[:, 0] < 0, following[:, 0], jnp.where(value[:, 1] < 0, following[:, 1], segment)
        )
    return segment.astype(jnp.int32)


def _linearised(prepared: Prepared, motion: Motion, segment, x: StepInputs):
    """Matrices of the step, and the impulse of all forces not linear in ``q`` and ``v``."""
    if prepared.constant is not None:
        return prepared.constant, x.impulse
    mechanics, scheme, h = prepared.mechanics, prepared.scheme, prepared.h
    K, C, impulse = mechanics.K, mechanics.C, x.impulse
    piecewise, bristles = mechanics.piecewise, mechanics.bristles
    if piecewise.count:
        k, c, f = (piecewise.at(segment, name) for name in ("k", "c", "f"))
        w = piecewise.directions
        K = K + (w.T * k) @ w
        C = C + (w.T * c) @ w
        impulse = impulse - h * matvec(w.T, k * x.stretch + c * x.stretch_rate + f)
    if mechanics.has_curved_forces:
        t = x.t + scheme.theta * h
        q = motion.q + scheme.theta * h * motion.v

        def force(q, v):
            parts = [e.force(mechanics.axes, t, q, v) for e in mechanics.nonlinear]
            if bristles is not None:
                rate = matvec(piecewise.directions, v) + x.stretch_rate
                parts.append(bristles.force(rate, v, bristles.sides(segment)))
            return sum(parts[1:], parts[0])

        K_q, C_v = (-jacobian for jacobian in jax.jacfwd(force, (0, 1))(q, motion.v))
        # Linear about the point above: the step itself adds K q and C v.
        level = force(q, motion.v) + matvec(K_q, q) + matvec(C_v, motion.v)
        K, C, impulse = K + K_q, C + C_v, impulse + h * level
    tied = mechanics.tied
    J = None if tied is None else tied.J
    matrices = step_matrices(scheme, h, mechanics.M, C, K, prepared.W, J)
    if tied is not None:
        # Directions that joints hold take no part in contacts.
        moves = diagonal_of(prepared.D_mass) > 0
        both = moves[:, None] & moves[None, :]
        X, D = jnp.where(moves, matrices.X, 0.0), jnp.where(both, matrices.D, 0.0)
        matrices = matrices._replace(X=X, D=D)
    return matrices, impulse


def _contacts(prepared: Prepared, D, gamma, before, touching, mode, x: StepInputs):
    """Function that gives the contact problem of the step for a choice of limits: static ones where
    ``holds`` (nt,), none where a contact is ``smooth`` (nt,)."""
    nt, nf = prepared.nt, prepared.nf
    mechanics = prepared.mechanics
    friction = coefficients(prepared, speeds(prepared, before[:nt]))
    rubs = ~np.asarray(mechanics.frictionless, bool)
    closed = jnp.concatenate([jnp.ones((nf,), bool), touching])
    if mechanics.tied is not None:
        rubs = rubs & (diagonal_of(D)[:nt] > 0)
    # Contacts that were open and carry no tangential impulse when they close.
    smooth = np.asarray((False,) * nf + mechanics.smooth_impact, bool) & (mode == Mode.OPEN)
    normal_force = jnp.concatenate([x.normal, jnp.ones((prepared.nu,), gamma.dtype)])
    own = jnp.arange(nt) < nf

    def problem(holds, smooth=smooth) -> ContactProblem:
        upper = jnp.where(holds, friction.static_positive, friction.kinetic_positive) * normal_force
        lower = jnp.where(holds, friction.static_negative, friction.kinetic_negative) * normal_force
        upper, lower = (jnp.where(smooth, 0.0, x) for x in (upper, lower))
        return ContactProblem(
            D=D,
            gamma=gamma,
            decided=closed & rubs,
            touching=touching,
            sliding=jnp.zeros((nt,), gamma.dtype),
            mu_positive=upper[nf:],
            mu_negative=lower[nf:],
            cap_positive=jnp.where(own, upper, 0.0),
            cap_negative=jnp.where(own, lower, 0.0),
            planes=tuple((i, j) for i, j in mechanics.planes),
        )

    return problem


def _held(prepared: Prepared, v, prescribed, active):
    """Velocities with exact values for degrees of freedom held by one contact alone."""
    mechanics = prepared.mechanics
    dofs = mechanics.single_dofs
    rows = [i for i, dof in enumerate(dofs) if dof is not None]
    if not rows:
        return v
    at = np.asarray(rows), np.asarray([dofs[i] for i in rows])
    exact = prescribed[at[0]] * (1.0 / prepared.W[at])
    return v.at[at[1]].set(jnp.where(active[at[0]], exact, v[at[1]]))


def _stopped(prepared: Prepared, v, prescribed, sticks, active):
    """Velocities without sliding at sticking contacts, by impulses on active rows.

    Normal velocities do not change.
    """
    sticks = jnp.concatenate([sticks, jnp.zeros((prepared.nu,), bool)])
    defect = jnp.where(sticks, prescribed - matvec(prepared.W, v), 0.0)
    if prepared.nt == 1:
        # If it sticks, all rows are active, and the matrix is always the same.
        changes = matmul(prepared.MW, _inverse(prepared.D_mass))
        return _held(prepared, v + matvec(changes, defect), prescribed, sticks)
    mask = active[:, None] & active[None, :]
    system = jnp.where(mask, prepared.D_mass, jnp.eye(active.shape[0], dtype=v.dtype))
    v = v + matvec(prepared.MW, matvec(_inverse(system), defect))
    return _held(prepared, v, prescribed, sticks)


def _inverse(a):
    """Inverse of a symmetric matrix; dependent rows, which agree, are left out."""
    diagonal = diagonal_of(a)
    weight = jnp.where(diagonal > 0, diagonal, 1.0) ** -0.5
    weight = weight[:, None] * weight[None, :]
    return eliminate(a * weight, DEPENDENT).inverse * weight


class OnSides(NamedTuple):
    """Outcome for all contacts, see :func:`jfric.solvers.time_stepping.friction.settled`.

    ``touching``: contacts that could carry; ``cycles``: whether no side that carries was found.
    """

    solved: Impulses
    direction: Float[Array, " m"]
    touching: Bool[Array, " nu"]
    cycles: Bool[Array, ""]


def settled_on_sides(
    prepared: Prepared,
    problem: Callable[[Bool[Array, " nt"]], ContactProblem],
    mode: Int[Array, " nt"],
    before: Float[Array, " nt"],
    parts: Float[Array, " m"],
) -> OnSides:
    """Impulses of all contacts by ``settled``, with one of each opposed pair carrying.

    Both sides of a joint with friction could press each other without limit. That of the step
    before carries, or the other where it would open: one contact, whose normal points there.
    """
    nf, nt, nu = prepared.nf, prepared.nt, prepared.nu
    pairs = np.asarray(prepared.mechanics.opposed, int)
    first, second = pairs.T
    kept = np.asarray([i for i in range(nt) if i - nf not in second])
    rows = np.concatenate([kept, nt + kept[nf:] - nf])
    # Place of each contact among those that are kept; that of the first for both of a pair.
    place = np.searchsorted(kept, np.arange(nt))
    place[nf + second] = place[nf + first]
    ours = place[nf + first]
    count, own = kept.shape[0], np.searchsorted(kept, nf + first) - nf
    mode_kept = jnp.where(mode == Mode.OPEN, mode[_partners(nt, nf, pairs)], mode)[kept]

    def on(side: Bool[Array, " k"]):
        sign = jnp.ones((rows.shape[0],), before.dtype)
        sign = sign.at[count + own].set(jnp.where(side, -1.0, 1.0))

        def one_sided(holds) -> ContactProblem:
            return _part_of(problem(holds[place]), kept, rows, sign, place)

        solved, direction = settled(prepared, one_sided, mode_kept, before[kept], parts[rows])
        return solved, direction, sign

    def once(carry):
        side, _, tries = carry
        solved, direction, _ = jax.lax.stop_gradient(on(side))
        opens = (solved.mode[ours] == Mode.OPEN) & (direction[count + own] > 0)
        # One after the other, if simultaneous changes did not converge.
        opens = opens & ((jnp.cumsum(opens) == 1) | (tries < len(pairs)))
        return side ^ opens, opens.any(), tries + 1

    still = jax.lax.stop_gradient(mode[nf:])
    side = (still[first] == Mode.OPEN) & (still[second] != Mode.OPEN)
    start = (side, jnp.asarray(True), jnp.asarray(0, jnp.int32))
    limit = 4 * len(pairs) + 2
    side, cycles, _ = jax.lax.while_loop(lambda c: c[1] & (c[2] < limit), once, start)
    solved, direction, _ = on(side)

    carries = jnp.ones((nu,), bool).at[first].set(~side).at[second].set(side)
    both = jnp.concatenate([jnp.ones((nf,), bool), carries])
    normal = place[nf:] - nf + count
    impulse = jnp.concatenate([solved.impulse[place], solved.impulse[normal]])
    carried = jnp.concatenate([both, carries])
    full = solved._replace(
        impulse=jnp.where(carried, impulse, 0.0),
        mode=jnp.where(both, solved.mode[place], Mode.OPEN).astype(jnp.int32),
    )
    touching = problem(jnp.zeros((nt,), bool)).touching & carries
    return OnSides(full, jnp.concatenate([direction[place], direction[normal]]), touching, cycles)


def _part_of(
    p: ContactProblem, kept: np.ndarray, rows: np.ndarray, sign: Float[Array, " k"], place
) -> ContactProblem:
    """Problem of the contacts that are kept, with normals turned to the side that carries."""
    closed = kept[p.nf :] - p.nf
    return ContactProblem(
        D=p.D[np.ix_(rows, rows)] * sign[:, None] * sign[None, :],
        gamma=p.gamma[rows] * sign,
        decided=p.decided[kept],
        touching=p.touching[closed],
        sliding=p.sliding[kept],
        mu_positive=p.mu_positive[closed],
        mu_negative=p.mu_negative[closed],
        cap_positive=p.cap_positive[kept],
        cap_negative=p.cap_negative[kept],
        planes=tuple((int(place[i]), int(place[j])) for i, j in p.planes),
    )


def _partners(nt: int, nf: int, pairs: np.ndarray) -> np.ndarray:
    """The other contact of each pair; single contacts map to themselves."""
    other = np.arange(nt)
    other[nf + pairs[:, 0]], other[nf + pairs[:, 1]] = nf + pairs[:, 1], nf + pairs[:, 0]
    return other
