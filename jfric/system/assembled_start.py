"""Starts of bodies that are not given, from the joints."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.system.description import AbstractProblem
from jfric.system.joint_checks import joints_at
from jfric.system.joint_equations import joint_equations
from jfric.system.joints import joints_of, tolerance_of
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


def assembled_start(
    problem: AbstractProblem, free: Collection[tuple[str, str]]
) -> dict[str, tuple[Any, Any]]:
    """Positions and velocities by degree of freedom that let a start meet the joints, where it does
    not and those ``free`` (degree of freedom, ``"q"`` or ``"v"``) can be changed; empty where there
    are none. All numbers of ``problem`` are known."""
    if not free:
        return {}
    states = [problem.initial[dof] for dof in problem.dofs]
    # A concrete problem may be used while something else is traced.
    with jax.ensure_compile_time_eval():
        q, v = (np.asarray([float(getattr(s, x)) for s in states]) for x in "qv")
        place = _position(problem, q, _indices(problem, free, "q"))
        moved = by_chosen_velocities(problem) & [(dof, "v") in free for dof in problem.dofs]
        t = jnp.asarray(problem.time.start, float)
        begun = np.where(moved, chosen_start(problem, t, jnp.asarray(place)), v)
        left = [i for i in _indices(problem, free, "v") if not moved[i]]
        speed = _velocity(problem, place, begun, np.asarray(left, int))
    return {
        dof: (place[i], speed[i])
        for i, dof in enumerate(problem.dofs)
        if (place[i], speed[i]) != (q[i], v[i])
    }


def _indices(problem: AbstractProblem, free: Collection[tuple[str, str]], what: str) -> np.ndarray:
    return np.asarray([i for i, d in enumerate(problem.dofs) if (d, what) in free], int)


def _position(problem: AbstractProblem, q: np.ndarray, free: np.ndarray) -> np.ndarray:
    """``q``, or a position with other ``free`` ones that meets the equations."""
    angles, weight = turns(problem), np.zeros_like(q)
    weight[free] = weights(problem)[free]
    fixed = [f for f in (e.function for e in joint_equations(problem)) if not rolls(f)]
    if not free.size or not fixed:
        return q
    t, joints = jnp.asarray(problem.time.start, float), joints_of(fixed, len(q))
    tied = joints_at(joints, t, jnp.asarray(q), jnp.zeros_like(q))
    length = tied.position_size(jnp.asarray(q))
    if np.all(np.abs(tied.value) <= tolerance_of(length.dtype) * length):
        return q
    for guess in GUESSES:
        x = q.copy()
        x[free] += np.where(angles[free], guess, 0.0)
        x, met = _sought(joints, t, jnp.asarray(x), weight, angles)
        if met:
            return np.asarray(x)
    return q


_sought = eqx.filter_jit(put_on_joints)


def _velocity(
    problem: AbstractProblem, q: np.ndarray, v: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """The same for velocities, which the equations are linear in."""
    equations = [e.function for e in joint_equations(problem)]
    if not free.size or not equations:
        return v
    t, joints = jnp.asarray(problem.time.start, float), joints_of(equations, len(q))
    tied = joints_at(joints, t, jnp.asarray(q), jnp.asarray(v))
    J, rate = np.asarray(tied.J), np.asarray(tied.J @ v + tied.rate)
    size = np.asarray(tied.velocity_size(jnp.asarray(v)))
    if not np.any(np.abs(rate) > tolerance_of(tied.J.dtype) * size):
        return v
    found = v.copy()
    found[free] += np.linalg.lstsq(J[:, free], -rate)[0]
    left = np.abs(J @ found + np.asarray(tied.rate))
    allowed = tolerance_of(tied.J.dtype, 1e-12) * np.max(tied.velocity_size(jnp.asarray(found)))
    return found if np.all(left <= allowed) else v
