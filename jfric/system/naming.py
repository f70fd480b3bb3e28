"""One naming of all numbers of a problem: ``section.name.field``.

The name is dropped where the section has one element (``friction.mu``); the full path works too.
Sweeps, fits, continuation and the command line's ``--set`` all use these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from jfric.errors import close_matches, quoted
from jfric.system.description import AbstractProblem
from jfric.system.expression import Expression, is_expression
from jfric.system.functions import Constant

P = TypeVar("P", bound=AbstractProblem)


def parameters(problem: AbstractProblem) -> dict[str, jax.Array | Expression]:
    """Every number of ``problem`` by its path, in the order of the description.

    Fields that refer to shared parameters are :class:`Expression` values; the numbers behind
    them are under ``parameters.<name>``. With the problem of :class:`jfric.Problem`::

        >>> list(jfric.parameters(problem))[:3]
        ['mass.m', 'spring.k', 'spring.x0']
    """
    return {_name(problem, path): leaf for path, leaf in _leaves(problem)}


def get_parameter(problem: AbstractProblem, path: str) -> jax.Array | Expression:
    """The number at ``path``; raises ``KeyError`` with the nearest valid path.

    With the problem of :class:`jfric.Problem`::

        >>> float(jfric.get_parameter(problem, "friction.mu"))
        0.1
    """
    return parameters(problem)[find_path(problem, path)]


def set_parameters(problem: P, values: Mapping[str, object]) -> P:
    """A copy of ``problem`` with the numbers at the given paths replaced.

    Works under ``jit``, ``vmap`` and ``grad``. Raises ``KeyError`` for an unknown path and
    ``ValueError`` for a field that is an expression in shared parameters. With the problem of
    :class:`jfric.Problem`::

        >>> stiffer = jfric.set_parameters(problem, {"spring.k": 6000.0, "friction.mu": 0.2})
        >>> float(stiffer.elements["spring"]["spring"].k)
        6000.0
    """
    wanted = {find_path(problem, path): value for path, value in values.items()}

    def replace(path, leaf):
        name = _name(problem, path)
        if name not in wanted:
            return leaf
        if isinstance(leaf, Expression):
            shared = ", ".join(f"parameters.{r}" for r in leaf.references)
            raise ValueError(f"{name} is computed as {leaf.text!r}; set {shared} instead")
        return jnp.asarray(wanted[name], leaf.dtype)

    return jax.tree_util.tree_map_with_path(replace, problem, is_leaf=is_expression)


def find_path(problem: AbstractProblem, path: str) -> str:
    """The canonical form of ``path``; raises ``KeyError`` naming the nearest valid one."""
    names: dict[str, str] = {}
    for key_path, _ in _leaves(problem):
        names[_name(problem, key_path)] = _name(problem, key_path)
        names[_name(problem, key_path, full=True)] = _name(problem, key_path)
    if path in names:
        return names[path]
    close = close_matches(path, names, cutoff=0.3)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise KeyError(f"no parameter {quoted(path)}{hint} (jfric.parameters lists all)")


def _leaves(problem: AbstractProblem):
    leaves = jax.tree_util.tree_leaves_with_path(problem, is_leaf=is_expression)
    return [(path, leaf) for path, leaf in leaves if eqx.is_array_like(leaf) or is_expression(leaf)]


def _name(problem: AbstractProblem, path, *, full: bool = False) -> str:
    keys = [_key(k) for k in path]
    if keys[0] == "elements":
        section, name, *field = keys[1:]
        group = problem.elements[section]
        keep = full or len(group) > 1
        # The law is an implementation detail of an element: friction.mu, not friction.law.mu.
        field = [f for f in field if f not in ("law", "coefficients")]
        element = group[name]
        if field[-1] == "value" and _is_constant(element, field[:-1]):
            field = field[:-1]
        field = [f for f in field if f != "terms"]
        return ".".join([section, *([name] if keep else []), *field])
    if keys[0] == "initial":
        keep = full or len(problem.initial) > 1
        return ".".join(["initial", *([keys[1]] if keep else []), *keys[2:]])
    return ".".join(keys)


def _is_constant(element: Any, field: list[str]) -> bool:
    for name in field:
        element = element[int(name)] if name.isdigit() else getattr(element, name, None)
    return isinstance(element, Constant)


def _key(key) -> str:
    for attribute in ("name", "key", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)
