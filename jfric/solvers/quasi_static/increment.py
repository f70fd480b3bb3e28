"""The response to an increment of the load in fixed modes.

The increments of positions and reactions are unknown. With the tangent stiffness ``K`` (segments of
piecewise-linear springs included) and the modes of the contacts::

    K dq - W_T^T dlambda_T - W_N^T dlambda_N = f - K q + W_T^T lambda_T + W_N^T lambda_N
    stick   W_T dq = travel of the belt      slip   lambda_T + dlambda_T = -s mu N
    closed  g_N + dg_N = 0                   open   lambda_N + dlambda_N = 0

The right-hand side is the part of the target load that the current state leaves unbalanced, so that
rounding errors do not add up from one increment to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.numerics.linear_algebra import determinant_sign, diagonal_of, singular_values
from jfric.numerics.tolerances import tolerance_of
from jfric.results.modes import Mode
from jfric.solvers.quasi_static.state import State, Target
from jfric.system.mechanics import Mechanics

#: Singular values below this fraction of the largest are zero, unless the precision needs more.
SINGULAR = 1e-11
#: Trace of the null-space projector on positions or reactions that counts as zero.
NO_MOTION = 1e-6


class Increment(NamedTuple):
    """Increments up to the target of the load, and findings about the equations."""

    q: Float[Array, " n"]
    lambda_t: Float[Array, " nt"]
    lambda_n: Float[Array, " nu"]
    normal: Float[Array, " nf"]
    z: Float[Array, " nb"]
    #: Sliding displacements of the contacts, and increments of gaps and of elongations.
    slip: Float[Array, " nt"]
    gap: Float[Array, " nu"]
    elongation: Float[Array, " ns"]
    #: Magnitude of all forces on each degree of freedom: reference size for rounding errors.
    force_scale: Float[Array, " n"]
    #: Whether there is a load: an unbalanced force beyond rounding, or a prescribed motion.
    loaded: Bool[Array, ""]
    #: Whether some motion meets no resistance; reactions are not unique; the load cannot be carried
    #: along this path (negative stiffness), or reactions contradict each other.
    free: Bool[Array, ""]
    redundant: Bool[Array, ""]
    unstable: Bool[Array, ""]


def increment(mechanics: Mechanics, state: State, target: Target) -> Increment:
    """Solve the equations of the current modes for the way to ``target``."""
    nt, nf, n = mechanics.n_contacts, mechanics.n_friction, mechanics.n
    mode, given = state.mode, target.given
    K, internal, scale = _springs(mechanics, state)
    W_T, W_N = mechanics.W_T, mechanics.W_N
    held = W_T.T @ state.lambda_t + W_N.T @ state.lambda_n
    # A base moves the ends of piecewise-linear springs as well.
    spring_base = _spring_base(mechanics, state, given.z)
    unbalanced = given.f - internal - spring_base + held
    dz = given.z - state.z
    normal_force = jnp.concatenate([given.normal, state.lambda_n])
    stick, opened = mode == Mode.STICK, (mode == Mode.OPEN)[nf:]
    ratio = sliding_ratio(mechanics, mode)
    A = _matrix(mechanics, K, stick, opened, ratio)
    gap = mechanics.gap0 + W_N @ state.q + mechanics.W_N_base @ given.z
    prescribed = target.travel - mechanics.W_T_base @ dz
    b = jnp.concatenate(
        [
            unbalanced,
            jnp.where(stick, prescribed, ratio * normal_force - state.lambda_t),
            jnp.where(opened, -state.lambda_n, -gap),
        ]
    )
    x, null, det = _solve(A, b, n)
    dq = _held_exactly(mechanics, mode, x[:n], b[n:])
    d = mechanics.piecewise.directions
    size = scale + jnp.abs(given.f) + jnp.abs(W_T.T) @ jnp.abs(state.lambda_t)
    size = size + jnp.abs(W_N.T) @ jnp.abs(state.lambda_n)
    rounding = 256 * jnp.finfo(K.dtype).eps
    return Increment(
        q=dq,
        lambda_t=x[n : n + nt],
        lambda_n=x[n + nt :],
        normal=given.normal - state.normal,
        z=dz,
        slip=W_T @ dq - prescribed,
        gap=W_N @ dq + mechanics.W_N_base @ dz,
        elongation=d @ dq + mechanics.piecewise.base_directions @ dz,
        force_scale=jax.lax.stop_gradient(size),
        loaded=jnp.any(jnp.abs(unbalanced) > rounding * size) | jnp.any(prescribed != 0),
        free=jnp.sum(null[:n] ** 2) > NO_MOTION,
        redundant=jnp.sum(null[n:] ** 2) > NO_MOTION,
        unstable=det < 0,
    )


def _matrix(mechanics: Mechanics, K, stick, opened, ratio):
    """Coefficients of the increments of positions and reactions in the modes."""
    nt, nf, W_T, W_N = mechanics.n_contacts, mechanics.n_friction, mechanics.W_T, mechanics.W_N
    eye_t, eye_n = jnp.eye(nt, dtype=K.dtype), jnp.eye(nt - nf, dtype=K.dtype)
    # Friction of a sliding unilateral contact is proportional to its normal force.
    coupling = jnp.concatenate([jnp.zeros((nf, nt - nf), K.dtype), eye_n * ratio[nf:, None]])
    return jnp.block(
        [
            [K, -W_T.T, -W_N.T],
            [
                jnp.where(stick[:, None], W_T, 0.0),
                jnp.where(stick[:, None], 0.0, eye_t),
                jnp.where(stick[:, None], 0.0, -coupling),
            ],
            [
                jnp.where(opened[:, None], 0.0, W_N),
                jnp.zeros((nt - nf, nt), K.dtype),
                jnp.where(opened[:, None], eye_n, 0.0),
            ],
        ]
    )


def sliding_ratio(mechanics: Mechanics, mode) -> Float[Array, " nt"]:
    """``lambda_T / N`` of sliding contacts, zero for all others."""
    if not mechanics.laws:
        return jnp.zeros((0,), mechanics.K.dtype)
    positive, negative = friction_limits(mechanics)
    slides = [mode == Mode.SLIP_POS, mode == Mode.SLIP_NEG]
    return jnp.where(slides[0], -positive, jnp.where(slides[1], negative, 0.0))


def friction_limits(mechanics: Mechanics):
    """Coefficients of friction in the two directions, each (nt,)."""
    if not mechanics.laws:
        return jnp.zeros((0,)), jnp.zeros((0,))
    pairs = [law.static() for law in mechanics.laws]
    return jnp.stack([p[0] for p in pairs]), jnp.stack([p[1] for p in pairs])


def _springs(mechanics: Mechanics, state: State):
    """Tangent stiffness, spring forces without the bases' part, and their magnitudes."""
    piecewise, q = mechanics.piecewise, state.q
    K = mechanics.K
    internal = K @ q
    scale = jnp.abs(K) @ jnp.abs(q) + jnp.abs(mechanics.f0)
    if piecewise.count:
        w = piecewise.directions
        k, f = piecewise.at(state.segment, "k"), piecewise.at(state.segment, "f")
        K = K + (w.T * k) @ w
        x = w @ q
        internal = internal + w.T @ (k * x + f)
        scale = scale + jnp.abs(w.T) @ (jnp.abs(k * x) + jnp.abs(f))
    return K, internal, scale


def _spring_base(mechanics: Mechanics, state: State, z):
    piecewise = mechanics.piecewise
    if not piecewise.count or not mechanics.base_functions:
        return jnp.zeros((mechanics.n,), mechanics.K.dtype)
    k = piecewise.at(state.segment, "k")
    return piecewise.directions.T @ (k * (piecewise.base_directions @ z))


def _solve(A, b, n: int):
    """Solution of least norm, an orthonormal basis of the null space (columns), and the sign of
    the determinant (positive for a stable system; 0 for a singular one).

    Rows and columns are scaled: stiffnesses and directions of all sizes become comparable. The
    decomposition has no derivative; one step of refinement carries that of the solution.
    """
    frozen = jax.lax.stop_gradient(A)
    stiffness = jnp.abs(diagonal_of(frozen)[:n])
    largest = jnp.max(stiffness)
    fallback = jnp.where(largest > 0, largest, 1.0)
    # A node without a spring of its own takes the scale of the stiffest.
    d = jax.lax.rsqrt(jnp.where(stiffness > 1e-12 * largest, stiffness, fallback))
    # Unit of a reaction: the force that moves the degrees of freedom by one unit of theirs.
    columns = frozen[:n, n:] * d[:, None]
    norm = jnp.sqrt(jnp.sum(columns**2, axis=0))
    e = jnp.concatenate([d, 1.0 / jnp.where(norm > 0, norm, 1.0)])
    # A row that fixes a reaction is scaled by it, the row of a constraint like its reaction.
    fixes = jnp.concatenate([jnp.zeros((n,), bool), diagonal_of(frozen)[n:] != 0])
    row = jnp.where(fixes, 1.0 / e, e)
    scaled = frozen * row[:, None] * e[None, :]
    u, s, vt = singular_values(scaled)
    zero = s <= tolerance_of(s.dtype, SINGULAR) * jnp.max(s)
    inverse = (vt.T * jnp.where(zero, 0.0, 1.0 / jnp.where(zero, 1.0, s))[None, :]) @ u.T
    inverse = e[:, None] * inverse * row[None, :]
    x = jax.lax.stop_gradient(inverse @ b)
    x = x + inverse @ (b - A @ x)
    null = jnp.where(zero[:, None], vt, 0.0).T
    return x, null, jnp.where(zero.any(), 0.0, determinant_sign(scaled))


def _held_exactly(mechanics: Mechanics, mode, dq, constraint):
    """Increments with exact values for degrees of freedom that one contact holds alone."""
    nt, nf = mechanics.n_contacts, mechanics.n_friction
    column = jnp.arange(mechanics.n)
    for i, row in enumerate(mechanics.contacts):
        if (dof := row.tangent.single) is not None:
            held = (mode[i] == Mode.STICK) & (column == dof)
            dq = jnp.where(held, constraint[i] / mechanics.W_T[i, dof], dq)
    for j, row in enumerate(mechanics.contacts[nf:]):
        if (dof := row.normal.single) is not None:
            held = (mode[nf + j] != Mode.OPEN) & (column == dof)
            dq = jnp.where(held, constraint[nt + j] / mechanics.W_N[j, dof], dq)
    return dq
