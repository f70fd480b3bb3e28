"""Observables of changes of mode: their times, the states at them, their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.numerics.linear_algebra import diagonal_of
from jfric.results.abstract_observables import Observable
from jfric.results.pieces import Function, Piece

#: Speeds below this fraction of the largest of a run are zero: the rounding error that remains of a
#: motion that ended.
REST, REST_SINGLE = 1e-10, 1e-4


class _OfEvent(Observable):
    """Observable of one event; NaN where there is none."""

    def start(self, problem, mechanics, dtype):
        return jnp.full((), jnp.nan, dtype)


@dataclass(frozen=True)
class EventTime(_OfEvent):
    """Time of the event ``number`` (from 1) [s]; NaN where there are fewer.

    ``own``: index of a user event whose occurrences are counted; None: those of all events. The
    example uses all observables of events::

        >>> import numpy as np
        >>> seen = jfric.results.observables
        >>> def speed(point):
        ...     return point.v[0]
        >>> wanted = [
        ...     seen.EventTime(2),
        ...     seen.LastEventTime(),
        ...     seen.StopTime(),
        ...     seen.EventCount(),
        ...     seen.AtEvent(lambda point: point.q[0], 2),
        ...     seen.BeforeEvent(speed, 2),
        ... ]
        >>> found = jfric.observe(problem, wanted).values
        >>> for name, x in found.items():
        ...     print(name, (np.asarray(x).round(6) + 0.0).tolist())
        before_event 0.0
        event 0.08
        event_count 7.0
        event_time 0.888577
        last_event_time 3.110018
        stop_time 3.110018
    """

    number: int
    name: str = "event_time"
    unit: str = "s"
    own: int | None = None

    def reached(self, piece: Piece):
        """Whether the event was logged before this piece, or at its start."""
        if self.own is not None and piece.own is not None:
            return piece.own[1][self.own] >= self.number
        return piece.events_before + piece.events >= self.number

    def update(self, carry, piece):
        here = _is_event(piece, self.number)
        if self.own is not None and piece.own is not None:
            before, after = (count[self.own] for count in piece.own)
            here = (before < self.number) & (self.number <= after)
        return jnp.where(here, piece.event_time, carry)


@dataclass(frozen=True)
class AtEvent(_OfEvent):
    """Value just after the event ``number`` (from 1); NaN where there are fewer.

    Example: see :class:`jfric.results.observables.EventTime`.
    """

    function: Function
    number: int
    name: str = "event"
    unit: str = ""

    def value(self, piece: Piece, dtype):
        """The value at the start of a piece."""
        return self.function(piece.at(jnp.zeros((), dtype)))

    def update(self, carry, piece):
        return jnp.where(_is_event(piece, self.number), self.value(piece, carry.dtype), carry)


@dataclass(frozen=True)
class BeforeEvent(AtEvent):
    """Value just before the event ``number`` (from 1), of positions and velocities.

    NaN where there are fewer events. Example: see :class:`jfric.results.observables.EventTime`.
    """

    name: str = "before_event"

    def value(self, piece: Piece, dtype):
        del dtype
        return self.function(piece.before())


@dataclass(frozen=True)
class LastEventTime(_OfEvent):
    """Time of the last event [s]; NaN where there is none.

    Example: see :class:`jfric.results.observables.EventTime`.
    """

    name: str = "last_event_time"
    unit: str = "s"

    def update(self, carry, piece):
        return jnp.where(piece.events > 0, piece.event_time, carry)


@dataclass(frozen=True)
class StopTime(Observable):
    """Time of the event from which on nothing moves [s].

    NaN where the motion goes on to the end, or where nothing ever moved.
    Example: see :class:`jfric.results.observables.EventTime`.
    """

    name: str = "stop_time"
    unit: str = "s"

    def start(self, problem, mechanics, dtype):
        zero = jnp.zeros((), dtype)
        return _Stop(jnp.full((), jnp.nan, dtype), zero, zero)

    def update(self, carry, piece):
        speed = jax.lax.stop_gradient(_largest_speed(piece))
        event = piece.events > 0
        time = jnp.where(event & carry.moves, piece.event_time, carry.time)
        since = jnp.where(event, 0.0, carry.since)
        return _Stop(time, jnp.maximum(since, speed), jnp.maximum(carry.fastest, speed))

    def finish(self, carry, q, v, duration):
        return jnp.where(carry.moves, jnp.nan, carry.time)


class _Stop(NamedTuple):
    """Time of the last event that ended a motion, and largest speeds since the last event and in
    the whole run."""

    time: Float[Array, ""]
    since: Float[Array, ""]
    fastest: Float[Array, ""]

    @property
    def moves(self):
        """Whether something moved since the last event."""
        single = jnp.finfo(self.since.dtype).bits < 64
        return self.since > (REST_SINGLE if single else REST) * self.fastest


def _largest_speed(piece: Piece) -> Float[Array, ""]:
    """Bound on the speeds of a piece, weighted by mass to compare translations and rotations.

    Without masses (load histories) the weights are the stiffnesses.
    """
    mass, stiffness = diagonal_of(piece.mechanics.M), diagonal_of(piece.mechanics.K)
    weight = jnp.where(jnp.all(mass > 0), mass, stiffness)
    weight = jnp.where(weight > 0, weight, jnp.where(jnp.any(weight > 0), jnp.max(weight), 1.0))
    return jnp.max(jnp.sqrt(weight) * jnp.sum(jnp.abs(piece.v), axis=0))


@dataclass(frozen=True)
class EventCount(Observable):
    """Number of changes of mode, or of ``impacts`` only.

    Example: see :class:`jfric.results.observables.EventTime`.
    """

    impacts: bool = False
    name: str = "event_count"
    unit: str = ""

    def start(self, problem, mechanics, dtype):
        return jnp.zeros((), dtype)

    def update(self, carry, piece):
        return carry + (piece.impacts if self.impacts else piece.events)


def _is_event(piece: Piece, number: int):
    return (piece.events_before < number) & (number <= piece.events_before + piece.events)
