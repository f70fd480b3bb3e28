"""Gears with losses: friction that grows with the torque that they carry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from jfric.system.description import AbstractComposite, Parts, computed
from jfric.system.direction import Direction, as_direction
from jfric.system.fields import Scalar, holds
from jfric.system.friction import Friction, Growth, as_load
from jfric.system.functions import Constant
from jfric.system.laws import Stribeck
from jfric.system.line_elements import Damper, Spring, Stop

#: Pairs of coefficients of a loss, by the torques of motor and load, and what follows them.
_LINEAR = {"load": ("km", "ke"), "stribeck": ("kms", "kes")}
_SQUARES = ("kqe", "kqm")


#: Flanks of a gear with backlash, by the sign of the twist that closes them.
_FLANKS = {"forward": 1.0, "backward": -1.0}


def _scaled(direction: Direction, ratio: Any) -> Direction:
    """``direction`` divided by ``ratio``."""
    if ratio is None:
        return direction
    given = dict(zip(direction.names, direction.signs or (), strict=False))
    found = {
        name: computed(lambda x, r: x / r, x, ratio)
        for name, x in (given or direction.coefficients or {}).items()
    }
    return Direction(direction.names, coefficients=found)


class Transmission(AbstractComposite):
    """Gear with friction that depends on the torques ``tm`` of motors and ``te`` of loads::

        F = limit + |ke te - km tm| + s (stribeck + |kes te - kms tm| + Q)
        s = exp(-(|w|/v_s)^exponent)
        Q = kqe te^2 if |te| < |tm|, else kqm tm^2, where te and tm have different signs, else 0

    ``F`` [N m, along a translation N] is the limit at rest, where the gear truly sticks, and the
    friction at the speed ``w``, in addition to the viscous friction ``c w``.

    ``direction``: along which it turns, as in :class:`jfric.Friction`. ``motor`` and ``external``:
    the elements whose forces are ``tm`` and ``te``, as a name (``"motor.m"``), a list of names, or
    names with factors. Forces count by their part along ``direction``, with their sign: a weight
    that the motor lifts is a negative ``te``. Elements are those of ``load`` in
    :class:`jfric.Friction`, and motors. Coefficients are not negative and by default zero:
    ``limit`` and ``stribeck`` [N m or N], ``c`` [N m s/rad or N s/m], ``v_s`` [rad/s or m/s],
    ``exponent``, ``ke``, ``km``, ``kes``, ``kms``, ``kqe`` and ``kqm`` [1/(N m) or 1/N].
    With ``ke`` of at least one the load cannot drive the motor.

    Source: the friction models M1 to M6 of https://github.com/Rhoban/bam, with ``ke = km`` and
    ``kes = kms`` in M3 and M4. Raises (in :class:`jfric.Problem`) :class:`jfric.ProblemError` for a
    coefficient without its torque, and for a Stribeck part without ``v_s``.

    ``output``: the degree of freedom behind the gear, where it is one of its own; ``direction`` is
    then in front of it, and ``w`` and all torques are those behind the gear, of the angle
    ``x = w^T q/ratio``. A shaft joins it to the output: stiffness ``k`` [N m/rad or N/m], damping
    ``c_shaft`` [N m s/rad or N s/m], and ``backlash`` [rad or m], the whole play, in which it
    carries nothing; damping never makes the flanks pull. ``te`` is then the torque of the shaft.

    A gear that loses a fifth of the torque that it carries holds a weight that its motor alone does
    not hold::

        >>> gear = jfric.Transmission("q", "load.motor", "load.weight", limit=0.1, ke=0.2, km=0.2)
        >>> loads = {"motor": jfric.Load("q", 1.62), "weight": jfric.Load("q", -1.0)}
        >>> elements = {"mass": jfric.Mass("q", 1.0), "load": loads, "transmission": gear}
        >>> lift = jfric.Problem({"q": "rotation"}, elements, time=1.0)
        >>> float(jfric.simulate(lift).final.q[0])
        0.0
    """

    direction: Direction = eqx.field(converter=as_direction)
    motor: Direction | None = eqx.field(default=None, **holds(form="elements", converter=as_load))
    external: Direction | None = eqx.field(
        default=None, **holds(form="elements", converter=as_load)
    )
    limit: Scalar = eqx.field(default=0.0, **holds("force", at_least=0.0))
    stribeck: Scalar = eqx.field(default=None, **holds("force", at_least=0.0))
    v_s: Scalar = eqx.field(default=None, **holds("velocity", above=0.0))
    exponent: Scalar = eqx.field(default=2.0, **holds("pure number", above=0.0))
    c: Scalar = eqx.field(default=None, **holds("damping", at_least=0.0))
    km: Scalar = eqx.field(default=None, **holds("pure number", at_least=0.0))
    ke: Scalar = eqx.field(default=None, **holds("pure number", at_least=0.0))
    kms: Scalar = eqx.field(default=None, **holds("pure number", at_least=0.0))
    kes: Scalar = eqx.field(default=None, **holds("pure number", at_least=0.0))
    kqm: Scalar = eqx.field(default=None, **holds("inverse force", at_least=0.0))
    kqe: Scalar = eqx.field(default=None, **holds("inverse force", at_least=0.0))
    output: Direction | None = eqx.field(converter=as_direction, default=None)
    ratio: Scalar = eqx.field(default=None, **holds("pure number"))
    k: Scalar = eqx.field(default=None, **holds("stiffness", at_least=0.0))
    c_shaft: Scalar = eqx.field(default=None, **holds("damping", at_least=0.0))
    backlash: Scalar = eqx.field(default=None, **holds("length", at_least=0.0))
    symbol: ClassVar[str] = "slider"
    shown: ClassVar[tuple[str, ...]] = ("limit", "km", "ke")

    @property
    def has_stribeck(self) -> bool:
        """Whether a part of the friction fades as the gear turns faster."""
        names = ("stribeck", *_LINEAR["stribeck"], *_SQUARES)
        return any(getattr(self, name) is not None for name in names)

    def parts(self, label: str) -> Parts:
        # At rest parts that fade count in full.
        fading = 0.0 if self.stribeck is None else self.stribeck
        limit = Constant(computed(lambda x, y: x + y, self.limit, fading))
        own = self if self.output is None else replace(self, external=as_load(self.carried(label)))
        found: Parts = {"friction": {f"{label}.loss": Loss(self.turned, limit=limit, of=own)}}
        if self.c is not None:
            found["damper"] = {f"{label}.viscous": Damper(self.turned, self.c)}
        if self.output is None:
            return found
        c = 0.0 if self.c_shaft is None else self.c_shaft
        if self.backlash is None:
            found["spring"] = {f"{label}.shaft": Spring(self.twist(), self.k)}
            found["damper"] = found.get("damper", {}) | {
                f"{label}.shaft_damper": Damper(self.twist(), c)
            }
            return found
        play = computed(lambda x: 0.5 * x, self.backlash)
        found["stop"] = {
            f"{label}.{name}": Stop(self.twist(sign), self.k, play, c)
            for name, sign in _FLANKS.items()
        }
        return found

    @property
    def turned(self) -> Direction:
        """Direction of the angle behind the gear."""
        return self.direction if self.output is None else _scaled(self.direction, self.ratio)

    def twist(self, sign: float = 1.0) -> Direction:
        """Direction of the angle by which the output is ahead of the gear."""
        assert self.output is not None
        found: dict[str, Any] = {}
        for direction, way in ((self.turned, -sign), (self.output, sign)):
            found |= _scaled(direction, way).coefficients or {}  # the sign is its own inverse
        return Direction(tuple(found), coefficients=found)

    def carried(self, label: str) -> tuple[str, ...]:
        if self.output is None:
            return ()
        names = ("shaft", "shaft_damper") if self.backlash is None else _FLANKS
        return tuple(f"{label}.{name}" for name in names)

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.output is None:
            alone = "is given without output, the degree of freedom behind the gear"
            names = ("ratio", "k", "c_shaft", "backlash")
            yield from ((name, alone) for name in names if getattr(self, name) is not None)
        else:
            if self.k is None:
                yield "k", "is missing, the stiffness of the shaft between the gear and its output"
            if self.external is not None:
                yield "external", "is given with output, whose shaft is the load; leave it out"
            if {*self.output.names} & {*self.direction.names}:
                yield "output", "is a degree of freedom in front of the gear as well; name another"
        behind = self.external if self.output is None else self.output
        torques = {"m": ("motor", self.motor), "e": ("external", behind)}
        for name in (*_LINEAR["load"], *_LINEAR["stribeck"], *_SQUARES):
            field, elements = torques[name.lstrip("kq")[0]]
            if getattr(self, name) is not None and elements is None:
                yield name, f"is given without {field}; name the elements whose torque it is"
        for name in _SQUARES:
            if getattr(self, name) is not None and None in (self.motor, behind):
                yield name, "is given without motor and external; name the elements of both torques"
        both = {*getattr(self.motor, "names", ())} & {*getattr(self.external, "names", ())}
        if both:
            yield "external", f"found {min(both)!r}, which is in motor as well; keep one"
        if self.has_stribeck and self.v_s is None:
            yield "v_s", "is missing, a part that fades with the speed needs it"
        if self.v_s is not None and not self.has_stribeck:
            yield "v_s", "is given without a part that fades; give stribeck, kms or kes"

    def torque(self, km: Any, ke: Any) -> Direction:
        """The combination ``ke te - km tm`` of forces of elements, empty without coefficients."""
        found: dict[str, Any] = {}
        for side, k, sign in ((self.motor, km, -1.0), (self.external, ke, 1.0)):
            if side is None or k is None:
                continue
            factors = dict(zip(side.names, side.signs or (), strict=False)) or side.coefficients
            for name, factor in (factors or {}).items():
                found[name] = computed(lambda k, x, s=sign: s * k * x, k, factor)
        return Direction(tuple(found), coefficients=found)


class Loss(Friction):
    """The friction of a gear. Not an element of its own."""

    of: Transmission = eqx.field(kw_only=True)

    def growth(self) -> list[Growth]:
        along, found = self.direction, []
        for name, pair in _LINEAR.items():
            torque = self.of.torque(*(getattr(self.of, k) for k in pair))
            if torque.names:
                found.append(Growth(name, torque, 1.0, name == "stribeck", along))
        if self.squares is not None:
            for name, pair in (("external", (None, 1.0)), ("motor", (-1.0, None))):
                found.append(Growth(name, self.of.torque(*pair), None, along=along))
            found.append(Growth("sum", self.of.torque(-1.0, 1.0), None, along=along))
        return found

    @property
    def fade(self):
        if not self.of.has_stribeck:
            return None
        return Stribeck(1.0, 0.0, self.of.v_s, self.of.exponent)

    @property
    def fading(self):
        return 0.0 if self.of.stribeck is None else self.of.stribeck

    @property
    def squares(self):
        pair = [getattr(self.of, name) for name in _SQUARES]
        if pair == [None, None]:
            return None
        return tuple(jnp.zeros(()) if k is None else k for k in pair)
