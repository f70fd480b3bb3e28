"""Directions along which elements act."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from jfric.system.fields import scalar


class Direction(eqx.Module):
    """A direction ``w``: the element's elongation is ``x = w^T q`` (bases count as coordinates).

    Either static signs (one degree of freedom, or the difference of two), or coefficients that
    are parameters (array leaves, one for each named degree of freedom or base).
    """

    names: tuple[str, ...] = eqx.field(static=True)
    signs: tuple[int, ...] | None = eqx.field(static=True, default=None)
    coefficients: dict | None = None

    @property
    def is_single(self) -> bool:
        """Whether exactly one degree of freedom or base takes part."""
        return len(self.names) == 1

    def vector(self, axes: tuple[str, ...]):
        """The components of ``w`` along ``axes``, zeros where the element is not attached."""
        entries = (
            dict(zip(self.names, self.signs, strict=True))
            if self.signs is not None
            else self.coefficients or {}
        )
        return (
            jnp.stack(
                [jnp.asarray(entries.get(axis, 0.0), jnp.result_type(float)) for axis in axes]
            )
            if axes
            else jnp.zeros((0,))
        )


def along(name: str) -> Direction:
    """Along one degree of freedom, against the ground: ``x = q[name]``."""
    return Direction((name,), (1,))


def between(first: str, second: str) -> Direction:
    """From ``first`` to ``second``: ``x = q[second] - q[first]``; ``"ground"`` stands still."""
    names = [(first, -1), (second, 1)]
    kept = [(n, s) for n, s in names if n != "ground"]
    return Direction(tuple(n for n, _ in kept), tuple(s for _, s in kept))


def vector(coefficients: dict) -> Direction:
    """Any direction: ``x = sum(coefficients[name] * q[name])``."""
    return Direction(tuple(coefficients), None, {k: scalar(v) for k, v in coefficients.items()})


def as_direction(value) -> Any:
    """A name, a pair of names, a mapping or a :class:`Direction`."""
    if isinstance(value, str):
        return along(value)
    if isinstance(value, dict):
        return vector(value)
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return between(*value)
    return value
