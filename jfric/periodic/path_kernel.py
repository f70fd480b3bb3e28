"""One point of a path of orbits: Newton's method with the parameter among the unknowns, compiled
once, and what the host is told of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jfric.periodic.newton import Along, Found, Scales, scaled_equations, solve
from jfric.periodic.orbit import PeriodicOrbit
from jfric.periodic.orbit_status import OrbitStatus
from jfric.periodic.result_of import orbit_of
from jfric.periodic.shooting import Phase, Shooting, Unknowns
from jfric.solvers.simulation import call_compiled
from jfric.system.problem import Problem

#: Rounds of Newton's method for a point: from a good guess few are needed.
ROUNDS = 12


class Kernel(NamedTuple):
    """A problem and the equations of its orbits, with a parameter among the unknowns."""

    shooting: Shooting
    problem: Problem
    scales: Scales


class PathPoint(NamedTuple):
    """A point: the unknowns ``u``, scaled; the unit ``tangent`` of the path, scaled, in either
    direction; the sign of the determinant that changes at branch points; the orbit."""

    u: np.ndarray
    tangent: np.ndarray
    z: Unknowns
    phase: Phase
    orbit: PeriodicOrbit
    events: tuple[str, ...]
    parameter: float
    iterations: int
    determinant: float

    @property
    def multipliers(self) -> np.ndarray:
        """Floquet multipliers (2n,)."""
        return np.asarray(self.orbit.multipliers)


def corrected(
    kernel: Kernel, z: Unknowns, phase: Phase, tangent: np.ndarray, origin: np.ndarray, s: float
) -> PathPoint | None:
    """The orbit with ``tangent . (u - origin) = s``, all scaled, near ``z``; None where Newton's
    method finds none."""
    columns = sizes(kernel)
    along = Along(jnp.asarray(tangent), jnp.asarray(origin * columns), jnp.asarray(float(s)))
    found, orbit = call_compiled(
        _solved, kernel.shooting.solver, None, *kernel[:2], z, phase, kernel.scales, along
    )
    if int(found.status) != int(OrbitStatus.CONVERGED):
        return None
    u = np.asarray(kernel.shooting.pack(found.z)) / columns
    scaled = np.asarray(scaled_equations(kernel.shooting, found.jacobian, kernel.scales)[0])
    if not np.all(np.isfinite(scaled)):
        return None
    _, _, vt = np.linalg.svd(scaled)
    direction = vt[-1] * (1.0 if vt[-1] @ tangent >= 0 else -1.0)
    return PathPoint(
        u=u,
        tangent=direction,
        z=found.z,
        phase=_phase_there(kernel, found, phase),
        orbit=orbit,
        events=event_words(orbit),
        parameter=float(found.z.parameter),
        iterations=int(found.iterations),
        determinant=float(np.linalg.det(np.concatenate([scaled, direction[None]]))),
    )


def _solved(solver, end, shooting, problem, z, phase, scales, along) -> tuple[Found, Any]:
    del solver, end
    found = solve(shooting, problem, z, phase, scales, along, most=ROUNDS)
    there = shooting.problem_at(problem, found.z.parameter)
    return found, orbit_of(shooting, there, found)


def sizes(kernel: Kernel) -> np.ndarray:
    """Sizes of the unknowns."""
    shooting, scales = kernel.shooting, kernel.scales
    states = jnp.tile(scales.state, (shooting.segments, 1))
    return np.asarray(shooting.pack(Unknowns(states, scales.period, scales.parameter)))


def _phase_there(kernel: Kernel, found: Found, phase: Phase) -> Phase:
    """Where the period is unknown: the next start lies at right angles to the motion here."""
    if kernel.shooting.phase != "along":
        return phase
    motion = np.asarray(found.motion.by_period)[-1]
    scale = np.asarray(kernel.scales.state)
    along = motion / scale
    along = along / np.linalg.norm(along) / scale
    return phase._replace(at=found.z.states[0], along=jnp.asarray(along))


def event_words(orbit: PeriodicOrbit) -> tuple[str, ...]:
    """The events of a period in words, beginning with the one that comes first by alphabet: where
    in the cycle a period begins makes no difference."""
    rows = orbit.event_table()
    words = [
        f"{row['contact']}: {row['from']} > {row['to']}{' (impact)' if row['impact'] else ''}"
        for row in rows
    ]
    turned = [tuple(words[i:] + words[:i]) for i in range(max(len(words), 1))]
    return min(turned)


def stacked(points: list[PathPoint]) -> PeriodicOrbit:
    """The orbits of points as one batch."""
    return jax.tree.map(lambda *x: jnp.stack(x), *(point.orbit for point in points))
