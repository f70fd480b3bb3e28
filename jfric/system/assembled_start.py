"""Starts of bodies that are not given, from the joints, and whether starts meet these."""

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
    problem: AbstractProblem,
) -> tuple[dict[str, tuple[Any, Any]], SeenStart | None]:
    """Positions and velocities by degree of freedom of a start on the joints, where some of it
    follows from these; and that start as they see it, None without joints. All numbers of
    ``problem`` are known."""
    if not has_joints(problem):
        return {}, None
    found = jax.tree.map(np.asarray, _assembled(problem.resolved()))
    if not problem.follows:
        return {}, found.seen
    return dict(zip(problem.dofs, zip(found.q, found.v, strict=True), strict=False)), found.seen


@functools.partial(Kept, options=brief_options)
def _assembled(problem: AbstractProblem) -> Assembled:
    """A program for all of the start: its parts alone would be a hundred small ones."""
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
