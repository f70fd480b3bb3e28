"""Rigid bodies as data: in a plane with the ground, gravity and springs between their points, and
in space, where joints connect them to a tree."""

from __future__ import annotations

import functools
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import equinox as eqx
import numpy as np

from jfric.errors import ProblemError, require_known
from jfric.system.description import AbstractProblem, element_label
from jfric.system.direction import Direction
from jfric.system.fields import Scalar, holds, scalar, written
from jfric.system.friction import Friction
from jfric.system.laws import AbstractLaw, as_law

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


#: Coordinates of each kind of joint: what follows the joint's name, and the kind of each.
_QUATERNION: dict[str, str] = dict.fromkeys(("_qw", "_qx", "_qy", "_qz"), "rotation")
JOINT_COORDINATES: dict[str, dict[str, str]] = {
    "revolute": {"": "rotation"},
    "prismatic": {"": "translation"},
    "fixed": {},
    "ball": _QUATERNION,
    "free": {**dict.fromkeys(("_x", "_y", "_z"), "translation"), **_QUATERNION},
}
#: The same of a revolute joint whose bearing has friction: its axle never leaves the bearing.
_BEARING = {"_r1": "translation", "_r2": "translation", "": "rotation"}
#: Law for tangential impulses of a contact, or for impulses of the torque of a pin with friction.
ImpactLaw = Literal["coulomb", "none"]
#: What holds the first link of a tree.
GROUND = "ground"
_NAME = re.compile(r"[A-Za-z]\w*")


def _placed(value: Any) -> Any:
    """Named points as array leaves; any other value unchanged."""
    if not isinstance(value, Mapping):
        return value
    return OrderedDict((name, pair(at)) for name, at in value.items())


#: Arguments of a field of several numbers along axes that never turn.
_fixed = functools.partial(holds, fixed=True, converter=pair)


class Link(eqx.Module):
    """A rigid body in space, and the joint by which ``parent`` carries it.

    ``parent``: another link, or ``"ground"``. ``joint``: ``"revolute"`` (turns about ``axis``),
    ``"prismatic"`` (slides along ``axis``), ``"fixed"``, ``"ball"``, or ``"free"`` for a body that
    nothing carries. ``at`` [m] and ``rpy`` [rad]: where the joint is in the parent's frame, and
    the turns of its axes about x, then y, then z of the parent, as in URDF. The link's frame has
    its origin in the joint, and there ``axis``; ``m`` [kg], ``com`` [m]: centre of mass; ``J``
    [kg m^2]: inertia about it along the link's axes, ``(Jxx, Jyy, Jzz, Jxy, Jxz, Jyz)``.
    ``armature`` [kg m^2, along an axis kg]: inertia of the drive, as it acts at the joint.
    ``points``: named points in the link's frame [m]. ``law`` and ``radius`` [m]: friction in the
    bearing of a revolute joint, by the force ``R`` across its axis that it transmits, as in
    :class:`jfric.Pin`; ``impact`` as there. The torque is friction with the name of the link
    (``lambda_t.link.NAME``). Two degrees of freedom ``dof_r1`` and ``dof_r2`` stay zero; their
    reactions ``reaction.link.NAME.1`` and ``.2`` are the components of ``R``.

    The joint's coordinate is a degree of freedom with the name ``dof``, by default that of the
    link; frictions, loads, springs, contacts at its limits, motors and controllers name it. A ball
    has the four ``dof_qw``, ``dof_qx``, ``dof_qy``, ``dof_qz``, a unit quaternion, and a free body
    also ``dof_x``, ``dof_y``, ``dof_z``. Weights of links act along -z. The equations of all links
    are those of Newton and Euler for the tree::

        M(q) dv/dt + c(q, v) = forces of all other elements

    Raises (in :class:`jfric.Problem`) :class:`jfric.ProblemError` for an unknown parent, a ring of
    links, or an inertia that no body has. A pendulum of two arms that hangs, turned by 0.1 rad::

        >>> arm = {"m": 1.0, "com": (0, 0, -0.5), "axis": (0, 1, 0)}
        >>> links = {
        ...     "upper": jfric.Link(**arm),
        ...     "lower": jfric.Link(parent="upper", at=(0, 0, -1.0), **arm),
        ... }
        >>> double = jfric.Problem(
        ...     [],
        ...     {"link": links, "gravity": jfric.Gravity(10.0)},
        ...     initial={"upper": jfric.InitialState(q=0.1)},
        ... )
        >>> list(double.dofs)
        ['upper', 'lower']

    Source: R. Featherstone, Rigid body dynamics algorithms (2008).
    """

    joint: Literal["revolute", "prismatic", "fixed", "ball", "free"] = eqx.field(
        static=True, default="revolute"
    )
    parent: str = eqx.field(default=GROUND, **written("name"))
    dof: str | None = eqx.field(default=None, **written("name"))
    axis: Any = eqx.field(default=(0.0, 0.0, 1.0), **_fixed("pure number", form="triple"))
    at: Any = eqx.field(default=(0.0, 0.0, 0.0), **_fixed("length", form="triple"))
    rpy: Any = eqx.field(default=(0.0, 0.0, 0.0), **_fixed("angle", form="triple"))
    m: Scalar = eqx.field(default=0.0, **holds("mass", at_least=0.0, fixed=True))
    com: Any = eqx.field(default=(0.0, 0.0, 0.0), **_fixed("length", form="triple"))
    J: Any = eqx.field(default=(0.0,) * 6, **_fixed("moment of inertia", form="inertia"))
    armature: Scalar = eqx.field(default=0.0, **holds(at_least=0.0))
    points: dict[str, Any] = eqx.field(
        default_factory=dict, **holds("length", form="triples", fixed=True, converter=_placed)
    )
    law: AbstractLaw | None = eqx.field(converter=as_law, default=None)
    radius: Scalar = eqx.field(default=None, **holds("length", above=0.0, fixed=True))
    impact: ImpactLaw = eqx.field(static=True, default="coulomb")

    def coordinates(self, name: str) -> dict[str, str]:
        """Degrees of freedom of the joint of the link ``name``, and the kind of each."""
        return coordinates_of(name, self.joint, self.dof, self.radius is not None)

    def friction(self, name: str) -> Friction:
        """Friction element of the bearing, with ``N = 0``: the reaction is not known here."""
        return Friction(Direction((self.dof or name,), (1,)), self.law, N=0.0)


def coordinates_of(name: str, joint: str, dof: str | None, rubs: bool = False) -> dict[str, str]:
    """Degrees of freedom of a joint, and the kind of each; ``rubs``: whether its bearing does."""
    own = name if dof is None else dof
    ends = _BEARING if rubs else JOINT_COORDINATES.get(joint, {})
    return {f"{own}{end}": kind for end, kind in ends.items()}


def turns_of(coordinates: Mapping[str, str]) -> list[str]:
    """The degrees of freedom of a joint that are a quaternion."""
    return [*coordinates][-4:] if len(coordinates) > len(_BEARING) else []


def in_order(links: Mapping[str, Link]) -> list[str]:
    """Names of links, each behind its parent; those that never reach the ground are left out."""
    found: list[str] = []
    left = list(links)
    while True:
        ready = [x for x in left if links[x].parent in (GROUND, *found)]
        if not ready:
            return found
        found += ready
        left = [x for x in left if x not in ready]


def moving(links: Mapping[str, Link]) -> set[str]:
    """Names of links that some joint moves."""
    found: set[str] = set()
    for name in in_order(links):
        if links[name].joint != "fixed" or links[name].parent in found:
            found.add(name)
    return found


def require_link(problem: AbstractProblem, name: str, link: Link) -> None:
    """Raise :class:`ProblemError` for a link whose structure is not possible."""
    links, where = problem.section("link"), element_label("link", name)
    if not _NAME.fullmatch(str(name)) or name == GROUND:
        raise ProblemError(
            f"link: found the name {name!r}, names of links start with a letter, hold letters, "
            f"digits and _, and are not {GROUND!r}"
        )
    if link.parent != GROUND and link.parent not in links:
        known = [GROUND, *(x for x in links if x != name)]
        require_known(f"{where}.parent", "link", link.parent, known)
    if name not in in_order(links):
        raise ProblemError(
            f"{where}.parent: found {link.parent!r}, which this link carries itself; a tree begins "
            f"at {GROUND!r}"
        )
    for field, count in (("axis", 3), ("at", 3), ("rpy", 3), ("com", 3), ("J", 6)):
        value = getattr(link, field)
        if not isinstance(value, tuple) or len(value) != count:
            example = "(0, 0, 0.3)" if count == 3 else "(Jxx, Jyy, Jzz, Jxy, Jxz, Jyz)"
            raise ProblemError(f"{where}.{field}: needed are {count} numbers such as {example}")
    own = link.coordinates(name)
    for other, x in links.items():
        both = sorted(own.keys() & x.coordinates(other).keys())
        if other != name and both:
            raise ProblemError(
                f"{where}.dof: the joint of {element_label('link', other)} has the degree of "
                f"freedom {both[0]!r}, too; names must differ"
            )


def no_body_has(J: np.ndarray) -> str | None:
    """Principal inertias of a matrix about the centre of mass, in words, where no body has them."""
    low, middle, high = np.linalg.eigvalsh(J)
    # Inertias in files are rounded.
    if low < -1e-6 * high or high > (low + middle) * (1.0 + 1e-3):
        return f"{low:.4g}, {middle:.4g}, {high:.4g}"
    return None


def inertia_of(link: Link) -> np.ndarray:
    """Inertia (3, 3) of a link with known numbers about its centre of mass."""
    xx, yy, zz, xy, xz, yz = map(float, link.J)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def quaternions(problem: AbstractProblem) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Labels of links on balls or free, and the rows of their quaternions."""
    for name, link in problem.section("link").items():
        turns = turns_of(link.coordinates(name))
        if turns:
            yield element_label("link", name), tuple(map(problem.axes.index, turns))
