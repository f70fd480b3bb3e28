"""Conversion of field values of elements to array leaves."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer

from jfric.system.expression import Expression

#: A physical number: a Python number or array at construction; an array leaf afterwards, or an
#: :class:`Expression` until the problem is resolved. Type checkers cannot follow this change.
Scalar: TypeAlias = Any


def scalar(value) -> Any:
    """``value`` as a floating-point array leaf; a string with ``$`` becomes an expression."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        return Expression(value)
    if value is None or isinstance(value, Tracer):
        return value
    try:
        return jnp.asarray(value, dtype=jnp.result_type(float))
    except (TypeError, ValueError):
        return value  # tree transformations put placeholders here


def scalars(value) -> Any:
    """Each number of a list or a tuple; anything else like :func:`scalar`."""
    if eqx.is_array(value) and value.ndim == 1:
        value = tuple(value)
    return tuple(map(scalar, value)) if isinstance(value, (list, tuple)) else scalar(value)


def optional(value) -> Any:
    """Like :func:`scalar`, passing ``None`` through."""
    return None if value is None else scalar(value)


def numbers_of(element) -> dict[str, Any]:
    """Numbers of an element by their field."""
    given = {f.name: getattr(element, f.name) for f in dataclasses.fields(element)}
    return {name: value for name, value in given.items() if eqx.is_array_like(value)}
