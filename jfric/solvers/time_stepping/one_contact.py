"""One step of a small linear system with one contact, in scalars.

The same step as in :mod:`several_contacts`, written out number by number. What goes from step to
step is one short vector: compiled, a step is then one kernel, and the compiler makes the whole loop
a piece of machine code. Each number of the vector is computed by itself, so all that the next step
does not need (impulses, what happened) is found afterwards, for many steps at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.closed_form import (
    Coefficients,
    contact_impulse,
    contact_numbers,
    element_impulse,
    frictionless_impulse,
)
from jfric.results.modes import Mode
from jfric.solvers.time_stepping.inputs import StepInputs
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.tolerance import touches


class Numbers(NamedTuple):
    """Matrices as scalars, and what follows from them."""

    Bq: tuple
    Bv: tuple
    W: tuple
    X: tuple
    #: Weights of the relative velocities at the start.
    old: tuple
    #: Inverse of ``W`` where a row acts on one degree of freedom alone.
    inverse: tuple
    #: Velocity that a unit sliding velocity takes to stop.
    stop: tuple
    end_weight: Any
    start_weight: Any
    d: Any
    d_inverse: Any
    mu: Coefficients
    contact: Any
    smooth: Any
    gap: Any


class Given(NamedTuple):
    """What is given on steps (L, ...), as far as the problem has it.

    ``push``: velocities that the loads cause.
    """

    push: Any
    normal: Any = ()
    before: Any = ()
    after: Any = ()
    gap: Any = ()


def given(prepared: Prepared, inputs: StepInputs, pushes: Float[Array, "L n"]) -> Given:
    """What the steps with ``inputs`` (L, ...) need."""
    x = Given(pushes)
    if prepared.nf:
        x = x._replace(normal=inputs.normal[:, 0])
    if prepared.partners_move:
        x = x._replace(before=inputs.before, after=inputs.after, gap=inputs.gap)
    return x


def run_steps(prepared: Prepared, start: Float[Array, " z"], x: Given):
    """Packed motions from ``start`` on: before each step (L, z), and after the last one (z,)."""
    assert prepared.packed is not None
    numbers, unravel = prepared.packed, _unpacking(prepared)
    remembers = _remembers(prepared)

    def step(z, x):
        now = _step(prepared, unravel(numbers), z, x)
        mode = [now.mode.astype(z.dtype)] if remembers else []
        return jnp.stack([*now.q, *now.v, *mode]), z

    last, starts = jax.lax.scan(step, start, x)
    return starts, last


def pack(prepared: Prepared, q, v, mode) -> Float[Array, " z"]:
    """What goes from step to step, as one vector: position, velocity, mode if it matters."""
    remembered = [mode.astype(q.dtype)] if _remembers(prepared) else []
    return jnp.concatenate([q, v, *remembered])


def _remembers(prepared: Prepared) -> bool:
    """Whether a step depends on the mode before it."""
    return prepared.breakaway or any(prepared.mechanics.smooth_impact)


class Columns(NamedTuple):
    """What steps did. ``bounces``: the contact was approached and pushed; ``failed``: no impulse
    obeys the laws."""

    q: Float[Array, "L n"]
    v: Float[Array, "L n"]
    impulse: Float[Array, "L m"]
    mode: Int[Array, " L"]
    bounces: Bool[Array, " L"]
    failed: Bool[Array, " L"]


def look(prepared: Prepared, starts: Float[Array, "L z"], x: Given) -> Columns:
    """The steps from ``starts`` once more, all at once."""
    assert prepared.packed is not None
    numbers = _unpacking(prepared)(prepared.packed)

    # Column by column: the compiler then computes several steps with one instruction.
    now = _step(prepared, numbers, _columns(starts), Given(*(_columns(part) for part in x)))
    q, v, impulse = (jnp.stack(part, axis=1) for part in now[:3])
    return Columns(q, v, impulse, *now[3:])


def _columns(x):
    if isinstance(x, tuple) or x.ndim == 1:
        return x
    return [x[:, i] for i in range(x.shape[1])]


def packed_numbers(prepared: Prepared) -> Float[Array, " k"]:
    """The numbers that a step needs, as one vector."""
    return ravel_pytree(_numbers(prepared))[0]


def _unpacking(prepared: Prepared):
    """From the vector of :func:`packed_numbers` back to :class:`Numbers`."""
    shapes = jax.eval_shape(lambda: _numbers(prepared))
    return ravel_pytree(jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes))[1]


class _Now(NamedTuple):
    """One step, number by number; see :class:`Columns`."""

    q: list
    v: list
    impulse: list
    mode: Array
    bounces: Array
    failed: Array


def _numbers(prepared: Prepared) -> Numbers:
    a, mechanics, scheme, h = prepared.constant, prepared.mechanics, prepared.scheme, prepared.h
    assert a is not None
    law, dtype = mechanics.laws[0], h.dtype
    mu = Coefficients(*law.static(), *law.kinetic(jnp.zeros((), dtype)))
    mu = Coefficients(*(jnp.asarray(x, dtype) for x in mu))
    rubs = not mechanics.frictionless[0]
    contact = smooth = ()
    if prepared.nu and rubs:
        contact = contact_numbers(a.D, mu)
        if mechanics.smooth_impact[0]:
            smooth = contact_numbers(a.D, Coefficients(*(0.0 * x for x in mu)))
    d = a.D[-1, -1]
    dofs = _dofs(prepared)
    inverse = [() if dof is None else 1.0 / prepared.W[r, dof] for r, dof in enumerate(dofs)]
    return Numbers(
        Bq=_scalars(a.Bq),
        Bv=_scalars(a.Bv),
        W=_scalars(prepared.W),
        X=_scalars(a.X),
        old=(jnp.asarray(scheme.kappa, dtype), *_scalars(mechanics.e)),
        inverse=tuple(inverse),
        stop=_scalars(_stop(prepared)) if scheme.stops and rubs else (),
        end_weight=h * scheme.theta,
        start_weight=h * (1.0 - scheme.theta),
        d=d,
        d_inverse=1.0 / d,
        mu=mu,
        contact=contact,
        smooth=smooth,
        gap=mechanics.gap0[0] if prepared.nu else (),
    )


def _scalars(a) -> tuple:
    count = a.shape[0]
    return tuple(_scalars(a[i]) if a.ndim > 1 else a[i] for i in range(count))


def _dofs(prepared: Prepared) -> list[int | None]:
    """For each row of the contact the one degree of freedom that it acts on, or None."""
    return [prepared.mechanics.single_tangent[0], *prepared.mechanics.single_normal]


def _stop(prepared: Prepared):
    """Velocity (n,) by impulses that changes the sliding velocity by one, the normal one not."""
    D, MW = prepared.D_mass, prepared.MW
    if not prepared.nu:
        return MW[:, 0] / D[0, 0]
    ratio = -D[1, 0] / D[1, 1]
    return (MW[:, 0] + ratio * MW[:, 1]) / (D[0, 0] + ratio * D[0, 1])


def _step(prepared: Prepared, c: Numbers, z, x: Given) -> _Now:
    """The step from the packed motion ``z``."""
    mechanics, scheme = prepared.mechanics, prepared.scheme
    n, m = mechanics.n, prepared.W.shape[0]
    q, v = [z[i] for i in range(n)], [z[n + i] for i in range(n)]
    dofs, law = _dofs(prepared), mechanics.laws[0]

    def relative(velocity, row):
        dof = dofs[row]
        return _dot(c.W[row], velocity) if dof is None else c.W[row][dof] * velocity[dof]

    free = [x.push[i] + (_dot(c.Bq[i], q) + _dot(c.Bv[i], v)) for i in range(n)]
    before = [relative(v, r) for r in range(m)]
    after = [relative(free, r) for r in range(m)]
    if prepared.partners_move:
        before = [before[r] - x.before[r] for r in range(m)]
        after = [after[r] - x.after[r] for r in range(m)]
    gamma = [rules.restitution(after[r], before[r], c.old[r]) for r in range(m)]

    mu = c.mu
    if not law.velocity_independent:
        mu = Coefficients(*law.static(), *law.kinetic(jnp.abs(before[0])))
    direction = None
    if prepared.breakaway:
        direction = jnp.where(z[2 * n] == Mode.STICK, 0.0, before[0])
    bounces = failed = jnp.asarray(False)
    if m == 1:
        limit = Coefficients(*(k * x.normal for k in mu))
        tangential, mode = element_impulse(c.d, c.d_inverse, gamma[0], limit, direction)
        impulse, shown = [tangential], mode
    else:
        gap = x.gap[0] if prepared.partners_move else c.gap
        along = relative(q, 1)
        closing = gap + along + c.start_weight * before[1]
        way = (c.start_weight + c.end_weight) * (jnp.abs(before[1]) + jnp.abs(after[1]))
        touching = touches(closing, jnp.abs(gap) + jnp.abs(along), way)
        if mechanics.frictionless[0]:
            normal, mode = frictionless_impulse(c.d_inverse, gamma[1])
            tangential, solved = jnp.zeros_like(normal), jnp.asarray(True)
        else:
            numbers = c.contact
            if not law.velocity_independent:
                numbers = contact_numbers(prepared.constant.D, mu)  # type: ignore[union-attr]
            if mechanics.smooth_impact[0]:
                was_open = z[2 * n] == Mode.OPEN
                numbers = jax.tree.map(lambda a, b: jnp.where(was_open, a, b), c.smooth, numbers)
            tangential, normal, mode, solved = contact_impulse(
                numbers, gamma[0], gamma[1], direction
            )
        impulse = [jnp.where(touching, p, 0.0) for p in (tangential, normal)]
        mode = jnp.where(touching, mode, Mode.OPEN)
        rests = rules.rests_after_step(before[1], after[1], c.old[1])
        shown = jnp.where(rests, mode, Mode.OPEN)
        bounces = rules.hits_in_step(before[1], impulse[1])
        failed = touching & ~solved

    new = [free[i] + sum(c.X[i][r] * impulse[r] for r in range(m)) for i in range(n)]
    sticks = mode == Mode.STICK
    active = [sticks, mode != Mode.OPEN][:m]
    for r, dof in enumerate(dofs):
        if dof is not None:
            exact = 0.0 - c.old[r] * before[r]
            if prepared.partners_move:
                exact = exact + x.after[r]
            new[dof] = jnp.where(active[r], exact * c.inverse[r], new[dof])
    q_new = [q[i] + (c.end_weight * new[i] + c.start_weight * v[i]) for i in range(n)]
    if scheme.stops and not mechanics.frictionless[0]:
        prescribed = x.after[0] if prepared.partners_move else 0.0
        defect = prescribed - relative(new, 0)
        stopped = [new[i] + c.stop[i] * defect for i in range(n)]
        if dofs[0] is not None:
            stopped[dofs[0]] = jnp.zeros_like(new[0]) + prescribed * c.inverse[0]
        new = [jnp.where(sticks, a, b) for a, b in zip(stopped, new, strict=True)]
    return _Now(q_new, new, impulse, shown.astype(jnp.int32), bounces, failed)


def _dot(row, x):
    return sum((row[i] * x[i] for i in range(1, len(x))), row[0] * x[0])
