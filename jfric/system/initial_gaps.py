"""Gaps at the start: small penetrations, as from rounded drawings, are removed."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Bool

from jfric.errors import ProblemError, warn
from jfric.numerics.compilation import brief_options
from jfric.numerics.kept_programs import Kept
from jfric.numerics.linear_algebra import matvec
from jfric.system.assembly import displacement_functions
from jfric.system.description import AbstractProblem, element_label
from jfric.system.expression import Expression
from jfric.system.fields import scalar
from jfric.system.joint_contacts import unilateral_contacts
from jfric.system.mechanics import Mechanics

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
    small, deep = gap < -CLOSED * size, gap < -PROJECTED * np.maximum(size, 1e-300)
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
    if np.any(gap + normal @ shift < -CLOSED * size):
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
