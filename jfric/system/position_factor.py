"""Dependence of friction on position: a factor on the normal force or the limit of an element."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.errors import ProblemError
from jfric.numerics import cubic
from jfric.system.fields import Scalar, holds, scalars

#: Points per period and harmonic among which the least value is found.
POINTS = 32
_AMPLITUDES = holds("pure number", form="numbers", converter=scalars)


class AbstractPositionFactor(eqx.Module):
    """A factor on friction, a function of the displacement ``s`` along its direction.

    Example: see :class:`jfric.PeriodicFactor`.
    """

    @abc.abstractmethod
    def __call__(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """The factor at the displacement ``s`` [m or rad]."""

    def prepared(self) -> AbstractPositionFactor:
        """The factor with values that follow from its numbers alone, computed once per run."""
        return self

    @abc.abstractmethod
    def least(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Displacement at which the factor is least, and its value there."""

    @abc.abstractmethod
    def require(self, where: str) -> None:
        """Raise :class:`ProblemError` for numbers that a factor cannot have."""


class PeriodicFactor(AbstractPositionFactor):
    """A periodic factor, as from the balls of a screw, teeth or poles::

        f(s) = 1 + sum_j cosine[j] cos(2 pi j s/period) + sine[j] sin(2 pi j s/period)

    with ``j = 1, 2, ...``.

    ``period`` [m or rad]: positive. ``cosine``, ``sine``: amplitudes of any number of harmonics,
    pure numbers or expressions. The factor must not be negative anywhere::

        >>> ripple = jfric.laws.PeriodicFactor(0.02, cosine=[0.1], sine=[0.0, 0.05])
        >>> [round(float(ripple(jnp.asarray(s))), 4) for s in (0.0, 0.01, 0.0025)]
        [1.1, 0.9, 1.1207]
    """

    period: Scalar = eqx.field(**holds("length", above=0.0))
    cosine: tuple[Scalar, ...] = eqx.field(default=(), **_AMPLITUDES)
    sine: tuple[Scalar, ...] = eqx.field(default=(), **_AMPLITUDES)

    def __call__(self, s):
        angle = 2.0 * jnp.pi * s / self.period
        found = jnp.ones_like(angle)
        for j, a in enumerate(self.cosine, 1):
            found = found + a * jnp.cos(j * angle)
        for j, b in enumerate(self.sine, 1):
            found = found + b * jnp.sin(j * angle)
        return found

    def least(self):
        harmonics = max(len(self.cosine), len(self.sine), 1)
        s = self.period * np.linspace(0.0, 1.0, POINTS * harmonics, endpoint=False)
        values = self(s)
        return s[jnp.argmin(values)], jnp.min(values)

    def require(self, where):
        if not float(self.period) > 0.0:
            raise ProblemError(f"{where}.period: found {float(self.period):g}, must be positive")


class SplineFactor(AbstractPositionFactor):
    """A factor through values at knots.

    The factor is a cubic spline, twice continuously differentiable between the knots and with a
    slope of zero at both ends, beyond which it is constant.

    ``x`` [m or rad]: strictly increasing displacements, at least two. ``factor``: as many values,
    not negative, also between the knots; pure numbers or expressions::

        >>> worn = jfric.laws.SplineFactor([0.0, 0.1, 0.2], [1.0, 0.8, 1.0])
        >>> [round(float(worn(jnp.asarray(s))), 4) for s in (0.1, 0.15, 0.5)]
        [0.8, 0.9, 1.0]
    """

    x: tuple[Scalar, ...] = eqx.field(**holds("length", form="numbers", converter=scalars))
    factor: tuple[Scalar, ...] = eqx.field(
        **holds("pure number", at_least=0.0, form="numbers", converter=scalars)
    )

    def __call__(self, s):
        return self.prepared()(s)

    def prepared(self) -> PreparedSpline:
        x, y = jnp.stack(self.x), jnp.stack(self.factor)
        return PreparedSpline(x, y, cubic.flat_slopes(x, y))

    def least(self):
        return self.prepared().least()

    def require(self, where):
        count, values = (len(n) if isinstance(n, tuple) else 1 for n in (self.x, self.factor))
        if count < 2 or values != count:
            raise ProblemError(
                f"{where}.factor: found {values} values for {count} of x, needed are as many, and "
                "at least two"
            )
        x = np.array([float(value) for value in self.x])
        if np.any(np.diff(x) <= 0):
            raise ProblemError(f"{where}.x: found {x.tolist()}, must increase strictly")


class PreparedSpline(AbstractPositionFactor):
    """A :class:`SplineFactor` with its slopes at the knots."""

    x: Float[Array, " k"]
    y: Float[Array, " k"]
    slopes: Float[Array, " k"]

    def __call__(self, s):
        at = jnp.vectorize(cubic.evaluate, signature="(k),(k),(k),()->()")
        return at(self.x, self.y, self.slopes, s)

    def least(self):
        return cubic.least(self.x, self.y, self.slopes)

    def require(self, where):
        del where


def require_position(where: str, element: Any) -> None:
    """Raise :class:`ProblemError` for a factor on friction whose displacement is not one constant
    direction."""
    if element.position is None:
        return
    if not isinstance(element.position, AbstractPositionFactor):
        raise ProblemError(
            f"{where}.position: found {type(element.position).__name__}, needed is a "
            "jfric.laws.PeriodicFactor or a jfric.laws.SplineFactor"
        )
    if element.direction is None or element.plane is not None:
        given = "plane" if element.plane is not None else "sliding"
        raise ProblemError(
            f"{where}.position: cannot be combined with {given}; it needs the displacement along "
            "a direction such as 'x'"
        )


def require_factor(where: str, factor: AbstractPositionFactor) -> None:
    """Raise :class:`ProblemError` for numbers that a factor cannot have, or a negative factor."""
    factor.require(where)
    at, least = map(float, factor.least())
    if least < 0.0:
        raise ProblemError(
            f"{where}: the factor on friction is negative, {least:.3g} at the displacement {at:.4g}"
        )
