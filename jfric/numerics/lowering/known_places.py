"""Gathers and scatters at known places, done on the numbers of elements.

NumPy is used, as JAX would compile a program for each shape. The meaning of the dimension numbers
is XLA's (https://openxla.org/xla/operation_semantics, Gather and Scatter).
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

_CLIP = jax.lax.GatherScatterMode.CLIP
_INSIDE = jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS


def gathered(numbers: np.ndarray, index: np.ndarray, shape: Sequence[int], p) -> np.ndarray:
    """Elements at known places; -1 for those outside. ``p``: parameters of ``gather``."""
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
