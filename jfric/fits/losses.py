"""Loss functions of residuals: how much outliers count.

The cost of residuals ``r`` is ``scale^2/2 sum rho((r/scale)^2)``.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float


class AbstractLoss(abc.ABC):
    """Loss of residuals; ``scale``: the residual, in noise levels, above which it counts less."""

    #: Name in files and commands.
    word: ClassVar[str]
    scale: float

    @staticmethod
    @abc.abstractmethod
    def rho(s: Float[Array, ...]) -> tuple[Float[Array, ...], Float[Array, ...]]:
        """``rho(s)`` and ``rho'(s)`` of squared residuals ``s``."""


@dataclass(frozen=True)
class Squares(AbstractLoss):
    """Sum of squares: outliers count as they are.

    >>> jfric.Squares().rho(4.0)[0]
    4.0
    """

    word = "linear"
    scale: ClassVar[float] = 1.0

    @staticmethod
    def rho(s):
        return s, jnp.ones_like(s)


@dataclass(frozen=True)
class Huber(AbstractLoss):
    """Squares up to ``scale`` noise levels, absolute values beyond.

    >>> float(jfric.Huber(scale=2.0).rho(4.0)[0])
    3.0
    """

    word = "huber"
    scale: float = 1.0

    @staticmethod
    def rho(s):
        root = jnp.sqrt(jnp.maximum(s, 1.0))
        return jnp.where(s <= 1.0, s, 2.0 * root - 1.0), jnp.where(s <= 1.0, 1.0, 1.0 / root)


@dataclass(frozen=True)
class SoftL1(AbstractLoss):
    """Smooth passage from squares to absolute values around ``scale`` noise levels.

    >>> float(jfric.SoftL1().rho(3.0)[0])
    2.0
    """

    word = "soft_l1"
    scale: float = 1.0

    @staticmethod
    def rho(s):
        return 2.0 * (jnp.sqrt(1.0 + s) - 1.0), 1.0 / jnp.sqrt(1.0 + s)


@dataclass(frozen=True)
class Cauchy(AbstractLoss):
    """Logarithm of squares: residuals far above ``scale`` noise levels hardly count.

    >>> round(float(jfric.Cauchy().rho(1.0)[0]), 4)
    0.6931
    """

    word = "cauchy"
    scale: float = 1.0

    @staticmethod
    def rho(s):
        return jnp.log1p(s), 1.0 / (1.0 + s)


LOSSES = {loss.word: loss for loss in (Squares, Huber, SoftL1, Cauchy)}
