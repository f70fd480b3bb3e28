"""Parts of a model in MJCF: links as nested bodies, with joints and ranges; friction elements as
parameters of a joint or tendon of MuJoCo, and the resulting omissions.

``frictionloss`` is Coulomb's law, softened: MuJoCo lets it creep. A bristle (LuGre) is a passive
``dcmotor``, if the installed version has it, with the deflection ``z``

    z' = v - sigma_0 |v| z/g(v),    F = sigma_0 z + sigma_1 z'
    g(v) = F_c + (F_s - F_c) exp(-(v/v_s)^2)

Source: MuJoCo's documentation, XML reference, ``actuator/dcmotor``.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.spatial.transform import Rotation

from jfric.errors import ProblemError, require_one_of
from jfric.system.body import GROUND, Link
from jfric.system.bristle import Dahl
from jfric.system.description import AbstractProblem, element_label
from jfric.system.friction import Friction
from jfric.system.functions import Constant
from jfric.system.laws import AbstractLaw, Coulomb, Directional, FrictionCurve, Stribeck

#: Mass [kg] and inertia [kg m^2] of a moving body that has none.
LIGHT = 1e-9
#: End of a range that is not limited there [rad or m].
FAR = 1e6
#: Kinds of joints that the model represents, by MuJoCo's name.
KINDS = {"revolute": "hinge", "prismatic": "slide", "fixed": ""}


def require_links(problem: AbstractProblem) -> None:
    """Raise :class:`jfric.ProblemError` for joints of links that the model cannot represent."""
    for name, link in problem.section("link").items():
        if link.joint not in KINDS:
            raise ProblemError(
                f"{element_label('link', name)}.joint: found {link.joint!r}, which cannot be "
                f"written as MJCF; taken are {', '.join(KINDS)}"
            )
        if link.radius is not None:
            raise ProblemError(
                f"{element_label('link', name)}.radius: friction of a bearing cannot be written as "
                "MJCF; give [friction] a limit"
            )


def axes_of_links(problem: AbstractProblem) -> set[str]:
    """Degrees of freedom of links."""
    links = problem.section("link").items()
    return {dof for name, link in links for dof in link.coordinates(name)}


def add_links(
    inside: ET.Element,
    links: Mapping[str, Link],
    attributes: Mapping[str, dict[str, str]],
    parent: str = GROUND,
) -> None:
    """Add the bodies that a ``parent`` carries; ``attributes``: those of the joint of each degree
    of freedom."""
    for name, link in links.items():
        if link.parent != parent:
            continue
        turned = Rotation.from_euler("xyz", np.asarray(link.rpy, float)).as_quat(scalar_first=True)
        place = {"pos": row_text(link.at), "quat": row_text(turned)}
        body = ET.SubElement(inside, "body", place, name=name)
        for dof in link.coordinates(name):
            about = {"name": dof, "type": KINDS[link.joint], "axis": row_text(link.axis)}
            ET.SubElement(body, "joint", about | attributes[dof])
        # The triple order of the inertia is that of MJCF.
        m, J = float(link.m), np.asarray(link.J, float)
        least = np.array([LIGHT, LIGHT, LIGHT, 0.0, 0.0, 0.0])
        J = row_text(J if J[:3].all() else J + least)
        mass = repr(max(m, LIGHT))
        ET.SubElement(body, "inertial", pos=row_text(link.com), mass=mass, fullinertia=J)
        add_links(body, links, attributes, name)


def ranges(problem: AbstractProblem, lost: list[str]) -> dict[str, tuple[float, float]]:
    """Ranges of joints of links that contacts at their ends give; other contacts, and what a range
    does not represent, are named in ``lost``."""
    own, found = axes_of_links(problem), {}
    for label, contact in problem.labelled("contact").items():
        normal = contact.normal
        names = () if normal is None else normal.names
        if normal is None or len(names) != 1 or names[0] not in own:
            lost.append(f"{label}: a contact is left out")
            continue
        factor = float(normal.vector(names)[0])
        end = -float(contact.gap) / factor
        low, high = found.get(names[0], (-np.inf, np.inf))
        found[names[0]] = (max(low, end), high) if factor > 0 else (low, min(high, end))
        lost.append(f"{label}: a rigid stop; it is the end of a range, which yields")
    return found


def range_of(low: float = -np.inf, high: float = np.inf) -> dict[str, str]:
    """Attributes of a range; it ends far away on a side without a limit."""
    if not np.isfinite(low) and not np.isfinite(high):
        return {}
    return {"limited": "true", "range": row_text((max(low, -FAR), min(high, FAR)))}


def row_text(values: Iterable[Any]) -> str:
    """Numbers as the text of an attribute."""
    return " ".join(repr(float(x) + 0.0) for x in values)


#: What is lost of stick in MuJoCo.
CREEPS = "stick: a load below the limit creeps"
#: Form of the friction: the one that fits its law, or one form for all elements.
Form = Literal["auto", "frictionloss", "lugre"]


@dataclass(frozen=True)
class Bristle:
    """Parameters of MuJoCo's ``lugre``: stiffness, damping, Coulomb and static limit, velocity."""

    stiffness: float
    damping: float
    coulomb: float
    static: float
    stribeck: float

    def __str__(self) -> str:
        return " ".join(map(repr, vars(self).values()))


@dataclass(frozen=True)
class JointFriction:
    """Parameters of MuJoCo that represent one friction element."""

    frictionloss: float
    damping: float
    bristle: Bristle | None
    #: Sentences on effects that are not represented.
    lost: tuple[str, ...]

    @property
    def limit(self) -> float:
        """Largest force [N or N m] that the friction can hold."""
        return self.frictionloss if self.bristle is None else self.bristle.static


def require_form(found: str, *, bristles: bool | None) -> None:
    """Raise :class:`ProblemError` for a form that does not exist or is not installed."""
    require_one_of("friction", found, get_args(Form))
    if found == "lugre" and not bristles:
        version = "no MuJoCo is installed" if bristles is None else "the installed MuJoCo has none"
        raise ProblemError(f"friction: 'lugre' needs a MuJoCo with this friction, {version}")


def joint_friction(
    friction: Friction,
    start: float,
    inertia: float,
    form: Form,
    presliding: float,
    *,
    bristle: bool,
) -> JointFriction:
    """The parameters for one element along one direction, with the ``inertia`` [kg or kg m^2] that
    it acts on; ``presliding`` [m or rad]: deflection of a bristle at the limit."""
    lost, law = [], friction.coefficients
    normal = friction.normal_force
    if not isinstance(normal, Constant):
        lost.append("the limit varies in time; it is that of the start")
    if friction.load is not None:
        lost.append(f"the part that grows with {' and '.join(friction.load.names)}")
    if friction.position is not None:
        lost.append("the dependence on position; it is left out")
    if friction.belt is not None:
        lost.append("the partner's surface moves; it stands still")
    if any(isinstance(x, Directional) for x in vars(law).values()):
        lost.append("the limit differs between the two directions; it is their mean")
    N = float(normal(start))
    far = 0.0 if law.velocity_independent else 10.0 * _mean(law, "v_s")
    if isinstance(law, FrictionCurve):
        far = float(law.speeds[-1])
        lost.append(f"the friction curve; it is that of the speed {far:g}")
    viscous = _mean(law, "mu_v") * N
    static = N * float(np.mean([float(x) for x in law.static()]))
    kinetic = N * float(np.mean([float(x) for x in law.kinetic(far)])) - viscous * far
    drops = not isinstance(law, Coulomb) and static > kinetic
    if form == "lugre" or (form == "auto" and drops and bristle):
        stiffness = max(static, kinetic) / presliding if static > 0.0 else 0.0
        # With a smaller velocity than a sudden load causes before it is held, it would let go.
        stribeck = _mean(law, "v_s") or presliding * float(np.sqrt(stiffness / inertia))
        damping = 2.0 * float(np.sqrt(stiffness * inertia))
        lost.append(f"it yields by about {presliding:g} before it slides")
        if drops and not hasattr(law, "v_s"):
            lost.append(
                f"the drop at the onset of sliding is spread over {stribeck:.3g} per second"
            )
        elif drops and not (isinstance(law, Stribeck) and _mean(law, "exponent") == 2.0):
            lost.append(f"the curve of {type(law).__name__}; it is exp(-(v/v_s)^2)")
        if stiffness:
            found = Bristle(stiffness, damping, kinetic, max(static, kinetic), stribeck)
            return JointFriction(0.0, viscous, found, tuple(lost))
    if drops:
        lost.append(f"the static limit {static:g} above the kinetic one; it is {kinetic:g}")
    lost.append(CREEPS)
    return JointFriction(kinetic, viscous, None, tuple(lost))


def bristle_of_joint(friction: Dahl, form: Form, *, bristle: bool) -> JointFriction:
    """The parameters for Dahl's friction, which is a bristle without a drop of its limit."""
    limit, lost = float(friction.F_c), []
    if float(friction.exponent) != 1.0:
        lost.append("the exponent; it is 1")
    if bristle and form != "frictionloss":
        # MuJoCo's curve needs a velocity, which has no effect where both limits are equal.
        found = Bristle(float(friction.sigma), 0.0, limit, limit, 1.0)
        return JointFriction(0.0, 0.0, found, tuple(lost))
    lost = ["the elastic way before it slides", CREEPS]
    return JointFriction(limit, 0.0, None, tuple(lost))


def _mean(law: AbstractLaw, field: str) -> float:
    """A coefficient, the mean of its two directions, zero where the law has none."""
    value: Any = getattr(law, field, 0.0)
    if isinstance(value, Directional):
        return 0.5 * float(value.positive + value.negative)
    return float(value)
