"""Functions of time that something outside the mechanics sets: measured inputs, controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jfric.system.description import AbstractProblem
from jfric.system.fields import Scalar
from jfric.system.functions import AbstractFunction, Components


class Held(AbstractFunction):
    """Input ``name`` from one sample to the next: ``f(t) = value + slope (t - start)``, or the
    constant ``value`` where there is no slope."""

    name: str = eqx.field(static=True)
    value: Scalar = 0.0
    slope: Scalar | None = None
    start: Scalar = 0.0

    def components(self, t):
        if self.slope is None:
            return Components([self.value], [])
        return Components([self.value + self.slope * (t - self.start), self.slope], [])

    def breakpoints(self):
        return jnp.zeros((0,))


def with_held(problem: Any, slots: Mapping[str, tuple[str, str, str]], *, lines: bool = True):
    """``problem`` with a :class:`Held` at each of ``slots``: section, name and field by path.
    ``lines``: whether each has a slope."""

    def where(p: AbstractProblem):
        return [getattr(p.elements[s][n], f) for s, n, f in slots.values()]

    zero = jnp.zeros((), jnp.result_type(float))
    pieces = [Held(path, zero, zero if lines else None, zero) for path in slots]
    return eqx.tree_at(
        where, problem, pieces, is_leaf=lambda x: isinstance(x, AbstractFunction) or x is None
    )


def hold(tree, pieces: Mapping[str, Held]):
    """``tree`` with every :class:`Held` replaced by the one of its name in ``pieces``."""
    return jax.tree.map(
        lambda x: pieces[x.name] if isinstance(x, Held) else x,
        tree,
        is_leaf=lambda x: isinstance(x, Held),
    )


def held_names(tree) -> Iterable[str]:
    """Names of the :class:`Held` in ``tree``."""
    leaves = jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, Held))
    return [x.name for x in leaves if isinstance(x, Held)]
