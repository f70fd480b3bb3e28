"""Start of a path of orbits at a special point: on its path, or on the branch that leaves there."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError, SimulationError
from jfric.periodic.forcing import forcing_of
from jfric.periodic.linearised import Along, evaluated, scaled_equations
from jfric.periodic.lockstep import Computation
from jfric.periodic.orbit import PeriodicOrbit
from jfric.periodic.path import OrbitPoint
from jfric.periodic.path_kernel import Kernel, PathPoint, corrected, moved
from jfric.periodic.path_start import equations_at
from jfric.periodic.solving import periodic_orbit
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem

#: Distances from a point, in sizes of the motion and of the interval, at which the search looks for
#: the branch that leaves there.
DISTANCES = (1e-2, 3e-3, 1e-3, 3e-2, 1e-4)
#: Largest value of the smallest singular value, relative to the largest one, where paths cross.
CROSSING = 1e-3
#: Periods of the old motion in one period of the new motion, by the kind of point.
LONGER = {"flip": 2, "branch point": 1}


def branched(
    problem: Problem, name: str, point: OrbitPoint, limits, side: int, segments: int, options
) -> Computation[tuple[Kernel, PathPoint]]:
    """The equations, and the first orbit of the branch that leaves at ``point``.

    Where paths cross, two directions solve the linear equations: that of the path, and another one
    at right angles to it, in which the search looks for the branch.
    """
    if point.kind not in LONGER:
        raise ProblemError(
            f"from_: found a point of the kind {point.kind!r}; branches leave a 'flip' or a "
            "'branch point'"
        )
    if side not in (1, -1):
        raise ProblemError(f"side: found {side!r}, allowed are 1 and -1")
    if not min(limits) <= point.parameter <= max(limits):
        raise ProblemError(
            f"from_: found a point at {name} = {point.parameter:g}, outside the interval from "
            f"{min(limits):g} to {max(limits):g}"
        )
    problem = eqx.tree_at(lambda p: p.time.start, problem, jnp.asarray(point.time))
    orbit, options = _at_point(problem, name, point, segments, options, LONGER[point.kind])
    span = limits[1] - limits[0]
    value = point.parameter
    begin = yield from equations_at(problem, name, orbit, value, span, segments, options)
    kernel, z, phase = begin
    origin = np.asarray(kernel.shooting.pack(z)) / kernel.sizes
    across = Along(jnp.zeros(origin.shape), jnp.asarray(origin * kernel.sizes), jnp.zeros(()))
    found, _ = evaluated(kernel.shooting, problem, z, phase, kernel.scales, across)
    scaled = scaled_equations(kernel.shooting, found.jacobian, kernel.scales)[0]
    _, values, vt = np.linalg.svd(np.asarray(scaled))
    if values[-1] > CROSSING * values[0]:
        raise SimulationError(
            f"no branch leaves at {name} = {point.parameter:g}: its equations are regular there"
        )
    plane = vt[-2:]
    old = _known(kernel, point, plane)
    direction = np.asarray([-old[1], old[0]]) @ plane
    old = old @ plane
    direction = side * direction / np.linalg.norm(direction)
    for s in DISTANCES:
        there = moved(kernel, z, s * direction)
        first = yield from corrected(kernel, there, phase, direction, origin, s)
        if first is None or abs(first.tangent @ direction) < abs(first.tangent @ old):
            continue
        return kernel, first.along(direction)
    raise SimulationError(f"no orbit of the branch at {name} = {point.parameter:g} was found")


def begun_at(
    problem: Problem, name: str, point: OrbitPoint, span: float, segments: int, options
) -> Computation[tuple[Kernel, PathPoint]]:
    """The equations, and the orbit at ``point`` with the tangent of the path there."""
    problem = eqx.tree_at(lambda p: p.time.start, problem, jnp.asarray(point.time))
    orbit, options = _at_point(problem, name, point, segments, options, 1)
    value = point.parameter
    begin = yield from equations_at(problem, name, orbit, value, span, segments, options)
    kernel, z, phase = begin
    origin = np.asarray(kernel.shooting.pack(z)) / kernel.sizes
    tangent = np.zeros(origin.shape)
    if point.kind != "fold":
        tangent[-1] = 1.0
    elif point.slope_before is not None:
        # At a fold the tangent of the path has no part along the parameter.
        size = np.asarray(kernel.scales.state)
        part = np.nan_to_num(point.slope_before / size, posinf=0.0, neginf=0.0)
        tangent[: len(size)] = part / np.linalg.norm(part)
    found = yield from corrected(kernel, z, phase, tangent, origin, 0.0)
    if found is None:
        raise SimulationError(
            f"the orbit at {name} = {point.parameter:g} was not found again; give the options of "
            "its path"
        )
    return kernel, found


def _at_point(
    problem: Problem, name: str, point: OrbitPoint, segments: int, options, longer: int
) -> tuple[PeriodicOrbit, dict[str, Any]]:
    """The orbit at ``point`` over as many periods as the branch needs, and options for these."""
    there = set_parameters(problem, {name: point.parameter})
    forcing = forcing_of(there, options.get("period"))
    if forcing is None:
        options = options | {"period": longer * point.period}
    else:
        base = options.get("period")
        base = float(forcing.period(there.resolved()) if base is None else base)
        options = options | {"cycles": longer * round(point.period / base)}
    found = periodic_orbit(there, start=point.state, segments=segments, **options)
    return found.check(), options


def _known(kernel: Kernel, point: OrbitPoint, plane: np.ndarray) -> np.ndarray:
    """Direction within ``plane`` of the path on which ``point`` was found."""
    size = np.asarray(kernel.scales.state)
    states = np.zeros(len(size)) if point.slope_before is None else point.slope_before / size
    wanted = np.append(states, 1.0 / float(kernel.scales.parameter))
    wanted = np.where(np.isfinite(wanted), wanted, 0.0)
    parts = plane[:, [*range(len(size)), -1]]
    found = np.linalg.lstsq(parts.T, wanted, rcond=None)[0]
    return found / np.linalg.norm(found)
