"""Checks of friction laws: in a plane, where only one direction is possible, and of curves."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jfric.errors import ProblemError
from jfric.numerics import cubic
from jfric.system.description import AbstractProblem
from jfric.system.direction import Direction
from jfric.system.elements import Contact, Friction
from jfric.system.laws import (
    AbstractLaw,
    Directional,
    FrictionCurve,
    PerAxis,
    StaticDynamic,
    Stribeck,
    VelocityWeakening,
    sides,
)

#: Coefficient of friction that no usual pair of surfaces exceeds.
LARGEST_USUAL = 4.0
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
            f"{where}.law: found {found} together with spin, which only the law Contensou takes; "
            "give mu and radius, or leave spin out"
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


_SIDES = ("positive", "negative")


def require_knots(where: str, law: FrictionCurve) -> None:
    """Raise :class:`ProblemError` unless there are at least two knots, and a value for each."""
    if not isinstance(law.speeds, tuple) or len(law.speeds) < 2:
        found = len(law.speeds) if isinstance(law.speeds, tuple) else "no list"
        raise ProblemError(
            f"{where}.speeds: found {found}, a friction curve needs at least two knots, such as "
            "[0, 0.01, 0.1]"
        )
    for side, values in _sides(law):
        found = len(values) if isinstance(values, tuple) else "no list"
        if found != len(law.speeds):
            raise ProblemError(
                f"{where}.{side}: found {found} values, needed are {len(law.speeds)}, one for "
                "each of speeds"
            )


def require_curve(where: str, law: FrictionCurve) -> None:
    """Raise :class:`ProblemError` for knots out of order, a static limit below the curve, and a
    curve that is negative."""
    speeds = np.array([float(x) for x in law.speeds])
    prepared = law.prepared()
    # Increasing speeds may become one knot after the logarithm.
    if speeds[0] != 0.0 or not np.all(np.diff(np.asarray(prepared.x)) > 0):
        raise ProblemError(
            f"{where}.speeds: found {speeds.tolist()}, must begin with 0 and increase strictly"
        )
    limits = [float(x) for x in law.static()]
    for i, (side, _) in enumerate(_sides(law)):
        start = float(prepared.y[i, 0])
        if limits[i] < start:
            raise ProblemError(
                f"{where}.mu_s: found {limits[i]:g}, must be at least {start:g}, the first value "
                f"of {side}"
            )
        place, least = cubic.least(prepared.x, prepared.y[i], prepared.slopes[i])
        at = float(prepared.first) * float(np.expm1(place))
        if float(least) < 0.0:
            raise ProblemError(
                f"{where}.{side}: the curve is negative between its knots, {least:.3g} at the "
                f"speed {at:.4g}; add a knot there, or set monotone = true"
            )


def _sides(law: FrictionCurve) -> list[tuple[str, Any]]:
    """Names of the curves of a law in files, and values of the curves."""
    if isinstance(law.curve, Directional):
        return [(f"curve.{s}", getattr(law.curve, s)) for s in _SIDES]
    return [("curve", sides(law.curve)[0])]


def require_law(where: str, law: StaticDynamic | Stribeck | VelocityWeakening) -> None:
    """Raise :class:`ProblemError` for friction that rises at the onset, or a peak below one."""
    for s, d, label in zip(sides(law.mu_s), sides(law.mu_d), ("positive", "negative"), strict=True):
        # Stribeck's curve begins at mu_s and has no jump there: it may rise as well.
        if float(d) > float(s) and not isinstance(law, Stribeck):
            raise ProblemError(
                f"{where}.mu_d: found {float(d):g}, must not exceed mu_s "
                f"({float(s):g}, {label} direction)"
            )
    for value in sides(getattr(law, "peak", None)):
        if value is not None and not float(value) >= 1.0:
            raise ProblemError(
                f"{where}.peak: found {float(value):g}, must be at least 1 (a factor on mu_s)"
            )


def coefficient_remarks(problem: AbstractProblem) -> list[str]:
    """One sentence for each friction of a resolved problem whose coefficients may be forces: they
    are larger than :data:`LARGEST_USUAL`, with a normal force that is not 1 N."""
    found = []
    for label, element in problem.labelled("friction").items():
        if element.N is None:
            continue
        N = float(element.normal_force(0.0))
        mu = max(map(float, jax.tree.leaves(element.law.static())))
        if mu > LARGEST_USUAL and N != 1.0:
            found.append(
                f"{label}: a coefficient of {mu:g} with N = {N:g} N is a friction force of "
                f"{mu * N:g} N; if the coefficients are forces in newtons, write N = '1 N'"
            )
    return found
