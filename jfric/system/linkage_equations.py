"""The equations ``phi(t, q) = 0`` of joints between bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.system.description import AbstractProblem
from jfric.system.fields import Scalar
from jfric.system.joints import JointEquation
from jfric.system.linkage import LINKAGE, Gear, Pin, Rolling, Slider, Weld
from jfric.system.loops import coinciding
from jfric.system.places import OfPlaces, Place, line, place
from jfric.system.position_functions import OfGroup
from jfric.system.touching import CircleGap, LineGap, LineSliding


class Apart(OfPlaces):
    """Component, ``along`` a unit vector, of the vector from the second point to the first."""

    first: Place
    second: Place
    along: Float[Array, 2]

    def __call__(self, t, q):
        return self.along @ (self.first.position(q) - self.second.position(q))


class Turned(OfPlaces):
    """The sum ``r_a phi_a + r_b phi_b``."""

    first: Place
    second: Place
    radii: tuple[Any, Any]

    def __call__(self, t, q):
        return self.radii[0] * self.first.angle(q) + self.radii[1] * self.second.angle(q)


class SinceStart(OfPlaces):
    """Change of a displacement since the start, known up to multiples of a ``period``, if given."""

    displacement: OfPlaces
    start: Scalar
    period: Scalar = None

    def __call__(self, t, q):
        way = self.displacement(t, q) - self.start
        if self.period is None:
            return way
        return way - self.period * jnp.round(way / self.period)


class Rolled(OfPlaces):
    """Slip of two touching circles, ``r phi_A + s R phi_B - (r + s R) theta`` with the angle
    ``theta`` of the line of centres, up to its period; ``s`` is -1 for one inside the other."""

    of: CircleGap

    @property
    def radii(self) -> tuple[Any, Any]:
        """Radii ``r`` and ``s R``."""
        return self.of.radius, -self.of.other if self.of.inside else self.of.other

    @property
    def period(self):
        """Change of the slip by a whole turn of the line of centres, apart from the sign."""
        return 2.0 * jnp.pi * (self.radii[0] + self.radii[1])

    def __call__(self, t, q):
        r, R = self.radii
        way = self.of.point.position(q) - self.of.circle.position(q)
        turned = r * self.of.point.angle(q) + R * self.of.circle.angle(q)
        return turned - (r + R) * jnp.arctan2(way[1], way[0])


def linkage_equations(problem: AbstractProblem) -> list[JointEquation]:
    """Equations of all joints between bodies of a resolved problem."""
    found = []
    t, q, _ = problem.start()
    between_links, group = coinciding(problem)
    for label, joint in problem.labelled(*LINKAGE).items():
        if group is not None and label in between_links:
            first = 3 * between_links.index(label)
            own = {c: (OfGroup(group, first + i), "N") for i, c in enumerate("xyz")}
            equations: dict[str, tuple[Callable, str]] = dict(own)
        else:
            equations = _equations(problem, joint, t, q)
        for name, (function, unit) in equations.items():
            own = f"{label}.{name}" if len(equations) > 1 else label
            rubs = name == "normal" and getattr(joint, "law", None) is not None
            found.append(JointEquation(label, own, function, unit, rubs))
    return found


def _equations(problem: AbstractProblem, joint: Any, t, q) -> dict[str, tuple[Callable, str]]:
    """Functions of one joint, and units of their reactions, by the names of these."""

    def held(displacement: OfPlaces, period: Any = None) -> SinceStart:
        return SinceStart(displacement, displacement(t, q), period)

    zero, one = jnp.zeros(()), jnp.ones(())
    found: dict[str, tuple[Callable, str]] = {}
    if isinstance(joint, Pin | Weld):
        first, second = (place(problem, x) for x in joint.points)
        found = {c: (Apart(first, second, e), "N") for c, e in zip("xy", jnp.eye(2), strict=True)}
        if isinstance(joint, Weld):
            found["torque"] = held(Turned(first, second, (one, -one))), "N m"
    elif isinstance(joint, Slider):
        point, along = place(problem, joint.point), line(problem, joint.line)
        found["normal"] = LineGap(point, along, zero, zero), "N"
        if not joint.turns:
            found["torque"] = held(Turned(point, along.through, (one, -one))), "N m"
    elif isinstance(joint, Gear):
        first, second = (place(problem, x) for x in joint.bodies)
        found["teeth"] = held(Turned(first, second, joint.radii)), "N"
    elif isinstance(joint, Rolling):
        point = place(problem, joint.point)
        if joint.line is not None:
            along = line(problem, joint.line)
            found["normal"] = LineGap(point, along, joint.radius, zero), "N"
            found["tangent"] = held(LineSliding(point, along, joint.radius)), "N"
        else:
            circle = place(problem, joint.circle)  # type: ignore[arg-type]
            other = zero if joint.circle_radius is None else joint.circle_radius
            gap = CircleGap(point, circle, joint.radius, other, zero, joint.inside)
            rolled = Rolled(gap)
            found["normal"] = gap, "N"
            found["tangent"] = held(rolled, rolled.period), "N"
    return found
