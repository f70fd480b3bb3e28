"""What all time-stepping schemes share: ``init``, ``step``, ``advance`` and ``solve``."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.solution import Solution, event_log
from jfric.solvers.loops import Adjoint
from jfric.solvers.time_stepping.prepare import prepare, with_step
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.recording import empty_records
from jfric.solvers.time_stepping.representable import require_time_stepping
from jfric.solvers.time_stepping.run import REST, run
from jfric.solvers.time_stepping.scheme import Scheme
from jfric.solvers.time_stepping.state import Start, State, initial_state, start_at
from jfric.status import Status
from jfric.system.problem import Problem
from jfric.system.reaction import refuse_reactions
from jfric.system.validation import require_inertia


class StepInfo(NamedTuple):
    """Diagnostics of one step: its length [s], residual and iterations of its contact problem
    (of all so far), events so far."""

    h: Float[Array, ""]
    residual: Float[Array, ""]
    iterations: Int[Array, ""]
    event_count: Int[Array, ""]


class AbstractTimeStepping(eqx.Module):
    """A time-stepping scheme with the fixed step ``dt``."""

    dt: eqx.AbstractVar[Any]
    method: eqx.AbstractVar[str]
    max_steps: eqx.AbstractVar[int]
    max_events: eqx.AbstractVar[int]
    adjoint: eqx.AbstractVar[Adjoint]

    #: What it can be started from, and how it is best compiled: few kernels, run often.
    state_type: ClassVar[type] = Start
    compile_quickly: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def scheme(self) -> Scheme:
        """What distinguishes this scheme."""

    def require(self, problem: Problem) -> None:
        """Raise :class:`jfric.ProblemError` for what this scheme cannot represent."""
        require_inertia(problem)
        refuse_reactions(problem, f"the scheme {type(self).__name__}")
        require_time_stepping(problem, self)

    def init(self, problem: Problem) -> State:
        """State at the problem's start time."""
        self.require(problem)
        return initial_state(problem, self._prepare(problem))

    def step(
        self, problem: Problem, state: State, *, until=None, force=None
    ) -> tuple[State, StepInfo]:
        """One step of length ``dt``, or less to end at ``until`` [s] (default: the problem's end).

        ``force`` (n,) [N, N m]: an additional generalised force, constant over the step; for
        control loops.
        """
        prepared = self._prepare(problem)
        target, force = _defaults(prepared, until, force)
        left = target - state.t
        h = jnp.where(left < (1.0 + REST) * prepared.h, left, prepared.h)
        on = (h > 0.0) & (state.status == int(Status.OK))
        prepared = with_step(prepared, jnp.where(on, h, prepared.h))
        records = empty_records(prepared, 0, 0)
        new, _ = run(
            prepared,
            state,
            records,
            jnp.zeros((0,), state.t.dtype),
            state.t + jnp.where(on, prepared.h, 0.0),
            force,
            max_steps=1,
            adjoint="forward",
        )
        new = eqx.tree_at(lambda s: s.t, new, jnp.where(on, state.t + h, state.t))
        info = StepInfo(new.t - state.t, new.residual, new.iterations, new.event_count)
        return new, info

    def advance(self, problem: Problem, state: State, until, *, force=None) -> State:
        """Step after step up to the time ``until`` [s] under a constant extra ``force`` (n,)."""
        prepared = self._prepare(problem)
        target, force = _defaults(prepared, until, force)
        ts = jnp.zeros((0,), state.t.dtype)
        records = empty_records(prepared, 0, 0)
        return self._run(prepared, state, records, ts, target, force)[0]

    def solve(self, problem: Problem, ts, start: Any, end) -> Solution:
        """Simulate to the end; see :func:`jfric.simulate`."""
        prepared = self._prepare(problem)
        state = initial_state(problem, prepared) if start is None else _restart(prepared, start)
        target, force = _defaults(prepared, end, None)
        ts = jnp.zeros((0,)) if ts is None else jnp.asarray(ts)
        ts = ts.astype(state.t.dtype)
        records = empty_records(prepared, ts.shape[0], self.max_events)
        state, records = self._run(prepared, state, records, ts, target, force)
        status = state.status
        late = (status == int(Status.OK)) & (state.t < target - REST * prepared.h)
        status = jnp.where(late, int(Status.MAX_STEPS), status)
        full = (status == int(Status.OK)) & (state.event_count > self.max_events)
        full = full & (self.max_events > 0)
        status = jnp.where(full, int(Status.MAX_EVENTS), status)
        mechanics, n, nt = prepared.mechanics, prepared.mechanics.n, prepared.nt
        q, v, a, reactions = jnp.split(records.output_values, (n, 2 * n, 3 * n), axis=1)
        return Solution(
            ts=ts,
            q=q,
            v=v,
            a=a,
            lambda_n=reactions[:, nt:],
            lambda_t=reactions[:, :nt],
            mode=records.output_modes[:, :nt],
            segment=records.output_modes[:, nt:],
            events=event_log(
                prepared.mechanics.n, records.event_values, records.event_modes, state.event_count
            ),
            status=status,
            flags=state.flags,
            final=state,
            steps=state.steps,
            axes=mechanics.axes,
            names=mechanics.contact_names + mechanics.piecewise.names,
            segment_labels=mechanics.piecewise.labels,
        )

    def _prepare(self, problem: Problem) -> Prepared:
        return prepare(problem, self.scheme, self.dt, self.method)

    def _run(self, prepared: Prepared, state: State, records, ts, target, force):
        return run(
            prepared,
            state,
            records,
            ts,
            target,
            force,
            max_steps=self.max_steps,
            adjoint=self.adjoint,
        )


def _defaults(prepared: Prepared, until, force):
    dtype = prepared.h.dtype
    target = prepared.end if until is None else until
    if force is None:
        force = jnp.zeros((prepared.mechanics.n,))
    return jnp.asarray(target, dtype), jnp.asarray(force, dtype)


def _restart(prepared: Prepared, start: Start) -> State:
    """The end of a run as the start of the next: counters begin anew.

    The end of another solver's run gives time, position and velocity.
    """
    if not isinstance(start, State):
        return start_at(prepared, start.t, start.q, start.v)
    zero = jnp.asarray(0, jnp.int32)
    return eqx.tree_at(
        lambda s: (s.event_count, s.flags, s.steps, s.iterations, s.residual, s.status),
        start,
        (
            *(zero,) * 4,
            jnp.zeros_like(start.residual),
            jnp.where(start.status == int(Status.MAX_EVENTS), 0, start.status),
        ),
    )
