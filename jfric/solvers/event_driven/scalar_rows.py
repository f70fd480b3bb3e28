"""Linear combinations in scalars; zeros that are known beforehand cost nothing.

A row is a list of scalars. Entries that the structure of a problem makes zero are the number 0.0
itself, not an array that holds it: products with them are never written down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax.numpy as jnp

Row = list[Any]


def is_zero(x) -> bool:
    """Whether ``x`` is zero by structure."""
    return isinstance(x, float) and x == 0.0


def total(terms: Iterable) -> Any:
    """Sum of scalars."""
    result: Any = 0.0
    for term in terms:
        if not is_zero(term):
            result = term if is_zero(result) else result + term
    return result


def times(a, b) -> Any:
    """``a b``."""
    return 0.0 if is_zero(a) or is_zero(b) else a * b


def dot(a: Sequence, b: Sequence) -> Any:
    """``sum_i a_i b_i``."""
    return total(times(x, y) for x, y in zip(a, b, strict=True))


def combine(weights: Sequence, rows: Sequence[Row]) -> Row:
    """``sum_i weights_i rows_i``."""
    return [dot(weights, column) for column in zip(*rows, strict=True)]


def select(condition, a: Row, b: Row) -> Row:
    """``a`` where ``condition``, else ``b``."""
    return [
        0.0 if is_zero(x) and is_zero(y) else jnp.where(condition, x, y)
        for x, y in zip(a, b, strict=True)
    ]


def magnitudes(row: Row) -> Row:
    """Entry by entry."""
    return [x if is_zero(x) else jnp.abs(x) for x in row]
