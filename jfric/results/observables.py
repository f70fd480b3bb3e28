"""Observables: the results that a sweep keeps of a trajectory.

Each is a small reduction over the smooth pieces of a trajectory (:class:`Piece`), so that memory
does not grow with its length. A user's own observable is a function of a :class:`Point`, wrapped in
one of the classes::

    def stored(x):  # strain energy of the spring [J]
        return 0.5 * jfric.get_parameter(x.problem, "spring.k") * x.q[0] ** 2

    jfric.sweep(problem, values, observe={"peak energy": Maximum(stored, unit="J")})

For other reductions, derive a subclass from :class:`Observable`.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jfric.results.abstract_observables import (
    Observable,
    OfFunction,
    OfIntegral,
    OfMaximum,
    is_of_motion,
)
from jfric.results.event_observables import (
    AtEvent,
    BeforeEvent,
    During,
    EventCount,
    EventTime,
    LastEventTime,
    StopTime,
)
from jfric.results.modes import Mode
from jfric.results.pieces import Function, Piece, Point
from jfric.results.signals import Signal

__all__ = [
    "Amplitude",
    "AtEvent",
    "AtTimes",
    "BeforeEvent",
    "Dissipated",
    "During",
    "EventCount",
    "EventTime",
    "Final",
    "Integral",
    "LastEventTime",
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


@dataclass(frozen=True)
class Final(OfFunction):
    """Value at the end of the trajectory.

    Example: see :class:`jfric.results.observables.Observable`.
    """

    name: str = "final"

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


@dataclass(frozen=True)
class Maximum(OfFunction, OfMaximum):
    """Largest value over the whole trajectory, not only at outputs.

    Example: see :class:`jfric.results.observables.Observable`.
    """

    name: str = "maximum"


@dataclass(frozen=True)
class Minimum(Maximum):
    """Smallest value over the whole trajectory, not only at outputs.

    Example: see :class:`jfric.results.observables.Observable`.
    """

    name: str = "minimum"

    def quantity(self, x):
        return -self.function(x)

    def finish(self, carry, q, v, duration):
        return -carry


@dataclass(frozen=True)
class Amplitude(OfFunction):
    """Half of the way from the smallest to the largest value.

    Example: see :class:`jfric.results.observables.Observable`.
    """

    name: str = "amplitude"
    of_polynomials = True

    def start(self, problem, mechanics, dtype):
        return jnp.full((2,), -jnp.inf, dtype)

    def update(self, carry, piece):
        def sides(x):
            return jnp.stack([self.function(x), -self.function(x)])

        return jnp.maximum(carry, piece.maxima(sides))

    def finish(self, carry, q, v, duration):
        return 0.5 * jnp.sum(carry)


@dataclass(frozen=True)
class Integral(OfFunction, OfIntegral):
    """Integral over time [unit of the function times s].

    Example: see :class:`jfric.results.observables.Observable`.
    """

    name: str = "integral"


@dataclass(frozen=True)
class Mean(Integral):
    """Mean over time.

    Example: see :class:`jfric.results.observables.Observable`.
    """

    name: str = "mean"

    def finish(self, carry, q, v, duration):
        return carry / duration


@dataclass(frozen=True)
class RootMeanSquare(Integral):
    """Square root of the mean of the square over time.

    Example: see :class:`jfric.results.observables.Observable`.
    """

    name: str = "rms"

    def quantity(self, x):
        return self.function(x) ** 2

    def finish(self, carry, q, v, duration):
        # The root has no derivative at zero.
        some = carry > 0
        return jnp.where(some, jnp.sqrt(jnp.where(some, carry, 1.0) / duration), 0.0)


@dataclass(frozen=True)
class AtTimes(Observable):
    """Values at given ``times`` [s]; NaN outside the simulated time.

    At an event it is the value after the event. ``axis``: name of the axis of times in tables;
    None: one time, no axis. Example: see :class:`jfric.results.observables.Observable`.
    """

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
class StickFraction(Observable):
    """Part of the simulated time in which a contact sticks.

    Example: see :class:`jfric.results.observables.Observable`.
    """

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
    """Energy [J] that friction turns into heat while contacts slide and sliders slip.

    The integral of ``-lambda_T gamma_T``, and of ``R |x'|`` of springs in series with sliders
    (:class:`jfric.Jenkins`), which are numbered after the contacts: for one of them, ``contact``,
    or, with None, for all. Dampers and impacts are not counted, nor is the energy that an element
    with its own ``reaction`` takes. Example: see :class:`jfric.results.observables.Observable`.
    """

    contact: int | None = None
    name: str = "dissipated"
    unit: str = "J"

    def quantity(self, x):
        power = -x.lambda_t * x.sliding_velocity
        piecewise = x.mechanics.piecewise
        if piecewise.sliders is not None:
            _, v = x.mechanics.complete(x.q, x.v, x.z)
            nd, (_, base_rate) = piecewise.tables, x.mechanics.base_motion(x.t)
            rate = (piecewise.directions @ v + piecewise.base_directions @ base_rate)[nd:]
            power = jnp.concatenate([power, piecewise.sliders.power(x.segment[nd:], rate)])
        return self._of(power)

    def at_jump(self, piece, slip):
        # Forces are straight lines over the slip: their mean is that of both ends.
        return self._of(-(piece.lambda_t[0] + 0.5 * piece.lambda_t[1]) * slip)

    def _of(self, contacts):
        return jnp.sum(contacts) if self.contact is None else contacts[self.contact]
