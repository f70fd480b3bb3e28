"""Sums, products and largest elements of small arrays, term by term."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable

import jax
import numpy as np

from jfric.numerics.lowering.graph import Entry, Graph, literal, objects, value_of
from jfric.numerics.lowering.movement import scatter_places

PAIRS = {
    "reduce_sum": (jax.lax.add_p, 0),
    "reduce_prod": (jax.lax.mul_p, 1),
    "reduce_and": (jax.lax.and_p, True),
    "reduce_or": (jax.lax.or_p, False),
    "reduce_max": (jax.lax.max_p, None),
    "reduce_min": (jax.lax.min_p, None),
}


@functools.cache
def parameters(function: Callable) -> dict:
    """Parameters of the primitive of a function of two numbers, as JAX itself binds it."""
    (eqn,) = jax.make_jaxpr(function)(1.0, 1.0).eqns
    return eqn.params


def _reduce(g: Graph, eqn, args):
    (x,), out = args, eqn.outvars[0].aval
    pair, neutral = PAIRS[eqn.primitive.name]
    axes = eqn.params["axes"]
    moved = np.moveaxis(x.parts, axes, range(len(axes)))
    rows = moved.reshape((math.prod(moved.shape[: len(axes)]), math.prod(out.shape)))
    if rows.shape[0] == 0:
        return None if neutral is None else [literal(neutral, out.shape, out.dtype)]
    found = []
    for column in rows.T:
        total = column[0]
        for e in column[1:]:
            params = parameters(jax.lax.mul) if pair is jax.lax.mul_p else {}
            total = g.scalar(pair, [total, e], params, out.dtype)
        found.append(total)
    return [value_of(found, out.shape, out.dtype)]


def _argument(g: Graph, eqn, args):
    """Place of the first largest or smallest element, for ``argmax`` and ``argmin``."""
    (x,), out = args, eqn.outvars[0].aval
    (axis,) = eqn.params["axes"]
    rows = np.moveaxis(x.parts, axis, 0).reshape((x.shape[axis], -1))
    if rows.shape[0] == 0:
        return None
    if x.dtype == bool:
        params = {"new_dtype": np.dtype(np.int32), "weak_type": False, "sharding": None}
        convert = jax.lax.convert_element_type_p
        flat = [g.scalar(convert, [e], params, np.int32) for e in rows.reshape(-1)]
        rows = objects(flat, rows.shape)
    dtype = np.dtype(np.int32) if x.dtype == bool else x.dtype
    better = jax.lax.gt_p if eqn.primitive.name == "argmax" else jax.lax.lt_p
    found = []
    for column in rows.T:
        best, place = column[0], np.asarray(0, out.dtype)
        for i, e in enumerate(column[1:], 1):
            wins = g.scalar(better, [e, best], {}, bool)
            if dtype.kind == "f":
                # A NaN comes first, whatever its partner in a comparison.
                nan = g.scalar(jax.lax.ne_p, [e, e], {}, bool)
                own = g.scalar(jax.lax.eq_p, [best, best], {}, bool)
                nan = g.scalar(jax.lax.and_p, [nan, own], {}, bool)
                wins = g.scalar(jax.lax.or_p, [wins, nan], {}, bool)
            best = g.scalar(jax.lax.select_n_p, [wins, best, e], {}, dtype)
            here = np.asarray(i, out.dtype)
            place = g.scalar(jax.lax.select_n_p, [wins, place, here], {}, out.dtype)
        found.append(place)
    return [value_of(found, out.shape, out.dtype)]


def _dot(g: Graph, eqn, args):
    a, b = args
    (ca, cb), (ba, bb) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    batch, count = (math.prod(a.shape[i] for i in axes) for axes in (ba, ca))
    if count == 0 or math.prod(out.shape) == 0:
        return [literal(0, out.shape, out.dtype)]

    def rows(x, shared, summed):
        free = [i for i in range(len(x.shape)) if i not in (*shared, *summed)]
        return x.parts.transpose([*shared, *free, *summed]).reshape((batch, -1, count))

    found = []
    for ra, rb in zip(rows(a, ba, ca), rows(b, bb, cb), strict=True):
        for r, c in itertools.product(ra, rb):
            total: Entry = np.asarray(0, out.dtype)
            for x, y in zip(r, c, strict=True):
                product = g.scalar(jax.lax.mul_p, [x, y], parameters(jax.lax.mul), out.dtype)
                total = g.scalar(jax.lax.add_p, [total, product], {}, out.dtype)
            found.append(total)
    return [value_of(found, out.shape, out.dtype)]


def _added(g: Graph, eqn, args):
    """Result of a ``scatter-add`` of the kind ``x.at[constant].add(y)``; None for other kinds."""
    where = scatter_places(eqn, args)
    if where is None:
        return None
    size = math.prod(args[0].shape)
    new = where[where >= size]
    if new.size != len(set(new.tolist())) or new.size != math.prod(args[2].shape):
        return None
    x, y, out = args[0].entries, args[2].entries, eqn.outvars[0].aval
    found = [
        e if w < size else g.scalar(jax.lax.add_p, [e, y[w - size]], {}, out.dtype)
        for e, w in zip(x, where.reshape(-1), strict=True)
    ]
    return [value_of(found, out.shape, out.dtype)]


SUMS: dict[str, Callable] = {
    **dict.fromkeys(PAIRS, _reduce),
    "argmax": _argument,
    "argmin": _argument,
    "dot_general": _dot,
    "scatter-add": _added,
}
