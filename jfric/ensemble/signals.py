"""Scalar quantities of a trajectory by name: ``u``, ``v.u``, ``a.u``, ``lambda_t.NAME`` ..."""

from __future__ import annotations

from dataclasses import dataclass

from jfric.columns import force_unit
from jfric.ensemble.pieces import Point
from jfric.errors import ProblemError, nearest
from jfric.system.problem import Problem

#: Forms with a name: what it is a name of.
FORMS = {"v": "dof", "a": "dof", "lambda_t": "contact", "lambda_n": "contact", "slip": "contact"}


@dataclass(frozen=True)
class Signal:
    """One component of the motion or of the contact forces; a function of a :class:`Point`."""

    #: ``q``, ``v``, ``a``, ``lambda_t``, ``lambda_n`` or ``sliding_velocity``.
    field: str
    index: int
    unit: str

    @property
    def of_motion(self) -> bool:
        """Whether position and velocity alone give it."""
        return self.field in ("q", "v")

    def __call__(self, point: Point):
        return getattr(point, self.field)[self.index]


def find_signal(problem: Problem, text: str) -> Signal:
    """The signal that ``text`` names; raises :class:`ProblemError` with the nearest valid name.

    ``u``: position of the degree of freedom u; ``v.u``, ``a.u``: its velocity and acceleration;
    ``lambda_t.NAME``, ``lambda_n.NAME``, ``slip.NAME``: friction force, normal force and sliding
    velocity of a contact. The name may be left out where there is only one.
    """
    dofs = list(problem.dofs)
    if text in dofs:
        return _of_dof(problem, "q", text)
    form, _, name = text.partition(".")
    kind = FORMS.get(form)
    if kind == "dof":
        if not name and len(dofs) == 1:
            name = dofs[0]
        if name in dofs:
            return _of_dof(problem, form, name)
    elif kind == "contact":
        contacts = contact_names(problem)
        friction = len(problem.section("friction"))
        allowed = contacts[friction:] if form == "lambda_n" else contacts
        index = find_contact(name, allowed)
        if index is not None:
            contact = allowed[index]
            position = contacts.index(contact)
            if form == "slip":
                unit = "rad/s" if force_unit(problem, contact) == "N m" else "m/s"
                return Signal("sliding_velocity", position, unit)
            side = "normal" if form == "lambda_n" else "tangent"
            return Signal(form, index, force_unit(problem, contact, side))
    names = signal_names(problem)
    raise ProblemError(f"no quantity {text!r}{nearest(text, names)}; there are {', '.join(names)}")


def signal_names(problem: Problem) -> list[str]:
    """All signals of a problem."""
    dofs, contacts = list(problem.dofs), contact_names(problem)
    normal = contacts[len(problem.section("friction")) :]
    forms = [("", dofs), ("v", dofs), ("a", dofs), ("lambda_t", contacts)]
    forms += [("lambda_n", normal), ("slip", contacts)]
    return [f"{form}.{name}" if form else name for form, names in forms for name in names]


def contact_names(problem: Problem) -> list[str]:
    """Names of the contacts, in the solver's order: friction elements, then unilateral ones."""
    return [
        section if len(group) == 1 else f"{section}.{name}"
        for section in ("friction", "contact")
        for group in [problem.section(section)]
        for name in group
    ]


def find_contact(name: str, contacts: list[str]) -> int | None:
    """Index of a contact by its full or own name; an empty name is that of the only one."""
    matches = [i for i, n in enumerate(contacts) if name in (n, n.rpartition(".")[2])]
    if not name and len(contacts) == 1:
        return 0
    return matches[0] if len(matches) == 1 else None


def _of_dof(problem: Problem, field: str, name: str) -> Signal:
    base = "rad" if problem.dofs[name] == "rotation" else "m"
    unit = base + {"q": "", "v": "/s", "a": "/s^2"}[field]
    return Signal(field, list(problem.dofs).index(name), unit)
