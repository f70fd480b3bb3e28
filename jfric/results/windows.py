"""Observables over a part of a trajectory: from one time or event to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.errors import ProblemError
from jfric.results.abstract_observables import Observable
from jfric.results.event_observables import EventTime

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
