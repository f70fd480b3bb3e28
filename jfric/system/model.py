"""A problem built for solvers: its start complete and checked, its contacts as a table."""

from __future__ import annotations

import dataclasses
import operator
import weakref
from typing import Any, NamedTuple

import jax
from jax.core import eval_context

from jfric.errors import ProblemError
from jfric.numerics.printing import Shown, printable
from jfric.system.contacts import unilateral_contacts
from jfric.system.direction import Direction
from jfric.system.inertia import is_concrete
from jfric.system.joint_equations import joint_equations
from jfric.system.problem import InitialState, Problem
from jfric.system.start_checks import (
    assembled_start,
    require_consistent_joints,
    without_penetration,
)
from jfric.system.state_function_checks import require_independent


class ContactLine(NamedTuple):
    """One contact of a description: a line of :attr:`Model.contacts`.

    ``kind``: ``"friction"`` with a given normal force, ``"pin"``, or ``"unilateral"``; ``normal``
    and ``tangent``: directions, or what replaces them, empty where there is none; ``law`` and
    ``belt``: names of their classes.
    """

    name: str
    kind: str
    normal: str
    tangent: str
    law: str
    belt: str


@printable
class Model(Problem):
    """A ``problem`` (:class:`jfric.Problem`) built for solvers: the start is complete and checked.

    Parts of the start that are not given meet the joints, contacts do not penetrate, and velocities
    that the user defines are independent. Solvers, sweeps, fits, orbits and statics build a problem
    each time they are given one, and take a model as it is. A model is a problem: parameters are
    set in it as in any (starts follow the joints again), and it can be mapped, differentiated and
    written to a file. A printed model shows its contacts.

    Raises :class:`jfric.ProblemError` for a start that contacts and joints do not allow. A
    pendulum whose height is not given::

        >>> pendulum = jfric.Problem(
        ...     [],
        ...     {
        ...         "body": {"rod": jfric.Body(1.0, 0.1, angle=0.5, points={"top": (0.0, 1.0)})},
        ...         "pin": jfric.Pin(("ground.o", "rod.top")),
        ...         "ground": jfric.Ground({"o": (0.0, 0.0)}),
        ...         "gravity": jfric.Gravity(9.81),
        ...     },
        ... )
        >>> model = jfric.build(pendulum)
        >>> float(pendulum.initial["rod_y"].q), round(float(model.initial["rod_y"].q), 6)
        (0.0, -0.877583)
    """

    def __init__(self, problem: Problem):
        for field in dataclasses.fields(Problem):
            setattr(self, field.name, getattr(problem, field.name))
        if not is_concrete(problem):
            return
        # A concrete problem may be used while something else is traced.
        with eval_context():
            require_independent(problem)
            states, seen = assembled_start(problem)
            changed = {dof: InitialState(*state) for dof, state in states.items()}
            self.initial = self.initial | changed
            for dof, q in without_penetration(self).items():
                self.initial[dof] = InitialState(q, self.initial[dof].v)
            if seen is not None:
                require_consistent_joints(problem.resolved(), seen)

    @property
    def contacts(self) -> tuple[ContactLine, ...]:
        """All contacts in the order of results: friction with a given normal force, friction of
        pins, then unilateral contacts."""
        pins = self.bearings()
        found = [
            _line(name, "pin" if name in pins else "friction", x)
            for name, x in self.friction_rows().items()
        ]
        found += [_line(name, "unilateral", x) for name, x in unilateral_contacts(self).items()]
        return tuple(found)

    def _shown(self) -> Shown:
        with eval_context():
            held = len(joint_equations(self.resolved())) if is_concrete(self) else 0
        title = f"Model: {', '.join(self.dofs)}; contacts: {len(self.contacts)}"
        title += f", equations of joints: {held}" if held else ""
        columns = ContactLine._fields if self.contacts else ()
        return Shown(title, columns, [*self.contacts])


def build(problem: Problem) -> Model:
    """The :class:`jfric.Model` of ``problem``; a model is returned as it is.

    Call this once where many runs begin with the same description: everything that depends only on
    the start is then computed and checked once. Under tracing, where numbers are not known,
    nothing is checked; runs get a status. Raises :class:`jfric.ProblemError` for a start that
    contacts and joints do not allow::

        >>> model = jfric.build(problem)
        >>> print(model)
        Model: u; contacts: 1
        name      kind      normal  tangent  law      belt
        friction  friction          u        Coulomb
        >>> float(jfric.simulate(model).final.q[0]) == float(jfric.simulate(problem).final.q[0])
        True
    """
    if isinstance(problem, Model):
        return problem
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"problem: found {type(problem).__name__}, needs a jfric.Problem, such as "
            "jfric.load(FILE)"
        )
    leaves, structure = jax.tree.flatten(problem)
    key = id(problem)
    kept = _BUILT.get(key)
    if kept is not None and kept.structure == structure and _same(kept.leaves, leaves):
        return kept.model
    model = Model(problem)
    if is_concrete(problem):
        living = weakref.ref(problem, lambda _: _BUILT.pop(key, None))
        _BUILT[key] = _Built(living, leaves, structure, model)
    return model


class _Built(NamedTuple):
    """A problem that was built, and its contents at that time."""

    problem: weakref.ref
    leaves: list[Any]
    structure: Any
    model: Model


#: Models by the identity of their problems, as long as these live: a run from a description that
#: was run before is then no slower than one from its model.
_BUILT: dict[int, _Built] = {}


def _same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


def _line(name: str, kind: str, element) -> ContactLine:
    normal, tangent = getattr(element, "normal", None), getattr(element, "tangent", None)
    gap = getattr(element, "gap", None)
    tangent = getattr(element, "direction", tangent)
    place = getattr(element, "point", None) or ""
    return ContactLine(
        name,
        kind,
        _words(normal) or _words(getattr(gap, "function", None)) or place,
        _words(tangent) or _words(element.sliding) or (place if element.law is not None else ""),
        "" if element.law is None else type(element.law).__name__,
        "" if element.belt is None else type(element.belt).__name__,
    )


def _words(what) -> str:
    """A direction or function on one line."""
    if isinstance(what, Direction):
        if what.signs is None:
            return ", ".join(what.names)
        parts = sorted(zip(what.signs, what.names, strict=True), reverse=True)
        return " ".join(f"{'- ' if s < 0 else ''}{x}" for s, x in parts)
    if what is None or isinstance(what, str):
        return what or ""
    return getattr(what, "__name__", type(what).__name__)
