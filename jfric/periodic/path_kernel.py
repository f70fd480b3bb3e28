"""One point of a path of orbits: Newton's method with the parameter among the unknowns, compiled
once, and its results on the host.

Paths are generators that yield a :class:`Call` of a program and receive its result. They are
executed one by one, or many together in batches.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jfric.numerics import continuation
from jfric.numerics.cores import on_all_devices
from jfric.periodic.guess import Guess, forced_guess
from jfric.periodic.linearised import (
    UNDECIDED,
    Along,
    Equations,
    Found,
    Scales,
    orbit_of,
    sizes_of_unknowns,
)
from jfric.periodic.newton import solve
from jfric.periodic.orbit import OrbitStatus, PeriodicOrbit
from jfric.periodic.shooting import Phase, Shooting, Unknowns
from jfric.solvers.simulation import call_compiled
from jfric.system.problem import Problem


class Call(NamedTuple):
    """Call of a program with the equations, which are structure, and with numbers."""

    program: Callable[..., Any]
    shooting: Shooting
    numbers: tuple[Any, ...]


Result = TypeVar("Result")
#: A computation on the host that waits for the results of programs.
Computation = Generator[Call, Any, Result]


def alone(computation: Computation[Result]) -> Result:
    """Result of one computation."""

    def called(call: Call) -> Any:
        return call_compiled(call.program, call.shooting.solver, None, call.shooting, *call.numbers)

    return continuation.run(computation, called)


def side_by_side(computations: Sequence[Computation[Result]], width: int) -> list[Result]:
    """Results of all computations, which wait for each other, so that their programs run as
    batches.

    A batch always has room for ``width`` calls, so that it is compiled once; unused rows repeat the
    first.
    """
    devices = len(jax.local_devices())
    width = width if width < devices else -(-width // devices) * devices
    return continuation.side_by_side(
        computations, lambda call: call.program, lambda calls: batched(calls, width)
    )


def batched(calls: list[Call], width: int) -> list[Any]:
    """Results of calls of one program, as one batch with room for ``width``."""
    rows = [call.numbers for call in calls]
    rows += rows[:1] * (width - len(rows))
    program, shooting, _ = calls[0]
    found = call_compiled(_batch, shooting.solver, None, program, shooting, stacked(rows))
    found = jax.tree.map(np.asarray, found)
    return [jax.tree.map(lambda x, i=i: x[i], found) for i in range(len(calls))]


def _batch(solver, end, program, shooting, rows):
    def share(rows):
        return jax.vmap(lambda numbers: program(solver, end, shooting, *numbers))(rows)

    width = jax.tree.leaves(rows)[0].shape[0]
    if width % len(jax.local_devices()):
        return share(rows)
    return on_all_devices(share, (True,))(rows)


#: Most rounds of Newton's method for a point: few are needed from a good guess.
ROUNDS = 12


class Kernel(NamedTuple):
    """A problem and the equations of its orbits, with a parameter among the unknowns."""

    shooting: Shooting
    problem: Problem
    scales: Scales
    #: Sizes of the unknowns (u,).
    sizes: np.ndarray

    def scaled(self, z: Unknowns) -> np.ndarray:
        """The unknowns as a vector (u,), in their sizes."""
        return np.asarray(self.shooting.pack(z)) / self.sizes

    def axis(self, direction: float = 1.0) -> np.ndarray:
        """The unit vector (u,) of the parameter, to the side of ``direction``."""
        return np.append(np.zeros(len(self.sizes) - 1), 1.0 if direction >= 0 else -1.0)


class PathPoint(NamedTuple):
    """A point: the unknowns ``u``, scaled by ``sizes`` (u,); the scaled unit ``tangent`` of the
    path, in either direction; the ``determinant``, whose sign changes at branch points; the orbit;
    ``flow`` (x,): the scaled rate of its start where the period is unknown, else zero."""

    u: np.ndarray
    tangent: np.ndarray
    z: Unknowns
    phase: Phase
    orbit: PeriodicOrbit
    events: tuple[str, ...]
    parameter: float
    iterations: int
    determinant: float
    #: Directions (k, u) in which sticking leaves the orbit open, at the same parameter; scaled.
    open: np.ndarray
    sizes: np.ndarray
    flow: np.ndarray

    @property
    def multipliers(self) -> np.ndarray:
        """Floquet multipliers (2n,)."""
        return np.asarray(self.orbit.multipliers)

    def along(self, direction: np.ndarray) -> PathPoint:
        """A copy of the point with its tangent to the side of ``direction``; the sign of the
        determinant changes with the tangent."""
        side = 1.0 if self.tangent @ direction >= 0 else -1.0
        return self._replace(tangent=side * self.tangent, determinant=side * self.determinant)


def corrected(
    kernel: Kernel,
    z: Unknowns,
    phase: Phase,
    tangent: np.ndarray,
    origin: np.ndarray | None = None,
    s: float = 0.0,
    most: int = ROUNDS,
) -> Computation[PathPoint | None]:
    """The orbit with ``tangent . (u - origin) = s``, all scaled, near ``z``, which is the origin
    itself unless one is given; None where Newton's method finds none in ``most`` rounds."""
    columns, origin = kernel.sizes, kernel.scaled(z) if origin is None else origin
    along = Along(*(jnp.asarray(x, float) for x in (tangent, origin * columns, s)))
    numbers = kernel.problem, z, phase, kernel.scales, along, jnp.asarray(most, jnp.int32)
    found, orbit, u, scaled = yield Call(solved, kernel.shooting, numbers)
    if int(found.status) != int(OrbitStatus.CONVERGED):
        return None
    scaled = np.asarray(scaled)
    if not np.all(np.isfinite(scaled)):
        return None
    direction, determinant, left_open = direction_of(scaled, tangent)
    flows = np.roll(np.asarray(found.motion.by_period), 1, axis=0) / kernel.scales.state
    if kernel.shooting.phase == "along":
        weights = np.asarray(kernel.scales.state) / _extents(kernel, found)
        direction = _across(direction, flows, weights)
    return PathPoint(
        u=np.asarray(u) / columns,
        tangent=direction,
        z=found.z,
        phase=_phase_there(kernel, found, phase),
        orbit=orbit,
        events=event_words(orbit),
        parameter=float(found.z.parameter),
        iterations=int(found.iterations),
        determinant=determinant,
        open=left_open,
        sizes=columns,
        flow=flows[0],
    )


def _across(direction: np.ndarray, flows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The unit ``direction`` of a path after a shift of phase: at right angles to the motion at the
    start, measured in its extents. ``flows`` (N, x): scaled rates of the starts of all segments;
    ``weights`` (x,): scales in extents of the motion."""
    flow = flows[0] * weights**2
    size = flow @ flows[0]
    if not size > 0.0:
        return direction
    later = np.append(flows, np.zeros(len(direction) - flows.size))
    turned = direction - (flow @ direction[: len(flow)]) / size * later
    return turned / np.linalg.norm(turned)


def _extents(kernel: Kernel, found: Found) -> np.ndarray:
    """Extents (x,) of the motion about its middle, which may lie far from zero; for positions those
    of an oscillation with the same velocities."""
    velocities = kernel.scales.state[len(kernel.scales.state) // 2 :]
    return np.append(velocities * float(found.z.period) / (2.0 * np.pi), velocities)


def direction_of(scaled: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """Unit tangent of the path, the determinant with the tangent as a further equation, and the
    other open directions. If sticking leaves more than one direction open, the path turns as little
    as possible, and the determinant is unknown."""
    _, values, vt = np.linalg.svd(scaled)
    free = np.append(values <= UNDECIDED * values[0], True)
    direction = vt[free].T @ (vt[free] @ before)
    size = np.linalg.norm(direction)
    direction = direction / size if size > 0.0 else vt[-1]
    if np.sum(free) > 1:
        # The open directions in which the parameter does not change.
        beside = np.linalg.svd(vt[free][:, -1:].T)[2][1:]
        return direction, float("nan"), beside @ vt[free]
    determinant = float(np.linalg.det(np.concatenate([scaled, direction[None]])))
    return direction, determinant, np.zeros((0, len(direction)))


def solved(
    solver, end, shooting, problem, z, phase, scales, along, most
) -> tuple[Found, Any, Any, Any]:
    """The program that computes a point."""
    del solver, end
    equations = Equations(shooting, problem, phase, scales, along)
    found = solve(equations, z, most=most)
    there = shooting.problem_at(problem, found.z.parameter)
    scaled = equations.scaled(found.jacobian)
    return found, orbit_of(shooting, there, found, scales), shooting.pack(found.z), scaled


def guessed(solver, end, shooting, problem, period, state, periods) -> Guess:
    """The program that computes a guess: the motion ``periods`` after ``state``."""
    del solver, end
    return forced_guess(shooting, problem, period, state, periods)


def ahead(
    shooting: Shooting, problem: Problem, period, state, periods: float
) -> Computation[Guess]:
    """The states at all segments, their sizes and the phase, ``periods`` after ``state``."""
    numbers = (jnp.asarray(x, float) for x in (period, state, periods))
    return (yield Call(guessed, shooting, (problem, *numbers)))


def kernel_of(shooting: Shooting, problem: Problem, scales: Scales) -> Kernel:
    """The kernel of a problem with the sizes of its unknowns."""
    sizes = np.asarray(sizes_of_unknowns(shooting, scales))
    return Kernel(shooting, problem, jax.tree.map(np.asarray, scales), sizes)


def moved(kernel: Kernel, z: Unknowns, step: np.ndarray) -> Unknowns:
    """The unknowns after a scaled step."""
    change: Any = step * kernel.sizes
    return jax.tree.map(jnp.asarray, kernel.shooting.moved(jax.tree.map(np.asarray, z), change))


def _phase_there(kernel: Kernel, found: Found, phase: Phase) -> Phase:
    """The phase for the next point if the period is unknown: at right angles to the motion here."""
    if kernel.shooting.phase != "along":
        return phase
    motion = np.asarray(found.motion.by_period)[-1]
    scale = _extents(kernel, found)
    along = motion / scale
    along = along / np.linalg.norm(along) / scale
    return phase._replace(at=found.z.states[0], along=jnp.asarray(along))


def event_words(orbit: PeriodicOrbit) -> tuple[str, ...]:
    """The events of a period in words, beginning with the rotation that is first by alphabet, so
    that the start of the period in the cycle makes no difference."""
    rows = orbit.event_table()
    words = [
        f"{row['contact']}: {row['from']} > {row['to']}{' (impact)' if row['impact'] else ''}"
        for row in rows
    ]
    turned = [tuple(words[i:] + words[:i]) for i in range(max(len(words), 1))]
    return min(turned)


def stacked(rows: Sequence[Any]) -> Any:
    """Trees of one form as one batch."""
    # Stacked on the host: a program for each count would take long to compile.
    return jax.tree.map(lambda *x: jnp.asarray(np.stack([np.asarray(one) for one in x])), *rows)
