"""Programs over scalars: nodes, each made once and simplified where constants allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jax.extend.core import Primitive


class Node:
    """A scalar (or a buffer) of the lowered program, and its operation.

    ``op`` is a JAX primitive or the name of an operation of
    :mod:`jfric.numerics.lowering.emission`.
    """

    __slots__ = ("args", "dtype", "number", "op", "params", "shape")

    def __init__(self, op, args, params, shape, dtype, number: int):
        self.op, self.args, self.params = op, args, params
        self.shape, self.dtype, self.number = tuple(shape), np.dtype(dtype), number


#: A node, or a constant without axes.
Entry = Node | np.ndarray


def is_constant(x: Any) -> TypeGuard[np.ndarray]:
    """Whether an entry is a known constant."""
    return isinstance(x, np.ndarray)


def equals(x: Entry, value) -> bool:
    """Whether an entry is known to equal ``value``."""
    return isinstance(x, np.ndarray) and bool(x == value)


class Value:
    """An array of the traced program: one entry for each element, or a single buffer."""

    __slots__ = ("buffer", "dtype", "parts", "shape")

    def __init__(
        self, shape, dtype, *, parts: np.ndarray | None = None, buffer: Entry | None = None
    ):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        # Exactly one of the two is None.
        self.parts: Any = parts
        self.buffer: Any = buffer

    @property
    def entries(self) -> list[Entry]:
        """All entries in order."""
        if self.parts is None:
            raise ValueError("a buffer has no entries")
        return list(self.parts.reshape(-1))


def objects(entries: Sequence, shape) -> np.ndarray:
    """Array of objects of the given ``shape``."""
    result = np.empty(len(entries), object)
    for i, e in enumerate(entries):
        result[i] = e
    return result.reshape(shape)


def value_of(entries: Sequence[Entry], shape, dtype) -> Value:
    """Array of the program with these entries."""
    return Value(shape, dtype, parts=objects(entries, shape))


def literal(x, shape, dtype) -> Value:
    """Array of the program with known elements."""
    full = np.broadcast_to(np.asarray(x), shape).astype(dtype).reshape(-1)
    return value_of([full[i, ...] for i in range(full.size)], shape, dtype)


class Graph:
    """Nodes in the order of their computation."""

    def __init__(self, *, differentiable: bool = False, plain: bool = False):
        self.nodes: list[Node] = []
        #: Whether derivatives are taken of the operations, so that some of them have to stay.
        self.differentiable = differentiable or plain
        #: Whether functions with derivatives of their own and barriers for the compiler
        #: (:func:`jfric.numerics.loops.once`) stay.
        self.plain = plain
        self._made: dict = {}

    def append(self, op, args, params, shape, dtype) -> Node:
        """New node at the end of the program."""
        node = Node(op, tuple(args), params, shape, dtype, len(self.nodes))
        self.nodes.append(node)
        return node

    def input(self, shape, dtype) -> Node:
        """New node whose value is an input."""
        return self.append("input", (), {}, shape, dtype)

    def scalar(self, prim: Primitive, args: Sequence[Entry], params, dtype) -> Entry:
        """Entry for a primitive on scalars: known, simplified, made before, or new."""
        if all(is_constant(a) for a in args):
            return np.asarray(_evaluate(prim, args, params)).astype(dtype)
        rule = SIMPLER.get(prim.name)
        found = None if rule is None else rule(self, args, params)
        if found is not None:
            return found
        key = (prim.name, _frozen(params), tuple(_key(a) for a in args))
        if key[1] is None:
            return self.append(prim, args, params, (), dtype)
        node = self._made.get(key)
        if node is None:
            node = self._made[key] = self.append(prim, args, params, (), dtype)
        return node

    def whole(self, x: Value) -> Entry:
        """Array as a single entry, for operations that need it."""
        if x.buffer is not None:
            return x.buffer
        entries = x.entries
        if all(is_constant(e) for e in entries):
            full = np.asarray([e[()] for e in entries if is_constant(e)], x.dtype)
            return full.reshape(x.shape)
        key = ("pack", x.shape, x.dtype.str, tuple(_key(e) for e in entries))
        node = self._made.get(key)
        if node is None:
            node = self._made[key] = self.append("pack", entries, {}, x.shape, x.dtype)
        return node

    def apart(self, node: Node, shape, dtype) -> Value:
        """Array with one entry for each element of a single node."""
        count = math.prod(shape)
        entries = [self.append("element", (node,), {"index": i}, (), dtype) for i in range(count)]
        return value_of(entries, shape, dtype)


def _key(x: Entry):
    return x.number if isinstance(x, Node) else (x.dtype.str, x.tobytes())


def _frozen(params):
    try:
        key = tuple(sorted(params.items()))
        hash(key)
    except TypeError:
        return None
    return key


def _evaluate(prim: Primitive, args, params):
    function = KNOWN.get(prim.name)
    # NumPy's quotient of integers differs.
    if function is not None and (prim.name != "div" or args[0].dtype.kind == "f"):
        with np.errstate(all="ignore"):
            return function(params, *args)
    with eval_context():
        return np.asarray(prim.bind(*(jnp.asarray(a) for a in args), **params))


def _integer_pow(p, x):
    return np.power(x, p["y"]) if p["y"] >= 0 else 1.0 / np.power(x, -p["y"])


#: Values of primitives whose arguments are known.
KNOWN: dict[str, Callable] = {
    "add": lambda p, x, y: x + y,
    "add_any": lambda p, x, y: x + y,
    "sub": lambda p, x, y: x - y,
    "mul": lambda p, x, y: x * y,
    "div": lambda p, x, y: x / y,
    "max": lambda p, x, y: np.maximum(x, y),
    "min": lambda p, x, y: np.minimum(x, y),
    "and": lambda p, x, y: x & y,
    "or": lambda p, x, y: x | y,
    "not": lambda p, x: ~x,
    "neg": lambda p, x: -x,
    "abs": lambda p, x: np.abs(x),
    "sign": lambda p, x: np.sign(x),
    "eq": lambda p, x, y: x == y,
    "ne": lambda p, x, y: x != y,
    "lt": lambda p, x, y: x < y,
    "le": lambda p, x, y: x <= y,
    "gt": lambda p, x, y: x > y,
    "ge": lambda p, x, y: x >= y,
    "sqrt": lambda p, x: np.sqrt(x),
    "convert_element_type": lambda p, x: x.astype(p["new_dtype"]),
    "integer_pow": _integer_pow,
    "select_n": lambda p, which, *cases: cases[int(which)],
    "stop_gradient": lambda p, x: x,
    "copy": lambda p, x: x,
    "is_finite": lambda p, x: np.isfinite(x),
}


def _add(g: Graph, args, params):
    x, y = args
    if equals(x, 0):
        return y
    return x if equals(y, 0) else None


def _sub(g: Graph, args, params):
    x, y = args
    if equals(y, 0):
        return x
    return g.scalar(jax.lax.neg_p, [y], {}, y.dtype) if equals(x, 0) else None


def _mul(g: Graph, args, params):
    for a, b in (args, args[::-1]):
        if equals(a, 0):
            return a
        if equals(a, 1):
            return b
        if equals(a, -1) and a.dtype.kind == "f":
            return g.scalar(jax.lax.neg_p, [b], {}, b.dtype)
    return None


def _div(g: Graph, args, params):
    x, y = args
    return x if equals(x, 0) or equals(y, 1) else None


def _junction(*, both: bool) -> Callable:
    """Rule of ``and`` (``both``) or ``or``."""

    def rule(g: Graph, args, params):
        for a, b in (args, args[::-1]):
            if equals(a, False):
                return a if both else b
            if a.dtype == bool and equals(a, True):
                return b if both else a
        return args[0] if args[0] is args[1] else None

    return rule


def _select(g: Graph, args, params):
    which, *cases = args
    if is_constant(which):
        return cases[int(which)]
    first = cases[0]
    if all(c is first for c in cases):
        return first
    if all(is_constant(c) for c in cases) and len({c.tobytes() for c in cases}) == 1:
        return first
    if len(cases) != 2 or first.dtype != bool:
        return None
    no, yes = cases
    if equals(no, False):
        return g.scalar(jax.lax.and_p, [which, yes], {}, bool)
    if equals(yes, True):
        return g.scalar(jax.lax.or_p, [which, no], {}, bool)
    if equals(no, True) and equals(yes, False):
        return g.scalar(jax.lax.not_p, [which], {}, bool)
    return None


def _twice(prim: Primitive) -> Callable:
    def rule(g: Graph, args, params):
        return args[0].args[0] if args[0].op is prim else None

    return rule


def _convert(g: Graph, args, params):
    return args[0] if args[0].dtype == params["new_dtype"] else None


def _same(g: Graph, args, params):
    return args[0] if len(args) == 1 or args[0] is args[1] else None


def _stopped(g: Graph, args, params):
    return None if g.differentiable else args[0]


#: Simplification of primitives some of whose arguments are known. A product with a known zero is
#: zero, whatever the other factor is.
SIMPLER: dict[str, Callable] = {
    "add": _add,
    "add_any": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "and": _junction(both=True),
    "or": _junction(both=False),
    "select_n": _select,
    "not": _twice(jax.lax.not_p),
    "neg": _twice(jax.lax.neg_p),
    "max": _same,
    "min": _same,
    "convert_element_type": _convert,
    "stop_gradient": _stopped,
    "copy": _same,
}
