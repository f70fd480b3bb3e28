"""Names of all numbers of a problem: ``section.name.field``.

An element that was given without a name has none in its path (``friction.mu``). Paths do not
depend on the rest of the problem; results, messages and files show them in full. Input may
leave out the name of the only element of a section (``friction.mu`` for ``friction.floor.mu``)
and that of the only degree of freedom (``initial.q`` for ``initial.u.q``). Sweeps, fits,
continuation and the command line's ``--set`` all use these names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from jfric.errors import ProblemError, close_matches, quoted
from jfric.system.description import AbstractProblem, accepted_labels, element_label
from jfric.system.direction import Direction, kind, measure
from jfric.system.expression import Expression, is_expression
from jfric.system.fields import POWERS, About, UnitText, about, scalar
from jfric.system.functions import AbstractFunction, Constant
from jfric.system.units import DIMENSIONS, Dimension, UnitError, expected, has_unit

#: The start of a degree of freedom.
START = {
    "q": About(("length", "angle")),
    "v": About(("velocity", "angular velocity")),
}
#: Entries of full matrices, where both coordinates, one of them, or none is a translation.
MATRICES = {
    "M": ("mass", "mass times length", "moment of inertia"),
    "C": ("damping", "impulse", "rotational damping"),
    "K": ("stiffness", "force", "rotational stiffness"),
}


def kind_of(element: Mapping[str, Any], field: About, dofs: Mapping[str, str]) -> str | None:
    """Kind of motion (translation or rotation) along which a field of an element is measured; None
    where that is not known. ``element``: its fields."""
    if element.get("point") is not None:
        return "translation"  # a contact between bodies
    along, plane = element.get(field.along), element.get("plane")
    if isinstance(plane, tuple) and plane and field.along != "normal":
        along = plane[0]  # sliding has one dimension along both directions
    if isinstance(along, str):
        return along
    return kind(along if isinstance(along, Direction) else None, dofs)


def power_dimension(power: int, of_kind: str | None) -> Dimension | None:
    """Dimension of a force divided by ``x^power``, where it is known."""
    if of_kind is None or of_kind == "rotation":
        return DIMENSIONS["torque"] if of_kind else None
    unit = f"N/m^{power}" if power > 1 else "N/m"
    return Dimension(f"coefficient of x^{power}", unit, f"5 k{unit}")


def matrix_dimension(name: str, first: str, second: str) -> Dimension:
    """Dimension of an entry of the matrix ``name``, by the kinds of its two coordinates."""
    return DIMENSIONS[MATRICES[name][(first == "rotation") + (second == "rotation")]]


P = TypeVar("P", bound=AbstractProblem)
#: Paths of the start of a body, by the names of its fields.
_STARTS = {
    **{"at.0": "x.q", "at.1": "y.q", "angle": "phi.q"},
    **{"v.0": "x.v", "v.1": "y.v", "omega": "phi.v"},
}


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
    of another dimension, for a number that :class:`jfric.Problem` does not allow (with traced
    numbers the run gets a status), and for an array in place of one number: for many values use
    :func:`jfric.sweep`, or ``jax.vmap`` of a function that sets one. With the
    problem of :class:`jfric.Problem`::

        >>> stiffer = jfric.set_parameters(problem, {"spring.k": "6 kN/m", "friction.mu": 0.2})
        >>> float(stiffer.elements["spring"]["spring"].k)
        6000.0
    """
    changed = with_numbers(problem, values)
    changed.require_numbers()
    return changed


def with_numbers(problem: P, values: Mapping[str, object]) -> P:
    """A copy of ``problem`` as by :func:`set_parameters`, without checks of the numbers."""
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
    # Values that are set are given: they no longer follow from joints.
    left = [x for x in problem.follows if ".".join(("initial", *x)) not in wanted]
    if len(left) < len(problem.follows):
        object.__setattr__(changed, "follows", tuple(left))
    if "time.end" in wanted:
        object.__setattr__(changed.time, "given", True)
    return changed


def _number(problem: AbstractProblem, name: str, value: Any, leaf: jax.Array) -> jax.Array:
    """The array for ``value`` that replaces ``leaf``."""
    given = scalar(value) if isinstance(value, (str, list, tuple)) else value
    if isinstance(given, UnitText):
        try:
            given = given.number(_dimensions(problem, given, _keys(problem, name)))
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
    # Paths as they are listed come first, other spellings of them second.
    close = close_matches(path, full, cutoff=0.3) or close_matches(path, accepted, cutoff=0.3)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise KeyError(f"no parameter {quoted(path)}{hint}; jfric show or jfric.parameters lists all")


def path_dimension(problem: AbstractProblem, name: str) -> Dimension | None:
    """Dimension of the parameter or function of time at a full path; None: not known."""
    function = function_paths(problem).get(name)
    return _dimension(problem, ("elements", *function) if function else _keys(problem, name))


def _keys(problem: AbstractProblem, path: str) -> tuple[str, ...]:
    """Names of fields and keys that lead to the parameter at the full ``path``."""
    for key_path, _ in _leaves(problem):
        if _name(problem, key_path) == path:
            return tuple(map(_key, key_path))
    raise KeyError(path)


def _dimension(problem: AbstractProblem, keys: Sequence[str]) -> Dimension | None:
    """Dimension of the number that ``keys`` lead to; None: not known."""
    part, *rest = keys
    if part == "elements":
        field, of_kind, inside = _field_of(problem, *rest)
        return field.dimension(of_kind, inside)
    if part == "time":
        return DIMENSIONS["time"]
    if part == "matrices":
        kinds = list(problem.dofs.values())
        if len(rest) == 3 and rest[1].isdigit() and rest[2].isdigit():
            return matrix_dimension(rest[0], kinds[int(rest[1])], kinds[int(rest[2])])
        return matrix_dimension(rest[0], kinds[0], kinds[0]) if len(set(kinds)) == 1 else None
    if part == "initial":
        return START[rest[-1]].dimension(problem.dofs.get(rest[0]))
    if part == "parameters":
        return _shared_dimension(problem, rest[0])
    return None


def _shared_dimension(problem: AbstractProblem, name: str) -> Dimension | None:
    """Dimension of the fields that are this shared parameter alone; None where they differ."""
    alone = (f"${name}", f"-${name}")
    found = {
        _dimension(problem, tuple(map(_key, path)))
        for path, leaf in _leaves(problem)
        if isinstance(leaf, Expression) and leaf.text.replace(" ", "") in alone
    }
    return found.pop() if len(found) == 1 else None


def _dimensions(problem: AbstractProblem, text: UnitText, keys: Sequence[str]) -> Any:
    """Dimension of a number given as a text; for coefficients of powers one for each number."""
    if isinstance(text.text, tuple) and keys[0] == "elements":
        field, of_kind, _ = _field_of(problem, *keys[1:])
        if field.measures == (POWERS, POWERS):
            return [power_dimension(i, of_kind) for i, _ in enumerate(text.text, 1)]
    return _dimension(problem, keys)


def _field_of(
    problem: AbstractProblem, section: str, name: str, *keys: str
) -> tuple[About, str | None, Dimension | None]:
    """The innermost field that ``keys`` of an element lead to, the kind along which it is measured,
    and the dimension of the field around it."""
    value: Any = problem.section(section)[name]
    field, inside, of_kind = About(), None, None
    for i, key in enumerate(keys):
        if isinstance(value, (tuple, list)):
            value = value[int(key)]
            # The third belt belongs to the spin.
            of_kind = "rotation" if (field.form, key) == ("belt", "2") else of_kind
        elif isinstance(value, Mapping):
            value = value.get(key)
        elif dataclasses.is_dataclass(value):
            inside, field = field.dimension(of_kind, inside), about(type(value))[key]
            if i == 0:
                of_kind = kind_of(vars(problem.section(section)[name]), field, problem.dofs)
            value = getattr(value, key)
    return field, of_kind, inside


def without_texts(problem: AbstractProblem, part: str) -> Any:
    """The field ``part`` of a problem with numbers in place of texts with units.

    Raises :class:`jfric.ProblemError` for a unit of another dimension."""

    def number(path, leaf):
        keys = (part, *(_key(k) for k in path))
        if isinstance(leaf, Direction):
            return _direction(problem, _path(problem, keys), leaf)
        if not isinstance(leaf, UnitText):
            return leaf
        try:
            return leaf.number(_dimensions(problem, leaf, keys))
        except UnitError as error:
            raise ProblemError(f"{_path(problem, keys)}: {error}") from None

    given = getattr(problem, part)
    if not any(isinstance(x, UnitText) for x in jax.tree.leaves(given, is_leaf=_is_text)):
        return given
    return jax.tree_util.tree_map_with_path(
        number, given, is_leaf=lambda x: isinstance(x, (UnitText, Direction))
    )


def _direction(problem: AbstractProblem, where: str, direction: Direction) -> Direction:
    """A direction with numbers for coefficients, and the kind that their units determine."""
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
