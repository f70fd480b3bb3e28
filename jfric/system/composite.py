"""Elements that consist of others: a motor is an inertia, a damper and a torque.

The equations know the parts alone. Paths of parameters, files and messages know the element alone.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from jfric.system.expression import is_expression
from jfric.system.fields import UnitText

#: Elements by section and by name.
Parts = dict[str, dict[str, Any]]


class AbstractComposite(eqx.Module):
    """An element that consists of others."""

    @abc.abstractmethod
    def parts(self, label: str) -> Parts:
        """Elements that act in place of the element called ``label``. The names of those with a
        public section are ``label`` and one more word, which no name of a user holds."""

    @abc.abstractmethod
    def carried(self, label: str) -> tuple[str, ...]:
        """Labels of the parts whose forces are the force of the element, where it is a load."""

    @abc.abstractmethod
    def problems(self) -> Iterator[tuple[str, str]]:
        """Field and message for each contradiction between the fields."""


def computed(function: Callable[..., Any], *numbers: Any) -> Any:
    """``function`` of ``numbers``; NaN as long as one of them is missing or an expression. Only
    structure is read before a problem is checked and its expressions have values."""
    if any(x is None or is_expression(x) or isinstance(x, UnitText) for x in numbers):
        return jnp.nan
    return function(*numbers)
