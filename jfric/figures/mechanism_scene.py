"""Scene of a mechanism over time: outlines, circles, lines, pins and touching points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.figures.curves import motion_curve, phases
from jfric.system.joint_equations import in_space
from jfric.system.linkage import LINKAGE, Pin
from jfric.system.places import GROUND, Line, Place, line, place, points_of, turned
from jfric.system.polygons import polygon_gap

if TYPE_CHECKING:
    from jfric.results.solution import Solution
    from jfric.system.problem import Problem


class Outline(NamedTuple):
    """A polygon (f, k, 2) [m] of body number ``body``; two points form a bar."""

    body: int
    corners: np.ndarray


class Circle(NamedTuple):
    """A circle: centres (f, 2), radius [m], angle (f,) of its body, number of the body or -1 for
    the ground; ``hollow``: bodies touch the circle from inside."""

    body: int
    centre: np.ndarray
    radius: float
    angle: np.ndarray
    hollow: bool


class Mark(NamedTuple):
    """A touching point (f, 2), and the mode of its contact at each time."""

    label: str
    place: np.ndarray
    modes: list[str]


class Scene(NamedTuple):
    """All shapes that are drawn at the times ``times`` (f,) [s]."""

    times: np.ndarray
    bodies: list[str]
    outlines: list[Outline]
    circles: list[Circle]
    #: Lines of the ground: a point and a direction, each (2,); and guides of sliders.
    lines: list[tuple[np.ndarray, np.ndarray]]
    guides: list[tuple[np.ndarray, np.ndarray]]
    #: Pins (f, 2), and whether the ground holds them.
    pins: list[tuple[np.ndarray, bool]]
    springs: list[tuple[np.ndarray, np.ndarray]]
    marks: list[Mark]

    def extent(self) -> np.ndarray:
        """Corners (2, 2) of the drawn shapes over all times."""
        found = [x.corners.reshape(-1, 2) for x in self.outlines]
        for circle in self.circles:
            found += [circle.centre - circle.radius, circle.centre + circle.radius]
        found += [x for x, _ in self.pins] + [x for pair in self.springs for x in pair]
        points = np.concatenate(found)
        points = points[np.all(np.isfinite(points), axis=1)]
        return np.stack([points.min(axis=0), points.max(axis=0)])


def require_bodies(problem: Problem) -> None:
    """Raise :class:`jfric.ProblemError` for a problem without bodies to draw."""
    if not problem.section("body"):
        raise ProblemError("body: found none; a picture of the mechanism needs bodies")


def scene(solution: Solution, problem: Problem, times: np.ndarray) -> Scene:
    """The mechanism at ``times`` [s], straight between outputs and events of one trajectory."""
    curves = [motion_curve(solution, "q", i) for i in range(len(solution.axes))]
    return posed(
        problem, times, curves, {n: phases(solution, i) for i, n in enumerate(solution.names)}
    )


def posed(
    problem: Problem,
    times: np.ndarray,
    curves: Sequence[tuple[np.ndarray, np.ndarray]],
    spans: Mapping[str, Sequence[tuple[float, float, str]]],
) -> Scene:
    """The mechanism at ``times`` [s] with these ``curves`` of its coordinates, times and values,
    and the ``spans`` of the modes of each contact: start, end, mode."""
    require_bodies(problem)
    problem, bodies = problem.resolved(), list(problem.section("body"))
    q = jnp.asarray(np.stack([np.interp(times, *curve) for curve in curves], axis=1))

    def over(function) -> np.ndarray:
        return np.asarray(jax.vmap(function)(q))

    def body(reference: str) -> int:
        name = reference.partition(".")[0]
        return -1 if name == GROUND else bodies.index(name)

    circles: dict[tuple[str, float], Circle] = {}
    held: dict[bool, list[tuple[np.ndarray, np.ndarray]]] = {False: [], True: []}
    for label, element in problem.labelled("contact", *LINKAGE).items():
        other = getattr(element, "line", None)
        if other is not None and body(other if isinstance(other, str) else other[0]) < 0:
            along = line(problem, other)
            start = np.asarray(along.through.position(q[0])), np.asarray(along.direction(q[0]))
            known = held[label.partition(".")[0] == "slider"]
            if not any(np.array_equal(start, x) for x in known):
                known.append(start)
        for reference, radius, hollow in _round_parts(element):
            at, size = place(problem, reference), abs(float(radius))
            found = Circle(body(reference), over(at.position), size, over(at.angle), hollow)
            circles.setdefault((reference, size), found)
    round_ = {c.body for c in circles.values() if not c.hollow}
    outlines = [
        Outline(i, over(_polygon(problem, name)))
        for i, name in enumerate(bodies)
        if i not in round_ or len(points_of(problem, name)) > 1
    ]
    ground = [c.polygon for c in problem.section("contact").values() if c.polygon is not None]
    for corners in dict.fromkeys(x for x in ground if body(x[0]) < 0):
        at = [place(problem, corner) for corner in corners]
        outlines.append(Outline(-1, over(lambda q, at=at: jnp.stack([x.position(q) for x in at]))))
    pins = [
        (over(place(problem, joint.points[0]).position), min(map(body, joint.points)) < 0)
        for joint in problem.labelled("pin", "weld").values()
        if not (isinstance(joint, Pin) and in_space(problem, joint))
    ]
    springs = [
        (over(place(problem, s.points[0]).position), over(place(problem, s.points[1]).position))
        for s in problem.section("link_spring").values()
    ]
    return Scene(
        np.asarray(times),
        bodies,
        outlines,
        list(circles.values()),
        held[False],
        held[True],
        pins,
        springs,
        _marks(problem, np.asarray(times), spans, over),
    )


def _round_parts(element: Any) -> list[tuple[str, Any, bool]]:
    """Circles of an element: place, radius, and whether bodies touch them from inside."""
    parts: list[tuple[str, Any, bool]] = []
    # The circle of a pin belongs to its friction and is smaller than the mark of a pin.
    if getattr(element, "point", None) is not None and hasattr(element, "radius"):
        parts.append((element.point, element.radius, False))
    if getattr(element, "circle", None) is not None:
        parts.append((element.circle, element.circle_radius, element.inside))
    both = zip(getattr(element, "bodies", ()), getattr(element, "radii", ()), strict=True)
    parts += [(name, radius, False) for name, radius in both]
    return [part for part in parts if part[1] is not None and float(part[1]) != 0.0]


def _marks(problem: Problem, times: np.ndarray, spans: Mapping, over) -> list[Mark]:
    found = []
    for label, contact in problem.labelled("contact").items():
        if contact.point is None:
            continue
        own = spans.get(label, ())
        index = np.searchsorted([start for start, *_ in own], times, side="right") - 1
        modes = [own[i][2] if own else "unknown" for i in np.maximum(index, 0)]
        found.append(Mark(label, over(_touching(problem, contact)), modes))
    return found


def _touching(problem: Problem, contact: Any):
    """Function of positions to the point at which a contact touches or is nearest to touching."""
    point = place(problem, contact.point)
    radius = 0.0 if contact.radius is None else contact.radius
    around = None if contact.polygon is None else polygon_gap(problem, contact)
    other = None
    if around is None:
        ends = contact.line is None
        other = place(problem, contact.circle) if ends else line(problem, contact.line)

    def at(q):
        here = point.position(q)
        if around is not None:
            return here - radius * around.body.along(q, around.outwards(around.place_on(q)))
        if isinstance(other, Line):
            return here - radius * turned(other.direction(q))
        assert other is not None
        way = here - other.position(q)
        length = jnp.sqrt(way @ way)
        n = way / jnp.where(length > 0.0, length, 1.0)
        return here + radius * n if contact.inside else here - radius * n

    return at


def _polygon(problem: Problem, name: str):
    """The hull of a body's points, with its centre if it has fewer than two points."""
    points = [[float(x) for x in at] for at in points_of(problem, name).values()]
    if len(points) < 2:
        points.append([0.0, 0.0])
    corners = [Place(jnp.array([x, y]), place(problem, name).body) for x, y in _hull(points)]
    return lambda q: jnp.stack([corner.position(q) for corner in corners])


def _hull(points: list[list[float]]) -> list[tuple[float, float]]:
    """Corners of the convex hull, counterclockwise, by Andrew's chains."""
    ordered = sorted({(x, y) for x, y in points})
    if len(ordered) < 3:
        return ordered

    def chain(sequence):
        kept: list[tuple[float, float]] = []
        for p in sequence:
            while len(kept) > 1 and _area(kept[-2], kept[-1], p) <= 0.0:
                kept.pop()
            kept.append(p)
        return kept[:-1]

    return chain(ordered) + chain(ordered[::-1])


def _area(a, b, c) -> float:
    """Twice the area of a triangle, positive counterclockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
