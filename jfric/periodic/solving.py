"""``periodic_orbit``: forced and autonomous periodic motion under the event-driven solver."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from jfric.errors import ProblemError, within
from jfric.numerics.by_batch import with_sensitivities
from jfric.numerics.cores import on_all_devices
from jfric.numerics.limits import require_count
from jfric.periodic.forcing import forcing_of, require_commensurate
from jfric.periodic.guess import Guess, autonomous_guess, forced_guess
from jfric.periodic.linearised import Equations, Found, evaluated, least_step, orbit_of
from jfric.periodic.newton import solve, together
from jfric.periodic.orbit import OrbitStatus, PeriodicOrbit
from jfric.periodic.shooting import Shooting
from jfric.periodic.state_vector import at_start, checked_start
from jfric.results.formulas import bound
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.simulation import call_compiled
from jfric.system.control import refuse_controllers
from jfric.system.model import build
from jfric.system.naming import find_path, set_parameters
from jfric.system.problem import Problem

#: Default number of periods of the transient of a forced motion.
TRANSIENT = 20
#: Number of times that a forced motion continues, each time for longer, if Newton's method is
#: stuck.
GOES_ON = 2
#: Most events of a period with the default solver.
EVENTS = 64
#: Upper limits of the settings.
SEGMENTS, PERIODS, ROUNDS = 256, 10**6, 10_000


def periodic_orbit(
    problem: Problem,
    period: Any = None,
    *,
    start: Any = None,
    transient: Any = None,
    section: str | None = None,
    cycles: int = 1,
    segments: int = 1,
    values: Mapping[str, ArrayLike] | None = None,
    solver: EventDriven | None = None,
    max_iterations: int = 40,
) -> PeriodicOrbit:
    """A periodic motion of ``problem``, by Newton's method on the exact flow.

    The method finds a state ``x = (q, v)`` with ``phi_T(x) = x``, where ``phi_T`` is the motion of
    the event-driven solver over a period; its derivative is exact through stick, impacts and jumps,
    also in directions that sticking erases. If a load is harmonic, the period ``T`` is that of all
    loads (or ``period`` [s], if theirs is not known), ``cycles`` times. If nothing depends on time,
    ``T`` is unknown as well.

    ``start``: a guess of the state (2n,) at the problem's start time, several (k, 2n) for a batch,
    or another :class:`PeriodicOrbit`; by default the guess is the motion from the problem's own
    start after ``transient`` periods (20 by default, and further ones if Newton's method is stuck).
    For an autonomous system ``transient`` is in seconds, by default the problem's time span, and
    ``period`` is a guess [s], needed only with ``start``. ``section``: a quantity of the motion
    such as ``"x - 0.1 m"`` that is zero at the start of an autonomous orbit; without it one of the
    orbit's events is kept at its time after the start.

    ``segments``: of multiple shooting, for orbits so unstable that a period amplifies rounding
    errors too far. ``values``: numbers (b,) by path, one orbit for each, in one compiled batch.
    ``solver``: settings of the event-driven solver; ``max_events`` bounds the events of a segment.
    ``max_iterations``: rounds of Newton's method; for large systems only those with derivatives
    count, which are kept for several rounds.

    Works under ``jit``, ``vmap``, ``jvp`` and ``grad``; failures are in
    :attr:`PeriodicOrbit.status`. Raises :class:`jfric.ProblemError` for loads that end or have no
    common period, and for a period that is not theirs. Sources: P. C. Mueller, Chaos, Solitons and
    Fractals 5 (1995), for the derivative through events; A. H. Nayfeh, B. Balachandran, Applied
    Nonlinear Dynamics (1995), for shooting. A ball on a table that shakes it once a second, both
    motions::

        >>> ball = jfric.Problem(
        ...     ["z"],
        ...     {
        ...         "mass": jfric.Mass("z", 1.0),
        ...         "load": jfric.Load("z", -9.81),
        ...         "base": {"table": jfric.Base(jfric.Harmonic(0.0993960811531, 2 * jnp.pi))},
        ...         "contact": jfric.Contact(("table", "z"), e=0.8),
        ...     },
        ...     initial={"z": jfric.InitialState(q=0.1, v=4.0)},
        ... )
        >>> both = jfric.periodic_orbit(ball, start=jnp.array([[0.1, 4.4], [0.4, -4.5]]))
        >>> [round(float(x), 6) for x in abs(both.multipliers[1])], both.stable.tolist()
        ([0.8, 0.8], [False, True])
    """
    problem = build(problem)
    solver = solver_of_orbits(problem, solver)
    require_count("segments", segments, 1, SEGMENTS)
    require_count("cycles", cycles, 1, PERIODS)
    require_count("max_iterations", max_iterations, 1, ROUNDS)
    if isinstance(start, PeriodicOrbit):
        period = start.period if period is None and not start.forced else period
        start = start.state
    values = _values(problem, values)
    shooting, given, transient = equations_of(
        problem, solver, segments, start, period, transient, section, cycles
    )
    start = None if start is None else checked_start(problem, start)
    batch = _batch(values, start)
    arguments = (problem, values, given, start)
    axes = (None, {k: 0 if np.ndim(x) else None for k, x in values.items()}, None, None)
    if start is not None and jnp.ndim(start) == 2:
        axes = (*axes[:3], 0)
    call = _Orbit(shooting, transient, max_iterations)
    return call_compiled(_computed, solver, None, call, axes, batch, *arguments)


class _Orbit(eqx.Module):
    """Settings that are fixed for all orbits of a batch; ``transient``: periods, or seconds."""

    shooting: Shooting
    transient: Any
    rounds: int = eqx.field(static=True)

    def __call__(self, problem: Problem, values, given, start) -> PeriodicOrbit:
        problem = set_parameters(problem, values) if values else problem
        return with_sensitivities(
            _differentiated, self, problem, given, start, plain=_without_derivatives
        )

    def found(self, problem: Problem, given, start) -> tuple[Found, Any]:
        """The end of Newton's method, and its guess; without derivatives."""
        problem, given, start = jax.lax.stop_gradient((problem, given, start))
        if start is None and not self.shooting.autonomous:
            found, guess = self._going_on(problem, given)
        else:
            make = autonomous_guess if self.shooting.autonomous else forced_guess
            guess = make(self.shooting, problem, given, start, self.transient)
            found = self._from(problem, guess)
        failed = guess.status != int(OrbitStatus.CONVERGED)
        found = found._replace(
            status=jnp.where(failed, guess.status, found.status),
            run_status=jnp.where(failed, guess.run_status, found.run_status),
        )
        return jax.lax.stop_gradient((found, guess))

    def _from(self, problem: Problem, guess: Guess) -> Found:
        equations = Equations(self.shooting, problem, guess.phase, guess.scales)
        return solve(equations, guess.start, most=self.rounds)

    def _going_on(self, problem: Problem, given) -> tuple[Found, Guess]:
        """Solution from the end of a transient; while Newton's method is stuck there, from the end
        of a further, longer transient. It is one loop, so that the motion is compiled once."""

        def attempt(state, periods) -> tuple[Found, Guess]:
            guess = forced_guess(self.shooting, problem, given, state, periods)
            return self._from(problem, guess), guess

        def stuck(carry):
            count, _, (found, guess) = carry
            moves = guess.status == int(OrbitStatus.CONVERGED)
            ends = moves & (found.status == int(OrbitStatus.NO_CONVERGENCE))
            return (count == 0) | (ends & (count <= GOES_ON))

        def one(carry):
            count, state, _ = carry
            further = max(self.transient, TRANSIENT) * count
            periods = jnp.where(count == 0, self.transient, further)
            found, guess = attempt(state, periods)
            return count + 1, guess.start.states[0], (found, guess)

        begins = at_start(problem.resolved())
        shapes = jax.eval_shape(attempt, begins, jnp.asarray(0, jnp.int32))
        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        carry = (jnp.asarray(0, jnp.int32), begins, nothing)
        return jax.lax.while_loop(stuck, one, carry)[2]


def _computed(solver, end, call: _Orbit, axes, batch: int | None, *arguments) -> PeriodicOrbit:
    """One orbit, or a batch, row after row: orbits of a row go from round to round together."""
    del solver, end
    if batch is None:
        return call(*arguments)
    size = together(call.shooting.unknowns(arguments[0]))
    if batch <= size:
        return jax.vmap(lambda *rest: call(*rest), in_axes=axes)(*arguments)
    devices = len(jax.local_devices())
    rows = -(-batch // (size * devices)) * devices
    marks = jax.tree.map(
        lambda axis, part: jax.tree.map(lambda _: axis == 0, part),
        axes,
        arguments,
        is_leaf=lambda x: x is None or x == 0,
    )
    own, rest = eqx.partition(arguments, marks)
    same, static = eqx.partition(rest, eqx.is_array)
    places = np.arange(rows * size) % batch
    filled = jax.tree.map(lambda x: jnp.take(x, places, axis=0), own)

    def share(filled, same):
        def one(part):
            return call(*eqx.combine(part, same, static))

        return jax.lax.map(one, filled, batch_size=size)

    found = on_all_devices(share, (True, False))(filled, same)
    return jax.tree.map(lambda x: x[:batch], found)


def _without_derivatives(call: _Orbit, problem, given, start) -> PeriodicOrbit:
    found, guess = call.found(problem, given, start)
    return orbit_of(call.shooting, problem, found, guess.scales)


def _differentiated(call: _Orbit, problem, given, start) -> PeriodicOrbit:
    """The orbit as a function of the parameters: one more step of Newton's method from where it
    ended has the derivatives of the implicit function theorem."""
    shooting = call.shooting
    found, guess = call.found(problem, given, start)
    z = found.z
    if not shooting.autonomous:
        z = z._replace(period=jnp.asarray(shooting.period_of(problem, given), z.period.dtype))
    motion = shooting.motion(problem, z, guess.phase, derivatives=False)
    equations = Equations(shooting, problem, guess.phase, guess.scales)
    left = equations.left_sides(z, motion)
    step = equations.columns * least_step(equations.scaled(found.jacobian), left)[0]
    z = shooting.moved(z, step - jax.lax.stop_gradient(step))
    again, _ = evaluated(equations, z)
    again = again._replace(
        status=found.status, run_status=found.run_status, iterations=found.iterations
    )
    return orbit_of(shooting, problem, again, guess.scales)


def solver_of_orbits(problem: Problem, solver: EventDriven | None) -> EventDriven:
    """The solver of periodic motions, by default an event-driven one without settings."""
    solver = EventDriven(max_events=EVENTS) if solver is None else solver
    if not isinstance(solver, EventDriven):
        raise ProblemError(
            f"solver: found {solver!r}, periodic motion takes EventDriven with settings"
        )
    solver = dataclasses.replace(solver, adjoint="forward")
    refuse_controllers(problem, "periodic_orbit", "jfric.periodic.sampled_orbit")
    solver.require(problem)
    return solver


def equations_of(
    problem, solver, segments, start, period=None, transient=None, section=None, cycles=1
):
    """The equations, the period that is given or guessed, and the length of the transient."""
    forcing = forcing_of(problem, period)
    zero = jnp.zeros(())
    if forcing is not None:
        if section is not None:
            raise ProblemError(
                "section: found one, but a load depends on time: the period is known, and the "
                "phase is that of the load"
            )
        if period is not None:
            require_commensurate(problem, period)
        periods = (0 if start is not None else TRANSIENT) if transient is None else transient
        require_count("transient", periods, 0, PERIODS)
        kept = forcing if period is None else None
        shooting = Shooting(solver, segments, kept, cycles, "", None, None)
        given = zero if period is None else cycles * jnp.asarray(period, float)
        return shooting, given, int(periods)
    if cycles != 1:
        raise ProblemError(
            f"cycles: found {cycles}, but no load is periodic; the orbit closes where the motion "
            "recurs, and with start and period after the period that is guessed"
        )
    if start is not None and period is None:
        raise ProblemError(
            "period: not given; the start of an autonomous motion needs a guess of the period [s]"
        )
    if period is not None and start is None:
        raise ProblemError(
            "start: not given; nothing depends on time here, so the period is no setting but a "
            "guess, which needs a state to begin with"
        )
    if section is not None:
        bound(problem, "section", section)
    phase = "section" if section is not None else "event" if start is None else "along"
    span: Any = problem.resolved().time
    transient = span.end - span.start if transient is None else transient
    shooting = Shooting(solver, segments, None, 1, phase, section, None)
    return shooting, zero if period is None else jnp.asarray(period, float), jnp.asarray(transient)


def _values(problem: Problem, values: Mapping[str, ArrayLike] | None) -> dict[str, Any]:
    """Numbers by full path, arrays along one axis."""
    found = {}
    for path, value in (values or {}).items():
        with within("values: ", KeyError):
            name = find_path(problem, path)
        array = jnp.asarray(value, float)
        if array.ndim > 1:
            raise ProblemError(
                f"values.{name}: found an array of shape {array.shape}, needs one axis"
            )
        found[name] = array
    return found


def _batch(values: dict[str, Any], start) -> int | None:
    sizes = {f"values.{k}": x.shape[0] for k, x in values.items() if jnp.ndim(x)}
    if start is not None and start.ndim == 2:
        sizes["start"] = start.shape[0]
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{k} has {n}" for k, n in sizes.items())
        raise ProblemError(f"values: lengths differ, one orbit is computed for each: {listed}")
    return next(iter(sizes.values()), None)
