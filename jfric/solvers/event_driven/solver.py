"""The event-driven solver: ``init``, ``step`` and ``solve``."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ClassVar, Literal, NamedTuple, get_args

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.errors import ProblemError, nearest
from jfric.solution import Solution, event_log
from jfric.solvers.event_driven.exact_flow import ExactFlow
from jfric.solvers.event_driven.impacts import ImpactLimits
from jfric.solvers.event_driven.one_contact import (
    TAYLOR,
    Flow,
    invariants,
    is_one_contact,
    one_contact_pass,
)
from jfric.solvers.event_driven.one_dof import is_one_dof, one_dof_pass
from jfric.solvers.event_driven.passes import one_pass
from jfric.solvers.event_driven.prepared import Prepared, prepare
from jfric.solvers.event_driven.recording import empty_records, outputs
from jfric.solvers.event_driven.state import State, initial_state
from jfric.solvers.loops import Adjoint, keep, require_adjoint, run_passes
from jfric.status import Status
from jfric.system.problem import Problem
from jfric.system.validation import require_inertia

FlowName = Literal["auto", "exact", "runge-kutta"]
EnergyGain = Literal["stop", "allow"]
ENERGY_GAIN = get_args(EnergyGain)


class StepInfo(NamedTuple):
    """Diagnostics of one pass: length [s], whether time advanced, events so far."""

    h: Float[Array, ""]
    advanced: Bool[Array, ""]
    event_count: Int[Array, ""]


class EventDriven(eqx.Module):
    """Exact nonsmooth simulation: true stick, exact switching times.

    ``flow``: ``"exact"`` for modes with linear constant-coefficient equations under polynomial
    and harmonic loads, ``"runge-kutta"`` for any system, ``"auto"`` chooses the exact one where
    it applies. ``rtol``, ``method``: relative tolerance and diffrax solver
    (``dopri8``, ``dopri5``, ``tsit5``) of the Runge-Kutta flow. ``max_steps``: passes of the
    loop. ``max_events``: capacity of the event log. ``accumulation``: a contact closes for good
    when the time that its accumulating sequence of impacts would still take is below this part of
    the time since the start; what is neglected is of second order in it. ``energy_gain``: what
    becomes of an impact that would increase the energy, as Newton's restitution with friction may:
    ``"stop"`` ends the run with a status, ``"allow"`` sets a flag and adds the gain up
    (``solution.final.energy_gained``). ``adjoint``: ``"auto"``
    allows all of ``jvp``, ``jacfwd``, ``grad`` and ``jacrev`` at a cost that grows with the
    parameters (more than 16 numbers: ``jvp`` and ``jacfwd`` only); ``"reverse"`` allows ``grad``
    and ``jacrev``, for many parameters; ``"forward"`` allows ``jvp`` and ``jacfwd``; ``"none"``
    allows none of them. Unless ``adjoint`` is ``"reverse"``, one contact with up to three degrees
    of freedom is simulated in scalars, and one degree of freedom with one friction element under
    piecewise constant loads in closed form.
    """

    flow: FlowName = eqx.field(static=True, default="auto")
    rtol: float = eqx.field(static=True, default=1e-10)
    method: str = eqx.field(static=True, default="dopri8")
    max_steps: int = eqx.field(static=True, default=100_000)
    max_events: int = eqx.field(static=True, default=256)
    accumulation: float = eqx.field(static=True, default=1e-6)
    energy_gain: EnergyGain = eqx.field(static=True, default="stop")
    adjoint: Adjoint = eqx.field(static=True, default="auto")

    #: What it can be started from, and how it is best compiled: many small kernels.
    state_type: ClassVar[type] = State
    compile_quickly: ClassVar[bool] = True

    @property
    def impact_limits(self) -> ImpactLimits:
        """What impacts have to know of these settings."""
        return ImpactLimits(self.accumulation, self.energy_gain == "allow")

    def require(self, problem: Problem) -> None:
        """Raise :class:`jfric.ProblemError` for what this solver cannot represent."""
        require_inertia(problem)
        require_adjoint(self.adjoint)
        if not 0.0 < self.accumulation < 1.0:
            raise ProblemError(f"accumulation: found {self.accumulation}, must lie between 0 and 1")
        if self.energy_gain not in ENERGY_GAIN:
            found = f"found {self.energy_gain!r}{nearest(str(self.energy_gain), ENERGY_GAIN)}"
            raise ProblemError(f"energy_gain: {found}, allowed are {' and '.join(ENERGY_GAIN)}")

    def init(self, problem: Problem) -> State:
        """State at the problem's start time."""
        self.require(problem)
        return initial_state(problem, prepare(problem))

    def step(
        self, problem: Problem, state: State, *, until=None, force=None
    ) -> tuple[State, StepInfo]:
        """One pass: settle the modes at this instant, or advance towards ``until``.

        ``until`` [s]: time not to be passed (default: the problem's end). ``force`` (n,) [N, N m]:
        an additional generalised force, constant over the pass; for control loops.
        """
        prepared = prepare(problem)
        records = empty_records(prepared, 0, 0)
        target, force = _defaults(prepared, until, force)
        on = (state.status == int(Status.OK)) & (state.t < target)
        flow = _make_flow(self, prepared)
        new, _, _ = one_pass(
            prepared,
            flow,
            state,
            records,
            jnp.zeros((0,), state.t.dtype),
            target,
            force,
            on,
            limits=self.impact_limits,
        )
        new = keep(on, new, state)
        return new, StepInfo(new.t - state.t, new.t > state.t, new.event_count)

    def advance(self, problem: Problem, state: State, until, *, force=None) -> State:
        """Pass after pass up to the time ``until`` [s] under a constant extra ``force`` (n,)."""
        prepared = prepare(problem)
        target, force = _defaults(prepared, until, force)
        ts = jnp.zeros((0,), state.t.dtype)
        state, _ = _run(self, prepared, state, empty_records(prepared, 0, 0), ts, target, force)
        return state

    def solve(self, problem: Problem, ts, start: State | None, end) -> Solution:
        """Simulate to the end; see :func:`jfric.simulate`."""
        prepared = prepare(problem)
        state = initial_state(problem, prepared) if start is None else _restart(start)
        target, force = _defaults(prepared, end, None)
        ts = jnp.zeros((0,)) if ts is None else jnp.asarray(ts)
        ts = ts.astype(state.t.dtype)
        # A last output that rounding put behind the end belongs to the end.
        slack = 4 * jnp.finfo(ts.dtype).eps * jnp.abs(target)
        ts = jnp.where((ts > target) & (ts <= target + slack), target, ts)
        records = empty_records(prepared, ts.shape[0], self.max_events)
        state, records = _run(self, prepared, state, records, ts, target, force)
        status = state.status
        late = (status == int(Status.OK)) & (state.t < target)
        status = jnp.where(late, int(Status.MAX_STEPS), status)
        full = (status == int(Status.OK)) & (state.event_count > self.max_events)
        full = full & (self.max_events > 0)
        status = jnp.where(full, int(Status.MAX_EVENTS), status)
        mechanics, out = prepared.mechanics, outputs(prepared, records, ts.shape[0])
        log = event_log(
            prepared.mechanics.n,
            records.event_values[: self.max_events],
            records.event_modes[: self.max_events],
            state.event_count,
        )
        return Solution(
            ts=ts,
            q=out.q,
            v=out.v,
            a=out.a,
            lambda_n=out.lambda_n,
            lambda_t=out.lambda_t,
            mode=out.mode,
            segment=out.segment,
            events=log,
            status=status,
            flags=state.flags,
            final=state,
            steps=state.steps,
            axes=mechanics.axes,
            names=mechanics.contact_names + mechanics.piecewise.names,
            segment_labels=mechanics.piecewise.labels,
        )


def _run(solver: EventDriven, prepared: Prepared, state: State, records, ts, target, force):
    one = choose_pass(solver, prepared)
    first = state.steps

    def active(s: State):
        within = s.steps - first < solver.max_steps
        return (s.status == int(Status.OK)) & (s.t < target) & within

    def body(s: State, r, on):
        return one.call(s, r, ts, target, force, on)[:2]

    return run_passes(
        body,
        active,
        state,
        records,
        max_steps=solver.max_steps,
        adjoint=solver.adjoint,
        packed=one.packed,
        given=prepared,
    )


class Pass(NamedTuple):
    """``call(state, records, ts, target, force, on)`` is one pass; ``packed`` as in the loop.

    ``small``: whether it holds few numbers of each trajectory of a batch.
    """

    call: Callable
    packed: bool
    small: bool = False


def choose_pass(solver: EventDriven, prepared: Prepared) -> Pass:
    """A pass in scalars where one applies; their search for events has no reverse mode."""
    flow = _make_flow(solver, prepared)
    if solver.adjoint != "reverse":
        derivatives = solver.adjoint != "none"
        if is_one_dof(prepared) and isinstance(flow, ExactFlow):
            call = functools.partial(one_dof_pass, prepared, derivatives=derivatives)
            return Pass(call, packed=False, small=True)
        if is_one_contact(prepared):
            call = functools.partial(
                one_contact_pass,
                prepared,
                invariants(prepared),
                flow=_in_scalars(flow, prepared),
                derivatives=derivatives,
                limits=solver.impact_limits,
            )
            return Pass(call, packed=False)
    call = functools.partial(one_pass, prepared, flow, limits=solver.impact_limits)
    return Pass(call, packed=True)


def _in_scalars(flow, prepared: Prepared) -> Flow:
    if isinstance(flow, ExactFlow):
        return TAYLOR
    from jfric.solvers.event_driven.scalar_runge_kutta import other_forces, runge_kutta_step

    return Flow(functools.partial(runge_kutta_step, flow), 0.5, other_forces(prepared))


def _make_flow(solver: EventDriven, prepared: Prepared):
    linear = prepared.mechanics.has_linear_modes
    if solver.flow == "exact" and not linear:
        mechanics = prepared.mechanics
        laws = [law for law in mechanics.laws if not law.velocity_independent]
        names = ", ".join(type(e).__name__ for e in (*mechanics.nonlinear, *laws))
        raise ProblemError(
            f"flow: 'exact' needs equations that are linear in every mode, but {names} is not; "
            "use flow='runge-kutta' or 'auto'"
        )
    if solver.flow not in ("auto", "exact", "runge-kutta"):
        raise ProblemError(
            f"flow: found {solver.flow!r}, allowed are 'auto', 'exact' and 'runge-kutta'"
        )
    exact = solver.flow == "exact" or (solver.flow == "auto" and linear)
    if prepared.D.dtype == jnp.float32:
        warn_single_precision("exact" if exact else "runge-kutta")
    if exact:
        return ExactFlow()
    # Imported late: diffrax doubles the import time of the package.
    from jfric.solvers.event_driven.runge_kutta_flow import METHODS, RungeKuttaFlow

    if solver.method not in METHODS:
        raise ProblemError(f"method: found {solver.method!r}, allowed are {', '.join(METHODS)}")
    stages = "checkpointed" if solver.adjoint == "reverse" else "lax"
    return RungeKuttaFlow(solver.rtol, solver.method, stages)


@functools.cache
def warn_single_precision(flow: str) -> None:
    """Say once for each flow that float32 limits the accuracy."""
    accuracy = "1e-5" if flow == "exact" else "1e-4"
    warnings.warn(
        f"the {flow} flow runs in float32: results are accurate to about {accuracy}; "
        "for more, call jax.config.update('jax_enable_x64', True) first",
        stacklevel=2,
    )


def _defaults(prepared: Prepared, until, force):
    dtype = prepared.D.dtype
    target = prepared.end if until is None else until
    if force is None:
        force = jnp.zeros((prepared.mechanics.n,))
    return jnp.asarray(target, dtype), jnp.asarray(force, dtype)


def _restart(state: State) -> State:
    """The end of a run as the start of the next: counters begin anew."""
    zero = jnp.asarray(0, jnp.int32)
    return eqx.tree_at(
        lambda s: (s.event_count, s.flags, s.steps, s.status),
        state,
        (zero, zero, zero, jnp.where(state.status == int(Status.MAX_EVENTS), 0, state.status)),
    )
