"""Orbits of systems with sampled controllers: hunting, as a fixed point of a map of samples.

The map takes the state at one sample to that ``N`` samples later. Its state consists of positions
and velocities and of what controllers remember: their memory, outputs on their way, and outputs
that act. It repeats after whole numbers of samples only. Where the motion sticks in between, the
number of samples until it slides again depends on that state, so that orbits of several ``N`` lie
close together, and the motion may wander between them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Complex, Float

from jfric.errors import ProblemError, SimulationError
from jfric.numerics.compilation import quick_options
from jfric.numerics.continuation import halved, run
from jfric.numerics.kept_programs import Kept
from jfric.numerics.limits import require_count
from jfric.numerics.printing import Shown, printable
from jfric.periodic.forcing import function_at
from jfric.periodic.orbit import OrbitStatus, multipliers, none_grows
from jfric.results.solution import Solution
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.simulation import simulate
from jfric.system.control import controllers
from jfric.system.features import FEATURES, require_features
from jfric.system.functions import Constant
from jfric.system.model import build
from jfric.system.naming import function_paths, set_parameters
from jfric.system.problem import Problem

#: Largest denominator of ratios of periods; recurrences and starts that are tried; rounds of
#: Newton's method; halvings of a step.
RATIO, CANDIDATES, ROUNDS, HALVINGS = 1000, 12, 20, 6
#: Distance, in parts of the range of the motion, at which it counts as come back, and the largest
#: relative residual of an orbit.
NEAR, CLOSED = 0.05, 1e-10
#: Longest orbit [samples] that may be asked for.
SAMPLES = 10**7


@printable
class SampledOrbit(eqx.Module):
    """A periodic motion of a system with controllers, and its stability.

    Example: see :func:`jfric.sampled_orbit`.
    """

    #: The system, the solver, and the state at the start of the orbit, just before a sample.
    problem: Problem
    solver: EventDriven
    start: Any
    #: Number of samples (of the common period of all controllers), and period [s].
    samples: int = eqx.field(static=True)
    period: float = eqx.field(static=True)
    #: State of the map at the start (x,): positions and velocities, then what controllers remember.
    state: Float[Array, " x"]
    #: Derivative of the state after a period by that at the start, its eigenvalues, the largest
    #: first, and their eigenvectors as columns.
    monodromy: Float[Array, "x x"]
    multipliers: Complex[Array, " x"]
    eigenvectors: Complex[Array, "x x"]
    #: Half of the range of each degree of freedom over a period [m or rad].
    amplitude: Float[Array, " n"]
    #: Largest change of the state over a period, relative to the range of the motion.
    residual: float = eqx.field(static=True)
    #: :class:`jfric.OrbitStatus`.
    status: OrbitStatus = eqx.field(static=True)

    @property
    def converged(self) -> bool:
        """Whether the orbit was found."""
        return self.status == OrbitStatus.CONVERGED

    @property
    def largest_multiplier(self) -> float:
        """Largest magnitude of a multiplier."""
        return float(jnp.max(jnp.abs(self.multipliers)))

    @property
    def stable(self) -> bool:
        """Whether no small deviation grows. An orbit that is not stable is still one about which
        the motion wanders, if its neighbours are no other motion but hunting, too."""
        return bool(none_grows(self.largest_multiplier))

    def check(self) -> Self:
        """The orbit itself; raises :class:`jfric.SimulationError` unless it converged."""
        if not self.converged:
            raise SimulationError(self.status.message)
        return self

    def solution(self, ts=None) -> Solution:
        """The motion over a period; ``ts`` (m,) [s]: output times, by default all samples."""
        first = float(self.start.t)
        step = self.period / self.samples
        ts = first + step * np.arange(self.samples + 1) if ts is None else ts
        end = first + self.period
        return simulate(
            self.problem, self.solver, ts=np.minimum(ts, end), start=self.start, end=end
        )

    def _shown(self) -> Shown:
        title = f"Orbit of {self.samples} samples, {self.status.message}"
        sizes = np.abs(np.asarray(self.multipliers))[:4]
        amplitude = zip(self.problem.dofs, np.asarray(self.amplitude), strict=True)
        rows = [("period [s]", f"{self.period:.9g}")]
        rows += [(f"amplitude.{dof}", f"{x:.9g}") for dof, x in amplitude]
        rows += [("multipliers", ", ".join(f"{x:.6g}" for x in sizes))]
        return Shown(title, ("", ""), rows)


def sampled_orbit(
    problem: Problem,
    samples: int | None = None,
    *,
    start: SampledOrbit | None = None,
    solver: EventDriven | None = None,
) -> SampledOrbit:
    """The periodic motion of a ``problem`` with controllers, a fixed point of a map of samples.

    It is found by Newton's method; ``solver``: an :class:`jfric.EventDriven` with settings.
    The guess is the best recurrence in the second half of the problem's time span, which has to
    contain several periods; ``samples``: the number of samples of the orbit, if it is known;
    ``start``: an orbit for other numbers, from which to begin. Functions of time must be constant.
    The derivative of the map is exact through stick and slip. Raises :class:`jfric.ProblemError`
    for a problem without controllers, for periods whose ratio is no fraction, and for what the
    event-driven solver does not take. A loop with static friction that hunts::

        >>> wheel = jfric.Problem(
        ...     {"x": "rotation"},
        ...     {
        ...         "mass": jfric.Mass("x", 0.05),
        ...         "friction": jfric.Friction("x", jfric.StaticDynamic(0.6, 0.4), limit=1.0),
        ...         "load": {"motor": jfric.Load("x", 0.0)},
        ...         "controller": jfric.Controller(
        ...             "x", "load.motor", kp=5.0, ki=20.0, kd=0.5, period=1e-2, reference=0.5
        ...         ),
        ...     },
        ...     time=60.0,
        ... )
        >>> orbit = jfric.periodic.sampled_orbit(wheel).check()
        >>> bool(3.9 < orbit.period < 4.2), round(float(orbit.amplitude[0]), 3)
        (True, 0.027)
    """
    problem = build(problem)
    solver = _solver(problem, solver)
    base = common_period(problem)
    if samples is not None:
        require_count("samples", samples, 1, SAMPLES)
    if start is not None:
        found = _newton(problem, solver, start.start, base, start.samples, np.abs(start.state))
        if found.status == OrbitStatus.CONVERGED:
            return found
    guesses = _recurrences(problem, solver, base, samples)
    if isinstance(guesses, OrbitStatus):
        return _failed(problem, solver, guesses)
    found = _failed(problem, solver, OrbitStatus.NO_RECURRENCE)
    for guess in guesses:
        begun = _advanced(solver, problem, solver.init(problem), jnp.asarray(guess.time))
        found = _newton(problem, solver, begun, base, guess.samples, guess.scale)
        if found.status == OrbitStatus.CONVERGED:
            break
    return found


def sampled_orbits(
    problem: Problem,
    path: str,
    values: Sequence[float],
    *,
    solver: EventDriven | None = None,
) -> list[SampledOrbit]:
    """Periodic motions of a ``problem`` with controllers, for several values of one parameter.

    ``path``: of the parameter (``"controller.ki"``, ``"controller.period"``,
    ``"friction.mu_s"``); ``values``: its values, in the order of a path. Each orbit is found from
    the one before, or from a recurrence of its own motion where that fails; ``solver`` as for
    :func:`sampled_orbit`. After the example of :func:`jfric.sampled_orbit`, a larger integral gain
    makes the wheel hunt faster::

        >>> path = jfric.periodic.sampled_orbits(wheel, "controller.ki", [20.0, 30.0])
        >>> [orbit.converged for orbit in path], path[1].period < path[0].period
        ([True, True], True)
    """
    found: list[SampledOrbit] = []
    for value in values:
        before = found[-1] if found and found[-1].converged else None
        here = set_parameters(problem, {path: value})
        found.append(sampled_orbit(here, start=before, solver=solver))
    return found


def hunts(problem: Problem, values: Mapping[str, float] | None = None) -> bool:
    """Whether the motion of a ``problem`` does not come to rest.

    That is so where a degree of freedom still moves in the second half of the problem's time span,
    by more than a millionth of its whole way; ``values``: numbers by path, in place of those of the
    problem. The integral of a loop keeps a block with static friction moving::

        >>> loop = jfric.Controller(
        ...     "x", "load.motor", kp=5.0, ki=20.0, kd=0.5, period=1e-2, deadband=0.0
        ... )
        >>> block = jfric.Problem(
        ...     "x",
        ...     {
        ...         "mass": jfric.Mass("x", 0.05),
        ...         "friction": jfric.Friction("x", jfric.StaticDynamic(0.6, 0.4), limit=1.0),
        ...         "load": {"motor": jfric.Load("x", 0.0)},
        ...         "controller": loop,
        ...     },
        ...     initial={"x": jfric.InitialState(q=0.5)},
        ...     time=40.0,
        ... )
        >>> jfric.periodic.hunts(block), jfric.periodic.hunts(block, {"controller.ki": 0.0})
        (True, False)
    """
    problem = set_parameters(build(problem), dict(values or {}))
    first, last = float(problem.time.start), float(problem.time.end)
    ts = np.linspace(first, last, 2001)
    q = np.asarray(simulate(problem, ts=ts).check().q)
    way, late = (np.ptp(x, axis=0) for x in (q, q[len(q) // 2 :]))
    return bool(np.any(late > 1e-6 * np.where(way > 0, way, np.inf)))


def hunting_limit(
    problem: Problem, path: str, low: float, high: float, *, rounds: int = 30
) -> float:
    """The number at ``path`` between ``low`` and ``high`` at which hunting begins or ends.

    It is found by halving, ``rounds`` times, with :func:`hunts` as the question to the motion of
    ``problem``: the smallest dead band of the integral (``"controller.deadband"``) or the largest
    static friction without hunting, for instance. Raises :class:`jfric.ProblemError` where both
    ends hunt, or neither does.
    After the example of :func:`jfric.hunts`, the dead band of its loop::

        >>> found = jfric.hunting_limit(block, "controller.deadband", 0.0, 0.1, rounds=5)
        >>> 0.01 < found < 0.06
        True
    """
    both = [hunts(problem, {path: x}) for x in (low, high)]
    if both[0] == both[1]:
        word = "both hunt" if both[0] else "neither hunts"
        raise ProblemError(f"{path}: at {low:g} and {high:g} {word}; give ends of which one does")
    halving = halved(low, high, 0.0, 0.0, rounds)
    return 0.5 * sum(run(halving, lambda x: hunts(problem, {path: x}) == both[0]))


def common_period(problem: Problem) -> float:
    """The shortest time that is a whole number of samples of every controller [s]."""
    require_features(problem, "an orbit of samples", FEATURES.keys() - {"sliders"})
    loops = controllers(problem.resolved())
    if not loops:
        raise ProblemError(
            "controller: found none; periodic motion of a system without controllers is found by "
            "periodic_orbit"
        )
    for path, place in function_paths(problem).items():
        function = function_at(problem, place)
        if not isinstance(function, Constant):
            raise ProblemError(
                f"{path}: found a {type(function).__name__}, an orbit of samples needs functions "
                "of time that are constant"
            )
    periods = [float(x.period) for x in loops.values()]
    found = Fraction(1)
    for label, period in zip(loops, periods, strict=True):
        ratio = Fraction(period / periods[0]).limit_denominator(RATIO)
        if abs(float(ratio) - period / periods[0]) > 1e-12:
            raise ProblemError(
                f"{label}.period: found {period:g} s, whose ratio to {periods[0]:g} s is no "
                f"fraction with a denominator up to {RATIO}"
            )
        over = np.lcm(found.numerator * ratio.denominator, ratio.numerator * found.denominator)
        found = Fraction(int(over), found.denominator * ratio.denominator)
    return float(found) * periods[0]


def _solver(problem: Problem, solver: EventDriven | None) -> EventDriven:
    solver = dataclasses.replace(solver or EventDriven(), adjoint="forward", max_events=0)
    solver.require(problem)
    return solver


class _Guess(NamedTuple):
    """A recurrence: time [s] of the earlier of two samples, how many lie between them, and the
    range of positions, velocities and commands."""

    time: float
    samples: int
    scale: np.ndarray


def _recurrences(
    problem: Problem, solver: EventDriven, base: float, samples: int | None
) -> list[_Guess] | OrbitStatus:
    """Pairs of similar samples, the most similar first."""
    first, last = float(problem.time.start), float(problem.time.end)
    count = int((last - first) / base * (1 + 1e-12))
    ts = np.minimum(first + base * np.arange(count + 1), last)
    solution = simulate(problem, solver, ts=ts)
    if int(solution.status):
        return OrbitStatus.TRANSIENT_FAILED
    rows = np.concatenate([np.asarray(x) for x in (solution.q, solution.v, solution.commands)], 1)
    late = rows[len(rows) // 2 :]
    scale = np.ptp(late, axis=0)
    if not np.any(scale[: solution.q.shape[1]] > 1e-9 * np.ptp(rows[:, 0])):
        return OrbitStatus.STANDS_STILL
    scaled = late / np.where(scale > 0, scale, 1.0)
    found: list[tuple[float, int, int]] = []
    for at in np.unique(np.linspace(len(late) // 2, len(late) - 1, 200).astype(int)):
        distance = np.max(np.abs(scaled[at] - scaled[:at][::-1]), axis=1)
        if samples is None:
            # The motion has to leave before it comes back.
            left = np.argmax(distance > 4 * NEAR)
            low = left + np.argmax(distance[left:] < NEAR)
            if not left or distance[low] >= NEAR:
                continue
            high = low + int(np.argmax(np.append(distance[low:] >= NEAR, True)))
            n = low + int(np.argmin(distance[low:high]))
        else:
            n = samples - 1
            if n >= len(distance):
                continue
        found.append((float(distance[n]), int(at - n - 1), int(n) + 1))
    if not found:
        return OrbitStatus.NO_RECURRENCE
    begins = first + base * (len(rows) - len(late))
    return [_Guess(begins + base * at, n, scale) for _, at, n in sorted(found)[:CANDIDATES]]


def _numbers(state: Any) -> Any:
    """The numbers of the map: motion, and what controllers remember."""
    loops = state.loops
    kept = eqx.filter((loops.memory, loops.pending, loops.held), eqx.is_inexact_array)
    return state.q, state.v, kept


def _with_numbers(state: Any, numbers: Any) -> Any:
    q, v, kept = numbers
    loops = state.loops
    whole = (loops.memory, loops.pending, loops.held)
    rest = eqx.filter(whole, eqx.is_inexact_array, inverse=True)
    memory, pending, held = eqx.combine(kept, rest)
    loops = loops._replace(memory=memory, pending=pending, held=held)
    return dataclasses.replace(state, q=q, v=v, loops=loops)


def _map(solver: EventDriven, problem: Problem, state: Any, x, length):
    """State of the map after ``length`` [s], with its derivative and status."""
    _, unravel = ravel_pytree(_numbers(state))

    def after(x):
        begun = _with_numbers(state, unravel(x))
        end = solver.advance(problem, begun, state.t + length)
        value = ravel_pytree(_numbers(end))[0]
        return value, (value, end.status)

    slopes, (value, status) = jax.jacfwd(after, has_aux=True)(x)
    return value, slopes, status


def _newton(
    problem: Problem, solver: EventDriven, begun: Any, base: float, samples: int, scale
) -> SampledOrbit:
    """The orbit near the state ``begun``."""
    x, unravel = ravel_pytree(_numbers(begun))
    length = jnp.asarray(samples * base)
    size = jnp.maximum(jnp.abs(x), float(np.max(scale)) * 1e-3)
    status, best = OrbitStatus.NO_CONVERGENCE, jnp.inf
    value, slopes, code = _mapped(solver, problem, begun, x, length)
    for _ in range(ROUNDS):
        if int(code):
            status = OrbitStatus.MOTION_FAILED
            break
        off = value - x
        best = float(jnp.max(jnp.abs(off) / size))
        if best < CLOSED:
            status = OrbitStatus.CONVERGED
            break
        step = jnp.linalg.lstsq((slopes - jnp.eye(len(x))) / size[:, None] * size, -off / size)[0]
        step = step * size
        for k in range(HALVINGS):
            trial = x + step * 0.5**k
            value, slopes, code = _mapped(solver, problem, begun, trial, length)
            if not int(code) and float(jnp.max(jnp.abs(value - trial) / size)) < best:
                break
        else:
            break
        x = trial
    solver = dataclasses.replace(solver, max_events=256)
    begun = _with_numbers(begun, unravel(x))
    orbit = _orbit(problem, solver, begun, samples, base, x, slopes, best, status)
    if status != OrbitStatus.CONVERGED:
        return orbit
    q = np.asarray(orbit.solution().q)
    return dataclasses.replace(orbit, amplitude=jnp.asarray(0.5 * np.ptp(q, axis=0)))


def _failed(problem: Problem, solver: EventDriven, status: OrbitStatus) -> SampledOrbit:
    begun = solver.init(problem)
    x = ravel_pytree(_numbers(begun))[0] + jnp.nan
    slopes = jnp.full((len(x), len(x)), jnp.nan)
    return _orbit(problem, solver, begun, 0, 0.0, x, slopes, float("inf"), status)


def _orbit(problem, solver, begun, samples, base, x, slopes, residual, status) -> SampledOrbit:
    """The orbit from ``begun``, whose amplitude is not yet known."""
    values, vectors = multipliers(slopes)
    known = problem, solver, begun, samples, samples * base, x, slopes, values, vectors
    return SampledOrbit(*known, jnp.full_like(begun.q, jnp.nan), residual, status)


_advanced = Kept(EventDriven.advance, options=quick_options)
_mapped = Kept(_map, options=quick_options)
