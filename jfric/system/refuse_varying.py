"""Refusals of what depends on position, of friction in a plane, and of what has a memory."""

from __future__ import annotations

from jfric.errors import ProblemError
from jfric.system.assembly import displacement_functions, energies_of
from jfric.system.dependence import linear_displacement
from jfric.system.description import AbstractProblem, element_label
from jfric.system.hysteresis_checks import refuse_memory
from jfric.system.joint_equations import joint_equations
from jfric.system.planes import refuse_planes


def varying_parts(problem: AbstractProblem) -> list[str]:
    """Paths of the fields that make mass matrix or directions depend on position, by structure."""
    found = [
        f"{element_label('lagrangian', name)}.kinetic"
        for name, element in problem.section("lagrangian").items()
        if not energies_of(problem, element).has_constant_mass()
    ]
    functions, n = displacement_functions(problem).items(), len(problem.dofs)
    return found + [label for label, (_, g) in functions if not linear_displacement(g, n)]


def refuse_varying(problem: AbstractProblem, who: str, *, states: bool = False) -> None:
    """Raise :class:`ProblemError` where mass matrix or directions depend on position, or friction
    acts in a plane, which ``who`` cannot represent; joints and elements with a memory as well, of
    which it takes those with ``states`` of their own if that is set."""
    refuse_planes(problem, who)
    refuse_memory(problem, who, states=states)
    for equation in joint_equations(problem):
        what = "a joint"
        if equation.held is not None:
            what = "velocities that are fewer than the degrees of freedom that they move"
        raise ProblemError(
            f"{equation.label}: {what}, which {who} cannot represent; use the solver event-driven"
        )
    for label in varying_parts(problem):
        raise ProblemError(
            f"{label}: depends on position, which {who} cannot represent; use the solver "
            "event-driven"
        )


def refuse_factors_where_varying(problem: AbstractProblem, who: str) -> None:
    """Raise :class:`ProblemError` for friction with a factor of position in a system whose mass
    matrix or directions depend on position, which ``who`` cannot represent together."""
    parts = varying_parts(problem)
    for label, element in problem.labelled("friction").items():
        if element.position is not None and parts:
            raise ProblemError(
                f"{label}.position: cannot be combined with {parts[0]}, which depends on position, "
                f"in {who}; use the solver smoothed"
            )


def refuse_nonlinear(problem: AbstractProblem, who: str) -> None:
    """Raise :class:`ProblemError` for energies and contacts that are not those of masses, linear
    springs and dampers, and straight contacts."""
    refuse_varying(problem, who)
    for name, element in problem.section("lagrangian").items():
        if not energies_of(problem, element).has_linear_force():
            raise ProblemError(
                f"{element_label('lagrangian', name)}: found forces that are not linear in the "
                f"position, which {who} cannot represent; use springs with straight lines, or the "
                "solver event-driven"
            )
