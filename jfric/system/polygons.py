"""Gaps and sliding of points, or circles round them, on polygons and plates.

The nearest part of a convex polygon to a point outside is an edge or a corner. Each has a region,
numbered clockwise: region ``2 k`` is that of the edge from corner ``k`` to the next, ``2 k + 1``
that of the corner at its end. With unit vectors ``d_k`` along edges, ``n_k`` out of them, and a
point ``p``::

    edge      0 < d_k . (p - c_k),      d_k . (p - c_k+1) < 0,      gap = n_k . (p - c_k) - r
    corner    0 < d_k . (p - c_k+1),    d_k+1 . (p - c_k+1) < 0,    gap = |p - c_k+1| - r

Gap and direction are continuous from one region to the next, the curvature is not. A solver that
locates events stays in a region until one of its two inequalities ends it. Two corners are a thin
plate, whose edges are its two sides.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jfric.errors import ProblemError
from jfric.numerics.choice import select
from jfric.system.description import AbstractProblem
from jfric.system.elements import AbstractForce, Contact
from jfric.system.fields import Scalar
from jfric.system.places import Line, OfPlaces, Place, line, place, require_place, turned
from jfric.system.state_function import Rate

#: Part of a polygon's size up to which a point below an edge is on it.
ON_EDGE = 1e-9


class Region(eqx.Module):
    """Region in which a polygon is touched: ``at``, or -1 for the region of the nearest place;
    ``which``: index of the polygon among all polygons."""

    which: Int[Array, ""]
    at: Int[Array, ""]


class PolygonGap(OfPlaces):
    """Distance of a point, or of a circle round it, from a polygon, plus ``gap``."""

    point: Place
    #: The body of the polygon, and corners in its axes, clockwise.
    body: Place
    corners: Float[Array, "c 2"]
    radius: Scalar
    gap: Scalar
    region: Region
    #: Whether a bare point touches, which separates at corners.
    bare: bool = eqx.field(static=True)

    def seen(self, q) -> Float[Array, 2]:
        """Coordinates of the point in the axes of the polygon's body."""
        way, angle = self.point.position(q) - self.body.centre(q), self.body.angle(q)
        return jnp.cos(angle) * way - jnp.sin(angle) * turned(way)

    @property
    def directions(self) -> Float[Array, "c 2"]:
        """Unit vectors ``d`` along all edges."""
        way = jnp.roll(self.corners, -1, axis=0) - self.corners
        return way / jnp.sqrt(jnp.sum(way * way, axis=1, keepdims=True))

    def located(self, p) -> Int[Array, ""]:
        """The region of the nearest place."""
        p, corners, d = jax.lax.stop_gradient((p, self.corners, self.directions))
        n = jnp.stack([-d[:, 1], d[:, 0]], axis=1)
        way = p - corners
        length = jnp.sum((jnp.roll(corners, -1, axis=0) - corners) * d, axis=1)
        along, height = jnp.sum(way * d, axis=1), jnp.sum(way * n, axis=1)
        beside = along - jnp.clip(along, 0.0, length)
        outside = height >= -ON_EDGE * jnp.max(length)
        distance = select(outside, beside**2 + height**2, jnp.inf)
        edge = select(outside.any(), jnp.argmin(distance), jnp.argmax(height))
        over = select(outside.any(), jnp.sign(beside[edge]), 0.0)
        return ((2 * edge + over.astype(jnp.int32)) % (2 * len(corners))).astype(jnp.int32)

    def place_on(self, q) -> _Seen:
        """Edge or corner of the given region, else the one nearest to the point, with the point."""
        p = self.seen(q)
        region = select(self.region.at < 0, self.located(p), self.region.at)
        k, d = region // 2, self.directions
        end = jnp.roll(self.corners, -1, axis=0)[k]
        return _Seen(p, region % 2 == 1, self.corners[k], end, d[k], jnp.roll(d, -1, axis=0)[k])

    def __call__(self, t, q):
        at = self.place_on(q)
        height = turned(at.d) @ (at.p - at.start)
        way = at.p - at.end
        distance = _length(way, at.corner)
        if self.bare:
            # At the corner itself the distance has no slope. A point that separates there only
            # needs a function that is smooth and positive.
            beyond = at.d @ way - at.following @ way
            distance = select(self.region.at < 0, distance, beyond)
        return select(at.corner, distance, height) - self.radius + self.gap

    def outwards(self, at: _Seen) -> Float[Array, 2]:
        """Unit vector away from the polygon, in the axes of its body."""
        if self.bare:
            return turned(at.d)
        way = at.p - at.end
        return select(at.corner, way / _length(way, at.corner), turned(at.d))

    def inside(self, q) -> Float[Array, 2]:
        """Values of the two inequalities of the region, both positive inside the region."""
        at = self.place_on(q)
        past = at.d @ (at.p - at.end)
        first = select(at.corner, past, at.d @ (at.p - at.start))
        return jnp.stack([first, select(at.corner, -at.following @ (at.p - at.end), -past)])

    def forward(self, q) -> Bool[Array, ""]:
        """Whether a point that leaves a corner on both sides at once is over its following edge."""
        at = self.place_on(q)
        way = at.p - at.end
        return turned(at.following) @ way >= turned(at.d) @ way

    @property
    def lets_go(self) -> Bool[Array, ""]:
        """Whether nothing touches in this region."""
        return (self.region.at % 2 == 1) & (self.region.at >= 0) & self.bare

    @property
    def is_plate(self) -> bool:
        """Whether both inequalities of a corner are the same."""
        return self.corners.shape[-2] == 2


class _Seen(eqx.Module):
    """A point, whether it is nearest to a corner, the ends of the edge before that, directions of
    this edge and of the following one."""

    p: Float[Array, 2]
    corner: Bool[Array, ""]
    start: Float[Array, 2]
    end: Float[Array, 2]
    d: Float[Array, 2]
    following: Float[Array, 2]


class PolygonSliding(eqx.Module):
    """Sliding velocity along the tangent where both touch, clockwise round the polygon."""

    of: PolygonGap

    def __call__(self, t, q, v):
        point, body, at = self.of.point, self.of.body, self.of.place_on(q)
        n = body.along(q, self.of.outwards(at))
        touching = point.position(q) - self.of.radius * n
        slip = point.velocity(q, v, touching) - body.velocity(q, v, touching)
        return -turned(n) @ slip


def _length(way, needed) -> Float[Array, ""]:
    """Length of ``way``, one where it is not ``needed`` or zero."""
    square = way @ way
    safe = needed & (square > 0.0)
    return select(safe, jnp.sqrt(select(safe, square, 1.0)), select(needed, 0.0, 1.0))


def polygon_gap(problem: AbstractProblem, contact: Any) -> PolygonGap:
    """The gap of a contact with a polygon, of a resolved problem."""
    corners = jnp.stack(
        [jnp.zeros((2,)) if x.at is None else x.at for x in _places(problem, contact)]
    )
    following = jnp.roll(corners, -1, axis=0)
    area = jnp.sum(corners[:, 0] * following[:, 1] - corners[:, 1] * following[:, 0])
    zero = jnp.zeros(())
    contacts = [c for c in problem.section("contact").values() if c.polygon is not None]
    which = next((i for i, c in enumerate(contacts) if c is contact), 0)
    return PolygonGap(
        point=place(problem, contact.point),
        body=place(problem, contact.polygon[0].partition(".")[0]),
        corners=select(area > 0.0, corners[::-1], corners),
        radius=zero if contact.radius is None else contact.radius,
        gap=contact.gap,
        region=Region(jnp.asarray(which, jnp.int32), jnp.asarray(-1, jnp.int32)),
        bare=contact.radius is None,
    )


def _places(problem: AbstractProblem, contact: Any) -> list[Place]:
    return [place(problem, reference) for reference in contact.polygon]


def in_regions(tree: Any, regions: Int[Array, " np"]) -> Any:
    """The ``tree`` with each of its polygons touched in its region of ``regions``."""

    def put(x):
        return Region(x.which, regions[x.which]) if isinstance(x, Region) else x

    return jax.tree.map(put, tree, is_leaf=lambda x: isinstance(x, Region))


def require_polygon(problem: AbstractProblem, where: str, contact: Any) -> None:
    """Raise :class:`ProblemError` unless ``polygon`` names two corners or more of one body."""
    corners = contact.polygon
    if not isinstance(corners, tuple) or len(corners) < 2:
        raise ProblemError(
            f"{where}.polygon: found {corners!r}, expected corners such as "
            "['box.a', 'box.b', 'box.c']; two are a thin plate"
        )
    for reference in corners:
        require_place(problem, f"{where}.polygon", reference)
    bodies = list(dict.fromkeys(x.partition(".")[0] for x in corners))
    if len(bodies) > 1:
        raise ProblemError(
            f"{where}.polygon: found points of {' and '.join(map(repr, bodies))}, all must be of "
            "one body"
        )
    if len(set(corners)) < len(corners):
        twice = next(x for x in corners if corners.count(x) > 1)
        raise ProblemError(f"{where}.polygon: found the corner {twice!r} twice")


def require_convex(problem: AbstractProblem, where: str, contact: Any) -> None:
    """Raise :class:`ProblemError` unless a polygon is convex. All numbers are known."""
    places = _places(problem, contact)
    at = [(0.0, 0.0) if x.at is None else (float(x.at[0]), float(x.at[1])) for x in places]
    count = len(at)
    ways = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(at, [*at[1:], at[0]], strict=True)]
    for name, way in zip(contact.polygon, ways, strict=True):
        if way == (0.0, 0.0):
            raise ProblemError(f"{where}.polygon: the corner after {name!r} is at the same place")
    if count == 2:
        return
    turns = []
    for a, b in zip([ways[-1], *ways[:-1]], ways, strict=True):
        size = (a[0] ** 2 + a[1] ** 2) ** 0.5 * (b[0] ** 2 + b[1] ** 2) ** 0.5
        turns.append((a[0] * b[1] - a[1] * b[0]) / size)
    positive = sum(turn > 0.0 for turn in turns) * 2 > count
    for name, turn in zip(contact.polygon, turns, strict=True):
        if abs(turn) <= ON_EDGE or (turn > 0.0) != positive:
            raise ProblemError(
                f"{where}.polygon: no corner at {name!r}, or one that points inwards; give the "
                "corners of a convex polygon one after the other, and make others of several"
            )
    if round(sum(map(abs, map(_angle, ways, [*ways[1:], ways[0]]))) / math.tau) != 1:
        raise ProblemError(
            f"{where}.polygon: goes round more than once; give the corners one after the other"
        )


def _angle(a: tuple[float, float], b: tuple[float, float]) -> float:
    return math.atan2(a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1])


class LineGap(OfPlaces):
    """Distance of a point, or of a circle round it, from a line: ``n . (p - a) - r + gap``;
    ``inside``: from its other side, ``-n . (p - a) - r + gap``."""

    point: Place
    line: Line
    radius: Scalar
    gap: Scalar
    inside: bool = eqx.field(static=True, default=False)

    def __call__(self, t, q):
        n = turned(self.line.direction(q))
        way = n @ (self.point.position(q) - self.line.through.position(q))
        return (-way if self.inside else way) - self.radius + self.gap


class LineSliding(OfPlaces):
    """Sliding displacement of a point, or of a circle round it, along a line: ``t . p + r (phi_A -
    phi_B)`` with ``p`` from the centre of the line's body.

    Its rate is the relative velocity of the material wherever the body of the line turns.
    """

    point: Place
    line: Line
    radius: Scalar

    def __call__(self, t, q):
        other = self.line.through
        way = self.line.direction(q) @ (self.point.position(q) - other.centre(q))
        return way + self.radius * (self.point.angle(q) - other.angle(q))


class CircleGap(OfPlaces):
    """Distance of two circles: ``d - r - R + gap``; for one inside the other ``(C^2 - d^2)/(2 C)``
    with the clearance ``C = R - r + gap``, which is smooth where they are concentric and has the
    same slope where they touch."""

    point: Place
    circle: Place
    #: Radii of the circle round the point, and of the other circle.
    radius: Scalar
    other: Scalar
    gap: Scalar
    inside: bool = eqx.field(static=True)

    def __call__(self, t, q):
        way = self.point.position(q) - self.circle.position(q)
        if self.inside:
            return (self.clearance**2 - way @ way) / (2.0 * self.clearance)
        return jnp.sqrt(way @ way) - self.other - self.radius + self.gap

    @property
    def clearance(self):
        """Distance of the centres where one circle touches the other from inside [m]."""
        return self.other - self.radius + self.gap


class CircleSliding(eqx.Module):
    """Sliding velocity of two circles along the tangent where they touch."""

    of: CircleGap

    def __call__(self, t, q, v):
        point, circle = self.of.point, self.of.circle
        here = point.position(q)
        way = here - circle.position(q)
        # Inside, both may be concentric: the distance of touching circles takes its place.
        n = -way / self.of.clearance if self.of.inside else way / jnp.sqrt(way @ way)
        touching = here - self.of.radius * n
        slip = point.velocity(q, v, touching) - circle.velocity(q, v, touching)
        return -turned(n) @ slip


class LinkForce(AbstractForce):
    """The force of a :class:`jfric.LinkSpring`, with numbers for its points."""

    first: Place
    second: Place
    k: Scalar
    c: Scalar
    x0: Scalar

    def length(self, q):
        """Distance of the two points [m]; without a slope where they coincide."""
        way = self.second.position(q) - self.first.position(q)
        square = way @ way
        apart = square > 0.0
        return select(apart, jnp.sqrt(select(apart, square, 1.0)), 0.0)

    def force(self, axes, t, q, v):
        length, slope = jax.value_and_grad(self.length)(q)
        return -(self.k * (length - self.x0) + self.c * (slope @ v)) * slope


def gap_of(problem: AbstractProblem, contact: Contact) -> Any:
    """The gap of a contact between bodies of a resolved problem, as a function ``(t, q)``."""
    return _parts(problem, contact)[0]


def sliding_of(problem: AbstractProblem, contact: Contact) -> Any:
    """Sliding displacement ``(t, q)`` or :class:`Rate` of a contact; None without friction.

    With the outward normal ``n`` of the other side, the tangent ``t = -turned(n)`` and the touching
    point ``c = p - r n``, sliding is the relative velocity of the material there::

        gamma = t . (v_A(c) - v_B(c))
    """
    return None if contact.frictionless else _parts(problem, contact)[1]


def _parts(problem: AbstractProblem, contact: Contact) -> tuple[Any, Any]:
    point = place(problem, contact.point)  # type: ignore[arg-type]
    radius, gap = _or_zero(contact.radius), contact.gap
    if contact.line is not None:
        along = line(problem, contact.line)
        sides = LineGap(point, along, radius, gap, contact.inside)
        return sides, LineSliding(point, along, radius)
    if contact.polygon is not None:
        around = polygon_gap(problem, contact)
        return around, Rate(PolygonSliding(around))
    circle, other = place(problem, contact.circle), _or_zero(contact.circle_radius)  # type: ignore[arg-type]
    found = CircleGap(point, circle, radius, other, gap, contact.inside)
    return found, Rate(CircleSliding(found))


def _or_zero(radius: Any) -> Any:
    return jnp.zeros(()) if radius is None else radius


def link_force(problem: AbstractProblem, link: Any) -> LinkForce:
    """The force of a spring between points of a resolved problem."""
    first, second = (place(problem, x) for x in link.points)
    return LinkForce(first, second, link.k, link.c, link.x0)
