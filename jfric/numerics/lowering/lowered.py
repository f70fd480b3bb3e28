"""Functions of small arrays as programs of scalars."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer, eval_jaxpr
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Jaxpr
from jaxtyping import Array

from jfric.numerics.by_batch import is_real, with_rates
from jfric.numerics.lowering.emission import emit, shaped
from jfric.numerics.lowering.graph import Entry, Graph, Value, is_constant, value_of
from jfric.numerics.lowering.interpreter import Branch, interpret, stays_whole
from jfric.numerics.tracing import KERNELS, collecting_later, tracing_for

#: Limits on the rates of one trajectory in one program: their number, the number of operations of
#: the program, and the operations of a rate relative to those of the values. Larger programs take a
#: minute to compile.
MAX_RATES, MAX_OPERATIONS, RATE = 4, 30_000, 0.4


class Lowered:
    """One round of a loop in scalars: ``state, buffers = function(given, state, buffers)``.

    ``given`` and the state are decomposed by :meth:`split`; buffers (outputs, event logs) stay
    arrays. ``known``: entries of ``given`` that are constants, see
    :func:`jfric.numerics.lowering.constants_of`. Forward derivatives of any order are lowered, too,
    from the same function; derivatives that vanish by structure stay known zeros. Without
    ``kernels`` the scalars are JAX's own operations, and so are their derivatives. ``traced``: the
    program, where it is known; arrays that a closure uses are then its constants.
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
        #: Entries of the arrays that a closure uses.
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
        # Arrays that a closure uses come first.
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
        """Lowered program of ``function(state, buffers)``; :attr:`given` holds the arrays that the
        function uses from around it, decomposed or whole."""
        with tracing_for(KERNELS if kernels else tracing_for.value):
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
        """Entries of a tree of arrays."""
        return [
            x[tuple(int(i) for i in place)]
            for x in map(jnp.asarray, jax.tree.leaves(tree))
            for place in np.ndindex(x.shape)
        ]

    def join(self, entries: Sequence):
        """State made of these entries."""
        leaves, start = [], 0
        for x in jax.tree.leaves(self.examples[1]):
            size = math.prod(x.shape)
            own = entries[start : start + size]
            start += size
            stacked = jnp.stack(own) if size else jnp.zeros((0,), x.dtype)
            leaves.append(stacked.reshape(x.shape))
        return jax.tree.unflatten(jax.tree.structure(self.examples[1]), leaves)

    def __call__(self, given: Sequence, entries: Sequence, buffers):
        """Entries of the state, and buffers, after one round."""
        found = self._round(*given, *entries, *jax.tree.leaves(buffers))
        return self._with_buffers(found, buffers)

    def repeat(self, goes_on: Callable, tested: Sequence, given: Sequence, entries, buffers):
        """Entries of the state, and buffers, after rounds as long as ``goes_on(tested, state)``.

        ``tested``: arrays that only this test uses.
        """
        flat = [*given, *entries, *jax.tree.leaves(buffers)]
        return self._with_buffers(self._repeat(goes_on, list(tested), flat), buffers)

    def _with_buffers(self, found: list, buffers):
        structure = jax.tree.structure(buffers)
        return found[: self.count], jax.tree.unflatten(structure, found[self.count :])

    def _round(self, *flat):
        return shaped(emit(self.branch, flat, kernels=self.kernels), self.kinds)

    def _repeat(self, goes_on: Callable, tested: list, flat: list) -> list:
        n_given = len(flat) - len(self.kinds)

        def run(tested, flat):
            given = flat[:n_given]
            return jax.lax.while_loop(
                lambda c: goes_on(tested, self.join(c[: self.count])),
                lambda c: self._round(*given, *c),
                flat[n_given:],
            )

        if not self.kernels:
            return run(tested, flat)
        own = jax.custom_jvp(run)
        rule: Any = functools.partial(self._with_derivatives, goes_on)
        own.defjvp(rule, symbolic_zeros=True)
        return own(tested, flat)

    @collecting_later()
    def _with_derivatives(self, goes_on: Callable, primals, tangents):
        """Results and derivatives of the loop, by one lowered loop with a larger state."""
        (tested, flat), (_, changes) = primals, tangents
        n_given, n_tested = len(flat) - len(self.kinds), len(tested)
        zero = tuple(isinstance(t, SymbolicZero) for t in changes[:n_given])
        real = [i for i, n in enumerate(self.branch.inputs) if is_real(n)]

        def values(primals):
            return self._repeat(goes_on, primals[:n_tested], primals[n_tested:])

        def both(count: int):
            lowered = self._derivative.get((zero, count))
            if lowered is None:
                lowered = self._derivative[zero, count] = self._lowered_derivative(zero, count)

            def of(primals, rates):
                arguments = self._beside(primals[n_tested:], dict(zip(real, rates, strict=True)))
                found = lowered._repeat(
                    lambda x, both: goes_on(x, both[0]), primals[:n_tested], arguments
                )
                return self._results(found, count)

            return of

        directions = [
            jnp.zeros(jnp.shape(flat[i]), jnp.result_type(flat[i]))
            if isinstance(changes[i], SymbolicZero)
            else changes[i]
            for i in real
        ]
        room = MAX_OPERATIONS / max(self.operations, 1) - 1.0
        most = min(max(int(room / RATE), 1), MAX_RATES)
        found, rates = with_rates(values, both, [*tested, *flat], directions, most)
        moved = iter(rates)
        return found, [
            next(moved) if jnp.issubdtype(d, jnp.inexact) else np.zeros(s, jax.dtypes.float0)
            for s, d in self.kinds
        ]

    def _leaves(self) -> Iterator[list[tuple[range, bool]]]:
        """Places of each leaf's entries among all (a buffer is one entry), and whether the leaf is
        real: a list for ``given``, one for the state and one for the buffers."""
        start = 0
        for tree, whole in zip(self.examples, (False, False, True), strict=True):
            leaves = []
            for x in jax.tree.leaves(tree):
                size = 1 if whole else math.prod(x.shape)
                leaves.append((range(start, start + size), is_real(x)))
                start += size
            yield leaves

    def _beside(self, flat: Sequence, rates: dict[int, Array]) -> list:
        """Arguments of the lowered derivative: those of this program, followed by their rates."""
        given, state, buffers = self._leaves()
        arguments = []
        for leaves in (given, state):
            arguments += [flat[i] for own, _ in leaves for i in own]
            for own, real in leaves:
                if real and own:
                    parts = jnp.stack([rates[i] for i in own], axis=1).reshape(-1)
                    arguments += list(parts)
        places = [i for own, _ in buffers for i in own]
        return arguments + [flat[i] for i in places] + [rates[i] for i in places if i in rates]

    def _results(self, found: Sequence, count: int) -> tuple[list, list]:
        """State and buffers, and their rates, from the results of the lowered derivative."""
        _, state, buffers = self._leaves()
        values, rates = list(found[: self.count]), []
        at = self.count
        for own, real in state:
            if real and own:
                parts = found[at : at + count * len(own)]
                rates += [jnp.stack(parts[i :: len(own)]) for i in range(len(own))]
                at += len(parts)
        rest = found[at:]
        return [*values, *rest[: len(buffers)]], [*rates, *rest[len(buffers) :]]

    def _lowered_derivative(self, zero: Sequence[bool], count: int) -> Lowered:
        """Lowered round of ``(given, rates), (state, rates), (buffers, rates)``, with ``count``
        rates along the first axis of each."""

        def rates_of(tree):
            return jax.tree.map(
                lambda x: jax.ShapeDtypeStruct((count, *x.shape), x.dtype),
                eqx.filter(tree, lambda x: is_real(x)),
            )

        def function(given, state, buffers):
            pairs = (given, state, buffers)
            values = tuple(p[0] for p in pairs)

            def moved(rates):
                rates = tuple(_filled(x, r) for x, r in zip(values, rates, strict=True))
                found, change = jax.jvp(self.function, values, rates)
                return found, tuple(map(inexact_rates, found, change))

            found, change = jax.vmap(moved, out_axes=(None, 0))(tuple(p[1] for p in pairs))
            return tuple(zip(found, change, strict=True))

        def inexact_rates(x, dx):
            return jax.tree.map(lambda a, b: b if is_real(a) else None, x, dx)

        example = tuple((x, rates_of(x)) for x in self.examples)
        known = [*self.known]
        start = 0
        for x in jax.tree.leaves(self.examples[0]):
            size = math.prod(x.shape)
            if is_real(x):
                own = zero[start : start + size]
                known.append([np.zeros((), x.dtype) if z else None for z in own] * count)
            start += size
        given, state, buffers = example
        return Lowered(function, given, state, buffers, known)


def _filled(values, rates):
    """Rates of all leaves; numbers that are not real have none."""
    leaves, structure = jax.tree.flatten(values)
    moving = iter(jax.tree.leaves(rates))
    return jax.tree.unflatten(
        structure,
        [next(moving) if is_real(x) else np.zeros(x.shape, jax.dtypes.float0) for x in leaves],
    )


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
