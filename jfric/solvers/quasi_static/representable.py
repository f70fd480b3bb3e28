"""Refusal of elements and laws that the quasi-static solver cannot represent, by name."""

from __future__ import annotations

from jfric.errors import ProblemError
from jfric.system.elements import AbstractForce
from jfric.system.problem import Problem


def require_quasi_static(problem: Problem) -> None:
    """Raise :class:`ProblemError` for elements whose forces are not piecewise linear in the
    position, and for laws whose friction drops at the onset of sliding: the resulting jump has no
    quasi-static path."""
    for where, element in problem.labelled().items():
        if isinstance(element, AbstractForce):
            raise ProblemError(
                f"{where}: the solver quasi-static takes springs with straight lines only, a "
                f"{type(element).__name__} is not; use a diagram_spring, or the solver "
                "event-driven"
            )
        law = getattr(element, "law", None)
        if law is not None and law.drops_at_onset:
            raise ProblemError(
                f"{where}: with {type(law).__name__} friction drops when sliding begins and "
                "the system jumps; the solver quasi-static takes laws without such a drop, "
                "such as mu, and the solver event-driven takes all"
            )
