"""The equations of all joints of a problem: those given as functions, and those between bodies."""

from __future__ import annotations

from typing import Any

from jfric.system.description import AbstractProblem
from jfric.system.formula import read_formula
from jfric.system.joints import JointEquation
from jfric.system.linkage import LINKAGE
from jfric.system.linkage_equations import linkage_equations
from jfric.system.state_function import bound_to


def joint_equations(problem: AbstractProblem) -> list[JointEquation]:
    """The equations of all joints, in order."""
    found = []
    for label, joint in problem.labelled("joint").items():
        several = len(joint.constraint) > 1
        for i, what in enumerate(joint.constraint, 1):
            name = f"{label}.{i}" if several else label
            unit = "N m" if _only_rotations(problem, what) else "N"
            rubs = joint.law is not None
            found.append(JointEquation(label, name, bound_to(problem, what), unit, rubs))
    if any(map(problem.section, LINKAGE)):
        found += linkage_equations(problem.resolved())
    return found


def reaction_units(problem: AbstractProblem) -> dict[str, str]:
    """Units of the reactions of joints, by what results call them, in order."""
    return {e.name: e.unit for e in joint_equations(problem)}


def _only_rotations(problem: AbstractProblem, what: Any) -> bool:
    """Whether a function of positions names angles alone: it measures one, then."""
    named = read_formula(what).names.values() if isinstance(what, str) else problem.dofs
    return all(problem.dofs.get(name, "rotation") == "rotation" for name in named)
