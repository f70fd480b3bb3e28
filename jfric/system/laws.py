"""Friction laws: the set of admissible friction forces in stick, and the force in sliding.

Signs: the friction force on the body is ``lambda_T``, the sliding velocity ``gamma_T``. For a
normal force ``N >= 0``::

    stick   (gamma_T = 0):  -mu_s(+) N <= lambda_T <= mu_s(-) N
    sliding (gamma_T > 0):  lambda_T = -mu_d(+, gamma_T) N
    sliding (gamma_T < 0):  lambda_T = +mu_d(-, gamma_T) N

with (+), (-) the coefficients for the two directions of sliding.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, ClassVar, Self, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.numerics import cubic
from jfric.numerics.choice import select
from jfric.system.expression import Expression
from jfric.system.fields import Scalar, holds, scalar, scalars, written


class Directional(eqx.Module):
    """A coefficient that differs between sliding in the positive and the negative direction.

    ``positive``, ``negative``: the coefficient for a positive and a negative sliding velocity, each
    a number or an expression, or those of a :class:`jfric.FrictionCurve`. Any coefficient of any
    law may be directional::

        >>> [float(mu) for mu in jfric.Coulomb(jfric.laws.Directional(0.2, 0.3)).static()]
        [0.2, 0.3]
    """

    positive: Scalar = eqx.field(converter=scalars)
    negative: Scalar = eqx.field(converter=scalars)


class PerAxis(eqx.Module):
    """A coefficient of friction in a plane that differs between its two directions.

    The limits form an ellipse, see :class:`jfric.Friction`. ``first``, ``second``: a number or an
    expression each. A pair of numbers means the same::

        >>> law = jfric.Coulomb([0.4, 0.2])
        >>> [float(law.along(i).mu) for i in (0, 1)]
        [0.4, 0.2]
    """

    first: Scalar = eqx.field(converter=scalar)
    second: Scalar = eqx.field(converter=scalar)


def coefficient(value):
    """A coefficient of friction: one number, :class:`Directional`, :class:`PerAxis` or a pair of
    numbers, or None where it may be left out."""
    if isinstance(value, (list, tuple)) and len(value) == 2:
        return PerAxis(*value)
    return value if isinstance(value, (Directional, PerAxis)) else scalar(value)


#: A coefficient of friction, equal in all directions of sliding or not, and its properties.
Coefficient: TypeAlias = Scalar | Directional | PerAxis
_coefficient = functools.partial(holds, form="coefficient", converter=coefficient)
_RATIO = _coefficient("coefficient of friction", at_least=0.0)


def as_law(value) -> Any:
    """A law; a number, or another form of a coefficient, becomes Coulomb's coefficient."""
    numbers = (int, float, str, list, tuple, Directional, PerAxis, Expression)
    is_number = isinstance(value, numbers) or eqx.is_array(value)
    return Coulomb(value) if is_number and not isinstance(value, bool) else value


def knots(value):
    """Values of a curve at its knots, or :class:`Directional` with those of both directions."""
    return value if isinstance(value, Directional) else scalars(value)


def sides(value) -> tuple[Scalar, Scalar]:
    """A coefficient for sliding in the positive and in the negative direction."""
    return (value.positive, value.negative) if isinstance(value, Directional) else (value, value)


class AbstractLaw(eqx.Module):
    """A friction law: limits in stick, and the coefficient of a contact that slides.

    A new law is one subclass, listed in :data:`jfric.system.laws.LAWS`. Its fields are its numbers.
    Example: see :class:`jfric.Coulomb`.
    """

    #: Whether the sliding force does not depend on the sliding velocity, so that the equations of
    #: a mode stay linear.
    velocity_independent: ClassVar[bool]
    #: Whether the law is for a disc, whose slip and spin depend on each other.
    spins: ClassVar[bool] = False

    @property
    def drops_at_onset(self) -> bool:
        """Whether the limit in stick exceeds the sliding force at vanishing velocity."""
        return False

    @property
    def spins_within(self) -> Any:
        """Radius of the disc if it :attr:`spins`."""
        return None

    def along(self, axis: int) -> Self:
        """The law along one of the directions of a plane."""

        def own(value):
            return (value.first, value.second)[axis] if isinstance(value, PerAxis) else value

        return replace(self, **{f.name: own(getattr(self, f.name)) for f in fields(self)})

    def prepared(self) -> AbstractLaw:
        """The law with values that follow from its numbers alone, computed once per simulation."""
        return self

    def holding(self, kind: type) -> list[str]:
        """Names of the coefficients that are of a ``kind``."""
        return [f.name for f in fields(self) if isinstance(getattr(self, f.name), kind)]

    @abc.abstractmethod
    def static(self) -> tuple[Scalar, Scalar]:
        """Limits ``(mu_s(+), mu_s(-))`` in stick."""

    @abc.abstractmethod
    def kinetic(self, gamma) -> tuple[Scalar, Scalar]:
        """Coefficients ``(mu_d(+), mu_d(-))`` at the sliding speed ``gamma >= 0``."""


class Coulomb(AbstractLaw):
    """Coulomb's law: ``lambda_T in -mu N Sign(gamma_T)``.

    ``mu``: coefficient of friction, not negative; a number, an expression or
    :class:`jfric.laws.Directional`::

        >>> float(jfric.Coulomb(0.3).kinetic(jnp.asarray(0.1))[0])
        0.3
    """

    velocity_independent: ClassVar[bool] = True
    mu: Coefficient = eqx.field(**_RATIO)

    def static(self):
        return sides(self.mu)

    def kinetic(self, gamma):
        return sides(self.mu)


class StaticDynamic(AbstractLaw):
    """Coulomb's law with a static coefficient ``mu_s`` and a kinetic one ``mu_d <= mu_s``.

    A contact that sticks stays stuck while ``|lambda_T| <= mu_s N``; one that slides feels
    ``mu_d N`` until its sliding velocity is zero. Coefficients may differ for
    the two directions of sliding; ``static`` and ``kinetic`` give them for both::

        >>> law = jfric.StaticDynamic(0.5, jfric.laws.Directional(0.3, 0.4))
        >>> [float(x) for x in (*law.static(), *law.kinetic(jnp.asarray(0.1)))]
        [0.5, 0.5, 0.3, 0.4]
    """

    velocity_independent: ClassVar[bool] = True
    mu_s: Coefficient = eqx.field(**_RATIO)
    mu_d: Coefficient = eqx.field(**_RATIO)

    @property
    def drops_at_onset(self) -> bool:
        return True

    def static(self):
        return sides(self.mu_s)

    def kinetic(self, gamma):
        return sides(self.mu_d)


class Stribeck(AbstractLaw):
    """Stribeck's curve: friction goes from ``mu_s`` towards ``mu_d`` as sliding gets faster::

        mu(v) = mu_d + (mu_s - mu_d) exp(-(v/v_s)^exponent) + mu_v v,    v = |gamma_T|

    ``v_s`` [m/s or rad/s]: Stribeck velocity. ``exponent``: by default 2 (Gaussian); 1 is
    Tustin's form. ``mu_v`` [s/m or s/rad]: viscous part, proportional to the normal force like the
    rest (unlike a damper). Stick holds up to ``mu_s N``; there is no jump at the onset of sliding.
    With ``mu_d`` above ``mu_s`` friction rises from rest.

    ``peak >= 1``: factor for break-away, ``|lambda_T| <= peak mu_s N`` in stick; once sliding,
    friction begins at ``mu(0) = mu_s`` and falls smoothly. The default is 1; a law with a given
    ``peak``, even of 1, counts as one that drops at the onset. Impacts use ``mu_s``.

    Source: B. Armstrong-Helouvry, P. Dupont, C. Canudas de Wit, "A survey of models, analysis
    tools and compensation methods for the control of machines with friction", Automatica 30
    (1994), section 2; ``peak`` as in ``Modelica.Mechanics.Rotational.Components.BearingFriction``,
    "peak*tau_pos[1, 2] = maximum friction torque for w == 0". Static limit, and friction at the
    Stribeck velocity::

        >>> law = jfric.Stribeck(mu_s=0.4, mu_d=0.2, v_s=0.01)
        >>> [round(float(x[0]), 4) for x in (law.static(), law.kinetic(jnp.asarray(0.01)))]
        [0.4, 0.2736]
    """

    velocity_independent: ClassVar[bool] = False
    mu_s: Coefficient = eqx.field(**_RATIO)
    mu_d: Coefficient = eqx.field(**_RATIO)
    v_s: Coefficient = eqx.field(**_coefficient("velocity", above=0.0))
    exponent: Coefficient = eqx.field(default=2.0, **_coefficient("pure number", above=0.0))
    mu_v: Coefficient = eqx.field(default=0.0, **_coefficient("inverse velocity", at_least=0.0))
    peak: Coefficient | None = eqx.field(default=None, **_coefficient("pure number", at_least=1.0))

    @property
    def drops_at_onset(self) -> bool:
        return self.peak is not None

    def static(self):
        if self.peak is None:
            return sides(self.mu_s)
        return _of_each_side(lambda mu_s, peak: mu_s * peak, (self.mu_s, self.peak))

    def kinetic(self, gamma):
        return _of_each_side(
            lambda mu_s, mu_d, v_s, exponent, mu_v: (
                mu_d + (mu_s - mu_d) * jnp.exp(-power(gamma / v_s, exponent)) + mu_v * gamma
            ),
            (self.mu_s, self.mu_d, self.v_s, self.exponent, self.mu_v),
        )


class VelocityWeakening(AbstractLaw):
    """Friction that falls hyperbolically with the sliding velocity::

        mu(v) = mu_d + (mu_s - mu_d) / (1 + v/v_s) + mu_v v,    v = |gamma_T|

    ``v_s`` [m/s or rad/s]: velocity at which half of the fall is reached; ``mu_d``: limit at high
    velocity, by default zero; ``mu_v`` [s/m or s/rad]: viscous part. Stick holds up to
    ``mu_s N``; impacts use ``mu_s``. Source: R. I. Leine, D. H. van Campen, A. de Kraker,
    L. van den Steen, "Stick-slip vibrations induced by alternate friction models", Nonlinear
    Dynamics 16 (1998), whose ``F_s/(1 + delta v)`` has ``v_s = 1/delta`` and ``mu_d = 0``::

        >>> law = jfric.laws.VelocityWeakening(mu_s=0.4, v_s=0.1)
        >>> [round(float(law.kinetic(jnp.asarray(v))[0]), 6) for v in (0.0, 0.1)]
        [0.4, 0.2]
    """

    velocity_independent: ClassVar[bool] = False
    mu_s: Coefficient = eqx.field(**_RATIO)
    v_s: Coefficient = eqx.field(**_coefficient("velocity", above=0.0))
    mu_d: Coefficient = eqx.field(default=0.0, **_RATIO)
    mu_v: Coefficient = eqx.field(default=0.0, **_coefficient("inverse velocity", at_least=0.0))

    def static(self):
        return sides(self.mu_s)

    def kinetic(self, gamma):
        return _of_each_side(
            lambda mu_s, v_s, mu_d, mu_v: mu_d + (mu_s - mu_d) / (1.0 + gamma / v_s) + mu_v * gamma,
            (self.mu_s, self.v_s, self.mu_d, self.mu_v),
        )


class FrictionCurve(AbstractLaw):
    """A friction curve through values at knots, for friction that no named law describes.

    ``mu(v) = curve[i]`` at ``v = |gamma_T| = speeds[i]`` [m/s or rad/s]; ``speeds`` begin with 0
    and increase strictly, at least two. ``curve``: not negative, as many; with
    :class:`jfric.laws.Directional` one curve for each direction of sliding. The values are numbers
    or expressions, each a parameter of its own (``friction.curve.2``,
    ``friction.curve.negative.0``). Between the knots the curve is the natural cubic spline over
    ``ln(1 + v/speeds[1])``, which evenly spaces knots whose distances grow with the speed; it is
    twice continuously differentiable. With ``monotone`` it turns only where the values do, and is
    once continuously differentiable. Beyond the last knot it continues as a straight line, or,
    where it falls, decays as an exponential with the same slope.

    ``mu_s``, at least ``curve[0]``: limit in stick; by default ``curve[0]``, without a jump at the
    onset of sliding. Impacts take the limit at vanishing velocity, ``curve[0]``.

    Raises (in :class:`jfric.Problem`) :class:`jfric.ProblemError` for knots that do not increase
    and a curve that is negative anywhere, also between knots. A curve with a minimum::

        >>> law = jfric.FrictionCurve([0.0, 0.01, 0.1, 1.0], [0.3, 0.2, 0.15, 0.25])
        >>> [round(float(law.kinetic(jnp.asarray(v))[0]), 4) for v in (0.0, 0.01, 1.0, 2.0)]
        [0.3, 0.2, 0.25, 0.3048]
    """

    velocity_independent: ClassVar[bool] = False
    speeds: tuple[Scalar, ...] = eqx.field(
        **holds("velocity", at_least=0.0, form="numbers", converter=scalars)
    )
    curve: tuple[Scalar, ...] | Directional = eqx.field(
        **holds("pure number", at_least=0.0, form="knots", converter=knots)
    )
    mu_s: Coefficient | None = eqx.field(default=None, **_RATIO)
    monotone: bool = eqx.field(default=False, **written("flag"))

    @property
    def drops_at_onset(self) -> bool:
        return self.mu_s is not None

    def static(self):
        if self.mu_s is not None:
            return sides(self.mu_s)
        positive, negative = sides(self.curve)
        return positive[0], negative[0]

    def kinetic(self, gamma):
        return self.prepared().kinetic(gamma)

    def prepared(self) -> PreparedCurve:
        speeds = jnp.stack(self.speeds)
        x = jnp.log1p(speeds / speeds[1])
        y = jnp.stack([jnp.stack(side) for side in sides(self.curve)])
        of = cubic.monotone_slopes if self.monotone else cubic.natural_slopes
        slopes = jnp.stack([of(x, side) for side in y])
        limits = jnp.stack(self.static())
        return PreparedCurve(x, y, slopes, speeds[1], speeds[-1], limits, self.drops_at_onset)


class Contensou(AbstractLaw):
    """Coulomb's law at every point of a disc, under an even pressure, that slips and spins.

    At slip ``v`` (2,) and spin ``w`` friction dissipates the mean over the disc, and force and
    torque are the derivatives of that: a disc that spins slips as if in a fluid::

        D(v, w) = mu N mean |v + w x r|,    (lambda_T, torque) = -dD/d(v, w)
        stick    lambda_T . v + torque w <= D(v, w)  for all v, w

    Pure slip gives the force ``mu N``, pure spin the torque ``2/3 mu N R``. ``mu``: not negative;
    ``radius`` [m]: of the disc. For :class:`jfric.Friction` in a ``plane`` with ``spin``. Source:
    P. Contensou (1963); in closed form, with complete elliptic integrals, Z. Farkas, G. Bartels,
    T. Unger, D. E. Wolf, Phys. Rev. Lett. 90 (2003), 248302::

        >>> law = jfric.laws.Contensou(0.3, radius=0.1)
        >>> float(law.static()[0]), float(law.spins_within)
        (0.3, 0.1)
    """

    velocity_independent: ClassVar[bool] = False
    spins: ClassVar[bool] = True
    mu: Scalar = eqx.field(**_RATIO)
    radius: Scalar = eqx.field(**holds("length", above=0.0, fixed=True, form="number"))

    @property
    def spins_within(self):
        return self.radius

    def static(self):
        return sides(self.mu)

    def kinetic(self, gamma):
        return sides(self.mu)


class PreparedCurve(AbstractLaw):
    """A :class:`FrictionCurve` over ``x = ln(1 + v/first)`` with its slopes at the knots, rows for
    both directions, up to the speed ``last``."""

    velocity_independent: ClassVar[bool] = False
    x: Float[Array, " k"]
    y: Float[Array, "2 k"]
    slopes: Float[Array, "2 k"]
    first: Float[Array, ""]
    last: Float[Array, ""]
    limits: Float[Array, " 2"]
    drops: bool = eqx.field(static=True)

    @property
    def drops_at_onset(self) -> bool:
        return self.drops

    def static(self):
        return self.limits[0], self.limits[1]

    def kinetic(self, gamma):
        gamma = jnp.asarray(gamma, self.y.dtype)
        of_side = jnp.vectorize(self._at, signature="(k),(k),()->()")
        return tuple(of_side(y, d, gamma) for y, d in zip(self.y, self.slopes, strict=True))

    def _at(self, y, slopes, speed):
        beyond = speed > self.last
        inside = select(beyond, self.last, speed)
        curve = cubic.evaluate(self.x, y, slopes, jnp.log1p(inside / self.first))
        slope = slopes[-1] / (self.first + self.last)
        falls = (slope < 0.0) & (y[-1] > 0.0)
        rate = select(falls, slope / select(falls, y[-1], 1.0), 0.0)
        more = select(beyond, speed - self.last, 0.0)
        return select(falls, curve * jnp.exp(rate * more), curve + slope * more)


def _of_each_side(formula: Callable, coefficients: tuple):
    pairs = [sides(c) for c in coefficients]
    return formula(*(p[0] for p in pairs)), formula(*(p[1] for p in pairs))


def power(x, exponent):
    """Power ``x^exponent`` for ``x >= 0``, without infinite slope at zero of exponents below 1."""
    positive = x > 0
    at_zero = select(exponent == 1.0, x, 0.0)
    return select(positive, select(positive, x, 1.0) ** exponent, at_zero)


def odd_power(x, exponent):
    """``|x|^exponent sign(x)`` for exponents of at least 1, with its slope at zero."""
    positive = jnp.abs(x) > 0
    size = select(positive, jnp.abs(x), 1.0) ** (exponent - 1.0)
    return x * select(positive, size, select(exponent == 1.0, 1.0, 0.0))


#: Laws by the name that files use. If given fields fit several laws, the first one is taken.
LAWS: dict[str, type[AbstractLaw]] = {
    "coulomb": Coulomb,
    "static-dynamic": StaticDynamic,
    "stribeck": Stribeck,
    "velocity-weakening": VelocityWeakening,
    "curve": FrictionCurve,
    "contensou": Contensou,
}
