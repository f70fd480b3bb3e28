"""Functions of time made from another one: one that ends, one that is clipped at zero, one with
limits, and one whose rate is given.

All know their own breakpoints, so that solvers meet them exactly.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from jfric.errors import ProblemError
from jfric.numerics.choice import select
from jfric.system.expression import Expression
from jfric.system.fields import Scalar, holds, scalar
from jfric.system.functions import (
    AbstractFunction,
    Components,
    Constant,
    Harmonic,
    PiecewiseLinear,
    Ramp,
    Steps,
    Sum,
    as_function,
)


class Until(AbstractFunction):
    """The ``function`` for ``t < end``, and the value ``after`` from ``end`` [s] on::

    >>> pulse = jfric.functions.Until(5.0, end=0.1)
    >>> float(pulse(0.05)), float(pulse(0.1))
    (5.0, 0.0)
    """

    function: AbstractFunction = eqx.field(converter=as_function)
    end: Scalar = eqx.field(**holds("time"))
    after: Scalar = eqx.field(default=0.0, **holds())

    def components(self, t):
        polynomial, harmonics = self.function.components(t)
        on = t < self.end
        first, *higher = polynomial or [0.0]
        return Components(
            [select(on, first, self.after), *(select(on, p, 0.0) for p in higher)],
            [(select(on, a, 0.0), angle, w) for a, angle, w in harmonics],
        )

    def breakpoints(self):
        return jnp.concatenate([self.function.breakpoints(), jnp.stack([self.end])])

    def jumps(self):
        return jnp.concatenate([self.function.jumps(), jnp.stack([self.end])])

    @property
    def jumping(self):
        return 1 + self.function.jumping

    def frequency(self):
        return self.function.frequency()


class Clipped(AbstractFunction):
    """The function ``max(0, function)``: a normal force that lifts off, a load that only pushes.

    Zeros are breakpoints. They are exact for straight lines between breakpoints (constants, steps,
    straight lines, their sums and ends), and for a constant plus one harmonic; everything else is
    refused with a :class:`jfric.ProblemError`. A harmonic has zeros without end: they are computed
    from time zero over ``periods`` periods, which follow from the last time ``end`` [s] unless
    they are given. Outside of these the function is NaN, and a run ends with ``NON_FINITE``::

        >>> normal = jfric.functions.Clipped(jfric.PiecewiseLinear([0.0, 2.0], [1.0, -1.0]))
        >>> [float(normal(t)) for t in (0.5, 1.5)]
        [0.5, 0.0]
    """

    function: AbstractFunction
    periods: int = eqx.field(static=True)

    def __init__(self, function: Any, *, end: float | None = None, periods: int | None = None):
        self.function = as_function(function)
        waves = _waves(self.function)
        if len(waves) > 1 or (waves and not _only_constants(self.function)):
            raise ProblemError(
                "a function that is clipped at zero is made of straight lines, or is a constant "
                f"plus one harmonic; found {len(waves)} harmonic{'s' * (len(waves) > 1)} "
                "with others"
            )
        self.periods = _periods(waves[0], end, periods) if waves else 0

    def jumps(self):
        return self.function.jumps()

    def breakpoints(self):
        return jnp.sort(self._zeros_of_wave() if self.periods else zeros_of_lines(self.function))

    def components(self, t):
        polynomial, harmonics = self.function.components(t)
        on, known = self._is_on(t)
        return Components(
            [known * select(on, p, 0.0) for p in polynomial or [0.0]],
            [(known * select(on, a, 0.0), angle, w) for a, angle, w in harmonics],
        )

    def frequency(self):
        return self.function.frequency()

    def _is_on(self, t):
        """Whether the function is positive on the piece of ``t``, by its middle; and a factor: 1,
        or NaN where its zeros are not known."""
        breaks = self.breakpoints()
        on = self.function(middle_of_piece(breaks, t)) > 0.0
        outside = (t < breaks[0]) | (t >= breaks[-1])
        known = select(outside, jnp.nan, 1.0) if self.periods else 1.0
        return jax.lax.stop_gradient(on), known

    def _zeros_of_wave(self):
        polynomial, ((amplitude, _, omega),) = self.function.components(0.0)
        phase = _waves(self.function)[0].phase
        level = (polynomial[0] if polynomial else 0.0) / select(amplitude == 0.0, 1.0, amplitude)
        crosses = (jnp.abs(level) < 1.0) & (amplitude != 0.0)
        angle = -jnp.arcsin(select(crosses, level, 0.0))
        turns = 2.0 * jnp.pi * (jnp.arange(self.periods + 3) - 1.0)
        first = 2.0 * jnp.pi * jnp.floor(jax.lax.stop_gradient(phase) / (2.0 * jnp.pi))
        # For a wave that does not cross zero these breakpoints have no effect.
        angles = jnp.concatenate([turns + angle, turns + jnp.pi - angle]) + first
        return (angles - phase) / omega


class Limited(AbstractFunction):
    """The straight lines ``function`` between ``-limit`` and ``limit``; the times at which they
    meet these are breakpoints, too."""

    function: AbstractFunction
    limit: Scalar

    def components(self, t):
        # By the middle of the piece: its ends are on a limit.
        value = self.function(middle_of_piece(self.breakpoints(), t))
        above, below = jax.lax.stop_gradient((value > self.limit, value < -self.limit))
        first, *higher = self.function.components(t).polynomial
        outside = above | below
        first = select(above, self.limit, select(below, -self.limit, first))
        return Components([first, *(select(outside, 0.0, p) for p in higher)], [])

    def magnitudes(self, t):
        first, *higher = self.function.magnitudes(t)
        return [jnp.maximum(first, self.limit), *higher]

    def jumps(self):
        return self.function.jumps()

    def breakpoints(self):
        sides = (Sum([self.function, x]) for x in (self.limit, -self.limit))
        return jnp.sort(jnp.concatenate([zeros_of_lines(x) for x in sides]))


class Integral(AbstractFunction):
    """A function whose rate is ``factor`` times the ``rate``. On each smooth piece it is the
    integral from time zero, so that it may jump from piece to piece."""

    rate: AbstractFunction
    factor: Scalar

    def components(self, t):
        polynomial, harmonics = self.rate.components(t)
        found = [-p * (-t) ** (j + 1) / (j + 1) for j, p in enumerate(polynomial)]
        whole = [sum(found), *(p / (j + 1) for j, p in enumerate(polynomial))]
        return Components(
            [self.factor * p for p in whole],
            [(self.factor * a / w, angle - 0.5 * jnp.pi, w) for a, angle, w in harmonics],
        )

    def breakpoints(self):
        return self.rate.breakpoints()

    def frequency(self):
        return self.rate.frequency()


def middle_of_piece(breaks: Float[Array, " b"], t):
    """The middle of the piece of ``t`` between sorted ``breaks``; it has no derivative."""
    breaks, t = jax.lax.stop_gradient((breaks, jnp.asarray(t)))
    edges = jnp.concatenate([breaks[:1] - 2.0, breaks, breaks[-1:] + 2.0])
    index = jnp.searchsorted(breaks, t, side="right")
    return 0.5 * (edges[index] + edges[index + 1])


def zeros_of_lines(function: AbstractFunction) -> Float[Array, " b"]:
    """Breakpoints of a function of straight lines, and the zero of each piece or a breakpoint again
    where it has none."""
    given = jnp.sort(function.breakpoints())
    if given.shape[0] == 0:
        given = jnp.zeros((1,))
    starts = jnp.concatenate([given[:1] - 1.0, given])
    # The first line begins before all breakpoints.
    lower = jnp.concatenate([jnp.full((1,), -jnp.inf), given])
    upper = jnp.concatenate([given, jnp.full((1,), jnp.inf)])
    polynomial, _ = function.components(starts)
    value = jnp.broadcast_to(polynomial[0], starts.shape)
    slope = jnp.broadcast_to(polynomial[1] if len(polynomial) > 1 else 0.0, starts.shape)
    zero = starts - value / select(slope == 0.0, 1.0, slope)
    inside = (slope != 0.0) & (zero > lower) & (zero < upper)
    return jnp.concatenate([given, select(inside, zero, jnp.append(given[:1], given))])


def _waves(function: AbstractFunction) -> list[Harmonic]:
    """The harmonics in ``function``; raises for classes whose zeros are not known."""
    match function:
        case Harmonic():
            return [function]
        case Sum():
            return [wave for term in function.terms for wave in _waves(term)]
        case Until() | Clipped():
            return _waves(function.function)
        case Constant() | Ramp() | Steps() | PiecewiseLinear():
            return []
    raise ProblemError(
        f"a function that is clipped at zero is made of straight lines, or is a constant plus one "
        f"harmonic; found a {type(function).__name__}"
    )


def _only_constants(function: AbstractFunction) -> bool:
    if isinstance(function, Sum):
        return all(_only_constants(term) for term in function.terms)
    return isinstance(function, (Constant, Harmonic))


def _periods(wave: Harmonic, end: float | None, periods: int | None) -> int:
    if periods is not None:
        return int(periods)
    if end is None or isinstance(wave.omega, (Expression, Tracer)):
        raise ProblemError(
            "a harmonic that is clipped at zero needs the time up to which its zeros are wanted: "
            "end with a number omega, or periods"
        )
    last = float(scalar(end)) if isinstance(end, str) else float(end)
    return max(1, math.ceil(last * abs(float(wave.omega)) / (2.0 * math.pi)))


class Combination(AbstractFunction):
    """The combination ``sum_i factor_i f_i(t)``."""

    functions: tuple[AbstractFunction, ...]
    factors: tuple[Scalar, ...]

    def components(self, t):
        polynomial, harmonics = [], []
        for factor, function in zip(self.factors, self.functions, strict=True):
            part = function.components(t)
            polynomial += [0.0] * (len(part.polynomial) - len(polynomial))
            for j, p in enumerate(part.polynomial):
                polynomial[j] = polynomial[j] + factor * p
            harmonics += [(factor * a, angle, w) for a, angle, w in part.harmonics]
        return Components(polynomial, harmonics)

    def magnitudes(self, t):
        found = []
        for factor, function in zip(self.factors, self.functions, strict=True):
            sizes = function.magnitudes(t)
            found += [0.0] * (len(sizes) - len(found))
            for j, size in enumerate(sizes):
                found[j] = found[j] + jnp.abs(factor) * size
        return found

    def breakpoints(self):
        return jnp.concatenate([jnp.zeros((0,)), *(f.breakpoints() for f in self.functions)])

    def jumps(self):
        return jnp.concatenate([jnp.zeros((0,)), *(f.jumps() for f in self.functions)])

    def late(self, t):
        return sum(x * f.late(t) for x, f in zip(self.factors, self.functions, strict=True))

    def tangled(self, t):
        return Sum(list(self.functions)).tangled(t)

    def frequency(self):
        return Sum(list(self.functions)).frequency()


class Magnitude(AbstractFunction):
    """The magnitude ``|function|`` of straight lines between breakpoints; zeros of the lines are
    breakpoints, too."""

    function: AbstractFunction

    def components(self, t):
        polynomial, _ = self.function.components(t)
        sign = self._sign(t)
        return Components([sign * p for p in polynomial], [])

    def magnitudes(self, t):
        return self.function.magnitudes(t)

    def jumps(self):
        return self.function.jumps()

    def breakpoints(self) -> Float[Array, " b"]:
        return jnp.sort(zeros_of_lines(self.function))

    def _sign(self, t):
        """Sign of the line on the piece of ``t``, by its middle."""
        middle = middle_of_piece(self.breakpoints(), t)
        return jax.lax.stop_gradient(select(self.function(middle) < 0.0, -1.0, 1.0))


def has_lines(function: AbstractFunction) -> bool:
    """Whether a function of time is made of straight lines alone, by structure."""
    match function:
        case Constant() | Ramp() | Steps() | PiecewiseLinear():
            return True
        case Sum():
            return all(map(has_lines, function.terms))
        case Until():
            return has_lines(function.function)
    return False
