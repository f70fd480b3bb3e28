"""Functions of small arrays as operations on scalars, for the body of a scan over many steps.

No kernels are made: XLA compiles a loop whose carry is one short vector to a piece of machine code.
The operations are JAX's own, and so are their derivatives of both kinds and their batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.lowering.emission import compute, reached, read
from jfric.numerics.lowering.graph import Entry, Graph, Node, value_of
from jfric.numerics.lowering.interpreter import interpret


class Scalars:
    """``function(given, *arguments)`` in scalars, called repeatedly with the same ``given``.

    Numbers that depend on ``given`` only are computed once, by :meth:`prepare`, and passed on as
    one vector; :meth:`part` then gives some of the results. All are trees of arrays. ``given`` and
    ``arguments`` here are only examples of shapes and types.
    """

    def __init__(self, function: Callable, given: Any, *arguments: Any):
        examples = (given, *arguments)
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(*examples)
        self.graph = g = Graph(differentiable=True)
        # Leaves of each argument, and the entries of each leaf.
        self._sizes = [len(jax.tree.leaves(x)) for x in examples]
        self._inputs: list[list[Node]] = []
        values = []
        for x in jax.tree.leaves(examples):
            nodes = [g.input((), x.dtype) for _ in range(math.prod(x.shape))]
            self._inputs.append(nodes)
            values.append(value_of(nodes, x.shape, x.dtype))
        found = interpret(g, closed.jaxpr, closed.consts, values)
        leaves, self._structure = jax.tree.flatten(shapes)
        entries = [
            g.apart(x.buffer, x.shape, x.dtype).entries if x.parts is None else x.entries
            for x in found
        ]
        self._outputs = [(e, s.shape, s.dtype) for e, s in zip(entries, leaves, strict=True)]
        real = [s.dtype for s in leaves if jnp.issubdtype(s.dtype, jnp.floating)]
        self._dtype = jnp.result_type(*(real or [s.dtype for s in leaves]))
        self._kept = self._frontier([n.number for x in self._inputs[: self._sizes[0]] for n in x])

    def _frontier(self, given: Sequence[int]) -> list[Node]:
        """Scalars that depend on ``given`` only and that other nodes need."""
        fixed = set(given)
        for n in self.graph.nodes:
            parts = [a.number for a in n.args if isinstance(a, Node)]
            if n.op != "input" and fixed.issuperset(parts):
                fixed.add(n.number)
        outputs = [e for entries, _, _ in self._outputs for e in entries if isinstance(e, Node)]
        needed = reached(outputs)
        kept = {e.number: e for e in outputs if e.number in fixed}
        for n in reversed(self.graph.nodes):
            if n.number in fixed or n.number not in needed:
                continue
            for a in n.args:
                if isinstance(a, Node) and a.number in fixed:
                    of_many = a.op in ("cond", "loop")
                    if a.op == "bind":
                        of_many = a.params["eqn"].primitive.multiple_results
                    if a.shape == () and not of_many:
                        kept[a.number] = a
                    else:
                        fixed.remove(a.number)
        return list(kept.values())

    def _entered(self, first: int, leaves: Sequence, needed: set[int]) -> dict[int, Any]:
        """Entries of ``leaves``, the inputs from number ``first`` on, that are ``needed``."""
        return {
            n.number: x[tuple(int(k) for k in place)]
            for x, nodes in zip(leaves, self._inputs[first : first + len(leaves)], strict=True)
            for n, place in zip(nodes, np.ndindex(x.shape), strict=True)
            if n.number in needed
        }

    def prepare(self, given: Any) -> Float[Array, " k"]:
        """Vector of the numbers that depend on ``given`` only and that the results need."""
        found = self._entered(0, jax.tree.leaves(given), reached(self._kept))
        compute(self.graph, self._kept, found)
        numbers = [jnp.asarray(found[n.number], self._dtype) for n in self._kept]
        return jnp.stack(numbers) if numbers else jnp.zeros((0,), self._dtype)

    def part(self, chosen: Callable) -> Part:
        """The function restricted to those of its results in ``chosen(results)``."""
        numbers = list(range(len(self._outputs)))
        tree = chosen(jax.tree.unflatten(self._structure, numbers))
        picked, structure = jax.tree.flatten(tree)
        return Part(self, [self._outputs[i] for i in picked], structure)


class Part:
    """Some results of :class:`Scalars`."""

    def __init__(self, whole: Scalars, outputs: list, structure):
        self.whole, self._outputs, self._structure = whole, outputs, structure
        self._entries: list[Entry] = [e for entries, _, _ in outputs for e in entries]

    def uses(self, number: int) -> bool:
        """Whether a result depends on argument ``number``, counted from one after ``given``."""
        first = sum(self.whole._sizes[:number])
        nodes = self.whole._inputs[first : first + self.whole._sizes[number]]
        return not reached(self._entries).isdisjoint(n.number for x in nodes for n in x)

    def __call__(self, numbers: Float[Array, " k"], *arguments: Any) -> Any:
        """Chosen results, for ``numbers`` from :meth:`Scalars.prepare`."""
        whole = self.whole
        first, given = whole._sizes[0], jax.tree.leaves(arguments)
        needed = reached(self._entries, until={n.number for n in whole._kept})
        found: dict[int, Any] = {
            n.number: numbers[i].astype(n.dtype)
            for i, n in enumerate(whole._kept)
            if n.number in needed
        }
        found |= whole._entered(first, given, needed)
        compute(whole.graph, self._entries, found)
        leaves = []
        for entries, shape, dtype in self._outputs:
            parts = [jnp.asarray(read(e, found), dtype) for e in entries]
            full = jnp.stack(parts) if parts else jnp.zeros((0,), dtype)
            leaves.append(full.reshape(shape))
        return jax.tree.unflatten(self._structure, leaves)
