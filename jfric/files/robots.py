"""Robots from URDF and MJCF files, as links, frictions, dampers and springs of a problem."""

from __future__ import annotations

import dataclasses
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from jfric.errors import ProblemError, nearest, within
from jfric.files.codec import NUMBER, Choice, Flag, Key, Place, Text
from jfric.files.table_codecs import Names, Record
from jfric.numerics.printing import Shown, printable
from jfric.optional import import_mujoco
from jfric.system.body import GROUND, Gravity, Link, coordinates_of
from jfric.system.elements import Contact, Friction
from jfric.system.joint_equations import in_loop
from jfric.system.line_elements import Damper, Spring
from jfric.system.linkage import Joint, Pin
from jfric.system.problem import InitialState

#: Joints of MuJoCo by their numbers.
_KINDS = ("free", "ball", "prismatic", "revolute")


#: Constraints of MuJoCo: of a point of two bodies, and between two joints; the kind of object by
#: which a body is meant.
_OF_POINTS, _OF_JOINTS, _BODY = 0, 2, 1


@printable
@dataclass(frozen=True)
class Robot:
    """Contents of a robot's file. Example: see :func:`jfric.read_robot`."""

    #: Elements by section and name, as :class:`jfric.Problem` takes them.
    elements: dict[str, dict[str, eqx.Module]]
    #: Start of free bodies and balls, as the file places them.
    initial: dict[str, InitialState]
    #: A line for each joint: what was read.
    rows: tuple[tuple[str, ...], ...]
    #: What was not read, or is not used.
    remarks: tuple[str, ...]
    name: str = ""

    @property
    def dofs(self) -> dict[str, str]:
        """Degrees of freedom, and the kind of each."""
        links = self.elements["link"].items()
        return {dof: k for n, x in links for dof, k in x.coordinates(n).items()}  # type: ignore[attr-defined]

    def _shown(self) -> Shown:
        title = f"Robot {self.name}: {len(self.dofs)} degrees of freedom, {len(self.rows)} links"
        columns = (
            "link",
            "joint",
            "kind",
            ">m [kg]",
            ">armature",
            ">damping",
            ">friction",
            "range",
        )
        return Shown(title, columns, list(self.rows), "; ".join(self.remarks))


def read_robot(
    path: str | os.PathLike[str],
    *,
    base: str = "fixed",
    limits: bool = False,
    locked: Mapping[str, float] | None = None,
) -> Robot:
    """The robot of the URDF or MJCF file ``path``, as elements of a :class:`jfric.Problem`.

    Bodies become :class:`jfric.Link`, with the inertia of drives (``armature``); ``frictionloss``
    of a joint becomes a set-valued :class:`jfric.Friction` with that limit, which holds the joint
    without creep; damping and springs of joints become :class:`jfric.Damper` and
    :class:`jfric.Spring`; a joint that mimics another one has a :class:`jfric.Joint`, and a point
    that two bodies share a :class:`jfric.Pin`. Joints keep their names, with ``_`` for characters
    that names cannot have. ``base``: ``"free"`` lets the first link of a URDF robot move.
    ``limits``: joints end at their ranges, by contacts without restitution. ``locked``: positions
    [rad or m] of joints that do not move. The robot's print says what was read, and what was not:
    actuators, sensors, contacts of bodies, welds, and meshes. Raises :class:`jfric.ProblemError`
    for a file that cannot be read, with the element and the remedy. It needs MuJoCo
    (``pip install jfric[robots]``)::

        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "arm.xml"
        >>> _ = path.write_text(
        ...     '<mujoco><worldbody><body name="arm"><joint name="elbow" axis="0 1 0" '
        ...     'frictionloss="0.5"/><inertial pos="0 0 -0.5" mass="2" diaginertia=".1 .1 .1"/>'
        ...     "</body></worldbody></mujoco>"
        ... )
        >>> robot = jfric.read_robot(path)
        >>> still = jfric.Problem([], robot.elements, time=1.0)
        >>> list(still.dofs), list(robot.elements["friction"])
        (['elbow'], ['elbow'])
    """
    if base not in ("fixed", "free"):
        raise ProblemError(f"base: found {base!r}, allowed are 'fixed' and 'free'")
    path = Path(path)
    model, masses, remarks = _compiled(path, base)
    return _Reader(model, masses, limits, dict(locked or {}), remarks).robot(path)


def _compiled(path: Path, base: str):
    """MuJoCo's model of a file, masses of the links of a URDF robot, and what was left out."""
    mujoco = import_mujoco()
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ProblemError(f"{path}: cannot be read ({error.strerror})") from None
    remarks, masses = [], {}
    try:
        root = ET.fromstring(text)
        if root.tag == "robot":
            masses = _masses(root)
            spec = mujoco.MjSpec.from_string(_bare(root))
            spec.compiler.fusestatic = False
            first = spec.worldbody.first_body()
            if base == "free" and first is None:
                raise ValueError('base: "free" needs a link, found none')
            if base == "free":
                first.add_freejoint(name=first.name)
        elif base == "free":
            raise ValueError('base: "free" is for URDF; an MJCF file has a freejoint')
        else:
            spec = mujoco.MjSpec.from_file(str(path))
            lost = [m for m in spec.meshes if not _mesh_file(path, spec, m).is_file()]
            for geom in list(spec.geoms) if lost else ():
                if geom.meshname:
                    spec.delete(geom)
            for mesh in lost:
                spec.delete(mesh)
            if lost:
                remarks.append(f"{len(lost)} missing meshes, which are for pictures only")
        return spec.compile(), masses, remarks
    except (ValueError, ET.ParseError) as error:
        message = re.sub(r"^Error: ", "", " ".join(str(error).split()))
        raise ProblemError(f"{path}: {message}") from None


def _mesh_file(path: Path, spec, mesh) -> Path:
    return path.parent / (spec.meshdir or "") / mesh.file


def _masses(root: ET.Element) -> dict[str, _Mass]:
    """Masses of the links of a URDF robot. MuJoCo refuses links without a mass, and inertias that
    only the links have to which these are fixed."""
    found = {}
    for link in root.iter("link"):
        name = link.get("name", "")

        def numbers(path: str, key: str, default: str, link=link, name=name) -> list[float]:
            part = link.find(f"inertial/{path}")
            text = default if part is None else part.get(key, default)
            try:
                return [float(x) for x in text.split()]
            except ValueError:
                raise ValueError(f"link {name!r}: {path} has {key}={text!r}, not numbers") from None

        ixx, iyy, izz, ixy, ixz, iyz = (
            numbers("inertia", f"i{pair}", "0")[0] for pair in ("xx", "yy", "zz", "xy", "xz", "yz")
        )
        roll, pitch, yaw = numbers("origin", "rpy", "0 0 0")
        R = _about((0, 0, 1), yaw) @ _about((0, 1, 0), pitch) @ _about((1, 0, 0), roll)
        J = R @ np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]) @ R.T
        (m,) = numbers("mass", "value", "0")
        found[name] = _Mass(m, np.array(numbers("origin", "xyz", "0 0 0")), J)
    return found


def _bare(root: ET.Element) -> str:
    """The text of a URDF robot with the same mass in all links, and without their shapes."""
    same = ET.fromstring(
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        "</inertial>"
    )
    for link in root.iter("link"):
        for tag in ("visual", "collision", "inertial"):
            for part in link.findall(tag):
                link.remove(part)
        link.append(same)
    return ET.tostring(root, encoding="unicode")


class _Mass(NamedTuple):
    """Mass, its centre, and inertia about it along the axes of the link."""

    m: float
    com: np.ndarray
    J: np.ndarray


@dataclass
class _Reader:
    """Makes elements from the arrays of MuJoCo's model."""

    model: Any
    #: Masses by bodies, where they are not those of the model.
    masses: dict[str, _Mass]
    limits: bool
    locked: dict[str, float]
    remarks: list[str]
    elements: dict[str, dict[str, Any]] = field(default_factory=lambda: {"link": {}})
    initial: dict[str, InitialState] = field(default_factory=dict)
    rows: list[tuple[str, ...]] = field(default_factory=list)
    #: Name of the link that carries what belongs to a body, and where its frame is in the body's.
    last: dict[int, str] = field(default_factory=lambda: {0: GROUND})
    shift: dict[int, np.ndarray] = field(default_factory=lambda: {0: np.zeros(3)})

    def robot(self, path: Path) -> Robot:
        m = self.model
        known = [_named(m.joint(j).name, f"joint{j}") for j in range(m.njnt)]
        for name in self.locked:
            if name not in known:
                raise ProblemError(
                    f"locked: no joint {name!r}{nearest(name, known)}; there are {', '.join(known)}"
                )
        for body in range(1, m.nbody):
            self._body(body)
        along = m.opt.gravity / max(np.linalg.norm(m.opt.gravity), 1e-300)
        if np.any(m.opt.gravity) and not np.allclose(along, (0, 0, -1), atol=1e-12):
            raise ProblemError(f"{path}: gravity is along {along}; turn the model so that it is -z")
        if np.any(m.opt.gravity):
            self.elements["gravity"] = {"gravity": Gravity(float(-m.opt.gravity[2]))}
        read = (_OF_JOINTS, _OF_POINTS)
        coupled = [e for e in range(m.neq) if m.eq_active0[e] and m.eq_type[e] in read]
        for e in coupled:
            (self._couple if m.eq_type[e] == _OF_JOINTS else self._connect)(e)
        for what, count in (
            ("actuators", m.nu), ("sensors", m.nsensor), ("tendons", m.ntendon),
            ("constraints that are no joints, or not active", m.neq - len(coupled)),
            ("shapes of bodies, which touch nothing here", m.ngeom),
        ):  # fmt: skip
            if count:
                self.remarks.append(f"not read: {count} {what}")
        if not self.limits and np.any(m.jnt_limited):
            self.remarks.append("ranges are not applied (limits)")
        return Robot(self.elements, self.initial, tuple(self.rows), tuple(self.remarks), path.stem)

    def _couple(self, e: int) -> None:
        """Add a joint that follows another one, or stays, by a polynomial."""
        m, (first, second) = self.model, (self.model.eq_obj1id[e], self.model.eq_obj2id[e])

        def away(j: int) -> str:
            """Text for the way of a joint from its place in the model."""
            name, rest = _named(m.joint(j).name, f"joint{j}"), float(m.qpos0[m.jnt_qposadr[j]])
            value = self.locked.get(name)
            return f"({name} - {rest!r})" if value is None else repr(float(value) - rest)

        terms = [f"{float(x)!r}" for x in m.eq_data[e][:1] if x]
        if second >= 0:
            powers = enumerate(m.eq_data[e][1:5], 1)
            terms += [f"{float(x)!r}*{away(second)}^{k}" for k, x in powers if x]
        text = f"{away(first)} - ({' + '.join(terms) or '0.0'})"
        if any(f"({x} - " in text for x in self._dofs()):
            self._add("joint", _named(m.joint(first).name, f"joint{first}"), Joint(text))

    def _connect(self, e: int) -> None:
        """Add a pin at the point of two bodies that a constraint holds together."""
        m, points = self.model, []
        name = _named(m.eq(e).name, f"connect{e}")
        for i, which in enumerate((m.eq_obj1id[e], m.eq_obj2id[e])):
            if m.eq_objtype[e] == _BODY:
                body, at = int(which), m.eq_data[e][3 * i : 3 * i + 3]
            else:
                body, at = int(m.site_bodyid[which]), m.site_pos[which]
            link, at = self.last[body], _numbers(at - self.shift[body])
            if link == GROUND:
                link = f"{name}_ground"
                self._link(link, parent=GROUND, joint="fixed", at=at, R=np.eye(3))
                points.append(link)
                continue
            own = self.elements["link"][link]
            marked = dataclasses.replace(own, points={**own.points, name: at})
            self.elements["link"][link] = marked
            points.append(f"{link}.{name}")
        pin = Pin((points[0], points[1]))
        if in_loop(self.elements["link"], pin):
            self._add("pin", name, pin)
        else:
            self.remarks.append(f"not read: {name}, no joint moves its two bodies")

    def _dofs(self) -> list[str]:
        return [dof for n, x in self.elements["link"].items() for dof in x.coordinates(n)]

    def _body(self, body: int) -> None:
        m = self.model
        name = _named(m.body(body).name, f"body{body}")
        parent = int(m.body_parentid[body])
        R, at = _matrix(m.body_quat[body]), m.body_pos[body] - self.shift[parent]
        joints = [j for j in range(m.njnt) if m.jnt_bodyid[j] == body]
        turn = _matrix(m.body_iquat[body])
        own = _Mass(
            float(m.body_mass[body]),
            m.body_ipos[body],
            turn @ np.diag(m.body_inertia[body]) @ turn.T,
        )
        own = self.masses.get(m.body(body).name, own)
        carried, shift = self.last[parent], np.zeros(3)
        if not joints:
            self._link(name, parent=carried, joint="fixed", at=at, R=R)
        for i, j in enumerate(joints):
            called = name if j == joints[-1] else f"{name}_{_named(m.joint(j).name, f'joint{j}')}"
            turned, place = (
                (R, at + R @ m.jnt_pos[j]) if i == 0 else (np.eye(3), m.jnt_pos[j] - shift)
            )
            kind = _KINDS[m.jnt_type[j]]
            if kind == "free":
                turned, place = np.eye(3), np.zeros(3)
            self._joint(called, j, carried, kind, turned, place)
            carried, shift = called, np.zeros(3) if kind == "free" else m.jnt_pos[j]
        self.last[body], self.shift[body] = name, shift
        link = self.elements["link"][name]
        self.elements["link"][name] = Link(
            **{
                k: getattr(link, k)
                for k in ("joint", "parent", "dof", "axis", "at", "rpy", "armature")
            },
            m=own.m,
            com=_numbers(own.com - shift),
            J=_numbers(own.J[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]),
        )
        self.rows[-1] = (*self.rows[-1][:3], f"{own.m:.4g}", *self.rows[-1][4:])

    def _joint(self, name: str, j: int, parent: str, kind: str, R, at) -> None:
        m = self.model
        dof, dofs = _named(m.joint(j).name, f"joint{j}"), slice(m.jnt_dofadr[j], None)
        axis, rest = m.jnt_axis[j], m.qpos0[m.jnt_qposadr[j] :]
        value = self.locked.get(dof)
        before = 0.0 if kind in ("free", "ball") else float(rest[0])
        turn = (0.0 if value is None else value) - before
        if kind == "revolute":
            R = R @ _about(axis, turn)
        elif kind == "prismatic":
            at = at + R @ axis * turn
        armature = float(m.dof_armature[dofs][0])
        words = ("", "", "", "")
        if value is not None:
            kind, armature = "fixed", 0.0
        elif kind in ("free", "ball"):
            self._start(dof, kind, rest)
        else:
            words = self._forces(dof, j, m.dof_damping[dofs][0], m.dof_frictionloss[dofs][0])
            words = (f"{armature:.4g}" if armature else "", *words)
        self._link(
            name, parent=parent, joint=kind, dof=dof, axis=axis, at=at, R=R, armature=armature
        )
        self.rows[-1] = (name, dof, "locked" if value is not None else kind, "", *words)

    def _start(self, dof: str, kind: str, rest) -> None:
        """The start of a free body or a ball, where the file places it."""
        names = [*coordinates_of(dof, kind, None)]
        for name, value in zip(names, rest, strict=False):
            self.initial[name] = InitialState(float(value))

    def _forces(self, dof: str, j: int, damping, loss) -> tuple[str, str, str]:
        """Add what acts at a joint; its damping, friction and range as texts."""
        m, add = self.model, self._add
        if damping:
            add("damper", dof, Damper(dof, float(damping)))
        if loss:
            add("friction", dof, Friction(dof, limit=float(loss)))
        if m.jnt_stiffness[j]:
            spring = m.qpos_spring[m.jnt_qposadr[j]]
            add("spring", dof, Spring(dof, float(m.jnt_stiffness[j]), x0=float(spring)))
        low, high = m.jnt_range[j]
        ranged = bool(m.jnt_limited[j])
        if ranged and self.limits:
            add("contact", f"{dof}_low", Contact(dof, gap=-float(low)))
            add("contact", f"{dof}_high", Contact({dof: -1.0}, gap=float(high)))
        return (
            f"{damping:.4g}" if damping else "",
            f"{loss:.4g}" if loss else "",
            f"{low:.4g} to {high:.4g}" if ranged else "",
        )

    def _add(self, section: str, name: str, element: Any) -> None:
        self.elements.setdefault(section, {})[name] = element

    def _link(self, name: str, *, joint, at, R, **others) -> None:
        place = {"at": _numbers(at), "rpy": _rpy(R)}
        if "axis" in others:
            others["axis"] = _numbers(others["axis"])
        if others.get("dof") == name:
            del others["dof"]
        self._add("link", name, Link(joint, **others, **place))
        self.rows.append((name, "", joint, "", "", "", "", ""))


def _numbers(x) -> tuple[float, ...]:
    return tuple(float(v) + 0.0 for v in x)


def _named(name: str, default: str) -> str:
    return re.sub(r"\W", "_", name) or default


def _matrix(quaternion) -> np.ndarray:
    s, x, y, z = quaternion / np.linalg.norm(quaternion)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2.0 * (s * K + K @ K)


def _about(axis, angle: float) -> np.ndarray:
    x, y, z = axis / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)


def _rpy(R: np.ndarray) -> tuple[float, float, float]:
    """Turns about x, then y, then z, that give the axes ``R``; exact also at their singularity."""
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return _numbers((roll, pitch, yaw))  # type: ignore[return-value]


#: The table of a robot in a file.
ROBOT = Record(
    "RobotTable",
    "A robot from a URDF or MJCF file; its joints are degrees of freedom by their names.",
    {
        "file": Key(Text(missing='a file such as "panda.urdf"'), "its file", needed=True),
        "base": Key(
            Choice("fixed", "free"), "whether the first link of a URDF robot moves", "fixed"
        ),
        "limits": Key(Flag(), "whether joints end at their ranges, by contacts", False),
        "locked": Key(Names(NUMBER), "positions of joints that do not move, by name"),
    },
    hints=True,
)


def robot_of(raw: Mapping[str, Any], folder: Path) -> Robot | None:
    """The robot of the table ``[robot]`` of a file, or None."""
    if "robot" not in raw:
        return None
    given = ROBOT.read(raw["robot"], Place("robot"))
    path = folder / given.pop("file")
    with within("robot: "):
        return read_robot(path, **given)
