"""The quasi-static solver: ``init``, ``step`` and ``solve``."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.solution import Solution
from jfric.solvers.loops import Adjoint, keep, require_adjoint, run_passes
from jfric.solvers.quasi_static.loading import knots
from jfric.solvers.quasi_static.passes import one_pass
from jfric.solvers.quasi_static.recording import empty_records
from jfric.solvers.quasi_static.representable import require_quasi_static
from jfric.solvers.quasi_static.state import State, initial_state, restart
from jfric.status import Status
from jfric.system.mechanics import Mechanics, assemble
from jfric.system.problem import Problem
from jfric.system.reaction import refuse_reactions


class StepInfo(NamedTuple):
    """Diagnostics of one pass: time applied [s], whether the load advanced, events so far."""

    h: Float[Array, ""]
    advanced: Bool[Array, ""]
    event_count: Int[Array, ""]


class QuasiStatic(eqx.Module):
    """Load histories without inertia: the load is applied infinitely slowly.

    At every instant the forces are in equilibrium and the contacts obey the laws of contact and
    friction::

        K q + f_segments(q) = f(t) + W_T^T lambda_T + W_N^T lambda_N
        0 <= g_N _|_ lambda_N >= 0,   lambda_T in -mu N Sign(W_T dq/dt - v_belt)

    Masses, dampers and impacts have no effect; degrees of freedom need no mass, so that a slider
    may be in series with a spring. Within a mode everything changes in proportion to the load;
    where a contact slips, sticks, closes or opens inside a step of the load is computed, not
    searched (linear complementarity in rates of the load, cf. A. Klarbring, "A mathematical
    programming approach to three-dimensional contact problems with friction", 1986). Histories
    made of jumps and straight lines are exact for any step; harmonic functions of time are
    followed by ``increments`` straight lines. A jump is applied along a straight line at constant
    time, and so is what the initial position leaves unbalanced at the start. Belts whose velocity
    varies between breakpoints are exact at the ends of increments only.

    ``solution.v`` is the rate of the position over the time of the history, ``solution.a`` is
    zero. ``max_steps``: passes of the loop. ``max_events``: capacity of the event log.
    ``adjoint``: as in :class:`jfric.EventDriven`.

    Status ``SINGULAR``: some motion meets no resistance. ``INCONSISTENT``: the equilibrium is
    lost or not unique on the way (a fold, large friction); a dynamic solver is needed there.
    """

    increments: int = eqx.field(static=True, default=1000)
    max_steps: int = eqx.field(static=True, default=10_000)
    max_events: int = eqx.field(static=True, default=256)
    adjoint: Adjoint = eqx.field(static=True, default="auto")

    #: What it can be started from, and how it is best compiled: many small kernels.
    state_type: ClassVar[type] = State
    compile_quickly: ClassVar[bool] = True

    def require(self, problem: Problem) -> None:
        """Raise :class:`jfric.ProblemError` for what this solver cannot represent."""
        refuse_reactions(problem, "the solver quasi-static")
        require_quasi_static(problem)
        require_adjoint(self.adjoint)

    def init(self, problem: Problem) -> State:
        """State at the problem's start time, before any load."""
        self.require(problem)
        return initial_state(problem, assemble(problem))

    def step(
        self, problem: Problem, state: State, *, until=None, force=None
    ) -> tuple[State, StepInfo]:
        """One pass: settle the modes, or apply the load up to the next breakpoint.

        ``until`` [s]: time of the load history not to be passed (default: its end). ``force``
        (n,) [N, N m]: an additional generalised force.
        """
        mechanics = assemble(problem)
        times, until, force = self._history(problem, mechanics, state, until, force)
        records = empty_records(mechanics, 0, 0)
        on = is_active(state, until)
        no_outputs = jnp.zeros((0,), state.t.dtype)
        passed = one_pass(mechanics, times, state, records, no_outputs, until, force, on)
        new = keep(on, passed.state, state)
        return new, StepInfo(new.t - state.t, new.t > state.t, new.event_count)

    def advance(self, problem: Problem, state: State, until, *, force=None) -> State:
        """Pass after pass up to the time ``until`` [s] of the load history."""
        mechanics = assemble(problem)
        times, until, force = self._history(problem, mechanics, state, until, force)
        records = empty_records(mechanics, 0, 0)
        no_outputs = jnp.zeros((0,), state.t.dtype)
        state, _ = self._run(mechanics, times, state, records, no_outputs, until, force)
        return state

    def solve(self, problem: Problem, ts, start: State | None, end) -> Solution:
        """Apply the load history to its end; see :func:`jfric.simulate`."""
        mechanics = assemble(problem)
        state = initial_state(problem, mechanics) if start is None else restart(start)
        end = problem.resolved().time.end if end is None else end
        end = jnp.asarray(end, state.t.dtype)
        times = knots(mechanics, state.start, end, self.increments)
        ts = jnp.zeros((0,)) if ts is None else jnp.asarray(ts)
        ts = ts.astype(state.t.dtype)
        # A last output that rounding put behind the end belongs to the end.
        slack = 4 * jnp.finfo(ts.dtype).eps * jnp.abs(end)
        ts = jnp.where((ts > end) & (ts <= end + slack), end, ts)
        records = empty_records(mechanics, ts.shape[0], self.max_events)
        force = jnp.zeros((mechanics.n,), mechanics.K.dtype)
        state, records = self._run(mechanics, times, state, records, ts, end, force)
        unfinished = (state.status == int(Status.OK)) & ~state.ended
        status = jnp.where(unfinished, int(Status.MAX_STEPS), state.status)
        full = (status == int(Status.OK)) & (state.event_count > self.max_events)
        status = jnp.where(full & (self.max_events > 0), int(Status.MAX_EVENTS), status)
        return Solution(
            ts=ts,
            q=records.q,
            v=records.v,
            a=jnp.zeros_like(records.v),
            lambda_n=records.lambda_n,
            lambda_t=records.lambda_t,
            mode=records.mode,
            segment=records.segment,
            events=eqx.tree_at(lambda e: e.count, records.events, state.event_count),
            status=status,
            flags=state.flags,
            final=state,
            steps=state.steps,
            axes=mechanics.axes,
            names=mechanics.contact_names + mechanics.piecewise.names,
            segment_labels=mechanics.piecewise.labels,
        )

    def _history(self, problem: Problem, mechanics: Mechanics, state: State, until, force):
        dtype = state.t.dtype
        end = jnp.asarray(problem.resolved().time.end, dtype)
        until = end if until is None else jnp.minimum(jnp.asarray(until, dtype), end)
        force = jnp.zeros((mechanics.n,)) if force is None else jnp.asarray(force)
        return knots(mechanics, state.start, end, self.increments), until, force.astype(dtype)

    def _run(self, mechanics: Mechanics, times, state: State, records, ts, until, force):
        first = state.steps

        def active(s: State):
            return is_active(s, until) & (s.steps - first < self.max_steps)

        def body(s: State, r, on):
            return one_pass(mechanics, times, s, r, ts, until, force, on)[:2]

        return run_passes(
            body, active, state, records, max_steps=self.max_steps, adjoint=self.adjoint
        )


def is_active(state: State, until) -> Bool[Array, ""]:
    """Whether there is load history left before ``until``."""
    # The jump at the start takes place at constant time.
    ahead = (state.t < until) | ~state.stage.on_line
    return (state.status == int(Status.OK)) & ~state.ended & ahead
