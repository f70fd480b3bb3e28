"""Steps of systems whose masses and directions depend on position, and of those with joints.

All matrices are evaluated at the predicted position ``q_p = q + h theta v``. With the relative
velocity ``gamma = W v + r`` there and the relative acceleration ``c`` of a motion without
acceleration, the relative velocities at the ends of the step are::

    gamma- = W v + r - h theta c,      gamma+ = W v+ + r + h (1 - theta) c

Joints require ``gamma+ = 0`` for their rows ``J``; their impulses are eliminated. At the end of the
step, positions are projected on the joints and on gaps of zero of contacts that last, by some steps
of Newton's method in the metric of the masses.

Source: M. Jean, The non-smooth contact dynamics method, Comput. Methods Appl. Mech. Engrg. 177
(1999); V. Acary, B. Brogliato, Numerical methods for nonsmooth dynamical systems (2008), chapter
10, for masses and directions at the predicted position. There ``c`` is left out: it keeps second
order between switches for ``theta = 1/2``, and vanishes from ``gamma+`` for ``theta = 1``. The
projection: V. Acary, Projected event-capturing time-stepping schemes for nonsmooth mechanical
systems with unilateral contact and Coulomb's friction, Comput. Methods Appl. Mech. Engrg. 256
(2013).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.linear_algebra import diagonal_of, eliminate, matvec
from jfric.numerics.tolerances import tolerance_of
from jfric.results.modes import Mode
from jfric.results.status import Status
from jfric.solvers.time_stepping.inputs import StepInputs
from jfric.solvers.time_stepping.prepared import DEPENDENT, Motion, Prepared
from jfric.system.joints import ROUNDS, TOLERANCE, Tied
from jfric.system.mechanics import Mechanics


def seen_at_prediction(
    prepared: Prepared, motion: Motion, x: StepInputs
) -> tuple[Prepared, StepInputs]:
    """System at the predicted position, and inputs of the step with its contributions.

    Gaps become those at the start of the step, less ``W_N q``.
    """
    mechanics = prepared.mechanics
    if mechanics.varying is None:
        return prepared, x
    ahead, behind = _weights(prepared)
    here = prepared.at(x.t + ahead, motion.q + ahead * motion.v, motion.v)
    rate, bias = here.mechanics.rate, here.mechanics.bias
    gap = mechanics.displacements(x.t, motion.q)[prepared.nt :] - mechanics.gap0
    return here, x._replace(
        before=x.before - rate + ahead * bias,
        after=x.after - rate - behind * bias,
        gap=x.gap + gap - matvec(here.mechanics.W_N, motion.q),
    )


def _weights(prepared: Prepared):
    """Time from the start of a step to the instant of the prediction, and from there to its end."""
    ahead = prepared.h * prepared.scheme.theta
    return ahead, prepared.h - ahead


def held_by_joints(prepared: Prepared, hold, free, v) -> Float[Array, " n"]:
    """Velocity ``free`` (n,) corrected for the joints at the end of the step; ``free`` is ``v``
    (n,) plus the effect of the forces that joints let through. ``hold``: see
    :class:`jfric.solvers.time_stepping.prepared.StepMatrices`."""
    tied = prepared.mechanics.tied
    if tied is None:
        return free
    return free - matvec(hold, matvec(tied.J, v) + _demanded(prepared))


def _demanded(prepared: Prepared) -> Float[Array, " k"]:
    """Required ``-J v+`` at the end of the step."""
    tied = prepared.mechanics.tied
    assert tied is not None
    return tied.rate + _weights(prepared)[1] * tied.bias


def without_held(
    here: Prepared,
    touching: Bool[Array, " nu"],
    gamma: Float[Array, " m"],
    v: Float[Array, " n"],
    impulse: Float[Array, " n"],
) -> tuple[Bool[Array, " nu"], Bool[Array, ""]]:
    """Contacts in ``touching`` without those whose gaps joints alone determine, and whether joints
    drive one of the latter into its partner, or one rubs under an undetermined normal force.
    ``gamma`` (m,): relative velocities, ``v`` (n,) at the start, ``impulse`` (n,) of the forces."""
    mechanics = here.mechanics
    if mechanics.tied is None or not here.nu:
        return touching, jnp.asarray(False)
    moves, rates = diagonal_of(here.D_mass)[here.nt :] > 0, gamma[here.nt :]
    # Joints leave rounding errors of the motion that they remove.
    size = jnp.abs(v) + matvec(mechanics.inverse_size, jnp.abs(impulse))
    size = matvec(jnp.abs(mechanics.W_N), size)
    driven = rates < -tolerance_of(gamma.dtype, TOLERANCE) * size
    slides = (diagonal_of(here.D_mass) > 0)[here.nf : here.nt]
    rubs = slides & ~np.asarray(mechanics.frictionless[here.nf :], bool)
    return touching & moves, jnp.any(touching & ~moves & (driven | rubs))


def put_back(
    here: Prepared, constant: Mechanics, t, q, v, mode: Int[Array, " nt"]
) -> tuple[Float[Array, " n"], Int[Array, ""]]:
    """Position at the end of a step to ``t``, the nearest to ``q`` (n,) that satisfies joints and
    lasting contacts, and a status: ``STALLED`` where none is found, ``INCONSISTENT`` where joints
    contradict each other. ``v`` (n,): velocity there; ``constant``: the system before evaluation at
    a position."""
    mechanics = here.mechanics
    varying, tied, ok = mechanics.varying, mechanics.tied, jnp.asarray(0, jnp.int32)
    if varying is None:
        return q, ok
    joints, closed, back = varying.joints, mode[here.nf :] != Mode.OPEN, None
    if here.nu:
        back = _back_on_gaps(here, jax.lax.stop_gradient(closed))
    for _ in range(ROUNDS):
        if joints is not None and tied is not None:
            q = joints.put_on(tied, t, q, rounds=1)
        if back is not None:
            q = q - matvec(back, jnp.where(closed, constant.gaps(t, q), 0.0))
    if joints is None or tied is None:
        return q, ok
    q = joints.put_on(tied, t, q, rounds=1)
    tied, value, still, v = jax.lax.stop_gradient((tied, joints.off(tied, t, q), q, v))
    tolerance = tolerance_of(q.dtype, TOLERANCE)
    off = jnp.any(jnp.abs(value) > tolerance * tied.position_size(jnp.abs(still)))
    wrong = _contradicts(here, tied, jnp.abs(still), jnp.abs(v))
    status = jnp.where(off, int(Status.STALLED), int(Status.OK))
    return q, jnp.where(wrong, int(Status.INCONSISTENT), status).astype(jnp.int32)


def _contradicts(here: Prepared, tied: Tied, q, v) -> Bool[Array, ""]:
    """Whether equations of joints contradict each other; ``q``, ``v`` (n,): magnitudes."""
    demanded = jax.lax.stop_gradient(_demanded(here))
    left = demanded - matvec(tied.J, matvec(tied.MJ, matvec(tied.S, demanded)))
    length = tied.position_size(q)
    curved = matvec(jnp.abs(tied.J), v) ** 2 / jnp.where(length > 0, length, 1.0)
    # In this scale lengths and angles are comparable: rounding errors come from all equations.
    mobility = jnp.sum(tied.J * tied.MJ.T, axis=1)
    weight = jnp.where(mobility > 0, mobility, 1.0) ** -0.5
    size = jnp.max((jnp.abs(demanded) + here.h * curved) * weight)
    return tied.redundant & jnp.any(
        jnp.abs(left) * weight > tolerance_of(v.dtype, TOLERANCE) * size
    )


def _back_on_gaps(here: Prepared, closed: Bool[Array, " nu"]) -> Float[Array, "n nu"]:
    """Smallest changes of position that change the gaps of ``closed`` contacts by one."""
    nt = here.nt
    D = here.D_mass[nt:, nt:]
    diagonal = diagonal_of(D)
    moves = closed & (diagonal > 0)
    weight = jnp.where(moves, diagonal, 1.0) ** -0.5
    both = moves[:, None] & moves[None, :]
    scaled = D * weight[:, None] * weight[None, :]
    system = jnp.where(both, scaled, jnp.eye(closed.shape[0], dtype=D.dtype))
    inverse = eliminate(system, DEPENDENT).inverse * weight[:, None] * weight[None, :]
    return here.MW[:, nt:] @ jnp.where(both, inverse, 0.0)
