"""Parts of a problem for assembly, naming and checks; they are not checked here."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp

from jfric.system.bristle import BRISTLES
from jfric.system.expression import Expression, is_expression
from jfric.system.fields import UnitText

#: Elements by section and by name.
Parts = dict[str, dict[str, Any]]


class AbstractComposite(eqx.Module):
    """An element that consists of others: a motor is an inertia, a damper and a torque.

    The equations know the parts alone. Paths of parameters, files and messages know the element
    alone.
    """

    @abc.abstractmethod
    def parts(self, label: str) -> Parts:
        """Elements that act in place of the element called ``label``. The names of those with a
        public section are ``label`` and one more word, which no name of a user holds."""

    @abc.abstractmethod
    def carried(self, label: str) -> tuple[str, ...]:
        """Labels of the parts whose forces are the force of the element, where it is a load."""

    @abc.abstractmethod
    def problems(self) -> Iterator[tuple[str, str]]:
        """Field and message for each contradiction between the fields."""


def computed(function: Callable[..., Any], *numbers: Any) -> Any:
    """``function`` of ``numbers``; NaN as long as one of them is missing or an expression. Only
    structure is read before a problem is checked and its expressions have values."""
    if any(x is None or is_expression(x) or isinstance(x, UnitText) for x in numbers):
        return jnp.nan
    return function(*numbers)


def element_label(section: str, name: str) -> str:
    """Label of an element in results, paths and messages: ``friction.a``; the section's name for an
    element given without a name of its own. The label does not depend on other elements."""
    if "." in name:
        return name  # a part of a composite
    return section if name == section else f"{section}.{name}"


def state_axis(label: str) -> str:
    """Name of the coordinate whose velocity is the state of an element."""
    return f"z.{label}"


def is_state_axis(axis: str) -> bool:
    """Whether a coordinate belongs to the state of an element."""
    return axis.startswith("z.")


def accepted_labels(section: str, group: Mapping[str, Any]) -> dict[str, str]:
    """Names that input may use for elements of a section, each with the label it stands for: the
    label itself, ``section.name``, and the section's name where the section has one element."""
    own = [name for name in group if "." not in name]
    found = {f"{section}.{name}": element_label(section, name) for name in own}
    if len(own) == 1:
        found[section] = element_label(section, own[0])
    labels = [element_label(section, name) for name in group]
    return found | {label: label for label in labels}


def with_components(label: str, element: Any) -> dict[str, Any]:
    """An element by its label, or its components in a plane by theirs: ``contact.1`` and
    ``contact.2``."""
    rows = element.rows()
    if len(rows) == 1:
        return {label: element}
    return {f"{label}.{i}": row for i, row in enumerate(rows, 1)}


def with_short_names(found: Mapping[str, Any]) -> dict[str, Any]:
    """Values by ``form.section.name``, and also by ``form.name`` where that is unique."""
    short: dict[str, list[Any]] = {}
    for name, what in found.items():
        form, _, label = name.partition(".")
        own = label.partition(".")[2]
        if own:
            short.setdefault(f"{form}.{own}", []).append(what)
    return {name: x[0] for name, x in short.items() if len(x) == 1} | dict(found)


# Functions, since each access to a method of a module makes an object.


def _section(elements: dict[str, dict[str, Any]], parts: Parts, name: str) -> dict[str, Any]:
    own = elements.get(name, {})
    return dict(own) | parts[name] if name in parts else own


def _composites(elements: dict[str, dict[str, Any]]) -> dict[str, AbstractComposite]:
    return {
        element_label(section, name): element
        for section, group in elements.items()
        for name, element in group.items()
        if isinstance(element, AbstractComposite)
    }


class AbstractProblem(eqx.Module):
    """The parts of a :class:`jfric.Problem`, for modules that its own checks use."""

    dofs: eqx.AbstractVar[dict[str, str]]
    elements: eqx.AbstractVar[dict[str, dict[str, Any]]]
    initial: eqx.AbstractVar[dict[str, Any]]
    time: eqx.AbstractVar[Any]
    parameters: eqx.AbstractVar[dict[str, Any]]
    matrices: eqx.AbstractVar[Any]
    follows: eqx.AbstractVar[tuple[tuple[str, str], ...]]

    @abc.abstractmethod
    def require_numbers(self) -> None:
        """Raise :class:`jfric.ProblemError` for numbers that are known and not allowed."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the coordinates: degrees of freedom in order, then one for each state of an
        element, which is its velocity."""
        return (*self.dofs, *(state_axis(name) for name in self.states()))

    def states(self) -> dict[str, Any]:
        """Elements with states that are coordinates, by name: labels of elements and of motors, own
        names in the section ``state``."""
        return self.labelled(*BRISTLES) | self.section("state") | self.section("winding")

    @property
    def bases(self) -> tuple[str, ...]:
        """Names of the supports with prescribed motion, in order."""
        return tuple(self.section("base"))

    def section(self, name: str) -> dict[str, Any]:
        """Elements of a section by name, parts of composites last; empty if there are none."""
        return _section(self.elements, self.parts, name)

    def composites(self) -> dict[str, AbstractComposite]:
        """Elements that consist of others, by their label."""
        return _composites(self.elements)

    @property
    def parts(self) -> Parts:
        """Elements that composites consist of, by section and by name."""
        found = Parts()
        for label, element in _composites(self.elements).items():
            for section, group in element.parts(label).items():
                found[section] = found.get(section, {}) | group
        return found

    def labelled(self, *sections: str) -> dict[str, Any]:
        """Elements of sections (of all by default) by their label, see :func:`element_label`."""
        elements, parts = self.elements, self.parts
        return {
            element_label(section, name): element
            for section in sections or elements
            for name, element in _section(elements, parts, section).items()
        }

    def friction_rows(self) -> dict[str, Any]:
        """Friction elements by the name of their component in results, one for each direction of
        sliding: ``friction.1`` and ``friction.2`` for one in a plane. Then pins and bearings of
        links with friction, by their labels."""
        found = {}
        for label, element in self.labelled("friction").items():
            found |= with_components(label, element)
        return found | {label: friction for label, (_, friction) in self.bearings().items()}

    def bearings(self) -> dict[str, tuple[Any, Any]]:
        """Pins and links with friction on the reaction of their joint, by their labels, and the
        friction element of each."""
        return {
            element_label(section, name): (element, element.friction(name))
            for section in ("pin", "link")
            for name, element in self.section(section).items()
            if element.law is not None
        }

    def start(self) -> tuple[Any, Any, Any]:
        """Time, positions (n,) and velocities (n,) at the start of a resolved problem, as given;
        states of elements are among the velocities."""
        dtype = jnp.result_type(float)
        q, v = (jnp.stack([jnp.asarray(x, dtype) for x in row]) for row in self.start_numbers())
        return jnp.asarray(self.time.start, dtype), q, v

    def start_numbers(self) -> tuple[list[Any], list[Any]]:
        """Positions and velocities of :meth:`start`, one by one."""
        states = [self.initial[dof] for dof in self.dofs]
        own = [element.start() for element in self.states().values()]
        return [s.q for s in states] + [0.0] * len(own), [s.v for s in states] + own

    def resolved(self) -> Self:
        """The problem with every expression replaced by its value."""

        def value(leaf):
            if not isinstance(leaf, Expression):
                return leaf
            return jnp.asarray(leaf.value(self.parameters), jnp.result_type(float))

        return jax.tree.map(value, self, is_leaf=is_expression)
