"""Checks of bodies, and of elements that refer to their points."""

from __future__ import annotations

import re
from typing import Any

from jfric.errors import ProblemError
from jfric.system.body import Body, Ground, Link, LinkSpring
from jfric.system.contacts import require_pin
from jfric.system.description import AbstractProblem, element_label
from jfric.system.elements import Contact, Gap
from jfric.system.joint_equations import in_loop, in_space
from jfric.system.law_checks import require_plane
from jfric.system.linkage import Gear, Pin, Rolling, Slider, Weld
from jfric.system.places import GROUND, place, require_line, require_place
from jfric.system.polygons import require_convex, require_polygon
from jfric.system.surfaces import require_point

_NAME = re.compile(r"[A-Za-z]\w*")


def require_body(problem: AbstractProblem, section: str, name: str, element: Any) -> None:
    """Raise :class:`ProblemError` for a body, the ground, or a spring or joint between points whose
    structure is not possible."""
    where = element_label(section, name)
    if isinstance(element, Body):
        _points(where, element.points)
    if isinstance(element, Ground):
        if name != section:
            raise ProblemError(f"{where}: there is one ground; write [ground]")
        _points(where, element.points)
    if isinstance(element, Pin) and in_space(problem, element):
        require_between_links(problem, where, element)
        return
    if isinstance(element, LinkSpring | Pin | Weld):
        _two_places(problem, f"{where}.points", element.points)
    if isinstance(element, Pin | Weld):
        _two_sides(where, *element.points)
    if isinstance(element, Pin | Link):
        require_pin(problem, where, element)
    if isinstance(element, Link) and element.law is not None and element.joint != "revolute":
        raise ProblemError(
            f"{where}.radius: found the joint {element.joint!r}, only revolute ones have a bearing"
        )
    if isinstance(element, Gear):
        _two_places(problem, f"{where}.bodies", element.bodies)
        for body in element.bodies:
            if "." in body:
                raise ProblemError(f"{where}.bodies: found the point {body!r}, needed are bodies")
        if not isinstance(element.radii, tuple) or len(element.radii) != 2:
            raise ProblemError(f"{where}.radii: needed are two radii such as (0.1, 0.2)")
    if isinstance(element, Slider):
        _point_on(problem, where, element.point, element.line)
    if isinstance(element, Rolling):
        require_rolling(problem, where, element)


def require_between_links(problem: AbstractProblem, where: str, pin: Pin) -> None:
    """Raise :class:`ProblemError` for a pin between links that cannot be."""
    if len(pin.points) != 2:
        raise ProblemError(f"{where}.points: found {list(pin.points)!r}, needed are two points")
    for point in pin.points:
        require_point(problem, f"{where}.points", point, ground=True)
    _two_sides(where, *pin.points)
    for field in ("law", "radius"):
        if getattr(pin, field) is not None:
            raise ProblemError(
                f"{where}.{field}: friction acts in joints of links; give [friction] the degree of "
                "freedom of the joint"
            )
    if not in_loop(problem.section("link"), pin):
        raise ProblemError(f"{where}.points: no joint moves one of both against the other")


def _two_places(problem: AbstractProblem, where: str, points: Any) -> None:
    if not isinstance(points, tuple) or len(points) != 2 or points[0] == points[1]:
        found = list(points) if isinstance(points, tuple) else points
        raise ProblemError(f"{where}: found {found!r}, needed are two different points")
    for point in points:
        require_place(problem, where, point)


def _two_sides(where: str, first: str, second: str) -> None:
    """Raise :class:`ProblemError` unless two references belong to two bodies."""
    name = first.partition(".")[0]
    if name == second.partition(".")[0]:
        raise ProblemError(
            f"{where}: both sides belong to {name!r}; it acts between two bodies, or a body and "
            "the ground"
        )


def _point_on(problem: AbstractProblem, where: str, point: Any, line: Any) -> None:
    require_place(problem, f"{where}.point", point)
    require_line(problem, f"{where}.line", line)
    _two_sides(where, point, line if isinstance(line, str) else line[0])


def _points(where: str, points: Any) -> None:
    for name, at in points.items():
        if not _NAME.fullmatch(name):
            raise ProblemError(
                f"{where}.points: found the name {name!r}, names start with a letter and hold "
                "letters, digits and _"
            )
        if not isinstance(at, tuple) or len(at) != 2:
            raise ProblemError(
                f"{where}.points.{name}: needed are two coordinates such as (0.5, 0)"
            )


def require_start(name: str, body: Body) -> None:
    """Raise :class:`ProblemError` for a name that degrees of freedom cannot have, and for a
    position or a velocity that does not consist of two numbers."""
    if not _NAME.fullmatch(str(name)) or name == GROUND:
        raise ProblemError(
            f"body: found the name {name!r}, names of bodies start with a letter, hold letters, "
            f"digits and _, and are not {GROUND!r}"
        )
    for field in ("at", "v"):
        value = getattr(body, field)
        if value is not None and not (isinstance(value, tuple) and len(value) == 2):
            raise ProblemError(
                f"{element_label('body', name)}.{field}: needed are two numbers such as (0.5, 0)"
            )


def require_body_values(where: str, element: Any) -> None:
    """Raise :class:`ProblemError` for a body without mass, or circles that cannot touch."""
    if isinstance(element, Body) and float(element.J) == 0.0:
        raise ProblemError(
            f"{where}.J: found 0, must be positive: a body turns; for a point mass give "
            "two degrees of freedom with a mass along each, or, where joints or contacts "
            "refer to its points, a J that is small compared with m times their distance squared"
        )
    if isinstance(element, Contact | Rolling) and element.circle is not None:
        radii = element.radius, element.circle_radius
        inner, outer = (0.0 if x is None else float(x) for x in radii)
        if element.inside and not outer > inner:
            raise ProblemError(
                f"{where}.circle_radius: found {outer:g}, must exceed the radius ({inner:g}) of "
                "the circle inside"
            )
        if not element.inside and not inner + outer > 0.0:
            raise ProblemError(f"{where}.radius: found none; two points cannot touch")


def require_touching(problem: AbstractProblem, where: str, contact: Contact) -> None:
    """Raise :class:`ProblemError` for fields that a contact between bodies lacks or cannot have."""
    for field in ("normal", "tangent", "sliding", "plane"):
        if getattr(contact, field) is not None:
            raise ProblemError(
                f"{where}.{field}: cannot be combined with point, from which it follows"
            )
    require_plane(where, contact)
    if contact.polygon is not None:
        _around(problem, where, contact)
        return
    if isinstance(contact.gap, Gap):
        raise ProblemError(
            f"{where}.gap: found {contact.gap.function!r} together with point; give a number, the "
            "clearance between both"
        )
    require_rolling(problem, where, contact)


def _around(problem: AbstractProblem, where: str, contact: Contact) -> None:
    for field in ("line", "circle", "circle_radius", "inside"):
        if getattr(contact, field) not in (None, False):
            raise ProblemError(f"{where}.{field}: cannot be combined with polygon")
    require_place(problem, f"{where}.point", contact.point)
    require_polygon(problem, where, contact)
    assert contact.point is not None
    assert contact.polygon is not None
    _two_sides(where, contact.point, contact.polygon[0])
    if isinstance(contact.gap, Gap):
        raise ProblemError(
            f"{where}.gap: found {contact.gap.function!r} together with point; give a number, the "
            "clearance between both"
        )


def require_rolling(problem: AbstractProblem, where: str, element: Any) -> None:
    """Raise :class:`ProblemError` unless a point, or a circle round it, has one partner on another
    body: a line or a circle."""
    if (element.line is None) == (element.circle is None):
        found = "neither" if element.line is None else "both"
        raise ProblemError(f"{where}: found {found} of line and circle, exactly one is needed")
    if element.line is not None:
        _point_on(problem, where, element.point, element.line)
        for field in ("circle_radius", "inside"):
            if getattr(element, field) not in (None, False):
                raise ProblemError(f"{where}.{field}: is given without circle")
        return
    require_place(problem, f"{where}.point", element.point)
    require_place(problem, f"{where}.circle", element.circle)
    _two_sides(where, element.point, element.circle)


def require_lines(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` for a line through two points at one place. All numbers are
    known."""
    for where, element in problem.labelled().items():
        if getattr(element, "polygon", None) is not None:
            require_convex(problem, where, element)
        if not isinstance(getattr(element, "line", None), tuple):
            continue
        places = (place(problem, point).at for point in element.line)
        first, second = ((0.0, 0.0) if at is None else tuple(map(float, at)) for at in places)
        if first == second:
            raise ProblemError(
                f"{where}.line: both points are at ({first[0]:g}, {first[1]:g}), a line needs two "
                "places"
            )
