"""A problem as a model of MuJoCo (MJCF): the bodies of its links, and one for each other degree
of freedom.

Along one degree of freedom an element belongs to its joint, otherwise to a fixed tendon, whose
length is the elongation. Loads are motors, whose controls are their functions of time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from jfric.errors import ProblemError
from jfric.exports.friction_of_joint import Form, JointFriction, bristle_of_joint, joint_friction
from jfric.exports.mjcf_links import (
    LIGHT,
    axes_of_links,
    link_lines,
    range_text,
    ranges,
    require_links,
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

    def text(self) -> str:
        return "".join(f' {k}="{v!r}"' for k, v in self.attributes.items())


@dataclass
class _Builder:
    problem: AbstractProblem
    joints: dict[str, _Part]
    tendons: dict[tuple, _Part] = field(default_factory=dict)
    actuators: list[str] = field(default_factory=list)

    @property
    def dofs(self) -> tuple[str, ...]:
        return tuple(self.joints)

    def place(self, direction: Direction) -> tuple[_Part, float, str]:
        """The part on which an element acts, its coefficient there, and the attribute for
        actuators."""
        w = self.vector(direction)
        (at,) = np.nonzero(w)
        if len(at) == 1:
            dof = self.dofs[int(at[0])]
            return self.joints[dof], float(w[at[0]]), f"joint={quoteattr(dof)}"
        key = tuple(w.tolist())
        part = self.tendons.setdefault(key, _Part())
        name = f"along.{list(self.tendons).index(key) + 1}"
        return part, 1.0, f"tendon={quoteattr(name)}"

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
        builder.actuators.append(f'<motor name={quoteattr(label)} {where} gear="{gear!r}"/>')
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
        part.attributes["springref" if where.startswith("joint") else "springlength"] = 0.0
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
            builder.actuators.append(
                f'<dcmotor name={quoteattr(label)} {where} gear="{w!r}" input="none" '
                f'motorconst="0" resistance="1" lugre="{found.bristle}"/>'
            )
        rows.append(Row(label, v, found))
        lost += [f"{label}: {sentence}" for sentence in found.lost]
    return rows, lost


def _text(builder: _Builder, inertia, hanging, gravity: float, timestep: float, ends) -> str:
    problem, linked = builder.problem, axes_of_links(builder.problem)
    down = f"0 0 {0.0 - gravity!r}"
    balance = ' balanceinertia="true"' if linked else ""  # inertias in files are rounded
    lines = [
        '<mujoco model="jfric">',
        f'  <option timestep="{timestep!r}" gravity="{down}" integrator="implicitfast"/>',
        f'  <compiler angle="radian"{balance}/>',
        "  <worldbody>",
    ]
    for dof, part in builder.joints.items():
        if dof in linked:
            continue
        turns = problem.dofs[dof] == "rotation"
        kind, axis = ("hinge", "0 1 0") if turns else ("slide", "1 0 0")
        J = inertia[dof]
        m, length, _ = hanging.get(dof, (LIGHT, 0.0, 0.0))
        mass = m if turns else max(J, LIGHT)
        part.add("armature", J if turns else 0.0)
        tiny = LIGHT * max(m * length**2, J, LIGHT) if turns else LIGHT
        lines += [
            f"    <body name={quoteattr(dof)}>",
            f'      <joint name={quoteattr(dof)} type="{kind}" axis="{axis}"{part.text()}/>',
            f'      <inertial pos="0 0 {0.0 - length!r}" mass="{mass!r}" '
            f'diaginertia="{tiny!r} {tiny!r} {tiny!r}"/>',
            "    </body>",
        ]
    attributes = {
        dof: builder.joints[dof].text() + range_text(*ends.get(dof, ())) for dof in linked
    }
    lines += link_lines(problem, attributes)
    lines.append("  </worldbody>")
    if builder.tendons:
        lines.append("  <tendon>")
        for i, (w, part) in enumerate(builder.tendons.items(), 1):
            lines.append(f'    <fixed name="along.{i}"{part.text()}>')
            pairs = zip(builder.dofs, w, strict=True)
            lines += [f'      <joint joint={quoteattr(d)} coef="{c!r}"/>' for d, c in pairs if c]
            lines.append("    </fixed>")
        lines.append("  </tendon>")
    if builder.actuators:
        lines += ["  <actuator>", *(f"    {x}" for x in builder.actuators), "  </actuator>"]
    # The order of joints is that of the file: links go from parent to child, branch by branch.
    order = re.findall('<joint name="([^"]*)"', "\n".join(lines))
    states: list[Any] = [problem.initial[dof] for dof in order]
    q, v = (" ".join(repr(float(getattr(s, x))) for s in states) for x in "qv")
    lines += [f'  <keyframe><key name="start" qpos="{q}" qvel="{v}"/></keyframe>', "</mujoco>", ""]
    return "\n".join(lines)
