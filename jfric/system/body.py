"""Rigid bodies that move in a plane, the ground, gravity, and springs between their points."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import equinox as eqx

from jfric.system.fields import Scalar, holds, scalar, written

#: The three degrees of freedom of a body, which follow its name, and their kinds.
COORDINATES = {"x": "translation", "y": "translation", "phi": "rotation"}


def pair(value: Any) -> Any:
    """A list of two numbers as array leaves; any other value unchanged."""
    return tuple(scalar(x) for x in value) if isinstance(value, (tuple, list)) else value


def _points(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return OrderedDict((name, pair(at)) for name, at in value.items())


class Body(eqx.Module):
    """A rigid body in the plane: ``m (x'', y'') = forces``, ``J phi'' = torques``.

    ``m`` [kg], ``J`` [kg m^2] about its centre of mass. A body ``rod`` declares the degrees of
    freedom ``rod_x``, ``rod_y`` (of the centre of mass) and ``rod_phi``, counterclockwise, which
    all other elements may name. ``at`` [m], ``angle`` [rad], ``v`` [m/s], ``omega`` [rad/s]: its
    start, kept as initial states (``initial.rod_x.q``). Values that are not given are zero. Where
    the joints do not allow that, they follow from the joints, near an angle of zero, and follow
    again when lengths or other parts of the start are changed, swept or differentiated.
    ``points``: named points in body coordinates [m], from the centre of mass along axes that turn
    with the body. Contacts, joints and springs refer to them as ``"rod.tip"``, and to the centre
    of mass as ``"rod"``. A rod that falls flat on two supports::

        >>> falling = jfric.Problem(
        ...     [],
        ...     {
        ...         "body": {
        ...             "rod": jfric.Body(
        ...                 2.0, 0.5, at=(0, 1), points={"left": (-0.8, 0), "right": (0.8, 0)}
        ...             )
        ...         },
        ...         "gravity": jfric.Gravity(10.0),
        ...         "contact": {
        ...             side: jfric.Contact(point=f"rod.{side}", line="ground", e=0.5)
        ...             for side in ("left", "right")
        ...         },
        ...     },
        ...     time=0.6,
        ... )
        >>> list(falling.dofs)
        ['rod_x', 'rod_y', 'rod_phi']
        >>> log = jfric.simulate(falling).events
        >>> round(float(log.time[0]), 6), round(float(log.v[0, 1] / log.v_before[0, 1]), 6)
        (0.447214, -0.5)
    """

    m: Scalar = eqx.field(**holds("mass", above=0.0, fixed=True))
    J: Scalar = eqx.field(**holds("moment of inertia", above=0.0))
    at: Any = eqx.field(default=None, **holds("length", form="pair", fixed=True, converter=pair))
    angle: Scalar = eqx.field(default=None, **holds("angle"))
    v: Any = eqx.field(default=None, **holds("velocity", form="pair", fixed=True, converter=pair))
    omega: Scalar = eqx.field(default=None, **holds("angular velocity"))
    points: dict[str, Any] = eqx.field(
        default_factory=dict, **holds("length", form="pairs", fixed=True, converter=_points)
    )

    def start(self) -> dict[str, tuple[Any, Any]]:
        """Position and velocity by coordinate, None where they are not given."""
        at, v = self.at or (None, None), self.v or (None, None)
        return {"x": (at[0], v[0]), "y": (at[1], v[1]), "phi": (self.angle, self.omega)}


class Ground(eqx.Module):
    """Ground that stands still, with named points.

    ``points`` [m]: ``"ground.corner"`` refers to one; ``"ground"`` itself is the origin, and as a
    line the x-axis::

        >>> ground = jfric.Ground(points={"corner": (1.0, 0.5)})
        >>> [float(x) for x in ground.points["corner"]]
        [1.0, 0.5]
    """

    points: dict[str, Any] = eqx.field(
        default_factory=dict, **holds("length", form="pairs", fixed=True, converter=_points)
    )


class Gravity(eqx.Module):
    """Weight of all bodies: ``m g`` along -y, turned towards +x by ``tilt`` [rad].

    ``g`` [m/s^2]. With a tilt the x-axis is an incline that falls along +x.
    The part along the incline::

        >>> incline = jfric.Gravity(10.0, tilt=jnp.pi / 6)
        >>> round(float(incline.g * jnp.sin(incline.tilt)), 9)
        5.0
    """

    g: Scalar = eqx.field(default=9.81, **holds("acceleration"))
    tilt: Scalar = eqx.field(default=None, **holds("angle"))


def references(value: Any) -> Any:
    """Names of points as a tuple, or one name."""
    return tuple(value) if isinstance(value, list) else value


class LinkSpring(eqx.Module):
    """Spring and damper between two points: force ``-(k (L - x0) + c dL/dt)`` along the line.

    ``points``: two references (``"rod.tip"``, ``"ground.wall"``) a distance ``L`` apart. ``k``
    [N/m], ``c`` [N s/m]: not negative; ``x0`` [m]: length without force. In a file::

        >>> sprung = jfric.Problem(
        ...     [],
        ...     {
        ...         "body": {"rod": jfric.Body(2.0, 0.5, at=(0, 1), points={"tip": (0, 1)})},
        ...         "ground": jfric.Ground(points={"wall": (3.0, 2.0)}),
        ...         "link_spring": jfric.LinkSpring(("rod.tip", "ground.wall"), k=100.0, x0=2.0),
        ...     },
        ... )
        >>> print(jfric.to_toml(sprung).split("\\n\\n")[3].strip())
        [link_spring]
        points = ["rod.tip", "ground.wall"]
        k = 100.0 # N/m
        c = 0.0 # N*s/m
        x0 = 2.0 # m
    """

    points: tuple[str, str] = eqx.field(converter=references, **written("texts"))
    k: Scalar = eqx.field(default=0.0, **holds("stiffness", at_least=0.0, fixed=True))
    c: Scalar = eqx.field(default=0.0, **holds("damping", at_least=0.0, fixed=True))
    x0: Scalar = eqx.field(default=0.0, **holds("length", fixed=True))


def coordinates(name: str) -> tuple[str, ...]:
    """Degrees of freedom of the body ``name``."""
    return tuple(f"{name}_{c}" for c in COORDINATES)


def dofs_of(bodies: Mapping[str, Any]) -> dict[str, str]:
    """Degrees of freedom of ``bodies``, and the kind of each."""
    return {f"{name}_{c}": kind for name in bodies for c, kind in COORDINATES.items()}


def at_rest(body: Body) -> Body:
    """The ``body`` without its start."""
    return Body(body.m, body.J, points=body.points)
