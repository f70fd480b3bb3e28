"""Checks that joints can be met at the start, and leave something to move."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context

from jfric.errors import ProblemError
from jfric.numerics.tolerances import REDUNDANT, tolerance_of
from jfric.system.assembled_start import SeenStart
from jfric.system.description import AbstractProblem, element_label
from jfric.system.inertia import is_concrete
from jfric.system.initial_gaps import gap_rows, initial_gaps
from jfric.system.joint_equations import joint_equations
from jfric.system.joints import TOLERANCE, JointEquation, Joints, Tied, joints_of
from jfric.system.position_functions import OfGroup
from jfric.system.start import started

#: Newton steps towards a position that meets the equations, only for the message.
STEPS = 50


def require_consistent_joints(problem: AbstractProblem, seen: SeenStart) -> None:
    """Raise :class:`ProblemError` where the start does not meet the equations of joints, where
    these contradict each other, or where nothing can move.

    All numbers are known; ``seen``: the start in the equations.
    """
    tied, tolerance = seen.tied, tolerance_of(seen.q.dtype, TOLERANCE)
    rows = np.column_stack([tied.value, tied.bias, tied.J])
    off = np.abs(tied.value) > tolerance * seen.length
    runs = np.abs(seen.rates) > tolerance * seen.speed
    holds = np.all(np.isfinite(rows)) and np.all(np.any(tied.J, axis=1))
    if holds and not np.any(off | runs | seen.contradicted):
        rank = np.linalg.matrix_rank(_unit_rows(tied.J), tol=tolerance_of(seen.q.dtype, REDUNDANT))
        if rank < len(problem.dofs):
            return
    # Names and functions are needed only for messages.
    with eval_context():
        equations = joint_equations(problem)
        joints = joints_of(tuple(e.function for e in equations), len(problem.dofs))
    names = [e.name for e in equations]
    _regular(rows, equations)
    if off.any():
        i = int(np.argmax(off))
        raise ProblemError(
            f"initial: {names[i]} starts at {float(tied.value[i]):.6g}, must be zero to "
            f"{tolerance * float(seen.length[i]):.1g}; {_position(problem, joints, seen)}"
        )
    if runs.any():
        i = int(np.argmax(runs))
        raise ProblemError(
            f"initial: {names[i]} starts with the rate {seen.rates[i]:.6g}, must be zero to "
            f"{tolerance * float(seen.speed[i]):.1g}; {_velocity(problem, tied, seen.v)}"
        )
    if seen.contradicted.any():
        raise ProblemError(
            f"{names[int(np.argmax(seen.contradicted))]}: contradicts other joints, no "
            "acceleration at the start meets all of them; leave one out"
        )
    rank = np.linalg.matrix_rank(_unit_rows(tied.J), tol=tolerance_of(seen.q.dtype, REDUNDANT))
    if rank == len(problem.dofs) and not joints.timed:
        raise ProblemError(
            f"{equations[-1].label}: leaves no degree of freedom, the joints hold all of "
            f"{', '.join(problem.dofs)}; leave one out, or prescribe a motion that depends on t"
        )


def require_free_gaps(problem: AbstractProblem, who: str) -> None:
    """Raise :class:`ProblemError` for a closed contact whose gap the joints hold at the start: its
    forces, which ``who`` needs, are not determined."""
    if not problem.section("contact") or not is_concrete(problem):
        return
    with eval_context():
        problem = started(problem)
        equations = joint_equations(problem)
        if not equations:
            return
        t, q, v = problem.start()
        functions = tuple(e.function for e in equations)
        J = np.asarray(joints_at(joints_of(functions, len(q)), t, q, v).J)
    J, q = _unit_rows(J), np.asarray(q)
    gaps, size = initial_gaps(problem)
    normals = gap_rows(problem, q)[0][:, : len(q)]
    redundant = tolerance_of(J.dtype, REDUNDANT)
    basis = np.linalg.svd(J)[2][: np.linalg.matrix_rank(J, tol=redundant)]
    for (name, gap), w, length in zip(gaps.items(), normals, np.atleast_1d(size), strict=True):
        free = w - basis.T @ (basis @ w)
        held = np.linalg.norm(free) <= redundant * np.linalg.norm(w)
        if held and gap <= tolerance_of(q.dtype, TOLERANCE) * length:
            raise ProblemError(
                f"{element_label('contact', name)}: the joints keep its gap at {abs(gap):.3g}, so "
                f"that nothing tells what presses on it, which {who} needs; leave it out, or give "
                "its friction to the joint"
            )


@eqx.filter_jit
def joints_at(joints: Joints, t, q, v) -> Tied:
    """All equations at one instant, in the metric of unit masses."""
    return joints.at(t, q, v, jnp.eye(q.shape[0], dtype=q.dtype))


def _unit_rows(J) -> np.ndarray:
    """Rows scaled to length one; rows of zeros stay."""
    size = np.linalg.norm(J, axis=1, keepdims=True)
    return np.asarray(J) / np.where(size > 0, size, 1.0)


def _regular(rows: np.ndarray, equations: list[JointEquation]) -> None:
    """Raise :class:`ProblemError` for values and directions that are not finite, or zero."""
    for equation, row in zip(equations, rows, strict=True):
        name = equation.name
        if not np.all(np.isfinite(row)):
            raise ProblemError(f"{name}: is not finite, or has no slope, at the start")
        of_set = equation.held is not None or isinstance(equation.function, OfGroup)
        if not np.any(row[2:]) and not of_set:
            raise ProblemError(f"{name}: has the slope zero at the start, and holds nothing there")


def _position(problem: AbstractProblem, joints: Joints, seen: SeenStart) -> str:
    """Text with the position near the start that meets the equations."""
    with eval_context():
        t, q, rest = problem.start()[0], jnp.asarray(seen.q), jnp.zeros_like(seen.q)
        tied = joints_at(joints, t, q, rest)
        for _ in range(STEPS):
            q = q - tied.MJ @ (tied.S @ tied.value)
            tied = joints_at(joints, t, q, rest)
        left = np.abs(tied.value)
    if not np.all(left <= tolerance_of(left.dtype, TOLERANCE) * np.asarray(tied.position_size(q))):
        return "no position nearby meets all joints: they contradict each other, or it is far off"
    return f"the nearest position that meets all joints is {_listed(problem, '', q)}"


def _velocity(problem: AbstractProblem, tied: Tied, v) -> str:
    v = v - tied.MJ @ (tied.S @ (tied.J @ v + tied.rate))
    left = np.abs(tied.J @ v + tied.rate)
    if not np.all(left <= tolerance_of(left.dtype, TOLERANCE) * np.asarray(tied.velocity_size(v))):
        return "no velocity meets all joints: they contradict each other"
    return f"the nearest velocity that meets all joints is {_listed(problem, 'v.', v)}"


def _listed(problem: AbstractProblem, form: str, values) -> str:
    return ", ".join(
        f"{form}{d} = {float(x):.9g}" for d, x in zip(problem.dofs, values, strict=True)
    )
