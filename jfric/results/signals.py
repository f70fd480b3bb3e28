"""Scalar quantities of a trajectory by name: ``u``, ``v.u``, ``lambda_t.NAME``, ``force.NAME`` ...

This module alone defines these names; checks, sweeps, fits and columns of results use it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from jfric.errors import ProblemError, nearest
from jfric.system.assembly import energies
from jfric.system.contacts import SLIPS, force_unit, normal_forces, unilateral_contacts
from jfric.system.control import command_places, command_units, slots_of
from jfric.system.description import accepted_labels, element_label
from jfric.system.forces import element_forces, force_keys, force_sections, joint_reactions
from jfric.system.functions import Held
from jfric.system.joint_equations import reaction_units
from jfric.system.naming import find_function, function_paths, path_dimension
from jfric.system.problem import Problem
from jfric.system.state_function import chosen_motion, chosen_units
from jfric.system.states import state_units

if TYPE_CHECKING:
    from jfric.results.pieces import Point

#: Sections of contacts, in the solver's order.
CONTACTS = ("friction", "contact")


class Quantity:
    """A scalar quantity of a trajectory, as a function of a point."""

    unit: str
    #: Whether position and velocity alone determine the quantity.
    of_motion: bool = False

    def __call__(self, point: Point):
        raise NotImplementedError


@dataclass(frozen=True)
class Signal(Quantity):
    """One component of the motion or of the contact forces."""

    #: ``q``, ``v``, ``a``, ``lambda_t``, ``lambda_n``, ``z`` or ``sliding_velocity``.
    field: str
    index: int
    unit: str

    @property
    def of_motion(self) -> bool:  # type: ignore[override]
        """Whether position and velocity alone determine the quantity."""
        return self.field in ("q", "v")

    def __call__(self, point: Point):
        return getattr(point, self.field)[self.index]


@dataclass(frozen=True)
class ElementForce(Quantity):
    """Force of a spring, damper or stop along its direction, as it acts on the system."""

    section: str
    name: str
    unit: str

    def __call__(self, point: Point):
        p, key = point, (self.section, self.name)
        if p.forces is not None:
            return p.forces[list(force_keys(p.problem).values()).index(key)]
        motion = p.t, p.q, p.v, p.segment
        return element_forces(p.problem, p.mechanics, [key], *motion, states=p.z)[0]


@dataclass(frozen=True)
class Energy(Quantity):
    """Kinetic and potential energy of a :class:`jfric.Lagrangian`, or of all links."""

    name: str
    unit: str = "J"

    def __call__(self, point: Point):
        return energies(point.problem)[self.name].total(point.t, point.q, point.v)


@dataclass(frozen=True)
class Reaction(Quantity):
    """Reaction of one equation of a joint; times the equation's gradient a generalised force."""

    index: int
    unit: str

    def __call__(self, point: Point):
        p = point
        _require_held(p.problem, "reaction")
        state = p.t, p.q, p.v, p.lambda_t, p.lambda_n, p.segment, p.z
        return joint_reactions(p.problem, p.mechanics, *state)[self.index]


@dataclass(frozen=True)
class ChosenVelocity(Quantity):
    """A velocity that the user has defined, or its rate."""

    field: str
    name: str
    unit: str

    def __call__(self, point: Point):
        motion = (point.v,) if self.field == "v" else (point.v, point.a)
        return chosen_motion(point.problem, self.name, point.t, point.q, *motion)


@dataclass(frozen=True)
class Input(Quantity):
    """Value of a function of time, such as a load or the voltage of a motor."""

    section: str
    name: str
    field: str
    unit: str

    def __call__(self, point: Point):
        return getattr(point.problem.section(self.section)[self.name], self.field)(point.t)


@dataclass(frozen=True)
class Command(Quantity):
    """Value that a controller sets, from one sample to the next."""

    path: str
    unit: str

    def __call__(self, point: Point):
        _require_held(point.problem, "command")
        return Input(*slots_of(point.problem)[self.path], self.unit)(point)


def _require_held(problem: Problem, what: str) -> None:
    """Raise :class:`ProblemError` where what controllers set is not known at each instant."""
    for section, name, field in slots_of(problem).values():
        if not isinstance(getattr(problem.section(section)[name], field), Held):
            raise ProblemError(
                f"{what}: only the solver event-driven knows what a controller sets at each "
                "instant; take it, or the outputs of simulate"
            )


class _Form(NamedTuple):
    """Quantities whose names begin with one word: ``sort`` of object that the rest of a name
    belongs to, ``names`` of all, ``find``: the full name for one that is given, and ``make``: the
    quantity for this word and a full name."""

    sort: str
    names: Callable[[Problem], list[str]]
    find: Callable[[Problem, str], str | None]
    make: Callable[[Problem, str, str], Quantity]


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
    if text in problem.dofs:
        return text, _of_dof(problem, "q", text)
    word, _, name = text.partition(".")
    form = FORMS.get(word)
    label = None if form is None else form.find(problem, name)
    if form is None or label is None:
        raise ProblemError(_missing(problem, text, word))
    return f"{word}.{label}", form.make(problem, word, label)


def find_signal(problem: Problem, text: str) -> Signal:
    """Component of the motion or of the contact forces with the name ``text``."""
    found = look_up(problem, text)[1]
    if isinstance(found, Signal):
        return found
    raise ProblemError(f"{text!r} is no part of motion or reactions, and cannot be compared here")


def signal_names(problem: Problem) -> list[str]:
    """Names of all quantities of a problem."""
    own = (f"{word}.{name}" for word, form in FORMS.items() for name in form.names(problem))
    return [*problem.dofs, *own]


def _with_energy(problem: Problem) -> list[str]:
    """Names of what has an energy: elements with energies, and the tree of links."""
    moves = any(x.joint != "fixed" for x in problem.section("link").values())
    tree = ["links"] if moves else []
    return [*element_names(problem, ("lagrangian",)), *tree]


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


def _missing(problem: Problem, text: str, word: str) -> str:
    names, form = signal_names(problem), FORMS.get(word)
    own = names
    if form is not None and form.sort != "dof":
        own = [f"{word}.{name}" for name in form.names(problem)]
        if not own:
            return f"no quantity {text!r}, there is no such {form.sort}"
    return f"no quantity {text!r}{nearest(text, names)}; there are {', '.join(own)}"


def _of_contact(problem: Problem, form: str, label: str) -> Signal:
    if form == "lambda_n":
        row = normal_forces(problem)[label]
        return Signal(form, row, force_unit(problem, label, "normal"))
    unit, index = force_unit(problem, label), contact_names(problem).index(label)
    if form == "slip":
        return Signal("sliding_velocity", index, SLIPS[unit])
    return Signal(form, index, unit)


def _of_dof(problem: Problem, field: str, name: str) -> Signal | ChosenVelocity:
    rate = {"q": "", "v": "/s", "a": "/s^2"}[field]
    if name not in problem.dofs:
        return ChosenVelocity(field, name, chosen_units(problem)[name] + rate)
    base = "rad" if problem.dofs[name] == "rotation" else "m"
    return Signal(field, list(problem.dofs).index(name), base + rate)


def _moving(problem: Problem) -> list[str]:
    return [*problem.dofs, *problem.section("velocity")]


def _find_moving(problem: Problem, name: str) -> str | None:
    dofs = list(problem.dofs)
    name = dofs[0] if not name and len(dofs) == 1 else name
    return name if name in _moving(problem) else None


def _normals(problem: Problem) -> list[str]:
    return list(normal_forces(problem))


def _inputs(problem: Problem) -> list[str]:
    commanded = command_places(problem).values()
    return [path for path in function_paths(problem) if path not in commanded]


def _find_input(problem: Problem, name: str) -> str | None:
    path = find_function(problem, name)
    return path if path in _inputs(problem) else None


def _of_input(problem: Problem, path: str) -> Input:
    dimension = path_dimension(problem, path)
    return Input(*function_paths(problem)[path], "" if dimension is None else dimension.unit)


def _matched(
    sort: str, names: Callable[[Problem], list[str]], make: Callable[[Problem, str], Quantity]
) -> _Form:
    """Form of quantities that are found by their own names alone."""
    return _Form(
        sort,
        names,
        lambda problem, name: find_name(problem, name, (), names(problem)),
        lambda problem, _, label: make(problem, label),
    )


def _numbered(sort: str, units: Callable[[Problem], dict[str, str]], make) -> _Form:
    """Form of quantities whose names and ``units`` are a table, made by place and unit."""

    def made(problem: Problem, label: str) -> Quantity:
        known = units(problem)
        return make(list(known).index(label), known[label])

    return _matched(sort, lambda problem: list(units(problem)), made)


_DOF = _Form("dof", _moving, _find_moving, _of_dof)
_CONTACT = _Form("contact", contact_names, lambda p, x: find_name(p, x, CONTACTS), _of_contact)
#: Quantities by the first words of their names.
FORMS: dict[str, _Form] = {
    "v": _DOF,
    "a": _DOF,
    "lambda_t": _CONTACT,
    "lambda_n": _CONTACT._replace(
        names=_normals, find=lambda p, x: find_name(p, x, CONTACTS[1:], _normals(p))
    ),
    "slip": _CONTACT,
    "force": _Form(
        "element",
        lambda p: element_names(p, force_sections()),
        lambda p, x: find_name(p, x, force_sections()),
        lambda p, _, label: ElementForce(*force_keys(p)[label], force_unit(p, label)),
    ),
    "energy": _matched("lagrangian", _with_energy, lambda _, label: Energy(label)),
    "command": _matched(
        "controller",
        lambda p: list(command_places(p)),
        lambda p, label: Command(command_places(p)[label], command_units(p)[label]),
    ),
    "input": _Form("function of time", _inputs, _find_input, lambda p, _, path: _of_input(p, path)),
    "reaction": _numbered("joint", reaction_units, Reaction),
    "z": _numbered("state", state_units, functools.partial(Signal, "z")),
}
