"""The equations of all joints of a problem: those given as functions, and those between bodies."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from jfric.system.description import AbstractProblem, element_label
from jfric.system.formula import read_formula
from jfric.system.joints import JointEquation
from jfric.system.link import quaternions
from jfric.system.linkage import LINKAGE
from jfric.system.linkage_equations import linkage_equations
from jfric.system.state_function import Held, Rate, bound_to, chosen_velocities, is_rate


def joint_equations(problem: AbstractProblem) -> list[JointEquation]:
    """The equations of all joints, in order, those on velocities last."""
    found = []
    for label, joint in problem.labelled("joint").items():
        several = len(joint.constraint) > 1
        for i, what in enumerate(joint.constraint, 1):
            name = f"{label}.{i}" if several else label
            unit = "N m" if _only_rotations(problem, what) else "N"
            rubs, bound = joint.law is not None, bound_to(problem, what)
            function = Rate(bound) if is_rate(what) else bound
            found.append(JointEquation(label, name, function, unit, rubs))
    for label, rows in quaternions(problem):
        found.append(JointEquation(label, label, UnitQuaternion(rows), "N m"))
    if any(map(problem.section, LINKAGE)):
        found += linkage_equations(problem.resolved())
    for own in chosen_velocities(problem) if problem.section("velocity") else ():
        label = element_label("velocity", own.names[0])
        for i, dof in enumerate(own.dofs if own.holds else ()):
            unit = "N m" if problem.dofs[dof] == "rotation" else "N"
            found.append(JointEquation(label, f"velocity.{dof}", Rate(Held(own, i)), unit))
    return sorted(found, key=lambda e: e.on_velocities)


class UnitQuaternion(eqx.Module):
    """Equation ``(|x|^2 - 1)/2 = 0`` of the quaternion of a joint."""

    rows: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, t, q):
        x = q[np.asarray(self.rows)]
        return 0.5 * (x @ x - 1.0)


def reaction_units(problem: AbstractProblem) -> dict[str, str]:
    """Units of the reactions of joints, by their names in results, in order."""
    return {e.name: e.unit for e in joint_equations(problem)}


def _only_rotations(problem: AbstractProblem, what: Any) -> bool:
    """Whether a function of positions names only angles, and therefore measures an angle."""
    if not isinstance(what, str):
        return "translation" not in problem.dofs.values()
    chosen = problem.section("velocity")
    kinds = problem.dofs | {f"v.{k}": x for k, x in problem.dofs.items()}
    kinds |= {f"v.{name}": element.kind for name, element in chosen.items()}
    named = read_formula(what).names.values()
    return all(kinds.get(name, "rotation") == "rotation" for name in named)
