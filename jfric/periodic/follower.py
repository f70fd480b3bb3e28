"""How a path of orbits is followed: step after step, round folds and through changes of events."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jfric.periodic.orbit_choice import held_behind, in_the_middle
from jfric.periodic.path import OrbitPoint
from jfric.periodic.path_kernel import (
    Kernel,
    PathPoint,
    ahead,
    corrected,
    kernel_of,
    moved,
)
from jfric.periodic.special_points import JUMP, between, equilibrium, leaving, narrowed, special

#: Longest and shortest step, in sizes of the motion and of the interval, and the first one.
LONGEST, SHORTEST, FIRST = 0.1, 1e-9, 0.01
#: Rounds of Newton's method beyond which the next step is shorter, and the cosine of the largest
#: turn of the path in a step.
ROUNDS, TURN = 6, 0.95
#: Growth of a state beyond its size after which sizes are taken anew.
GROWN = 2.0
#: Motions slower than this part of the fastest one at a start may be about to vanish.
SLOW = 0.2
#: Part of a period within which no event comes near the start of the next.
NEAR = 0.02
#: Gaps between events that differ by less than this part of a period are equal.
EQUAL = 1e-9


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
        self._fastest = 0.0

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
        """The orbit of ``point`` from another instant, where an event comes near its start: at an
        event the state would jump."""
        orbit = point.orbit
        first, period = float(orbit.problem.time.start), float(orbit.period)
        count = min(int(orbit.event_count), len(orbit.event_times))
        places = np.sort((np.asarray(orbit.event_times[:count]) - first) / period)
        if not count or min(places[0], 1.0 - places[-1]) > NEAR:
            return point
        gaps = np.diff(places, append=places[0] + 1.0)
        # Of gaps that are equal by symmetry the first, whatever rounding says.
        widest = int(np.argmax(gaps >= np.max(gaps) - EQUAL))
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
        """The given point in sizes that have grown with the motion: a coordinate that hardly moved
        where the path began may be as large as the others by now, and steps are parts of sizes."""
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
        if self._vanishes(point, found):
            return None, step
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

    def _vanishes(self, point: PathPoint, found: PathPoint | None) -> bool:
        """Whether the motion shrinks to an equilibrium a step ahead, where the path ends: behind it
        are the same orbits, half a period later."""
        size = float(np.linalg.norm(point.flow))
        self._fastest = max(self._fastest, size)
        opposite = found is not None and found.flow @ point.flow < 0.0
        if not (opposite or size < SLOW * self._fastest):
            return False
        end = equilibrium(self.kernel, point, self.max_step)
        if end is None or self._outside(end):
            return False
        self.special.append(special("hopf", end, len(self.rows) - 1))
        return True

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
