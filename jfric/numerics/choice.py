"""Choices between numbers, entry by entry, in few traced operations."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Num

#: Kinds of arrays that take a number of each Python type without a change of their own type.
_TAKEN_BY = ((bool, "b"), (int, "iuf"), (float, "f"))


def select(condition: Bool[Array, ...] | np.ndarray | bool, x: Any, y: Any) -> Num[Array, ...]:
    """``x`` where ``condition``, else ``y``: the result of ``jnp.where`` as a single selection.

    ``jnp.where`` is a compiled function, which is traced and lowered for each call in addition to
    its operations. Arguments whose types differ are left to it.
    """
    dtypes = {a.dtype for a in (x, y) if hasattr(a, "dtype")}
    weak = any(getattr(a, "weak_type", False) for a in (x, y))
    if len(dtypes) != 1 or weak or getattr(condition, "dtype", None) != np.bool_:
        return jnp.where(condition, x, y)
    (dtype,) = dtypes
    if not all(_fits(a, dtype) for a in (x, y)):
        return jnp.where(condition, x, y)
    shape = np.broadcast_shapes(*map(np.shape, (condition, x, y)))
    if np.shape(condition):
        condition = _spread(condition, shape)
    return jax.lax.select_n(condition, *(_spread(jnp.asarray(a, dtype), shape) for a in (y, x)))


def _fits(x: Any, dtype: np.dtype) -> bool:
    """Whether an array, or a Python number, is of this type or takes it."""
    if hasattr(x, "dtype"):
        return True
    return dtype.kind in next((kinds for t, kinds in _TAKEN_BY if isinstance(x, t)), "")


def _spread(x, shape: tuple[int, ...]):
    """``x`` with the ``shape`` to which it can be broadcast."""
    own = np.shape(x)
    if own == shape:
        return x
    if own != shape[len(shape) - len(own) :]:
        return jnp.broadcast_to(x, shape)
    return jax.lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - len(own), len(shape))))
