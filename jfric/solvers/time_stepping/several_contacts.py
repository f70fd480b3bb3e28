"""One step of any system with any number of contacts.

Forces are linearised once at the start of the step, which keeps the order of the scheme;
piecewise-linear elements stay in the segment that holds in the middle of the step.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jfric.contact import rules
from jfric.contact.contact_lcp import ContactProblem
from jfric.numerics.linear_algebra import eliminate, matvec
from jfric.results.modes import Mode
from jfric.results.status import Status
from jfric.solvers.time_stepping.friction import coefficients, settled
from jfric.solvers.time_stepping.inputs import StepInputs
from jfric.solvers.time_stepping.prepared import Prepared, step_matrices
from jfric.solvers.time_stepping.rows import Row
from jfric.solvers.time_stepping.state import Motion
from jfric.solvers.time_stepping.tolerance import DEPENDENT, gains_energy, touches


def step(prepared: Prepared, motion: Motion, x: StepInputs) -> tuple[Motion, Row]:
    """The motion at the end of the step with inputs ``x``."""
    scheme, h, nt, nu = prepared.scheme, prepared.h, prepared.nt, prepared.nu
    mechanics, nf = prepared.mechanics, prepared.nf
    q, v = motion.q, motion.v
    segment = _segments(prepared, motion, x)
    matrices, impulse = _linearised(prepared, motion, segment, x)
    free = matvec(matrices.Bq, q) + matvec(matrices.Bv, v) + matvec(matrices.push, impulse)
    if nt == 0:
        q_new = q + h * (scheme.theta * free + (1.0 - scheme.theta) * v)
        new = Motion(q_new, free, motion.mode, segment)
        zero, none = jnp.asarray(0, jnp.int32), jnp.zeros((0,), v.dtype)
        row = Row(*new, none, jnp.zeros((0,), bool), jnp.zeros((), v.dtype), zero, zero)
        return new, row

    before = matvec(prepared.W, v) - x.before
    after = matvec(prepared.W, free) - x.after
    old = jnp.concatenate([jnp.full((nt,), scheme.kappa, v.dtype), mechanics.e])
    gamma = rules.restitution(after, before, old)
    touching = jnp.zeros((0,), bool)
    if nu:
        gap = x.gap + matvec(mechanics.W_N, q)
        parts = jnp.abs(x.gap) + matvec(jnp.abs(mechanics.W_N), jnp.abs(q))
        way = h * (jnp.abs(before[nt:]) + jnp.abs(after[nt:]))
        touching = touches(gap + (1.0 - scheme.theta) * h * before[nt:], parts, way)
    # Rounding errors of the sliding velocities come from the velocities that they are made of.
    size = matvec(jnp.abs(prepared.W), jnp.abs(v)) + jnp.abs(x.before)
    problem = _contacts(prepared, matrices.D, gamma, before, touching, motion.mode, x)
    solved, direction = settled(prepared, problem, motion.mode, before[:nt], size)

    P, mode = solved.impulse, solved.mode
    closed = mode[nf:] != Mode.OPEN
    sticks = (mode == Mode.STICK) & ~jnp.asarray(mechanics.frictionless)
    active = jnp.concatenate([sticks, closed])
    # What sticks or is closed gets its prescribed velocity without rounding error.
    prescribed = x.after - old * before
    v_new = free + matvec(matrices.X, P)
    v_new = _held(prepared, v_new, prescribed, active)
    q_new = q + h * (scheme.theta * v_new + (1.0 - scheme.theta) * v)
    if scheme.stops:
        v_new = _stopped(prepared, v_new, x.after, sticks, active)

    rests = closed & rules.rests_after_step(before[nt:], after[nt:], mechanics.e)
    # A redundant contact may carry nothing and yet be closed.
    rests = rests | (touching & ~closed & (direction[nt:] == 0))
    side = rules.slip(direction[:nt] > 0)
    shown = jnp.where(mode == Mode.OPEN, side, mode)
    # A contact that carries its limit and does not move is at rest, whatever the method says.
    shown = jnp.where(direction[:nt] == 0, Mode.STICK, shown)
    shown = jnp.where(jnp.asarray(mechanics.frictionless), Mode.CLOSED, shown)
    is_open = jnp.concatenate([jnp.zeros((nf,), bool), ~rests])
    shown = jnp.where(is_open, Mode.OPEN, shown).astype(jnp.int32)
    impact = (motion.mode[nf:] == Mode.OPEN) & rules.hits_in_step(before[nt:], P[nt:])
    new = Motion(q_new, v_new, shown, segment)
    status = solved.status
    if nu:
        gains = impact.any() & gains_energy(P, before, matvec(prepared.W, v_new) - x.after)
        status = jnp.where(gains, int(Status.IMPACT_ENERGY), status)
    return new, Row(*new, P, impact, solved.residual, solved.iterations, status)


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
    """Matrices of the step, and the impulse of all forces that are not linear in ``q``, ``v``."""
    if prepared.constant is not None:
        return prepared.constant, x.impulse
    mechanics, scheme, h = prepared.mechanics, prepared.scheme, prepared.h
    K, C, impulse = mechanics.K, mechanics.C, x.impulse
    piecewise = mechanics.piecewise
    if piecewise.count:
        k, c, f = (piecewise.at(segment, name) for name in ("k", "c", "f"))
        w = piecewise.directions
        K = K + (w.T * k) @ w
        C = C + (w.T * c) @ w
        impulse = impulse - h * matvec(w.T, k * x.stretch + c * x.stretch_rate + f)
    if mechanics.nonlinear:
        t = x.t + scheme.theta * h
        q = motion.q + scheme.theta * h * motion.v

        def force(q, v):
            parts = [e.force(mechanics.axes, t, q, v) for e in mechanics.nonlinear]
            return sum(parts[1:], parts[0])

        K_q, C_v = (-jacobian for jacobian in jax.jacfwd(force, (0, 1))(q, motion.v))
        # Linear about the point above: the step adds K q and C v of its own.
        level = force(q, motion.v) + matvec(K_q, q) + matvec(C_v, motion.v)
        K, C, impulse = K + K_q, C + C_v, impulse + h * level
    return step_matrices(scheme, h, mechanics.M, C, K, prepared.W), impulse


def _contacts(prepared: Prepared, D, gamma, before, touching, mode, x: StepInputs):
    """The contact problem of the step for given limits: static ones where ``holds`` (nt,)."""
    nt, nf = prepared.nt, prepared.nf
    mechanics = prepared.mechanics
    friction = coefficients(prepared, jnp.abs(before[:nt]))
    rubs = ~jnp.asarray(mechanics.frictionless)
    closed = jnp.concatenate([jnp.ones((nf,), bool), touching])
    # Contacts that were open and carry no tangential impulse when they close.
    smooth = jnp.asarray((False,) * nf + mechanics.smooth_impact) & (mode == Mode.OPEN)
    pressing = jnp.concatenate([x.normal, jnp.ones((prepared.nu,), gamma.dtype)])
    pressing = jnp.where(smooth, 0.0, pressing)
    own = jnp.arange(nt) < nf

    def problem(holds) -> ContactProblem:
        upper = jnp.where(holds, friction.static_positive, friction.kinetic_positive) * pressing
        lower = jnp.where(holds, friction.static_negative, friction.kinetic_negative) * pressing
        return ContactProblem(
            D=D,
            gamma=gamma,
            decided=rubs & closed,
            touching=touching,
            sliding=jnp.zeros((nt,), gamma.dtype),
            mu_positive=upper[nf:],
            mu_negative=lower[nf:],
            cap_positive=jnp.where(own, upper, 0.0),
            cap_negative=jnp.where(own, lower, 0.0),
        )

    return problem


def _held(prepared: Prepared, v, prescribed, active):
    """Velocities of degrees of freedom held by one contact alone, free of rounding error."""
    mechanics = prepared.mechanics
    dofs = [*mechanics.single_tangent, *mechanics.single_normal]
    rows = [i for i, dof in enumerate(dofs) if dof is not None]
    if not rows:
        return v
    columns = [dofs[i] for i in rows]
    at = jnp.asarray(rows), jnp.asarray(columns)
    exact = prescribed[at[0]] / prepared.W[at]
    return v.at[at[1]].set(jnp.where(active[at[0]], exact, v[at[1]]))


def _stopped(prepared: Prepared, v, prescribed, sticks, active):
    """Set the sliding velocities of sticking contacts to zero, by impulses on active rows.

    Normal velocities stay what they are.
    """
    sticks = jnp.concatenate([sticks, jnp.zeros((prepared.nu,), bool)])
    defect = jnp.where(sticks, prescribed - matvec(prepared.W, v), 0.0)
    mask = active[:, None] & active[None, :]
    system = jnp.where(mask, prepared.D_mass, jnp.eye(active.shape[0], dtype=v.dtype))
    v = v + matvec(prepared.MW, _independent(system, defect))
    return _held(prepared, v, prescribed, sticks)


def _independent(a, b):
    """``x`` with ``a x = b``, ``a`` symmetric; dependent rows, which agree, are left out."""
    weight = jnp.diagonal(a) ** -0.5
    return weight * matvec(eliminate(a * weight[:, None] * weight, DEPENDENT).inverse, weight * b)
