"""Electric motors: the torque of a current, with the circuit that drives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from jfric.system.composite import AbstractComposite, Parts, computed
from jfric.system.direction import Direction, as_direction
from jfric.system.fields import Scalar, holds, optional
from jfric.system.functions import AbstractFunction, as_function
from jfric.system.line_elements import Damper, Load, Mass
from jfric.system.magnitude import Combination
from jfric.system.nonlinear import AbstractForce


def _inductance(value: Any) -> Any:
    """An inductance; None for a number zero: the circuit has no state then, by structure."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return None if plain and value == 0 else optional(value)


class Motor(AbstractComposite):
    """Electric motor: torque ``kt i`` along ``w``, with the current ``i`` of its circuit::

        L di/dt = V(t) - R i - kb w^T v

    ``direction``: ``w``, as in :class:`jfric.Friction`; the angle of the rotor is ``w^T q``, so a
    mapping such as ``{"arm": 50.0}`` is a motor in front of a rigid gear. ``kt`` [N m/A, along a
    translation N/A]: torque constant; ``kb`` [V s/rad or V s/m]: constant of the back-EMF, by
    default ``kt``. ``V`` [V]: voltage, a number or a function of time, with ``R`` [ohm] and ``L``
    [H]. Without ``L`` the current follows at once, ``i = (V - kb w^T v)/R``; with it results have
    the current as ``z.motor`` [A], and ``i0`` is its start. ``i`` [A], in place of ``V``: current
    of a motor whose drive controls it. ``J`` [kg m^2 or kg]: inertia of the rotor.

    ``cogging`` [N m or N]: amplitude of a torque ``-cogging sin(periods w^T q + phase)`` that pulls
    the rotor into places, ``periods`` of them per turn (along a translation in rad/m).

    Raises (in :class:`jfric.Problem`) :class:`jfric.ProblemError` unless there is one of ``V``
    with ``R`` and ``i``. A rotor speeds up to ``V/kb``, its no-load speed::

        >>> motor = jfric.Motor("phi", kt=0.1, V=12.0, R=2.0, L=1e-3, J=1e-5)
        >>> drive = jfric.Problem({"phi": "rotation"}, {"motor": motor}, time=1.0)
        >>> found = jfric.observe(drive, "final.v.phi, final.z.motor").values
        >>> [round(float(x), 6) + 0.0 for x in found.values()]
        [120.0, 0.0]
    """

    direction: Direction = eqx.field(converter=as_direction)
    kt: Scalar = eqx.field(**holds("force constant"))
    V: AbstractFunction | None = eqx.field(
        default=None, converter=as_function, **holds("voltage", converter=None)
    )
    R: Scalar = eqx.field(default=None, **holds("resistance", above=0.0, converter=optional))
    L: Scalar = eqx.field(default=None, **holds("inductance", above=0.0, converter=_inductance))
    kb: Scalar = eqx.field(default=None, **holds("back-EMF constant", converter=optional))
    i: AbstractFunction | None = eqx.field(
        default=None, converter=as_function, **holds("current", converter=None)
    )
    J: Scalar = eqx.field(default=None, **holds("mass", at_least=0.0, converter=optional))
    i0: Scalar = eqx.field(default=0.0, **holds("current"))
    cogging: Scalar = eqx.field(default=None, **holds("force", converter=optional))
    periods: Scalar = eqx.field(default=None, **holds("pure number", converter=optional))
    phase: Scalar = eqx.field(default=None, **holds("angle", fixed=True, converter=optional))
    symbol: ClassVar[str] = "motor"
    shown: ClassVar[tuple[str, ...]] = ("kt", "R")
    #: Name of the field with the state at the start.
    starts: ClassVar[str] = "i0"

    @property
    def has_winding(self) -> bool:
        """Whether the current is a state, by structure."""
        return self.V is not None and self.L is not None

    def parts(self, label: str) -> Parts:
        w, found = self.direction, Parts()
        if self.J is not None:
            found["mass"] = {f"{label}.rotor": Mass(w, self.J)}
        if self.cogging is not None:
            at = self.cogging, self.periods, 0.0 if self.phase is None else self.phase
            found["cogging"] = {f"{label}.cogging": Cogging(w, *at)}
        kb = self.kt if self.kb is None else self.kb
        if self.V is None:
            torque = Combination((self.i,), (self.kt,))  # pyright: ignore[reportArgumentType]
            return found | {"load": {f"{label}.drive": Load(w, torque)}}
        if self.L is None:
            by_voltage = computed(lambda kt, R: kt / R, self.kt, self.R)
            drag = computed(lambda kt, kb, R: kt * kb / R, self.kt, kb, self.R)
            found["load"] = {f"{label}.drive": Load(w, Combination((self.V,), (by_voltage,)))}
            return found | {"damper": {f"{label}.back_emf": Damper(w, drag)}}
        own = Direction((f"z.{label}",), (1,))
        by_voltage = computed(lambda L: 1.0 / L, self.L)
        found["load"] = {f"{label}.drive": Load(own, Combination((self.V,), (by_voltage,)))}
        winding = Winding(w, own, self.kt, kb, self.R, self.L, self.i0)
        return found | {"winding": {label: winding}}

    def carried(self, label: str) -> tuple[str, ...]:
        if self.has_winding:
            return (label,)
        drive = (f"{label}.drive",)
        return drive if self.V is None else (*drive, f"{label}.back_emf")

    def problems(self) -> Iterator[tuple[str, str]]:
        if (self.V is None) == (self.i is None):
            found = "neither" if self.V is None else "both"
            yield "V", f"found {found} of V and i, exactly one is needed: a voltage or a current"
        elif self.V is not None and self.R is None:
            yield "R", "is missing, the current of a voltage needs the resistance; or give i"
        elif self.V is None:
            for field in ("R", "L", "kb"):
                if getattr(self, field) is not None:
                    yield field, "is given with i, a current that no circuit changes; leave it out"
        if (self.cogging is None) != (self.periods is None):
            found, missing = "cogging", "periods"
            if self.cogging is None:
                found, missing = missing, found
            yield found, f"is given without {missing}; give both, or neither"


class Winding(eqx.Module):
    """The winding of a motor as a damper between the rotor and the coordinate whose velocity is
    the current. Not an element of its own.

    ``direction``: that of the rotor; ``own``: that of the coordinate. Numbers as in
    :class:`Motor`.
    """

    direction: Direction
    own: Direction
    kt: Scalar
    kb: Scalar
    R: Scalar
    L: Scalar
    i0: Scalar
    #: Unit of the state.
    unit: ClassVar[str] = "A"

    def start(self) -> Any:
        """The current at the start."""
        return self.i0

    def damping(self, axes: tuple[str, ...]) -> Any:
        """Forces (n, n) on all coordinates by their velocities, with a minus. The coordinate of a
        state has the mass one, so the equation of the circuit is divided by the inductance."""
        w, own = self.direction.vector(axes), self.own.vector(axes)
        circuit = (self.kb * w + self.R * own) / self.L
        return jnp.outer(own, circuit) - self.kt * jnp.outer(w, own)

    def torque(self, axes: tuple[str, ...]) -> Any:
        """The torque as a row over velocities."""
        return self.kt * self.own.vector(axes)


class Cogging(AbstractForce):
    """Torque ``-amplitude sin(periods w^T q + phase)`` along ``w``. Not an element of its own."""

    direction: Direction
    amplitude: Scalar
    periods: Scalar
    phase: Scalar

    def force(self, axes, t, q, v):
        w = self.direction.vector(axes)
        return -w * self.amplitude * jnp.sin(self.periods * (w @ q) + self.phase)
