"""Checks of Jenkins elements, alone and coupled."""

from __future__ import annotations

import numpy as np

from jfric.errors import ProblemError, nearest
from jfric.system.description import AbstractProblem, element_label
from jfric.system.hysteresis import Jenkins, JenkinsCoupling

#: Springs may be beyond their sliders' limits by rounding, as part of the limit.
ROUNDING = 1e-9
#: Smallest eigenvalue of the matrix of stiffnesses, scaled to a diagonal of ones.
SINGULAR = 1e-12


def require_coupling(problem: AbstractProblem, where: str, coupling: JenkinsCoupling) -> None:
    """Raise :class:`ProblemError` for a coupling of what is not there."""
    known = problem.section("jenkins")
    if len(coupling.elements) != 2 or len(set(coupling.elements)) != 2:
        raise ProblemError(
            f"{where}.elements: found {list(coupling.elements)}, needed are two different "
            "elements of [jenkins]"
        )
    for name in coupling.elements:
        if name not in known:
            raise ProblemError(
                f"{where}.elements: no element jenkins.{name}{nearest(name, known)}; "
                f"declared are {', '.join(known) or 'none'}"
            )


def require_springs_within_limits(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` where springs of Jenkins elements start beyond what their sliders
    carry, or where coupled ones are not held; ``problem``: resolved, with numbers."""
    own: dict[str, Jenkins] = dict(problem.section("jenkins"))
    names = list(own)
    K = np.diag([float(x.k) for x in own.values()]) if own else np.zeros((0, 0))
    for coupling in problem.section("jenkins_coupling").values():
        i, j = (names.index(name) for name in coupling.elements)
        K[i, j] += float(coupling.k)
        K[j, i] += float(coupling.k)
    size = 1.0 / np.sqrt(np.diagonal(K))
    values = np.linalg.eigvalsh(K * size[:, None] * size[None, :]) if own else np.ones(1)
    if values[0] < SINGULAR:
        raise ProblemError(
            "jenkins_coupling: the matrix of the stiffnesses of jenkins and jenkins_coupling must "
            f"be positive definite, found the eigenvalue {values[0]:.3g} (scaled to a diagonal of "
            "ones); make the couplings smaller"
        )
    z0 = np.array([float(x.z0) for x in own.values()])
    joined = {name for x in problem.section("jenkins_coupling").values() for name in x.elements}
    for (name, element), force in zip(own.items(), K @ z0, strict=True):
        limit = float(element.R)
        if abs(force) <= limit * (1.0 + ROUNDING):
            continue
        where = element_label("jenkins", name)
        if name not in joined:
            raise ProblemError(
                f"{where}.z0: found {float(element.z0):g}, the slider slips at "
                f"{limit / float(element.k):g} (R/k); start there or nearer to zero"
            )
        raise ProblemError(
            f"{where}.z0: found {float(element.z0):g}, where the springs pull with {abs(force):g} "
            f"and the slider slips at {limit:g} (R); start nearer to zero"
        )
