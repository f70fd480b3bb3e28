"""Fields of elements: units, bounds and forms in files; conversion of values to array leaves."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from types import UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jfric.system.expression import Expression
from jfric.system.units import DIMENSIONS, Dimension, UnitError, rate_of, to_si

#: A physical number: a Python number or array at construction; an array leaf afterwards, or an
#: :class:`Expression` until the problem is resolved. Type checkers cannot follow this change.
Scalar: TypeAlias = Any


class Bounds(NamedTuple):
    """Range of a number: ``low`` and ``high``, and whether ``low`` itself is allowed."""

    low: float = -math.inf
    high: float = math.inf
    closed: bool = True

    def message(self, low: float, high: float) -> str | None:
        """Message for values from ``low`` to ``high`` that leave the bounds, else None."""
        if low < self.low or (low == self.low and not self.closed):
            if self.low != 0.0:
                return f"must be {'at least' if self.closed else 'above'} {self.low:g}"
            return "must not be negative" if self.closed else "must be positive"
        return f"must not be larger than {self.high:g}" if high > self.high else None


class UnitText(eqx.Module):
    """A number as a text that may carry a unit, or several numbers, until a problem converts them:
    only the problem determines what they measure."""

    text: str | tuple = eqx.field(static=True)

    def number(self, measures: Dimension | list[Dimension | None] | None = None) -> Any:
        """The number or numbers in SI units; ``measures``: the dimension, one or one for each.

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
    """The ``value`` as a floating-point array leaf. A text is a number with its unit; a text with
    ``$`` becomes an expression."""
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
    """Array leaves for the numbers of a list or a tuple; anything else like :func:`scalar`."""
    if eqx.is_array(value) and value.ndim == 1:
        value = tuple(value)
    return tuple(map(scalar, value)) if isinstance(value, (list, tuple)) else scalar(value)


def texts_by_name(value) -> Any:
    """A mapping as pairs, which can be compared; its numbers become text."""
    if not isinstance(value, Mapping):
        return value
    number = int | float | np.floating
    return tuple((k, repr(float(v)) if isinstance(v, number) else v) for k, v in value.items())


#: Dimensions along a translation, and those that replace them where an element turns.
TURNING = {
    "mass": "moment of inertia",
    "length": "angle",
    "velocity": "angular velocity",
    "inverse velocity": "inverse angular velocity",
    "force": "torque",
    "stiffness": "rotational stiffness",
    "damping": "rotational damping",
    "drag": "rotational drag",
    "inverse force": "inverse torque",
    "force constant": "torque constant",
    "back-EMF constant": "angular back-EMF constant",
}


#: Marks of a list of coefficients of powers, and of the rate of the field that a number belongs to.
POWERS, RATE = "coefficients", "rate"


class About(NamedTuple):
    """Unit, bounds and form of a field of an element."""

    #: Names of its dimension along a translation and along a rotation; None: that of the field
    #: that it belongs to, or any.
    measures: tuple[str, str] | None = None
    bounds: Bounds = Bounds()
    #: Its form in a file, where its type does not determine that.
    form: str | None = None
    #: The field with the direction along which it is measured.
    along: str = "direction"

    def dimension(self, of_kind: str | None, inside: Dimension | None = None) -> Dimension | None:
        """Dimension along a translation or a rotation, in a field of the dimension ``inside``; None
        where it is not known."""
        if self.measures is None:
            return inside
        along, turning = self.measures
        if along == RATE:
            return rate_of(inside)
        if along not in DIMENSIONS or (of_kind is None and along != turning):
            return None
        return DIMENSIONS[turning if of_kind == "rotation" else along]


def holds(
    measures: str | None = None,
    *,
    above: float | None = None,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    fixed: bool = False,
    form: str | None = None,
    along: str = "direction",
    converter: Callable[[Any], Any] | None = scalar,
) -> dict[str, Any]:
    """Arguments of :func:`equinox.field` for a number of an element that a user defines.

    ``measures``: its dimension along a translation (``"length"``, ``"stiffness"``, ``"pure
    number"``, ...); along a rotation it is the counterpart (an angle, a rotational stiffness)
    unless it is ``fixed``; without it any unit is taken. Its bounds: ``above`` or ``at_least``, and
    ``at_most``. ``form``: ``"list"`` for a list of numbers. ``along``: the field with the direction
    along which it is measured. ``converter``: the function that makes an array of a given value;
    None where another argument of the field gives it. Files, messages, sweeps, fits and the manual
    read all this from the class::

        >>> sorted(jfric.holds("mass", above=0.0))
        ['converter', 'metadata']
    """
    names = None
    if measures is not None:
        names = (measures, measures if fixed else TURNING.get(measures, measures))
    low, closed = (at_least, True) if above is None else (above, False)
    held = About(names, Bounds(low, at_most, closed), form, along)
    known = {} if converter is None else {"converter": converter}
    return {**known, "metadata": {"about": held}}


def written(form: str) -> dict[str, Any]:
    """Arguments of :func:`equinox.field` for a value that is not a number: ``form`` in a file."""
    return {"static": True, "metadata": {"about": About(form=form)}}


@functools.cache
def admitted(cls: type) -> dict[str, tuple[Any, ...]]:
    """Classes that the annotation of each field admits, or the words if it admits only words."""
    found = {}
    for field, hint in get_type_hints(cls).items():
        is_union = get_origin(hint) in (Union, UnionType)
        hints = get_args(hint) if is_union or get_origin(hint) is Literal else (hint,)
        found[field] = tuple(get_origin(h) or h for h in hints)
    return found


def words_of(options: tuple[Any, ...]) -> tuple[str, ...]:
    """The words that a field takes, where its annotation admits nothing else."""
    return options if all(isinstance(x, str) for x in options) else ()


@functools.cache
def about(cls: type) -> dict[str, About]:
    """Units, bounds and forms of the fields of an element's class, by name."""
    return {f.name: f.metadata.get("about", About()) for f in dataclasses.fields(cls)}
