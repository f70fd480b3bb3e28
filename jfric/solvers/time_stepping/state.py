"""State of a time-stepping scheme between steps."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.numerics.linear_algebra import matvec
from jfric.results.modes import Mode
from jfric.results.status import Flag, Status
from jfric.solvers.states import AbstractState
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.tolerance import RELATIVE
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem
from jfric.system.start import started


class State(AbstractState):
    """Motion, modes and bookkeeping of one trajectory."""

    origin: ClassVar[str] = "time-stepping"

    t: Float[Array, ""]
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    #: Modes of the contacts and segments of the piecewise-linear elements on the last step.
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    #: Whether a step was made: the modes of the first step are not an event.
    settled: Bool[Array, ""]
    #: Largest residual of a step's contact problem, and iterations of all steps together.
    residual: Float[Array, ""]
    iterations: Int[Array, ""]
    status: Int[Array, ""]
    flags: Int[Array, ""]
    steps: Int[Array, ""]
    event_count: Int[Array, ""]
    #: State of the controllers, see :mod:`jfric.solvers.control_loops`.
    loops: Any = None


class Motion(NamedTuple):
    """The part of the state that a step changes."""

    q: Float[Array, " n"]
    v: Float[Array, " n"]
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    #: Whether these modes were those of a step already.
    settled: Bool[Array, ""] | bool = True


def initial_state(problem: Problem, prepared: Prepared) -> State:
    """State at the start time; contacts with zero sliding velocity begin in stick."""
    return start_at(prepared, *(x.astype(prepared.h.dtype) for x in started(problem).start()))


def start_at(prepared: Prepared, t, q, v) -> State:
    """State with position ``q`` and velocity ``v`` (n,) at time ``t``."""
    mechanics, nf = prepared.mechanics.at(t, q, v), prepared.nf
    gamma, small, flags = mechanics.sliding_velocities(t, v), 0.0, 0
    if mechanics.varying is not None:
        small = RELATIVE * _sliding_size(mechanics, t, v)
    if mechanics.tied is not None:
        flags = jnp.where(mechanics.tied.redundant, int(Flag.REDUNDANT), 0)
    mode = rules.closed_mode(False, gamma, small)
    for i, j in mechanics.planes:
        both = jnp.where((mode[i] == Mode.STICK) & (mode[j] == Mode.STICK), Mode.STICK, Mode.SLIP)
        mode = mode.at[np.asarray([i, j])].set(both)
    if prepared.nu:
        is_open = (mechanics.gaps(t, q) > 0) | _approaches(mechanics, t, v)
        mode = mode.at[nf:].set(jnp.where(is_open, Mode.OPEN, mode[nf:]))
    piecewise = mechanics.piecewise
    segment = jnp.zeros((piecewise.count,), jnp.int32)
    if piecewise.count:
        z, _ = mechanics.base_motion(t)
        x = matvec(piecewise.directions, q) + matvec(piecewise.base_directions, z)
        # The first step settles guards on the rate.
        segment = piecewise.segment_at(x)
    zero = jnp.asarray(0, jnp.int32)
    return State(
        t=t,
        q=q,
        v=v,
        mode=mode.astype(jnp.int32),
        segment=segment,
        settled=jnp.asarray(False),
        residual=jnp.zeros((), q.dtype),
        iterations=zero,
        status=jnp.asarray(int(Status.OK), jnp.int32),
        flags=jnp.asarray(flags, jnp.int32),
        steps=zero,
        event_count=zero,
    )


def _sliding_size(mechanics: Mechanics, t, v):
    """Sums (nt,) of the magnitudes of the terms of the sliding velocities."""
    return matvec(jnp.abs(mechanics.W_T), jnp.abs(v)) + jnp.abs(mechanics.belt_velocities(t))


def _approaches(mechanics: Mechanics, t, v):
    """Unilateral contacts (nu,) that close with a velocity: one with zero gap is about to hit."""
    _, z_dot = mechanics.base_motion(t)
    along, moved = matvec(mechanics.W_N, v), matvec(mechanics.W_N_base, z_dot)
    if mechanics.rate is not None:
        moved = moved + mechanics.rate[mechanics.n_contacts :]
    size = matvec(jnp.abs(mechanics.W_N), jnp.abs(v)) + jnp.abs(moved)
    eps = jnp.finfo(v.dtype).eps
    return along + moved < -jnp.maximum(RELATIVE, 16 * eps) * size
