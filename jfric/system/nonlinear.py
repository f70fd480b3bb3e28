"""Nonlinear force elements: pure data, and the force of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from jfric.errors import ProblemError
from jfric.system.description import is_state_axis
from jfric.system.direction import Direction, as_direction
from jfric.system.fields import Scalar, holds, optional


class AbstractForce(eqx.Module):
    """A nonlinear force element, integrated by the Runge-Kutta flow.

    A user's class defines ``force``. Example: see :func:`jfric.register`.
    """

    def force(self, axes: tuple[str, ...], t, q, v):
        """Generalised force (n,) [N or N m] on the degrees of freedom ``axes``."""
        raise NotImplementedError


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
    return {k: optional(v) for k, v in numbers.items()}


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
