"""Checks that velocities that the user defines move something, and are independent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError, nearest
from jfric.system.description import AbstractProblem, element_label
from jfric.system.elements import Lagrangian
from jfric.system.formula import read_formula
from jfric.system.start import started
from jfric.system.state_function import ChosenVelocities, chosen_velocities
from jfric.system.state_function_checks import require_state_function

#: Part of the largest singular value, of columns of length one, that counts as zero.
DEPENDENT = 1e-9
#: Units of an entry, by the kinds of the degree of freedom and of the velocity.
_UNITS = {
    ("translation", "translation"): "",
    ("translation", "rotation"): "m/rad",
    ("rotation", "translation"): "rad/m",
    ("rotation", "rotation"): "",
}


def require_velocities(problem: AbstractProblem, known: Mapping[str, Any] | None = None) -> None:
    """Raise :class:`ProblemError` for velocities that move nothing that exists, or are more than
    the degrees of freedom. ``known``: dimensions of shared parameters that have one."""
    for name, element in problem.section("velocity").items():
        where = element_label("velocity", name)
        if name in problem.dofs:
            raise ProblemError(f"{where}: {name!r} is a degree of freedom as well; rename it")
        if not isinstance(element.moves, tuple) or not element.moves:
            raise ProblemError(
                f"{where}.moves: found {element.moves!r}, expected rates of degrees of freedom by "
                "name, such as {'x': 'cos(theta)', 'y': 'sin(theta)'}"
            )
        for dof, what in element.moves:
            if dof not in problem.dofs:
                raise ProblemError(
                    f"{where}.moves.{dof}: no degree of freedom {dof!r}"
                    f"{nearest(dof, problem.dofs)}; declared are {', '.join(problem.dofs)}"
                )
            units = (_UNITS[problem.dofs[dof], element.kind],)
            at = f"{where}.moves.{dof}"
            require_state_function(problem, at, what, units, "cos(theta)", known=known)
    for own in chosen_velocities(problem):
        if len(own.names) > len(own.dofs):
            raise ProblemError(
                f"velocity: found {', '.join(own.names)}, {len(own.names)} velocities that move "
                f"{', '.join(own.dofs)}; there cannot be more than degrees of freedom"
            )


def require_kinetic(problem: AbstractProblem, where: str, element: Lagrangian) -> None:
    """Raise :class:`ProblemError` for a kinetic energy in velocities that are fewer than the
    degrees of freedom they move: it lacks the held motion, on which the equations depend."""
    if not isinstance(element.kinetic, str):
        return
    named = set(read_formula(element.kinetic).names.values())
    for own in chosen_velocities(problem):
        found = [name for name in own.names if f"v.{name}" in named]
        if own.holds and found:
            raise ProblemError(
                f"{where}.kinetic: found 'v.{found[0]}', which with {len(own.names)} of "
                f"{len(own.dofs)} velocities does not tell how energy depends on the motion that "
                f"is held; write it in {', '.join(f'v.{dof}' for dof in own.dofs)}"
            )


def require_independent(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` for velocities that are not independent at the start, or move
    nothing there. All numbers are known."""
    if not problem.section("velocity"):
        return
    problem = started(problem)
    t, q, _ = problem.start()
    for own in chosen_velocities(problem):
        _independent(own, np.asarray(own.matrix(t, jnp.asarray(q))))


def _independent(own: ChosenVelocities, S: np.ndarray) -> None:
    for name, column in zip(own.names, S.T, strict=True):
        where = element_label("velocity", name)
        if not np.all(np.isfinite(column)):
            raise ProblemError(
                f"{where}.moves: is not finite at the start, found {column.tolist()}"
            )
        if not np.any(column):
            raise ProblemError(f"{where}.moves: moves nothing at the start")
    unit = S / np.linalg.norm(S, axis=0)
    if np.linalg.matrix_rank(unit, tol=DEPENDENT) < len(own.names):
        raise ProblemError(
            f"velocity: {', '.join(own.names)} are not independent at the start, where one of them "
            "moves what the others do; leave one out"
        )
