"""Base of every solver: ``require``, ``init``, ``step``, ``advance``, ``solve``, and facts."""

# No annotations as text here: equinox must see which of them are abstract.
import abc
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.errors import ProblemError
from jfric.numerics.by_batch import (
    NO_REVERSE,
    Sizes,
    by_batch,
    forward_only,
    with_sensitivities,
    without_derivatives,
)
from jfric.numerics.choice import select
from jfric.numerics.loops import Shared, keep, require_adjoint, run_passes
from jfric.numerics.lowering import Constants
from jfric.numerics.tolerances import near, sooner
from jfric.numerics.tracing import collecting_later
from jfric.results.dense import Dense, coefficients, dense_from_outputs, empty_dense, store
from jfric.results.solution import Solution
from jfric.results.status import Flag, Status
from jfric.solvers.control_loops import (
    outputs_are_too_late,
    pieces,
    sampled,
    samples_of,
    start_loops,
    values_of,
    with_commands,
)
from jfric.solvers.given_forces import status_of_numbers
from jfric.solvers.records import Records, empty_records, slots_per_pass, solution_of
from jfric.solvers.states import AbstractState, MotionState, StepInfo
from jfric.system.assembly import assemble
from jfric.system.control import command_names, controllers, driven, require_periods
from jfric.system.event import event_labels
from jfric.system.features import CONSTANT, require_features
from jfric.system.function_checks import refuse_jumping_bases
from jfric.system.functions import hold
from jfric.system.inertia import require_inertia
from jfric.system.mechanics import Mechanics
from jfric.system.model import build
from jfric.system.problem import Problem
from jfric.system.start import started

if TYPE_CHECKING:
    from jfric.results.pieces import Piece

#: A remainder of a step below this fraction is rounding error.
REST = 1e-9


class Prepared(NamedTuple):
    """Data that all steps share: the assembled system, and the end of the run [s]."""

    mechanics: Mechanics
    end: Float[Array, ""]


class OnePass(NamedTuple):
    """One pass of a solver's loop, to be repeated."""

    #: ``call(state, records, on)``: the state after the pass, the buffers (written only where
    #: ``on``), and a function that gives the :class:`jfric.results.pieces.Piece` on which the state
    #: moved, or None.
    call: Callable[..., tuple[Any, Records, Callable[[], "Piece"] | None]]
    #: Known entries of the arrays that the pass uses, where the loop is to be lowered to scalars,
    #: and whether many passes are to be one kernel, see :func:`jfric.numerics.loops.run_passes`.
    constants: Constants | None = None
    kernels: bool = True
    #: Data that passes have in common, see there: a further argument of ``call``, which computes it
    #: itself where it is left out.
    shared: Shared | None = None


class AbstractSolver(eqx.Module):
    """A solver: its fields are its settings, its class attributes are facts about the solver.

    A subclass has the fields ``max_steps`` (bound on the passes of its loop) and ``adjoint``, and
    ``max_events`` if it has an event log; it defines :meth:`one_pass`. :meth:`init`, :meth:`step`,
    :meth:`advance` and :meth:`solve` follow. :class:`jfric.AbstractFixedStep` is a shorter way to
    write a solver. :func:`jfric.simulate`, :func:`jfric.observe`, :func:`jfric.sweep` and
    :func:`jfric.fit` take any solver.

    ``adjoint``: which derivatives its runs have. ``"auto"``: ``jvp``, ``jacfwd``, ``grad`` and
    ``jacrev``, at a cost that grows with the parameters (more than 16 numbers: ``jvp`` and
    ``jacfwd`` only); ``"reverse"``: ``grad`` and ``jacrev``, for many parameters; ``"forward"``:
    ``jvp`` and ``jacfwd``; ``"none"``: none of them. Example: see :class:`jfric.EventDriven`.
    """

    max_steps: eqx.AbstractVar[int]
    adjoint: eqx.AbstractVar[Any]

    #: Name of the solver in tables; the name of its class if empty.
    name: ClassVar[str] = ""
    #: Type of the states from which a run can start.
    state_type: ClassVar[type[AbstractState]] = MotionState
    #: Whether its programs consist of many small kernels, which other compiler options suit.
    compile_quickly: ClassVar[bool] = False
    #: Whether a pass moves along a :class:`jfric.results.pieces.Piece`: dense output, extrema and
    #: integrals are then the solver's own, and sweeps give each trajectory a budget of passes.
    has_polynomials: ClassVar[bool] = False
    #: Whether positions may jump, as those of a system without inertia do under a load that jumps.
    positions_jump: ClassVar[bool] = False
    #: Whether it logs changes of mode; it then has the field ``max_events``.
    logs_events: ClassVar[bool] = False
    #: Features of problems that the solver takes, by their names in :mod:`jfric.system.features`.
    takes: ClassVar[frozenset[str]] = frozenset(
        CONSTANT - {"events", "reactions"} | {"controllers"}
    )
    #: One sentence on the error of its derivatives; empty if they are exact.
    remark: ClassVar[str] = ""

    def require(self, problem: Problem) -> None:
        """Raise :class:`jfric.ProblemError` for what this solver cannot represent."""
        require_inertia(problem)
        refuse_jumping_bases(problem, f"the solver {self.label}")
        require_features(problem, f"the solver {self.label}", self.takes)
        require_periods(problem)
        require_adjoint(self.adjoint)

    def require_duration(self, duration: float) -> None:
        """Raise :class:`jfric.ProblemError` where ``duration`` [s] takes too many steps."""

    def require_start(self, start: Any) -> None:
        """Raise :class:`jfric.ProblemError` for a state that another kind of solver left."""
        if isinstance(start, self.state_type):
            return
        kind = f" ({start.origin})" if isinstance(start, AbstractState) else ""
        raise ProblemError(
            f"start: found a {type(start).__name__}{kind}, must be solution.final of an earlier "
            f"run with {type(self).__name__}"
        )

    @property
    def label(self) -> str:
        """Name in tables and messages."""
        return self.name or type(self).__name__

    def prepare(self, problem: Problem, end=None) -> Any:
        """Data that all steps share, with the fields ``mechanics`` and ``end`` [s] (by default the
        problem's end)."""
        problem = problem.resolved()
        mechanics = assemble(problem)
        end = problem.time.end if end is None else end
        return Prepared(mechanics, jnp.asarray(end, mechanics.K.dtype))

    def start(self, problem: Problem, prepared: Any) -> Any:
        """State at the problem's start time."""
        dtype = prepared.mechanics.K.dtype
        t, q, v = (x.astype(dtype) for x in started(problem).start())
        zero = jnp.asarray(0, jnp.int32)
        return MotionState(
            t=t,
            q=q,
            v=v,
            status=jnp.asarray(int(Status.OK), jnp.int32),
            flags=zero,
            steps=zero,
            event_count=zero,
        )

    def restart(self, prepared: Any, start: Any) -> Any:
        """Initial state of a run that continues an earlier one from its final state ``start``."""
        del prepared
        return begin_anew(start)

    def begin(self, problem: Problem, prepared: Any, until, start: Any = None) -> Any:
        """Initial state of a run to ``until`` [s]: at the problem's start, or where another run
        ended. Its status is an error where the numbers of the problem are not allowed."""
        q = None
        if start is None:
            state = self.start(problem, prepared)
            q = state.q
        else:
            state = self.restart(prepared, start)
        if controllers(problem) and getattr(state, "loops", None) is None:
            state = dataclasses.replace(state, loops=start_loops(problem, state))
        wrong = status_of_numbers(problem, prepared.mechanics, state.t, until, q)
        late = outputs_are_too_late(problem)
        wrong = select(late, jnp.asarray(int(Status.OUT_OF_BOUNDS), jnp.int32), wrong)
        status = select(_is_ok(state), wrong, state.status)
        return eqx.tree_at(lambda s: s.status, state, status)

    @abc.abstractmethod
    def one_pass(self, problem: Problem, prepared: Any, state: Any, ts, until, force) -> OnePass:
        """One pass of a run from ``state`` up to ``until`` [s], with outputs at ``ts`` (m,) [s],
        under an extra constant ``force`` (n,) [N, N m]."""

    def next_pass(self, problem: Problem, prepared: Any, state: Any, ts, until, force) -> OnePass:
        """One pass as by :meth:`one_pass`, with the controllers of the problem: it begins with the
        samples that are due, and ends before the next one."""
        if getattr(state, "loops", None) is None and self.present(problem, prepared, state) is None:
            return self.one_pass(problem, prepared, state, ts, until, force)

        def call(s, records, on):
            now, system = self.present(problem, prepared, s) or (problem, prepared)
            moving, reach = s, until
            if (loops := getattr(s, "loops", None)) is not None:
                s = sampled(now, s)
                loops = s.loops
                moving, reach = dataclasses.replace(s, loops=None), sooner(until, loops.next)
                now, system = hold((now, system), pieces(loops))
                system = self.at_changes(system, jnp.stack([loops.last, loops.next]))
            one = self.one_pass(now, system, moving, ts, reach, force)
            new, found, piece = one.call(moving, records, on)
            if loops is None:
                return new, found, piece
            found = with_commands(problem, found, records.written, loops, self.slots(len(ts)))
            return dataclasses.replace(new, loops=loops), found, piece

        return OnePass(call)

    def present(self, problem: Problem, prepared: Any, state: Any) -> tuple[Problem, Any] | None:
        """Problem and data of a pass where events have changed numbers; None where none does."""
        del problem, prepared, state

    def at_changes(self, prepared: Any, times: Float[Array, " k"]) -> Any:
        """``prepared`` for a pass at whose ends, ``times`` [s], functions of time may jump."""
        del times
        return prepared

    def slots(self, count: int) -> int:
        """Outputs of ``count`` that one pass may write."""
        return slots_per_pass(count)

    def arrived(self, state: Any) -> Bool[Array, ""] | None:
        """Whether the last pass ended at an event, whose time depends on the parameters; None where
        the solver does not know of events."""
        del state

    def unfinished(self, prepared: Any, state: Any, until) -> Bool[Array, ""]:
        """Whether ``state`` is short of ``until`` [s]."""
        del prepared
        return state.t < until

    def outcome(self, prepared: Any, state: Any, until) -> Int[Array, ""]:
        """Status of a run that ended in ``state`` and was to reach ``until`` [s]."""
        late = _is_ok(state) & self.unfinished(prepared, state, until)
        return select(late, int(Status.MAX_STEPS), state.status)

    def run_to(
        self, problem: Problem, prepared: Any, state: Any, records: Records, ts, until, force
    ) -> tuple[Any, Records]:
        """Run as by :meth:`run`, with the controllers of the problem also where a solver has a
        method of its own."""
        if getattr(state, "loops", None) is None or type(self).run is AbstractSolver.run:
            return self.run(problem, prepared, state, records, ts, until, force)

        def active(carry):
            return _is_ok(carry[0]) & self.unfinished(prepared, carry[0], until)

        def between(carry):
            s, old = carry
            s = sampled(problem, s)
            now, system = hold((problem, prepared), pieces(s.loops))
            reach = sooner(until, s.loops.next)
            moving = dataclasses.replace(s, loops=None)
            new, found = self.run(now, system, moving, old, ts, reach, force)
            # Outputs of other samples are no part of this run.
            first = (ts == s.t) & (s.t == state.t)
            inside = (((ts > s.t) | first) & (ts <= new.t))[:, None]
            found = found._replace(
                commands=jnp.broadcast_to(values_of(problem, s.loops), old.commands.shape)
            )
            rows = {
                name: x.at[: len(ts)].set(
                    select(inside, getattr(found, name)[: len(ts)], x[: len(ts)])
                )
                for name, x in old._asdict().items()
                if name in ("output_values", "output_modes", "commands")
            }
            found = found._replace(**rows)
            return dataclasses.replace(new, loops=s.loops), found

        return jax.lax.while_loop(active, between, (state, records))

    @collecting_later()
    def run(
        self, problem: Problem, prepared: Any, state: Any, records: Records, ts, until, force
    ) -> tuple[Any, Records]:
        """Run passes to ``until`` [s]; returns the state there and the filled buffers."""
        one = self.next_pass(problem, prepared, state, ts, until, force)
        lengths = None
        if self.adjoint == "reverse" and self.adapts(prepared):
            lengths = self._lengths(problem, prepared, state, records, ts, until, force)

        def body(s, r: Records, on, *common):
            new, r, piece = one.call(s, r, on, *common)
            new = one_sided(self, s, new, until, near_outputs(ts, r.written))
            if lengths is not None:
                new = dataclasses.replace(new, h_max=lengths[s.steps - state.steps])
            if r.dense is not None and piece is not None:
                r = r._replace(dense=store(r.dense, piece(), on & (new.t > s.t)))
            return new, r

        return run_passes(
            body,
            self._active(prepared, state, until),
            state,
            records,
            max_steps=self.max_steps,
            adjoint=self.adjoint,
            given=prepared,
            constants=one.constants,
            kernels=one.kernels,
            shared=one.shared,
        )

    def _active(self, prepared: Any, state: Any, until) -> Callable:
        """Whether a run that began in ``state`` goes on."""
        first = state.steps - samples_of(state)

        def active(s):
            # Passes that end at a sample do not count.
            within = s.steps - samples_of(s) - first < self.max_steps
            return _is_ok(s) & self.unfinished(prepared, s, until) & within

        return active

    def adapts(self, prepared: Any) -> bool:
        """Whether the field ``h_max`` of states, the length of the next step, follows from the
        error of the last one. This error may be one of rounding, and another one where a pass is
        computed again. In reverse mode all lengths are therefore found first."""
        del prepared
        return False

    def _lengths(
        self, problem: Problem, prepared: Any, state: Any, records: Records, ts, until, force
    ) -> Float[Array, " s"]:
        """``h_max`` after each pass of a run."""
        known = (problem, prepared, state, records, ts, until, force)
        arrays, rest = eqx.partition(known, eqx.is_array)
        known = eqx.combine(jax.lax.stop_gradient(arrays), rest)
        problem, prepared, state, records, ts, until, force = known
        one = self.next_pass(problem, prepared, state, ts, until, force)

        def body(s, both, on, *common):
            r, lengths = both
            new, r, _ = one.call(s, r, on, *common)
            place = select(on, s.steps - state.steps, self.max_steps)
            return new, (r, lengths.at[place].set(new.h_max, mode="drop"))

        lengths = jnp.full((self.max_steps,), jnp.inf, state.h_max.dtype)
        _, (_, lengths) = run_passes(
            body,
            self._active(prepared, state, until),
            state,
            (records, lengths),
            max_steps=self.max_steps,
            adjoint="none",
            given=prepared,
            shared=one.shared,
        )
        return jax.lax.stop_gradient(lengths)

    def refined(self, problem: Problem) -> Self | None:
        """Copy of this solver with finer steps or tolerances; None where the steps are exact, or
        where the solver does not know finer ones."""
        del problem

    def has_small_passes(self, problem: Problem) -> bool:
        """Whether a pass holds few numbers for each trajectory of a batch."""
        del problem
        return False

    def lean(self, *, events: bool) -> Self:
        """Copy of this solver without derivatives, with a log only if ``events`` are needed."""
        changes: dict[str, Any] = {"adjoint": "none"}
        if self.logs_events and not events:
            changes["max_events"] = 0
        return dataclasses.replace(self, **changes)

    def for_batch(self, problem: Problem, count: int) -> Self:
        """This solver in the form of computation that pays for ``count`` trajectories."""
        del problem, count
        return self

    def under_vmap(self, problem: Problem) -> tuple[Self, Sizes] | None:
        """Another form of this solver's computation, and batch sizes for which it pays; or None."""
        del problem

    @property
    def event_capacity(self) -> int:
        """Rows of the event log."""
        return getattr(self, "max_events") if self.logs_events else 0  # noqa: B009

    def init(self, problem: Problem) -> Any:
        """State at the problem's start time."""
        problem = build(problem)
        self.require(problem)
        problem = driven(started(problem))
        return self.begin(problem, self.prepare(problem), problem.time.end)

    def step(self, problem: Problem, state: Any, *, until=None, force=None) -> tuple[Any, StepInfo]:
        """One pass: settle the modes at this instant, or advance towards ``until``.

        ``until`` [s]: time that the pass does not go beyond (default: the problem's end). ``force``
        (n,) [N, N m]: an additional generalised force, constant over the pass; for control loops.
        """
        problem = driven(started(problem))
        prepared = self.prepare(problem)
        until, force = _limits(prepared, until, force)
        ts = jnp.zeros((0,), state.t.dtype)
        on = _is_ok(state) & self.unfinished(prepared, state, until)
        one = self.next_pass(problem, prepared, state, ts, until, force)
        new, _, _ = one.call(state, empty_records(prepared.mechanics), on)
        new = keep(on, new, state)
        return new, StepInfo(new.t - state.t, new.t > state.t, new.steps, new.event_count)

    def advance(self, problem: Problem, state: Any, until, *, force=None) -> Any:
        """Run passes up to the time ``until`` [s] under a constant extra ``force`` (n,)."""
        problem = driven(started(problem))
        prepared = self.prepare(problem)
        until, force = _limits(prepared, until, force)
        ts = jnp.zeros((0,), state.t.dtype)
        records = empty_records(prepared.mechanics)
        return self.run_to(problem, prepared, state, records, ts, until, force)[0]

    def solve(self, problem: Problem, ts, start: Any, end, *, dense: int = 0) -> Solution:
        """Simulate to the end; see :func:`jfric.simulate`.

        ``dense``: number of pieces of dense output to reserve space for; none if zero.
        """
        problem = driven(started(problem))
        prepared = self.prepare(problem, end)
        until, force = _limits(prepared, end, None)
        state = self.begin(problem, prepared, until, start)
        ts = jnp.zeros((0,)) if ts is None else jnp.asarray(ts)
        ts = ts.astype(state.t.dtype)
        # An output that rounding has put just after the end belongs to the end.
        slack = 4 * jnp.finfo(ts.dtype).eps * jnp.abs(until)
        ts = select((ts > until) & (ts <= until + slack), until, ts)
        # Outputs after the end are not reached; none may be before the start or its predecessor.
        ordered = jnp.all(ts[1:] >= ts[:-1]) & jnp.all(ts[:1] >= state.t - slack)
        refused = select(ordered | ~_is_ok(state), state.status, int(Status.OUT_OF_BOUNDS))
        state = eqx.tree_at(lambda s: s.status, state, refused)
        asked, ts = ts, select(ordered, ts, until)
        mechanics, capacity = prepared.mechanics, self.event_capacity
        count = ts.shape[0]
        commands = command_names(problem)
        slots = self.slots(count)
        records = empty_records(mechanics, count, capacity, slots, len(commands) * (count > 0))
        if dense and self.has_polynomials:
            one = self.next_pass(problem, prepared, state, ts, until, force)
            records = records._replace(dense=_room(one, mechanics, state, records, dense))
        state, records = self.run_to(problem, prepared, state, records, ts, until, force)
        status = self.outcome(prepared, state, until)
        full = (status == int(Status.OK)) & (state.event_count > capacity) & (capacity > 0)
        status = select(full, int(Status.MAX_EVENTS), status)
        own = event_labels(problem)
        found = solution_of(mechanics, records, asked, capacity, state, status, own, commands)
        if dense and not self.has_polynomials:
            found = dataclasses.replace(found, dense=dense_from_outputs(found))
        return found


def near_outputs(ts, written) -> Float[Array, " k"]:
    """The last output time (of ``ts``) that is written, and the one after it."""
    if not ts.shape[0]:
        return ts
    last = ts.shape[0] - 1
    return jnp.stack([ts[jnp.clip(written - 1, 0, last)], ts[jnp.clip(written, 0, last)]])


def one_sided(solver: AbstractSolver, before: Any, state: Any, until, times) -> Any:
    """The ``state``, flagged as one-sided if the pass that began in ``before`` ended at an event
    which lies, up to rounding, on one of the output ``times`` [s], on the end ``until`` [s] of the
    run or on a sample of a controller."""
    arrived = solver.arrived(state)
    if arrived is None:
        return state
    loops = getattr(before, "loops", None)
    ends = [until] if loops is None else [until, loops.next]
    t, times = jax.lax.stop_gradient((state.t, jnp.append(times, jnp.stack(ends))))
    where = arrived & (t > before.t) & near(times, t).any()
    flag = select(where, int(Flag.ONE_SIDED), 0).astype(jnp.int32)
    return eqx.tree_at(lambda s: s.flags, state, state.flags | flag)


def begin_anew(state: Any) -> Any:
    """Final state of a run as the start of the next: counters begin at zero."""
    zero = jnp.asarray(0, jnp.int32)
    status = select(state.status == int(Status.MAX_EVENTS), int(Status.OK), state.status)
    return eqx.tree_at(
        lambda s: (s.event_count, s.flags, s.steps, s.status),
        state,
        (zero, zero, zero, status.astype(jnp.int32)),
    )


def require_solver(found: Any) -> None:
    """Raise :class:`jfric.ProblemError` unless ``found`` is a solver."""
    if not isinstance(found, AbstractSolver):
        raise ProblemError(f"solver: found {found!r}, must be a solver such as EventDriven()")


@collecting_later()
def differentiable(
    call: Callable, solver: AbstractSolver, problem: Problem, *arguments: Any
) -> Any:
    """``call(solver, problem, *arguments)`` with the derivatives that ``solver.adjoint`` allows, in
    the form of computation that pays for one trajectory or, under ``vmap``, for a batch."""
    arguments = (problem, *arguments)

    def run(solver, problem, *rest):
        found = solver.under_vmap(problem)
        if found is None:
            return call(solver, problem, *rest)
        other, sizes = found
        return by_batch(call, (solver, problem, *rest), (other, problem, *rest), sizes)

    match solver.adjoint:
        case "auto":

            def plain(solver, *rest):
                return run(dataclasses.replace(solver, adjoint="none"), *rest)

            return with_sensitivities(run, solver, *arguments, plain=plain)
        case "none":
            return without_derivatives(run, solver, *arguments)
        case "forward":
            return forward_only(run(solver, *arguments), NO_REVERSE.format("'forward'"))
    return run(solver, *arguments)


def _is_ok(state: Any) -> Bool[Array, ""]:
    return state.status == int(Status.OK)


def _limits(prepared: Any, until, force) -> tuple[Array, Array]:
    """Last time of a run, and extra force; by default the end of the run and zero."""
    mechanics = prepared.mechanics
    until = prepared.end if until is None else until
    force = jnp.zeros((mechanics.n,)) if force is None else force
    return jnp.asarray(until, mechanics.K.dtype), jnp.asarray(force, mechanics.K.dtype)


def _room(one: OnePass, mechanics: Mechanics, state: Any, records: Records, capacity: int) -> Dense:
    """Empty buffers for the dense output of a run."""

    def shapes(state, records):
        piece = one.call(state, records, jnp.asarray(True))[2]
        assert piece is not None
        return coefficients(piece())

    sizes = (mechanics.n_dofs, mechanics.n_contacts, mechanics.n_unilateral)
    table, modes = jax.eval_shape(shapes, state, records)
    return empty_dense(table, modes, sizes, capacity)
