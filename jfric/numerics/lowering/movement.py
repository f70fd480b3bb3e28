"""Primitives that move elements: done on numbers of elements while the program is rewritten."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import numpy as np

from jfric.numerics.lowering.graph import (
    Entry,
    Graph,
    Value,
    is_constant,
    literal,
    objects,
    value_of,
)

#: Length of an axis up to which an element at a computed place is selected among all.
LOOKED_UP = 16


def _numbered(args: list[Value]) -> list[np.ndarray]:
    """Numbers of the elements of all arrays, one array after the other."""
    starts = np.cumsum([0] + [math.prod(a.shape) for a in args])
    return [
        np.arange(start, start + math.prod(a.shape)).reshape(a.shape)
        for a, start in zip(args, starts, strict=False)
    ]


def _taken(args: list[Value], where: np.ndarray, out) -> Value:
    entries = [e for a in args for e in a.entries]
    return value_of([entries[int(i)] for i in where.reshape(-1)], out.shape, out.dtype)


def _mover(function: Callable) -> Callable:
    """Rule of a primitive whose ``function(params, *numbers)`` gives the numbers of the result."""

    def rule(g: Graph, eqn, args):
        result = function(eqn.params, *_numbered(args))
        results = result if isinstance(result, list) else [result]
        return [_taken(args, r, v.aval) for r, v in zip(results, eqn.outvars, strict=True)]

    return rule


def _slice(p, x):
    strides = p["strides"] or (1,) * x.ndim
    index = zip(p["start_indices"], p["limit_indices"], strides, strict=True)
    return x[tuple(slice(*s) for s in index)]


def _broadcast(p, x):
    shape = [1] * len(p["shape"])
    for axis, n in zip(p["broadcast_dimensions"], x.shape, strict=True):
        shape[axis] = n
    return np.broadcast_to(x.reshape(shape), p["shape"])


def _split(p, x):
    return np.split(x, np.cumsum(p["sizes"])[:-1], axis=p["axis"])


def _iota(g: Graph, eqn, args):
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    along = [n if i == axis else 1 for i, n in enumerate(shape)]
    x = np.arange(shape[axis]).reshape(along)
    return [literal(x, shape, eqn.outvars[0].aval.dtype)]


def _index(x: Value) -> np.ndarray | None:
    """Array of indices, if it is known."""
    known = [int(e) for e in x.entries if is_constant(e)]
    if len(known) < len(x.entries):
        return None
    return np.asarray(known, np.int64).reshape(x.shape)


def _gather(g: Graph, eqn, args):
    index = _index(args[1])
    if index is None:
        return _looked_up(g, eqn, args)
    where = _gathered(eqn, args[0], index)
    return None if (where < 0).any() else [_taken(args[:1], where, eqn.outvars[0].aval)]


def _gathered(eqn, operand: Value, index: np.ndarray) -> np.ndarray:
    """Numbers of the elements at known places, -1 for those outside."""
    (numbers,) = _numbered([operand])
    return gathered(numbers, index, eqn.outvars[0].aval.shape, eqn.params)


def _looked_up(g: Graph, eqn, args):
    """Elements at places along a short axis that the program computes."""
    (operand, index), out, p = args, eqn.outvars[0].aval, eqn.params
    numbers = p["dimension_numbers"]
    inside = p["mode"] in (
        jax.lax.GatherScatterMode.CLIP,
        jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )
    if len(numbers.start_index_map) != 1 or numbers.operand_batching_dims or not inside:
        return None
    axis = int(numbers.start_index_map[0])
    room = operand.shape[axis] - p["slice_sizes"][axis]
    if room >= LOOKED_UP:
        return None
    flat = operand.parts.reshape(-1)
    here, *others = (
        flat[_gathered(eqn, operand, np.full(index.shape, k, index.dtype))] for k in range(room + 1)
    )
    # Axes of the result along which there are places.
    along = [d for d in range(len(out.shape)) if d not in numbers.offset_dims]
    found = []
    for at in np.ndindex(out.shape):
        place, chosen = index.parts[(*[at[d] for d in along], 0)], here[at]
        for k, there in enumerate(others, 1):
            beyond = g.scalar(jax.lax.ge_p, [place, np.asarray(k, index.dtype)], {}, bool)
            chosen = g.scalar(jax.lax.select_n_p, [beyond, chosen, there[at]], {}, operand.dtype)
        found.append(chosen)
    return [value_of(found, out.shape, operand.dtype)]


def _clipped(starts, shape, sizes) -> list[int]:
    return [min(max(int(i), 0), n - m) for i, n, m in zip(starts, shape, sizes, strict=True)]


def _selected(g: Graph, moving: list, part: Callable[[int], np.ndarray]) -> list[Entry]:
    """Entries of ``part(k)`` at the place ``k`` that the program computes: ``moving`` holds its
    entry and the last place, or is empty. Places beyond the ends count as the ends."""
    found = list(part(0).reshape(-1))
    for index, last in moving:
        for k in range(1, last + 1):
            there = g.scalar(jax.lax.ge_p, [index, np.asarray(k, index.dtype)], {}, bool)
            found = [
                old
                if old is new
                else g.scalar(jax.lax.select_n_p, [there, old, new], {}, old.dtype)
                for old, new in zip(found, part(k).reshape(-1), strict=True)
            ]
    return found


def _dynamic_slice(g: Graph, eqn, args):
    operand, starts = args[0], [a.parts[()] for a in args[1:]]
    sizes = eqn.params["slice_sizes"]
    moving = [i for i, s in enumerate(starts) if not is_constant(s) and operand.shape[i] > sizes[i]]
    if len(moving) > 1:
        return None
    fixed = _clipped([s if is_constant(s) else 0 for s in starts], operand.shape, sizes)

    def part(k: int) -> np.ndarray:
        place = [k if i in moving else f for i, f in enumerate(fixed)]
        return operand.parts[tuple(slice(i, i + m) for i, m in zip(place, sizes, strict=True))]

    found = _selected(g, [(starts[i], operand.shape[i] - sizes[i]) for i in moving], part)
    return [value_of(found, sizes, operand.dtype)]


def _dynamic_update_slice(g: Graph, eqn, args):
    operand, update, starts = args[0], args[1], [a.parts[()] for a in args[2:]]
    room = [n - m for n, m in zip(operand.shape, update.shape, strict=True)]
    moving = [i for i, s in enumerate(starts) if not is_constant(s) and room[i]]
    if len(moving) > 1:
        return None
    fixed = [s if is_constant(s) else 0 for s in starts]

    def written(k: int) -> np.ndarray:
        place = _clipped(fixed, operand.shape, update.shape)
        place = [k if i in moving else f for i, f in enumerate(place)]
        whole = operand.parts.copy()
        whole[tuple(slice(i, i + m) for i, m in zip(place, update.shape, strict=True))] = (
            update.parts
        )
        return whole

    found = _selected(g, [(starts[i], room[i]) for i in moving], written)
    return [value_of(found, operand.shape, operand.dtype)]


def scatter_places(eqn, args) -> np.ndarray | None:
    """Numbers of the elements that a scatter with known indices puts at each place: of the operand,
    then of the updates."""
    index = _index(args[1])
    if index is None:
        return None
    operand, update = _numbered([args[0], args[2]])
    return scattered(operand, index, update, eqn.params)


def _scatter(g: Graph, eqn, args):
    where = scatter_places(eqn, args)
    if where is None:
        return None
    return [_taken([args[0], args[2]], where, eqn.outvars[0].aval)]


def _pad(g: Graph, eqn, args):
    x, config, out = args[0], eqn.params["padding_config"], eqn.outvars[0].aval
    if any(low < 0 or high < 0 for low, high, _ in config):
        return None
    where = np.full(out.shape, math.prod(x.shape))
    inside = tuple(
        slice(low, low + max(n - 1, 0) * (gap + 1) + min(n, 1), gap + 1)
        for (low, _, gap), n in zip(config, x.shape, strict=True)
    )
    where[inside] = np.arange(math.prod(x.shape)).reshape(x.shape)
    return [_taken(args, where, out)]


def _sort(g: Graph, eqn, args):
    """Sorted array, if all numbers are known."""
    if len(args) != 1 or not all(is_constant(e) for e in args[0].entries):
        return None
    x = objects([e[()] for e in args[0].entries], args[0].shape).astype(args[0].dtype)
    return [literal(np.sort(x, eqn.params["dimension"]), x.shape, x.dtype)]


MOVEMENTS: dict[str, Callable] = {
    "slice": _mover(_slice),
    "squeeze": _mover(lambda p, x: np.squeeze(x, p["dimensions"])),
    "expand_dims": _mover(lambda p, x: np.expand_dims(x, p["dimensions"])),
    "reshape": _mover(lambda p, x: x.reshape(p["new_sizes"])),
    "transpose": _mover(lambda p, x: x.transpose(p["permutation"])),
    "rev": _mover(lambda p, x: np.flip(x, p["dimensions"])),
    "broadcast_in_dim": _mover(_broadcast),
    "concatenate": _mover(lambda p, *x: np.concatenate(x, p["dimension"])),
    "stack": _mover(lambda p, *x: np.stack(x, p.get("axis", p.get("dimension", 0)))),
    "split": _mover(_split),
    "iota": _iota,
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "scatter": _scatter,
    "pad": _pad,
    "sort": _sort,
}

_CLIP = jax.lax.GatherScatterMode.CLIP
_INSIDE = jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS


def gathered(numbers: np.ndarray, index: np.ndarray, shape: Sequence[int], p) -> np.ndarray:
    """Elements at known places; -1 for those outside. ``p``: parameters of ``gather``, see
    https://openxla.org/xla/operation_semantics.

    NumPy moves the numbers of elements: JAX would compile a program for each shape.
    """
    d, sizes = p["dimension_numbers"], p["slice_sizes"]
    removed = (*d.collapsed_slice_dims, *d.operand_batching_dims)
    along = [i for i in range(len(shape)) if i not in d.offset_dims]
    found = np.full(shape, -1, numbers.dtype)
    for at in np.ndindex(index.shape[:-1]):
        start = np.zeros(numbers.ndim, int)
        start[list(d.start_index_map)] = index[at]
        start[list(d.operand_batching_dims)] = [at[i] for i in d.start_indices_batching_dims]
        window = _window(start, numbers.shape, sizes, p["mode"])
        if window is not None:
            found[_across(len(shape), along, at)] = np.squeeze(numbers[window], removed)
    return found


def scattered(operand: np.ndarray, index: np.ndarray, update: np.ndarray, p) -> np.ndarray:
    """Operand with updates at known places, the last of each. ``p``: parameters of ``scatter``."""
    d = p["dimension_numbers"]
    added = (*d.inserted_window_dims, *d.operand_batching_dims)
    along = [i for i in range(update.ndim) if i not in d.update_window_dims]
    found = operand.copy()
    for at in np.ndindex(index.shape[:-1]):
        start = np.zeros(operand.ndim, int)
        start[list(d.scatter_dims_to_operand_dims)] = index[at]
        start[list(d.operand_batching_dims)] = [at[i] for i in d.scatter_indices_batching_dims]
        part = np.expand_dims(update[_across(update.ndim, along, at)], added)
        window = _window(start, operand.shape, part.shape, p["mode"])
        if window is not None:
            found[window] = part
    return found


def _across(rank: int, along: Sequence[int], at: Sequence[int]) -> tuple:
    """Index of the place ``at`` along some axes and of everything along the others."""
    place: list = [slice(None)] * rank
    for axis, i in zip(along, at, strict=True):
        place[axis] = i
    return tuple(place)


def _window(start: np.ndarray, shape, sizes, mode) -> tuple[slice, ...] | None:
    """Window of these sizes, moved inside; None where it would be dropped."""
    room = np.subtract(shape, sizes)
    inside = np.clip(start, 0, room)
    if mode not in (_CLIP, _INSIDE) and np.any(inside != start):
        return None
    return tuple(slice(s, s + n) for s, n in zip(inside, sizes, strict=True))
