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

from jfric.errors import close_matches, quoted
from jfric.system.description import AbstractProblem, accepted_labels, element_label
from jfric.system.expression import Expression, is_expression
from jfric.system.functions import AbstractFunction, Constant

P = TypeVar("P", bound=AbstractProblem)
#: Where the start of a body is, by what its fields are called.
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

    ``values``: paths, full or short, to numbers in SI units. Works under ``jit``, ``vmap`` and
    ``grad``. Raises ``KeyError`` for an unknown path, ``ValueError`` for a field that is an
    expression in shared parameters, and :class:`jfric.ProblemError` for a number that no system
    has, as :class:`jfric.Problem` does; of traced numbers the run gets a status. With the problem
    of :class:`jfric.Problem`::

        >>> stiffer = jfric.set_parameters(problem, {"spring.k": 6000.0, "friction.mu": 0.2})
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
            raise ValueError(f"{name} is computed as {leaf.text!r}; set {shared} instead")
        return jnp.asarray(wanted[name], leaf.dtype)

    changed = jax.tree_util.tree_map_with_path(replace, problem, is_leaf=is_expression)
    # What is set is given: it no longer follows from joints.
    left = [x for x in problem.follows if ".".join(("initial", *x)) not in wanted]
    if len(left) < len(problem.follows):
        object.__setattr__(changed, "follows", tuple(left))
    return changed


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
    keys = tuple(_key(k) for k in path)
    if keys[0] == "elements":
        return ".".join([element_label(*keys[1:3]), *_field(problem, keys)])
    return ".".join(keys)


def _field(problem: AbstractProblem, keys: tuple[str, ...]) -> list[str]:
    """What follows the element in the path of a number of it."""
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
