"""Observables: what a sweep keeps of a trajectory.

Each is a small reduction over the smooth pieces of a trajectory (:class:`Piece`): memory does not
grow with its length. Yours is a function of a :class:`Point`, wrapped in one of the classes::

    def stored(x):  # strain energy of the spring [J]
        return 0.5 * jfric.get_parameter(x.problem, "spring.k") * x.q[0] ** 2

    jfric.sweep(problem, values, observe={"peak energy": Maximum(stored, unit="J")})

or, for something else, a subclass of :class:`Observable`.
"""

from __future__ import annotations

import abc
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.ensemble.pieces import Function, Piece, Point
from jfric.ensemble.signals import Signal
from jfric.modes import Mode
from jfric.system.mechanics import Mechanics
from jfric.system.problem import Problem

__all__ = [
    "AtTimes",
    "Dissipated",
    "EventCount",
    "EventTime",
    "Final",
    "Integral",
    "Maximum",
    "Mean",
    "Minimum",
    "Observable",
    "Piece",
    "Point",
    "RootMeanSquare",
    "StickFraction",
    "StopTime",
]


class Observable(abc.ABC):
    """A reduction over the pieces of a trajectory: ``start``, ``update`` for each, ``finish``.

    ``name`` and ``unit`` label the result; ``dims`` are the axes of a result that is an array, each
    with its name, its coordinates and their unit.
    """

    name: str
    unit: str

    @property
    def dims(self) -> tuple[tuple[str, tuple[float, ...], str], ...]:
        """Axes of the result beside those of the sweep: name, coordinates, unit."""
        return ()

    @abc.abstractmethod
    def start(self, problem: Problem, mechanics: Mechanics, dtype) -> Any:
        """What is carried along before the first piece."""

    @abc.abstractmethod
    def update(self, carry: Any, piece: Piece) -> Any:
        """``carry`` after one more piece."""

    def finish(self, carry: Any, q, v, duration) -> Any:
        """The result, from ``carry``, the last state and the simulated time [s]."""
        del q, v, duration
        return carry


@dataclass(frozen=True)
class Final(Observable):
    """Value at the end of the trajectory."""

    function: Function
    name: str = "final"
    unit: str = ""

    def start(self, problem, mechanics, dtype):
        return () if is_of_motion(self.function) else jnp.full((), jnp.nan, dtype)

    def update(self, carry, piece):
        if is_of_motion(self.function):
            return carry
        return self.function(piece.at(jnp.ones((), piece.t.dtype)))

    def finish(self, carry, q, v, duration):
        function = self.function
        if isinstance(function, Signal) and function.of_motion:
            return {"q": q, "v": v}[function.field][function.index]
        return carry


class OfMaximum(Observable):
    """A largest value over the whole trajectory. All of a list are reduced together."""

    @abc.abstractmethod
    def quantity(self, x: Point) -> Any:
        """What is maximised."""

    def start(self, problem, mechanics, dtype):
        return jnp.full((), -jnp.inf, dtype)

    def update(self, carry, piece):
        return jnp.maximum(carry, piece.maxima(lambda x: self.quantity(x)[None])[0])


class OfIntegral(Observable):
    """An integral over time. All of a list are reduced together."""

    @abc.abstractmethod
    def quantity(self, x: Point) -> Any:
        """What is integrated."""

    def at_jump(self, piece: Piece) -> Any:
        """What a load that jumps adds in no time; ``piece.slip`` is given."""
        return jnp.zeros((), piece.q.dtype)

    def start(self, problem, mechanics, dtype):
        return jnp.zeros((), dtype)

    def update(self, carry, piece):
        return carry + integrals([self], piece)[0]


@dataclass(frozen=True)
class Maximum(OfMaximum):
    """Largest value over the whole trajectory, not only at outputs."""

    function: Function
    name: str = "maximum"
    unit: str = ""

    def quantity(self, x):
        return self.function(x)


@dataclass(frozen=True)
class Minimum(Maximum):
    """Smallest value over the whole trajectory, not only at outputs."""

    name: str = "minimum"

    def quantity(self, x):
        return -self.function(x)

    def finish(self, carry, q, v, duration):
        return -carry


@dataclass(frozen=True)
class Integral(OfIntegral):
    """Integral over time [unit of the function times s]."""

    function: Function
    name: str = "integral"
    unit: str = ""

    def quantity(self, x):
        return self.function(x)


@dataclass(frozen=True)
class Mean(Integral):
    """Mean over time."""

    name: str = "mean"

    def finish(self, carry, q, v, duration):
        return carry / duration


@dataclass(frozen=True)
class RootMeanSquare(Integral):
    """Square root of the mean of the square over time."""

    name: str = "rms"

    def quantity(self, x):
        return self.function(x) ** 2

    def finish(self, carry, q, v, duration):
        # The root has no derivative at zero.
        some = carry > 0
        return jnp.where(some, jnp.sqrt(jnp.where(some, carry, 1.0) / duration), 0.0)


@dataclass(frozen=True)
class AtTimes(Observable):
    """Values at given times [s]; not a number outside the simulated time. At an event the value
    after it."""

    function: Function
    times: tuple[float, ...]
    name: str = "values"
    unit: str = ""
    #: Axis of several times; None: one time, no axis.
    axis: str | None = "time"

    @property
    def dims(self):
        return () if self.axis is None else ((self.axis, self.times, "s"),)

    def start(self, problem, mechanics, dtype):
        return jnp.full((len(self.times),), jnp.nan, dtype)

    def update(self, carry, piece):
        times = jnp.asarray(self.times, carry.dtype)
        inside = (times >= piece.t) & (times <= piece.end)
        length = jnp.where(piece.h > 0, piece.h, 1.0)
        s = jnp.where(inside, (times - piece.t) / length, 0.0)
        values = jax.vmap(lambda s: self.function(piece.at(s)))(s)
        return jnp.where(inside, values, carry)

    def finish(self, carry, q, v, duration):
        return carry if self.axis is not None else carry[0]


@dataclass(frozen=True)
class EventTime(Observable):
    """Time of the event ``number`` (from 1) [s]; not a number where there are fewer."""

    number: int
    name: str = "event_time"
    unit: str = "s"

    def start(self, problem, mechanics, dtype):
        return jnp.full((), jnp.nan, dtype)

    def update(self, carry, piece):
        return jnp.where(_is_event(piece, self.number), piece.event_time, carry)


@dataclass(frozen=True)
class AtEvent(Observable):
    """Value just after the event ``number`` (from 1); not a number where there are fewer."""

    function: Function
    number: int
    name: str = "event"
    unit: str = ""

    def start(self, problem, mechanics, dtype):
        return jnp.full((), jnp.nan, dtype)

    def update(self, carry, piece):
        value = self.function(piece.at(jnp.zeros((), carry.dtype)))
        return jnp.where(_is_event(piece, self.number), value, carry)


@dataclass(frozen=True)
class StopTime(Observable):
    """Time of the last event [s]; not a number where there is none."""

    name: str = "stop_time"
    unit: str = "s"

    def start(self, problem, mechanics, dtype):
        return jnp.full((), jnp.nan, dtype)

    def update(self, carry, piece):
        return jnp.where(piece.events > 0, piece.event_time, carry)


@dataclass(frozen=True)
class EventCount(Observable):
    """Number of changes of mode, or of impacts only."""

    impacts: bool = False
    name: str = "event_count"
    unit: str = ""

    def start(self, problem, mechanics, dtype):
        return jnp.zeros((), dtype)

    def update(self, carry, piece):
        return carry + (piece.impacts if self.impacts else piece.events)


@dataclass(frozen=True)
class StickFraction(Observable):
    """Part of the simulated time in which a contact sticks."""

    contact: int
    name: str = "stick_fraction"
    unit: str = ""

    def start(self, problem, mechanics, dtype):
        return jnp.zeros((), dtype)

    def update(self, carry, piece):
        return carry + jnp.where(piece.mode[self.contact] == Mode.STICK, piece.h, 0.0)

    def finish(self, carry, q, v, duration):
        return carry / duration


@dataclass(frozen=True)
class Dissipated(OfIntegral):
    """Energy that friction turns into heat while contacts slide [J]: the integral of
    ``-lambda_T gamma_T``, of one contact or of all. Dampers and impacts are not counted."""

    contact: int | None = None
    name: str = "dissipated"
    unit: str = "J"

    def quantity(self, x):
        return self._of(-x.lambda_t * x.sliding_velocity)

    def at_jump(self, piece):
        # Forces are straight lines over the way: their mean is that of both ends.
        return self._of(-(piece.lambda_t[0] + 0.5 * piece.lambda_t[1]) * piece.slip)

    def _of(self, contacts):
        return jnp.sum(contacts) if self.contact is None else contacts[self.contact]


def integrals(observables: Sequence[OfIntegral], piece: Piece) -> Float[Array, " k"]:
    """What a piece adds to each of several integrals."""
    found = piece.integrals(lambda x: jnp.stack([o.quantity(x) for o in observables]))
    if piece.slip is None:
        return found
    return found + jnp.where(piece.h > 0, 0.0, jnp.stack([o.at_jump(piece) for o in observables]))


def renamed(observable: Observable, name: str) -> Observable:
    """The same observable under another name."""
    result = copy.copy(observable)
    object.__setattr__(result, "name", name)
    return result


def is_of_motion(function: Function) -> bool:
    """Whether position and velocity alone give the value of ``function``."""
    return isinstance(function, Signal) and function.of_motion


def _is_event(piece: Piece, number: int):
    return (piece.events_before < number) & (number <= piece.events_before + piece.events)
