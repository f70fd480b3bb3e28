"""Checks of elements with a state, and remarks on numbers that are allowed but unusual."""

from __future__ import annotations

import jax
import numpy as np

from jfric.errors import ProblemError
from jfric.system.bounds import largest_state
from jfric.system.bristle import BRISTLES, AbstractBristle, BoucWen, LuGre
from jfric.system.description import AbstractProblem

#: Coefficient of friction that no usual pair of surfaces exceeds.
LARGEST_USUAL = 4.0


def require_bristle(where: str, section: str, element: AbstractBristle) -> None:
    """Raise :class:`ProblemError` for numbers that an element with a state cannot have."""
    if isinstance(element, LuGre) and float(element.F_s) < float(element.F_c):
        raise ProblemError(
            f"{where}.F_s: found {float(element.F_s):g}, must not be below F_c "
            f"({float(element.F_c):g})"
        )
    if isinstance(element, LuGre) and element.breakaway is not None:
        part = float(element.breakaway)
        if not 0.0 < part < 1.0:
            raise ProblemError(f"{where}.breakaway: found {part:g}, must lie between 0 and 1")
    limit = largest_state(jax.tree.map(np.asarray, element))
    if limit is not None and abs(float(element.start())) > float(limit):
        raise ProblemError(
            f"{where}.z0: found {float(element.start()):g}, the state never exceeds {limit:g}; "
            "start nearer to zero"
        )


def passivity_remarks(problem: AbstractProblem) -> list[str]:
    """One sentence for each element of a resolved problem that may give energy to a motion."""
    found = []
    for label, element in problem.labelled(*BRISTLES).items():
        if isinstance(element, LuGre):
            needed = float(element.sigma1 * (element.F_s - element.F_c) / element.F_c)
            if float(element.sigma2) <= needed and needed > 0:
                found.append(
                    f"{label}: is not passive, sigma2 ({float(element.sigma2):g}) does not exceed "
                    f"sigma1 (F_s - F_c)/F_c ({needed:g})"
                )
        if isinstance(element, BoucWen) and not -element.beta <= element.gamma <= element.beta:
            found.append(
                f"{label}: is not passive, gamma ({float(element.gamma):g}) lies outside -beta to "
                f"beta ({float(element.beta):g})"
            )
    return found


def coefficient_remarks(problem: AbstractProblem) -> list[str]:
    """One sentence for each friction of a resolved problem whose coefficients may be forces: they
    are larger than :data:`LARGEST_USUAL`, with a normal force that is not 1 N."""
    found = []
    for label, element in problem.labelled("friction").items():
        if element.N is None:
            continue
        N = float(element.normal_force(0.0))
        mu = max(map(float, jax.tree.leaves(element.law.static())))
        if mu > LARGEST_USUAL and N != 1.0:
            found.append(
                f"{label}: a coefficient of {mu:g} with N = {N:g} N is a friction force of "
                f"{mu * N:g} N; if the coefficients are forces in newtons, write N = '1 N'"
            )
    return found
