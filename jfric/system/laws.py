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
from typing import ClassVar

import equinox as eqx

from jfric.system.fields import Scalar, scalar


class Directional(eqx.Module):
    """A coefficient that differs between sliding in the positive and the negative direction."""

    positive: Scalar = eqx.field(converter=scalar)
    negative: Scalar = eqx.field(converter=scalar)


def coefficient(value):
    """A coefficient of friction: one number, or :class:`Directional`."""
    return value if isinstance(value, Directional) else scalar(value)


def _pair(value):
    return (value.positive, value.negative) if isinstance(value, Directional) else (value, value)


class AbstractLaw(eqx.Module):
    """A friction law. A new law is one subclass, listed in :data:`LAWS`."""

    #: Whether the sliding force does not depend on the sliding velocity, so that the equations of
    #: a mode stay linear.
    velocity_independent: ClassVar[bool]
    #: Whether the limit in stick exceeds the sliding force at vanishing velocity.
    drops_at_onset: ClassVar[bool] = False

    @abc.abstractmethod
    def static(self) -> tuple[Scalar, Scalar]:
        """``(mu_s(+), mu_s(-))``: limits in stick."""

    @abc.abstractmethod
    def kinetic(self, gamma) -> tuple[Scalar, Scalar]:
        """``(mu_d(+), mu_d(-))`` at the sliding speed ``gamma >= 0``."""


class Coulomb(AbstractLaw):
    """Coulomb's law: ``lambda_T in -mu N Sign(gamma_T)``."""

    velocity_independent: ClassVar[bool] = True
    mu: Scalar | Directional = eqx.field(converter=coefficient)

    def static(self):
        return _pair(self.mu)

    def kinetic(self, gamma):
        return _pair(self.mu)


class StaticDynamic(AbstractLaw):
    """Coulomb's law with a static coefficient ``mu_s`` and a kinetic one ``mu_d <= mu_s``.

    A contact that sticks stays stuck while ``|lambda_T| <= mu_s N``; one that slides feels
    ``mu_d N`` until its sliding velocity is zero.
    """

    velocity_independent: ClassVar[bool] = True
    drops_at_onset: ClassVar[bool] = True
    mu_s: Scalar | Directional = eqx.field(converter=coefficient)
    mu_d: Scalar | Directional = eqx.field(converter=coefficient)

    def static(self):
        return _pair(self.mu_s)

    def kinetic(self, gamma):
        return _pair(self.mu_d)


LAWS: dict[str, type[AbstractLaw]] = {"coulomb": Coulomb, "static-dynamic": StaticDynamic}
