"""Elements along one direction: masses, springs, dampers, stops and loads. Pure data."""

from __future__ import annotations

from typing import ClassVar, Literal

import equinox as eqx

from jfric.system.direction import Direction, as_direction
from jfric.system.fields import Scalar, holds
from jfric.system.functions import AbstractFunction, as_function


class Mass(eqx.Module):
    """Mass or moment of inertia: kinetic energy ``m (w^T v)^2 / 2``.

    ``direction``: ``w``, as in :class:`jfric.Friction`. ``m`` [kg or kg m^2]: positive.
    Example: see :class:`jfric.Problem`.
    """

    direction: Direction = eqx.field(converter=as_direction)
    m: Scalar = eqx.field(**holds("mass", at_least=0.0))


class Spring(eqx.Module):
    """Linear spring: force ``-k (x - x0)`` along ``w``, with the elongation ``x = w^T q``.

    ``direction``: ``w``, as in :class:`jfric.Friction`; it may end at a support
    (:class:`jfric.Base`). ``k`` [N/m or N m/rad]: stiffness, not negative. ``x0`` [m or rad]:
    elongation without force::

        >>> [jfric.Spring(w, k=5000.0, x0=0.01).direction.names for w in ("u", ("u", "w"))]
        [('u',), ('u', 'w')]
    """

    direction: Direction = eqx.field(converter=as_direction)
    k: Scalar = eqx.field(**holds("stiffness", at_least=0.0))
    x0: Scalar = eqx.field(default=0.0, **holds("length"))
    symbol: ClassVar[str] = "spring"
    shown: ClassVar[tuple[str, ...]] = ("k",)


class Damper(eqx.Module):
    """Viscous damper: force ``-c dx/dt`` along ``w``, with the elongation ``x = w^T q``.

    ``direction``: ``w``, as in :class:`jfric.Friction`. ``c`` [N s/m or N m s/rad]: not
    negative. Example: see :func:`jfric.frequency_response`.
    """

    direction: Direction = eqx.field(converter=as_direction)
    c: Scalar = eqx.field(**holds("damping", at_least=0.0))
    symbol: ClassVar[str] = "damper"
    shown: ClassVar[tuple[str, ...]] = ("c",)


class DiagramSpring(eqx.Module):
    """Spring with a piecewise-linear diagram through the points ``(x[i], F[i])``.

    The force along ``w`` is ``-F(x)`` with the elongation ``x = w^T q``; beyond the first and last
    point the end lines continue. ``direction``: ``w``, as in :class:`jfric.Friction`. ``x`` (p,)
    [m or rad]: at least two, increasing strictly; ``F`` (p,) [N or N m]. Each stiffness::

        >>> spring = jfric.DiagramSpring("u", x=[-0.5, 0.0, 0.25], F=[-5.0, 0.0, 40.0])
        >>> (jnp.diff(spring.F) / jnp.diff(spring.x)).tolist()
        [10.0, 160.0]
    """

    direction: Direction = eqx.field(converter=as_direction)
    x: Scalar = eqx.field(**holds("length", form="list"))
    F: Scalar = eqx.field(**holds("force", form="list"))
    symbol: ClassVar[str] = "nonlinear spring"


class GapSpring(eqx.Module):
    """Spring with clearance, without force between ``-gap_negative`` and ``gap_positive``.

    Its force is ``-k_positive (x - gap_positive)`` for ``x > gap_positive`` and
    ``-k_negative (x + gap_negative)`` for ``x < -gap_negative``, with ``x = w^T q``.
    ``direction``: ``w``, as in :class:`jfric.Friction`. ``k_positive``, ``k_negative``
    [N/m or N m/rad] and ``gap_positive``, ``gap_negative`` [m or rad]: not negative::

        >>> float(jfric.GapSpring("u", 1e4, 2e4, gap_positive=0.1, gap_negative=0.2).gap_negative)
        0.2
    """

    direction: Direction = eqx.field(converter=as_direction)
    k_positive: Scalar = eqx.field(**holds("stiffness", at_least=0.0))
    k_negative: Scalar = eqx.field(**holds("stiffness", at_least=0.0))
    gap_positive: Scalar = eqx.field(**holds("length", at_least=0.0))
    gap_negative: Scalar = eqx.field(**holds("length", at_least=0.0))
    symbol: ClassVar[str] = "gap spring"


Release = Literal["physical", "adhesive", "limited"]


class Stop(eqx.Module):
    """One-sided elastic stop with damping, touched when ``x = w^T q`` exceeds ``gap``.

    The stop pushes against ``w``, back to smaller ``x``. A :class:`jfric.Contact` with this
    direction as its ``normal`` pushes along it, to larger ``x``: a floor below is ``Contact("y")``
    or ``Stop({"y": -1.0}, k)``, and a ceiling above ``Stop("y", k)`` or ``Contact({"y": -1.0})``.

    ``direction``: ``w``, as in :class:`jfric.Friction`. ``k`` [N/m or N m/rad], ``c`` [N s/m or
    N m s/rad]: not negative; ``gap`` [m or rad]. In touch the force along ``w`` is ``-(k (x - gap)
    + c dx/dt)``. ``release="physical"``: the stop never pulls and releases when the force is zero.
    ``release="adhesive"``: it holds until the penetration is zero. ``release="limited"``: the
    damper force never exceeds the spring force, in either direction::

        force = -(k p + min(max(c dp/dt, -k p), k p)),    p = x - gap >= 0

    so that the stop neither pulls at release nor hits with ``c dx/dt`` at touch: the force is
    continuous and lies between 0 and ``2 k p``. Source of the limited law:
    ``Modelica.Mechanics.Translational.Components.ElastoGap``. By default::

        >>> jfric.Stop("u", k=1e5, gap=0.01, c=20.0).release
        'physical'
    """

    direction: Direction = eqx.field(converter=as_direction)
    k: Scalar = eqx.field(**holds("stiffness", at_least=0.0))
    gap: Scalar = eqx.field(default=0.0, **holds("length"))
    c: Scalar = eqx.field(default=0.0, **holds("damping", at_least=0.0))
    release: Release = eqx.field(static=True, default="physical")
    symbol: ClassVar[str] = "gap spring"
    shown: ClassVar[tuple[str, ...]] = ("k", "gap")


class Load(eqx.Module):
    """Force or torque ``F(t)`` along ``w``.

    ``direction``: ``w``, as in :class:`jfric.Friction`. ``F`` [N or N m]: a number or a function
    of time (:mod:`jfric.functions`)::

        >>> float(jfric.Load("u", jfric.Harmonic(2.0, omega=1.0, phase=jnp.pi / 2)).F(0.0))
        2.0
    """

    direction: Direction = eqx.field(converter=as_direction)
    F: AbstractFunction = eqx.field(converter=as_function, **holds("force", converter=None))


class Base(eqx.Module):
    """A support with prescribed displacement ``z(t)``; elements attach to it by name.

    ``displacement`` [m or rad]: a number or a function of time. A function that jumps is refused
    where contact, friction or a damper is attached: bodies would have to move in no time. Springs
    and the quasi-static solver accept it. With ``"base": {"table": Base(z)}`` the spring
    ``Spring(("table", "u"), k)`` has the elongation ``u - z(t)``.
    Example: see :class:`jfric.Jenkins`.
    """

    displacement: AbstractFunction = eqx.field(
        converter=as_function, **holds("length", converter=None)
    )


class LimitedDamper(eqx.Module):
    """Damper whose force is constant beyond a rate: ``-c min(max(dx/dt, -rate), rate)`` along
    ``w``. Not an element of its own."""

    direction: Direction
    c: Scalar
    #: Magnitude of the rate of elongation up to which the force grows.
    rate: Scalar
