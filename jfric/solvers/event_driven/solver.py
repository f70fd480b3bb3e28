"""The event-driven solver: ``init``, ``step`` and ``solve``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jfric.errors import ProblemError, nearest
from jfric.numerics.by_batch import Sizes
from jfric.numerics.choice import select
from jfric.numerics.loops import Adjoint, Shared
from jfric.numerics.polynomials import powers
from jfric.numerics.tracing import remark
from jfric.results.formulas import require_formulas
from jfric.results.pieces import Piece
from jfric.solvers.base import AbstractSolver, OnePass, begin_anew
from jfric.solvers.event_driven.exact_flow import ClosedFlow, ExactFlow, is_one_dof
from jfric.solvers.event_driven.flow_step import Step, Values
from jfric.solvers.event_driven.impacts import ImpactLimits
from jfric.solvers.event_driven.in_mode import shared_by_passes
from jfric.solvers.event_driven.kernels import (
    Kernel,
    lowered_from,
    require_kernel,
    require_lowered,
    require_one_dof,
    structural_constants,
)
from jfric.solvers.event_driven.passes import one_pass
from jfric.solvers.event_driven.prepared import Prepared, prepare
from jfric.solvers.event_driven.state import State, initial_state, start_watching, unlogged
from jfric.solvers.given_forces import ending_at, first_negative_force
from jfric.solvers.states import AbstractState
from jfric.system.assembly import assemble
from jfric.system.control import controllers
from jfric.system.features import taken_by, varying_parts
from jfric.system.joint_equations import joint_equations
from jfric.system.naming import with_numbers
from jfric.system.problem import Problem
from jfric.system.start import started
from jfric.system.start_checks import require_free_gaps

FlowName = Literal["auto", "exact", "runge-kutta"]
EnergyGain = Literal["stop", "allow"]
MethodName = Literal["dopri8", "dopri5", "tsit5"]
#: Settings that are names, and the names that are allowed.
NAMES = {
    "flow": get_args(FlowName),
    "method": get_args(MethodName),
    "energy_gain": get_args(EnergyGain),
}


class EventDriven(AbstractSolver):
    """Exact nonsmooth simulation: true stick, exact switching times.

    ``flow``: ``"exact"`` for modes with linear constant-coefficient equations under polynomial and
    harmonic loads, ``"runge-kutta"`` for any system, ``"auto"`` chooses the exact one where it
    applies. ``rtol``, ``method``: relative tolerance and diffrax solver (``dopri8``, ``dopri5``,
    ``tsit5``) of the Runge-Kutta flow. ``max_steps``: passes of the loop. ``max_events``: capacity
    of the event log. ``accumulation``: a contact closes for good when the remaining time of its
    accumulating sequence of impacts is below this fraction of the time since the start, or its
    flights are too low to be followed; the neglected part is of second order in this fraction.
    ``energy_gain``: treatment of an impact that would increase the energy, as is possible with
    Newton's restitution and friction: ``"stop"`` ends the run with a status, ``"allow"`` sets a
    flag and adds the gain up (``solution.final.energy_gained``). ``adjoint``: see
    :class:`AbstractSolver`.

    ``kernel``: the form of the computation; all forms give the same result. ``"general"`` takes any
    system. ``"one-dof"`` computes one degree of freedom with at most one friction element, with
    springs, stops and sliders, under piecewise constant loads, in closed form. ``"lowered"`` is the
    general form, decomposed into scalars by the program itself, in ``simulate``, ``observe`` and
    ``sweep``, for batches of systems with up to four contact rows: 4 to 18 times as fast, with
    derivatives 2 to 15 times; call :func:`jfric.compile_quickly` first. ``"auto"`` chooses among
    these: ``"one-dof"`` where it applies (except for ``adjoint="reverse"``), and ``"lowered"`` for
    batches in which it repays its compilation, after :func:`jfric.compile_quickly`. With one
    contact these are batches under ``vmap`` and sweeps of 64 trajectories and more; with two
    frictions, batches of 64 (50,000 where there are derivatives, whose compilation takes longer)
    and sweeps of 5,000; with three or four frictions 20,000 (50,000) and 100,000. Larger systems,
    with more than four degrees of freedom, take the general form.

    Raises :class:`jfric.ProblemError`, when a run begins, for a degree of freedom without mass and
    for settings that are not allowed. Sources: R. I. Leine, H. Nijmeijer, Dynamics and Bifurcations
    of Non-Smooth Mechanical Systems (2004), for laws and event-driven integration; F. Rouillier,
    P. Zimmermann, Efficient isolation of polynomial's real roots, J. Comp. Appl. Math. 162 (2004),
    for the certificate. The turning points of the problem of :class:`jfric.Problem` are exact::

        >>> solution = jfric.simulate(problem, jfric.EventDriven(), ts=jnp.linspace(0.0, 4.0, 5))
        >>> half = jnp.pi * (100.0 / 5000.0) ** 0.5
        >>> bool(jnp.allclose(solution.events.time[:3], half * jnp.arange(1, 4), rtol=1e-14))
        True
    """

    flow: FlowName = eqx.field(static=True, default="auto")
    rtol: float = eqx.field(static=True, default=1e-10)
    method: MethodName = eqx.field(static=True, default="dopri8")
    max_steps: int = eqx.field(static=True, default=100_000)
    max_events: int = eqx.field(static=True, default=256)
    accumulation: float = eqx.field(static=True, default=1e-6)
    energy_gain: EnergyGain = eqx.field(static=True, default="stop")
    adjoint: Adjoint = eqx.field(static=True, default="auto")
    kernel: Kernel = eqx.field(static=True, default="auto")

    name: ClassVar[str] = "event-driven"
    takes: ClassVar[frozenset[str]] = taken_by("event-driven")
    state_type: ClassVar[type[AbstractState]] = State
    compile_quickly: ClassVar[bool] = True
    has_polynomials: ClassVar[bool] = True
    logs_events: ClassVar[bool] = True

    @property
    def impact_limits(self) -> ImpactLimits:
        """Settings that impacts depend on."""
        return ImpactLimits(self.accumulation, self.energy_gain == "allow")

    def require(self, problem: Problem) -> None:
        """Raise :class:`jfric.ProblemError` for what this solver cannot represent."""
        super().require(problem)
        _require_constant_directions(problem)
        require_free_gaps(problem, "the solver event-driven")
        require_kernel(self.kernel)
        require_formulas(problem)
        if not 0.0 < self.accumulation < 1.0:
            raise ProblemError(f"accumulation: found {self.accumulation}, must lie between 0 and 1")
        for field, names in NAMES.items():
            if (chosen := getattr(self, field)) not in names:
                hint, (*others, last) = nearest(str(chosen), names), names
                allowed = f"{', '.join(others)} and {last}"
                raise ProblemError(f"{field}: found {chosen!r}{hint}, allowed are {allowed}")

    def prepare(self, problem: Problem, end=None) -> Prepared:
        """The assembled problem with its contact-space matrices."""
        prepared = prepare(problem)
        if end is None:
            return prepared
        return dataclasses.replace(prepared, last=jnp.asarray(end, prepared.end.dtype))

    def start(self, problem: Problem, prepared: Prepared) -> State:
        """State at the problem's start time; the first passes settle the modes."""
        return initial_state(problem, prepared)

    def restart(self, prepared: Prepared, start: State) -> State:
        """Initial state of a run that continues an earlier one, even if an event stopped it."""
        state = begin_anew(start)
        fresh = start_watching(prepared, state.q)
        watch = state.watch
        if fresh is not None and watch is not None and watch.side.shape == fresh.side.shape:
            fresh = watch._replace(count=fresh.count, stopped=fresh.stopped)
        elif (fresh, watch) == (None, None):
            return state
        landing = jnp.zeros((prepared.n_watched,), bool)
        return dataclasses.replace(state, watch=fresh, landing=landing)

    def unfinished(self, prepared: Prepared, state: State, until) -> Bool[Array, ""]:
        """Whether ``state`` is short of ``until`` [s], and no event has ended the run."""
        late = super().unfinished(prepared, state, until)
        return late if state.watch is None else late & ~state.watch.stopped

    def adapts(self, prepared: Prepared) -> bool:
        """Whether lengths of steps follow from their errors: those of the exact flow do not."""
        return not isinstance(_make_flow(self, prepared), ExactFlow)

    def arrived(self, state: State) -> Bool[Array, ""]:
        """Whether the last pass ended at an event."""
        return state.arrived

    def one_pass(
        self, problem: Problem, prepared: Prepared, state: State, ts, until, force
    ) -> OnePass:
        """Settle the modes, or move to the next event or the end of the step."""
        chosen = choose_pass(self, prepared)
        moment = first_negative_force(prepared.mechanics, state.t, until)

        def moved(s: State, records, on, until, *common):
            new, records, whole_step = chosen.call(s, records, ts, until, force, on, *common)
            return new, records, lambda new: piece_of_pass(problem, prepared, whole_step(), s, new)

        call = ending_at(moment, prepared.mechanics, until, moved)
        kernels = self.kernel == "lowered"
        known = structural_constants(problem, prepared) if kernels or chosen.closed_form else None
        return OnePass(call, known, kernels, chosen.shared)

    def present(
        self, problem: Problem, prepared: Prepared, state: State
    ) -> tuple[Problem, Prepared] | None:
        """Problem and prepared system with the numbers that events have changed; None where no
        event changes numbers."""
        if state.watch is None or not state.watch.numbers:
            return None
        now = with_numbers(problem, state.watch.numbers)
        return now, dataclasses.replace(prepare(now), last=prepared.last)

    def at_changes(self, prepared: Prepared, times: Float[Array, " k"]) -> Prepared:
        """``prepared`` with breakpoints of a pass at ``times`` [s]."""
        breakpoints = jnp.concatenate([prepared.breakpoints, times])
        return dataclasses.replace(prepared, breakpoints=breakpoints)

    def refined(self, problem: Problem) -> EventDriven | None:
        """Copy of this solver with a tolerance 100 times as small; None where the flow is exact."""
        if self.flow != "runge-kutta" and assemble(problem).has_linear_modes:
            return None
        return dataclasses.replace(self, rtol=0.01 * self.rtol)

    def for_batch(self, problem: Problem, count: int) -> EventDriven:
        """This solver, or with ``kernel="auto"`` its lowered form where ``count`` trajectories
        repay the compilation."""
        found = self.under_vmap(problem) if self.adjoint == "none" else None
        return self if found is None or count < found[1].sweep else found[0]

    def under_vmap(self, problem: Problem) -> tuple[EventDriven, Sizes] | None:
        """Lowered form and batch sizes for it, for small systems with ``kernel="auto"``."""
        if self.kernel != "auto" or self.adjoint == "reverse" or controllers(problem):
            return None

        def pays(prepared: Prepared) -> Sizes | None:
            return None if choose_pass(self, prepared).closed_form else lowered_from(prepared)

        sizes = _known(problem, pays)
        return None if sizes is None else (dataclasses.replace(self, kernel="lowered"), sizes)

    def has_small_passes(self, problem: Problem) -> bool:
        """Whether the motion is computed in closed form."""
        return _known(problem, lambda prepared: choose_pass(self, prepared).closed_form)


def _known(problem: Problem, ask: Callable[[Prepared], Any]) -> Any:
    """Answer of ``ask`` by the structure of the assembled problem. No arrays are computed, as each
    operation would be compiled separately."""
    found = []
    eqx.filter_eval_shape(lambda problem: found.append(ask(prepare(started(problem)))), problem)
    return found[0]


class Pass(NamedTuple):
    """One pass, ``call(state, records, ts, target, force, on)``, and its properties.

    ``closed_form``: whether the motion is computed in closed form: in scalars, with few numbers for
    each trajectory of a batch. ``shared``: see :class:`jfric.solvers.base.OnePass`.
    """

    call: Callable
    closed_form: bool
    shared: Shared | None = None


def choose_pass(solver: EventDriven, prepared: Prepared) -> Pass:
    """Pass with the flow in closed form if it applies; its search for events has no reverse
    mode."""
    flow, kernel, events = _make_flow(solver, prepared), solver.kernel, prepared.events is not None
    one_dof = is_one_dof(prepared) and isinstance(flow, ExactFlow)
    reverse = solver.adjoint == "reverse"
    if kernel == "one-dof":
        require_one_dof(one_dof=one_dof, reverse=reverse, events=events)
    closed = one_dof and kernel in ("auto", "one-dof") and not (reverse or events)
    if closed:
        flow = ClosedFlow(derivatives=solver.adjoint != "none")
    elif kernel == "lowered":
        require_lowered(prepared, reverse=reverse)
        flow = dataclasses.replace(flow, lowered=True)
    call = functools.partial(one_pass, prepared, flow, limits=solver.impact_limits)
    return Pass(call, closed_form=closed, shared=shared_by_passes(prepared, flow))


def _make_flow(solver: EventDriven, prepared: Prepared):
    linear = prepared.mechanics.has_linear_modes
    if solver.flow == "exact" and not linear:
        mechanics = prepared.mechanics
        laws = [law for law in mechanics.laws if not law.velocity_independent]
        parts = [type(e).__name__ for e in (*mechanics.nonlinear, *laws)]
        shown = {"Energies": "Lagrangian", "PreparedCurve": "FrictionCurve"}
        parts = [shown.get(x, x) for x in parts]
        parts += ["friction in a plane"] if mechanics.planes else []
        parts += mechanics.varying.labels if mechanics.varying is not None else ()
        names = ", ".join(dict.fromkeys(parts))
        raise ProblemError(
            f"flow: 'exact' needs equations that are linear in every mode, but {names} is not; "
            "use flow='runge-kutta' or 'auto'"
        )
    exact = solver.flow == "exact" or (solver.flow == "auto" and linear)
    if prepared.D.dtype == jnp.float32:
        _remark_on_single_precision("exact" if exact else "runge-kutta")
    if exact:
        return ExactFlow()
    # Imported late: diffrax doubles the import time of the package.
    from jfric.solvers.event_driven.runge_kutta_flow import RungeKuttaFlow

    return RungeKuttaFlow(solver.rtol, solver.method, derivatives=solver.adjoint != "none")


def _remark_on_single_precision(flow: str) -> None:
    """Remark that float32 limits the accuracy."""
    accuracy = "1e-5" if flow == "exact" else "1e-4"
    remark(
        f"the {flow} flow runs in float32: results are accurate to about {accuracy}; "
        "for more, call jax.config.update('jax_enable_x64', True) first"
    )


def _require_constant_directions(problem: Problem) -> None:
    """Raise :class:`jfric.ProblemError` for friction with a factor of position, or with a part that
    fades, in a system with joints or whose mass matrix or directions depend on position."""
    friction = problem.labelled("friction").items()
    factors = [f"{k}.position" for k, x in friction if x.position is not None]
    factors += [k for k, x in friction if x.fade is not None]
    joints = [e.label for e in joint_equations(problem)] if factors else []
    for part in (*varying_parts(problem), *joints) if factors else ():
        raise ProblemError(
            f"{factors[0]}: cannot be combined with {part}, which is a joint or depends on "
            "position, in the solver event-driven"
        )


def piece_of_pass(
    problem: Problem, prepared: Prepared, step: Step, old: State, new: State
) -> Piece:
    """The part of ``step`` between two states, with its coefficients scaled to ``[0, 1]``."""
    nt, nd = prepared.nt, prepared.mechanics.n_dofs
    step = step.as_polynomials()
    h = new.t - old.t
    # A step that was not taken may be infinitely long.
    moved = h > 0
    fraction = select(moved, h / select(moved, step.h, 1.0), 0.0)
    scale = powers(fraction, step.table.shape[0])[:, None]
    p = step.polynomials(prepared)

    events = new.event_count - old.event_count
    recorded = old.impacted & (old.due <= old.t)
    own = q_before = None
    if old.watch is not None and new.watch is not None:
        own = old.watch.count, new.watch.count
        q_before = select(unlogged(old), old.watch.q_before, old.q)[:nd]
    return Piece(
        t=old.t,
        end=new.t,
        h=h,
        q=p.q[:, :nd] * scale,
        v=p.v[:, :nd] * scale,
        a=p.a[:, :nd] * scale,
        lambda_t=p.lambda_t * scale,
        lambda_n=p.lambda_n * scale,
        mode=new.recorded[:nt],
        segment=new.recorded[nt:],
        events_before=old.event_count,
        events=events,
        impacts=select(events > 0, jnp.sum(recorded, dtype=jnp.int32), 0),
        event_time=old.t,
        problem=problem,
        mechanics=prepared.mechanics,
        v_before=select(unlogged(old), old.v_before, old.v)[:nd],
        own=own,
        q_before=q_before,
        z=_states(prepared, old, p) * scale if prepared.mechanics.states else None,
    )


def _states(prepared: Prepared, old: State, p: Values):
    """States of elements as polynomials on the step."""
    own = p.v[:, prepared.mechanics.n_dofs :]
    if not p.elongation.shape[1]:
        return own
    # First the constant terms, then those that vanish at the start.
    piecewise = prepared.mechanics.piecewise
    first = piecewise.elongations(old.inner, p.elongation[0])
    inner = old.inner._replace(anchor=jnp.zeros_like(old.anchor))
    rest = jax.vmap(lambda x: piecewise.elongations(inner, x))(p.elongation[1:])
    nothing = jax.vmap(lambda x: piecewise.elongations(inner, x))(jnp.zeros_like(p.elongation[1:]))
    return jnp.concatenate([jnp.concatenate([first[None], rest - nothing]), own], axis=1)
