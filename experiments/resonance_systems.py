"""The systems of ``resonance.py``: two masses, with a gap to a stop and with a friction damper."""

from __future__ import annotations

import jfric

FREQUENCY = "load.F.omega"


def with_a_stop() -> jfric.Problem:
    """Two masses in a row, the second one before an elastic stop."""
    return jfric.Problem(
        ["x", "y"],
        {
            "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 0.5)},
            "spring": {"a": jfric.Spring("x", 1.0), "b": jfric.Spring(("x", "y"), 0.6)},
            "damper": {"a": jfric.Damper("x", 0.08), "b": jfric.Damper(("x", "y"), 0.05)},
            "stop": jfric.Stop("y", k=1.0, gap=1.0),
            "load": jfric.Load("x", jfric.Harmonic(0.2, 0.5)),
        },
    )


def with_a_damper() -> jfric.Problem:
    """A mass on a spring with a friction damper: a light mass on a rough floor, behind a spring."""
    return jfric.Problem(
        ["x", "y"],
        {
            "mass": {"a": jfric.Mass("x", 1.0), "b": jfric.Mass("y", 0.1)},
            "spring": {"a": jfric.Spring("x", 1.0), "b": jfric.Spring(("x", "y"), 0.6)},
            "damper": {"a": jfric.Damper("x", 0.05), "b": jfric.Damper(("x", "y"), 0.05)},
            "friction": jfric.Friction("y", jfric.Coulomb(0.4), N=0.6),
            "load": jfric.Load("x", jfric.Harmonic(0.3, 1.0)),
        },
    )


SYSTEMS = {
    "gap to an elastic stop": (with_a_stop, 0.3, 1.2),
    "friction damper": (with_a_damper, 0.6, 1.6),
}


def begun(problem: jfric.Problem, omega, begins, state) -> jfric.Problem:
    """The problem, started on an orbit."""
    n = len(problem.dofs)
    values = {FREQUENCY: omega, "time.start": begins}
    for i, dof in enumerate(problem.dofs):
        values |= {f"initial.{dof}.q": state[i], f"initial.{dof}.v": state[n + i]}
    return jfric.set_parameters(problem, values)
