"""Entries of arrays that are known from the structure of a system, whatever its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax.core import Tracer

from jfric.numerics.lowering.graph import Entry, Graph, is_constant
from jfric.numerics.lowering.interpreter import interpret

#: For each leaf of a tree its known entries, None for the others.
Known = list[list[np.ndarray | None]]


def constants_of(function: Callable, *example) -> Known:
    """Entries of the leaves of ``function(*example)`` that do not depend on the arguments."""
    closed = jax.make_jaxpr(function)(*example)
    g, arguments = Graph(), []
    for v in closed.jaxpr.invars:
        node = g.input(v.aval.shape, v.aval.dtype)
        arguments.append(g.apart(node, v.aval.shape, v.aval.dtype))
    found = interpret(g, closed.jaxpr, closed.consts, arguments)
    return [[_known(e) for e in ([] if x.parts is None else x.entries)] for x in found]


def _known(e: Entry) -> np.ndarray | None:
    return e if is_constant(e) else None


class Constants:
    """Known entries of the arrays that a closure uses, identified by the arrays themselves."""

    def __init__(self, arrays: Sequence, known: Known):
        # The arrays are kept, as otherwise their identities could become those of others.
        self._found = {id(x): (x, k) for x, k in zip(arrays, known, strict=True)}

    def of(self, x) -> list[np.ndarray | None]:
        """Known entries of an array; all entries of an array that is not traced."""
        if not isinstance(x, Tracer):
            flat = np.asarray(x).reshape(-1)
            return [flat[i, ...] for i in range(flat.size)]
        found = self._found.get(id(x))
        return [None] * int(np.size(x)) if found is None else found[1]
