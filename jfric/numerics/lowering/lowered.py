"""A function of small arrays as a program of scalars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_jaxpr
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Jaxpr

from jfric.numerics.by_batch import with_rates
from jfric.numerics.lowering.emission import emit
from jfric.numerics.lowering.graph import Graph, Value, value_of
from jfric.numerics.lowering.interpreter import Branch, interpret, stays_whole
from jfric.numerics.lowering.structure import Constants, Known


class Lowered:
    """``state, buffers = function(given, state, buffers)``, one round of a loop, in scalars.

    What is ``given`` and the state are taken apart by :meth:`split`; buffers (outputs, event logs)
    stay arrays. ``known``: entries of ``given`` that are constants, see
    :func:`jfric.numerics.lowering.constants_of`. Forward derivatives of any order are lowered, too:
    those of the same function; what has no derivative by structure stays a known zero. Without
    ``kernels`` the scalars are JAX's own operations, and so are their derivatives. ``traced``: the
    program, where it is known; what a closure uses are then its constants.
    """

    def __init__(
        self,
        function: Callable,
        given,
        state,
        buffers,
        known: Known,
        *,
        kernels: bool = True,
        traced: Jaxpr | None = None,
    ):
        self.function, self.known, self.kernels = function, known, kernels
        #: Entries of what a closure uses from around it.
        self.given: list = []
        self.examples = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)),
            (given, state, buffers),
        )
        given, state, buffers = self.examples
        if traced is None:
            closed, shapes = jax.make_jaxpr(function, return_shape=True)(given, state, buffers)
            if jax.tree.structure(shapes) != jax.tree.structure((state, buffers)):
                raise TypeError("a round of a loop returns a state and buffers like its arguments")
            program, fixed = closed.jaxpr, closed.consts
        else:
            program, fixed = traced, []
        g, inputs, arguments = Graph(plain=not kernels), [], []
        constants = iter(known)
        for tree, kind in ((given, "given"), (state, "state"), (buffers, "buffer")):
            for x in jax.tree.leaves(tree):
                hints = next(constants) if kind == "given" else [None] * math.prod(x.shape)
                if kind == "buffer" or (kind == "given" and stays_whole(g, x.shape)):
                    inputs.append(g.input(x.shape, x.dtype))
                    arguments.append(Value(x.shape, x.dtype, buffer=inputs[-1]))
                    continue
                nodes = [g.input((), x.dtype) for _ in range(math.prod(x.shape))]
                inputs += nodes
                entries = [n if h is None else h for n, h in zip(nodes, hints, strict=True)]
                arguments.append(value_of(entries, x.shape, x.dtype))
        # What a closure uses comes first.
        own = len(program.constvars) - len(fixed)
        found = interpret(g, program, [*arguments[:own], *fixed], arguments[own:])
        self.n_state = len(jax.tree.leaves(state))
        outputs = []
        for i, x in enumerate(found):
            if i >= self.n_state:
                outputs.append(g.whole(x))
            elif x.parts is None:
                outputs += g.apart(x.buffer, x.shape, x.dtype).entries
            else:
                outputs += x.entries
        self.branch = Branch(g, inputs, outputs)
        leaves = [x.dtype for x in jax.tree.leaves(state) for _ in range(math.prod(x.shape))]
        self.kinds = [((), d) for d in leaves]
        self.count = len(leaves)
        self.kinds += [(x.shape, x.dtype) for x in jax.tree.leaves(buffers)]
        self._derivative: dict = {}

    @classmethod
    def of_closure(
        cls, function: Callable, state, buffers, constants: Constants, *, kernels: bool = True
    ) -> Lowered:
        """The same for ``function(state, buffers)``; what is :attr:`given` are the arrays that it
        uses from around it."""
        closed = jax.make_jaxpr(function)(state, buffers)
        structure = jax.tree.structure((state, buffers))
        used = [jnp.asarray(c) for c in closed.consts]

        def opened(given, state, buffers):
            found = eval_jaxpr(closed.jaxpr, given, *jax.tree.leaves((state, buffers)))
            return jax.tree.unflatten(structure, found)

        known = [constants.of(c) for c in closed.consts]
        result = cls(opened, used, state, buffers, known, kernels=kernels, traced=closed.jaxpr)
        whole = [stays_whole(result.branch.graph, c.shape) for c in used]
        parts = [[c] if w else result.split(c) for c, w in zip(used, whole, strict=True)]
        result.given = [x for own in parts for x in own]
        return result

    @property
    def operations(self) -> int:
        """Number of operations in a round."""
        return len(self.branch.graph.nodes) - len(self.branch.inputs)

    def split(self, tree) -> list:
        """The entries of a tree of arrays."""
        return [
            x[tuple(int(i) for i in place)]
            for x in map(jnp.asarray, jax.tree.leaves(tree))
            for place in np.ndindex(x.shape)
        ]

    def join(self, entries: Sequence):
        """The state of these entries."""
        leaves, start = [], 0
        for x in jax.tree.leaves(self.examples[1]):
            size = math.prod(x.shape)
            own = entries[start : start + size]
            start += size
            stacked = jnp.stack(own) if size else jnp.zeros((0,), x.dtype)
            leaves.append(stacked.reshape(x.shape))
        return jax.tree.unflatten(jax.tree.structure(self.examples[1]), leaves)

    def __call__(self, given: Sequence, entries: Sequence, buffers):
        """One round: entries of the state and buffers from those before."""
        structure = jax.tree.structure(buffers)
        found = self._flat(*given, *entries, *jax.tree.leaves(buffers))
        return found[: self.count], jax.tree.unflatten(structure, found[self.count :])

    def _flat(self, *flat):
        def run(*flat):
            found = emit(self.branch, flat, kernels=self.kernels)
            return [
                jnp.broadcast_to(jnp.asarray(x, dtype), shape)
                for x, (shape, dtype) in zip(found, self.kinds, strict=True)
            ]

        if not self.kernels:
            return run(*flat)
        own = jax.custom_jvp(run)
        rule: Any = self._with_derivatives
        own.defjvp(rule, symbolic_zeros=True)
        return own(*flat)

    def _with_derivatives(self, primals, tangents):
        """The round and its derivatives, as a lowered round of twice the state."""
        inputs = self.branch.inputs
        differs = [np.issubdtype(n.dtype, np.inexact) for n in inputs]
        zero = tuple(isinstance(t, SymbolicZero) for t in tangents)
        n_buffers = len(jax.tree.leaves(self.examples[2]))
        n_given = len(inputs) - self.count - n_buffers
        if zero not in self._derivative:
            self._derivative[zero] = self._lowered_derivative(zero[:n_given])
        lowered = self._derivative[zero]

        end = n_given + self.count
        places = [i for i, d in enumerate(differs) if d]

        def both(primals, rates):
            moving = dict(zip(places, rates, strict=True))

            def part(start, stop):
                own = [moving[i] for i in range(start, stop) if differs[i]]
                return [*primals[start:stop], *own]

            found = lowered._flat(*part(0, n_given), *part(n_given, end), *part(end, len(inputs)))
            state, rest = found[: lowered.count], found[lowered.count :]
            values = [*state[: self.count], *rest[:n_buffers]]
            return values, [*state[self.count :], *rest[n_buffers:]]

        directions = [
            jnp.zeros(inputs[i].shape, inputs[i].dtype) if zero[i] else tangents[i] for i in places
        ]
        values, rates = with_rates(lambda x: self._flat(*x), both, list(primals), directions)
        moved = iter(rates)
        return values, [
            next(moved) if np.issubdtype(d, np.inexact) else np.zeros(s, jax.dtypes.float0)
            for s, d in self.kinds
        ]

    def _lowered_derivative(self, zero: Sequence[bool]) -> Lowered:
        """The round of ``(given, rates), (state, rates), (buffers, rates)``."""

        def inexact(tree):
            return eqx.filter(tree, lambda x: jnp.issubdtype(x.dtype, jnp.inexact))

        def function(given, state, buffers):
            pairs = (given, state, buffers)
            values = tuple(p[0] for p in pairs)
            rates = tuple(_filled(p[0], p[1]) for p in pairs)
            found, moved = jax.jvp(self.function, values, rates)
            return tuple((x, inexact_rates(x, dx)) for x, dx in zip(found, moved, strict=True))

        def inexact_rates(x, dx):
            return jax.tree.map(
                lambda a, b: b if jnp.issubdtype(a.dtype, jnp.inexact) else None, x, dx
            )

        example = tuple((x, inexact(x)) for x in self.examples)
        known = [*self.known]
        start = 0
        for x in jax.tree.leaves(self.examples[0]):
            size = math.prod(x.shape)
            if jnp.issubdtype(x.dtype, jnp.inexact):
                own = zero[start : start + size]
                known.append([np.zeros((), x.dtype) if z else None for z in own])
            start += size
        given, state, buffers = example
        return Lowered(function, given, state, buffers, known)


def _filled(values, rates):
    """Rates of all leaves: those of numbers that are not real have none."""
    leaves, structure = jax.tree.flatten(values)
    moving = iter(jax.tree.leaves(rates))
    return jax.tree.unflatten(
        structure,
        [
            next(moving)
            if jnp.issubdtype(x.dtype, jnp.inexact)
            else np.zeros(x.shape, jax.dtypes.float0)
            for x in leaves
        ],
    )
