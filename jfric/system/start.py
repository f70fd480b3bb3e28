"""Starts that are not given follow from the joints, also where numbers change."""

from __future__ import annotations

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matvec
from jfric.numerics.tolerances import tolerance_of
from jfric.system.description import AbstractProblem
from jfric.system.joint_equations import Rolled, SinceStart, joint_equations
from jfric.system.joints import Joints, Tied, joints_of, off_velocity
from jfric.system.polygons import LineSliding
from jfric.system.state_function import Rate, chosen_velocities

P = TypeVar("P", bound=AbstractProblem)

#: Newton steps, the largest turn in one step [rad], and the part of lengths that counts as zero,
#: unless the precision needs more.
STEPS, TURN, ZERO = 60, 0.5, 1e-13
#: Weight of turns, so that displacements are sought first.
STIFF = 1e-2
#: Further steps that carry derivatives; each doubles their order.
DIFFERENTIATED = 2
#: Turns [rad] from which bodies of unknown angle are assembled, in this order.
GUESSES = (0.0, 0.3, -0.3, 1.0, -1.0)


def started(problem: P) -> P:
    """The resolved ``problem`` with the parts of its start that follow from joints.

    Newton's method finds the parts in ``problem.follows`` from their present values, or from turned
    bodies; all others stay as they are. Derivatives are those of the solution. Where there is no
    solution, the start does not meet the joints, which solvers report. The result's ``follows`` is
    empty.
    """
    problem = problem.resolved()
    return _started(problem) if problem.follows else problem


# Traced once for the structure of a problem and for its motion.
@eqx.filter_jit(inline=True)  # pyright: ignore[reportCallIssue]
def _started(problem: P) -> P:
    t, q, v = problem.start()
    free = {x: np.asarray([(dof, x) in problem.follows for dof in problem.axes]) for x in "qv"}
    fixed = [f for f in (e.function for e in joint_equations(problem)) if not rolls(f)]
    if free["q"].any() and fixed:
        joints = joints_of(fixed, len(q))
        weight = weights(problem) * free["q"]
        found, met = _near(joints, t, jax.lax.stop_gradient(q), weight, turns(problem))
        q = select(free["q"] & met, found, q)

        def stepped(q, _):
            return q + select(met, _step(joints, t, q, weight), 0.0), None

        q, _ = jax.lax.scan(stepped, q, None, length=DIFFERENTIATED)
        problem = _with(problem, "q", q)
    moved = by_chosen_velocities(problem) & free["v"]
    if moved.any():
        v = select(moved, chosen_start(problem, t, q), v)
        problem, free["v"] = _with(problem, "v", v), free["v"] & ~moved
    if free["v"].any():
        equations = tuple(e.function for e in joint_equations(problem))
        metric = jnp.diag(jnp.asarray(free["v"], q.dtype))
        tied = joints_of(equations, len(q)).at(t, q, v, metric)
        problem = _with(problem, "v", v + off_velocity(tied, v))
    # Nothing is left to be found.
    object.__setattr__(problem, "follows", ())
    return problem


def _with(problem: P, what: str, values) -> P:
    def leaves(p):
        return [getattr(p.initial[dof], what) for dof in p.dofs]

    return eqx.tree_at(leaves, problem, list(values[: len(problem.dofs)]))


def by_chosen_velocities(problem: AbstractProblem) -> np.ndarray:
    """Whether each coordinate (n,) starts with velocities that the user defines."""
    moved: set[str] = set()
    for own in chosen_velocities(problem):
        if any(problem.section("velocity")[name].v is not None for name in own.names):
            moved |= set(own.dofs)
    return np.asarray([axis in moved for axis in problem.axes])


def chosen_start(problem: AbstractProblem, t, q) -> Float[Array, " n"]:
    """Rates with which degrees of freedom start by velocities that the user defines; zero where
    none moves them."""
    found = jnp.zeros_like(q)
    for own in chosen_velocities(problem):
        given = [problem.section("velocity")[name].v for name in own.names]
        u = jnp.stack([jnp.asarray(0.0 if x is None else x, q.dtype) for x in given])
        found = found.at[np.asarray(own.rows)].set(matvec(own.matrix(t, q), u))
    return found


def rolls(function: Any) -> bool:
    """Whether every position meets an equation, because it is on velocities or counts rolling."""
    return isinstance(function, Rate) or (
        isinstance(function, SinceStart) and isinstance(function.displacement, LineSliding | Rolled)
    )


def turns(problem: AbstractProblem) -> np.ndarray:
    """Whether each coordinate (n,) is an angle."""
    return np.asarray([problem.dofs.get(axis) == "rotation" for axis in problem.axes])


def weights(problem: AbstractProblem) -> np.ndarray:
    """Weight of each coordinate (n,) in the search: larger ones move further."""
    return np.where(turns(problem), STIFF, 1.0)


def _near(joints: Joints, t, q, weight, turns) -> tuple[Float[Array, " n"], Bool[Array, ""]]:
    """Result of :func:`put_on_joints` from ``q``, or, where that fails, from turned bodies."""
    guesses = jnp.asarray(GUESSES, q.dtype)

    def unfinished(carry):
        i, _, met = carry
        return (i < len(GUESSES)) & ~met

    def tried(carry):
        i, _, _ = carry
        near = q + select((weight > 0.0) & turns, guesses[i], 0.0)
        return i + 1, *put_on_joints(joints, t, near, weight, turns)

    _, found, met = jax.lax.while_loop(unfinished, tried, (0, q, jnp.asarray(False)))
    return found, met


def put_on_joints(
    joints: Joints, t, q, weight, turns
) -> tuple[Float[Array, " n"], Bool[Array, ""]]:
    """Positions near ``q`` (n,), changed where ``weight`` (n,) is not zero, that meet the equations
    of ``joints``, and whether they do; ``turns`` (n,): angles. Without derivatives."""
    joints, t, q = jax.lax.stop_gradient((joints, t, q))
    zero = tolerance_of(q.dtype, ZERO)

    def unfinished(carry):
        i, _, off = carry
        return (i < STEPS) & off

    def improved(carry):
        i, q, _ = carry
        tied = _tied(joints, t, q, weight)
        off = ~jnp.all(jnp.abs(tied.value) <= zero * tied.position_size(q))
        step = -matvec(tied.MJ, matvec(tied.S, tied.value))
        turn = jnp.max(jnp.abs(select(turns, step, 0.0)), initial=0.0)
        return i + 1, q + step * (TURN / jnp.maximum(turn, TURN)), off

    # The loop ends a step after a position that meets the equations, or after all steps.
    _, q, off = jax.lax.while_loop(unfinished, improved, (0, q, jnp.asarray(True)))
    return q, ~off


def _tied(joints: Joints, t, q, weight) -> Tied:
    """The equations at rest, where each degree of freedom has its ``weight`` (n,)."""
    metric = jnp.diag(jnp.asarray(weight, q.dtype) ** 2)
    return joints.at(t, q, jnp.zeros_like(q), metric)


def _step(joints: Joints, t, q, weight) -> Float[Array, " n"]:
    """The smallest step of Newton's method."""
    tied = _tied(joints, t, q, weight)
    return -matvec(tied.MJ, matvec(tied.S, tied.value))
