"""Decomposition of a jaxpr into scalars: element by element, sums, and control flow.

Movements of elements (slices, reshapes, transposes, ...) cost nothing: they are done while the
program is rewritten. Primitives without a rule stay operations on whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from jfric.numerics.lowering.graph import Entry, Graph, Node, Value, is_constant, literal, value_of
from jfric.numerics.lowering.movement import MOVEMENTS
from jfric.numerics.lowering.sums import SUMS

#: Primitives on arrays of one shape, element by element.
ELEMENTWISE = {
    "add", "add_any", "sub", "mul", "div", "rem", "max", "min", "and", "or", "xor", "not", "neg",
    "abs", "sign", "eq", "ne", "lt", "le", "gt", "ge", "sqrt", "rsqrt", "exp", "exp2", "log",
    "log1p", "expm1", "tanh", "sin", "cos", "tan", "atan2", "asin", "acos", "atan", "sinh", "cosh",
    "asinh", "acosh", "atanh", "pow", "integer_pow", "select_n", "convert_element_type",
    "stop_gradient", "copy", "is_finite", "floor", "ceil", "round", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "square", "erf", "logistic", "nextafter",
    "cbrt", "lt_to", "le_to", "eq_to",
}  # fmt: skip

#: Primitives that call a function.
CALLS = {"jit", "pjit", "closed_call", "core_call", "remat", "checkpoint"}
CUSTOM = {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}

#: Arrays with an axis of this length stay whole where no kernels are made: one operation for the
#: compiler instead of as many as elements.
LONG = 12
#: Loops with a known number of rounds, up to this number, are unrolled.
WRITTEN_OUT = 64
#: Branches of up to this many operations are both computed, and one is chosen.
BOTH = 400


class Branch:
    """Part of the program with inputs and outputs of its own."""

    def __init__(self, graph: Graph, inputs: list[Node], outputs: list[Entry]):
        self.graph, self.inputs, self.outputs = graph, inputs, outputs


def interpret(g: Graph, jaxpr: Jaxpr, constants, arguments: Sequence[Value]) -> list[Value]:
    """The outputs of ``jaxpr`` as entries of ``g``."""
    values: dict[Any, Value] = {}

    def read(atom: Any) -> Value:
        if isinstance(atom, Literal):
            kind: Any = atom.aval
            return literal(atom.val, kind.shape, kind.dtype)
        return values[atom]

    variable: Any
    for variable, c in zip(jaxpr.constvars, constants, strict=True):
        aval: Any = variable.aval
        values[variable] = c if isinstance(c, Value) else literal(c, aval.shape, aval.dtype)
    values.update(zip(jaxpr.invars, arguments, strict=True))
    for eqn in _needed(jaxpr):
        found = _apply(g, eqn, [read(x) for x in eqn.invars])
        values.update(zip(eqn.outvars, found, strict=True))
    return [read(x) for x in jaxpr.outvars]


def _needed(jaxpr: Jaxpr) -> list:
    """Equations on which the outputs depend."""
    used = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(v in used for v in eqn.outvars):
            kept.append(eqn)
            used.update(v for v in eqn.invars if not isinstance(v, Literal))
    return kept[::-1]


def _apply(g: Graph, eqn, args: list[Value]) -> list[Value]:
    name, params = eqn.primitive.name, eqn.params
    if name in CALLS:
        return _call(g, params.get("jaxpr") or params["call_jaxpr"], args)
    if name in CUSTOM and not g.plain:
        return _call(g, params[CUSTOM[name]], args)
    taken_apart = not any(a.buffer is not None for a in args)
    if name in ELEMENTWISE and taken_apart and not stays_whole(g, eqn.outvars[0].aval.shape):
        return [_elementwise(g, eqn.primitive, params, args, eqn.outvars[0].aval)]
    rule = CONTROL.get(name)
    if rule is None and taken_apart:
        rule = RULES.get(name)
    found = None if rule is None else rule(g, eqn, args)
    return _as_it_is(g, eqn, args) if found is None else found


def _call(g: Graph, inner, args):
    if isinstance(inner, ClosedJaxpr):
        return interpret(g, inner.jaxpr, inner.consts, args)
    return interpret(g, inner, [], args)


def _elementwise(g: Graph, prim, params, args: list[Value], out) -> Value:
    # Scalars and axes of length 1 are broadcast to all elements.
    parts = [np.broadcast_to(a.parts, out.shape).reshape(-1) for a in args]
    found = [g.scalar(prim, entries, params, out.dtype) for entries in zip(*parts, strict=True)]
    return value_of(found, out.shape, out.dtype)


def stays_whole(g: Graph, shape) -> bool:
    """Whether an array of this shape is not decomposed."""
    return g.plain and max(shape, default=0) >= LONG


def _as_it_is(g: Graph, eqn, args: list[Value]) -> list[Value]:
    """Results of the equation on whole arrays; those of a buffer's shape stay whole."""
    outs = [v.aval for v in eqn.outvars]
    entries = [g.whole(a) for a in args]
    buffers = {a.shape for a in args if a.buffer is not None}
    if eqn.primitive.multiple_results:
        node = g.append("bind", entries, {"eqn": eqn}, (), bool)
        nodes = [
            g.append("result", (node,), {"index": i}, o.shape, o.dtype) for i, o in enumerate(outs)
        ]
    else:
        nodes = [g.append("bind", entries, {"eqn": eqn}, outs[0].shape, outs[0].dtype)]
    return [
        Value(o.shape, o.dtype, buffer=node)
        if o.shape and (tuple(o.shape) in buffers or stays_whole(g, o.shape))
        else (g.apart(node, o.shape, o.dtype) if o.shape else value_of([node], (), o.dtype))
        for node, o in zip(nodes, outs, strict=True)
    ]


# -- control flow


def _flat(args: list[Value]) -> list[Entry]:
    return [e for a in args for e in ([a.buffer] if a.parts is None else a.entries)]


def _unknown(args: list[Value]) -> list[Entry]:
    """Entries that become inputs if constants are kept."""
    return [e for e in _flat(args) if not is_constant(e) or e.shape]


def _templates(g: Graph, args: list[Value], fixed: int):
    """A new graph with an input for each entry of ``args``, except for constants in the first
    ``fixed`` of them."""
    inner, inputs, values = Graph(differentiable=g.differentiable, plain=g.plain), [], []
    for k, a in enumerate(args):
        if a.parts is None:
            node = inner.input(a.shape, a.dtype)
            inputs.append(node)
            values.append(Value(a.shape, a.dtype, buffer=node))
            continue
        entries: list[Entry] = []
        for e in a.entries:
            if k < fixed and is_constant(e):
                entries.append(e)
            else:
                node = inner.input((), a.dtype)
                inputs.append(node)
                entries.append(node)
        values.append(value_of(entries, a.shape, a.dtype))
    return inner, inputs, values


def _like(g: Graph, found: list[Value], forms: list[Value]) -> list[Value]:
    """The values ``found``, each whole or decomposed as in ``forms``."""
    result = []
    for f, form in zip(found, forms, strict=True):
        if (f.parts is None) == (form.parts is None):
            result.append(f)
        elif form.parts is None:
            result.append(Value(f.shape, f.dtype, buffer=g.whole(f)))
        else:
            result.append(g.apart(f.buffer, f.shape, f.dtype))
    return result


def _results(g: Graph, node: Node, forms: list[Value], known=None) -> list[Value]:
    """Results of a node as values; ``known``: constants for some of them."""
    found, k, place = [], 0, 0
    for f in forms:
        if f.parts is None:
            made = g.append("result", (node,), {"index": k}, f.shape, f.dtype)
            found.append(Value(f.shape, f.dtype, buffer=made))
            k, place = k + 1, place + 1
            continue
        entries: list[Entry] = []
        for _ in f.entries:
            if known is not None and known[place] is not None:
                entries.append(known[place])
            else:
                entries.append(g.append("result", (node,), {"index": k}, (), f.dtype))
                k += 1
            place += 1
        found.append(value_of(entries, f.shape, f.dtype))
    return found


def _cond(g: Graph, eqn, args):
    (index,), *operands = args[0].entries, *args[1:]
    branches = eqn.params["branches"]
    if is_constant(index):
        return _call(g, branches[min(max(int(index), 0), len(branches) - 1)], operands)
    results = []
    for branch in branches:
        inner, inputs, values = _templates(g, operands, len(operands))
        found = interpret(inner, branch.jaxpr, branch.consts, values)
        results.append((inner, inputs, found))
    # A branch that only passes its values on is a barrier for the compiler.
    barrier = g.plain and not branches[1].jaxpr.eqns and len(operands) > 1
    nodes = [n for inner, _, _ in results for n in inner.nodes]
    plain = all(n.op == "input" or not isinstance(n.op, str) for n in nodes) and not barrier
    if plain and len(nodes) <= BOTH and len(branches) == 2:
        return _both(g, eqn, index, operands)
    forms = results[0][2]
    # A value that is whole in any branch is whole in all.
    for _, _, found in results[1:]:
        forms = [b if b.parts is None else a for a, b in zip(forms, found, strict=True)]
    flat = [_flat(_like(inner, found, forms)) for inner, _, found in results]
    known = [_common([f[i] for f in flat]) for i in range(len(flat[0]))]
    kinds = [
        ((), f.dtype) if f.parts is not None else (f.shape, f.dtype)
        for f in forms
        for _ in ([0] if f.parts is None else f.entries)
    ]
    kept = [i for i, k in enumerate(known) if k is None]
    listed = [
        Branch(inner, inputs, [f[i] for i in kept])
        for (inner, inputs, _), f in zip(results, flat, strict=True)
    ]
    given = _unknown(operands)
    params = {"branches": listed, "kinds": [kinds[i] for i in kept], "barrier": barrier}
    node = g.append("cond", [index, *given], params, (), bool)
    return _results(g, node, forms, known)


def _common(entries: list[Entry]) -> Entry | None:
    """The constant that all entries equal; None if there is none."""
    known = [e for e in entries if is_constant(e)]
    if len(known) < len(entries) or known[0].shape:
        return None
    return known[0] if len({(e.dtype.str, e.tobytes()) for e in known}) == 1 else None


def _both(g: Graph, eqn, index: Entry, operands: list[Value]):
    """Results of both branches, with a choice between them."""
    no, yes = (_call(g, b, operands) for b in eqn.params["branches"])
    params = {"new_dtype": np.dtype(bool), "weak_type": False, "sharding": None}
    which = g.scalar(jax.lax.convert_element_type_p, [index], params, bool)
    found = []
    for a, b in zip(no, yes, strict=True):
        if a.parts is None or b.parts is None:
            return None
        entries = [
            g.scalar(jax.lax.select_n_p, [which, x, y], {}, a.dtype)
            for x, y in zip(a.entries, b.entries, strict=True)
        ]
        found.append(value_of(entries, a.shape, a.dtype))
    return found


def _while(g: Graph, eqn, args):
    p = eqn.params
    nc, nb = p["cond_nconsts"], p["body_nconsts"]
    return _loop(
        g, args[:nc], args[nc : nc + nb], args[nc + nb :], p["body_jaxpr"], p["cond_jaxpr"]
    )


def _scan_sizes(params) -> tuple[int, int]:
    """Number of inputs of a loop that are the same in all rounds, and number of carried ones."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    same, carried, _ = params["ft_in"].unpack()  # from jax 0.12 on
    return len(same.vals), len(carried.vals)


def _scan(g: Graph, eqn, args):
    """Results of an unrolled loop; None where it stays a loop."""
    p = eqn.params
    nb, nc = _scan_sizes(p)
    given, carry, along = args[:nb], args[nb : nb + nc], args[nb + nc :]
    if p["length"] > WRITTEN_OUT or any(x.parts is None for x in along):
        return None
    numbers = range(p["length"])[:: -1 if p["reverse"] else 1]
    rows: dict[int, list[Value]] = {}
    for i in numbers:
        here = [value_of(list(x.parts[i, ...].reshape(-1)), x.shape[1:], x.dtype) for x in along]
        found = interpret(g, p["jaxpr"].jaxpr, p["jaxpr"].consts, [*given, *carry, *here])
        carry, rows[i] = found[:nc], found[nc:]
    stacked = []
    for k, v in enumerate(eqn.outvars[nc:]):
        own = [rows[i][k] for i in range(len(rows))]
        apart = [g.apart(x.buffer, x.shape, x.dtype) if x.parts is None else x for x in own]
        entries = [e for x in apart for e in x.entries]
        stacked.append(value_of(entries, v.aval.shape, v.aval.dtype))
    return [*carry, *stacked]


def _loop(g: Graph, tested, given, carry, body, condition):
    inner, inputs, values = _templates(g, [*given, *carry], len(given))
    found = _like(inner, interpret(inner, body.jaxpr, body.consts, values), carry)
    made = Branch(inner, inputs, _flat(found))
    inner, inputs, values = _templates(g, [*tested, *carry], len(tested))
    test = Branch(inner, inputs, _flat(interpret(inner, condition.jaxpr, condition.consts, values)))
    entries = [_unknown(given), _unknown(tested), _flat(carry)]
    kinds = [(e.shape, e.dtype) for own in entries for e in own]
    sizes = len(entries[0]), len(entries[1])
    params = {"body": made, "test": test, "sizes": sizes, "kinds": kinds}
    node = g.append("loop", [e for own in entries for e in own], params, (), bool)
    return _results(g, node, carry)


def _platform(g: Graph, eqn, args):
    """Index of the general form: kernels need no form for a particular platform."""
    choices = eqn.params["platforms"]
    if g.plain and any(c and "cpu" in c for c in choices):
        return None
    number = next((i for i, c in enumerate(choices) if c is None), len(choices) - 1)
    return [literal(number, (), eqn.outvars[0].aval.dtype)]


CONTROL: dict[str, Callable] = {
    "cond": _cond,
    "while": _while,
    "scan": _scan,
    "platform_index": _platform,
}

RULES: dict[str, Callable] = {**MOVEMENTS, **SUMS}
