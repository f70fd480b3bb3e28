"""``export_mjcf``: a system as a model of MuJoCo, and the measured difference from it;
``export_urdf``: a robot of links."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.exports.mjcf import Model, Row, build_model, collected
from jfric.exports.mjcf_parts import (
    CREEPS,
    FAR,
    Form,
    axes_of_links,
    ranges,
    require_form,
    row_text,
)
from jfric.numerics.printing import printable
from jfric.solvers.simulation import simulate
from jfric.system.body import GROUND
from jfric.system.control import without_controllers
from jfric.system.model import build
from jfric.system.problem import Problem

#: A passive joint with a bristle: a MuJoCo that can read it has this friction.
_PROBE = """<mujoco><worldbody><body><joint name="q" type="hinge"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody><actuator>
<dcmotor joint="q" input="none" motorconst="0" resistance="1" lugre="1 1 1 1 1"/>
</actuator></mujoco>"""
#: Duration [s] of the test for creep; the second half counts.
HOLD = 10.0
#: Parts of the limit that hold and shake, and the frequency [Hz].
STEADY, SHAKEN, FREQUENCY = 0.5, 0.4, 10.0


@dataclass(frozen=True)
class Creep:
    """Mean velocities [m/s or rad/s] in stick under half of the limit, and shaken around it."""

    steady: float
    shaken: float


def installed() -> Any:
    """The package, or None."""
    try:
        import mujoco  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    return mujoco


def has_bristles(mujoco: Any) -> bool:
    """Whether the installed MuJoCo has LuGre friction."""
    try:
        mujoco.MjModel.from_xml_string(_PROBE)
    except ValueError:
        return False
    return True


def motion(mujoco: Any, model: Model, times: np.ndarray, timestep: float):
    """Positions (m, n) at ``times`` [s], of which the first is the start."""
    compiled = mujoco.MjModel.from_xml_string(model.xml)
    data = mujoco.MjData(compiled)
    mujoco.mj_resetDataKeyframe(compiled, data, 0)
    steps = np.rint((times - times[0]) / timestep).astype(int)
    count, middles = int(steps[-1]), times[0] + timestep * (np.arange(int(steps[-1])) + 0.5)
    at = jnp.asarray(middles)
    controls = [np.broadcast_to(np.asarray(jax.vmap(f)(at)), (count,)) for f in model.loads]
    order = _order(compiled, model)
    found = np.empty((count + 1, len(order)))
    found[0] = data.qpos[order]
    for i in range(count):
        for j, values in enumerate(controls):
            data.ctrl[j] = values[i]
        mujoco.mj_step(compiled, data)
        found[i + 1] = data.qpos[order]
    return found[steps]


def _order(compiled: Any, model: Model) -> np.ndarray:
    """Places of the degrees of freedom in MuJoCo's vectors."""
    return np.array([compiled.joint(dof).qposadr[0] for dof in model.dofs])


def creep(mujoco: Any, model: Model, row: Row, timestep: float) -> Creep:
    """Creep of one friction element from rest, without springs, gravity and other loads."""
    compiled = mujoco.MjModel.from_xml_string(model.xml)
    compiled.opt.gravity[:] = 0.0
    compiled.jnt_stiffness[:] = 0.0
    compiled.tendon_stiffness[:] = 0.0
    limit, w = row.friction.limit, row.direction
    order = _order(compiled, model)
    push = limit * w

    def run(shake: float) -> float:
        data = mujoco.MjData(compiled)
        count = round(HOLD / timestep)
        half = 0.0
        for i in range(count):
            wave = np.sin(2.0 * np.pi * FREQUENCY * i * timestep)
            data.qfrc_applied[order] = push * (STEADY + shake * wave)
            mujoco.mj_step(compiled, data)
            if i + 1 == count // 2:
                half = float(w @ data.qpos[order])
        return (float(w @ data.qpos[order]) - half) / (0.5 * HOLD)

    return Creep(run(0.0), run(SHAKEN))


#: Attributes of a joint that URDF has, by those of MJCF.
DYNAMICS = {"damping": "damping", "frictionloss": "friction"}
#: Attributes that URDF does not have.
LEFT = ("armature", "stiffness")
#: Number of instants at which the two motions are compared.
OUTPUTS = 1001


@dataclass(frozen=True)
class Difference:
    """Differences of the positions of a degree of freedom from exact ones in a run [m or rad]."""

    largest: float
    rms: float
    at_end: float
    #: Largest distance from the start in the exact motion.
    travel: float


@printable
@dataclass(frozen=True)
class UrdfExport:
    """A robot as URDF, and its omissions.

    ``xml``: the text of the file; ``lost``: label and sentence for each omission. Example: see
    :func:`jfric.export_urdf`.
    """

    xml: str
    lost: tuple[str, ...]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the robot to a file."""
        Path(path).write_text(self.xml, encoding="utf-8")


@printable
@dataclass(frozen=True)
class MjcfExport(UrdfExport):
    """A model in MJCF, its omissions, and the difference of its motion from the exact one.

    ``xml``: the text of the file; ``lost``: label and sentence for each omission; ``differences``:
    largest, rms and final distance and the travel of the exact motion, by degree of freedom [m or
    rad]; ``creep``: velocities [m/s or rad/s] of friction elements under half of their limit,
    steady and shaken; ``mujoco``: version that simulated, or None.
    Example: see :func:`jfric.export_mjcf`.
    """

    #: By degree of freedom; empty if nothing was simulated.
    differences: dict[str, Difference]
    #: By friction element: its creep in MuJoCo where the exact law rests.
    creep: dict[str, Creep]
    #: Version of the MuJoCo that simulated, or None.
    mujoco: str | None


def export_urdf(problem: Problem) -> UrdfExport:
    """The links of ``problem`` as a robot in URDF, for example one that has been identified.

    Joints have their ``damping``, their friction (of Coulomb, static friction is that of sliding)
    and, from contacts at their ends, their range. URDF has no inertia of drives, springs, loads and
    gravity; these are listed in ``lost``. Returns a :class:`jfric.exports.UrdfExport`. Raises
    :class:`jfric.ProblemError` without links, and for what :func:`jfric.export_mjcf` refuses::

        >>> elbow = {
        ...     "link": {"arm": jfric.Link(dof="elbow", m=1.0, J=(0.1, 0.1, 0.1, 0, 0, 0))},
        ...     "friction": {"elbow": jfric.Friction("elbow", limit=0.5)},
        ... }
        >>> found = jfric.export_urdf(jfric.Problem([], elbow, time=1.0))
        >>> '<dynamics friction="0.5" />' in found.xml
        True
    """
    problem = build(problem).resolved()
    found = collected(problem, "frictionloss", 1e-4, bristles=False)
    links, own = problem.section("link"), axes_of_links(problem)
    if not links:
        raise ProblemError("link: found none; URDF holds links and their joints")
    # A file does not creep: this is up to its reader.
    lost = [text for text in found.lost if not text.endswith(CREEPS)]
    lost += [f"{label}: a load is left out" for label in problem.labelled("load")]
    lost += [
        f"{dof}: is no joint of a link and is left out" for dof in problem.dofs if dof not in own
    ]
    if found.builder.tendons:
        lost.append("elements between several degrees of freedom are left out")
    ends = ranges(problem, lost)
    root = ET.Element("robot", name="jfric")
    ET.SubElement(root, "link", name=GROUND)
    for name, link in links.items():
        body = ET.SubElement(root, "link", name=name)
        inertial = ET.SubElement(body, "inertial")
        ET.SubElement(inertial, "origin", xyz=row_text(link.com), rpy="0 0 0")
        ET.SubElement(inertial, "mass", value=repr(float(link.m)))
        J = zip(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), link.J, strict=True)
        ET.SubElement(inertial, "inertia", {k: repr(float(x)) for k, x in J})
        (dof,) = link.coordinates(name) or (f"{name}_fixed",)
        low, high = ends.get(dof, (-np.inf, np.inf))
        free = link.joint == "revolute" and not np.isfinite([low, high]).any()
        joint = ET.SubElement(root, "joint", name=dof, type="continuous" if free else link.joint)
        ET.SubElement(joint, "parent", link=link.parent)
        ET.SubElement(joint, "child", link=name)
        ET.SubElement(joint, "origin", xyz=row_text(link.at), rpy=row_text(link.rpy))
        if link.joint == "fixed":
            continue
        ET.SubElement(joint, "axis", xyz=row_text(link.axis))
        if not free:
            end = {"lower": repr(max(low, -FAR)), "upper": repr(min(high, FAR))}
            ET.SubElement(joint, "limit", end | {"effort": repr(FAR), "velocity": repr(FAR)})
        part = found.builder.joints[dof].attributes
        dynamics = {DYNAMICS[k]: repr(v) for k, v in part.items() if k in DYNAMICS}
        if dynamics:
            ET.SubElement(joint, "dynamics", dynamics)
        left = [f"{k} {part[k]:.4g}" for k in LEFT if part.get(k)]
        lost += [f"{dof}: {text}, which URDF does not have" for text in left]
    ET.indent(root)
    return UrdfExport(ET.tostring(root, encoding="unicode") + "\n", tuple(lost))


def export_mjcf(
    problem: Problem,
    *,
    friction: Form = "auto",
    presliding: float = 1e-4,
    timestep: float = 1e-3,
    compare: bool = True,
) -> MjcfExport:
    """``problem`` as a model of MuJoCo: links, masses, springs, pendulums, loads, friction.

    Links are bodies with their joints; each other degree of freedom is a joint with ``armature``
    or mass. Both have ``damping``, ``stiffness`` and, from contacts at their ends, ``range``;
    elements between several are fixed tendons, loads are motors. ``friction``: ``"frictionloss"``
    (Coulomb's law, softened), ``"lugre"`` (a passive ``dcmotor`` with a bristle, where the
    installed MuJoCo has it), or ``"auto"``: ``"lugre"`` for :class:`jfric.Dahl`, and if the law's
    static limit is above the kinetic one, else ``"frictionloss"``. ``presliding`` [m or rad]:
    deflection of a bristle at its limit, from which its stiffness follows; the bristle is damped
    critically. ``timestep`` [s] of MuJoCo.

    ``compare``: whether both simulators apply the loads of ``problem`` from its start to its end,
    and whether MuJoCo is loaded with half of each friction limit for ten seconds, at rest and
    shaken with 40 % of it at 10 Hz: the exact law rests there. Returns a
    :class:`jfric.exports.MjcfExport`.

    Raises :class:`jfric.ProblemError` for bodies in a plane, balls and free links, joints that
    close loops, energies, full matrices and moving supports, and if the package ``mujoco`` is
    needed and missing; other omissions of the model are
    listed in ``lost``::

        >>> found = jfric.export_mjcf(problem, compare=False)
        >>> 'stiffness="5000.0" frictionloss="100.0"' in found.xml, found.lost
        (True, ('friction: stick: a load below the limit creeps',))
    """
    problem = build(problem)
    mujoco = installed()
    if compare and mujoco is None:
        raise ProblemError(
            "export: a comparison needs mujoco, which is not installed (pip install mujoco); "
            "compare=False writes the model alone"
        )
    for name, value in (("presliding", presliding), ("timestep", timestep)):
        if not (np.isfinite(value) and value > 0.0):
            raise ProblemError(f"{name}: found {value:g}, must be positive")
    bristles = None if mujoco is None else has_bristles(mujoco)
    require_form(friction, bristles=bristles)
    model = build_model(problem, friction, presliding, timestep, bristles=bool(bristles))
    if not compare or mujoco is None:
        return MjcfExport(model.xml, model.lost, {}, {}, None)
    differences = _differences(mujoco, problem, model, timestep)
    crept = {
        row.label: creep(mujoco, model, row, timestep)
        for row in model.friction
        if row.friction.limit > 0.0
    }
    return MjcfExport(model.xml, model.lost, differences, crept, str(mujoco.__version__))


def _differences(mujoco: Any, problem: Problem, model, timestep: float) -> dict[str, Difference]:
    span = problem.resolved().time
    start, end = float(span.start), float(span.end)
    steps = max(round((end - start) / timestep), 1)
    chosen = np.unique(np.rint(np.linspace(0, steps, min(OUTPUTS, steps + 1))).astype(int))
    times = start + timestep * chosen
    times = times[times <= end * (1.0 + 1e-12)]
    # Both without the controllers, which the other simulator does not have.
    problem = without_controllers(problem)
    solution = simulate(problem, ts=jnp.asarray(np.minimum(times, end)))
    solution.check()
    exact = np.asarray(solution.q)
    apart = motion(mujoco, model, times, timestep) - exact
    return {
        dof: Difference(
            float(np.max(np.abs(apart[:, i]))),
            float(np.sqrt(np.mean(apart[:, i] ** 2))),
            float(apart[-1, i]),
            float(np.max(np.abs(exact[:, i] - exact[0, i]))),
        )
        for i, dof in enumerate(model.dofs)
    }
