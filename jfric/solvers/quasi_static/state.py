"""State of the quasi-static solver between passes."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.pivoting import Pivoting, start_pivoting
from jfric.numerics.tolerances import tolerances
from jfric.results.modes import Mode
from jfric.results.status import Status
from jfric.solvers.base import begin_anew
from jfric.solvers.quasi_static.loading import Stage, given_at
from jfric.solvers.states import AbstractState
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem


class State(AbstractState):
    """Position, forces, modes and place in the load history of one trajectory."""

    origin: ClassVar[str] = "quasi-static"

    t: Float[Array, ""]
    q: Float[Array, " n"]
    #: Rate of the position over the time of the load history.
    v: Float[Array, " n"]
    lambda_t: Float[Array, " nt"]
    lambda_n: Float[Array, " nu"]
    #: Normal forces of friction elements and displacements of bases as applied so far.
    normal: Float[Array, " nf"]
    z: Float[Array, " nb"]
    #: Largest magnitudes of ``q`` so far: reference sizes for rounding errors.
    q_scale: Float[Array, " n"]
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    #: Modes and segments as last recorded, and whether anything was recorded yet.
    recorded: Int[Array, " c"]
    settled: Bool[Array, ""]
    #: Start of the load history, and the part of it that has been applied.
    start: Float[Array, ""]
    stage: Stage
    ended: Bool[Array, ""]
    pivoting: Pivoting
    status: Int[Array, ""]
    flags: Int[Array, ""]
    steps: Int[Array, ""]
    event_count: Int[Array, ""]


def initial_state(problem: Problem, mechanics: Mechanics) -> State:
    """State at the start time, without any reaction; closed contacts stick."""
    problem = problem.resolved()
    dtype = mechanics.K.dtype
    t = jnp.asarray(problem.time.start, dtype)
    q = jnp.stack([jnp.asarray(problem.initial[d].q, dtype) for d in problem.dofs])
    given = given_at(mechanics, t)
    nt, nu = mechanics.n_contacts, mechanics.n_unilateral
    mode = _initial_modes(mechanics, t, q)
    segment = mechanics.piecewise.segment_at(_elongation(mechanics, q, given.z))
    return State(
        t=t,
        q=q,
        v=jnp.zeros_like(q),
        lambda_t=jnp.zeros((nt,), dtype),
        lambda_n=jnp.zeros((nu,), dtype),
        normal=given.normal,
        z=given.z,
        q_scale=jnp.abs(q),
        mode=mode,
        segment=segment,
        recorded=jnp.concatenate([mode, segment]),
        settled=jnp.asarray(False),
        start=t,
        stage=first_stage(),
        ended=jnp.asarray(False),
        pivoting=start_pivoting(),
        status=jnp.asarray(int(Status.OK), jnp.int32),
        flags=jnp.asarray(0, jnp.int32),
        steps=jnp.asarray(0, jnp.int32),
        event_count=jnp.asarray(0, jnp.int32),
    )


def first_stage() -> Stage:
    """First stage of a load history: the jump at the first knot."""
    return Stage(jnp.asarray(0, jnp.int32), jnp.asarray(False))


def restart(state: State) -> State:
    """End of a run as the start of the next: counters and load history begin again."""
    return eqx.tree_at(
        lambda s: (s.start, s.stage, s.ended),
        begin_anew(state),
        (state.t, first_stage(), jnp.asarray(False)),
    )


def _elongation(mechanics: Mechanics, q, z):
    piecewise = mechanics.piecewise
    return piecewise.directions @ q + piecewise.base_directions @ z


def _initial_modes(mechanics: Mechanics, t, q):
    nf = mechanics.n_friction
    still = jnp.zeros((mechanics.n_contacts,), q.dtype)
    mode = rules.closed_mode(np.asarray(mechanics.frictionless, bool), still, still)
    if mechanics.n_unilateral:
        scale = jnp.abs(mechanics.gap0) + jnp.abs(mechanics.W_N) @ jnp.abs(q)
        is_open = rules.starts_open(mechanics.gaps(t, q), tolerances(q.dtype).zero * scale)
        mode = mode.at[nf:].set(jnp.where(is_open, Mode.OPEN, mode[nf:]))
    return mode.astype(jnp.int32)
