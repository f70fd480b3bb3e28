"""The magnitude of a combination of functions of time, with its kinks among the breakpoints."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.numerics.choice import select
from jfric.system.derived_functions import Until, middle_of_piece, zeros_of_lines
from jfric.system.fields import Scalar
from jfric.system.functions import (
    AbstractFunction,
    Components,
    Constant,
    PiecewiseLinear,
    Ramp,
    Steps,
    Sum,
)


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

    def late(self, t):
        return sum(x * f.late(t) for x, f in zip(self.factors, self.functions, strict=True))

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
