"""Base class of all time-stepping schemes."""

# No annotations as text here: equinox must see which of them are abstract.
import abc
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp

from jfric.numerics.limits import require_step
from jfric.numerics.loops import Adjoint
from jfric.solvers.base import REST, AbstractSolver, OnePass, begin_anew
from jfric.solvers.fixed_step import half_step
from jfric.solvers.records import Records, empty_records
from jfric.solvers.states import AbstractState
from jfric.solvers.time_stepping.prepare import prepare, with_step
from jfric.solvers.time_stepping.prepared import Prepared
from jfric.solvers.time_stepping.representable import require_time_stepping
from jfric.solvers.time_stepping.run import run
from jfric.solvers.time_stepping.scheme import Scheme
from jfric.solvers.time_stepping.state import State, initial_state, start_at
from jfric.system.features import require_features, taken_by
from jfric.system.function_checks import refuse_jumping_bases
from jfric.system.inertia import require_inertia
from jfric.system.problem import Problem


class AbstractTimeStepping(AbstractSolver):
    """A time-stepping scheme with the fixed step ``dt``."""

    dt: eqx.AbstractVar[Any]
    method: eqx.AbstractVar[str]
    max_steps: eqx.AbstractVar[int]
    max_events: eqx.AbstractVar[int]
    adjoint: eqx.AbstractVar[Adjoint]

    state_type: ClassVar[type[AbstractState]] = AbstractState
    logs_events: ClassVar[bool] = True
    takes: ClassVar[frozenset[str]] = taken_by("moreau-jean")
    remark: ClassVar[str] = (
        "derivatives miss how switching times move, at any step; use jfric.EventDriven"
    )

    @property
    @abc.abstractmethod
    def scheme(self) -> Scheme:
        """Weights and rules that distinguish this scheme from the others."""

    def require(self, problem: Problem) -> None:
        """Raise :class:`jfric.ProblemError` for what this scheme cannot represent."""
        require_inertia(problem)
        refuse_jumping_bases(problem, f"the solver {self.label}")
        require_features(problem, f"the solver {self.label}", self.takes)
        require_time_stepping(problem, self)

    def require_duration(self, duration: float) -> None:
        """Raise :class:`jfric.ProblemError` where ``duration`` [s] takes too many steps."""
        require_step(self.dt, duration)

    def refined(self, problem: Problem) -> Self:
        """Copy of this scheme with half the step."""
        return half_step(self)

    def prepare(self, problem: Problem, end=None) -> Prepared:
        """The assembled problem with the matrices of a step."""
        del end
        return prepare(problem, self.scheme, self.dt, self.method)

    def start(self, problem: Problem, prepared: Prepared) -> State:
        """State at the problem's start time."""
        return initial_state(problem, prepared)

    def restart(self, prepared: Prepared, start: AbstractState) -> State:
        """Initial state of a run that continues an earlier one.

        The end of another solver's run provides time, position and velocity only.
        """
        if not isinstance(start, State):
            return start_at(prepared, start.t, start.q, start.v)
        return eqx.tree_at(
            lambda s: (s.iterations, s.residual),
            begin_anew(start),
            (jnp.asarray(0, jnp.int32), jnp.zeros_like(start.residual)),
        )

    def one_pass(
        self, problem: Problem, prepared: Prepared, state: State, ts, until, force
    ) -> OnePass:
        """One step of length ``dt``, or less to end at ``until``; outputs are not written."""
        del problem, state

        def call(s: State, records: Records, on):
            left = until - s.t
            h = jnp.where(left < (1.0 + REST) * prepared.h, left, prepared.h)
            on = on & (h > 0.0)
            step = with_step(prepared, jnp.where(on, h, prepared.h))
            end = s.t + jnp.where(on, step.h, 0.0)
            none = empty_records(prepared.mechanics)
            nothing = jnp.zeros((0,), s.t.dtype)
            new, _ = run(step, s, none, nothing, end, force, max_steps=1, adjoint="forward")
            new = eqx.tree_at(lambda s: s.t, new, jnp.where(on, s.t + h, s.t))
            return new, records, None

        return OnePass(call)

    def run(
        self, problem: Problem, prepared: Prepared, state: State, records: Records, ts, until, force
    ) -> tuple[State, Records]:
        """Run blocks of steps to ``until`` [s]; returns the state and the filled buffers."""
        del problem
        new, records = run(
            prepared,
            state,
            records,
            ts,
            until,
            force,
            max_steps=self.max_steps,
            adjoint=self.adjoint,
        )
        # A remainder of rounding errors is no step.
        arrives = (new.t < until) & (new.t >= until - REST * prepared.h)
        return eqx.tree_at(lambda s: s.t, new, jnp.where(arrives, until, new.t)), records
