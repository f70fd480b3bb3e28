"""First guesses of an orbit: the end of a transient, and its recurrence."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.loops import keep
from jfric.periodic.linearised import Scales
from jfric.periodic.orbit import OrbitStatus
from jfric.periodic.shooting import Phase, Shooting, Unknowns
from jfric.periodic.state_vector import at_start, axes_of, joined, sizes_of_states, with_start
from jfric.results.solution import Solution
from jfric.results.status import Status
from jfric.system.description import element_label
from jfric.system.event import Event
from jfric.system.problem import Problem

#: Least number of outputs over a period from which sizes of positions and velocities follow.
SAMPLES = 24
#: Difference of states at two events, in parts of their sizes, below which they are the same.
RECURS = 1e-3
#: Least size, as a part of the largest one; smaller sizes are raised to it.
SMALL = 1e-6
#: Part of the size of an element's state in gross sliding below which it counts as zero.
PART = 1e-3
#: Name of the event by which a transient meets the section.
SECTION = "section of the orbit"


class Guess(NamedTuple):
    """Start of Newton's method. ``status``: whether there is a guess; ``run_status``: that of the
    transient."""

    start: Unknowns
    phase: Phase
    scales: Scales
    status: Int[Array, ""]
    run_status: Int[Array, ""]


def no_phase(size: int) -> Phase:
    """Phase condition of a known period: none."""
    nothing = jnp.zeros((size,), jnp.result_type(float))
    return Phase(jnp.full((3,), -1, jnp.int32), jnp.zeros(()), nothing, nothing)


def forced_guess(
    shooting: Shooting, problem: Problem, period, start: Float[Array, " x"] | None, transient
) -> Guess:
    """The state after ``transient`` periods from the problem's start, or from the state ``start``;
    ``period`` [s]: needed if the loads do not give it."""
    period = shooting.period_of(problem, period)
    t, _, _ = problem.resolved().start()
    begun = problem if start is None else with_start(problem, t, start)
    count = _samples(shooting)
    ts = t + period * (transient + jnp.linspace(0.0, 1.0, count + 1))
    solution = shooting.solver.solve(begun, ts, None, ts[-1])
    return _guess_from(shooting, problem, solution, period, no_phase(2 * len(axes_of(problem))))


def autonomous_guess(
    shooting: Shooting, problem: Problem, period, start: Float[Array, " x"] | None, transient
) -> Guess:
    """A period of the motion after ``transient`` [s] from the problem's start, or the motion over
    ``period`` [s] from the state ``start``."""
    if start is not None:
        return forced_guess(shooting, problem, period, start, 0.0)
    t, _, _ = problem.resolved().start()
    fractions = jnp.linspace(0.0, 1.0, _samples(shooting) + 1)
    begun = _with_section(shooting, problem)

    class Stage(NamedTuple):
        state: Float[Array, " x"]
        begins: Float[Array, ""]
        period: Float[Array, ""]
        phase: Phase
        recurs: Bool[Array, ""]
        failed: Int[Array, ""]
        guess: Any

    def run(stage: Stage):
        """One run: to the end of the transient, again to find a recurrence, or over one period."""
        ts = stage.begins + stage.period * fractions
        solution = shooting.solver.solve(with_start(begun, t, stage.state), ts, None, ts[-1])
        guess = _guess_from(shooting, problem, solution, stage.period, stage.phase)
        there = joined(solution.q[-1], solution.v[-1], solution.z[-1])
        return guess, there, _recurrence(shooting, solution)

    def one(i, stage: Stage) -> Stage:
        guess, there, (recurs, begins, period, phase) = run(stage)
        bad = (stage.failed == int(Status.OK)) & (guess.run_status != int(Status.OK))
        found = (i == 1) & recurs
        return Stage(
            state=jnp.where(i == 0, there, stage.state),
            begins=jnp.where(found, begins, stage.begins),
            period=jnp.where(found, period, stage.period),
            phase=keep(found, phase, stage.phase),
            recurs=stage.recurs | found,
            failed=jnp.where(bad, guess.run_status, stage.failed),
            guess=guess,
        )

    x = at_start(problem.resolved())
    transient = jnp.asarray(transient, x.dtype)
    ok = jnp.asarray(int(Status.OK), jnp.int32)
    stage = Stage(x, t, transient, no_phase(x.shape[0]), jnp.asarray(False), ok, None)
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(run, stage)[0])
    stage = jax.lax.fori_loop(0, 3, one, stage._replace(guess=nothing))
    status = jnp.where(stage.recurs, int(OrbitStatus.CONVERGED), int(OrbitStatus.NO_RECURRENCE))
    status = jnp.where(stage.failed == int(Status.OK), status, int(OrbitStatus.TRANSIENT_FAILED))
    return stage.guess._replace(status=status.astype(jnp.int32), run_status=stage.failed)


def _guess_from(
    shooting: Shooting, problem: Problem, solution: Solution, period, phase: Phase
) -> Guess:
    """The guess from outputs over a period."""
    samples = joined(solution.q, solution.v, solution.z)
    scales = scales_of(samples, period)
    # At rest, states of elements are rounding errors, too.
    least = PART * sizes_of_states(problem)
    places = slice(scales.state.shape[0] - least.shape[0], None)
    scales = scales._replace(state=scales.state.at[places].max(least))
    if shooting.phase == "along":
        along = joined(solution.v[0], solution.a[0], jnp.zeros_like(solution.z[0]))
        along = along / scales.state
        size = jnp.sqrt(jnp.sum(along**2))
        along = along / jnp.where(size > 0, size, 1.0) / scales.state
        phase = phase._replace(at=samples[0], along=along)
    ok = _completed(solution.status)
    status = jnp.where(ok, int(OrbitStatus.CONVERGED), int(OrbitStatus.TRANSIENT_FAILED))
    period = jnp.asarray(period, samples.dtype)
    return Guess(
        start=Unknowns(_states(shooting, samples), period, jnp.zeros((), samples.dtype)),
        phase=phase,
        scales=scales,
        status=status.astype(jnp.int32),
        run_status=jnp.where(ok, int(Status.OK), solution.status).astype(jnp.int32),
    )


def _recurrence(shooting: Shooting, solution: Solution):
    """Whether an event of a motion recurs, the time at which a period may begin, its length, and
    the condition of the phase."""
    log = solution.events
    used = jnp.arange(log.time.shape[0], dtype=jnp.int32) < log.count
    codes = jnp.stack([log.contact, log.from_mode, log.to_mode], axis=1).astype(jnp.int32)
    phase = no_phase(2 * (log.q.shape[1] + solution.z.shape[1]))
    if shooting.phase == "section":
        label = element_label("event", SECTION)
        used = used & (log.contact == len(solution.names) + solution.event_names.index(label))
    a = jnp.argmax(used).astype(jnp.int32)
    b, recurs = _as_before(codes, used, a, log.q, log.v, solution)
    period = log.time[b] - log.time[a]
    if shooting.phase == "section":
        return recurs, log.time[a], period, phase
    # The start lies before the event that ends the longest interval without events.
    gaps = jnp.diff(log.time, append=jnp.inf)
    index = jnp.arange(gaps.shape[0], dtype=jnp.int32)
    k = jnp.argmax(jnp.where((index >= a) & (index < b), gaps, -jnp.inf))
    after = jnp.minimum(0.5 * gaps[k], 0.25 * period / shooting.segments)
    return recurs, log.time[k + 1] - after, period, phase._replace(event=codes[k + 1], after=after)


def _as_before(codes, used, a, q, v, solution: Solution):
    """The first event after ``a`` with the same modes and state, else the most similar one; and
    whether there is any. States are compared in sizes along the whole motion: at a section one of
    them may be zero at all events."""
    index = jnp.arange(used.shape[0], dtype=jnp.int32)
    same = used & (index > a) & jnp.all(codes == codes[a][None, :], axis=1)
    states = jnp.where(used[:, None], jnp.concatenate([q, v], axis=1), 0.0)
    n = q.shape[1]
    along = jnp.concatenate([solution.q[:, :n], solution.v[:, :n]], axis=1)
    every = jnp.concatenate([states, jnp.where(jnp.isfinite(along), along, 0.0)])
    sizes = jnp.max(jnp.abs(every), axis=0)
    sizes = jnp.concatenate([_raised(sizes[:n]), _raised(sizes[n:])])
    off = jnp.max(jnp.abs(states - states[a][None, :]) / sizes[None, :], axis=1)
    close = same & (off <= RECURS)
    nearest = jnp.argmin(jnp.where(same, off, jnp.inf))
    found = jnp.where(close.any(), jnp.argmax(close), nearest)
    return found.astype(jnp.int32), same.any()


def scales_of(samples: Float[Array, "m x"], period) -> Scales:
    """Sizes of positions and velocities over a period; a parameter has size one."""
    n = samples.shape[1] // 2
    sizes = jnp.max(jnp.abs(jnp.where(jnp.isfinite(samples), samples, 0.0)), axis=0)
    q, v, rate = sizes[:n], sizes[n:], 2.0 * jnp.pi / period
    q = _raised(jnp.maximum(q, v / rate))
    v = _raised(jnp.maximum(v, SMALL * rate * q))
    one = jnp.ones((), samples.dtype)
    return Scales(jnp.concatenate([q, v]), jnp.asarray(period, samples.dtype), one)


def _raised(sizes):
    largest = jnp.max(sizes)
    return jnp.maximum(sizes, SMALL * jnp.where(largest > 0, largest, 1.0 / SMALL))


def _samples(shooting: Shooting) -> int:
    """Number of outputs over a period, a multiple of the segments."""
    return shooting.segments * -(-SAMPLES // shooting.segments)


def _states(shooting: Shooting, samples):
    return samples[: -1 : _samples(shooting) // shooting.segments]


def _completed(status):
    """Whether the motion is complete, even if the log of events is full."""
    return (status == int(Status.OK)) | (status == int(Status.MAX_EVENTS))


def _with_section(shooting: Shooting, problem: Problem) -> Problem:
    """The problem with an event at which it meets the section from below."""
    if shooting.phase != "section":
        return problem
    assert shooting.section is not None
    events = dict(problem.section("event")) | {SECTION: Event(shooting.section, "up")}
    changed = copy.copy(problem)
    elements = OrderedDict(problem.elements) | {"event": OrderedDict(events)}
    object.__setattr__(changed, "elements", elements)
    return changed
