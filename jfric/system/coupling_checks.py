"""Checks of Jenkins elements, alone and coupled."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Float

from jfric.errors import ProblemError, nearest
from jfric.system.description import AbstractProblem, element_label
from jfric.system.hysteresis import Jenkins, JenkinsCoupling

#: Part of a slider's limit by which its spring may be beyond it, for rounding.
ROUNDING = 1e-9
#: Smallest eigenvalue of the matrix of stiffnesses, scaled to a diagonal of ones.
SINGULAR = 1e-12


def require_coupling(problem: AbstractProblem, where: str, coupling: JenkinsCoupling) -> None:
    """Raise :class:`ProblemError` unless a coupling names two different elements that exist."""
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


def springs_of_sliders(problem: AbstractProblem) -> tuple[Array, Array, Array]:
    """Stiffnesses (j, j) of the springs of Jenkins elements and their couplings, elongations of the
    springs at the start (j,) and limits of the sliders (j,)."""
    own: dict[str, Jenkins] = dict(problem.section("jenkins"))
    names = list(own)
    k, z0, limits = (jnp.stack([getattr(x, f) for x in own.values()]) for f in ("k", "z0", "R"))
    K = jnp.diag(k)
    for coupling in problem.section("jenkins_coupling").values():
        i, j = (names.index(name) for name in coupling.elements)
        K = K.at[i, j].add(coupling.k).at[j, i].add(coupling.k)
    return K, z0, limits


def smallest_eigenvalue(K) -> Float[Array, ""]:
    """Smallest eigenvalue of the stiffnesses ``K`` (j, j), scaled to a diagonal of ones."""
    size = 1.0 / jnp.sqrt(jnp.diagonal(K))
    return jnp.linalg.eigvalsh(K * size[:, None] * size[None, :])[0]


def require_springs_within_limits(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` where springs of Jenkins elements start beyond the limits of
    their sliders, or where coupled ones are not held; ``problem``: resolved, with numbers."""
    own: dict[str, Jenkins] = dict(problem.section("jenkins"))
    if not own:
        return
    with eval_context():
        K, z0, _ = (np.asarray(x) for x in springs_of_sliders(problem))
        smallest = float(smallest_eigenvalue(K))
    if smallest < SINGULAR:
        raise ProblemError(
            "jenkins_coupling: the matrix of the stiffnesses of jenkins and jenkins_coupling must "
            f"be positive definite, found the eigenvalue {smallest:.3g} (scaled to a diagonal of "
            "ones); make the couplings smaller"
        )
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
