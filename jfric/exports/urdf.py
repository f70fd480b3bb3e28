"""A robot of links as URDF: inertias, joints, their ranges, damping and friction."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from jfric.errors import ProblemError
from jfric.exports.friction_of_joint import CREEPS
from jfric.exports.mjcf import collected
from jfric.exports.mjcf_links import FAR, axes_of_links, ranges, row_text
from jfric.system.body import GROUND
from jfric.system.problem import Problem

#: Attributes of a joint that URDF has, by those of MJCF.
DYNAMICS = {"damping": "damping", "frictionloss": "friction"}
#: Attributes that URDF does not have.
LEFT = ("armature", "stiffness")


def build_urdf(problem: Problem) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and label and sentence for each omission."""
    problem = problem.resolved()
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
    return ET.tostring(root, encoding="unicode") + "\n", tuple(lost)
