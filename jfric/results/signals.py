"""Scalar quantities of a trajectory by name: ``u``, ``v.u``, ``lambda_t.NAME``, ``force.NAME`` ...

This module alone defines these names; checks, sweeps, fits and columns of results use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jfric.errors import ProblemError, nearest
from jfric.system.assembly import energies
from jfric.system.chosen_motion import chosen_motion, chosen_units
from jfric.system.control import command_places, command_units, slots_of
from jfric.system.description import accepted_labels, element_label
from jfric.system.forces import element_forces, force_keys, force_sections, joint_reactions
from jfric.system.held import Held
from jfric.system.joint_contacts import SLIPS, force_unit, normal_forces, unilateral_contacts
from jfric.system.joint_equations import reaction_units
from jfric.system.naming import find_function, function_paths, path_dimension
from jfric.system.problem import Problem
from jfric.system.states import state_units

if TYPE_CHECKING:
    from jfric.results.pieces import Point

#: Prefixes of names, and the sort of object that each name belongs to.
FORMS = {
    "v": "dof",
    "a": "dof",
    "lambda_t": "contact",
    "lambda_n": "contact",
    "slip": "contact",
    "force": "element",
    "energy": "lagrangian",
    "reaction": "joint",
    "z": "state",
    "command": "controller",
    "input": "function of time",
}
#: Sections of contacts, in the solver's order.
CONTACTS = ("friction", "contact")


@dataclass(frozen=True)
class Signal:
    """One component of the motion or of the contact forces, as a function of a point."""

    #: ``q``, ``v``, ``a``, ``lambda_t``, ``lambda_n``, ``z`` or ``sliding_velocity``.
    field: str
    index: int
    unit: str

    @property
    def of_motion(self) -> bool:
        """Whether position and velocity alone determine the quantity."""
        return self.field in ("q", "v")

    def __call__(self, point: Point):
        return getattr(point, self.field)[self.index]


@dataclass(frozen=True)
class ElementForce:
    """Force of a spring, damper or stop along its direction, as it acts on the system."""

    section: str
    name: str
    unit: str

    @property
    def of_motion(self) -> bool:
        """False: loads, moving supports, segments and parameters determine the force as well."""
        return False

    def __call__(self, point: Point):
        p, key = point, (self.section, self.name)
        if p.forces is not None:
            return p.forces[list(force_keys(p.problem).values()).index(key)]
        motion = p.t, p.q, p.v, p.segment
        return element_forces(p.problem, p.mechanics, [key], *motion, states=p.z)[0]


@dataclass(frozen=True)
class Energy:
    """Kinetic and potential energy of a :class:`jfric.Lagrangian`, or of all links."""

    name: str
    unit: str = "J"

    @property
    def of_motion(self) -> bool:
        """False: time and parameters determine the energy as well."""
        return False

    def __call__(self, point: Point):
        return energies(point.problem)[self.name].total(point.t, point.q, point.v)


@dataclass(frozen=True)
class Reaction:
    """Reaction of one equation of a joint; times the equation's gradient a generalised force."""

    index: int
    unit: str

    @property
    def of_motion(self) -> bool:
        """False: all forces determine the reaction."""
        return False

    def __call__(self, point: Point):
        p = point
        _require_held(p.problem, "reaction")
        state = p.t, p.q, p.v, p.lambda_t, p.lambda_n, p.segment, p.z
        return joint_reactions(p.problem, p.mechanics, *state)[self.index]


@dataclass(frozen=True)
class ChosenVelocity:
    """A velocity that the user has defined, or its rate."""

    field: str
    name: str
    unit: str

    @property
    def of_motion(self) -> bool:
        """False: time and parameters determine the velocity as well."""
        return False

    def __call__(self, point: Point):
        motion = (point.v,) if self.field == "v" else (point.v, point.a)
        return chosen_motion(point.problem, self.name, point.t, point.q, *motion)


@dataclass(frozen=True)
class Command:
    """Value that a controller sets, from one sample to the next."""

    path: str
    unit: str

    @property
    def of_motion(self) -> bool:
        """False: the memory of the controller determines it."""
        return False

    def __call__(self, point: Point):
        _require_held(point.problem, "command")
        section, name, field = slots_of(point.problem)[self.path]
        return getattr(point.problem.section(section)[name], field)(point.t)


@dataclass(frozen=True)
class Input:
    """Value of a function of time, such as a load or the voltage of a motor."""

    section: str
    name: str
    field: str
    unit: str

    @property
    def of_motion(self) -> bool:
        """False: time determines it."""
        return False

    def __call__(self, point: Point):
        return getattr(point.problem.section(self.section)[self.name], self.field)(point.t)


def _require_held(problem: Problem, what: str) -> None:
    """Raise :class:`ProblemError` where what controllers set is not known at each instant."""
    for section, name, field in slots_of(problem).values():
        if not isinstance(getattr(problem.section(section)[name], field), Held):
            raise ProblemError(
                f"{what}: only the solver event-driven knows what a controller sets at each "
                "instant; take it, or the outputs of simulate"
            )


Quantity = Command | Signal | ElementForce | Energy | Reaction | ChosenVelocity | Input


def look_up(problem: Problem, text: str) -> tuple[str, Quantity]:
    """Full name of the quantity with the name ``text``, and its value as a function of a point.

    ``u``: position of the degree of freedom u; ``v.u``, ``a.u``: its velocity and acceleration, or
    a user's own velocity and its rate; ``lambda_t.NAME``, ``lambda_n.NAME``, ``slip.NAME``:
    friction force, normal force and sliding velocity of a contact; ``force.NAME``: force of a
    spring, damper or stop; ``z.NAME``: state of an element, ``z.NAME.1`` and so on where it has
    several; ``energy.NAME``: kinetic and potential energy of a Lagrangian, or of all
    ``links``; ``command.NAME``: what a controller sets; ``input.load.F``: a function of time by its
    path; ``reaction.NAME`` (``reaction.NAME.1`` and so on, where it has several equations):
    reaction of a joint. The name may be left out where there is only one. Raises
    :class:`ProblemError` with the nearest valid name.
    """
    dofs = list(problem.dofs)
    if text in dofs:
        return text, _of_dof(problem, "q", text)
    form, _, name = text.partition(".")
    kind = FORMS.get(form)
    if kind == "dof":
        name = dofs[0] if not name and len(dofs) == 1 else name
        if name in dofs:
            return f"{form}.{name}", _of_dof(problem, form, name)
        if name in problem.section("velocity"):
            unit = chosen_units(problem)[name] + ("/s" if form == "v" else "/s^2")
            return f"{form}.{name}", ChosenVelocity(form, name, unit)
    elif kind == "contact":
        if form == "lambda_n":
            label = find_name(problem, name, CONTACTS[1:], list(normal_forces(problem)))
        else:
            label = find_name(problem, name, CONTACTS)
        if label is not None:
            return f"{form}.{label}", _of_contact(problem, form, label)
    elif kind == "element":
        label = find_name(problem, name, force_sections())
        if label is not None:
            element = ElementForce(*force_keys(problem)[label], force_unit(problem, label))
            return f"force.{label}", element
    elif kind == "lagrangian":
        label = _only_match(_with_energy(problem), name)
        if label is not None:
            return f"energy.{label}", Energy(label)
    elif kind == "state":
        states = state_units(problem)
        label = _only_match(list(states), name)
        if label is not None:
            return f"z.{label}", Signal("z", list(states).index(label), states[label])
    elif kind == "controller":
        label = _only_match(list(command_places(problem)), name)
        if label is not None:
            unit = command_units(problem)[label]
            return f"command.{label}", Command(command_places(problem)[label], unit)
    elif kind == "function of time":
        path = find_function(problem, name)
        if path is not None and path not in command_places(problem).values():
            dimension = path_dimension(problem, path)
            unit = "" if dimension is None else dimension.unit
            return f"input.{path}", Input(*function_paths(problem)[path], unit)
    elif kind == "joint":
        label = find_reaction(problem, name)
        if label is not None:
            units = reaction_units(problem)
            return f"reaction.{label}", Reaction(list(units).index(label), units[label])
    raise ProblemError(_missing(problem, text, form, kind))


def find_signal(problem: Problem, text: str) -> Signal:
    """Component of the motion or of the contact forces with the name ``text``."""
    found = look_up(problem, text)[1]
    if isinstance(found, Signal):
        return found
    raise ProblemError(f"{text!r} is no part of motion or reactions, and cannot be compared here")


def signal_names(problem: Problem) -> list[str]:
    """Names of all quantities of a problem."""
    dofs, contacts = list(problem.dofs), contact_names(problem)
    moving = [*dofs, *problem.section("velocity")]
    forms = [("", dofs), ("v", moving), ("a", moving), ("lambda_t", contacts)]
    forms += [("lambda_n", list(normal_forces(problem))), ("slip", contacts)]
    forms += [("force", element_names(problem, force_sections()))]
    forms += [("energy", _with_energy(problem))]
    forms += [("command", list(command_places(problem)))]
    set_ = command_places(problem).values()
    forms += [("input", [path for path in function_paths(problem) if path not in set_])]
    forms += [("reaction", list(reaction_units(problem))), ("z", list(state_units(problem)))]
    return [f"{form}.{name}" if form else name for form, names in forms for name in names]


def _with_energy(problem: Problem) -> list[str]:
    """Names of what has an energy: elements with energies, and the tree of links."""
    moves = any(x.joint != "fixed" for x in problem.section("link").values())
    tree = ["links"] if moves else []
    return [*element_names(problem, ("lagrangian",)), *tree]


def find_reaction(problem: Problem, name: str) -> str | None:
    """Full name of a joint's reaction, given by this name or by the joint's own; an empty name is
    that of the only reaction."""
    return _only_match(list(reaction_units(problem)), name)


def _only_match(names: list[str], name: str) -> str | None:
    """Full one of ``names``, given with or without its section; None unless exactly one matches."""
    if not name:
        return names[0] if len(names) == 1 else None
    if name in names:
        return name
    found = [n for n in names if n.partition(".")[2] == name]
    return found[0] if len(found) == 1 else None


def contact_names(problem: Problem) -> list[str]:
    """Names of the contacts, in the solver's order: friction elements, then unilateral ones."""
    return element_names(problem, CONTACTS)


def element_names(problem: Problem, sections: Sequence[str]) -> list[str]:
    """Names of all elements of ``sections`` in results: both components of friction in a plane; the
    sides of a joint with friction are contacts."""
    found = []
    for section in sections:
        own = [element_label(section, name) for name in problem.section(section)]
        own = list(problem.friction_rows()) if section == "friction" else own
        found += list(unilateral_contacts(problem)) if section == "contact" else own
    return found


def find_name(
    problem: Problem, name: str, sections: Sequence[str], labels: list[str] | None = None
) -> str | None:
    """Name in results of an element given by its full or own name; an empty name is that of the
    only element. ``labels``: the possible names, by default those of all elements."""
    labels = element_names(problem, sections) if labels is None else labels
    if not name:
        return labels[0] if len(labels) == 1 else None
    if name in labels:
        return name
    for section in sections:
        accepted = accepted_labels(section, problem.section(section))
        if accepted.get(name) in labels:
            return accepted[name]
    found = [label for label in labels if name in (label, label.partition(".")[2])]
    return found[0] if len(found) == 1 else None


def _missing(problem: Problem, text: str, form: str, kind: str | None) -> str:
    names = signal_names(problem)
    listed: dict[str, Callable[[], list[str]]] = {
        "contact": lambda: [n for n in names if n.startswith(f"{form}.")],
        "element": lambda: [n for n in names if n.startswith("force.")],
        "lagrangian": lambda: [n for n in names if n.startswith("energy.")],
        "joint": lambda: [n for n in names if n.startswith("reaction.")],
        "controller": lambda: [n for n in names if n.startswith("command.")],
        "state": lambda: [n for n in names if n.startswith("z.")],
        "function of time": lambda: [n for n in names if n.startswith("input.")],
    }
    own = listed[kind]() if kind in listed else names
    if not own:
        return f"no quantity {text!r}, there is no such {kind}"
    return f"no quantity {text!r}{nearest(text, names)}; there are {', '.join(own)}"


def _of_contact(problem: Problem, form: str, label: str) -> Signal:
    contacts = contact_names(problem)
    if form == "slip":
        unit = SLIPS[force_unit(problem, label)]
        return Signal("sliding_velocity", contacts.index(label), unit)
    if form == "lambda_t":
        return Signal(form, contacts.index(label), force_unit(problem, label))
    row = normal_forces(problem)[label]
    return Signal(form, row, force_unit(problem, label, "normal"))


def _of_dof(problem: Problem, field: str, name: str) -> Signal:
    base = "rad" if problem.dofs[name] == "rotation" else "m"
    unit = base + {"q": "", "v": "/s", "a": "/s^2"}[field]
    return Signal(field, list(problem.dofs).index(name), unit)
