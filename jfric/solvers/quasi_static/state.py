"""State of the quasi-static solver between passes, and the loads that it follows."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

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
from jfric.solvers.states import AbstractState
from jfric.system.derived_functions import Clipped, Until
from jfric.system.functions import AbstractFunction, Harmonic, Sum
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem


class Given(NamedTuple):
    """Loads, normal forces, and motion of bases and belts at one instant."""

    #: Loads, preloads and the forces of displaced bases.
    f: Float[Array, " n"]
    #: Normal forces of the friction elements.
    normal: Float[Array, " nf"]
    #: Displacements of the bases.
    z: Float[Array, " nb"]
    #: Velocities of the belts.
    belt: Float[Array, " nt"]


class Target(NamedTuple):
    """Target of an increment of the load, and whether it ends its stage and the history."""

    given: Given
    t: Float[Array, ""]
    jumps: Bool[Array, ""]
    ends_stage: Bool[Array, ""]
    ends_history: Bool[Array, ""]
    #: Displacement of the belts from now on.
    travel: Float[Array, " nt"]


def is_piecewise_linear(function: AbstractFunction) -> bool:
    """Whether the function is a straight line between its breakpoints."""
    if isinstance(function, Sum):
        return all(is_piecewise_linear(term) for term in function.terms)
    if isinstance(function, (Until, Clipped)):
        return is_piecewise_linear(function.function)
    return not isinstance(function, Harmonic)


def knots(mechanics: Mechanics, start, end, increments: int, moment) -> Float[Array, " k"]:
    """Times between which the load is a straight line, from ``start`` to ``end``; some repeat.

    Functions of time that are curved between their breakpoints are approximated by ``increments``
    straight lines. ``moment`` [s]: time at which a curved normal force becomes negative, an
    additional knot.
    """
    dtype = mechanics.K.dtype
    curved = not all(is_piecewise_linear(f) for f in mechanics.functions())
    even = jnp.linspace(0.0, 1.0, increments + 1 if curved else 2, dtype=dtype)
    breaks = mechanics.breakpoints()
    if not all(is_piecewise_linear(f) for f in mechanics.normal_forces):
        breaks = jnp.append(breaks, moment)
    times = jnp.concatenate([start + even * (end - start), jnp.clip(breaks, start, end)])
    return jnp.sort(times).astype(dtype)


def given_at(mechanics: Mechanics, t, ahead=0.0) -> Given:
    """Inputs at ``t + ahead``, on the smooth pieces that begin at ``t`` or contain it."""
    dtype = mechanics.K.dtype

    def values(functions):
        found = [_value(f, t, ahead) for f in functions]
        return jnp.stack([jnp.asarray(x, dtype) for x in found]) if found else jnp.zeros((0,))

    z = values(mechanics.base_functions)
    loads = values(mechanics.load_functions)
    return Given(
        f=mechanics.f0 + loads @ mechanics.load_directions + mechanics.K_base @ z,
        normal=values(mechanics.normal_forces),
        z=z,
        belt=jnp.stack(
            [jnp.asarray(0.0 if b is None else _value(b, t, ahead), dtype) for b in mechanics.belts]
        )
        if mechanics.belts
        else jnp.zeros((0,)),
    )


def _value(function: AbstractFunction, t, ahead):
    polynomial, harmonics = function.components(t)
    result = sum(p * ahead**j for j, p in enumerate(polynomial))
    return result + sum(a * jnp.sin(angle + w * ahead) for a, angle, w in harmonics)


class Stage(eqx.Module):
    """Position in the history of loads: knot ``index``, at its jump or on the line that follows.

    The knots are the start, the breakpoints of all functions of time, and the end. Each knot begins
    two stages: first the load goes to its value from the right, along a straight line at constant
    time; then it goes on a straight line to its value from the left at the next knot. The jump at
    the first knot applies the forces that the initial state leaves unbalanced.
    """

    index: Int[Array, ""]
    on_line: Bool[Array, ""]

    def following(self, last) -> Stage:
        """The next stage; past the knot ``last`` there is none, and the last one stays."""
        index = jnp.minimum(self.index + self.on_line.astype(jnp.int32), last)
        return Stage(index, ~self.on_line)


def target(mechanics: Mechanics, times, stage: Stage, t, until) -> Target:
    """The end of the current stage, or the point on it at the time ``until``."""
    last = times.shape[0] - 1
    at, to = times[stage.index], times[jnp.minimum(stage.index + 1, last)]
    t_end = jnp.where(stage.on_line, jnp.minimum(to, until), at)
    length = jnp.where(to > at, to - at, 1.0)
    fraction = jnp.where(stage.on_line, (t_end - at) / length, 0.0)
    now = jnp.where(stage.on_line, (t - at) / length, 0.0)
    right, left = given_at(mechanics, at), given_at(mechanics, at, to - at)

    def line(s):
        return Given(*(a + s * (b - a) for a, b in zip(right, left, strict=True)))

    reached = line(fraction)
    travel = 0.5 * (line(now).belt + reached.belt) * jnp.where(stage.on_line, t_end - t, 0.0)
    ends_stage = ~stage.on_line | (to <= until)
    return Target(
        given=reached,
        t=t_end,
        jumps=~stage.on_line,
        ends_stage=ends_stage,
        ends_history=stage.on_line & ends_stage & (to >= times[last]),
        travel=travel,
    )


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
    piecewise = mechanics.piecewise
    x = piecewise.directions @ q + piecewise.base_directions @ given.z
    segment = piecewise.segment_at(x)
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


def _initial_modes(mechanics: Mechanics, t, q):
    nf = mechanics.n_friction
    still = jnp.zeros((mechanics.n_contacts,), q.dtype)
    mode = rules.closed_mode(np.asarray(mechanics.frictionless, bool), still, still)
    if mechanics.n_unilateral:
        scale = jnp.abs(mechanics.gap0) + jnp.abs(mechanics.W_N) @ jnp.abs(q)
        is_open = rules.starts_open(mechanics.gaps(t, q), tolerances(q.dtype).zero * scale)
        mode = mode.at[nf:].set(jnp.where(is_open, Mode.OPEN, mode[nf:]))
    return mode.astype(jnp.int32)
