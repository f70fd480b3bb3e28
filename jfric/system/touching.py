"""Gaps and sliding between points, circles and lines of bodies.

With the outward normal ``n`` of the other side, the tangent ``t = -turned(n)`` and the touching
point ``c = p - r n``, sliding is the relative velocity of the material there::

    gamma = t . (v_A(c) - v_B(c))
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jfric.numerics.choice import select
from jfric.system.description import AbstractProblem
from jfric.system.elements import AbstractForce, Contact
from jfric.system.fields import Scalar
from jfric.system.places import Line, OfPlaces, Place, line, place, turned
from jfric.system.polygons import PolygonSliding, polygon_gap
from jfric.system.state_function import Rate


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
    """Sliding displacement ``(t, q)`` or :class:`Rate` of a contact; None without friction."""
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
