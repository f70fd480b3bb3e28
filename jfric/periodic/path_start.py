"""Starts of paths of orbits: equations and first point; at a special point, also on the branch that
leaves there."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError, SimulationError
from jfric.numerics.limits import require_count, require_double
from jfric.periodic.forcing import forcing_of, require_commensurate
from jfric.periodic.guess import Guess
from jfric.periodic.linearised import Along, Equations, evaluated
from jfric.periodic.orbit import OrbitStatus, PeriodicOrbit
from jfric.periodic.path import OrbitPoint
from jfric.periodic.path_kernel import (
    Computation,
    Kernel,
    PathPoint,
    ahead,
    corrected,
    kernel_of,
    moved,
)
from jfric.periodic.shooting import Phase, Shooting, Unknowns
from jfric.periodic.solving import SEGMENTS, equations_of, periodic_orbit, solver_of_orbits
from jfric.periodic.state_vector import at_start, axes_of, checked_start
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem

#: Most rounds of Newton's method from a guess.
ROUNDS = 40
#: Place in the interval at which frequencies are commensurate only if they are everywhere.
GENERIC = 0.381966
#: Least size of a position or velocity along a path, as a part of the largest.
LEAST = 0.1


class PathProblem(NamedTuple):
    """Equations of the orbits of ``problem`` with the parameter ``name`` among the unknowns, over
    the interval between two ``limits``; ``options``: of :func:`jfric.periodic_orbit`."""

    problem: Problem
    name: str
    limits: tuple[float, float]
    segments: int
    options: dict[str, Any]

    def at(self, value: float) -> Problem:
        """The problem at a value of the parameter."""
        return set_parameters(self.problem, {self.name: jnp.asarray(value, float)})

    def equations(self, problem: Problem, there: Problem, state: Any) -> tuple[Shooting, Any, Any]:
        """The equations, the given or guessed period, and the length of the transient."""
        solver = solver_of_orbits(there, self.options.get("solver"))
        names = "period", "transient", "section", "cycles"
        known = {k: self.options[k] for k in names if k in self.options}
        shooting, given, transient = equations_of(problem, solver, self.segments, state, **known)
        return dataclasses.replace(shooting, path=self.name), given, transient

    def kernel(self, shooting: Shooting, guess: Guess) -> Kernel:
        """The equations with the sizes of their unknowns along the path: a contact that sticks
        where it begins may move later, like others."""
        sizes = np.split(np.asarray(guess.scales.state), 2)
        state = np.concatenate([np.maximum(x, LEAST * np.max(x)) for x in sizes])
        span = jnp.asarray(abs(self.limits[1] - self.limits[0]), float)
        scales = guess.scales._replace(state=jnp.asarray(state), parameter=span)
        return kernel_of(shooting, self.problem, scales)

    def require_period(self, shooting: Shooting) -> None:
        """Refuse loads without the period of the path's equations anywhere in the interval."""
        if shooting.autonomous or shooting.forcing is None:
            return
        start, stop = self.limits
        for part in (0.0, GENERIC, 1.0):
            there = self.at(start + part * (stop - start))
            try:
                require_commensurate(there, shooting.period_of(there, jnp.zeros(())))
            except ProblemError as error:
                raise ProblemError(
                    f"{self.name}: other loads do not follow it, make their frequencies one shared "
                    f"parameter ({error})"
                ) from None

    def first(self, kernel: Kernel, z: Unknowns, phase: Phase) -> Computation[PathPoint | None]:
        """The orbit at the parameter's value in ``z``, with the tangent towards the second
        limit."""
        most = self.options.get("max_iterations", ROUNDS)
        point = yield from corrected(kernel, z, phase, kernel.axis(), most=most)
        towards = kernel.axis(self.limits[1] - self.limits[0])
        return None if point is None else point.along(towards)


def first_point(path: PathProblem) -> Computation[tuple[Kernel, PathPoint]]:
    """The equations of a path, and the orbit at the first of its limits.

    Raises :class:`jfric.SimulationError` if there is no orbit, :class:`jfric.ProblemError` in
    single precision, in which neighbouring orbits cannot be told apart.
    """
    require_double("paths of orbits")
    there = path.at(path.limits[0])
    require_count("segments", path.segments, 1, SEGMENTS)
    start = path.options.get("start")
    if not isinstance(start, PeriodicOrbit):
        found = yield from _from_transient(path, there)
        if found is not None:
            return found
        start = periodic_orbit(there, segments=path.segments, **path.options).check()
    kernel, z, phase = yield from _equations_at(path, start, path.limits[0])
    path.require_period(kernel.shooting)
    point = yield from path.first(kernel, z, phase)
    if point is None:
        raise ProblemError(
            f"start: the orbit at {path.name} = {path.limits[0]:g} is not one of these equations; "
            "give the options with which it was found"
        )
    return kernel, point


def _from_transient(
    path: PathProblem, there: Problem
) -> Computation[tuple[Kernel, PathPoint] | None]:
    """Start from the motion that the problem's start, or a state, leads to under periodic loads;
    None if nothing depends on time, or no orbit is found."""
    state: Any = path.options.get("start")
    known = {"period", "start", "transient", "section", "cycles", "solver", "max_iterations"}
    if set(path.options) - known or np.ndim(state) > 1:
        return None
    shooting, given, transient = path.equations(there, there, state)
    if shooting.autonomous:
        return None
    x = at_start(there.resolved()) if state is None else checked_start(path.problem, state)
    if x.shape != (2 * len(axes_of(path.problem)),):
        return None
    path.require_period(shooting)
    guess = yield from ahead(shooting, there, given, x, transient)
    if int(guess.status) != int(OrbitStatus.CONVERGED):
        return None
    kernel = path.kernel(shooting, guess)
    z = guess.start._replace(parameter=jnp.asarray(path.limits[0], float))
    point = yield from path.first(kernel, z, guess.phase)
    return None if point is None else (kernel, point)


def _equations_at(
    path: PathProblem, orbit: PeriodicOrbit, value: float
) -> Computation[tuple[Kernel, Unknowns, Phase]]:
    """The equations of a path, and their solution ``orbit`` at the ``value`` of the parameter."""
    options = path.options | {"solver": path.options.get("solver") or orbit.solver, "section": None}
    # Not a setting of the path: an autonomous orbit has its own period.
    options["period"] = options.get("period") if orbit.forced else orbit.period
    there, path = path.at(value), path._replace(options=options)
    shooting, given, _ = path.equations(path.problem, there, orbit.state)
    period = given if orbit.forced else orbit.period
    guess = yield from ahead(shooting, there, period, orbit.state, 0.0)
    kernel = path.kernel(shooting, guess)
    same = orbit.states.shape[0] == path.segments
    states = orbit.states if same else guess.start.states
    return kernel, Unknowns(states, guess.start.period, jnp.asarray(value, float)), guess.phase


#: Distances from a point, in sizes of the motion and of the interval, at which the search looks for
#: the branch that leaves there.
DISTANCES = (1e-2, 3e-3, 1e-3, 3e-2, 1e-4)
#: Largest value of the smallest singular value, relative to the largest one, where paths cross.
CROSSING = 1e-3
#: Periods of the old motion in one period of the new motion, by the kind of point.
LONGER = {"flip": 2, "branch point": 1}


def branched(
    path: PathProblem, point: OrbitPoint, side: int
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
    low, high = sorted(path.limits)
    if not low <= point.parameter <= high:
        raise ProblemError(
            f"from_: found a point at {path.name} = {point.parameter:g}, outside the interval from "
            f"{low:g} to {high:g}"
        )
    kernel, z, phase = yield from _at_point(path, point, LONGER[point.kind])
    origin = kernel.scaled(z)
    across = Along(jnp.zeros(origin.shape), jnp.asarray(origin * kernel.sizes), jnp.zeros(()))
    equations = Equations(kernel.shooting, kernel.problem, phase, kernel.scales, across)
    scaled = equations.scaled(evaluated(equations, z)[0].jacobian)
    _, values, vt = np.linalg.svd(np.asarray(scaled))
    if values[-1] > CROSSING * values[0]:
        raise SimulationError(
            f"no branch leaves at {path.name} = {point.parameter:g}: its equations are regular "
            "there"
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
    raise SimulationError(f"no orbit of the branch at {path.name} = {point.parameter:g} was found")


def begun_at(path: PathProblem, point: OrbitPoint) -> Computation[tuple[Kernel, PathPoint]]:
    """The equations, and the orbit at ``point`` with the tangent of the path there."""
    kernel, z, phase = yield from _at_point(path, point, 1)
    tangent = kernel.axis() if point.kind != "fold" else np.zeros(kernel.sizes.shape)
    if point.kind == "fold" and point.slope_before is not None:
        # At a fold the tangent of the path has no part along the parameter.
        size = np.asarray(kernel.scales.state)
        part = np.nan_to_num(point.slope_before / size, posinf=0.0, neginf=0.0)
        tangent[: len(size)] = part / np.linalg.norm(part)
    found = yield from corrected(kernel, z, phase, tangent)
    if found is None:
        raise SimulationError(
            f"the orbit at {path.name} = {point.parameter:g} was not found again; give the options "
            "of its path"
        )
    return kernel, found


def _at_point(
    path: PathProblem, point: OrbitPoint, longer: int
) -> Computation[tuple[Kernel, Unknowns, Phase]]:
    """The equations, and their solution at ``point`` over ``longer`` times its period."""
    problem = eqx.tree_at(lambda p: p.time.start, path.problem, jnp.asarray(point.time))
    there = set_parameters(problem, {path.name: point.parameter})
    options: dict[str, Any] = path.options
    base = options.get("period")
    forcing = forcing_of(there, base)
    if forcing is None:
        options = options | {"period": longer * point.period}
    else:
        base = float(forcing.period(there.resolved()) if base is None else base)
        options = options | {"cycles": longer * round(point.period / base)}
    orbit = periodic_orbit(there, start=point.state, segments=path.segments, **options).check()
    path = path._replace(problem=problem, options=options)
    return (yield from _equations_at(path, orbit, point.parameter))


def _known(kernel: Kernel, point: OrbitPoint, plane: np.ndarray) -> np.ndarray:
    """Direction within ``plane`` of the path on which ``point`` was found."""
    size = np.asarray(kernel.scales.state)
    states = np.zeros(len(size)) if point.slope_before is None else point.slope_before / size
    wanted = np.append(states, 1.0 / float(kernel.scales.parameter))
    wanted = np.where(np.isfinite(wanted), wanted, 0.0)
    parts = plane[:, [*range(len(size)), -1]]
    found = np.linalg.lstsq(parts.T, wanted, rcond=None)[0]
    return found / np.linalg.norm(found)
