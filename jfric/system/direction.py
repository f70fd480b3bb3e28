"""Directions along which elements act."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jfric.errors import ProblemError
from jfric.system.expression import Expression
from jfric.system.fields import scalar
from jfric.system.units import UnitError, measured

Measure = Literal["translation", "rotation", "unknown"]
#: Kind of a degree of freedom, then dimension of its coefficient: kind of their product.
_ELONGATIONS: dict[str, dict[str, Measure]] = {
    "translation": {"pure number": "translation", "inverse length": "rotation"},
    "rotation": {"pure number": "rotation", "length": "translation"},
}
#: Dimensions of a coefficient on a base, whose kind is that of the coordinates it is joined to.
_EITHER = ("pure number", "length", "inverse length")


class Direction(eqx.Module):
    """A direction ``w``: the element's elongation is ``x = w^T q`` (bases count as coordinates).

    ``names``: the degrees of freedom and bases that take part. Either static ``signs`` (one degree
    of freedom, or the difference of two), or ``coefficients`` that are parameters (array leaves,
    one for each name). Elements make one from a name, a pair of names or a mapping.

    ``measures``: kind of ``x`` where the units of the coefficients state it: ``"translation"`` with
    a lever arm [m] on an angle, ``"rotation"`` with an inverse radius [1/m] on a displacement,
    ``"unknown"``; None: kind of the degrees of freedom. A rope over a drum of radius 0.5 m::

        >>> rope = jfric.Direction(("u", "theta"), coefficients={"u": 1.0, "theta": -0.5})
        >>> rope.vector(("u", "theta")).tolist()
        [1.0, -0.5]
    """

    names: tuple[str, ...] = eqx.field(static=True)
    signs: tuple[int, ...] | None = eqx.field(static=True, default=None)
    coefficients: dict | None = None
    measures: Measure | None = eqx.field(static=True, default=None)

    @property
    def is_single(self) -> bool:
        """Whether exactly one degree of freedom or base takes part."""
        return len(self.names) == 1

    def vector(self, axes: tuple[str, ...]):
        """The components of ``w`` along ``axes``, zeros where the element is not attached."""
        dtype = jnp.result_type(float)
        if self.signs is not None:
            return jnp.asarray(self.known_vector(axes))
        given = self.coefficients or {}
        used = [axis for axis in axes if axis in given]
        values = [given[axis] for axis in used]
        if not any(isinstance(value, Tracer) for value in values):
            return jnp.asarray(self.known_vector(axes))
        return (
            jnp.zeros((len(axes),), dtype)
            .at[jnp.asarray([axes.index(axis) for axis in used])]
            .set(jnp.stack([jnp.asarray(value, dtype) for value in values]))
        )

    def known_vector(self, axes: tuple[str, ...]) -> np.ndarray:
        """Result of :meth:`vector` for known numbers, without a compiled operation."""
        given: dict = self.coefficients or {}
        if self.signs is not None:
            given = dict(zip(self.names, self.signs, strict=True))
        row = [np.asarray(given.get(axis, 0.0)) for axis in axes]
        return np.asarray(row, jnp.result_type(float))


def along(name: str) -> Direction:
    """The direction along one degree of freedom, against the ground: ``x = q[name]``.

    Elements also take the name itself: ``Spring("u", 5.0)`` is ``Spring(along("u"), 5.0)``::

        >>> jfric.along("u").vector(("u", "w")).tolist()
        [1.0, 0.0]
    """
    return Direction((name,), (1,))


def between(first: str, second: str) -> Direction:
    """The direction from ``first`` to ``second``: ``x = q[second] - q[first]``.

    ``"ground"`` stands still. Elements also take the pair itself::

        >>> jfric.between("u", "w").vector(("u", "w")).tolist()
        [-1.0, 1.0]
    """
    names = [(first, -1), (second, 1)]
    kept = [(n, s) for n, s in names if n != "ground"]
    return Direction(tuple(n for n, _ in kept), tuple(s for _, s in kept))


def vector(coefficients: dict, measures: Measure | None = None) -> Direction:
    """A direction ``x = sum(coefficients[name] * q[name])``; ``measures``: the kind of ``x``."""
    values = {k: scalar(v) for k, v in coefficients.items()}
    return Direction(tuple(coefficients), None, values, measures)


def as_direction(value) -> Any:
    """A :class:`Direction` from a value that the field of an element accepts.

    ``value``: a name, a pair of names, a mapping from names to coefficients, or a direction. Any
    other value is returned unchanged, for the checks of a problem::

        >>> jfric.as_direction(("u", "w")).names
        ('u', 'w')
    """
    if isinstance(value, str):
        return along(value)
    if isinstance(value, dict):
        return vector(value)
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return between(*value)
    return value


def kind(direction: Direction | None, dofs: Mapping[str, str]) -> str | None:
    """Kind ``"translation"`` or ``"rotation"``; None where a direction mixes both without a unit.

    This is the kind of the elongation along the direction: a lever arm with its unit on an angle
    makes a translation. Bases count as the degrees of freedom they are joined to.
    """
    if direction is not None and direction.measures is not None:
        return None if direction.measures == "unknown" else direction.measures
    kinds = {dofs[name] for name in (direction.names if direction else dofs) if name in dofs}
    return kinds.pop() if len(kinds) == 1 else None


def measure(
    given: Mapping[str, Any],
    coefficients: Mapping[str, Any],
    where: str,
    dofs: Mapping[str, str],
    lengths: Collection[str],
) -> Measure | None:
    """Kind of the elongation where the units of the coefficients, and not the degrees of freedom,
    determine it: a lever arm on an angle gives a length.

    ``given``: coefficients by name, texts with their units; ``lengths``: shared parameters with a
    unit. Raises :class:`jfric.ProblemError`.
    """
    found: dict[str, Measure] = {}
    for name, value in given.items():
        try:
            what = measured(value, tuple(_ELONGATIONS.get(dofs.get(name, ""), _EITHER)))
        except UnitError as error:
            raise ProblemError(f"{where}.{name}: {error}") from None
        if what is not None and name in dofs:
            found[name] = _ELONGATIONS[dofs[name]][what]
    if len(set(found.values())) > 1:
        first, second = found, [n for n in found if found[n] != next(iter(found.values()))]
        raise ProblemError(
            f"{where}: the units of {next(iter(first))!r} and {second[0]!r} give a length and an "
            "angle, all terms must be the same"
        )
    kinds = {dofs[n] for n in given if n in dofs}
    if found:
        along_it = next(iter(found.values()))
        return None if kinds == {along_it} else along_it
    if len(kinds) != 1:
        return None
    # Units of products of shared parameters are not computed.
    unknown = any(
        isinstance(x, Expression) and not set(x.references).isdisjoint(lengths)
        for x in coefficients.values()
    )
    return "unknown" if unknown else None
