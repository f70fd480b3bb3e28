"""``continue_orbit``: periodic motions over a parameter, through folds and changes of events."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.limits import require_count
from jfric.periodic.branch_start import branched
from jfric.periodic.middle import held_behind, in_the_middle
from jfric.periodic.orbit import PeriodicOrbit
from jfric.periodic.path import OrbitPath, OrbitPoint
from jfric.periodic.path_kernel import (
    Kernel,
    PathPoint,
    ahead,
    corrected,
    kernel_of,
    moved,
)
from jfric.periodic.path_resume import resumed
from jfric.periodic.path_start import first_point
from jfric.periodic.path_store import KEPT, PathStore, Rows, path_of, request_of, rows_of_path
from jfric.periodic.special_points import JUMP, between, leaving, narrowed, special
from jfric.statics.path_names import checked_path
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem
from jfric.system.validation import validate

#: Longest and shortest step, in sizes of the motion and of the interval, and the first one.
LONGEST, SHORTEST, FIRST = 0.1, 1e-9, 0.01
#: Steps after which a path is left.
MOST = 2_000
#: Rounds of Newton's method beyond which the next step is shorter, and the cosine of the largest
#: turn of the path in a step.
ROUNDS, TURN = 6, 0.95
#: Growth of a state beyond its size after which sizes are taken anew.
GROWN = 2.0
#: Part of a period within which no event comes near the start of the next.
NEAR = 0.02


def continue_orbit(
    problem: Problem,
    path: str,
    start: float,
    stop: float,
    *,
    orbit: PeriodicOrbit | None = None,
    state: Any = None,
    from_: OrbitPoint | None = None,
    side: int = 1,
    max_step: float = LONGEST,
    max_steps: int = MOST,
    segments: int = 1,
    store: str | Path | None = None,
    title: str = "",
    watch: Callable[[float, int], None] | None = None,
    **options: Any,
) -> OrbitPath:
    """Periodic motions of ``problem`` over the parameter ``path``, from ``start`` to ``stop``.

    ``start``, ``stop``: values of the parameter [SI]. The path begins with the orbit at ``start``,
    from the guess ``orbit`` or ``state`` (2n,) or as :func:`jfric.periodic_orbit` finds it, which
    takes the further ``options``. It is followed by pseudo-arclength: with states, period and
    parameter unknown, Newton's method finds the orbit on a plane at right angles to the path, a
    step ahead. It goes on around folds, where the parameter turns back, until it leaves the
    interval. Folds, flips (a multiplier of -1), crossings of the unit circle by a pair, and points
    where another path crosses are located along the path. So is every
    **change of events**: where a period has another sequence of events (a first stick or lift-off,
    a touch, one slip more) the path has a corner; the last orbit with the old sequence is found by
    halving, and the path goes on from the first one with the new sequence, with derivatives on both
    sides. Where contacts stick for the whole period at any place within an interval, and the path
    meets an end of it, it goes on from the middle.

    ``from_``: a flip or branch point of a path of the same problem: the path then begins beside it,
    on the branch that leaves there (at a flip the motion of the doubled period), and goes away from
    it as long as the parameter is within the interval; ``side`` 1 or -1: to which side.

    ``max_step``: longest step, relative to the sizes of the motion and of the interval;
    ``max_steps``: steps after which the path is left; ``segments``: of multiple shooting.
    ``store``: a folder that keeps what is there, so that the same call goes on where one that was
    stopped ended; ``title``: written there. ``watch`` is told after each step how far the path has
    come, as a part of the interval, and the number of its orbits. Raises
    :class:`jfric.ProblemError` for an unknown parameter, an empty interval and a folder that holds
    something else, :class:`jfric.SimulationError` where there is no orbit to begin with. Source:
    E. L. Allgower, K. Georg, Introduction to Numerical Continuation Methods (2003). A shaken mass
    that begins to stick as friction grows::

        >>> shaken = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "spring": jfric.Spring("x", 1.0),
        ...         "damper": jfric.Damper("x", 0.1),
        ...         "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=1.0),
        ...         "load": jfric.Load("x", jfric.Harmonic(1.0, 0.8)),
        ...     },
        ... )
        >>> path = jfric.continue_orbit(shaken, "friction.mu", 0.7, 0.75)
        >>> [(p.kind, round(p.parameter, 8)) for p in path.special]
        [('event change', 0.72944127), ('end', 0.75)]
    """
    name = checked_path(problem, path)
    start, stop = float(start), float(stop)
    if not np.isfinite([start, stop]).all() or start == stop:
        raise ProblemError(f"stop: found {stop:g}, must differ from start ({start:g})")
    for value in (start, stop):
        validate(set_parameters(problem, {name: value}))
    require_count("max_steps", max_steps, 1, 10**6)
    if not 0.0 < max_step <= 1.0:
        raise ProblemError(f"max_step: found {max_step}, must lie between 0 and 1")
    if from_ is not None and (orbit is not None or state is not None):
        raise ProblemError("from_: found a point beside orbit or state, give one of them")
    limits, kept = (start, stop), None
    if store is not None:
        begins = {"orbit": orbit, "state": state, "from_": from_, "side": side}
        settings = [max_step, max_steps, segments]
        request = request_of(problem, name, limits, settings, begins | options)
        kept = PathStore(Path(store), request, title)
    if from_ is not None:
        kernel, begin = branched(problem, name, from_, limits, side, segments, options)
    else:
        if orbit is not None or state is not None:
            options["start"] = state if orbit is None else orbit
        kernel, begin = first_point(problem, name, limits, segments, options)
    whole = None if kept is None else kept.finished()
    if whole is not None:
        return path_of(whole[0], begin.orbit, *whole[1:], problem, name, limits)
    before, step, like = None if kept is None else kept.begun(), FIRST, begin.orbit
    if before is not None:
        kernel, begin, step = resumed(kernel, before[2])
    offset = 0 if before is None else len(before[0].columns["parameter"])
    furthest, following = 0.0, step

    def gathered(follower: Follower) -> tuple[Rows, list[OrbitPoint]]:
        if before is None:
            return rows_of_path(follower.rows), follower.special
        # The row that a path goes on from is there already.
        found = [dataclasses.replace(p, row=p.row + offset - 1) for p in follower.special]
        new = follower.rows[1:]
        return before[0].followed_by(rows_of_path(new)) if new else before[0], before[1] + found

    def told(follower: Follower, step: float) -> None:
        nonlocal furthest, following
        last, following = follower.rows[-1], step
        part = (last.parameter - start) / (stop - start)
        furthest = max(furthest, min(part, 1.0))
        if watch is not None:
            watch(furthest, len(follower.rows) + (offset - 1 if offset else 0))
        if kept is not None and len(follower.rows) % KEPT == 0:
            kept.keep_part(*gathered(follower), follower.kernel, last, step)

    follower = Follower(kernel, limits, max_step, max_steps - offset, told)
    try:
        follower.follow(begin, step)
    except KeyboardInterrupt:
        if kept is not None and len(follower.rows) > 1:
            kept.keep_part(*gathered(follower), follower.kernel, follower.rows[-1], following)
        raise
    rows, points = gathered(follower)
    if kept is not None:
        kept.keep(rows, points, follower.remarks)
    return path_of(rows, like, points, follower.remarks, problem, name, limits)


class Follower:
    """A path as it is followed: rows, special points, remarks. ``watch`` is told after each step,
    with the length of the next."""

    def __init__(
        self,
        kernel: Kernel,
        limits,
        max_step: float,
        max_steps: int,
        watch: Callable[[Follower, float], None] = lambda follower, step: None,
    ):
        self.kernel, self.limits, self.watch = kernel, limits, watch
        self.max_step, self.max_steps = max_step, max_steps
        self.rows: list[PathPoint] = []
        self.special: list[OrbitPoint] = []
        self.remarks: list[str] = []
        self._middle: PathPoint | None = None

    def follow(self, point: PathPoint, step: float = FIRST) -> None:
        """Step after step until the interval is left or nothing goes on."""
        self.rows.append(point)
        step = min(step, self.max_step)
        for _ in range(self.max_steps):
            point = self._as_large_as(self._away_from_events(self.rows[-1]))
            following, step = self._step(point, step)
            if following is None:
                return
            self.watch(self, step)
        self.remarks.append(f"left after {self.max_steps} steps: raise max_steps")

    def _away_from_events(self, point: PathPoint) -> PathPoint:
        """The same orbit from another instant, where an event comes near its start: there the state
        would jump."""
        orbit = point.orbit
        first, period = float(orbit.problem.time.start), float(orbit.period)
        count = min(int(orbit.event_count), len(orbit.event_times))
        places = np.sort((np.asarray(orbit.event_times[:count]) - first) / period)
        if not count or min(places[0], 1.0 - places[-1]) > NEAR:
            return point
        gaps = np.diff(places, append=places[0] + 1.0)
        widest = int(np.argmax(gaps))
        begin = first + period * float(np.mod(places[widest] + 0.5 * gaps[widest], 1.0))
        if gaps[widest] <= 2.0 * NEAR:
            return point
        guess = ahead(
            self.kernel.call,
            self.kernel.shooting,
            orbit.problem,
            period,
            orbit.state,
            (begin - first) / period,
        )
        begins = jnp.asarray(begin, float)
        problem = eqx.tree_at(lambda p: p.time.start, self.kernel.problem, begins)
        kernel = self.kernel._replace(problem=problem)
        z, phase = point.z._replace(states=guess.start.states), point.phase
        if kernel.shooting.autonomous:
            phase = guess.phase
        fixed = np.zeros(point.u.shape)
        fixed[-1] = 1.0 if point.tangent[-1] >= 0 else -1.0
        origin = np.asarray(kernel.shooting.pack(z)) / kernel.sizes
        shifted = corrected(kernel, z, phase, fixed, origin, 0.0)
        if shifted is None:
            return point
        self.kernel = kernel
        return shifted

    def _as_large_as(self, point: PathPoint) -> PathPoint:
        """The same point, with sizes that have grown with the motion: what hardly moved where the
        path began may be as large as everything else by now, and steps are parts of sizes."""
        states = np.max(np.abs(np.asarray(point.z.states)), axis=0)
        if np.all(states <= GROWN * np.asarray(self.kernel.scales.state)):
            return point
        problem, period = point.orbit.problem, point.orbit.period
        shooting, call, known = self.kernel.shooting, self.kernel.call, self.kernel.scales
        guess = ahead(call, shooting, problem, period, point.orbit.state, 0.0)
        state = jnp.maximum(jnp.asarray(known.state), guess.scales.state)
        scales = known._replace(state=state)
        kernel = kernel_of(shooting, self.kernel.problem, scales, call)
        tangent = point.tangent * point.sizes / kernel.sizes
        tangent = tangent / np.linalg.norm(tangent)
        origin = np.asarray(shooting.pack(point.z)) / kernel.sizes
        found = corrected(kernel, point.z, point.phase, tangent, origin, 0.0)
        if found is None:
            return point
        self.kernel, self._middle = kernel, None
        return found.along(tangent)

    def _at(self, point: PathPoint):
        """Orbits on planes at right angles to the path behind ``point``."""

        def at(s: float) -> PathPoint | None:
            z = moved(self.kernel, point.z, s * point.tangent)
            return corrected(self.kernel, z, point.phase, point.tangent, point.u, s)

        return at

    def _step(self, point: PathPoint, step: float) -> tuple[PathPoint | None, float]:
        """One step: the point it ends at (None: the path ends), and the length of the next."""
        at = self._at(point)
        found = at(step)
        while found is None or not _is_near(point, found):
            if found is not None and found.events != point.events:
                break
            if step <= SHORTEST:
                return self._ends(point)
            step *= 0.25 if found is None else 0.5
            found = at(step)
            if found is None and step <= 1e-5:
                return self._changes(point, at, None, step * 4.0)
        if found.events != point.events:
            return self._changes(point, at, found, step)
        outside = self._outside(found)
        if outside:
            return self._to_the_end(point, at, found, step)
        self._locate(point, at, found, step)
        self.rows.append(found)
        grows = found.iterations <= ROUNDS
        return found, min(step * (1.5 if grows else 0.7), self.max_step)

    def _locate(self, point, at, found, step) -> None:
        for _, kind, place in between(self.kernel, at, point, found, step):
            entry = special(kind, place, len(self.rows) - 1)
            self.special.append(dataclasses.replace(entry, after=place.events))

    def _changes(self, point, at, found, step) -> tuple[PathPoint | None, float]:
        """To the last orbit with these events, and on behind it."""
        change = narrowed(at, point, found, step)
        before, after = change.before, change.after
        if self._outside(before):
            return self._to_the_end(point, at, before, change.s_before)
        centred = in_the_middle(self.kernel, before) if len(before.open) else None
        if centred is not None:
            return self._on_from(point, centred, step)
        if change.s_before > 0.0:
            self._locate(point, at, before, change.s_before)
            self.rows.append(before)
        held = held_behind(self.kernel, before) if len(before.events) else None
        if held is not None:
            closed, after = held
            change = change._replace(after=after)
        other = after is not None
        if after is None or np.linalg.norm(after.u - before.u) > JUMP:
            # Nothing goes straight on: a path that begins here may go back, or off like a root.
            after = leaving(self.kernel, before)
            change = change._replace(after=after)
        if after is not None:
            away = after.u - before.u
            after = after.along(away if away.any() else point.tangent)
            change = change._replace(after=after)
        kind = "event change" if other or after is not None else "dead end"
        self.special.append(special(kind, before, len(self.rows) - 1, change=change))
        if held is not None:
            self.special[-1] = dataclasses.replace(
                self.special[-1],
                parameter=closed.parameter,
                state=np.asarray(closed.orbit.state),
            )
        if after is None:
            return None, step
        self.rows.append(after)
        return after, FIRST * self.max_step

    def _on_from(self, point: PathPoint, centred: PathPoint, step) -> tuple[PathPoint, float]:
        """On from the middle of what sticking leaves open."""
        away = centred.u - self._middle.u if self._middle is not None else centred.tangent
        if self._middle is None or not away[-1] * point.tangent[-1] > 0.0:
            away = centred.tangent
        tangent = away / np.linalg.norm(away)
        tangent = tangent * (1.0 if tangent @ point.tangent >= 0 else -1.0)
        self._middle = centred._replace(tangent=tangent)
        self.rows.append(self._middle)
        return self._middle, max(step, SHORTEST)

    def _ends(self, point) -> tuple[None, float]:
        self.special.append(special("dead end", point, len(self.rows) - 1))
        return None, SHORTEST

    def _outside(self, point: PathPoint) -> bool:
        low, high = sorted(self.limits)
        return not low <= point.parameter <= high

    def _to_the_end(self, point, at, found, step) -> tuple[PathPoint | None, float]:
        """The orbit at the end of the interval."""
        low, high = sorted(self.limits)
        edge = high if found.parameter > high else low
        fixed = np.zeros(point.u.shape)
        fixed[-1] = np.sign(found.parameter - point.parameter)
        size = float(self.kernel.scales.parameter)
        part = (edge - point.parameter) / (found.parameter - point.parameter)
        guess = point.u + part * (found.u - point.u)
        z = moved(self.kernel, point.z, guess - point.u)
        s = abs(edge - point.parameter) / size
        last = corrected(self.kernel, z, point.phase, fixed, point.u, s)
        if last is None or last.events != point.events:
            return self._changes(point, at, found if last is None else None, step)
        last = last.along(point.tangent)
        for s_there, kind, place in between(self.kernel, at, point, found, step):
            del s_there
            if not self._outside(place):
                entry = special(kind, place, len(self.rows) - 1)
                self.special.append(dataclasses.replace(entry, after=place.events))
        self.rows.append(last)
        self.special.append(special("end", last, len(self.rows) - 1))
        return None, step


def _is_near(point: PathPoint, found: PathPoint) -> bool:
    """Whether the path turns little between the two."""
    return abs(float(point.tangent @ found.tangent)) >= TURN
