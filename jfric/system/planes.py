"""Friction in a plane: requirements, and refusals where only one direction is possible."""

from __future__ import annotations

import numpy as np

from jfric.errors import ProblemError
from jfric.system.description import AbstractProblem
from jfric.system.direction import Direction
from jfric.system.elements import Contact, Friction
from jfric.system.laws import AbstractLaw, Directional, PerAxis

#: Sine of the angle between the two directions that counts as zero.
PARALLEL = 1e-9


def require_plane(where: str, element: Friction | Contact) -> None:
    """Raise :class:`ProblemError` unless friction in a plane has two directions, and its other
    fields for each of them, and other friction has one."""
    plane, law, belt = element.plane, element.law, element.belt
    spin = getattr(element, "spin", None)
    if plane is None:
        refuse_axes(where, law)
        if isinstance(belt, tuple):
            raise ProblemError(
                f"{where}.belt: found {len(belt)} velocities, one is needed; give a plane for two"
            )
        return
    if not isinstance(plane, tuple) or len(plane) != 2:
        found = f"{len(plane)} directions" if isinstance(plane, tuple) else repr(plane)
        raise ProblemError(
            f"{where}.plane: found {found}, two are needed such as plane = ['x', 'y']"
        )
    if isinstance(element, Friction) and element.reaction is not None:
        raise ProblemError(f"{where}.reaction: cannot be combined with plane")
    count = 2 if spin is None else 3
    if belt is not None and (not isinstance(belt, tuple) or len(belt) != count):
        found = f"{len(belt)} velocities" if isinstance(belt, tuple) else "one velocity"
        needed = "two such as [0.5, 0.0]" if spin is None else "three with spin: [0.5, 0.0, 2.0]"
        raise ProblemError(f"{where}.belt: found {found}, friction in a plane needs {needed}")
    for field in law.holding(Directional) if law is not None else ():
        raise ProblemError(
            f"{where}.{field}: found a coefficient for each sign of sliding, in a plane there is "
            "one number, or one for each direction such as [0.4, 0.2]"
        )


def require_spin(where: str, element) -> None:
    """Raise :class:`ProblemError` unless a spin belongs to a plane and to a law for discs."""
    if not hasattr(element, "law"):
        return
    law = element.law
    plane, spin = getattr(element, "plane", None), getattr(element, "spin", None)
    disc = isinstance(law, AbstractLaw) and law.spins_within is not None
    if spin is not None and plane is None:
        raise ProblemError(
            f"{where}.spin: found {spin.names[0]!r} without plane; give one such as "
            "plane = ['x', 'y']"
        )
    if disc and spin is None:
        raise ProblemError(
            f"{where}: the law {type(law).__name__} is for a disc that slips and spins; give a "
            "friction element with plane and spin, such as plane = ['x', 'y'] and spin = 'theta'"
        )
    if spin is not None and not disc:
        found = "none" if law is None else type(law).__name__
        raise ProblemError(
            f"{where}.law: found {found} beside spin, which the law Contensou knows; give mu and "
            "radius, or leave spin out"
        )
    if disc:
        refuse_axes(where, law)


def refuse_axes(where: str, law: AbstractLaw | None) -> None:
    """Raise :class:`ProblemError` for coefficients of two directions where there is one."""
    for field in law.holding(PerAxis) if law is not None else ():
        raise ProblemError(
            f"{where}.{field}: found two coefficients, which friction in a plane without spin has; "
            "one is needed"
        )


def require_planes(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` for parallel directions of a plane. All numbers are known."""
    both = problem.axes + problem.bases
    for where, element in problem.labelled("friction", "contact").items():
        if element.plane is None:
            continue
        if all(isinstance(d, Direction) for d in element.plane):
            w = np.stack([d.known_vector(both).astype(float) for d in element.plane])
            w = w / np.linalg.norm(w, axis=1, keepdims=True)
            if np.sqrt(max(np.linalg.det(w @ w.T), 0.0)) <= PARALLEL:
                raise ProblemError(f"{where}.plane: found two directions that are the same line")
