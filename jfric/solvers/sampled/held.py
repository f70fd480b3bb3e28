"""Measured inputs between two samples."""

from __future__ import annotations

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp

from jfric.system.fields import Scalar
from jfric.system.functions import AbstractFunction, Components
from jfric.system.problem import Problem


class Held(AbstractFunction):
    """Input ``name`` from one sample to the next: ``f(t) = value + slope (t - start)``."""

    name: str = eqx.field(static=True)
    value: Scalar = 0.0
    slope: Scalar = 0.0
    start: Scalar = 0.0

    def components(self, t):
        return Components([self.value + self.slope * (t - self.start), self.slope], [])

    def breakpoints(self):
        return jnp.zeros((0,))


def with_held(problem: Problem, slots: Mapping[str, tuple[str, str, str]]) -> Problem:
    """``problem`` with a :class:`Held` at each of ``slots``: section, name and field by path."""

    def where(p):
        return [getattr(p.elements[s][n], f) for s, n, f in slots.values()]

    pieces = [Held(path, jnp.zeros(()), jnp.zeros(()), jnp.zeros(())) for path in slots]
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
