"""A problem as a model of MuJoCo (MJCF): the bodies of its links, and one for each other degree
of freedom.

Along one degree of freedom an element belongs to its joint, otherwise to a fixed tendon, whose
length is the elongation. Loads are motors, whose controls are their functions of time.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from jfric.errors import ProblemError
from jfric.exports.mjcf_parts import (
    LIGHT,
    Form,
    JointFriction,
    add_links,
    axes_of_links,
    bristle_of_joint,
    joint_friction,
    range_of,
    ranges,
    require_links,
    row_text,
)
from jfric.system.assembly import assemble
from jfric.system.bristle import Dahl
from jfric.system.description import AbstractProblem, element_label
from jfric.system.direction import Direction
from jfric.system.problem import Problem

#: Sections that the model represents.
TAKEN = ("link", "gravity", "mass", "spring", "damper", "friction", "dahl", "load", "pendulum")
#: Sections of which some elements are represented.
IN_PART = ("contact",)
#: Sections without which the system would be a different one.
NEEDED = (
    *("body", "lagrangian", "joint", "velocity", "pin", "slider", "weld", "gear"),
    *("rolling", "base", "motor", "transmission"),
)


@dataclass(frozen=True)
class Row:
    """A friction element of the model."""

    label: str
    direction: np.ndarray
    friction: JointFriction


@dataclass(frozen=True)
class Model:
    """MJCF, and the data that a run of it needs."""

    xml: str
    dofs: tuple[str, ...]
    #: Functions of time of the motors, in their order.
    loads: tuple[Callable, ...]
    friction: tuple[Row, ...]
    #: Omissions of the model: label and sentence.
    lost: tuple[str, ...]


@dataclass
class _Part:
    """A joint or a tendon: attributes that elements add to."""

    attributes: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        if value:
            self.attributes[name] = self.attributes.get(name, 0.0) + value

    def texts(self) -> dict[str, str]:
        return {name: repr(value) for name, value in self.attributes.items()}


@dataclass
class _Builder:
    problem: AbstractProblem
    joints: dict[str, _Part]
    tendons: dict[tuple, _Part] = field(default_factory=dict)
    actuators: list[ET.Element] = field(default_factory=list)

    @property
    def dofs(self) -> tuple[str, ...]:
        return tuple(self.joints)

    def place(self, direction: Direction) -> tuple[_Part, float, dict[str, str]]:
        """The part on which an element acts, its coefficient there, and the attribute for
        actuators."""
        w = self.vector(direction)
        (at,) = np.nonzero(w)
        if len(at) == 1:
            dof = self.dofs[int(at[0])]
            return self.joints[dof], float(w[at[0]]), {"joint": dof}
        key = tuple(w.tolist())
        part = self.tendons.setdefault(key, _Part())
        return part, 1.0, {"tendon": f"along.{list(self.tendons).index(key) + 1}"}

    def vector(self, direction: Direction) -> np.ndarray:
        return np.asarray(direction.vector(self.dofs), float)


class Collected(NamedTuple):
    """Elements of a problem by the joints and tendons that they act on, inertias of degrees of
    freedom, hanging masses, functions of the motors, friction, and what is left out."""

    builder: _Builder
    inertia: dict[str, float]
    hanging: dict[str, tuple[float, float, float]]
    loads: list[Callable]
    rows: list[Row]
    lost: list[str]


def build_model(
    problem: Problem, form: Form, presliding: float, timestep: float, *, bristles: bool
) -> Model:
    """The model of ``problem``; ``timestep`` [s], and the others: see :func:`collected`."""
    problem = problem.resolved()
    builder, inertia, hanging, loads, rows, lost = collected(
        problem, form, presliding, bristles=bristles
    )
    weights = [float(x.g) for x in problem.section("gravity").values()]
    gravity = next(iter([*weights, *(g for _, _, g in hanging.values())]), 0.0)
    xml = _text(builder, inertia, hanging, gravity, timestep, ranges(problem, lost))
    return Model(xml, builder.dofs, tuple(loads), tuple(rows), tuple(lost))


def collected(problem: Problem, form: Form, presliding: float, *, bristles: bool) -> Collected:
    """Elements of a resolved ``problem``; raises :class:`jfric.ProblemError` for anything but a
    chain of masses.

    ``form``, ``presliding``: see :func:`joint_friction`; ``bristles``: whether MuJoCo has bristles.
    """
    _require(problem)
    require_links(problem)
    builder = _Builder(problem, {dof: _Part() for dof in problem.dofs})
    lost = [
        f"{element_label(section, name)}: a {section} is left out"
        for section, group in problem.elements.items()
        if section not in (*TAKEN, *IN_PART)
        for name in group
    ]
    inertia = {dof: 0.0 for dof in problem.dofs}
    for label, mass in problem.labelled("mass").items():
        (at,) = np.nonzero(builder.vector(mass.direction))
        if len(at) == 1:
            inertia[builder.dofs[int(at[0])]] += float(
                mass.m * builder.vector(mass.direction)[at[0]] ** 2
            )
        else:
            raise ProblemError(
                f"{label}: acts along several degrees of freedom, the model has a mass for each one"
            )
    _springs(builder)
    _dampers(builder)
    hanging = _pendulums(builder, inertia, lost)
    # Motors come first, so that their controls are the first, whatever other actuators have.
    loads = []
    for label, load in problem.labelled("load").items():
        _, gear, where = builder.place(load.direction)
        builder.actuators.append(ET.Element("motor", {"name": label, "gear": repr(gear)} | where))
        loads.append(load.F)
    rows, own = _friction(builder, form, presliding, bristles)
    lost += own
    for name, link in problem.section("link").items():
        for dof in link.coordinates(name):
            builder.joints[dof].add("armature", float(link.armature) + inertia[dof])
    return Collected(builder, inertia, hanging, loads, rows, lost)


def _require(problem: Problem) -> None:
    for section in NEEDED:
        for name in problem.section(section):
            raise ProblemError(
                f"{element_label(section, name)}: a {section} cannot be written as MJCF; taken are "
                f"{', '.join(TAKEN)}, and what hits or clears is left out"
            )
    for name in ("M", "C", "K"):
        if getattr(problem.matrices, name) is not None:
            raise ProblemError(f"matrices.{name}: full matrices cannot be written as MJCF")


def _springs(builder: _Builder) -> None:
    groups: dict[int, list[tuple[float, float]]] = {}
    parts: dict[int, _Part] = {}
    for label, spring in builder.problem.labelled("spring").items():
        _supported(builder, label, spring.direction)
        part, w, where = builder.place(spring.direction)
        k = float(spring.k) * w * w
        groups.setdefault(id(part), []).append((k, float(spring.x0) / w))
        parts[id(part)] = part
        part.attributes["springref" if "joint" in where else "springlength"] = 0.0
    for key, found in groups.items():
        total = sum(k for k, _ in found)
        name = "springref" if "springref" in parts[key].attributes else "springlength"
        parts[key].add("stiffness", total)
        rest = sum(k * x for k, x in found) / total if total else 0.0
        # For a tendon -1 has another meaning: its length at the start.
        rest = float(np.nextafter(-1.0, 0.0)) if rest == -1.0 else rest
        parts[key].attributes[name] = rest


def _dampers(builder: _Builder) -> None:
    for label, damper in builder.problem.labelled("damper").items():
        _supported(builder, label, damper.direction)
        part, w, _ = builder.place(damper.direction)
        part.add("damping", float(damper.c) * w * w)


def _supported(builder: _Builder, label: str, direction: Direction) -> None:
    if not set(direction.names) <= set(builder.dofs):
        raise ProblemError(f"{label}: ends at a moving support, which cannot be written as MJCF")


def _pendulums(builder: _Builder, inertia: dict[str, float], lost: list[str]):
    """Mass, length and gravity of hanging masses, by degree of freedom; their inertia is part of
    the given inertia."""
    found: dict[str, tuple[float, float, float]] = {}
    for label, pendulum in builder.problem.labelled("pendulum").items():
        m, length, g = (float(x) for x in (pendulum.m, pendulum.L, pendulum.g))
        (at,) = np.nonzero(builder.vector(pendulum.direction))
        dof = builder.dofs[int(at[0])] if len(at) == 1 else ""
        single = dof and builder.problem.dofs[dof] == "rotation" and dof not in found
        rest = inertia.get(dof, 0.0) - m * length**2
        others = {x[2] for x in found.values()}
        others |= {float(x.g) for x in builder.problem.section("gravity").values()}
        if not single or rest < 0.0 or (others and g not in others):
            lost.append(f"{label}: a pendulum that no mass on this joint can stand for is left out")
            continue
        inertia[dof], found[dof] = rest, (m, length, g)
    return found


def _friction(builder: _Builder, form: Form, presliding: float, bristles: bool):
    rows, lost = [], []
    start = float(builder.problem.time.start)
    M = assemble(builder.problem).at(*builder.problem.start()).M
    # Of each degree of freedom by itself, in the position of the start.
    masses = np.diagonal(np.asarray(M))[: len(builder.problem.dofs)]
    for label, friction in builder.problem.labelled("friction", "dahl").items():
        if friction.direction is None or getattr(friction, "redirected", False):
            lost.append(f"{label}: friction that is not along one direction is left out")
            continue
        _supported(builder, label, friction.direction)
        part, w, where = builder.place(friction.direction)
        v = builder.vector(friction.direction)
        if isinstance(friction, Dahl):
            found = bristle_of_joint(friction, form, bristle=bristles)
        else:
            reduced = 1.0 / float(np.sum(v * v / np.where(masses > 0, masses, np.inf)))
            found = joint_friction(friction, start, reduced, form, presliding, bristle=bristles)
        part.add("frictionloss", found.frictionloss * abs(w))
        part.add("damping", found.damping * w * w)
        if found.bristle is not None:
            about = {"input": "none", "motorconst": "0", "resistance": "1", "gear": repr(w)}
            about |= {"lugre": str(found.bristle), **where}
            builder.actuators.append(ET.Element("dcmotor", about, name=label))
        rows.append(Row(label, v, found))
        lost += [f"{label}: {sentence}" for sentence in found.lost]
    return rows, lost


def _text(builder: _Builder, inertia, hanging, gravity: float, timestep: float, ends) -> str:
    problem, linked = builder.problem, axes_of_links(builder.problem)
    root = ET.Element("mujoco", model="jfric")
    down = row_text((0.0, 0.0, -gravity))
    ET.SubElement(root, "option", timestep=repr(timestep), gravity=down, integrator="implicitfast")
    # Inertias in files are rounded.
    balanced = {"balanceinertia": "true"} if linked else {}
    ET.SubElement(root, "compiler", {"angle": "radian"} | balanced)
    world = ET.SubElement(root, "worldbody")
    for dof, part in builder.joints.items():
        if dof in linked:
            continue
        turns, J = problem.dofs[dof] == "rotation", inertia[dof]
        kind, axis = ("hinge", "0 1 0") if turns else ("slide", "1 0 0")
        m, length, _ = hanging.get(dof, (LIGHT, 0.0, 0.0))
        part.add("armature", J if turns else 0.0)
        tiny = LIGHT * max(m * length**2, J, LIGHT) if turns else LIGHT
        body = ET.SubElement(world, "body", name=dof)
        ET.SubElement(body, "joint", {"name": dof, "type": kind, "axis": axis} | part.texts())
        about = {"pos": row_text((0.0, 0.0, -length)), "mass": repr(m if turns else max(J, LIGHT))}
        ET.SubElement(body, "inertial", about, diaginertia=row_text((tiny, tiny, tiny)))
    attributes = {dof: builder.joints[dof].texts() | range_of(*ends.get(dof, ())) for dof in linked}
    add_links(world, problem.section("link"), attributes)
    if builder.tendons:
        tendons = ET.SubElement(root, "tendon")
        for i, (w, part) in enumerate(builder.tendons.items(), 1):
            fixed = ET.SubElement(tendons, "fixed", {"name": f"along.{i}"} | part.texts())
            for dof, c in zip(builder.dofs, w, strict=True):
                if c:
                    ET.SubElement(fixed, "joint", joint=dof, coef=repr(c))
    if builder.actuators:
        ET.SubElement(root, "actuator").extend(builder.actuators)
    # The order of joints is that of the file: links go from parent to child, branch by branch.
    states: list[Any] = [problem.initial[str(joint.get("name"))] for joint in world.iter("joint")]
    q, v = (row_text(getattr(s, x) for s in states) for x in "qv")
    ET.SubElement(ET.SubElement(root, "keyframe"), "key", name="start", qpos=q, qvel=v)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"
