"""The schemes: Moreau-Jean, the midpoint rule, and the stabilised midpoint rule."""

# No annotations as text here: equinox must see which of them are abstract.
import abc
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jfric.contact.contact_methods import Method, require_method
from jfric.errors import ProblemError
from jfric.numerics.limits import require_step
from jfric.numerics.loops import Adjoint
from jfric.solvers.base import REST, AbstractSolver, OnePass, begin_anew
from jfric.solvers.fixed_step import half_step, require_positive_step
from jfric.solvers.records import Records, empty_records
from jfric.solvers.states import AbstractState
from jfric.solvers.time_stepping.prepared import (
    Prepared,
    Scheme,
    State,
    initial_state,
    prepare,
    start_at,
    with_step,
)
from jfric.solvers.time_stepping.run import run
from jfric.system.features import taken_by
from jfric.system.fields import Scalar, scalar
from jfric.system.laws import Coulomb
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
        super().require(problem)
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


def require_time_stepping(problem: Problem, solver: Any) -> None:
    """Raise :class:`jfric.ProblemError` for invalid fields of a scheme, and for problems that the
    scheme cannot represent; numbers under tracing are not checked."""
    require_positive_step(solver.dt)
    weight = getattr(solver, "sliding_weight", 1.0)
    _number("sliding_weight", weight, lambda x: 0.0 < x <= 1.0, "must lie above 0 and up to 1")
    scheme = solver.scheme
    _number("theta", scheme.theta, lambda x: 0.0 <= x <= 1.0, "must lie between 0 and 1")
    for name in ("max_steps", "max_events"):
        least = 1 if name == "max_steps" else 0
        if getattr(solver, name) < least:
            raise ProblemError(f"{name}: found {getattr(solver, name)}, must be at least {least}")
    elements = problem.labelled("friction", "contact")
    require_method(solver.method, len(elements))
    for name, element in elements.items():
        if getattr(element, "polygon", None) is not None:
            raise ProblemError(
                f"{name}.polygon: a step does not end where an edge does, which time "
                "stepping cannot represent; use the solver event-driven"
            )
        for field in ("spin", "contact_radius"):
            if getattr(element, field, None) is not None:
                raise ProblemError(
                    f"{name}.{field}: found a disc that slips and spins, whose limits are no "
                    "cone, which time stepping cannot represent; use the solver event-driven"
                )
    planes = [element for element in elements.values() if getattr(element, "plane", None)]
    require_method(solver.method, len(elements), in_planes=bool(planes))
    if scheme.rests:
        return
    for name, element in elements.items():
        law = element.law
        if law is not None and not isinstance(law, Coulomb):
            raise ProblemError(
                f"{name}: the law {type(law).__name__} needs a contact at rest, which the plain "
                "midpoint rule does not have, nor Moreau-Jean with a sliding_weight below 1; use "
                "StabilisedMidpoint or MoreauJean"
            )


def _number(name: str, value: Any, valid, message: str) -> None:
    if isinstance(value, Tracer):
        return
    array = np.asarray(value)
    if array.ndim == 0 and not valid(float(array)):
        raise ProblemError(f"{name}: found {float(array):g}, {message}")


class MoreauJean(AbstractTimeStepping):
    """Moreau-Jean theta scheme with the fixed step ``dt`` [s]::

        M (v+ - v) = h f_theta + W^T P,     q+ = q + h (theta v+ + (1 - theta) v)
        -P_T in N(P_N) Sign(gamma_T+),      0 <= gamma_N+ + e gamma_N  _|_  P_N >= 0

    Loads and linear forces are weighted ``theta`` at the end and ``1 - theta`` at the start of the
    step; ``theta``: 1/2 (second order between switches, no numerical damping) to 1 (damps).
    ``sliding_weight``: weight ``w`` of the end of the step in the friction law, which then holds
    for ``w gamma_T+ + (1 - w) gamma_T``; by default 1. A weight below 1 (``w = theta``, say, so
    that a sticking contact keeps its position) needs laws without separate static limits. The
    normal law holds for contacts whose gap would be closed at the end of the step. No events are
    located: any number of contacts and switches cost the same. The error is of first order in
    ``dt`` through switches and impacts, and a gap closes only to ``dt`` times its velocity.

    Masses and directions that depend on position are those of the predicted position
    ``q + h theta v``; relative velocities at the ends of a step are known to second order, joints
    hold at its end, and positions are projected on joints and lasting contacts. Between switches
    ``theta = 1/2`` thus keeps second order. Friction in a plane obeys its law at the end of the
    step, which makes it first order while its direction turns; :class:`StabilisedMidpoint` is of
    second order there.

    Where friction leaves no solution with finite forces (self-locking, Painleve), there is still
    one with impulses: sliding stops within a step (D. E. Stewart, SIAM Review 42 (2000), section
    5).

    ``method``: method for the contact problem of a step, see
    :func:`jfric.contact.contact_methods.solve_impulses`. ``max_steps``: bound on the number of
    steps. ``max_events``: capacity of the event log. ``adjoint``: see
    :class:`jfric.AbstractSolver`; ``"reverse"`` stores one state for 128 steps (1,024 in small
    systems with one contact), so give a realistic ``max_steps``.

    Do not trust derivatives through changes of mode: they lack the term of the switching time,
    at any step, and may be wrong by a third or in sign. :class:`jfric.EventDriven` gives exact
    ones. The problem of :class:`jfric.Problem`, with an error that falls with ``dt``::

        >>> solution = jfric.simulate(problem, jfric.MoreauJean(dt=1e-3))
        >>> int(solution.steps), bool(abs(solution.final.q[0] - 0.32) < 1e-4)
        (4000, True)

    Source: J. J. Moreau, Unilateral contact and dry friction in finite freedom dynamics (1988);
    M. Jean, The non-smooth contact dynamics method (1999); mechanisms: V. Acary, B. Brogliato,
    Numerical methods for nonsmooth dynamical systems (2008), chapter 10, and for the projection V.
    Acary, Projected event-capturing time-stepping schemes, Comput. Methods Appl. Mech. Engrg. 256
    (2013).
    """

    name: ClassVar[str] = "moreau-jean"

    dt: Scalar = eqx.field(converter=scalar)
    theta: Scalar = eqx.field(converter=scalar, default=0.5)
    sliding_weight: float = eqx.field(static=True, default=1.0)
    method: Method = eqx.field(static=True, default="auto")
    max_steps: int = eqx.field(static=True, default=1_000_000)
    max_events: int = eqx.field(static=True, default=256)
    adjoint: Adjoint = eqx.field(static=True, default="auto")

    @property
    def scheme(self) -> Scheme:
        # The sum gamma_T+ + kappa gamma_T has the sign of the weighted mean.
        kappa = (1.0 - self.sliding_weight) / self.sliding_weight
        return Scheme(self.theta, kappa=kappa, middle=False, stops=False)


class AbstractMidpoint(AbstractTimeStepping):
    """A midpoint rule; it is stabilised if it ``stops``."""

    stops: ClassVar[bool]

    dt: Scalar = eqx.field(converter=scalar)
    method: Method = eqx.field(static=True, default="auto")
    max_steps: int = eqx.field(static=True, default=1_000_000)
    max_events: int = eqx.field(static=True, default=256)
    adjoint: Adjoint = eqx.field(static=True, default="auto")

    @property
    def scheme(self) -> Scheme:
        return Scheme(0.5, kappa=1.0, middle=True, stops=self.stops)


class Midpoint(AbstractMidpoint):
    """Midpoint rule with the fixed step ``dt`` [s], as published, without stabilisation::

        M (v+ - v) = h f(t + h/2, (q + q+)/2, (v + v+)/2) + W^T P,     q+ = q + h (v + v+)/2
        -P_T in N(P_N) Sign(gamma_T + gamma_T+)

    Newton's law for the normals is that of :class:`MoreauJean`. A sticking contact keeps its
    position, but its velocity changes sign in every step instead of being zero: the modes chatter.
    Use :class:`StabilisedMidpoint`, unless you want to see this effect. Laws whose static limit
    differs from the sliding friction need stick at rest and are refused.

    ``method``, ``max_steps``, ``max_events``, ``adjoint`` and derivatives: see :class:`MoreauJean`.
    Source: T. Ligursky, Y. Renard, A well-posed semi-discretization of elastodynamic contact
    problems with friction, Quart. J. Mech. Appl. Math. 64 (2011), as used in V. Janovsky (2015),
    section 5. The velocity never becomes exactly zero::

        >>> solution = jfric.simulate(problem, jfric.Midpoint(dt=1e-3))
        >>> 0.0 < abs(float(solution.final.v[0]))
        True
    """

    name: ClassVar[str] = "midpoint"
    stops: ClassVar[bool] = False


class StabilisedMidpoint(AbstractMidpoint):
    """Midpoint rule that stops: a sticking contact gets zero sliding velocity.

    The step is that of :class:`Midpoint`, of length ``dt`` [s]; then the sliding velocities of
    sticking contacts are set to zero. Stick is exact, positions do not creep. ``method``,
    ``max_steps``, ``max_events``, ``adjoint`` and derivatives: see :class:`MoreauJean`. Source: V.
    Janovsky, Numerical analysis of a lumped parameter friction model, Applications of Mathematics
    2015, section 5. The mass stands still where it stops::

        >>> solution = jfric.simulate(problem, jfric.StabilisedMidpoint(dt=1e-3))
        >>> float(solution.final.v[0]), bool(abs(solution.final.q[0] - 0.32) < 1e-4)
        (0.0, True)
    """

    name: ClassVar[str] = "stabilised-midpoint"
    stops: ClassVar[bool] = True
