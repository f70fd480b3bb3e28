"""Special points between two points of a path of orbits: folds, changes of stability and of events,
each located along the path; and the equilibrium to which the motion shrinks."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jfric.numerics.continuation import delegate, halved, zero
from jfric.periodic.path import OrbitKind, OrbitPoint
from jfric.periodic.path_kernel import Computation, Kernel, PathPoint, ahead, corrected, moved

#: Accuracy of places along the path, as a part of a step.
LOCATED = 1e-13
#: Near a branch point Newton's method may change to the other branch. So its place is the zero of a
#: polynomial through so many orbits around it (no fewer than these), within ever smaller parts of a
#: step.
AROUND, FEWEST, PARTS = 10, 5, (0.5, 0.1, 0.03)
#: Part of its size to which a number has to fall at a change of its sign, to have a zero there.
ZERO = 1e-3
#: Part of a step within which pairs that cross the unit circle do so together.
TOGETHER = 1e-6
#: Cosine of the angle to the path below which an orbit belongs to another path.
STRAIGHT = 0.9
#: Accuracy of a change of events, as a part of this step, or of the least step, and most halvings.
NARROW, LEAST, HALVINGS = 1e-12, 1e-3, 60
#: Distance beyond a change, in sizes of the motion and of the interval, at which its new events are
#: read.
BEHIND = 1e-7
#: Distance from the real axis below which multipliers are no pair, and of sizes from one below
#: which they are on the circle.
REAL = 1e-9

#: Distance, in sizes of the motion and of the interval, beyond which the first orbit with other
#: events belongs to another path.
JUMP = 0.01
#: Distances of the parameter, in sizes of the interval, at which paths that leave a change of
#: events are searched; number of directions in which Newton's method starts there, and largest
#: distance of its result, both relative to the root of the first distance.
DISTANCES, DIRECTIONS, REACH = (1e-6, 1e-5, 1e-4), 12, 10.0

#: On the way to an equilibrium each motion is so much nearer than the one before, and smaller by at
#: least so much; number of these motions.
NEARER, SMALLER, SHRINKING = 0.9, 0.5, 3

#: Kinds that are searched between equal events; the third one for each pair of multipliers.
KINDS: tuple[OrbitKind, ...] = ("fold", "flip", "torus", "branch point")

#: The orbit at a place along the path, or None.
At = Callable[[float], Computation[PathPoint | None]]


def narrowed(
    at: At, first: PathPoint, last: PathPoint | None, s: float
) -> Computation[tuple[PathPoint, float, PathPoint | None]]:
    """The last point with the old events, its place along the step, and the first point with
    others, if there is one, by halving, because nothing is smooth there. ``last``: the point at
    ``s``, None if there is no orbit."""
    before, after = first, last

    def same(x: float) -> Computation[bool]:
        nonlocal before, after
        found = yield from at(x)
        if found is not None and found.events == first.events:
            before = found
            return True
        # Newton's method may fail right at a change: then the next place with an orbit counts.
        after = after if found is None else found
        return False

    low, _ = yield from delegate(halved(0.0, s, NARROW, NARROW * LEAST, HALVINGS), same)
    # Events that differ by rounding only, as on both sides of a symmetric system, change at once.
    behind = yield from at(low + BEHIND)
    if behind is not None and behind.events != first.events and low + BEHIND < s:
        after = behind
    return before, low, after


def leaving(kernel: Kernel, point: PathPoint) -> Computation[PathPoint | None]:
    """An orbit with other events near ``point``, where the events change, on either side of its
    parameter, from starts in all directions."""
    random = np.random.default_rng(0)
    for distance in DISTANCES:
        root = np.sqrt(distance)
        for direction in random.normal(size=(DIRECTIONS, len(point.u))):
            step = root * direction / np.linalg.norm(direction)
            for side in (distance, -distance):
                step[-1] = side
                z = moved(kernel, point.z, step)
                found = yield from corrected(kernel, z, point.phase, kernel.axis(), point.u, side)
                if found is None or found.events == point.events:
                    continue
                if np.linalg.norm(found.u - point.u) <= REACH * root:
                    return found
    return None


def equilibrium(kernel: Kernel, point: PathPoint, longest: float) -> Computation[PathPoint | None]:
    """The equilibrium to which motions of an autonomous system shrink, no farther than ``longest``
    from ``point``; None if there is none.

    States half a period apart lie opposite to each other, with the equilibrium in the middle. Each
    orbit is searched for on the way there, which fixes its phase. Parameter, period and middle are
    smooth in the square of the size.
    """
    orbits, middles = [point], []
    for _ in range(SHRINKING):
        here, states = orbits[-1], orbits[-1].z.states
        orbit = here.orbit
        begin = orbit.problem, orbit.period, orbit.state
        later = yield from ahead(kernel.shooting, *begin, 0.5)
        across = 0.5 * np.asarray(later.start.states - states)
        middles.append(np.asarray(orbit.state) + across[0])
        step = np.zeros(here.u.shape)
        step[: states.size] = NEARER * across.ravel()
        step = step / kernel.sizes
        s = float(np.linalg.norm(step))
        inwards = step[: len(here.flow)]
        along = here.flow - (here.flow @ inwards) / (inwards @ inwards) * inwards
        along = along / np.linalg.norm(along) / kernel.scales.state
        phase = here.phase._replace(at=states[0], along=jnp.asarray(along))
        z = moved(kernel, here.z, step)
        found = yield from corrected(kernel, z, phase, step / s, here.u, s)
        if found is None or np.linalg.norm(found.u - point.u) > longest:
            return None
        if np.linalg.norm(found.flow) > SMALLER * np.linalg.norm(here.flow):
            return None
        orbits.append(found)
    squares = [p.flow @ p.flow for p in orbits[:-1]]
    parts = [np.prod([y / (y - x) for y in squares if y is not x]) for x in squares]
    rows = zip(orbits, middles, strict=False)
    table = [[p.parameter, float(p.orbit.period), *middle] for p, middle in rows]
    parameter, period, *state = np.asarray(parts) @ np.asarray(table)
    last = orbits[-1]
    orbit = dataclasses.replace(last.orbit, state=jnp.asarray(state), period=jnp.asarray(period))
    return last._replace(orbit=orbit, parameter=float(parameter))


def tests(point: PathPoint, rank: int | None) -> dict[OrbitKind, float]:
    """Numbers that change their sign at special points. ``rank``: the pair of multipliers, counted
    from the largest, to which the number of a torus belongs; None for the pair nearest to the unit
    circle."""
    m = np.asarray(point.orbit.monodromy)
    eye = np.eye(len(m))
    off = _pairs(point) - 1.0
    if rank is None:
        torus = off[np.argmin(np.abs(off))] if len(off) else -1.0
    else:
        torus = off[rank] if rank < len(off) else -1.0
    return {
        "fold": float(point.tangent[-1]),
        "flip": float(np.linalg.det(m + eye)),
        "torus": float(torus),
        "branch point": point.determinant,
    }


def _pairs(point: PathPoint) -> np.ndarray:
    """Sizes of the pairs of complex multipliers, the largest first."""
    values = point.multipliers
    return -np.sort(-np.abs(values[np.imag(values) > REAL]))


Located = tuple[float, OrbitKind, PathPoint]


def between(at: At, first: PathPoint, last: PathPoint, s: float) -> Computation[list[Located]]:
    """Special points with the same events between ``first`` and ``last``, a distance ``s`` apart:
    the place along the step, the kind and the point."""
    known = {0.0: first, s: last}

    def oriented(kind: OrbitKind, rank: int, x: float) -> Computation[float]:
        found = known.get(x) or (yield from at(x))
        if found is None:
            raise LookupError
        known[x] = found
        value = tests(found, rank)[kind]
        # Both numbers depend on the direction in which the path is followed.
        turned = kind in ("fold", "branch point") and found.tangent @ first.tangent < 0
        return -value if turned else value

    located: list[Located] = []
    pairs = max(len(_pairs(first)), len(_pairs(last)))
    kinds: tuple[OrbitKind, ...] = KINDS + KINDS[2:3] * (pairs - 1)
    for i, kind in enumerate(kinds):
        # After all kinds come the smaller pairs, one after the other.
        rank = max(i - len(KINDS) + 1, 0)
        number = functools.partial(oriented, kind, rank)
        a, b = (yield from number(0.0)), (yield from number(s))
        if not a * b < 0.0:
            continue
        if kind == "branch point":
            located += yield from _branch_point(at, first, last, s)
            continue
        try:
            x = yield from delegate(zero((0.0, a), (s, b), LOCATED * s), number)
        except LookupError:
            continue
        # The number may jump: a pair that meets on the real axis has not crossed the circle.
        if abs((yield from number(x))) > ZERO * max(abs(a), abs(b)):
            continue
        # Equal pairs, as of rotationally symmetric systems, cross together: that is one point.
        if rank and any(k == kind and abs(x - y) <= TOGETHER * s for y, k, _ in located):
            continue
        located.append((x, kind, known[x]))
    return sorted(located, key=lambda found: found[0])


def _branch_point(
    at: At, first: PathPoint, last: PathPoint, s: float
) -> Computation[list[Located]]:
    """The place along the step where another path crosses, and the orbit there; empty if the orbits
    around it do not determine it."""
    x, found = 0.5 * s, []
    for part in PARTS:
        places = np.clip(x + part * s * np.linspace(-1.0, 1.0, AROUND), 0.0, s)
        places = np.unique(places)
        along = []
        for y in places:
            p = first if y == 0.0 else last if y == s else (yield from at(float(y)))
            if p is not None and p.tangent @ first.tangent > STRAIGHT:
                along.append((y, p))
        if len(along) < FEWEST:
            break
        y = np.asarray([place for place, _ in along])
        fit = np.polynomial.Polynomial.fit(y, [p.determinant for _, p in along], len(y) - 2)
        roots = fit.roots()
        real = np.real(roots[np.abs(np.imag(roots)) <= REAL * s])
        real = real[(real >= y[0]) & (real <= y[-1])]
        if not len(real):
            break
        x, found = float(real[np.argmin(np.abs(real - x))]), along
    if not found:
        return []
    y, points = np.asarray([place for place, _ in found]), [p for _, p in found]

    def there(values: list) -> np.ndarray:
        """Value at ``x`` of the polynomials through ``values`` at ``y``."""
        table = np.stack([np.ravel(v) for v in values])
        near = (y - x) / np.ptp(y)
        return np.polynomial.polynomial.polyfit(near, table, len(y) - 2)[0]

    nearest = points[int(np.argmin(np.abs(y - x)))]
    orbit = dataclasses.replace(
        nearest.orbit,
        state=jnp.asarray(there([p.orbit.state for p in points])),
        period=jnp.asarray(there([p.orbit.period for p in points])[0]),
        multipliers=jnp.asarray(there([p.multipliers for p in points])),
    )
    parameter = float(there([p.parameter for p in points])[0])
    return [(x, "branch point", nearest._replace(orbit=orbit, parameter=parameter))]


def special(kind: OrbitKind, point: PathPoint, row: int) -> OrbitPoint:
    """The special point of a path for ``point``."""
    return OrbitPoint(
        kind=kind,
        parameter=point.parameter,
        state=np.asarray(point.orbit.state),
        period=float(point.orbit.period),
        multipliers=point.multipliers,
        row=row,
        before=point.events,
        slope_before=slope(point),
        time=float(point.orbit.problem.time.start),
    )


def slope(point: PathPoint) -> np.ndarray:
    """Derivative of the state at the start (2n,) by the parameter; infinite at a fold."""
    n2 = len(point.orbit.state)
    along = (point.tangent * point.sizes)[:n2]
    with np.errstate(divide="ignore", invalid="ignore"):
        return along / (point.tangent[-1] * point.sizes[-1])
