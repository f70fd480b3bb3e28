"""What a flow hands to a pass in scalars: see :class:`jfric.solvers.event_driven.flow_step.Step`.

Guards are polynomials in ``s = (time - t) / h``, constant term first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int

from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.scalar_equations import Motion, Operators, Reaction
from jfric.solvers.event_driven.scalar_given import ScalarGiven
from jfric.solvers.event_driven.scalar_isolation import Guard
from jfric.solvers.event_driven.scalar_rows import Row


class Start(NamedTuple):
    """Equations of the mode that a step begins in, and the state on its constraints."""

    mode: Int[Array, ""]
    g: ScalarGiven
    X: Reaction
    y: Motion
    #: The two guards over ``(q, v, w)``.
    guards: list[Row]
    #: Operators of the magnitudes.
    absolute: Operators
    q: list
    v: list


class End(NamedTuple):
    """Motion, basis functions and rates of the accelerations at the end of a step."""

    q: list
    v: list
    w: Row
    jerk: list


class ScalarStep(NamedTuple):
    """Motion and guards on a step of length ``h``."""

    h: Float[Array, ""]
    guards: list
    #: Leading coefficients of the guards, exact to rounding, and the sizes that count as zero.
    leading: list[list]
    zero: list[list]
    #: The guards for the certificate, from their signs.
    watched: Callable[[list], list[Guard]]
    #: Positions, velocities and basis functions at ``s``.
    at: Callable
    #: Largest positions and velocities.
    q_scale: list
    v_scale: list
    #: Accelerations that forces and reactions would cause if they did not cancel.
    unbalanced: list
    #: Whether the step's error is acceptable; otherwise ``h_next`` is tried again.
    accepted: Bool[Array, ""]
    h_next: Float[Array, ""]
    #: A number that is not finite if one of those above is not.
    looked: Float[Array, ""]
    #: The step for outputs and observables.
    whole: Callable[[], Step]
    #: None: events need not be landed on.
    end: End | None = None
