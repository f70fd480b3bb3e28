"""Follower of a path of orbits: step after step, round folds and through changes of events.

Where sticking leaves several orbits, the path takes the one in the middle. A contact that sticks
for the whole cycle may stick at any place within an interval, at whose ends it would slip to one
side. A path followed from another place would end at an end of the interval, though the motion goes
on: the interval shrinks to a point only where the contact slips to both sides. The middle of the
interval leads to that point.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jfric.numerics.continuation import (
    STALLED,
    TOO_MANY,
    Advance,
    Lengths,
    Trial,
    delegate,
    halved,
    steps,
)
from jfric.periodic.path import OrbitKind, OrbitPoint
from jfric.periodic.path_kernel import (
    Computation,
    Kernel,
    PathPoint,
    ahead,
    corrected,
    kernel_of,
    moved,
)
from jfric.periodic.special_points import (
    JUMP,
    At,
    between,
    equilibrium,
    leaving,
    narrowed,
    slope,
    special,
)

#: Longest and shortest step, in sizes of the motion and of the interval, and the first one.
LONGEST, SHORTEST, FIRST = 0.1, 1e-9, 0.01
#: Rounds of Newton's method above which the next step is shorter, and cosine of the largest turn of
#: the path in a step.
ROUNDS, TURN = 6, 0.95
#: Length below which a step without an orbit ends at a change of events.
LOST = 1e-5
#: Growth of a state, relative to its size, after which sizes are computed again.
GROWN = 2.0
#: Part of the fastest speed at a start below which a motion may be about to vanish.
SLOW = 0.2
#: Least distance of an event from the start of the next period, as a part of a period.
NEAR = 0.02
#: Difference, as a part of a period, below which gaps between events are equal.
EQUAL = 1e-9

# Orbits that sticking leaves open.
#: First distance tried, in sizes of the motion, and accuracy of the ends as a part of the interval.
SHIFT, PART = 1e-9, 1e-6
#: Length, in sizes of the motion, below which an interval is a point.
POINT = 1e-7
#: Farthest end that is searched for, and most halvings.
FARTHEST, HALVINGS = 10.0, 60
#: Distances beyond a change of events, in sizes of the interval, at which orbits that stick are
#: searched.
BEHIND = (1e-6, 1e-5)
#: Secants to the point where that interval closes, the first step in parts of the distance, and the
#: part of the rest that each next step covers.
SECANTS, TOWARDS, NEARLY = 3, 0.05, 0.95
#: Largest shift of an orbit by Newton's method along the open directions.
SAME = 1e-3


class Follower:
    """A path as it is followed: rows, special points, remarks. ``watch`` is called after each step
    with the follower and the length of the next step."""

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

    def follow(self, point: PathPoint, step: float = FIRST) -> Computation[None]:
        """Follow the path step by step until it leaves the interval or nothing goes on."""
        self.rows.append(point)
        lengths = Lengths(self.max_step, SHORTEST)
        path = steps(point, step, lengths, self.max_steps)
        ended = yield from delegate(path, self._step)
        if ended == STALLED:
            self._mark("dead end", self._here)
        if ended == TOO_MANY:
            self.remarks.append(f"left after {self.max_steps} steps: raise max_steps")

    def _step(self, trial: Trial) -> Computation[Advance]:
        if trial.first:
            apart = yield from self._away_from_events(trial.here)
            self._here = yield from self._as_large_as(apart)
        advance = yield from self._tried(self._here, trial.size, trial.first)
        if advance.point is not None:
            self.watch(self, advance.size)
        return advance

    def _away_from_events(self, point: PathPoint) -> Computation[PathPoint]:
        """The orbit of ``point`` from another instant if an event comes near its start, because the
        state would jump at an event."""
        orbit = point.orbit
        first, period = float(orbit.problem.time.start), float(orbit.period)
        count = min(int(orbit.event_count), len(orbit.event_times))
        places = np.sort((np.asarray(orbit.event_times[:count]) - first) / period)
        if not count or min(places[0], 1.0 - places[-1]) > NEAR:
            return point
        gaps = np.diff(places, append=places[0] + 1.0)
        # The first of the gaps that are equal by symmetry, whatever rounding does.
        widest = int(np.argmax(gaps >= np.max(gaps) - EQUAL))
        begin = first + period * float(np.mod(places[widest] + 0.5 * gaps[widest], 1.0))
        if gaps[widest] <= 2.0 * NEAR:
            return point
        place = (begin - first) / period
        guess = yield from ahead(self.kernel.shooting, orbit.problem, period, orbit.state, place)
        begins = jnp.asarray(begin, float)
        problem = eqx.tree_at(lambda p: p.time.start, self.kernel.problem, begins)
        kernel = self.kernel._replace(problem=problem)
        z, phase = point.z._replace(states=guess.start.states), point.phase
        if kernel.shooting.autonomous:
            phase = guess.phase
        shifted = yield from corrected(kernel, z, phase, kernel.axis(point.tangent[-1]))
        if shifted is None:
            return point
        self.kernel = kernel
        return shifted

    def _as_large_as(self, point: PathPoint) -> Computation[PathPoint]:
        """The given point in sizes that have grown with the motion. A coordinate that hardly moved
        where the path began may be as large as the others by now, and steps are parts of sizes."""
        states = np.max(np.abs(np.asarray(point.z.states)), axis=0)
        if np.all(states <= GROWN * np.asarray(self.kernel.scales.state)):
            return point
        problem, period = point.orbit.problem, point.orbit.period
        shooting, known = self.kernel.shooting, self.kernel.scales
        guess = yield from ahead(shooting, problem, period, point.orbit.state, 0.0)
        state = jnp.maximum(jnp.asarray(known.state), guess.scales.state)
        scales = known._replace(state=state)
        kernel = kernel_of(shooting, self.kernel.problem, scales)
        tangent = point.tangent * point.sizes / kernel.sizes
        tangent = tangent / np.linalg.norm(tangent)
        found = yield from corrected(kernel, point.z, point.phase, tangent)
        if found is None:
            return point
        self.kernel, self._middle = kernel, None
        return found.along(tangent)

    def _at(self, point: PathPoint) -> At:
        """Function of the orbits on planes at right angles to the path, ahead of ``point``."""

        def at(s: float) -> Computation[PathPoint | None]:
            z = moved(self.kernel, point.z, s * point.tangent)
            return corrected(self.kernel, z, point.phase, point.tangent, point.u, s)

        return at

    def _tried(self, point: PathPoint, step: float, first: bool) -> Computation[Advance]:
        """The result of a step, or the step to try in its place."""
        at = self._at(point)
        found = yield from at(step)
        if first and (yield from self._vanishes(point, found)):
            return Advance(None, ended="hopf")
        if found is None:
            if first or step > LOST:
                return Advance(None, 0.25 * step)
            return (yield from self._changes(point, at, None, 4.0 * step))
        if found.events != point.events:
            return (yield from self._changes(point, at, found, step))
        if abs(float(point.tangent @ found.tangent)) < TURN:
            return Advance(None, 0.5 * step)
        if self._outside(found):
            return (yield from self._to_the_end(point, at, found, step))
        yield from self._locate(point, at, found, step)
        self.rows.append(found)
        return Advance(found, step * (1.5 if found.iterations <= ROUNDS else 0.7))

    def _vanishes(self, point: PathPoint, found: PathPoint | None) -> Computation[bool]:
        """Whether the motion shrinks to an equilibrium a step ahead, where the path ends: beyond it
        come the same orbits, half a period later."""
        size = float(np.linalg.norm(point.flow))
        self._fastest = max(self._fastest, size)
        opposite = found is not None and found.flow @ point.flow < 0.0
        if not (opposite or size < SLOW * self._fastest):
            return False
        end = yield from equilibrium(self.kernel, point, self.max_step)
        if end is None or self._outside(end):
            return False
        self._mark("hopf", end)
        return True

    def _mark(self, kind: OrbitKind, point: PathPoint, **other: Any) -> None:
        """Add a special point."""
        entry = special(kind, point, len(self.rows) - 1)
        self.special.append(dataclasses.replace(entry, **other))

    def _locate(self, point: PathPoint, at: At, found: PathPoint, step: float) -> Computation[None]:
        """Add the special points within a step, or only those inside the interval."""
        outside = self._outside(found)
        for _, kind, place in (yield from between(at, point, found, step)):
            if not (outside and self._outside(place)):
                self._mark(kind, place, after=place.events)

    def _changes(
        self, point: PathPoint, at: At, found: PathPoint | None, step: float
    ) -> Computation[Advance]:
        """Go to the last orbit with these events, and on to the new events."""
        before, s_before, after = yield from narrowed(at, point, found, step)
        if self._outside(before):
            return (yield from self._to_the_end(point, at, before, s_before))
        if len(before.open):
            centred = yield from _in_the_middle(self.kernel, before)
            if centred is not None:
                return self._on_from(point, centred, step)
        if s_before > 0.0:
            yield from self._locate(point, at, before, s_before)
            self.rows.append(before)
        place: dict[str, Any] = {}
        if len(before.events) and (held := (yield from _held_behind(self.kernel, before))):
            place, after = held
        goes_on = after is not None
        if after is None or np.linalg.norm(after.u - before.u) > JUMP:
            # No path goes straight on: a path that begins here may go back, or off like a root.
            after = yield from leaving(self.kernel, before)
        if after is None:
            self._mark("event change" if goes_on else "dead end", before, **place)
            return Advance(None, ended="dead end")
        away = after.u - before.u
        after = after.along(away if away.any() else point.tangent)
        behind = {"after": after.events, "slope_after": slope(after)}
        self._mark("event change", before, **behind, **place)
        self.rows.append(after)
        return Advance(after, FIRST * self.max_step)

    def _on_from(self, point: PathPoint, centred: PathPoint, step: float) -> Advance:
        """Go on from the middle of the orbits that sticking leaves open."""
        away = centred.u - self._middle.u if self._middle is not None else centred.tangent
        if self._middle is None or not away[-1] * point.tangent[-1] > 0.0:
            away = centred.tangent
        tangent = away / np.linalg.norm(away)
        tangent = tangent * (1.0 if tangent @ point.tangent >= 0 else -1.0)
        self._middle = centred._replace(tangent=tangent)
        self.rows.append(self._middle)
        return Advance(self._middle, max(step, SHORTEST))

    def _outside(self, point: PathPoint) -> bool:
        low, high = sorted(self.limits)
        return not low <= point.parameter <= high

    def _to_the_end(
        self, point: PathPoint, at: At, found: PathPoint, step: float
    ) -> Computation[Advance]:
        """The orbit at the end of the interval."""
        low, high = sorted(self.limits)
        edge = high if found.parameter > high else low
        fixed = self.kernel.axis(found.parameter - point.parameter)
        size = float(self.kernel.scales.parameter)
        part = (edge - point.parameter) / (found.parameter - point.parameter)
        guess = point.u + part * (found.u - point.u)
        z = moved(self.kernel, point.z, guess - point.u)
        s = abs(edge - point.parameter) / size
        last = yield from corrected(self.kernel, z, point.phase, fixed, point.u, s)
        if last is None or last.events != point.events:
            beyond = found if last is None else None
            return (yield from self._changes(point, at, beyond, step))
        yield from self._locate(point, at, found, step)
        last = last.along(point.tangent)
        self.rows.append(last)
        self._mark("end", last)
        return Advance(None, ended="end")


def _in_the_middle(kernel: Kernel, point: PathPoint) -> Computation[PathPoint | None]:
    """The orbit in the middle of the open orbits with the events of ``point``, at the same
    parameter, one direction after the other; None if they are only a point."""
    widths, found = yield from _middle(kernel, point)
    return found if max(widths, default=0.0) > POINT else None


def _middle(kernel: Kernel, point: PathPoint) -> Computation[tuple[list[float], PathPoint]]:
    """The middle orbit, and the widths of the open orbits in each direction with two ends."""
    widths, found = [], point
    for direction in point.open:
        low = yield from _end(kernel, found, -direction)
        high = yield from _end(kernel, found, direction)
        if not np.isfinite(high + low):
            continue
        there = yield from _shifted(kernel, found, 0.5 * (high - low) * direction)
        if there is not None:
            widths.append(high + low)
            found = there
    return widths, found


def _held_behind(
    kernel: Kernel, point: PathPoint
) -> Computation[tuple[dict[str, Any], PathPoint] | None]:
    """End of slip to both sides beyond ``point``, the last orbit found that slips: parameter and
    state of the orbit at which the interval of possible places of sticking closes, and the middle
    of that interval a little further; None if there is no such interval.

    The last orbit that slips lies within the interval. A straight step ahead from the orbits that
    slip does not: it would lead Newton's method to the edge, where slips too short to be told from
    rounding seem to close. For the same reason the interval gives the best estimate of its end.
    """
    for distance in BEHIND:
        fixed = kernel.axis(point.tangent[-1])
        found = yield from _held(kernel, point, distance * fixed)
        if found is None or found.events == point.events or not len(found.open):
            continue
        widths, held = yield from _middle(kernel, found)
        if widths and max(widths) > POINT:
            return (yield from _closed(kernel, held, min(widths), -distance * fixed)), held
    return None


def _closed(
    kernel: Kernel, held: PathPoint, width: float, step: np.ndarray
) -> Computation[dict[str, Any]]:
    """Parameter and state of the orbit at which the ``width`` around ``held`` becomes zero, within
    a ``step``, by secants, because the width is a smooth function of the parameter."""
    points, widths, part = [held], [width], TOWARDS
    for _ in range(SECANTS):
        found = yield from _held(kernel, points[-1], part * step)
        if found is None or found.events != held.events or not len(found.open):
            break
        open_here, middle = yield from _middle(kernel, found)
        if not open_here:
            break
        points.append(middle)
        widths.append(min(open_here))
        falls = widths[-2] - widths[-1]
        if falls <= 0.0:
            break
        # The next step stops short of the zero, beyond which no contact sticks.
        part *= NEARLY * widths[-1] / falls
    if len(points) < 2 or not widths[-2] > widths[-1]:
        return {"parameter": held.parameter, "state": np.asarray(held.orbit.state)}
    (a, b), (wide, narrow) = points[-2:], widths[-2:]
    beyond = narrow / (wide - narrow)

    def there(x, y):
        return y + beyond * (y - x)

    state = there(np.asarray(a.orbit.state), np.asarray(b.orbit.state))
    return {"parameter": there(a.parameter, b.parameter), "state": state}


def _held(kernel: Kernel, point: PathPoint, step: np.ndarray) -> Computation[PathPoint | None]:
    """The orbit from the same state at another parameter."""
    z, fixed = moved(kernel, point.z, step), kernel.axis(point.tangent[-1])
    return corrected(kernel, z, point.phase, fixed, point.u + step)


def _end(kernel: Kernel, point: PathPoint, direction: np.ndarray) -> Computation[float]:
    """The distance at which the events change, with a relative accuracy of ``PART``."""

    def inside(s: float) -> Computation[bool]:
        return (yield from _shifted(kernel, point, s * direction)) is not None

    low, high = 0.0, SHIFT
    while (yield from inside(high)):
        low, high = high, 4.0 * high
        if high > FARTHEST:
            return np.inf
    halving = halved(low, high, PART, PART * SHIFT, HALVINGS)
    return (yield from delegate(halving, inside))[0]


def _shifted(kernel: Kernel, point: PathPoint, step: np.ndarray) -> Computation[PathPoint | None]:
    """The orbit a scaled ``step`` away, if one is close to that place and has the same events."""
    z, fixed = moved(kernel, point.z, step), kernel.axis(point.tangent[-1])
    found = yield from corrected(kernel, z, point.phase, fixed, point.u)
    if found is None or found.events != point.events:
        return None
    size = np.linalg.norm(step)
    return found if np.linalg.norm(found.u - point.u - step) <= SAME * size + SHIFT else None
