"""Friction with a state of its own: bristles that bend, and asperities that age. Pure data.

With the sliding velocity ``gamma = w^T v`` an element obeys ``z' = rate``, and its force along
``w`` is ``-friction``. Both are smooth for each sign of ``gamma``; a change of the sign is an
event.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp

from jfric.numerics.choice import select
from jfric.system.direction import Direction, as_direction
from jfric.system.fields import Scalar, holds, scalar
from jfric.system.friction import Growth, as_load
from jfric.system.laws import odd_power, power


class AbstractBristle(eqx.Module):
    """Friction with one state ``z``.

    ``direction``: ``w``, as in :class:`jfric.Friction`. A user's class defines ``rate``,
    ``friction`` and ``size``. Example: see :class:`jfric.Dahl`.
    """

    direction: eqx.AbstractVar[Direction]
    #: Whether ``z`` follows ``gamma`` so fast that explicit steps would be short.
    stiff: ClassVar[bool] = False
    #: Name of the field with the state at the start.
    starts: ClassVar[str] = "z0"
    #: Unit of the state; None for that of a displacement.
    unit: ClassVar[str | None] = None
    symbol: ClassVar[str] = "spring and slider"

    def start(self) -> Any:
        """The state at the start."""
        return getattr(self, self.starts)

    def largest(self) -> Any:
        """Largest magnitude of the state in any motion from rest; infinite where the numbers set no
        limit, None where there is no such number."""
        return None

    def problems(self) -> Iterator[tuple[str, str]]:
        """Field and message for each number that the element cannot have; numbers are known."""
        limit, start = self.largest(), float(self.start())
        if limit is not None and abs(start) > float(limit):
            said = f"found {start:g}, the state never exceeds {limit:g}; start nearer to zero"
            yield "z0", said

    def remark(self) -> str | None:
        """Reason why the element, whose numbers are known, may give energy to a motion; None where
        it never does."""
        return None

    def growth(self) -> list[Growth]:
        """Loads that :meth:`friction` depends on: one or none. It is then given the load and its
        magnitude as well."""
        return []

    @property
    @abc.abstractmethod
    def size(self) -> Any:
        """The size of the state in gross sliding; changes far below it need not be resolved."""

    @abc.abstractmethod
    def rate(self, gamma, z, side) -> Any:
        """Rate ``z'`` at the sliding velocity ``gamma`` of the sign ``side``."""

    @abc.abstractmethod
    def friction(self, gamma, z, side) -> Any:
        """Force or torque that resists sliding forwards [N or N m]."""


class Dahl(AbstractBristle):
    """Dahl's friction: a bristle that yields as its force approaches the limit::

        F = sigma z,    z' = gamma |r|^exponent sign(r),    r = 1 - F sign(gamma)/F_c

    ``direction``: ``w``, as in :class:`jfric.Friction`; it may end at a support
    (:class:`jfric.Base`). ``sigma`` [N/m or N m/rad]: stiffness at rest, ``F_c`` [N or N m]: limit,
    both positive; ``exponent``: at least 1, by default 1. ``z0`` [m or rad]: state at the start.
    The force depends on the path alone, not on the rate. There is no true stick: the body creeps
    under a load that fluctuates. Results have ``z.dahl``.

    Source: P. R. Dahl, "A solid friction model", Aerospace Corporation TOR-0158(3107-18)-1 (1968).
    From rest ``F = F_c (1 - exp(-sigma x/F_c))`` for the exponent 1::

        >>> law = jfric.Dahl("u", sigma=100.0, F_c=1.0)
        >>> float(law.rate(0.2, 0.005, 1.0))
        0.1
    """

    direction: Direction = eqx.field(converter=as_direction)
    sigma: Scalar = eqx.field(**holds("stiffness", above=0.0))
    F_c: Scalar = eqx.field(**holds("force", above=0.0))
    exponent: Scalar = eqx.field(default=1.0, **holds("pure number", at_least=1.0))
    z0: Scalar = eqx.field(default=0.0, **holds("length"))

    @property
    def size(self):
        return self.F_c / self.sigma

    def largest(self):
        return self.F_c / self.sigma

    def rate(self, gamma, z, side):
        r = 1.0 - side * self.sigma * z / self.F_c
        return gamma * odd_power(r, self.exponent)

    def friction(self, gamma, z, side):
        return self.sigma * z


class BoucWen(AbstractBristle):
    """Hysteresis of Bouc and Wen::

        F = k z,    z' = A gamma - beta |gamma| |z|^(n-1) z - gamma_ gamma |z|^n

    with ``gamma_`` for the parameter ``gamma``. ``direction``: ``w``, as in
    :class:`jfric.Friction`; it may end at a support. ``k`` [N/m or N m/rad]: positive; ``A`` [1]:
    positive; ``beta``, ``gamma`` [1/m^n or 1/rad^n]; ``n`` at least 1. ``z0`` [m or rad]: state at
    the start. ``|z|`` stays below ``(A/(beta + gamma))^(1/n)`` where ``beta + gamma > 0``; the
    element takes energy from every cycle where ``-beta <= gamma <= beta``. Forces depend only on
    ``k A`` and the products of ``beta`` and ``gamma`` with a power of ``k``: keep one of these
    parameters fixed in a fit. Results have ``z.bouc_wen``.

    Sources: R. Bouc, "Forced vibration of mechanical systems with hysteresis" (1967); Y.-K. Wen,
    "Method for random vibration of hysteretic systems", J. Engineering Mechanics Division 102
    (1976); on passivity F. Ikhouane, J. Rodellar, Systems with Hysteresis (2007)::

        >>> law = jfric.BoucWen("u", k=10.0, beta=0.5, gamma=0.5, n=2.0)
        >>> float(law.rate(2.0, 0.5, 1.0))
        1.5
    """

    direction: Direction = eqx.field(converter=as_direction)
    k: Scalar = eqx.field(**holds("stiffness", above=0.0))
    beta: Scalar = eqx.field(converter=scalar)
    gamma: Scalar = eqx.field(converter=scalar)
    n: Scalar = eqx.field(default=1.0, **holds("pure number", at_least=1.0))
    A: Scalar = eqx.field(default=1.0, **holds("pure number", above=0.0))
    z0: Scalar = eqx.field(default=0.0, **holds("length"))

    @property
    def size(self):
        bounded = self.beta + self.gamma > 0.0
        limit = self.A / select(bounded, self.beta + self.gamma, 1.0)
        return select(bounded, jnp.maximum(limit, 0.0) ** (1.0 / self.n), 0.0)

    def largest(self):
        both = self.beta + self.gamma
        grows = (self.A / select(both > 0, both, 1.0)) ** (1.0 / self.n)
        return select(both > 0, grows, jnp.inf)

    def remark(self):
        if not -self.beta <= self.gamma <= self.beta:
            outside = f"gamma ({float(self.gamma):g}) lies outside -beta to beta"
            return f"{outside} ({float(self.beta):g})"
        return None

    def rate(self, gamma, z, side):
        bends = self.beta * side * odd_power(z, self.n) + self.gamma * power(jnp.abs(z), self.n)
        return gamma * (self.A - bends)

    def friction(self, gamma, z, side):
        return self.k * z


class LuGre(AbstractBristle):
    """LuGre friction: the mean deflection of bristles, with Stribeck's curve in steady sliding::

        z' = gamma - alpha sigma0 |gamma| z/g,    g = F_c + (F_s - F_c) exp(-(gamma/v_s)^2)
        F  = sigma0 z + sigma1 z' + sigma2 gamma

    ``direction``: ``w``, as in :class:`jfric.Friction`; it may end at a support.
    ``sigma0`` [N/m or N m/rad], ``F_c`` and ``F_s >= F_c`` [N or N m], ``v_s`` [m/s or rad/s]:
    positive; ``sigma1``, ``sigma2`` [N s/m or N m s/rad]: not negative. The element is passive if
    ``sigma2 > sigma1 (F_s - F_c)/F_c``. ``alpha`` is 1, and the body creeps under a load that
    fluctuates; with ``breakaway`` between 0 and 1 the element is elasto-plastic and truly sticks::

        alpha = 0 where |z| <= breakaway g/sigma0, or z pushes in the direction of gamma,
                1 where |z| >= g/sigma0, between them half a period of a sine

    ``z0`` [m or rad]: state at the start. The element is stiff: steps are implicit (Radau IIA of
    order 13). Results have ``z.lugre``.

    Sources: C. Canudas de Wit, H. Olsson, K. J. Astrom, P. Lischinsky, "A new model for control of
    systems with friction", IEEE Trans. Automatic Control 40 (1995); P. Dupont, V. Hayward,
    B. Armstrong, F. Altpeter, "Single state elastoplastic friction models", ibid. 47 (2002). In
    steady sliding::

        >>> law = jfric.LuGre("u", sigma0=1e5, sigma1=300.0, sigma2=0.4, F_c=1.0, F_s=1.5, v_s=1e-3)
        >>> z = 1.0 / 1e5
        >>> round(float(law.friction(0.1, z, 1.0)), 9)
        1.04
    """

    direction: Direction = eqx.field(converter=as_direction)
    sigma0: Scalar = eqx.field(**holds("stiffness", above=0.0))
    F_c: Scalar = eqx.field(**holds("force", above=0.0))
    F_s: Scalar = eqx.field(**holds("force", above=0.0))
    v_s: Scalar = eqx.field(**holds("velocity", above=0.0))
    sigma1: Scalar = eqx.field(default=0.0, **holds("damping", at_least=0.0))
    sigma2: Scalar = eqx.field(default=0.0, **holds("damping", at_least=0.0))
    breakaway: Scalar | None = eqx.field(
        default=None, **holds("pure number", at_least=0.0, at_most=1.0)
    )
    z0: Scalar = eqx.field(default=0.0, **holds("length"))
    stiff: ClassVar[bool] = True

    @property
    def size(self):
        return self.F_c / self.sigma0

    def largest(self):
        return self.F_s / self.sigma0

    def problems(self):
        if float(self.F_s) < float(self.F_c):
            said = f"found {float(self.F_s):g}, must not be below F_c ({float(self.F_c):g})"
            yield "F_s", said
        if self.breakaway is not None and not 0.0 < float(self.breakaway) < 1.0:
            yield "breakaway", f"found {float(self.breakaway):g}, must lie between 0 and 1"
        yield from super().problems()

    def remark(self):
        needed = float(self.sigma1 * (self.F_s - self.F_c) / self.F_c)
        if float(self.sigma2) <= needed and needed > 0:
            exceeds = f"sigma2 ({float(self.sigma2):g}) does not exceed sigma1 (F_s - F_c)/F_c"
            return f"{exceeds} ({needed:g})"
        return None

    def steady(self, gamma):
        """Steady friction ``g`` at the sliding velocity ``gamma`` [N or N m]."""
        drop = self.F_s - self.F_c
        return self.F_c + drop * jnp.exp(-jnp.square(gamma / self.v_s))

    def rate(self, gamma, z, side):
        part = side * self.sigma0 * z / self.steady(gamma)
        if self.breakaway is not None:
            middle, width = 0.5 * (1.0 + self.breakaway), 1.0 - self.breakaway
            inside = jnp.clip((part - middle) / width, -0.5, 0.5)
            part = part * 0.5 * (1.0 + jnp.sin(jnp.pi * inside))
        return gamma * (1.0 - part)

    def friction(self, gamma, z, side):
        damping = self.sigma1 * self.rate(gamma, z, side) + self.sigma2 * gamma
        return self.sigma0 * z + damping


Evolution = Literal["ageing", "slip"]


class RateState(AbstractBristle):
    """Rate- and state-dependent friction of Dieterich and Ruina::

        mu = mu0 + a ln(V/V0) + b psi,    psi = ln(V0 theta/D_c),    V = |gamma|
        ageing:  theta' = 1 - V theta/D_c,      slip:  theta' = -(V theta/D_c) ln(V theta/D_c)

    in the form that is defined at rest, ``mu = a asinh(gamma/(2 V0) exp((mu0 + b psi)/a))``, which
    differs by less than rounding at all relevant speeds. ``direction``: ``w``, as in
    :class:`jfric.Friction`; it may end at a support. ``N`` [N or N m]: normal force (in a law for
    stresses: normal stress, with masses and stiffnesses per area), ``a`` [1], ``D_c`` [m or
    rad] and ``V0`` [m/s or rad/s]: positive; ``b`` [1]: not negative; ``mu0`` [1]. The state is
    ``psi`` [1], ``psi0`` at the start: zero in steady sliding at ``V0``. ``evolution``:
    ``"ageing"`` or ``"slip"``. It is stiff, like :class:`jfric.LuGre`. Results have
    ``z.rate_state``.

    Steady sliding on a spring is stable above the stiffness ``N (b - a)/D_c``. Sources: J. H.
    Dieterich, J. Geophysical Research 84 (1979); A. Ruina, ibid. 88 (1983); J. R. Rice, A. L.
    Ruina, J. Applied Mechanics 50 (1983); the form at rest: N. Lapusta et al., J. Geophysical
    Research 105 (2000)::

        >>> law = jfric.RateState("u", N=1e7, mu0=0.6, a=0.01, b=0.015, D_c=1e-3, V0=1e-6)
        >>> round(float(law.friction(1e-6, 0.0, 1.0) / 1e7), 9), float(law.rate(1e-6, 0.0, 1.0))
        (0.6, 0.0)
    """

    direction: Direction = eqx.field(converter=as_direction)
    N: Scalar = eqx.field(**holds("force", above=0.0))
    mu0: Scalar = eqx.field(**holds("pure number"))
    a: Scalar = eqx.field(**holds("pure number", above=0.0))
    b: Scalar = eqx.field(**holds("pure number", at_least=0.0))
    D_c: Scalar = eqx.field(**holds("length", above=0.0))
    V0: Scalar = eqx.field(**holds("velocity", above=0.0))
    psi0: Scalar = eqx.field(default=0.0, **holds("pure number"))
    evolution: Evolution = eqx.field(static=True, default="ageing")
    stiff: ClassVar[bool] = True
    starts: ClassVar[str] = "psi0"
    unit: ClassVar[str | None] = ""

    @property
    def size(self):
        return 1.0

    def rate(self, gamma, z, side):
        speed = side * gamma
        if self.evolution == "ageing":
            return (self.V0 * jnp.exp(-z) - speed) / self.D_c
        moving = speed > 0
        logarithm = jnp.log(select(moving, speed, 1.0) / self.V0)
        return select(moving, -speed / self.D_c * (logarithm + z), 0.0)

    def friction(self, gamma, z, side):
        # The argument of asinh may be beyond the largest number.
        exponent = (self.mu0 + self.b * z) / self.a
        x = side * gamma / (2.0 * self.V0)
        # Friction is an odd function; steps may evaluate it slightly beyond rest.
        back = x < 0.0
        x, side = select(back, -x, x), select(back, -side, side)
        small = jnp.exp(-2.0 * exponent)
        root = jnp.sqrt(jnp.square(x) + small)
        return side * self.N * self.a * (exponent + jnp.log(x + root))


class DirectionalLoss(AbstractBristle):
    """Loss in proportion to the torque ``tau`` that a gear carries, with memory over an angle::

        F = average |tau| z + difference tau z^2,    z' = (gamma - |gamma| z)/h

    In steady motion ``z = sign(gamma)``: the gear loses ``(average + difference) |tau|`` where
    ``tau`` drives it and ``(average - difference) |tau|`` where it is driven. After a reversal the
    loss turns round over an angle of some ``h``, ``z = 1 - 2 exp(-theta/h)``. There is no true
    stick: the gear creeps under a torque that fluctuates; :class:`jfric.elements.Transmission`
    sticks.

    ``direction``: ``w``, as in :class:`jfric.Friction`. ``load``: the elements whose forces are
    ``tau``, as in :class:`jfric.elements.Transmission`. ``average``, ``difference``: not negative,
    and the difference not above the average for a gear that never drives itself; ``h`` [rad or m]:
    positive; ``z0``: state at the start. Results have ``z.directional_loss``. Source: the request
    https://github.com/google-deepmind/mujoco/issues/3528. Loss of a driving torque of 2 N m::

        >>> loss = jfric.elements.DirectionalLoss("q", "load", average=0.2, difference=0.05, h=0.1)
        >>> loss.friction(3.0, 1.0, 1.0, 2.0, 2.0)
        Array(0.5, dtype=float64)
    """

    direction: Direction = eqx.field(converter=as_direction)
    load: Direction = eqx.field(**holds(form="elements", converter=as_load))
    average: Scalar = eqx.field(**holds("pure number", at_least=0.0))
    difference: Scalar = eqx.field(default=0.0, **holds("pure number", at_least=0.0))
    h: Scalar = eqx.field(kw_only=True, **holds("length", above=0.0))
    z0: Scalar = eqx.field(default=0.0, **holds("pure number"))
    unit: ClassVar[str | None] = ""

    def growth(self) -> list[Growth]:
        return [Growth("load", self.load, None, along=self.direction)]

    @property
    def size(self):
        return 1.0

    def rate(self, gamma, z, side):
        return gamma * (1.0 - side * z) / self.h

    def friction(self, gamma, z, side, load=0.0, magnitude=0.0):
        return self.average * magnitude * z + self.difference * load * z * z


#: Sections of elements with a state.
BRISTLES: dict[str, type[AbstractBristle]] = {
    "dahl": Dahl,
    "bouc_wen": BoucWen,
    "lugre": LuGre,
    "rate_state": RateState,
    "directional_loss": DirectionalLoss,
}
