"""States of solvers between steps, diagnostics of a step, and reactions at a state."""

# No annotations as text here: equinox must see which of them are abstract.
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int


class AbstractState(eqx.Module):
    """State that a solver carries from step to step; a run restarts from it."""

    #: Name, for messages, of the kind of solver that makes the state.
    origin: ClassVar[str] = "your own"

    t: eqx.AbstractVar[Float[Array, ""]]
    q: eqx.AbstractVar[Float[Array, " n"]]
    v: eqx.AbstractVar[Float[Array, " n"]]
    #: :class:`jfric.Status` code and :class:`jfric.Flag` bits.
    status: eqx.AbstractVar[Int[Array, ""]]
    flags: eqx.AbstractVar[Int[Array, ""]]
    steps: eqx.AbstractVar[Int[Array, ""]]
    event_count: eqx.AbstractVar[Int[Array, ""]]


class MotionState(AbstractState):
    """Time, position and velocity: the state of a solver without memory of its own."""

    origin: ClassVar[str] = "smoothed or your own"

    t: Float[Array, ""]
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    status: Int[Array, ""]
    flags: Int[Array, ""]
    steps: Int[Array, ""]
    event_count: Int[Array, ""]
    #: State of the controllers, see :mod:`jfric.solvers.control_loops`.
    loops: Any = None


class StepInfo(NamedTuple):
    """Diagnostics of one step: its length [s], whether time advanced, steps and events so far."""

    h: Float[Array, ""]
    advanced: Bool[Array, ""]
    steps: Int[Array, ""]
    event_count: Int[Array, ""]


class Local(NamedTuple):
    """Accelerations, reactions and modes at one state, for outputs in addition to the motion.

    ``a`` (n,) [m/s^2, rad/s^2]; ``lambda_t`` (nt,), ``lambda_n`` (nu,) [N]: friction forces of all
    contacts, normal forces of the unilateral ones; ``mode`` (nt,): :class:`jfric.Mode`.
    Example: see :class:`jfric.AbstractFixedStep`.
    """

    a: Float[Array, " n"]
    lambda_t: Float[Array, " nt"]
    lambda_n: Float[Array, " nu"]
    mode: Int[Array, " nt"]
    #: Segments as reported to users.
    segment: Int[Array, " ns"]
