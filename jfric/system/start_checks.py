"""Starts: whether joints can be met and leave something to move, and small penetrations, as from
rounded drawings, which are removed."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Bool, Float

from jfric.errors import ProblemError, warn
from jfric.numerics.compilation import brief_options
from jfric.numerics.kept_programs import Kept
from jfric.numerics.linear_algebra import matvec
from jfric.numerics.tolerances import REDUNDANT, tolerance_of
from jfric.system.assembly import displacement_functions
from jfric.system.contacts import unilateral_contacts
from jfric.system.description import AbstractProblem, element_label
from jfric.system.expression import Expression
from jfric.system.fields import scalar
from jfric.system.inertia import is_concrete
from jfric.system.joint_equations import joint_equations
from jfric.system.joints import TOLERANCE, JointEquation, Joints, Tied, joints_of
from jfric.system.linkage import has_joints
from jfric.system.mechanics import Mechanics
from jfric.system.position_functions import OfGroup
from jfric.system.start import started

#: Penetrations below this part of the lengths involved are rounding errors of closed contacts.
CLOSED = 1e-12
#: Penetrations below this part are projected onto contact; deeper ones are a mistake.
PROJECTED = 1e-6


def initial_gaps(problem: AbstractProblem) -> tuple[dict[str, float], np.ndarray]:
    """Gaps of the unilateral contacts by name, and the lengths of their terms."""
    contacts = problem.section("contact")
    if not contacts:
        return {}, np.zeros((0,))
    q = _positions(problem)
    bases = problem.section("base").values()
    with eval_context():
        z = [float(base.displacement(problem.time.start)) for base in bases]
    normal, gap0 = gap_rows(problem, q)
    at = np.concatenate([q, z])
    # Lengths of the whole system: a body at zero may stand on another one far away.
    size = np.max(np.abs(q), initial=0.0) + np.max(np.abs(gap0)) + np.abs(normal) @ np.abs(at)
    return dict(zip(contacts, (gap0 + normal @ at).tolist(), strict=True)), size


def _positions(problem: AbstractProblem) -> np.ndarray:
    """Known positions at the start (n,), without a compiled operation."""
    return np.asarray([np.asarray(x) for x in problem.start_numbers()[0]], float)


def starts_inside(mechanics: Mechanics, t, q) -> Bool[Array, ""]:
    """Whether a contact has a negative gap at the start, beyond that of rounded drawings, for
    numbers that are known only while a program runs."""
    if not mechanics.n_unilateral:
        return jnp.asarray(False)
    t, q = jax.lax.stop_gradient((t, q))
    mechanics = jax.lax.stop_gradient(mechanics.at(t, q, jnp.zeros_like(q)))
    z, _ = mechanics.base_motion(t)
    size = jnp.abs(mechanics.gap0) + matvec(jnp.abs(mechanics.W_N), jnp.abs(q))
    size = size + matvec(jnp.abs(mechanics.W_N_base), jnp.abs(z))
    size = size + jnp.max(jnp.abs(q)) + jnp.max(jnp.abs(mechanics.gap0))
    return jnp.any(mechanics.gaps(t, q) < -PROJECTED * size)


def penetrates(name: str, gap: float) -> ProblemError:
    """Error for the contact ``name`` that starts with a negative ``gap``."""
    return ProblemError(
        f"initial: the contact {name!r} starts with a gap of {gap:g}, "
        "must not be negative; move the initial position or the gap"
    )


def gap_rows(problem: AbstractProblem, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions (nu, n + nb) and constants (nu,) of all gaps; curved gaps as straight lines at the
    positions ``q`` of all coordinates (n,)."""
    both, contacts = problem.axes + problem.bases, problem.section("contact")
    curved = tuple(name for name, contact in contacts.items() if contact.curved)
    with eval_context():
        t, q = (np.asarray(x, jnp.result_type(float)) for x in (problem.time.start, q))
        lines = dict(zip(curved, _lines(problem, curved, t, q), strict=True)) if curved else {}
        normals, gaps = [], []
        for name, contact in contacts.items():
            if name in lines:
                value, slope = lines[name]
                w = np.pad(np.asarray(slope), (0, len(problem.bases)))
                gap = float(value) - w[: len(q)] @ q
            else:
                w, gap = contact.normal.known_vector(both), float(contact.gap)
            normals.append(w)
            gaps.append(gap)
    return np.stack(normals), np.asarray(gaps)


@functools.partial(Kept, options=brief_options)
def _lines(problem: AbstractProblem, curved: tuple[str, ...], t, q) -> list[tuple[Array, Array]]:
    """Values and slopes (n,) of the gaps of ``curved`` contacts."""
    functions = dict(displacement_functions(problem).values())
    row, found = len(problem.friction_rows()) + len(unilateral_contacts(problem)), []
    for name, contact in problem.section("contact").items():
        if name in curved:
            found.append(jax.value_and_grad(functions[row], argnums=1)(t, q))
        row += len(contact.rows())
    return found


def without_penetration(problem: AbstractProblem) -> dict[str, Any]:
    """Initial positions by degree of freedom that differ from the given ones: the nearest without
    penetration, where contacts penetrate by no more than :data:`PROJECTED`; else empty.

    A warning reports the change. Positions that are expressions stay: :class:`jfric.ProblemError`
    is raised where no others can be moved, and where contacts penetrate by more.
    """
    if not problem.section("contact"):
        return {}
    known = problem.resolved()
    gaps, size = initial_gaps(known)
    gap = np.asarray(list(gaps.values()))
    closed = tolerance_of(jnp.result_type(float), CLOSED)
    small, deep = (gap < -max(x, closed) * size for x in (CLOSED, PROJECTED))
    if deep.any():
        i = int(np.argmax(deep))
        raise penetrates(element_label("contact", list(gaps)[i]), float(gap[i]))
    if not small.any():
        return {}
    q = _positions(known)
    normal = gap_rows(known, q)[0][:, : len(known.dofs)]
    movable = [not isinstance(problem.initial[dof].q, Expression) for dof in problem.dofs]
    shift = _shift(normal * np.asarray(movable), gap)
    names = [element_label("contact", k) for k, s in zip(gaps, small, strict=True) if s]
    if np.any(gap + normal @ shift < -closed * size):
        raise penetrates(names[0], float(gap[small][0]))
    warn(
        f"initial: {', '.join(names)} started with a gap of {gap.min():g} and less than a "
        "millionth of the lengths there; the initial position was moved to zero gap"
    )
    moved = np.flatnonzero(shift)
    dofs = list(problem.dofs)
    return {dofs[i]: scalar(float(known.initial[dofs[i]].q) + shift[i]) for i in moved}


def _shift(normal: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """The shortest shift after which no gap is negative, by Hildreth's sweeps."""
    force = np.zeros(gap.shape)
    weight = np.sum(normal**2, axis=1)
    for _ in range(1000):
        before = force.copy()
        for i in np.flatnonzero(weight > 0.0):
            rest = gap[i] + normal[i] @ (normal.T @ force)
            force[i] = max(0.0, force[i] - rest / weight[i])
        if np.max(np.abs(force - before)) <= 1e-15 * np.max(np.abs(force)):
            break
    return normal.T @ force


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
        joints = joints_of(tuple(e.function for e in equations), len(problem.axes))
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
        f"{form}{d} = {float(x):.9g}" for d, x in zip(problem.dofs, values, strict=False)
    )
