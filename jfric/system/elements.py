"""The elements of a system. Pure data: no solver code."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any, ClassVar, Self, TypeVar

import equinox as eqx

from jfric.errors import ProblemError
from jfric.system.body import Body, Gravity, Ground, ImpactLaw, Link, LinkSpring, references
from jfric.system.bristle import BRISTLES, AbstractBristle
from jfric.system.controller import AbstractController, Controller, StateFeedback, StepController
from jfric.system.direction import Direction, as_direction
from jfric.system.event import Event
from jfric.system.fields import Scalar, about, holds, scalar, written
from jfric.system.formula import read_formula
from jfric.system.friction import Friction as Friction
from jfric.system.friction import along_plane, as_belt
from jfric.system.functions import AbstractFunction
from jfric.system.hysteresis import HYSTERESIS, AbstractHysteresis, JenkinsCoupling
from jfric.system.laws import LAWS, AbstractLaw, Contensou, Coulomb, as_law
from jfric.system.line_elements import AbstractForce as AbstractForce
from jfric.system.line_elements import (
    Base,
    Damper,
    DiagramSpring,
    Drag,
    ForceField,
    GapSpring,
    Load,
    Mass,
    Pendulum,
    PolynomialSpring,
    Spring,
    Stop,
)
from jfric.system.linkage import LINKAGE, Joint
from jfric.system.motor import Motor
from jfric.system.state import Force, State, Velocity
from jfric.system.transmission import Transmission


class Gap(eqx.Module):
    """The gap of a contact as a function: a text, or a Python function ``(t, q, parameters)``."""

    function: str | Callable = eqx.field(static=True)


def _gap(value) -> Any:
    """A gap as a number, with its unit or as an expression, or as a function of positions."""
    if callable(value):
        return Gap(value)
    if isinstance(value, str):
        try:
            names = read_formula(value).names
            return Gap(value) if names else scalar(value)
        except ValueError:
            return Gap(value)
    return value if isinstance(value, Gap) else scalar(value)


#: The directions of a contact in space, the last for the spin about its normal.
AXES = ("first", "second", "normal", "spin")
#: Names of degrees of freedom.
_NAME = re.compile(r"[\w-]+")


class Along(eqx.Module):
    """A direction of a plane as a function: a displacement or a velocity, as in ``sliding``."""

    function: str | Callable = eqx.field(static=True)


def is_formula(value: Any) -> bool:
    """Whether ``value`` is a text, but not a name."""
    return isinstance(value, str) and not _NAME.fullmatch(value)


def _plane(value) -> Any:
    """Directions of a plane; other values are left to the checks of a problem."""
    if not isinstance(value, (list, tuple)):
        return value
    function = [callable(x) or is_formula(x) for x in value]
    return tuple(
        Along(x) if own else x if isinstance(x, Along) else as_direction(x)
        for x, own in zip(value, function, strict=True)
    )


class Contact(eqx.Module):
    """Unilateral contact with friction: ``0 <= g_N _|_ lambda_N >= 0``, ``g_N = gap + n^T q``.

    The contact pushes along its normal ``n``, to larger ``n^T q``; a :class:`jfric.Stop` with that
    direction is on the other side: it is touched as ``n^T q`` grows.

    Without ``normal``, ``gap`` is the gap itself: a text in degrees of freedom, ``t`` and shared
    parameters (``"sqrt(x^2 + y^2) - R"``), or a JAX function ``(t, q, parameters)`` that returns
    one number. ``sliding`` in place of ``tangent`` is such a function for the displacement along
    the contact, or, with velocities (``"cos(phi)*v.x"``), for the sliding velocity. Directions and
    their change follow from both functions by differentiation.

    ``point``, in place of both, is a point of a :class:`jfric.Body` or the ground (``"rod.tip"``),
    or the centre of a circle of ``radius`` [m]. It touches a ``line`` (two points, the free side on
    the left of the way between them; the name of a body for its x-axis), a ``circle`` of
    ``circle_radius`` [m] round another point, from outside or ``inside``, or a ``polygon``: the
    corners of one body in order; two corners are a thin plate, touched from both sides. Lines have
    no ends. A point leaves a polygon at its corners; a circle rolls over them. The sliding velocity
    is that of the material, forwards along the line, or clockwise round the other circle or the
    polygon (``inside``: counterclockwise; a plate's first side is the left of the way between its
    corners); ``gap`` is then a clearance.

    In space ``point`` belongs to a :class:`jfric.Link`, with a sphere of ``radius`` round it. It
    touches a ``surface``, the plane of the first two axes of the ``"ground"``, of a link or of a
    point of a link, free on the side of the third axis; or a ``sphere`` of ``sphere_radius`` round
    another point, from outside or ``inside``. Friction acts in the tangent plane; sliding is
    measured along the first two axes. With a ``contact_radius`` [m] the contact is a disc under an
    even pressure, with one coefficient ``mu``: friction also brakes the spin about the normal, and
    depends on slip and spin together (:class:`jfric.laws.Contensou`). The torque is the component
    ``contact.3``; impulses of an impact have the same limits.

    ``plane``, in place of ``tangent`` and ``sliding``: two directions at right angles to each
    other, each like ``tangent``, or a function like ``sliding``. Friction then acts in a plane as
    in :class:`jfric.Friction`, with the reaction as normal force. ``belt`` is then a pair; results
    call the components ``contact.1`` and ``contact.2``, and ``lambda_n`` of a solution holds the
    normal force at the first.

    ``e``: Newton's coefficient of restitution, ``0 <= e <= 1``. ``impact``: ``"coulomb"`` (the
    tangential impulse obeys Coulomb's law) or ``"none"`` (no tangential impulse). Without
    ``tangent`` and ``law`` the contact is frictionless. ``normal``, ``tangent``: directions as in
    :class:`jfric.Friction`; ``law``: :mod:`jfric.laws`, or Coulomb's coefficient; ``gap`` [m]: that
    at position zero; ``belt``: velocity of the partner's surface along the tangent [m/s].

    A ball that falls on the ground from 1 m and loses half of its speed::

        >>> ball = jfric.Problem(
        ...     ["z"],
        ...     {
        ...         "mass": jfric.Mass("z", 2.0),
        ...         "contact": jfric.Contact("z", e=0.5),
        ...         "load": jfric.Load("z", -20.0),
        ...     },
        ...     initial={"z": jfric.InitialState(q=1.0)},
        ...     time=0.6,
        ... )
        >>> solution = jfric.simulate(ball)
        >>> jfric.Flag.ZENO in jfric.Flag(int(solution.flags)), int(solution.events.impact.sum())
        (False, 1)
    """

    normal: Direction | None = eqx.field(converter=as_direction, default=None)
    tangent: Direction | None = eqx.field(converter=as_direction, default=None)
    law: AbstractLaw | None = eqx.field(default=None, **holds(along="tangent", converter=as_law))
    gap: Scalar = eqx.field(
        default=0.0, **holds("length", form="gap", along="normal", converter=_gap)
    )
    e: Scalar = eqx.field(default=0.0, **holds("pure number", at_least=0.0, at_most=1.0))
    belt: AbstractFunction | tuple[AbstractFunction, ...] | None = eqx.field(
        default=None, **holds("velocity", form="belt", along="tangent", converter=as_belt)
    )
    impact: ImpactLaw = eqx.field(static=True, default="coulomb")
    sliding: str | Callable | None = eqx.field(default=None, **written("formula"))
    point: str | None = eqx.field(default=None, **written("text"))
    line: str | tuple[str, str] | None = eqx.field(
        converter=references, default=None, **written("line")
    )
    circle: str | None = eqx.field(default=None, **written("text"))
    polygon: tuple[str, ...] | None = eqx.field(
        converter=references, default=None, **written("corners")
    )
    radius: Scalar = eqx.field(default=None, **holds("length", at_least=0.0, fixed=True))
    circle_radius: Scalar = eqx.field(default=None, **holds("length", at_least=0.0, fixed=True))
    inside: bool = eqx.field(default=False, **written("flag"))
    plane: tuple[Direction | Along, ...] | None = eqx.field(
        default=None, **holds(form="plane or formulas", converter=_plane)
    )
    surface: str | None = eqx.field(default=None, **written("text"))
    sphere: str | None = eqx.field(default=None, **written("text"))
    sphere_radius: Scalar = eqx.field(default=None, **holds("length", at_least=0.0, fixed=True))
    contact_radius: Scalar = eqx.field(default=None, **holds("length", above=0.0, fixed=True))
    symbol: ClassVar[str] = "contact"
    shown: ClassVar[tuple[str, ...]] = ("gap", "e")

    def rows(self) -> list[Self]:
        """One contact for each direction of sliding: this one, or those of a plane."""
        if self.partner is not None and self.law is not None:
            belts: Any = self.belt if isinstance(self.belt, tuple) else (self.belt,) * 2
            first, second, _, spin = AXES
            along = {axis: self.law.along(i) for i, axis in enumerate((first, second))}
            if self.contact_radius is not None and isinstance(self.law, Coulomb):
                disc = Contensou(self.law.mu, self.contact_radius)
                along = dict.fromkeys((first, second, spin), disc)
            return [
                replace(self, law=law, belt=belt, sliding=axis)
                for (axis, law), belt in zip(along.items(), (*belts, None), strict=False)
            ]
        if self.plane is None:
            return [self]
        found = []
        for direction, own in along_plane(self):
            side = "sliding" if isinstance(direction, Along) else "tangent"
            value = direction.function if isinstance(direction, Along) else direction
            found.append(replace(self, **{side: value}, **own))
        return found

    @property
    def partner(self) -> str | None:
        """Name of the surface or sphere that a point touches in space; None in the plane."""
        return self.surface if self.sphere is None else self.sphere

    @property
    def frictionless(self) -> bool:
        """Whether the contact has no direction of sliding, by structure."""
        if self.point is not None:
            return self.law is None
        return self.tangent is None and self.sliding is None and self.plane is None

    @property
    def curved(self) -> bool:
        """Whether the gap is a function of positions."""
        return self.point is not None or isinstance(self.gap, Gap)


class Lagrangian(eqx.Module):
    """A system, or a part of one, described by its energies: Lagrange's equations.

    ``kinetic`` [J], quadratic in the velocities, ``potential`` [J] and ``dissipation`` [W]
    (Rayleigh's function, half of the power lost): each a text in degrees of freedom (``theta``),
    velocities (``v.theta``), time ``t``, shared parameters (``$m``, or ``m`` where no degree of
    freedom is called so) and quantities with units; or a JAX function ``(t, q, v, parameters)`` of
    positions and velocities (n,) and the problem's ``parameters`` by name, without ``v`` for the
    potential. Mass matrix and forces follow by differentiation::

        d/dt dT/dv - dT/dq + dV/dq + dD/dv = forces of all other elements

    Energies of several such elements add up. Terms that turn out to be linear are treated like
    masses, springs and dampers. A pendulum with a mass on a rod::

        >>> pendulum = jfric.Problem(
        ...     {"theta": "rotation"},
        ...     {
        ...         "lagrangian": jfric.Lagrangian(
        ...             kinetic="0.5*m*l^2*v.theta^2", potential="-m*9.81*l*cos(theta)"
        ...         )
        ...     },
        ...     parameters={"m": 2.0, "l": 0.5},
        ...     initial={"theta": jfric.InitialState(q=0.1)},
        ... )
        >>> float(jfric.simulate(pendulum, ts=jnp.array([0.0])).a[0, 0]).__round__(6)
        -1.958732
    """

    kinetic: str | Callable | None = eqx.field(default=None, **written("formula"))
    potential: str | Callable | None = eqx.field(default=None, **written("formula"))
    dissipation: str | Callable | None = eqx.field(default=None, **written("formula"))


#: Sections of a problem and the element each holds. A new element is one class and one line here:
#: its fields say what they hold (:mod:`jfric.system.fields`), ``symbol`` and ``shown`` how it is
#: drawn and which of its numbers are shown with it.
SECTIONS: dict[str, type[eqx.Module]] = {
    "body": Body,
    "link": Link,
    "ground": Ground,
    "gravity": Gravity,
    "link_spring": LinkSpring,
    "mass": Mass,
    "lagrangian": Lagrangian,
    "spring": Spring,
    "damper": Damper,
    "diagram_spring": DiagramSpring,
    "gap_spring": GapSpring,
    "stop": Stop,
    **HYSTERESIS,
    "jenkins_coupling": JenkinsCoupling,
    **BRISTLES,
    "state": State,
    "friction": Friction,
    "contact": Contact,
    "load": Load,
    "motor": Motor,
    "transmission": Transmission,
    "base": Base,
    "joint": Joint,
    "velocity": Velocity,
    **LINKAGE,
    "pendulum": Pendulum,
    "polynomial_spring": PolynomialSpring,
    "drag": Drag,
    "force": Force,
    "force_field": ForceField,
    "event": Event,
    "controller": Controller,
    "state_feedback": StateFeedback,
    "step_controller": StepController,
}


def curved_sections() -> tuple[str, ...]:
    """Sections of nonlinear elements with one force along one direction."""
    own = {k: cls for k, cls in SECTIONS.items() if issubclass(cls, AbstractForce)}
    return tuple(name for name, cls in own.items() if "direction" in about(cls))


C = TypeVar("C", bound=type)

#: Group of entry points, each the name of a section or of a law and its class.
GROUP = "jfric.elements"
_REGISTERED = re.compile(r"[a-z][a-z0-9_-]*")
#: Base classes of such classes, and the tables with their names.
_KINDS: dict[type, tuple[dict, ...]] = {
    AbstractForce: (SECTIONS,),
    AbstractBristle: (SECTIONS, BRISTLES),
    AbstractHysteresis: (SECTIONS, HYSTERESIS),
    AbstractLaw: (LAWS,),
    AbstractController: (SECTIONS,),
}


def register(name: str) -> Callable[[C], C]:
    """A decorator that registers a class: an element by the section ``name``, a law by its name.

    ``name``: small letters, digits, _ and -. The class is a :class:`jfric.elements.AbstractForce`
    (a smooth force), a :class:`jfric.elements.AbstractBristle` (friction with a state), a
    :class:`jfric.elements.AbstractHysteresis` (springs in series with sliders), a
    :class:`jfric.elements.AbstractController` or a :class:`jfric.laws.AbstractLaw`. Its fields say
    what they hold (:func:`jfric.holds`): files, messages, sweeps, fits, sketches and the manual
    read it from there. Files find classes of other packages by entry points of the group
    ``jfric.elements``. Raises :class:`jfric.ProblemError` for a name that is taken and for a class
    that is none of these. A spring that gets stiffer::

        >>> import equinox as eqx
        >>> @jfric.register("hard_spring")
        ... class HardSpring(jfric.elements.AbstractForce):
        ...     direction: jfric.Direction = eqx.field(converter=jfric.as_direction)
        ...     k: float = eqx.field(**jfric.holds("stiffness", at_least=0.0))
        ...
        ...     def force(self, axes, t, q, v):
        ...         w = self.direction.vector(axes)
        ...         return -w * self.k * jnp.sinh(w @ q)
        >>> system = {"mass": jfric.Mass("u", 1.0), "hard_spring": HardSpring("u", k="2 N/mm")}
        >>> problem = jfric.Problem("u", system, time=1.0)
        >>> float(jfric.get_parameter(problem, "hard_spring.k"))
        2000.0
    """

    def decorated(cls: C) -> C:
        kinds = [base for base in _KINDS if isinstance(cls, type) and issubclass(cls, base)]
        if not kinds or not hasattr(cls, "__dataclass_fields__"):
            allowed = ", ".join(f"jfric.{base.__name__}" for base in _KINDS)
            raise ProblemError(f"register: found {cls!r}, must be a subclass of one of {allowed}")
        if not _REGISTERED.fullmatch(name):
            raise ProblemError(
                f"register: found the name {name!r}, names start with a small letter and hold "
                "small letters, digits, _ and -"
            )
        for known in _KINDS[kinds[0]]:
            if known.get(name, cls).__qualname__ != cls.__qualname__:
                raise ProblemError(
                    f"register: found the name {name!r}, which {known[name].__name__} has; take "
                    "another one"
                )
        for known in _KINDS[kinds[0]]:
            known[name] = cls
        return cls

    return decorated


@functools.cache
def register_installed() -> bool:
    """Register classes that installed packages announce by entry points; whether there are any."""
    found = entry_points(group=GROUP)
    for point in found:
        register(point.name)(point.load())
    return bool(found)
