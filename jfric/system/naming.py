"""One naming of all numbers of a problem: ``section.name.field``.

An element that was given without a name has none in its path (``friction.mu``). Paths do not
depend on what else is in the problem; results, messages and files show them in full. Input may
leave out the name of the only element of a section (``friction.mu`` for ``friction.floor.mu``)
and that of the only degree of freedom (``initial.q`` for ``initial.u.q``). Sweeps, fits,
continuation and the command line's ``--set`` all use these names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from jfric.errors import ProblemError, close_matches, quoted
from jfric.system.description import AbstractProblem, accepted_labels, element_label
from jfric.system.dimensions import (
    LAW_FIELDS,
    dimension,
    list_dimensions,
    matrix_dimension,
)
from jfric.system.direction import Direction, kind, measure
from jfric.system.elements import SECTIONS
from jfric.system.expression import Expression, is_expression
from jfric.system.fields import UnitText, about, scalar
from jfric.system.functions import AbstractFunction, Constant
from jfric.system.units import DIMENSIONS, Dimension, UnitError, expected, has_unit, rate_of

P = TypeVar("P", bound=AbstractProblem)
#: Where the start of a body is, by what its fields are called.
_STARTS = {
    **{"at.0": "x.q", "at.1": "y.q", "angle": "phi.q"},
    **{"v.0": "x.v", "v.1": "y.v", "omega": "phi.v"},
}

#: What the numbers of a function of time measure, where it is not what the function measures.
_OF_FUNCTIONS = {"omega": "angular velocity", "phase": "angle", "times": "time", "end": "time"}


def parameters(problem: AbstractProblem) -> dict[str, jax.Array | Expression]:
    """Every number of ``problem`` by its path, in the order of the description.

    Fields that refer to shared parameters are :class:`Expression` values; the numbers behind
    them are under ``parameters.<name>``. With the problem of :class:`jfric.Problem`::

        >>> list(jfric.parameters(problem))[:3]
        ['mass.m', 'spring.k', 'spring.x0']
    """
    return {_name(problem, path): leaf for path, leaf in _leaves(problem)}


def get_parameter(problem: AbstractProblem, path: str) -> jax.Array | Expression:
    """The number of ``problem`` at ``path``; raises ``KeyError`` with the nearest valid path.

    With the problem of :class:`jfric.Problem`::

        >>> float(jfric.get_parameter(problem, "friction.mu"))
        0.1
    """
    return parameters(problem)[find_path(problem, path)]


def set_parameters(problem: P, values: Mapping[str, object]) -> P:
    """A copy of ``problem`` with the numbers at the given paths replaced.

    ``values``: paths, full or short, to numbers in SI units or texts with units. Works under
    ``jit``, ``vmap`` and ``grad``. Raises ``KeyError`` for an unknown path, and
    :class:`jfric.ProblemError` for a field that is an expression in shared parameters, for a unit
    of something else, for a number that no system has, as :class:`jfric.Problem` does (of traced
    numbers the run gets a status), and for an array in place of one number:
    :func:`jfric.sweep` takes many values, or ``jax.vmap`` of a function that sets one. With the
    problem of :class:`jfric.Problem`::

        >>> stiffer = jfric.set_parameters(problem, {"spring.k": "6 kN/m", "friction.mu": 0.2})
        >>> float(stiffer.elements["spring"]["spring"].k)
        6000.0
    """
    changed = with_numbers(problem, values)
    changed.require_numbers()
    return changed


def with_numbers(problem: P, values: Mapping[str, object]) -> P:
    """:func:`set_parameters` for numbers that are not looked at, or have sentences elsewhere."""
    wanted = {find_path(problem, path): value for path, value in values.items()}

    def replace(path, leaf):
        name = _name(problem, path)
        if name not in wanted:
            return leaf
        if isinstance(leaf, Expression):
            shared = ", ".join(f"parameters.{r}" for r in leaf.references)
            raise ProblemError(f"{name} is computed as {leaf.text!r}; set {shared} instead")
        return _number(problem, name, wanted[name], leaf)

    changed = jax.tree_util.tree_map_with_path(replace, problem, is_leaf=is_expression)
    # What is set is given: it no longer follows from joints.
    left = [x for x in problem.follows if ".".join(("initial", *x)) not in wanted]
    if len(left) < len(problem.follows):
        object.__setattr__(changed, "follows", tuple(left))
    if "time.end" in wanted:
        object.__setattr__(changed.time, "given", True)
    return changed


def _number(problem: AbstractProblem, name: str, value: Any, leaf: jax.Array) -> jax.Array:
    """``value`` as what stands in the place of ``leaf``."""
    given = scalar(value) if isinstance(value, (str, list, tuple)) else value
    if isinstance(given, UnitText):
        try:
            given = given.number(_dimensions(problem, given, *place(problem, name)))
        except UnitError as error:
            raise ProblemError(f"{name}: {error}") from None
    try:
        found = jnp.asarray(given, leaf.dtype)
    except (TypeError, ValueError):
        raise ProblemError(
            f"{name}: found {quoted(str(value))}, expected "
            f"{expected(path_dimension(problem, name))}"
        ) from None
    if found.ndim == leaf.ndim:
        return found
    wanted = f"an array with {leaf.ndim} axis" if leaf.ndim else "one number"
    many = (
        f"; for many values use jfric.sweep(problem, {{{name!r}: values}}), or jax.vmap of a "
        "function that sets one of them"
    )
    raise ProblemError(
        f"{name}: found an array of shape {found.shape}, expected {wanted}"
        f"{many if found.ndim > leaf.ndim else ''}"
    )


def find_path(problem: AbstractProblem, path: str) -> str:
    """The full path that ``path`` stands for; raises ``KeyError`` naming the nearest valid one."""
    full = [_name(problem, key_path) for key_path, _ in _leaves(problem)]
    if path in full:
        return path
    accepted = dict(_spellings(problem, full))
    if path in accepted:
        return accepted[path]
    close = close_matches(path, [*full, *accepted], cutoff=0.3)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise KeyError(f"no parameter {quoted(path)}{hint} (jfric.parameters lists all)")


def place(problem: AbstractProblem, path: str) -> tuple[str, ...]:
    """Section, name of the element and field of the parameter at the full ``path``, then what lies
    below the field; for what belongs to no element the parts of the path."""
    for key_path, _ in _leaves(problem):
        if _name(problem, key_path) == path:
            keys = tuple(_key(k) for k in key_path)
            return (*keys[1:3], *_field(problem, keys)) if keys[0] == "elements" else keys
    raise KeyError(path)


def path_dimension(problem: AbstractProblem, name: str) -> Dimension | None:
    """Dimension of the parameter or function of time at a full path; None: not known."""
    return _dimension(problem, *(function_paths(problem).get(name) or place(problem, name)))


def _dimension(problem: AbstractProblem, section: str, *place: str) -> Dimension | None:
    """Dimension of the number at a place (see :func:`place`); None: not known."""
    rest = list(place)
    if section == "time":
        return DIMENSIONS["time"]
    if section == "matrices":
        kinds = list(problem.dofs.values())
        if len(rest) == 3 and rest[1].isdigit() and rest[2].isdigit():
            return matrix_dimension(rest[0], kinds[int(rest[1])], kinds[int(rest[2])])
        return matrix_dimension(rest[0], kinds[0], kinds[0]) if len(set(kinds)) == 1 else None
    if section == "initial":
        return dimension("initial", rest[-1], problem.dofs.get(rest[0]))
    if section == "parameters":
        return None
    element, field = problem.section(section)[rest.pop(0)], rest[0]
    if len(rest) > 1 and rest[-1] in _OF_FUNCTIONS:
        return DIMENSIONS[_OF_FUNCTIONS[rest[-1]]]
    if (section, field) == ("friction", "position") and rest[1] not in ("period", "x"):
        return DIMENSIONS["pure number"]
    measures = _field_dimension(problem, section, element, rest)
    # The rate of a ramp; a state's own equation is its field ``rate``.
    return rate_of(measures) if len(rest) > 1 and rest[-1] == "rate" else measures


def _dimensions(problem: AbstractProblem, text: UnitText, section: str, *place: str) -> Any:
    """Dimension of the number given as a text at a place; a list for lists."""
    if section in SECTIONS and isinstance(text.text, tuple) and len(place) == 2:
        element, field = problem.section(section)[place[0]], place[1]
        if about(type(element))[field].form == "list":
            along = kind(element.direction, problem.dofs)
            return list_dimensions(section, field, along, len(text.text))
    return _dimension(problem, section, *place)


def _field_dimension(
    problem: AbstractProblem, section: str, element: Any, rest: list[str]
) -> Dimension | None:
    """Dimension of an element's field, by the direction in which the element acts."""
    field, plane = rest[0], getattr(element, "plane", None)
    slides = field == "belt" or field in LAW_FIELDS
    side = {"contact": "tangent" if slides else "normal"}.get(section, "direction")
    direction = getattr(element, side, None)
    if plane is not None and (slides or section == "friction"):
        # The third belt belongs to the spin.
        direction = element.spin if rest[:2] == ["belt", "2"] else plane[0]
        direction = direction if isinstance(direction, Direction) else None
    if getattr(element, "point", None) is not None:  # a contact between bodies
        return dimension(section, field, "translation")
    if section == "velocity":
        return dimension(section, field, element.kind)
    return dimension(section, field, kind(direction, problem.dofs))


def without_texts(problem: AbstractProblem, part: str) -> Any:
    """The field ``part`` of a problem with numbers in place of texts with units.

    Raises :class:`jfric.ProblemError` for a unit of something else."""

    def number(path, leaf):
        keys = (part, *(_key(k) for k in path))
        if isinstance(leaf, Direction):
            return _direction(problem, _path(problem, keys), leaf)
        if not isinstance(leaf, UnitText):
            return leaf
        place = (*keys[1:3], *_field(problem, keys)) if part == "elements" else keys
        try:
            return leaf.number(_dimensions(problem, leaf, *place))
        except UnitError as error:
            raise ProblemError(f"{_path(problem, keys)}: {error}") from None

    given = getattr(problem, part)
    if not any(isinstance(x, UnitText) for x in jax.tree.leaves(given, is_leaf=_is_text)):
        return given
    return jax.tree_util.tree_map_with_path(
        number, given, is_leaf=lambda x: isinstance(x, (UnitText, Direction))
    )


def _direction(problem: AbstractProblem, where: str, direction: Direction) -> Direction:
    """A direction with numbers for coefficients, and with what their units say of it."""
    given = direction.coefficients or {}
    if not any(map(_is_text, given.values())):
        return direction
    lengths = [k for k, v in problem.parameters.items() if _is_text(v) and has_unit(v.text)]
    texts = {k: v.text if _is_text(v) else 1.0 for k, v in given.items()}
    try:
        numbers = {k: v.number() if _is_text(v) else v for k, v in given.items()}
    except UnitError as error:
        raise ProblemError(f"{where}: {error}") from None
    measures = direction.measures or measure(texts, numbers, where, problem.dofs, lengths)
    return Direction(direction.names, direction.signs, numbers, measures)


def _is_text(x: Any) -> bool:
    return isinstance(x, UnitText)


def function_paths(problem: AbstractProblem) -> dict[str, tuple[str, str, str]]:
    """Full paths of all functions of time (``load.F``): section, name and field of each."""
    return {
        f"{element_label(section, name)}.{field}": (section, name, field)
        for section, group in problem.elements.items()
        for name, element in group.items()
        for field, value in vars(element).items()
        if isinstance(value, AbstractFunction)
    }


def find_function(problem: AbstractProblem, path: str) -> str | None:
    """The full path of the function of time that ``path`` stands for; None where there is none."""
    full = [*function_paths(problem)]
    return path if path in full else dict(_spellings(problem, full)).get(path)


def _spellings(problem: AbstractProblem, full: list[str]) -> Iterator[tuple[str, str]]:
    """Other forms of the paths ``full``, each with its full one."""
    for section, group in problem.elements.items():
        for other, label in accepted_labels(section, group).items():
            start = f"{label}."
            yield from ((f"{other}.{p[len(start) :]}", p) for p in full if p.startswith(start))
    for name in problem.section("body"):
        label = element_label("body", name)
        for path, dof in _STARTS.items():
            yield f"{label}.{path}", f"initial.{name}_{dof}"
    if len(problem.initial) == 1:
        yield from (
            (f"initial.{letter}", f"initial.{dof}.{letter}")
            for dof in problem.initial
            for letter in "qv"
        )


def _leaves(problem: AbstractProblem):
    leaves = jax.tree_util.tree_leaves_with_path(problem, is_leaf=is_expression)
    return [(path, leaf) for path, leaf in leaves if eqx.is_array_like(leaf) or is_expression(leaf)]


def _name(problem: AbstractProblem, path) -> str:
    return _path(problem, tuple(_key(k) for k in path))


def _path(problem: AbstractProblem, keys: tuple[str, ...]) -> str:
    if keys[0] == "elements":
        return ".".join([element_label(*keys[1:3]), *_field(problem, keys)])
    return ".".join(keys)


def _field(problem: AbstractProblem, keys: tuple[str, ...]) -> list[str]:
    """Parts of a number's path that follow the label of the element."""
    section, name = keys[1:3]
    # The law is an implementation detail of an element: friction.mu, not friction.law.mu.
    field = [f for f in keys[3:] if f not in ("law", "coefficients")]
    if field[-1] == "value" and _is_constant(problem.elements[section][name], field[:-1]):
        field = field[:-1]
    return [f for f in field if f != "terms"]


def _is_constant(element: Any, field: list[str]) -> bool:
    for name in field:
        element = element[int(name)] if name.isdigit() else getattr(element, name, None)
    return isinstance(element, Constant)


def _key(key) -> str:
    for attribute in ("name", "key", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)
