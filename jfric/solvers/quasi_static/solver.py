"""The quasi-static solver: ``init``, ``step`` and ``solve``."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jfric.errors import ProblemError
from jfric.numerics.loops import Adjoint, require_adjoint
from jfric.results.pieces import Piece
from jfric.solvers.base import AbstractSolver, OnePass, Prepared
from jfric.solvers.given_forces import ending_at, first_negative_force
from jfric.solvers.quasi_static.passes import one_pass
from jfric.solvers.quasi_static.state import State, initial_state, knots, restart
from jfric.solvers.states import AbstractState
from jfric.system.elements import AbstractForce
from jfric.system.features import require_features, taken_by
from jfric.system.forces import element_forces, force_keys
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem


class QuasiStatic(AbstractSolver):
    """Load histories without inertia: the load is applied infinitely slowly.

    At every instant the forces are in equilibrium and the contacts obey the laws of contact and
    friction::

        K q + f_segments(q) = f(t) + W_T^T lambda_T + W_N^T lambda_N
        0 <= g_N _|_ lambda_N >= 0,   lambda_T in -mu N Sign(W_T dq/dt - v_belt)

    Masses, dampers and impacts have no effect; degrees of freedom need no mass, so that a slider
    may be in series with a spring. Within a mode all quantities change in proportion to the load;
    the place inside a load step where a contact slips, sticks, closes or opens is computed, not
    searched (linear complementarity in rates of the load, cf. A. Klarbring, "A mathematical
    programming approach to three-dimensional contact problems with friction", 1986). Histories made
    of jumps and straight lines are exact for any step; harmonic functions of time are approximated
    by ``increments`` straight lines. A jump is applied along a straight line at constant time, and
    so is the force that the initial position leaves unbalanced at the start. Belts whose velocity
    varies between breakpoints are exact at the ends of increments only.

    ``solution.v`` is the rate of the position over the time of the history, ``solution.a`` is
    zero. ``max_steps``: passes of the loop. ``max_events``: capacity of the event log.
    ``adjoint``: see :class:`AbstractSolver`.

    Status ``SINGULAR``: some motion meets no resistance. ``INCONSISTENT``: the equilibrium is
    lost or not unique on the way (a fold, large friction); a dynamic solver is needed there.

    The load of the problem of :class:`jfric.Problem`, applied slowly: (1500 - 100) N / 5000 N/m::

        >>> solution = jfric.simulate(problem, jfric.QuasiStatic())
        >>> round(float(solution.final.q[0]), 12)
        0.28
    """

    increments: int = eqx.field(static=True, default=1000)
    max_steps: int = eqx.field(static=True, default=10_000)
    max_events: int = eqx.field(static=True, default=256)
    adjoint: Adjoint = eqx.field(static=True, default="auto")

    name: ClassVar[str] = "quasi-static"
    takes: ClassVar[frozenset[str]] = taken_by("quasi-static")
    state_type: ClassVar[type[AbstractState]] = State
    compile_quickly: ClassVar[bool] = True
    has_polynomials: ClassVar[bool] = True
    positions_jump: ClassVar[bool] = True
    logs_events: ClassVar[bool] = True

    def require(self, problem: Problem) -> None:
        """Raise :class:`jfric.ProblemError` for what this solver cannot represent."""
        require_features(problem, "the solver quasi-static", self.takes)
        require_quasi_static(problem)
        require_adjoint(self.adjoint)

    def start(self, problem: Problem, prepared: Prepared) -> State:
        """State at the problem's start time, before any load."""
        return initial_state(problem, prepared.mechanics)

    def restart(self, prepared: Prepared, start: State) -> State:
        """Initial state for another load history, from the end of a run."""
        del prepared
        return restart(start)

    def unfinished(self, prepared: Prepared, state: State, until) -> Bool[Array, ""]:
        """Whether there is load history left before ``until``."""
        del prepared
        # The jump at the start takes place at constant time.
        ahead = (state.t < until) | ~state.stage.on_line
        return ~state.ended & ahead

    def one_pass(
        self, problem: Problem, prepared: Prepared, state: State, ts, until, force
    ) -> OnePass:
        """Settle the modes, or apply the load up to the next breakpoint.

        ``until`` [s] lies in the load history, which ends with the run."""
        mechanics = prepared.mechanics
        until = jnp.minimum(until, prepared.end)
        moment = first_negative_force(mechanics, state.start, prepared.end)
        times = knots(mechanics, state.start, prepared.end, self.increments, moment)

        def call(s: State, records, on, until):
            passed = one_pass(mechanics, times, s, records, ts, until, force, on)

            def piece(new: State):
                return increment_as_piece(problem, mechanics, s, new, passed.slip)

            return passed.state, passed.records, piece

        return OnePass(ending_at(moment, mechanics, until, call))


def require_quasi_static(problem: Problem) -> None:
    """Raise :class:`ProblemError` for elements whose forces are not piecewise linear in the
    position, and for laws whose friction drops at the onset of sliding: the resulting jump has no
    quasi-static path."""
    for where, element in problem.labelled().items():
        if isinstance(element, AbstractForce):
            raise ProblemError(
                f"{where}: the solver quasi-static takes springs with straight lines only, a "
                f"{type(element).__name__} is not; use a diagram_spring, or the solver "
                "event-driven"
            )
        law = getattr(element, "law", None)
        if law is not None and law.drops_at_onset:
            raise ProblemError(
                f"{where}: with {type(law).__name__} friction drops when sliding begins and "
                "the system jumps; the solver quasi-static takes laws without such a drop, "
                "such as mu, and the solver event-driven takes all"
            )


def increment_as_piece(
    problem: Problem, mechanics: Mechanics, old: State, new: State, slip
) -> Piece:
    """Piece on the straight line between two states, on which contacts slide by ``slip`` (nt,)."""
    nt = mechanics.n_contacts
    h = new.t - old.t
    events = new.event_count - old.event_count
    keys = list(force_keys(problem).values())
    rate = jnp.where(h > 0, (new.z - old.z) / jnp.where(h > 0, h, 1.0), 0.0)

    def line(a, b):
        return jnp.stack([a, b - a])

    def forces(s):
        # A support that jumps moves in proportion to the increment, like the system.
        base = (s.z, rate)
        return element_forces(problem, mechanics, keys, s.t, s.q, new.v, new.segment, base)

    return Piece(
        t=old.t,
        end=new.t,
        h=h,
        q=line(old.q, new.q),
        v=new.v[None],
        a=jnp.zeros_like(new.v)[None],
        lambda_t=line(old.lambda_t, new.lambda_t),
        lambda_n=line(old.lambda_n, new.lambda_n),
        mode=new.recorded[:nt],
        segment=new.recorded[nt:],
        events_before=old.event_count,
        events=events,
        impacts=jnp.zeros_like(events),
        event_time=old.t,
        problem=problem,
        mechanics=mechanics,
        v_before=old.v,
        slip=slip,
        jumps=~old.stage.on_line,
        forces=line(forces(old), forces(new)) if keys else None,
    )
