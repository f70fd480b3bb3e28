"""Electric motors: the torque of a current, with the circuit that drives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer

from jfric.system.derived_functions import Combination, Integral, Limited, has_lines
from jfric.system.description import AbstractComposite, Parts, computed
from jfric.system.direction import Direction, as_direction
from jfric.system.expression import is_expression
from jfric.system.fields import Scalar, UnitText, holds, scalar
from jfric.system.friction import Friction
from jfric.system.functions import AbstractFunction, Constant, Held, as_function
from jfric.system.laws import Coulomb, Directional
from jfric.system.line_elements import AbstractForce, Base, Damper, LimitedDamper, Load, Mass

#: Voltage that a drive can take away to hold a current at its limit, in voltages that this current
#: needs at rest.
REACH = 1e6
#: Room temperature [K].
ROOM = 293.15
#: Sides of the limit of a current.
_SIDES = {"upper": 1.0, "lower": -1.0}


def _inductance(value: Any) -> Any:
    """An inductance; None for a number zero: the circuit has no state then, by structure."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return None if plain and value == 0 else scalar(value)


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

    ``i_max`` [A]: limit of the drive, ``-i_max <= i <= i_max``. Without ``L`` it is the current
    ``(V - kb w^T v)/R``, or the given ``i``, between these limits; ``i`` is then a number, straight
    lines in time or what a controller sets. With ``L`` the drive takes away as much voltage ``u``
    as holds the current at its limit, and never pushes::

        L di/dt = V - R i - kb w^T v - u,    u >= 0 only at i = i_max,  u <= 0 only at i = -i_max

    It can take away up to a million ``R i_max``. All changes are events: with ``L`` those of
    ``motor.upper`` and ``motor.lower``, which stick at the limit, else of ``motor.drive``.

    ``C_th`` [J/K]: heat capacity of the winding, whose temperature ``T`` is then the state
    ``z.motor.temperature`` [K]; needs ``L``. ``R_th`` [K/W]: thermal resistance to the surroundings
    of ``T_amb`` [K], by default 293.15; without it no heat is lost. ``alpha`` [1/K]: temperature
    coefficient of the resistance, by default zero; ``T0`` [K]: temperature at the start, by default
    ``T_amb``. ``R`` is the resistance at ``T_amb``::

        C_th dT/dt = R(T) i^2 - (T - T_amb)/R_th,    R(T) = R (1 + alpha (T - T_amb))

    Sources: first-order thermal network of a winding, IEC 60034-1 and B. Venkataraman et al.,
    "Fundamentals of a motor thermal model", IEEE PCIC (2005); linear resistance, IEC 60028.

    Raises (in :class:`jfric.Problem`) :class:`jfric.ProblemError` unless there is one of ``V``
    with ``R`` and ``i``, and for fields that need another one. A rotor speeds up to ``V/kb``, its
    no-load speed::

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
    R: Scalar = eqx.field(default=None, **holds("resistance", above=0.0))
    L: Scalar = eqx.field(default=None, **holds("inductance", above=0.0, converter=_inductance))
    kb: Scalar = eqx.field(default=None, **holds("back-EMF constant"))
    i: AbstractFunction | None = eqx.field(
        default=None, converter=as_function, **holds("current", converter=None)
    )
    J: Scalar = eqx.field(default=None, **holds("mass", at_least=0.0))
    i0: Scalar = eqx.field(default=0.0, **holds("current"))
    cogging: Scalar = eqx.field(default=None, **holds("force"))
    periods: Scalar = eqx.field(default=None, **holds("pure number"))
    phase: Scalar = eqx.field(default=None, **holds("angle", fixed=True))
    i_max: Scalar = eqx.field(default=None, **holds("current", above=0.0))
    C_th: Scalar = eqx.field(default=None, **holds("heat capacity", above=0.0))
    R_th: Scalar = eqx.field(default=None, **holds("thermal resistance", above=0.0))
    T_amb: Scalar = eqx.field(default=None, **holds("temperature", above=0.0))
    alpha: Scalar = eqx.field(default=None, **holds("inverse temperature"))
    T0: Scalar = eqx.field(default=None, **holds("temperature", above=0.0))
    symbol: ClassVar[str] = "motor"
    shown: ClassVar[tuple[str, ...]] = ("kt", "i_max")

    @property
    def has_winding(self) -> bool:
        """Whether the current is a state, by structure."""
        return self.V is not None and self.L is not None

    @property
    def starts(self) -> tuple[str, ...]:
        """Names of the fields with the states at the start."""
        return (("i0", "T0") if self.C_th is not None else ("i0",)) if self.has_winding else ()

    @property
    def ambient(self) -> Any:
        """Temperature of the surroundings."""
        return ROOM if self.T_amb is None else self.T_amb

    def start_of(self, field: str) -> Any:
        """The start of a state by its field."""
        given = getattr(self, field)
        return self.ambient if given is None else given

    def parts(self, label: str) -> Parts:
        w, found = self.direction, Parts()
        if self.J is not None:
            found["mass"] = {f"{label}.rotor": Mass(w, self.J)}
        if self.cogging is not None:
            at = self.cogging, self.periods, 0.0 if self.phase is None else self.phase
            found["cogging"] = {f"{label}.cogging": Cogging(w, *at)}
        kb = self.kt if self.kb is None else self.kb
        if self.V is None:
            given: Any = self.i if self.i_max is None else Limited(self.i, self.i_max)  # pyright: ignore[reportArgumentType]
            torque = Combination((given,), (self.kt,))
            return found | {"load": {f"{label}.drive": Load(w, torque)}}
        if self.L is None:
            by_voltage = computed(lambda kt, R: kt / R, self.kt, self.R)
            drag = computed(lambda kt, kb, R: kt * kb / R, self.kt, kb, self.R)
            if self.i_max is not None:
                return found | self._in_series(label, drag, kb)
            found["load"] = {f"{label}.drive": Load(w, Combination((self.V,), (by_voltage,)))}
            return found | {"damper": {f"{label}.back_emf": Damper(w, drag)}}
        own = Direction((f"z.{label}",), (1,))
        by_voltage = computed(lambda L: 1.0 / L, self.L)
        found["load"] = {f"{label}.drive": Load(own, Combination((self.V,), (by_voltage,)))}
        winding = Winding(w, own, self.kt, kb, self.R, self.L, self.i0)
        found["winding"] = {label: winding}
        if self.C_th is not None:
            name = f"{label}.temperature"
            hot = Direction((f"z.{name}",), (1,))
            numbers = (self.C_th, self.R_th, self.ambient, self.alpha, self.start_of("T0"))
            found["winding"][name] = Heating(hot, own, self.R, self.L, *numbers)
        if self.i_max is not None:
            found["friction"] = self._held(label, own)
        return found

    def _in_series(self, label: str, drag: Any, kb: Any) -> Parts:
        """A damper of limited force, whose other end turns at the speed without load ``V/kb``."""
        w, supply = self.direction, f"{label}.supply"
        given = dict(zip(w.names, w.signs or (), strict=False)) or w.coefficients or {}
        both = Direction((*given, supply), None, {**given, supply: -1.0})
        rate = computed(lambda R, i, kb: R * i / jnp.abs(kb), self.R, self.i_max, kb)
        free = Integral(self.V, computed(lambda kb: 1.0 / kb, kb))  # pyright: ignore[reportArgumentType]
        return {
            "base": {supply: Base(free)},
            "limited_damper": {f"{label}.drive": LimitedDamper(both, drag, rate)},
        }

    def _held(self, label: str, own: Direction) -> dict[str, Friction]:
        """Friction that resists only currents beyond a limit, which moves like a belt."""
        reach = computed(lambda R, i, L: REACH * R * i / L, self.R, self.i_max, self.L)
        found = {}
        for name, sign in _SIDES.items():
            resists = Directional(*((1.0, 0.0) if sign > 0 else (0.0, 1.0)))
            belt = Constant(computed(lambda i, s=sign: s * i, self.i_max))
            found[f"{label}.{name}"] = Friction(own, Coulomb(resists), N=reach, belt=belt)
        return found

    def carried(self, label: str) -> tuple[str, ...]:
        if self.has_winding:
            return (label,)
        drive = (f"{label}.drive",)
        damped = self.V is not None and self.i_max is None
        return (*drive, f"{label}.back_emf") if damped else drive

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
        yield from self._problems_of_limit()
        if self.C_th is None:
            for field in ("R_th", "T_amb", "alpha", "T0"):
                if getattr(self, field) is not None:
                    yield field, "is given without C_th, the heat capacity of the winding"
        elif not self.has_winding:
            yield "C_th", "is given without L; the temperature follows from the current of V, R, L"
        if (self.cogging is None) != (self.periods is None):
            found, missing = "cogging", "periods"
            if self.cogging is None:
                found, missing = missing, found
            yield found, f"is given without {missing}; give both, or neither"

    def _problems_of_limit(self) -> Iterator[tuple[str, str]]:
        if self.i_max is None:
            return
        if self.i is not None and not (has_lines(self.i) or isinstance(self.i, Held)):
            yield (
                "i",
                f"found a {type(self.i).__name__} with i_max, whose limits are exact for a number, "
                "straight lines in time and what a controller sets; give one of these, or V with R",
            )
        if self.V is not None and self.L is None and _known(self.kb, self.kt) == 0.0:
            yield "kb", "found 0 with i_max and without L, must not be zero; give L, or i"
        start, limit = _known(self.i0), _known(self.i_max)
        if start is not None and limit is not None and self.has_winding and abs(start) > limit:
            yield "i0", f"found {start:g}, must lie within -i_max and i_max ({limit:g})"


def _known(*numbers: Any) -> float | None:
    """The first of ``numbers`` that is given, where its value is known."""
    value = next((x for x in numbers if x is not None), None)
    if value is None or isinstance(value, (Tracer, UnitText)) or is_expression(value):
        return None
    return float(value)


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


class Heating(AbstractForce):
    """The heat of a winding on the coordinate whose velocity is its temperature. Not an element of
    its own.

    ``direction``: that of this coordinate; ``current``: that of the coordinate of the current.
    Numbers as in :class:`Motor`.
    """

    direction: Direction
    current: Direction
    R: Scalar
    L: Scalar
    C_th: Scalar
    R_th: Scalar
    T_amb: Scalar
    alpha: Scalar
    T0: Scalar
    #: Unit of the state.
    unit: ClassVar[str] = "K"

    def start(self) -> Any:
        """The temperature at the start."""
        return self.T0

    def damping(self, axes: tuple[str, ...]) -> Any:
        """Forces (n, n) on all coordinates by their velocities, with a minus: none here."""
        return jnp.zeros((len(axes), len(axes)))

    def force(self, axes, t, q, v):
        hot, current = self.direction.vector(axes), self.current.vector(axes)
        rise, i = hot @ v - self.T_amb, current @ v
        change = 0.0 if self.alpha is None else self.alpha * rise
        lost = 0.0 if self.R_th is None else rise / self.R_th
        heat = (self.R * (1.0 + change) * i**2 - lost) / self.C_th
        return hot * heat - current * (self.R * change * i / self.L)


class Cogging(AbstractForce):
    """Torque ``-amplitude sin(periods w^T q + phase)`` along ``w``. Not an element of its own."""

    direction: Direction
    amplitude: Scalar
    periods: Scalar
    phase: Scalar

    def force(self, axes, t, q, v):
        w = self.direction.vector(axes)
        return -w * self.amplitude * jnp.sin(self.periods * (w @ q) + self.phase)
