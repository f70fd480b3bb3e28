"""Starts of paths of orbits: equations and first point; at a special point, also on the branch that
leaves there."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError, SimulationError
from jfric.numerics.limits import require_count, require_double
from jfric.periodic.forcing import forcing_of, require_commensurate
from jfric.periodic.linearised import Along, Scales, evaluated, scaled_equations
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


def first_point(
    problem: Problem,
    name: str,
    limits: tuple[float, float],
    segments: int,
    options: dict[str, Any],
) -> Computation[tuple[Kernel, PathPoint]]:
    """The equations with the parameter ``name`` among the unknowns, and the orbit at the first of
    the ``limits``; ``options``: of :func:`jfric.periodic_orbit`.

    Raises :class:`jfric.SimulationError` if there is no orbit, :class:`jfric.ProblemError` in
    single precision, in which neighbouring orbits cannot be told apart.
    """
    require_double("paths of orbits")
    begin = jnp.asarray(limits[0], float)
    there = set_parameters(problem, {name: begin})
    require_count("segments", segments, 1, SEGMENTS)
    start = options.get("start")
    if not isinstance(start, PeriodicOrbit):
        found = yield from _from_transient(problem, there, name, limits, segments, options)
        if found is not None:
            return found
        start = periodic_orbit(there, segments=segments, **options).check()
    return (yield from _from_orbit(problem, name, start, limits, segments, options))


def equations_of_path(
    problem: Problem, there: Problem, name: str, segments: int, options: dict[str, Any], state: Any
) -> tuple[Shooting, Any, Any]:
    """The equations, the given or guessed period, and the length of the transient."""
    solver = solver_of_orbits(there, options.get("solver"))
    known = {k: options[k] for k in ("period", "transient", "section", "cycles") if k in options}
    shooting, given, transient = equations_of(problem, solver, segments, state, **known)
    return dataclasses.replace(shooting, path=name), given, transient


def _require_period(shooting: Shooting, problem: Problem, name: str, limits) -> None:
    """Refuse loads without the period of the path's equations anywhere in the interval."""
    if shooting.autonomous:
        return
    for part in (0.0, GENERIC, 1.0):
        value = jnp.asarray(limits[0] + part * (limits[1] - limits[0]), float)
        there = set_parameters(problem, {name: value})
        if shooting.forcing is None:
            continue
        try:
            require_commensurate(there, shooting.period_of(there, jnp.zeros(())))
        except ProblemError as error:
            raise ProblemError(
                f"{name}: other loads do not follow it, make their frequencies one shared "
                f"parameter ({error})"
            ) from None


def _from_transient(
    problem, there, name, limits, segments, options
) -> Computation[tuple[Kernel, PathPoint] | None]:
    """Start from the motion that the problem's start, or a state, leads to under periodic loads;
    None if nothing depends on time, or no orbit is found."""
    state = options.get("start")
    known = {"period", "start", "transient", "section", "cycles", "solver", "max_iterations"}
    if set(options) - known or np.ndim(state) > 1:
        return None
    shooting, given, transient = equations_of_path(there, there, name, segments, options, state)
    if shooting.autonomous:
        return None
    x = at_start(there.resolved()) if state is None else checked_start(problem, state)
    if x.shape != (2 * len(axes_of(problem)),):
        return None
    _require_period(shooting, problem, name, limits)
    guess = yield from ahead(shooting, there, given, x, transient)
    if int(guess.status) != int(OrbitStatus.CONVERGED):
        return None
    scales = _scales_of_path(guess.scales, limits[1] - limits[0])
    kernel = kernel_of(shooting, problem, scales)
    z = guess.start._replace(parameter=jnp.asarray(limits[0], float))
    most = options.get("max_iterations", ROUNDS)
    point = yield from at_parameter(kernel, z, guess.phase, limits, most)
    return None if point is None else (kernel, point)


def _from_orbit(
    problem, name, orbit: PeriodicOrbit, limits, segments, options
) -> Computation[tuple[Kernel, PathPoint]]:
    """Start from a known orbit."""
    span = limits[1] - limits[0]
    begin = yield from equations_at(problem, name, orbit, limits[0], span, segments, options)
    kernel, z, phase = begin
    _require_period(kernel.shooting, problem, name, limits)
    most = options.get("max_iterations", ROUNDS)
    point = yield from at_parameter(kernel, z, phase, limits, most)
    if point is None:
        raise ProblemError(
            f"start: the orbit at {name} = {limits[0]:g} is not one of these equations; give the "
            "options with which it was found"
        )
    return kernel, point


def equations_at(
    problem: Problem,
    name: str,
    orbit: PeriodicOrbit,
    value: float,
    span: float,
    segments: int,
    options: dict[str, Any],
) -> Computation[tuple[Kernel, Unknowns, Phase]]:
    """The equations with the parameter ``name`` among the unknowns, of size ``span``, and their
    solution ``orbit`` at the ``value`` of the parameter."""
    options = options | {"solver": options.get("solver") or orbit.solver, "section": None}
    # Not a setting of the path: an autonomous orbit has its own period.
    options["period"] = options.get("period") if orbit.forced else orbit.period
    there = set_parameters(problem, {name: jnp.asarray(value, float)})
    shooting, given, _ = equations_of_path(problem, there, name, segments, options, orbit.state)
    period = given if orbit.forced else orbit.period
    guess = yield from ahead(shooting, there, period, orbit.state, 0.0)
    scales = _scales_of_path(guess.scales, span)
    kernel = kernel_of(shooting, problem, scales)
    same = orbit.states.shape[0] == segments
    states = orbit.states if same else guess.start.states
    return kernel, Unknowns(states, guess.start.period, jnp.asarray(value, float)), guess.phase


def _scales_of_path(scales: Scales, span: float) -> Scales:
    """Sizes along a path: a contact that sticks where it begins may move later, like others."""
    sizes = np.asarray(scales.state)
    parts = [np.maximum(x, LEAST * np.max(x)) for x in np.split(sizes, 2)]
    parameter = jnp.asarray(abs(span), float)
    return scales._replace(state=jnp.asarray(np.concatenate(parts)), parameter=parameter)


def at_parameter(
    kernel: Kernel, z: Unknowns, phase, limits, most: int
) -> Computation[PathPoint | None]:
    """The orbit at the parameter's value in ``z``, with the tangent towards the second limit."""
    point = yield from corrected(kernel, z, phase, kernel.axis(), most=most)
    return None if point is None else point.along(kernel.axis(limits[1] - limits[0]))


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
    span, longer = limits[1] - limits[0], LONGER[point.kind]
    begin = yield from _at_point(problem, name, point, span, segments, options, longer)
    kernel, z, phase = begin
    origin = kernel.scaled(z)
    across = Along(jnp.zeros(origin.shape), jnp.asarray(origin * kernel.sizes), jnp.zeros(()))
    found, _ = evaluated(kernel.shooting, kernel.problem, z, phase, kernel.scales, across)
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
    kernel, z, phase = yield from _at_point(problem, name, point, span, segments, options, 1)
    tangent = kernel.axis() if point.kind != "fold" else np.zeros(kernel.sizes.shape)
    if point.kind == "fold" and point.slope_before is not None:
        # At a fold the tangent of the path has no part along the parameter.
        size = np.asarray(kernel.scales.state)
        part = np.nan_to_num(point.slope_before / size, posinf=0.0, neginf=0.0)
        tangent[: len(size)] = part / np.linalg.norm(part)
    found = yield from corrected(kernel, z, phase, tangent)
    if found is None:
        raise SimulationError(
            f"the orbit at {name} = {point.parameter:g} was not found again; give the options of "
            "its path"
        )
    return kernel, found


def _at_point(
    problem: Problem, name: str, point: OrbitPoint, span: float, segments: int, options, longer: int
) -> Computation[tuple[Kernel, Unknowns, Phase]]:
    """The equations, and their solution at ``point`` over ``longer`` times its period."""
    problem = eqx.tree_at(lambda p: p.time.start, problem, jnp.asarray(point.time))
    there = set_parameters(problem, {name: point.parameter})
    forcing, base = forcing_of(there, options.get("period")), options.get("period")
    if forcing is None:
        options = options | {"period": longer * point.period}
    else:
        base = float(forcing.period(there.resolved()) if base is None else base)
        options = options | {"cycles": longer * round(point.period / base)}
    orbit = periodic_orbit(there, start=point.state, segments=segments, **options).check()
    value = point.parameter
    return (yield from equations_at(problem, name, orbit, value, span, segments, options))


def _known(kernel: Kernel, point: OrbitPoint, plane: np.ndarray) -> np.ndarray:
    """Direction within ``plane`` of the path on which ``point`` was found."""
    size = np.asarray(kernel.scales.state)
    states = np.zeros(len(size)) if point.slope_before is None else point.slope_before / size
    wanted = np.append(states, 1.0 / float(kernel.scales.parameter))
    wanted = np.where(np.isfinite(wanted), wanted, 0.0)
    parts = plane[:, [*range(len(size)), -1]]
    found = np.linalg.lstsq(parts.T, wanted, rcond=None)[0]
    return found / np.linalg.norm(found)
