"""Starts of bodies that follow from the joints, and whether starts meet the joints."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.numerics.compilation import brief_options
from jfric.numerics.kept_programs import Kept
from jfric.numerics.linear_algebra import matvec
from jfric.system.description import AbstractProblem
from jfric.system.joint_equations import joint_equations
from jfric.system.joints import Tied, joints_of
from jfric.system.linkage import has_joints
from jfric.system.start import started


class Assembled(NamedTuple):
    """A start that meets the joints, and its values in their equations (None without joints)."""

    q: Float[Array, " n"]
    v: Float[Array, " n"]
    seen: SeenStart | None


class SeenStart(NamedTuple):
    """A start, with its values and rates in the equations of all joints."""

    q: Float[Array, " n"]
    v: Float[Array, " n"]
    #: In the metric of unit masses.
    tied: Tied
    #: Rates of the equations; magnitudes to which rounding errors of values and rates are relative.
    rates: Float[Array, " k"]
    length: Float[Array, " k"]
    speed: Float[Array, " k"]
    #: Equations whose accelerations the others do not allow.
    contradicted: Bool[Array, " k"]


def assembled_start(
    problem: AbstractProblem,
) -> tuple[dict[str, tuple[Any, Any]], SeenStart | None]:
    """Positions and velocities of a start that meets the joints, by degree of freedom, if parts of
    it follow from the joints; and its values in the equations, None without joints. All numbers of
    ``problem`` must be known."""
    if not has_joints(problem):
        return {}, None
    found = jax.tree.map(np.asarray, _assembled(problem.resolved()))
    if not problem.follows:
        return {}, found.seen
    return dict(zip(problem.dofs, zip(found.q, found.v, strict=True), strict=False)), found.seen


@functools.partial(Kept, options=brief_options)
def _assembled(problem: AbstractProblem) -> Assembled:
    """The start in one program; its parts would be compiled as a hundred small ones."""
    problem = started(problem)
    t, q, v = problem.start()
    equations = [e.function for e in joint_equations(problem)]
    if not equations:
        return Assembled(q, v, None)
    joints = joints_of(equations, len(q))
    tied = joints.at(t, q, v, jnp.eye(q.shape[0], dtype=q.dtype))
    rates = matvec(tied.J, v) + tied.rate
    length, speed = tied.position_size(q), tied.velocity_size(v)
    seen = SeenStart(q, v, tied, rates, length, speed, tied.contradicted(q, v))
    return Assembled(q, v, seen)
