"""Conversion of field values of elements to array leaves."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jfric.system.expression import Expression
from jfric.system.units import Dimension, UnitError, to_si

#: A physical number: a Python number or array at construction; an array leaf afterwards, or an
#: :class:`Expression` until the problem is resolved. Type checkers cannot follow this change.
Scalar: TypeAlias = Any


class UnitText(eqx.Module):
    """A number as a text that may carry a unit, or several, until the problem that it is given to
    makes numbers of them: only there it is known what they measure."""

    text: str | tuple = eqx.field(static=True)

    def number(self, measures: Dimension | list[Dimension | None] | None = None) -> Any:
        """The number or numbers in SI units; ``measures``: what it measures, or each of them.

        Raises :class:`UnitError`."""
        several = isinstance(self.text, tuple)
        texts: Any = self.text if several else (self.text,)
        each = measures if isinstance(measures, list) else [measures] * len(texts)
        found = [to_si(x, of) for x, of in zip(texts, each, strict=True)]
        if any(isinstance(x, Expression) for x in found):
            raise UnitError(f"found {self.text!r}, lists hold numbers and no expressions")
        return scalar(found if several else found[0])

    def __float__(self) -> float:
        return float(self.number())


def scalar(value) -> Any:
    """``value`` as a floating-point array leaf. A text is a number with its unit; one with ``$``
    becomes an expression."""
    if isinstance(value, (Expression, UnitText)):
        return value
    if isinstance(value, str):
        return Expression(value) if "$" in value else UnitText(value)
    if isinstance(value, (list, tuple)) and any(isinstance(x, str) for x in value):
        return UnitText(tuple(value))
    if value is None or isinstance(value, Tracer):
        return value
    dtype = jnp.result_type(float)
    try:
        if not any(isinstance(x, jax.Array) for x in jax.tree.leaves(value)):
            value = np.asarray(value, dtype)  # without a program
        return jnp.asarray(value, dtype)
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
