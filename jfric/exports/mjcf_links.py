"""Links of a tree as nested bodies of MJCF, with their joints and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from scipy.spatial.transform import Rotation

from jfric.errors import ProblemError
from jfric.system.body import GROUND, Link
from jfric.system.description import AbstractProblem, element_label

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


def axes_of_links(problem: AbstractProblem) -> set[str]:
    """Degrees of freedom of links."""
    links = problem.section("link").items()
    return {dof for name, link in links for dof in link.coordinates(name)}


def link_lines(problem: AbstractProblem, attributes: Mapping[str, str]) -> Iterator[str]:
    """Lines of the bodies; ``attributes``: those of the joint of each degree of freedom."""
    yield from _carried(problem.section("link"), GROUND, attributes, "    ")


def _carried(
    links: Mapping[str, Link], parent: str, attributes: Mapping[str, str], indent: str
) -> Iterator[str]:
    for name, link in links.items():
        if link.parent != parent:
            continue
        x, y, z, w = Rotation.from_euler("xyz", np.asarray(link.rpy, float)).as_quat()
        place = f'pos="{row_text(link.at)}" quat="{row_text((w, x, y, z))}"'
        yield f"{indent}<body name={quoteattr(name)} {place}>"
        for dof in link.coordinates(name):
            kind, axis = KINDS[link.joint], row_text(link.axis)
            yield (
                f'{indent}  <joint name={quoteattr(dof)} type="{kind}" axis="{axis}"'
                f"{attributes[dof]}/>"
            )
        yield f"{indent}  {_inertial(link)}"
        yield from _carried(links, name, attributes, indent + "  ")
        yield f"{indent}</body>"


def _inertial(link: Link) -> str:
    # The triple order of the inertia is that of MJCF.
    m, J = float(link.m), np.asarray(link.J, float)
    least = np.array([LIGHT, LIGHT, LIGHT, 0.0, 0.0, 0.0])
    J = J if J[:3].all() else J + least
    place = f'pos="{row_text(link.com)}" mass="{max(m, LIGHT)!r}"'
    return f'<inertial {place} fullinertia="{row_text(J)}"/>'


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


def range_text(low: float = -np.inf, high: float = np.inf) -> str:
    """Attributes of a range; it ends far away on a side without a limit."""
    if not np.isfinite(low) and not np.isfinite(high):
        return ""
    low, high = max(low, -FAR), min(high, FAR)
    return f' limited="true" range="{low!r} {high!r}"'


def row_text(values: Iterable[Any]) -> str:
    """Numbers as the text of an attribute."""
    return " ".join(repr(float(x) + 0.0) for x in values)
