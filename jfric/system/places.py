"""Points and lines of bodies and of the ground, as functions of the positions."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.errors import ProblemError, nearest, require_known
from jfric.numerics.linear_algebra import picked
from jfric.system.body import coordinates
from jfric.system.description import AbstractProblem, element_label

GROUND = "ground"


def turned(x: Float[Array, 2]) -> Float[Array, 2]:
    """The vector ``x`` turned by a right angle, counterclockwise."""
    return x[::-1] * np.array([-1.0, 1.0], x.dtype)


class Located(NamedTuple):
    """Several places at an instant: ``rows`` (k, 7) hold position and centre [m], angle [rad] of
    the body, cosine and sine of the angle. The ``body`` of a place is then the index of its row."""

    rows: Float[Array, "k 7"]

    @property
    def dtype(self):
        """Type of the numbers."""
        return self.rows.dtype


class Place(eqx.Module):
    """A point of a body, or of the ground, with numbers for its coordinates there.

    ``q`` in the methods: positions of all degrees of freedom, or :class:`Located` places.
    """

    #: Coordinates in the body's axes [m]; None for the centre of mass, or the origin.
    at: Float[Array, 2] | None
    #: Indices of x, y and phi of the body among the degrees of freedom, or of a row; None for the
    #: ground.
    body: Any = eqx.field(static=True)

    def _own(self, x) -> Float[Array, 3]:
        """The body's part of positions or velocities."""
        if isinstance(x, Located):
            return x.rows[self.body, 2:5]
        return picked(x, self.body)

    def centre(self, q) -> Float[Array, 2]:
        """The centre of mass, or the origin."""
        return jnp.zeros((2,), q.dtype) if self.body is None else self._own(q)[:2]

    def angle(self, q):
        """Angle of the body [rad]."""
        return jnp.zeros((), q.dtype) if self.body is None else self._own(q)[2]

    def along(self, q, x) -> Float[Array, 2]:
        """The vector with the components ``x`` (2,) along the axes of the body."""
        if self.body is None:
            return x
        if isinstance(q, Located):
            cosine, sine = q.rows[self.body, 5], q.rows[self.body, 6]
        else:
            angle = self.angle(q)
            cosine, sine = jnp.cos(angle), jnp.sin(angle)
        return cosine * x + sine * turned(x)

    def position(self, q) -> Float[Array, 2]:
        """Position of the point [m]."""
        if isinstance(q, Located) and self.body is not None:
            return q.rows[self.body, :2]
        if self.at is None:
            return self.centre(q)
        return self.centre(q) + self.along(q, self.at.astype(q.dtype))

    def velocity(self, q, v, point) -> Float[Array, 2]:
        """Velocity [m/s] of the body where it covers ``point`` (2,)."""
        if self.body is None:
            return jnp.zeros((2,), q.dtype)
        return self.centre(v) + self.angle(v) * turned(point - self.centre(q))


class OfPlaces(eqx.Module):
    """A function of time and positions that depends on positions only through its places."""

    @abc.abstractmethod
    def __call__(self, t, q) -> Float[Array, ""]:
        """Value of the function at time ``t`` and positions ``q``."""

    def of_rows(self) -> tuple[OfPlaces, list[Place]]:
        """The function with rows of :class:`Located` for its places, and the places of bodies, one
        for each row."""
        places: list[Place] = []

        def numbered(x):
            if not isinstance(x, Place) or x.body is None:
                return x
            at = jnp.zeros((2,)) if x.at is None else x.at
            places.append(Place(at, x.body))
            return Place(at, len(places) - 1)

        own = jax.tree.map(numbered, self, is_leaf=lambda x: isinstance(x, Place))
        return own, places


class Line(eqx.Module):
    """A straight line of a body or of the ground; free space lies to its left."""

    through: Place
    #: A second point ahead; None for the x-axis of the body.
    to: Place | None

    def direction(self, q) -> Float[Array, 2]:
        """Unit vector along the line."""
        if self.to is None:
            return self.through.along(q, jnp.array([1.0, 0.0], q.dtype))
        first, second = (
            jnp.zeros((2,), q.dtype) if place.at is None else place.at.astype(q.dtype)
            for place in (self.through, self.to)
        )
        way = second - first
        return self.through.along(q, way / jnp.sqrt(way @ way))


def place(problem: AbstractProblem, reference: str) -> Place:
    """The point that ``reference`` names (``"rod.tip"``, ``"rod"``, ``"ground"``)."""
    name, _, point = reference.partition(".")
    body = None if name == GROUND else tuple(problem.axes.index(x) for x in coordinates(name))
    if not point:
        return Place(None, body)
    own = jnp.stack([jnp.asarray(x, float) for x in points_of(problem, name)[point]])
    return Place(own, body)


def line(problem: AbstractProblem, reference: str | tuple[str, str]) -> Line:
    """The line that ``reference`` names: a body's x-axis, or two points of one."""
    if isinstance(reference, str):
        return Line(place(problem, reference), None)
    first, second = reference
    return Line(place(problem, first), place(problem, second))


def points_of(problem: AbstractProblem, name: str) -> dict[str, Any]:
    """Named points of a body, or of the ground."""
    if name != GROUND:
        return problem.section("body")[name].points
    return next((x.points for x in problem.section(GROUND).values()), {})


def require_place(problem: AbstractProblem, where: str, reference: Any) -> None:
    """Raise :class:`ProblemError`, which starts with ``where``, unless ``reference`` names a point
    of the problem."""
    if not isinstance(reference, str):
        raise ProblemError(f"{where}: found {reference!r}, expected a point such as 'rod.tip'")
    bodies = [*problem.section("body"), GROUND]
    require_reference(where, "body", reference, {x: points_of(problem, x) for x in bodies})


def require_reference(
    where: str, kind: str, reference: str, points: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise :class:`ProblemError`, which starts with ``where``, unless ``reference`` names a body,
    or a point of one. ``points``: those of all bodies, elements of the section ``kind``."""
    name, dot, point = reference.partition(".")
    require_known(where, kind, name, points)
    if dot and point not in points[name]:
        label = GROUND if name == GROUND else element_label(kind, name)
        raise ProblemError(
            f"{where}: {label} has no point {point!r}{nearest(point, points[name])}; it has "
            f"{', '.join(points[name]) or 'none'}"
        )


def require_line(problem: AbstractProblem, where: str, reference: Any) -> None:
    """Raise :class:`ProblemError`, which starts with ``where``, unless ``reference`` is a line."""
    if isinstance(reference, str):
        require_place(problem, where, reference)
        if "." in reference:
            raise ProblemError(
                f"{where}: found the point {reference!r}; a line takes two points, or the name of "
                "a body for its x-axis"
            )
        return
    if not isinstance(reference, tuple) or len(reference) != 2:
        raise ProblemError(f"{where}: found {reference!r}, expected two points of a body")
    for point in reference:
        require_place(problem, where, point)
    first, second = reference
    if first.partition(".")[0] != second.partition(".")[0]:
        raise ProblemError(
            f"{where}: found points of {first.partition('.')[0]!r} and "
            f"{second.partition('.')[0]!r}, both must be of one body"
        )
    if first == second:
        raise ProblemError(f"{where}: found {first!r} twice, a line needs two points")
