"""Starts of bodies that are not given, from the joints, and whether starts meet these."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Bool, Float

from jfric.numerics.compilation import brief_options
from jfric.numerics.kept_programs import Kept
from jfric.numerics.linear_algebra import matvec
from jfric.system.description import AbstractProblem
from jfric.system.joint_equations import joint_equations
from jfric.system.joints import Joints, Tied, joints_of, off_velocity, tolerance_of
from jfric.system.linkage import has_joints
from jfric.system.start import (
    by_chosen_velocities,
    chosen_start,
    put_on_joints,
    rolls,
    turns,
    weights,
)

#: Angles [rad] from which bodies of unknown angle are put together, in this order.
GUESSES = (0.0, 0.3, -0.3, 1.0, -1.0)


class Assembled(NamedTuple):
    """A start as joints let it be, and as their equations see it, None without any."""

    q: Float[Array, " n"]
    v: Float[Array, " n"]
    seen: SeenStart | None


class SeenStart(NamedTuple):
    """A start as the equations of all joints see it."""

    q: Float[Array, " n"]
    v: Float[Array, " n"]
    #: In the metric of unit masses.
    tied: Tied
    #: Rates of the equations, and what rounding errors of values and rates are relative to.
    rates: Float[Array, " k"]
    length: Float[Array, " k"]
    speed: Float[Array, " k"]
    #: Equations whose accelerations the others do not allow.
    contradicted: Bool[Array, " k"]


def assembled_start(
    problem: AbstractProblem, free: Collection[tuple[str, str]]
) -> tuple[dict[str, tuple[Any, Any]], SeenStart | None]:
    """Positions and velocities by degree of freedom that let a start meet the joints, where it does
    not and those ``free`` (degree of freedom, ``"q"`` or ``"v"``) can be changed; and that start,
    None without joints. All numbers of ``problem`` are known."""
    if not has_joints(problem):
        return {}, None
    states = [problem.initial[dof] for dof in problem.dofs]
    # A concrete problem may be used while something else is traced.
    with eval_context():
        masks = (tuple((dof, x) in free for dof in problem.dofs) for x in "qv")
        found = jax.tree.map(np.asarray, _assembled(problem, *masks))
    q, v = ([float(getattr(s, x)) for s in states] for x in "qv")
    changed = {
        dof: (found.q[i], found.v[i])
        for i, dof in enumerate(problem.dofs)
        if (found.q[i], found.v[i]) != (q[i], v[i])
    }
    return (changed if free else {}), found.seen


@functools.partial(Kept, options=brief_options)
def _assembled(
    problem: AbstractProblem, free_q: tuple[bool, ...], free_v: tuple[bool, ...]
) -> Assembled:
    """A program for all of the start: its parts alone would be a hundred small ones."""
    t, q, v = problem.start()
    equations = [e.function for e in joint_equations(problem)]
    fixed = [f for f in equations if not rolls(f)]
    if any(free_q) and fixed:
        q = _position(problem, joints_of(fixed, len(q)), t, q, np.asarray(free_q))
    moved = by_chosen_velocities(problem) & np.asarray(free_v)
    if moved.any():
        v = jnp.where(moved, chosen_start(problem, t, q), v)
    if not equations:
        return Assembled(q, v, None)
    joints, left = joints_of(equations, len(q)), np.asarray(free_v) & ~moved
    if left.any():
        v = _velocity(joints, t, q, v, left)
    tied = joints.at(t, q, v, jnp.eye(q.shape[0], dtype=q.dtype))
    rates, length, speed = _rates(tied, v), tied.position_size(q), tied.velocity_size(v)
    seen = SeenStart(q, v, tied, rates, length, speed, tied.contradicted(q, v))
    return Assembled(q, v, seen)


def _position(
    problem: AbstractProblem, joints: Joints, t, q, free: np.ndarray
) -> Float[Array, " n"]:
    """``q``, or a position with other ``free`` ones that meets the equations."""
    angles, weight = turns(problem), np.where(free, weights(problem), 0.0)
    guesses = jnp.asarray(GUESSES, q.dtype)
    tied = joints.at(t, q, jnp.zeros_like(q), jnp.eye(q.shape[0], dtype=q.dtype))
    met = jnp.all(jnp.abs(tied.value) <= tolerance_of(q.dtype) * tied.position_size(q))

    def unfinished(carry):
        i, _, met = carry
        return (i < len(GUESSES)) & ~met

    def tried(carry):
        i, _, _ = carry
        near = q + jnp.where(free & angles, guesses[i], 0.0)
        return i + 1, *put_on_joints(joints, t, near, weight, angles)

    _, found, met = jax.lax.while_loop(unfinished, tried, (0, q, met))
    return jnp.where(met, found, q)


def _velocity(joints: Joints, t, q, v, free: np.ndarray) -> Float[Array, " n"]:
    """``v``, or a velocity with other ``free`` entries that meets the equations, linear in it."""
    tied = joints.at(t, q, v, jnp.diag(jnp.asarray(free, q.dtype)))
    found = v
    # The second step takes away the rounding errors of the first.
    for _ in range(2):
        found = found + off_velocity(tied, found)
    allowed = tolerance_of(q.dtype, 1e-12) * jnp.max(tied.velocity_size(found))
    off = jnp.abs(_rates(tied, v)) > tolerance_of(q.dtype) * tied.velocity_size(v)
    use = off.any() & jnp.all(jnp.abs(_rates(tied, found)) <= allowed)
    return jnp.where(use, found, v)


def _rates(tied: Tied, v) -> Float[Array, " k"]:
    return matvec(tied.J, v) + tied.rate
