"""The equations of a system, written from its problem: assembled matrices, energies, laws."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from generators.manual import mathml as m
from generators.manual.contact_laws import Line, contact_lines, friction_lines
from generators.manual.formulas import formula
from generators.manual.functions import entries, of_time
from generators.manual.motion import LARGEST, motion_lines
from jfric.system.assembly import assemble
from jfric.system.direction import Direction
from jfric.system.elements import SECTIONS
from jfric.system.linkage import LINKAGE
from jfric.system.naming import parameters, path_dimension

if TYPE_CHECKING:
    from collections.abc import Callable

    from jfric.system.problem import Problem

#: Of more elements of a kind the first ones are shown.
MOST = 6
_IN_MOTION = ("mass", "spring", "damper", "load", "base", "ground", "gravity", "body", "event")
_OF_THEIR_OWN = ("lagrangian", "link", "friction", "contact", "joint", "velocity", "state")
_OF_THEIR_OWN += tuple(LINKAGE)


def equations(problem: Problem) -> list[Line]:
    """Words and formulas, in order. A formula is MathML, plain text, or empty."""
    problem = problem.resolved()
    # Sections of elements with a force that is no entry of a matrix.
    others = tuple(s for s in SECTIONS if s not in (*_IN_MOTION, *_OF_THEIR_OWN))
    found = [*_energies(problem), *motion_lines(problem, assemble(problem), others)]
    for section in ("load", "base", "gravity", *others, "state", "velocity", "joint", *LINKAGE):
        found += _several(problem, section, _LINES.get(section, _other))
    found += _several(problem, "friction", _friction)
    found += _several(problem, "contact", lambda _, label, e: contact_lines(label, e))
    return [*found, *_start(problem)]


def _several(
    problem: Problem, section: str, lines: Callable[[Problem, str, Any], list[Line]]
) -> list[Line]:
    """Lines of the first elements of a section, and how many more there are."""
    found = list(problem.labelled(section).items())
    shown = [line for label, e in found[:MOST] for line in lines(problem, label, e)]
    more = len(found) - MOST
    return [*shown, (f"And {more} more of {section}, of the same form.", "")] if more > 0 else shown


def _unit(problem: Problem, path: str) -> str:
    try:
        found = path_dimension(problem, path)
    except KeyError:
        return ""
    return "" if found is None else found.unit


def _named(left: str, right: str) -> str:
    return m.display(left, m.op("="), right)


def _text(function: Any) -> str:
    return formula(function) if isinstance(function, str) else m.text("a function in Python")


def _energies(problem: Problem) -> list[Line]:
    letters = {"kinetic": ("T", "kinetic energy"), "potential": ("V", "potential energy")}
    letters["dissipation"] = ("D", "dissipation, half of the power lost")
    return [
        (f"{label}: {words}", _named(f"<mi>{letter}</mi>", _text(getattr(element, field))))
        for label, element in problem.labelled("lagrangian").items()
        for field, (letter, words) in letters.items()
        if getattr(element, field) is not None
    ]


def _load(problem: Problem, label: str, load: Any) -> list[Line]:
    names = list(entries(load.direction))
    on = ", ".join(names[:MOST]) + (", ..." if len(names) > MOST else "")
    left = m.of(m.sub("<mi>F</mi>", label), "<mi>t</mi>")
    return [(f"{label}: on {on}", _named(left, of_time(load.F, _unit(problem, f"{label}.F"))))]


def _base(problem: Problem, label: str, base: Any) -> list[Line]:
    left = m.of(m.symbol(label.rpartition(".")[2]), "<mi>t</mi>")
    return [(f"{label}: prescribed displacement", _named(left, of_time(base.displacement)))]


def _gravity(problem: Problem, label: str, gravity: Any) -> list[Line]:
    value = m.quantity(float(np.asarray(gravity.g)), "m/s^2")
    return [("Gravity on every body, downwards", _named("<mi>g</mi>", value))]


def _state(problem: Problem, label: str, state: Any) -> list[Line]:
    z = m.sub("<mi>z</mi>", label)
    lines = [(f"{label}: a state", _named(m.dotted(z), _text(state.rate)))]
    if state.force is not None:
        lines.append((f"{label}: its force", m.display(_text(state.force))))
    return lines


def _joint(problem: Problem, label: str, joint: Any) -> list[Line]:
    lines = [
        (f"{label}: bilateral constraint", _named(_text(own), "<mn>0</mn>"))
        for own in joint.constraint
    ]
    if joint.law is not None:
        law = type(joint.law).__name__
        lines.append(
            (f"{label}: friction ({law}) with the size of its reaction for normal force", "")
        )
    return lines


def _velocity(problem: Problem, label: str, velocity: Any) -> list[Line]:
    u = m.symbol(label.rpartition(".")[2])
    return [(f"{label}: moves {dof} by", m.display(_text(what), u)) for dof, what in velocity.moves]


def _link(problem: Problem, label: str, joint: Any) -> list[Line]:
    given = next(x for k in ("points", "bodies", "point") if (x := getattr(joint, k, None)))
    of = " and ".join(given) if isinstance(given, tuple) else str(given)
    return [(f"{label}: {of}. {first_sentence(type(joint))}", "")]


def _friction(problem: Problem, label: str, element: Any) -> list[Line]:
    field = "N" if element.N is not None else "limit"
    return friction_lines(label, element, _unit(problem, f"{label}.{field}"))


def _other(problem: Problem, label: str, element: Any) -> list[Line]:
    """An element with a law of its own: what its class says of it, and its numbers."""
    direction = getattr(element, "direction", None)
    on = f", along {', '.join(direction.names)}" if isinstance(direction, Direction) else ""
    values = "; ".join(
        f"{path.removeprefix(f'{label}.')} = {_plain(x)} {m.units(_unit(problem, path))}".strip()
        for path, x in parameters(problem).items()
        if path.startswith(f"{label}.") and ".direction." not in path
    )
    return [(f"{label}{on}: {values}", said_of(type(element)))]


def _body_in_space(problem: Problem, label: str, link: Any) -> list[Line]:
    dof = next(iter(link.coordinates(label.rpartition(".")[2])), "")
    joint = f"{link.joint} joint {dof}".strip() if link.joint != "fixed" else "fixed"
    numbers = [
        f"{words} {_plain(np.array(value, float))} {unit}"
        for words, value, unit in (
            ("at", link.at, "m,"),
            ("turned by", link.rpy, "rad;"),
            ("mass", link.m, "kg,"),
            ("centre of mass", link.com, "m,"),
            ("inertia", link.J, "kg m²"),
        )
        if np.any(np.array(value, float))
    ]
    return [(f"{label}: {joint} on {link.parent}; {' '.join(numbers)}".rstrip(",; "), "")]


_LINES: dict[str, Callable[[Problem, str, Any], list[Line]]] = {
    "load": _load,
    "base": _base,
    "gravity": _gravity,
    "state": _state,
    "joint": _joint,
    "velocity": _velocity,
    "link": _body_in_space,
    **dict.fromkeys(LINKAGE, _link),
}


def said_of(cls: type) -> str:
    """Equations in the description of a class: its first block of plain formulas, or its first
    paragraph."""
    text = inspect.cleandoc(cls.__doc__ or "")
    for block in re.findall(r"::\n\n((?:    .*\n|\n)+)", f"{text}\n"):
        if ">>>" not in block:
            return inspect.cleandoc(f"\n{block}").strip()
    return text.split("\n\n")[0].replace("``", "").replace("\n", " ")


def first_sentence(cls: type) -> str:
    """The first line of the description of a class."""
    return inspect.cleandoc(cls.__doc__ or "").partition("\n")[0].replace("``", "")


def _plain(x: Any) -> str:
    array = np.asarray(x)
    if array.ndim == 0:
        return f"{float(array):.6g}"
    if array.size > MOST:
        return f"{array.size} values"
    return "[" + ", ".join(f"{v:.6g}" for v in array.ravel()) + "]"


def _start(problem: Problem) -> list[Line]:
    _, q, v = problem.start()
    zero, parts = "<mn>0</mn>", []
    for axis, position, velocity in zip(problem.axes, np.asarray(q), np.asarray(v), strict=True):
        for x, order in ((position, 0), (velocity, 1)):
            name = m.dotted(m.symbol(axis)) if order else m.symbol(axis)
            if x:
                parts.append(m.row(m.of(name, zero), m.op("="), m.number(x)))
    if not parts:
        return [("Start: at rest, all displacements zero.", "")]
    if len(parts) > LARGEST:
        return [(f"Start: {len(parts)} positions and velocities are not zero.", "")]
    return [("Start, what is not zero", m.display(m.op(",").join(parts)))]
