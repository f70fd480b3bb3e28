"""Observables of changes of mode (their times, the states at them, their number), and of parts of a
trajectory that events or times bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.errors import ProblemError
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


#: Bound of a window: a time [s], an event, or None for the start or end of the trajectory.
Bound = float | EventTime | None


@dataclass(frozen=True)
class During(Observable):
    """An observable of the part of a trajectory between two times or events.

    ``observed``: the observable, such as a mean; ``start_at``, ``end_at``: times [s], or events as
    :class:`EventTime`; None: from the start of the trajectory, or to its end. The part ends where
    the trajectory does. NaN where there is no such part. With the problem of
    :class:`jfric.Problem`, the largest displacement while its mass slides back::

        >>> seen = jfric.results.observables
        >>> def position(point: seen.Point):
        ...     return point.q[0]
        >>> back = seen.During(seen.Maximum(position), seen.EventTime(2), seen.EventTime(3))
        >>> late = seen.During(seen.Minimum(position, name="late"), 3.5)
        >>> found = jfric.observe(problem, [back, late]).values
        >>> [round(float(found[name]), 6) for name in ("maximum", "late")]
        [0.52, 0.32]
    """

    observed: Observable
    start_at: Bound = None
    end_at: Bound = None
    name: str = ""
    of_polynomials = True

    def __post_init__(self):
        object.__setattr__(self, "name", self.name or self.observed.name)
        if len(self.times) == 2 and not self.times[0] < self.times[1]:
            start, end = self.times
            raise ProblemError(
                f"{self.name}: found a window from {start:g} s to {end:g} s, it must end after it "
                "begins"
            )

    @property
    def unit(self) -> str:  # type: ignore[override]
        """Unit of the observable."""
        return self.observed.unit

    @property
    def function(self) -> Any:
        """Function of a point whose values are reduced; None where there is none."""
        return getattr(self.observed, "function", None)

    @property
    def of_events(self) -> bool:
        """Whether an event begins or ends the window."""
        return any(isinstance(x, EventTime) for x in (self.start_at, self.end_at))

    @property
    def times(self) -> tuple[float, ...]:
        """Times [s] at which the window begins or ends."""
        return tuple(x for x in (self.start_at, self.end_at) if isinstance(x, (int, float)))

    def start(self, problem, mechanics, dtype):
        """Initial values of the observable, and zero time [s] inside the window."""
        observed = self.observed.start(problem, mechanics, dtype)
        return _Seen(observed, jnp.zeros((), dtype))

    def update(self, carry, piece):
        """Values after one more piece, of which only the part inside the window counts."""
        start = self.start_at if isinstance(self.start_at, (int, float)) else -jnp.inf
        end = self.end_at if isinstance(self.end_at, (int, float)) else jnp.inf
        part = piece.between(start, end)
        inside = jnp.where(piece.h > 0, part.h > 0, (piece.t >= start) & (piece.t < end))
        if isinstance(self.start_at, EventTime):
            inside &= self.start_at.reached(piece)
        if isinstance(self.end_at, EventTime):
            inside &= ~self.end_at.reached(piece)
        new = self.observed.update(carry.observed, part)
        kept = jax.tree.map(lambda a, b: jnp.where(inside, a, b), new, carry.observed)
        return _Seen(kept, carry.time + jnp.where(inside, part.h, 0.0))

    def finish(self, carry, q, v, duration):
        """Result over the time inside the window; NaN if there was none."""
        seen = carry.time > 0
        value = self.observed.finish(carry.observed, q, v, jnp.where(seen, carry.time, 1.0))
        return jnp.where(seen, value, jnp.nan)


class _Seen(NamedTuple):
    """Values of the observable, and the time [s] inside the window."""

    observed: Any
    time: Float[Array, ""]
