"""Friction whose reaction has another direction than sliding: requirements and refusals."""

from __future__ import annotations

import numpy as np
from jax.core import eval_context

from jfric.errors import ProblemError
from jfric.system.assembly import known_mass_matrix
from jfric.system.description import AbstractProblem, element_label

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
