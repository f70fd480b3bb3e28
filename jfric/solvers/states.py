"""States of solvers between steps, diagnostics of a step, and reactions at a state."""

# No annotations as text here: equinox must see which of them are abstract.
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.choice import select


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


def generic_change(inertia_scale: Float[Array, " n"], time=1.0) -> Float[Array, " y"]:
    """Small change that contains every motion of a system: irregular values of similar size, of
    positions (n,), then velocities (n,).

    Velocities are divided by the square roots of inertias; positions are displacements by such
    velocities in ``time`` [s]. If the error of the motion alone determined the length of steps,
    they would be too long for derivatives: a motion at rest has no error, however fast the motions
    close to it are. The error of this change takes part in the choice of steps.
    """
    k = np.arange(1, 2 * inertia_scale.shape[0] + 1)
    # Multiples of irrational numbers.
    signs = np.where(k * 0.41421356237 % 1.0 < 0.5, -1.0, 1.0)
    parts = signs * (0.5 + k * 0.61803398875 % 1.0)
    scale = jax.lax.stop_gradient(inertia_scale)
    scale = 1.0 / select(scale > 0, scale, 1.0)
    return jnp.asarray(parts, scale.dtype) * jnp.concatenate([time * scale, scale])
