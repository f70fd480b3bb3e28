"""Checks, before a run, that a time-stepping scheme can represent a problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax.core import Tracer

from jfric.contact.contact_methods import require_method
from jfric.errors import ProblemError
from jfric.numerics.loops import require_adjoint
from jfric.solvers.fixed_step import require_positive_step
from jfric.system.laws import Coulomb
from jfric.system.problem import Problem


def require_time_stepping(problem: Problem, solver: Any) -> None:
    """Raise :class:`jfric.ProblemError` for invalid fields of a scheme, and for problems that the
    scheme cannot represent; numbers under tracing are not checked."""
    require_positive_step(solver.dt)
    weight = getattr(solver, "sliding_weight", 1.0)
    _number("sliding_weight", weight, lambda x: 0.0 < x <= 1.0, "must lie above 0 and up to 1")
    scheme = solver.scheme
    _number("theta", scheme.theta, lambda x: 0.0 <= x <= 1.0, "must lie between 0 and 1")
    for name in ("max_steps", "max_events"):
        least = 1 if name == "max_steps" else 0
        if getattr(solver, name) < least:
            raise ProblemError(f"{name}: found {getattr(solver, name)}, must be at least {least}")
    require_adjoint(solver.adjoint)
    elements = problem.labelled("friction", "contact")
    require_method(solver.method, len(elements))
    for name, element in elements.items():
        if getattr(element, "polygon", None) is not None:
            raise ProblemError(
                f"{name}.polygon: a step does not end where an edge does, which time "
                "stepping cannot represent; use the solver event-driven"
            )
        if getattr(element, "spin", None) is not None:
            raise ProblemError(
                f"{name}.spin: found a disc that slips and spins, whose limits are no "
                "cone, which time stepping cannot represent; use the solver event-driven"
            )
    planes = [element for element in elements.values() if getattr(element, "plane", None)]
    require_method(solver.method, len(elements), in_planes=bool(planes))
    if scheme.rests:
        return
    for name, element in elements.items():
        law = element.law
        if law is not None and not isinstance(law, Coulomb):
            raise ProblemError(
                f"{name}: the law {type(law).__name__} needs a contact at rest, which the plain "
                "midpoint rule does not have, nor Moreau-Jean with a sliding_weight below 1; use "
                "StabilisedMidpoint or MoreauJean"
            )


def _number(name: str, value: Any, valid, message: str) -> None:
    if isinstance(value, Tracer):
        return
    array = np.asarray(value)
    if array.ndim == 0 and not valid(float(array)):
        raise ProblemError(f"{name}: found {float(array):g}, {message}")
