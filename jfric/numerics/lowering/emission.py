"""Computation of a lowered program with JAX: scalar operations of one stage become one kernel.

XLA's fusion on a CPU repeats operations that several results share, again and again along a chain
of them. A ``reduce_window`` over windows of one element is one loop over the trajectories of a
batch, whose body computes all results once; its compile time is proportional to the number of
operations. With :data:`jfric.numerics.compilation.VECTORS` this loop is vectorised.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jfric.numerics.compilation import kernel_arrays
from jfric.numerics.lowering.graph import Entry, Graph, Node
from jfric.numerics.lowering.interpreter import Branch


def emit(branch: Branch, arguments: Sequence, *, kernels: bool = True) -> list:
    """Outputs of ``branch`` for these inputs; without ``kernels`` operation by operation."""
    found: dict[int, Any] = {n.number: x for n, x in zip(branch.inputs, arguments, strict=True)}
    if not kernels:
        compute(branch.graph, branch.outputs, found)
        return [read(e, found) for e in branch.outputs]
    needed = reached(branch.outputs)
    nodes = [n for n in branch.graph.nodes if n.number in needed and n.op != "input"]
    stage = _late(nodes, _stages(nodes, found), branch.outputs)
    last: dict[int, int] = {}
    for n in nodes:
        for a in n.args:
            if isinstance(a, Node):
                last[a.number] = max(last.get(a.number, 0), stage[n.number])
    asked = {e.number for e in branch.outputs if isinstance(e, Node)}
    members: dict[int, list[Node]] = {}
    for n in nodes:
        members.setdefault(stage[n.number], []).append(n)
    for level in sorted(members):
        if level % 2:
            for n in members[level]:
                found[n.number] = _compute(n, found)
            continue
        outputs = [n for n in members[level] if n.number in asked or last.get(n.number, 0) > level]
        _kernels(members[level], outputs, found)
    return [read(e, found) for e in branch.outputs]


def compute(graph: Graph, outputs: Sequence[Entry], found: dict[int, Any]) -> None:
    """Add the nodes on which ``outputs`` depend to ``found``, operation by operation."""
    needed = reached(outputs, until=found)
    nodes = [n for n in graph.nodes if n.number in needed and n.number not in found]
    within = _behind_barriers(nodes, outputs)
    inside = {n.number for own in within.values() for n in own}
    for n in nodes:
        if n.number in within:
            found[n.number] = _barrier(n, within[n.number], found)
        elif n.number not in inside:
            found[n.number] = _compute(n, found, kernels=False)


def _behind_barriers(nodes: Sequence[Node], outputs: Sequence[Entry]) -> dict[int, list[Node]]:
    """Scalars that nothing else uses, for each conditional that only passes values on. Computed
    inside the conditional, they are written where they are read, and not copied."""
    users: dict[int, set[int | None]] = {e.number: {None} for e in outputs if isinstance(e, Node)}
    for n in nodes:
        for k, a in enumerate(n.args):
            if isinstance(a, Node):
                # The condition of a conditional is computed before it.
                user = None if n.op == "cond" and k == 0 else n.number
                users.setdefault(a.number, set()).add(user)
    found: dict[int, list[Node]] = {}
    for barrier in nodes:
        if barrier.op != "cond" or not barrier.params["barrier"]:
            continue
        own, numbers = [], {barrier.number}
        for n in reversed(nodes):
            scalar = not isinstance(n.op, str) and n.number < barrier.number
            if scalar and users[n.number] <= numbers:
                own.append(n)
                numbers.add(n.number)
        found[barrier.number] = own[::-1]
    return found


def _barrier(node: Node, own: Sequence[Node], found):
    """Conditional with the scalars ``own`` computed inside it."""
    which, *entries = node.args
    computed = {n.number for n in own}
    used = itertools.chain(entries, *(n.args for n in own))
    nodes = dict.fromkeys(e for e in used if isinstance(e, Node))
    outer = [e for e in nodes if e.number not in computed]
    branches = [_with_scalars(b, outer, own, entries) for b in node.params["branches"]]
    params = node.params | {"branches": branches}
    whole = Node("cond", (which, *outer), params, node.shape, node.dtype, node.number)
    return _cond(whole, found, kernels=False)


def _with_scalars(
    branch: Branch, outer: Sequence[Node], own: Sequence[Node], entries: Sequence[Entry]
) -> Branch:
    """A branch that computes the ``entries`` it is given by ``own`` from ``outer``."""
    g = Graph(plain=True)

    def copied(nodes: Sequence[Node], known: dict[int, Entry]) -> None:
        for n in nodes:
            if n.number not in known:
                args = [known[a.number] if isinstance(a, Node) else a for a in n.args]
                known[n.number] = g.append(n.op, args, n.params, n.shape, n.dtype)

    inputs = [g.input(e.shape, e.dtype) for e in outer]
    known: dict[int, Entry] = {e.number: x for e, x in zip(outer, inputs, strict=True)}
    copied(own, known)
    pairs = zip(branch.inputs, entries, strict=True)
    inner: dict[int, Entry] = {
        x.number: known[e.number] if isinstance(e, Node) else e for x, e in pairs
    }
    copied(branch.graph.nodes, inner)
    outputs = [inner[e.number] if isinstance(e, Node) else e for e in branch.outputs]
    return Branch(g, inputs, outputs)


def reached(
    outputs: Sequence[Entry], within: Collection[int] | None = None, until: Collection[int] = ()
) -> set[int]:
    """Numbers of the nodes (if given, only those ``within``) on which outputs depend, not looking
    beyond the nodes in ``until``."""
    found: set[int] = set()
    todo = [e for e in outputs if isinstance(e, Node)]
    while todo:
        node = todo.pop()
        if node.number in found:
            continue
        found.add(node.number)
        if node.number not in until:
            todo.extend(
                a
                for a in node.args
                if isinstance(a, Node) and (within is None or a.number in within)
            )
    return found


def _stages(nodes: list[Node], inputs) -> dict[int, int]:
    """Stage of each node: even ones are kernels, odd ones everything between them."""
    stage = dict.fromkeys(inputs, -1)
    for node in nodes:
        odd = isinstance(node.op, str)
        level = 1 if odd else 0
        for a in node.args:
            if isinstance(a, Node):
                other = stage[a.number]
                level = max(level, other if other % 2 == odd else other + 1)
        stage[node.number] = level
    return stage


def _late(nodes: list[Node], early: dict[int, int], outputs: Sequence[Entry]) -> dict[int, int]:
    """Stages with each scalar as close to its first use as possible: fewer numbers then go from
    kernel to kernel. Requested scalars end in the largest kernel, if they may."""
    stage = dict(early)
    counts = Counter(early[n.number] for n in nodes if not isinstance(n.op, str))
    asked = {e.number for e in outputs if isinstance(e, Node)}
    largest = max(counts, key=lambda k: counts[k], default=0)
    for _ in range(2):
        bound = dict.fromkeys(asked, largest)
        for n in reversed(nodes):
            number = n.number
            if not isinstance(n.op, str):
                stage[number] = max(early[number], bound.get(number, early[number]))
            before = stage[number] - (1 if isinstance(n.op, str) else 0)
            for a in n.args:
                if isinstance(a, Node):
                    bound[a.number] = min(bound.get(a.number, before), before)
        counts = Counter(stage[n.number] for n in nodes if not isinstance(n.op, str))
        largest = max(counts, key=lambda k: counts[k], default=0)
    _joined(nodes, stage)
    return stage


def _joined(nodes: list[Node], stage: dict[int, int]) -> None:
    """Compute scalars earlier that replace two or more numbers passed to a later kernel."""
    users: dict[int, list[int]] = {}
    for n in nodes:
        for a in n.args:
            if isinstance(a, Node):
                users.setdefault(a.number, []).append(n.number)
    for n in nodes:
        if isinstance(n.op, str):
            continue
        given = {a.number: a for a in n.args if isinstance(a, Node)}
        levels = [stage[x] + (1 if stage[x] % 2 else 0) for x in given]
        level = max(levels, default=stage[n.number])
        if level >= stage[n.number]:
            continue
        saved = [
            x
            for x in given
            if stage[x] == level and all(stage[u] <= level for u in users[x] if u != n.number)
        ]
        if saved:
            stage[n.number] = level


def read(e: Entry, found):
    """Value of a computed node, or the constant itself."""
    return found[e.number] if isinstance(e, Node) else e


def _kernels(members: list[Node], outputs: list[Node], found: dict) -> None:
    """Compute all ``outputs``, in as many kernels as their number of results requires."""
    own = {n.number for n in members}
    inputs = list(
        {
            a.number: a
            for n in members
            for a in n.args
            if isinstance(a, Node) and a.number not in own
        }.values()
    )
    many = len(inputs) + len(outputs) > kernel_arrays()
    cut = _cut(members, inputs, outputs) if many else None
    if cut is not None:
        for part, results in cut:
            _kernels(part, results, found)
    elif not many:
        results = _kernel(members, inputs, outputs, [found[n.number] for n in inputs])
        found.update((n.number, x) for n, x in zip(outputs, results, strict=True))
    elif len(outputs) == 1:
        for n in members:
            found[n.number] = _compute(n, found)
    else:
        for part in (outputs[: len(outputs) // 2], outputs[len(outputs) // 2 :]):
            needed = reached(part, own)
            _kernels([n for n in members if n.number in needed], part, found)


def _cut(members: list[Node], inputs: list[Node], outputs: list[Node]):
    """Members and results of two kernels, one after the other, that replace one. The cut is where
    the larger one has the fewest arrays; None where this saves no arrays."""
    place = {n.number: i for i, n in enumerate(members)}
    asked = {n.number for n in outputs}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for i, n in enumerate(members):
        for a in n.args:
            if isinstance(a, Node):
                first.setdefault(a.number, i)
                last[a.number] = i
    # Counts over cuts, each before a member, of the arrays of the kernel before or after the cut.
    count = len(members)
    before, behind = np.zeros(count + 2, int), np.zeros(count + 2, int)

    def counts(of, start, end):
        of[start] += 1
        of[end + 1] -= 1

    for n in inputs:
        counts(before, first[n.number] + 1, count)
        counts(behind, 0, last[n.number])
    for number, made in place.items():
        used = last.get(number, made)
        counts(before, made + 1, count if number in asked else used)
        counts(behind, made + 1, used)
        if number in asked:
            counts(behind, 0, made)
    sizes = np.maximum(np.cumsum(before), np.cumsum(behind))[1:count]
    if not sizes.size or sizes.min() >= len(inputs) + len(outputs):
        return None
    at = int(np.argmin(sizes)) + 1
    head = [
        n for i, n in enumerate(members[:at]) if n.number in asked or last.get(n.number, i) >= at
    ]
    return (members[:at], head), (members[at:], [n for n in members[at:] if n.number in asked])


def _kernel(members: list[Node], inputs: list[Node], outputs: list[Node], given: list) -> list:
    """All ``outputs`` in one loop over the batch.

    A reduction gives as many results as it has operands, of the same types: the numbers of inputs
    and outputs are made equal.
    """
    slots = []  # number of an input, number of an output, type
    for dtype in dict.fromkeys(n.dtype for n in [*inputs, *outputs]):
        a = [i for i, n in enumerate(inputs) if n.dtype == dtype]
        b = [i for i, n in enumerate(outputs) if n.dtype == dtype]
        slots += [(x, y, dtype) for x, y in itertools.zip_longest(a, b)]

    def program(_, values):
        found = {
            inputs[x].number: v for (x, _, _), v in zip(slots, values, strict=True) if x is not None
        }
        for n in members:
            found[n.number] = _compute(n, found)
        return tuple(
            jnp.zeros((), d) if y is None else found[outputs[y].number] for _, y, d in slots
        )

    operands = tuple(
        jnp.zeros((1,), d) if x is None else jnp.reshape(given[x], (1,)) for x, _, d in slots
    )
    starts = tuple(jnp.zeros((), d) for _, _, d in slots)
    results = jax.lax.reduce_window(operands, starts, program, (1,), (1,), "VALID")
    at = {y: r[0] for (_, y, _), r in zip(slots, results, strict=True) if y is not None}
    return [at[i] for i in range(len(outputs))]


def _compute(node: Node, found, *, kernels: bool = True):
    op, p = node.op, node.params
    if not isinstance(op, str):
        return op.bind(*(_array(a, found) for a in node.args), **p)
    if op == "pack" and all(a is node.args[0] for a in node.args):
        return jnp.broadcast_to(_array(node.args[0], found), node.shape)
    if op == "pack":
        return jnp.stack([_array(a, found) for a in node.args]).reshape(node.shape)
    if op == "element":
        array = _array(node.args[0], found)
        return array[tuple(int(i) for i in np.unravel_index(p["index"], array.shape))]
    if op == "bind":
        eqn = p["eqn"]
        given = [_array(a, found) for a in node.args]
        return eqn.primitive.bind(*given, **eqn.primitive.get_bind_params(eqn.params))
    if op == "result":
        return found[node.args[0].number][p["index"]]
    if op == "cond":
        return _cond(node, found, kernels)
    return _loop(node, found, kernels)


def _array(e: Entry, found):
    return found[e.number] if isinstance(e, Node) else e


def shaped(values, kinds) -> list:
    """Values with these shapes and types."""
    return [
        x
        if isinstance(x, jax.Array) and (x.shape, x.dtype) == (shape, dtype)
        else jnp.broadcast_to(jnp.asarray(x, dtype), shape)
        for x, (shape, dtype) in zip(values, kinds, strict=True)
    ]


def _cond(node: Node, found, kernels: bool):
    which, *given = (_array(a, found) for a in node.args)
    kinds, branches = node.params["kinds"], node.params["branches"]
    calls = [lambda *x, b=b: shaped(emit(b, x, kernels=kernels), kinds) for b in branches]
    if len(calls) == 2:
        return jax.lax.cond(which.astype(bool), calls[1], calls[0], *given)
    return jax.lax.switch(which, calls, *given)


def _loop(node: Node, found, kernels: bool):
    p = node.params
    given = shaped([_array(a, found) for a in node.args], p["kinds"])
    nb, nt = p["sizes"]
    body, tested, carry = given[:nb], given[nb : nb + nt], given[nb + nt :]
    kinds = p["kinds"][nb + nt :]
    return jax.lax.while_loop(
        lambda c: jnp.asarray(emit(p["test"], [*tested, *c], kernels=kernels)[0]),
        lambda c: shaped(emit(p["body"], [*body, *c], kernels=kernels), kinds),
        carry,
    )
