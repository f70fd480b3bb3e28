"""Elements along one direction: masses, springs, dampers, stops and loads, and nonlinear forces.
Pure data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp

from jfric.errors import ProblemError
from jfric.system.description import is_state_axis
from jfric.system.direction import Direction, as_direction
from jfric.system.fields import Scalar, holds, scalar
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


class AbstractForce(eqx.Module):
    """A nonlinear force element, integrated by the Runge-Kutta flow.

    A user's class defines ``force``. Example: see :func:`jfric.register`.
    """

    def force(self, axes: tuple[str, ...], t, q, v):
        """Generalised force (n,) [N or N m] on the degrees of freedom ``axes``."""
        raise NotImplementedError

    def bound(self, problem) -> AbstractForce:
        """The element with all that it needs of a resolved ``problem``; by default itself."""
        return self


class Pendulum(AbstractForce):
    """Gravity of a pendulum: torque ``-m g L sin(theta)`` with the angle ``theta = w^T q``.

    ``direction``: ``w``, as in :class:`jfric.Friction`. ``m`` [kg], ``L`` [m], ``g`` [m/s^2].
    Its inertia is an additional :class:`jfric.Mass` of ``m L^2``::

        >>> pendulum = jfric.Pendulum("theta", m=2.0, L=0.5, g=10.0)
        >>> pendulum.force(("theta",), 0.0, jnp.array([jnp.pi / 2]), jnp.array([0.0])).tolist()
        [-10.0]
    """

    direction: Direction = eqx.field(converter=as_direction)
    m: Scalar = eqx.field(**holds("mass", at_least=0.0, fixed=True))
    L: Scalar = eqx.field(**holds("length", at_least=0.0, fixed=True))
    g: Scalar = eqx.field(default=9.81, **holds("acceleration"))
    shown: ClassVar[tuple[str, ...]] = ("m", "L")

    def force(self, axes, t, q, v):
        w = self.direction.vector(axes)
        return -w * self.m * self.g * self.L * jnp.sin(w @ q)


class PolynomialSpring(AbstractForce):
    """Spring with force ``-sum_i k[i] x^(i+1)`` along ``w``, ``x = w^T q``.

    ``direction``: ``w``, as in :class:`jfric.Friction`. ``k`` (d,), ``k[i]`` in [N/m^(i+1) or
    N m/rad^(i+1)]: ``[k1, 0, k3]`` is Duffing's spring::

        >>> spring = jfric.PolynomialSpring("u", [100.0, 0.0, 5000.0])
        >>> spring.force(("u",), 0.0, jnp.array([0.1]), jnp.array([0.0])).tolist()
        [-15.0]
    """

    direction: Direction = eqx.field(converter=as_direction)
    k: Scalar = eqx.field(**holds("coefficients", form="list"))
    symbol: ClassVar[str] = "nonlinear spring"

    def force(self, axes, t, q, v):
        w = self.direction.vector(axes)
        x = w @ q
        return -w * x * jnp.polyval(self.k[::-1], x)


class Drag(AbstractForce):
    """Quadratic drag: force ``-c |dx/dt| dx/dt`` along ``w``, ``x = w^T q``.

    ``direction``: ``w``, as in :class:`jfric.Friction`. ``c`` [kg/m or kg m^2]: not negative::

        >>> drag = jfric.Drag("u", c=0.5)
        >>> drag.force(("u",), 0.0, jnp.array([0.0]), jnp.array([-4.0])).tolist()
        [8.0]
    """

    direction: Direction = eqx.field(converter=as_direction)
    c: Scalar = eqx.field(**holds("drag", at_least=0.0))
    shown: ClassVar[tuple[str, ...]] = ("c",)

    def force(self, axes, t, q, v):
        w = self.direction.vector(axes)
        x_dot = w @ v
        return -w * self.c * jnp.abs(x_dot) * x_dot


def _by_name(numbers: Any) -> Any:
    """Numbers by name; any other value stays, and is refused later."""
    if not isinstance(numbers, Mapping):
        return numbers
    return {k: scalar(v) for k, v in numbers.items()}


class ForceField(AbstractForce):
    """Force given by a smooth JAX function ``function(t, q, v, parameters)``; Python only.

    The function returns generalised forces (n,) [N, N m] for the time ``t`` [s], positions ``q``
    (n,) and velocities ``v`` (n,). ``parameters``: numbers by name that sweeps, fits and
    derivatives may change (path ``force_field.parameters.NAME``)::

        >>> field = jfric.ForceField(lambda t, q, v, p: -p["a"] * q**3, {"a": 2.0})
        >>> field.force(("u",), 0.0, jnp.array([0.5]), jnp.array([0.0])).tolist()
        [-0.25]
    """

    function: Callable = eqx.field(static=True)
    parameters: dict[str, Scalar] = eqx.field(converter=_by_name, default_factory=dict)

    def __check_init__(self) -> None:
        if not callable(self.function):
            raise ProblemError(
                f"function: found {type(self.function).__name__}, must be a function "
                "f(t, q, v, parameters) that returns forces (n,); for texts take jfric.Lagrangian"
            )
        if not isinstance(self.parameters, Mapping):
            raise ProblemError(
                f"parameters: found {type(self.parameters).__name__}, must be numbers by name such "
                "as {'a': 2.0}"
            )

    def force(self, axes, t, q, v):
        n = sum(not is_state_axis(axis) for axis in axes)
        return jnp.pad(self.function(t, q[:n], v[:n], self.parameters), (0, len(axes) - n))
