"""Checks that every degree of freedom has a mass."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer, eval_context

from jfric.errors import ProblemError
from jfric.system.assembly import known_mass_matrix
from jfric.system.body import dofs_of, inertia_of, moving, no_body_has
from jfric.system.description import AbstractProblem, element_label
from jfric.system.expression import Expression, is_expression
from jfric.system.tree import tree_of


def is_concrete(problem: AbstractProblem) -> bool:
    """Whether the numbers of ``problem`` are known: under tracing they are not."""
    leaves = jax.tree.leaves(problem, is_leaf=is_expression)
    return all(
        isinstance(x, Expression) or (eqx.is_array_like(x) and not isinstance(x, Tracer))
        for x in leaves
    )


def require_links(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` for an axis without direction, and for links whose inertia no
    body has, alone or with all links that are fixed to them."""
    links, odd = problem.section("link"), {}
    for name, link in links.items():
        if not any(float(x) for x in link.axis):
            where = f"{element_label('link', name)}.axis"
            raise ProblemError(f"{where}: all three numbers are zero, an axis needs a direction")
        found = no_body_has(inertia_of(link))
        if found is not None and name in moving(links):
            odd[name] = found
    tree = tree_of(problem) if odd else None
    for name, found in odd.items():
        assert tree is not None
        body, _ = tree.links[name]
        *moment, m = np.asarray(tree.moment[body])
        K = np.cross(np.divide(moment, m) if m else np.zeros(3), np.eye(3))
        if no_body_has(np.asarray(tree.inertia[body])[:3, :3] + m * K @ K) is not None:
            raise ProblemError(
                f"{element_label('link', name)}.J: found principal inertias {found}; none is "
                "negative for a body, and the largest is at most the sum of the other two"
            )


def require_mass_matrix(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` for a mass matrix that is infinite, unsymmetric or negative."""
    curved = any(x.kinetic is not None for x in problem.section("lagrangian").values())
    if problem.matrices.M is None and not curved:
        return  # masses of elements and links are not negative: neither is their sum
    where = "lagrangian.kinetic" if curved else "matrices.M"
    m = np.asarray(known_mass_matrix(problem))
    if not np.all(np.isfinite(m)):
        raise ProblemError(f"{where}: found a mass matrix that is not finite at the start")
    if not np.allclose(m, m.T, rtol=1e-12, atol=1e-14 * np.max(np.abs(m)) if curved else 0.0):
        raise ProblemError("matrices.M: must be symmetric")
    values, vectors = np.linalg.eigh(m)
    if values[0] < -1e-14 * max(values[-1], 1e-300):
        dof = problem.axes[int(np.argmax(np.abs(vectors[:, 0])))]
        raise ProblemError(
            f"{where}: gives the degree of freedom {dof!r} a negative mass; must not be negative"
        )


def _all_weighted(problem: AbstractProblem) -> bool:
    """Whether every degree of freedom has a mass of its own: cheap, and true as a rule."""
    if problem.matrices.M is not None or problem.section("lagrangian") or problem.section("link"):
        return False
    weighted = set()
    bodies = problem.section("body").values()
    masses = [e.m for e in problem.section("mass").values()]
    for m in masses + [x for body in bodies for x in (body.m, body.J)]:
        if isinstance(m, Tracer | Expression) or np.ndim(m) or not float(m) > 0.0:
            return False
    for element in problem.section("mass").values():
        if element.direction.is_single:
            weighted.update(element.direction.names)
    weighted.update(dofs_of(problem.section("body")))
    return weighted.issuperset(problem.dofs)


def require_inertia(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` where a degree of freedom has no mass: only load histories
    without inertia can be computed then. Under tracing nothing is checked."""
    if _all_weighted(problem) or not is_concrete(problem):
        return
    # A concrete problem may be used while something else is traced.
    with eval_context():
        resolved = problem.resolved()
        m = np.asarray(known_mass_matrix(resolved))
    for label, element in resolved.labelled("mass", "body").items():
        for field in ("m", "J"):
            if (value := float(getattr(element, field, 0.0))) < 0.0:
                raise ProblemError(f"{label}.{field}: found {value:g}, must not be negative")
    values, vectors = np.linalg.eigh(m)
    if values[0] <= 1e-14 * max(values[-1], 1e-300):
        dof = problem.axes[int(np.argmax(np.abs(vectors[:, 0])))]
        moved = [n for n, x in resolved.section("link").items() if dof in x.coordinates(n)]
        if moved:
            raise ProblemError(
                f"{element_label('link', moved[0])}.m: the joint {dof!r} moves no mass, neither "
                "that of this link nor of any behind it; give m, J or armature"
            )
        if any(x.kinetic is not None for x in problem.section("lagrangian").values()):
            raise ProblemError(
                f"lagrangian.kinetic: the mass matrix at the start is singular, the degree of "
                f"freedom {dof!r} has no mass; give it a part in the kinetic energy, or add a "
                "[mass] element for it"
            )
        raise ProblemError(
            f"mass: the degree of freedom {dof!r} has no mass; add a [mass] element for it, use "
            "the solver quasi-static, which needs none, look for equilibria (jfric equilibria, "
            "jfric trace), or leave out what springs and friction alone hold by "
            f'jfric.eliminate_massless, in files massless = ["{dof}"]'
        )


def has_inertia(problem: AbstractProblem) -> bool:
    """Whether every degree of freedom has a mass."""
    try:
        require_inertia(problem)
    except ProblemError:
        return False
    return True


#: Cosine of the angle between the two directions, in the metric of the inertias, that counts as
#: zero.
ACROSS = 1e-12


def require_opposing(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` for friction that does not slow down its own sliding.

    All numbers are known. Systems without inertia are left to the solvers that need it.
    """
    friction = problem.section("friction")
    redirected = {name: f for name, f in friction.items() if f.redirected}
    if not redirected:
        return
    # A concrete problem may be used while something else is traced.
    with eval_context():
        m = np.asarray(known_mass_matrix(problem))
        rows = {
            name: [np.asarray(d.vector(problem.axes)) for d in (f.direction, f.reaction)]
            for name, f in redirected.items()
        }
    values = np.linalg.eigvalsh(m)
    if values[0] <= 1e-14 * max(values[-1], 1e-300):
        return
    for name, (w, r) in rows.items():
        own, by_force = np.linalg.solve(m, w), np.linalg.solve(m, r)
        mobility = float(w @ by_force)
        if not mobility > ACROSS * np.sqrt((w @ own) * (r @ by_force)):
            raise ProblemError(
                f"{element_label('friction', name)}.reaction: found a sliding "
                f"acceleration of {mobility:g} for a unit reaction, must be positive: friction has "
                "to act against its own sliding"
            )
