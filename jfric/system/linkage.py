"""Joints as data, by equations and between points of bodies: what each holds, and names for its
reactions.

Reactions (``reaction.pin.a.x``), forces [N] and torques [N m], act on the first body named, and
with the opposite sign on the second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx

from jfric.system.body import ImpactLaw, pair, references
from jfric.system.description import AbstractProblem
from jfric.system.direction import Direction
from jfric.system.fields import Scalar, holds, written
from jfric.system.friction import Friction
from jfric.system.laws import AbstractLaw, as_law
from jfric.system.places import GROUND


def _several(constraint) -> Any:
    """One or more functions as a tuple, which can be compared."""
    return tuple(constraint) if isinstance(constraint, (tuple, list)) else (constraint,)


class Joint(eqx.Module):
    """Bilateral constraints ``phi(t, q) = 0``, with reactions of any sign.

    ``constraint``: one or more of them, each a text in degrees of freedom, ``t`` and shared
    parameters (``"x - l*cos(theta)"``), or a JAX function ``(t, q, parameters)`` that returns one
    number. A text that is linear in velocities (``"cos(phi)*v.y - sin(phi)*v.x"``, a blade) holds
    no position. Derivatives are computed. A constraint that depends on time prescribes a motion::

        M dv/dt = f + (dphi/dq)^T lambda

    ``lambda`` is the quantity ``reaction.NAME`` (for several equations ``reaction.NAME.1`` and so
    on), in N where the equation measures a length, in N m where it measures an angle. Positions and
    velocities at the start must meet the equations to a millionth. Equations that follow from
    others leave the motion unique, and set the flag ``REDUNDANT``. ``law`` and ``sliding`` give a
    single equation friction with the magnitude of the reaction as normal force, along a
    displacement as in :class:`jfric.Contact`. Results then show its two sides as contacts,
    ``joint.NAME.positive`` where ``lambda`` is positive, and ``joint.NAME.negative``. A pendulum as
    a point on a circle, which hangs at rest::

        >>> pendulum = jfric.Problem(
        ...     ["x", "y"],
        ...     {
        ...         "mass": {"x": jfric.Mass("x", 2.0), "y": jfric.Mass("y", 2.0)},
        ...         "load": jfric.Load("y", -20.0),
        ...         "joint": {"rod": jfric.Joint("sqrt(x^2 + y^2) - l")},
        ...     },
        ...     parameters={"l": 0.5},
        ...     initial={"y": jfric.InitialState(q=-0.5)},
        ... )
        >>> found = jfric.observe(pendulum, "final.reaction.rod, max.y").values
        >>> {name: round(float(x), 9) for name, x in found.items()}
        {'final.reaction.rod': -20.0, 'max.y': -0.5}
    """

    constraint: tuple[str | Callable, ...] = eqx.field(
        converter=_several, **written("formula or several")
    )
    law: AbstractLaw | None = eqx.field(converter=as_law, default=None)
    sliding: str | Callable | None = eqx.field(default=None, **written("formula"))


class Pin(eqx.Module):
    """Joint of two points that coincide; both bodies turn freely.

    ``points``: references such as ``("crank.tip", "rod.left")``. Reactions ``x`` and ``y``. Points
    of links (:class:`jfric.Link`) coincide in space, and close a loop: reactions ``x``, ``y`` and
    ``z``; what the joints in the loop do not give at the start follows. Two such pins are a hinge.

    ``law`` and ``radius`` [m] of the pin give it friction: a torque ``tau`` on the first body,
    against its turning relative to the second. The limit depends on the reaction ``R``, and this
    depends on the torque itself::

        stick    |tau| <= mu_s r |R|,    sliding    tau = -mu_d r |R| sign(omega)

    Results contain the torque as friction with the name of the pin (``lambda_t.pin.a``). A motion
    has the status INCONSISTENT where the reaction is not unique: where ``mu r`` is as large as
    lengths of the mechanism, or reactions of its joints are redundant. ``impact``, in a system with
    contacts: with ``"none"`` impacts cause no impulse of the torque; ``"coulomb"`` (the limit holds
    for impulses, too) is refused.

    A pendulum at rest carries its weight::

        >>> pendulum = jfric.Problem(
        ...     [],
        ...     {
        ...         "body": {"rod": jfric.Body(2.0, 0.2, at=(0, -1), points={"top": (0, 1)})},
        ...         "gravity": jfric.Gravity(10.0),
        ...         "pin": jfric.Pin(("rod.top", "ground")),
        ...     },
        ... )
        >>> found = jfric.observe(pendulum, "final.reaction.pin.y").values
        >>> [round(float(x), 9) for x in found.values()]
        [20.0]
    """

    points: tuple[str, str] = eqx.field(converter=references, **written("texts"))
    law: AbstractLaw | None = eqx.field(converter=as_law, default=None)
    radius: Scalar = eqx.field(default=None, **holds("length", above=0.0, fixed=True))
    impact: ImpactLaw = eqx.field(static=True, default="coulomb")

    def friction(self, name: str) -> Friction:
        """Friction element between both bodies, with ``N = 0``: the reaction is not known here."""
        turns = [f"{point.partition('.')[0]}_phi" for point in self.points]
        bodies = [dof for dof in turns if dof != f"{GROUND}_phi"]
        signs = dict(zip(turns, (1, -1), strict=True))
        along = Direction(tuple(bodies), tuple(signs[dof] for dof in bodies))
        return Friction(along, self.law, N=0.0)


class Slider(eqx.Module):
    """Joint that keeps a point on a line of another body or the ground.

    ``point`` and ``line`` as in :class:`jfric.Contact`. ``turns``: whether the bodies may turn
    against each other; if not, they keep the angle that they have at the start. Reactions:
    ``normal``, along the left normal of the line, and, without turning, ``torque``. ``law``:
    friction along the line with the magnitude of the normal reaction as normal force, as in
    :class:`jfric.Joint`::

        >>> crosshead = jfric.Slider("rod.tip", "ground", turns=False, law=jfric.Coulomb(0.1))
        >>> crosshead.point, crosshead.turns, float(crosshead.law.mu)
        ('rod.tip', False, 0.1)
    """

    point: str = eqx.field(**written("text"))
    line: str | tuple[str, str] = eqx.field(converter=references, **written("line"))
    turns: bool = eqx.field(default=True, **written("flag"))
    law: AbstractLaw | None = eqx.field(converter=as_law, default=None)


class Weld(eqx.Module):
    """Joint of two points that coincide; the bodies keep the angle that they have at the start.

    ``points`` as in :class:`jfric.Pin`. Reactions ``x``, ``y`` and ``torque``::

        >>> jfric.Weld(("rod.end", "plate.edge")).points
        ('rod.end', 'plate.edge')
    """

    points: tuple[str, str] = eqx.field(converter=references, **written("texts"))


class Gear(eqx.Module):
    """Two wheels that turn against each other: ``r_a phi_a + r_b phi_b`` stays constant.

    ``bodies``: two names; ``radii`` [m]: of their pitch circles, with a negative sign on one for an
    inner gear or a belt. Their centres stand still, or are held by other joints. One reaction, the
    force between the teeth::

        >>> gear = jfric.Gear(("pinion", "wheel"), radii=(0.02, 0.06))
        >>> [float(r) for r in gear.radii]
        [0.02, 0.06]
    """

    bodies: tuple[str, str] = eqx.field(converter=references, **written("bodies"))
    radii: Any = eqx.field(**holds("length", form="pair", fixed=True, converter=pair))


class Rolling(eqx.Module):
    """Joint that keeps a circle on a line or on another circle, where it rolls without slip.

    ``point``, ``radius``, ``line`` or ``circle``, ``circle_radius`` and ``inside`` as in
    :class:`jfric.Contact`. Reactions ``normal`` and ``tangent``, of any size and sign; use a
    contact for limited ones. A wheel on the ground::

        >>> wheel = jfric.Rolling("wheel.centre", 0.3, line="ground")
        >>> wheel.line, float(wheel.radius)
        ('ground', 0.3)
    """

    point: str = eqx.field(**written("text"))
    radius: Scalar = eqx.field(**holds("length", above=0.0, fixed=True))
    line: str | tuple[str, str] | None = eqx.field(
        converter=references, default=None, **written("line")
    )
    circle: str | None = eqx.field(default=None, **written("text"))
    circle_radius: Scalar = eqx.field(default=None, **holds("length", at_least=0.0, fixed=True))
    inside: bool = eqx.field(default=False, **written("flag"))


#: Sections of joints between bodies, and the element of each.
LINKAGE: dict[str, type[eqx.Module]] = {
    "pin": Pin,
    "slider": Slider,
    "weld": Weld,
    "gear": Gear,
    "rolling": Rolling,
}


def has_joints(problem: AbstractProblem) -> bool:
    """Whether ``problem`` has joints, also between bodies, or velocities that move several degrees
    of freedom."""
    own = any(map(problem.section, ("joint", "velocity", *LINKAGE)))
    return own or any(x.radius is not None for x in problem.section("link").values())
