"""Functions of time: loads, belts, base motions and normal forces.

Every function knows its breakpoints (times at which it or a derivative jumps) and, between them,
its polynomial and harmonic components. Solvers never step across a breakpoint.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.numerics.choice import select
from jfric.system.fields import RATE, Scalar, holds


class Components(NamedTuple):
    """A function on one smooth piece: ``f(t + s) = sum_j p_j s^j + sum_i A_i sin(w_i s + a_i)``.

    ``polynomial``: the ``p_j``; ``harmonics``: (amplitude ``A``, angle ``a`` [rad], ``w`` [rad/s]).
    """

    polynomial: list
    harmonics: list[tuple]


class AbstractFunction(eqx.Module):
    """A piecewise smooth scalar function of time: ``function(t)`` for ``t`` [s].

    A new function defines :meth:`components` (polynomial and harmonics of the piece at ``t``) and
    :meth:`breakpoints`, at which solvers end their steps. Example: see :class:`jfric.Harmonic`.
    """

    @abc.abstractmethod
    def components(self, t) -> Components:
        """The piece that begins at or contains time ``t`` (from the right at a breakpoint)."""

    @abc.abstractmethod
    def breakpoints(self) -> Float[Array, " b"]:
        """Times at which the function is not smooth."""

    def jumps(self) -> Float[Array, " b"]:
        """Times among the :meth:`breakpoints` at which the function itself may jump."""
        return self.breakpoints()

    def magnitudes(self, t) -> list:
        """Sums of the magnitudes of the terms of each coefficient of the polynomial of
        ``components(t)``, to which the rounding error of the coefficient is relative."""
        return [jnp.abs(p) for p in self.components(t).polynomial]

    def frequency(self):
        """Largest angular frequency [rad/s]; 0 for piecewise polynomials."""
        return 0.0

    def size(self, t, order: int = 0):
        """Reference size for the rounding error of the value at ``t``, or of a derivative."""
        # A sine near its zero has the rounding error of its argument.
        found = sum(jnp.abs(a * w**order) for a, _, w in self.components(t).harmonics)
        sizes = self.magnitudes(t)
        return found + (math.factorial(order) * sizes[order] if order < len(sizes) else 0.0)

    def __call__(self, t):
        """Value at time ``t`` [s] (from the right at a jump)."""
        polynomial, harmonics = self.components(t)
        value = polynomial[0] if polynomial else 0.0
        return value + sum(a * jnp.sin(angle) for a, angle, _ in harmonics)

    def magnitude(self, t):
        """Sum of the magnitudes of the terms of the value at ``t``; rounding is relative to it."""
        polynomial, harmonics = self.components(t)
        value = jnp.abs(polynomial[0]) if polynomial else 0.0
        return value + sum(jnp.abs(a) for a, _, _ in harmonics)

    def late(self, t):
        """Zero, with the derivatives of the integral of a jump at ``t`` from its own time to ``t``:
        of functions that jump at one instant, ``t`` has the derivatives of one."""
        breaks, still = self.jumps(), jax.lax.stop_gradient
        if not breaks.shape[0]:
            return 0.0
        before, now = t - 8 * jnp.finfo(breaks.dtype).eps * jnp.abs(t), still(breaks == t)
        passed = select(now, t - breaks, 0.0) / jnp.maximum(jnp.sum(now), 1)
        return still(self(t) - self(before)) * jnp.sum(passed - still(passed))

    @property
    def jumping(self) -> int:
        """Number of functions in this one that jump, by structure."""
        parts = jax.tree.leaves(vars(self), is_leaf=lambda x: isinstance(x, AbstractFunction))
        within = sum(x.jumping for x in parts if isinstance(x, AbstractFunction))
        return within or int(self.jumps().shape[0] > 0)

    def tangled(self, t):
        """Whether several functions in this one jump at ``t`` and none has a share of its own, so
        that there are no derivatives by their times."""
        return jnp.sum(jax.lax.stop_gradient(self.jumps() == t)) > 1

    def derivative(self, t, order: int = 1):
        """A derivative at time ``t`` (from the right at a kink)."""
        polynomial, harmonics = self.components(t)
        found = math.factorial(order) * polynomial[order] if order < len(polynomial) else 0.0
        sign, wave = (-1.0) ** (order // 2), (jnp.sin, jnp.cos)[order % 2]
        return found + sum(sign * a * w**order * wave(angle) for a, angle, w in harmonics)


class Constant(AbstractFunction):
    """The constant ``f(t) = value``; numbers are converted to one::

    >>> pull = jfric.Load("u", 5.0).F
    >>> type(pull).__name__, float(pull(1.0)), float(pull.derivative(1.0))
    ('Constant', 5.0, 0.0)
    """

    value: Scalar = eqx.field(**holds())

    def components(self, t):
        return Components([self.value], [])

    def breakpoints(self):
        return jnp.asarray(np.zeros(0), jnp.result_type(float))


class Ramp(AbstractFunction):
    """The straight line ``f(t) = value + rate t``, without an end; ``rate`` [its unit per second].

    A support that keeps moving at one speed::

        >>> pulled = jfric.Base(jfric.Ramp(0.5)).displacement
        >>> float(pulled(3.0)), float(pulled.derivative(3.0))
        (1.5, 0.5)
    """

    rate: Scalar = eqx.field(**holds(RATE))
    value: Scalar = eqx.field(default=0.0, **holds())

    def components(self, t):
        return Components([self.value + self.rate * t, self.rate], [])

    def magnitudes(self, t):
        return [jnp.abs(self.value) + jnp.abs(self.rate * t), jnp.abs(self.rate)]

    def breakpoints(self):
        return jnp.asarray(np.zeros(0), jnp.result_type(float))


class Steps(AbstractFunction):
    """Piecewise constant: ``values[i]`` for ``times[i-1] <= t < times[i]``.

    ``values`` has one entry more than ``times`` [s]; times increase strictly::

        >>> load = jfric.Steps([1.0], [50.0, 0.0])
        >>> float(load(0.5)), float(load(1.0))
        (50.0, 0.0)
    """

    times: Scalar = eqx.field(**holds("time", form="list"))
    values: Scalar = eqx.field(**holds(form="list"))

    def components(self, t):
        return Components([self.values[_piece(self.times, t)]], [])

    def breakpoints(self):
        return self.times


class PiecewiseLinear(AbstractFunction):
    """Straight lines through ``(times[i], values[i])``, constant before and after them.

    Times [s] increase strictly::

        >>> ramp = jfric.PiecewiseLinear([0.0, 2.0], [0.0, 10.0])
        >>> float(ramp(0.5)), float(ramp(3.0)), float(ramp.derivative(0.5))
        (2.5, 10.0, 5.0)
    """

    times: Scalar = eqx.field(**holds("time", form="list"))
    values: Scalar = eqx.field(**holds(form="list"))

    def components(self, t):
        start, value, slope = self._line(t)
        return Components([value + slope * (t - start), slope], [])

    def magnitudes(self, t):
        start, value, slope = self._line(t)
        passed = jnp.abs(t) + jnp.abs(start)
        return [jnp.abs(value) + jnp.abs(slope) * passed, jnp.abs(slope)]

    def _line(self, t):
        """Time and value at the start of the line that contains ``t``, and its slope."""
        times, values = self.times, self.values
        last = times.shape[0] - 1
        index = _piece(times, t)
        left = jnp.clip(index - 1, 0, last)
        right = jnp.clip(index, 0, last)
        dt = select(left == right, 1.0, times[right] - times[left])
        slope = select(left == right, 0.0, (values[right] - values[left]) / dt)
        return times[left], values[left], slope

    def jumps(self):
        return self.times[:0]

    def breakpoints(self):
        return self.times


class Harmonic(AbstractFunction):
    """The sine ``f(t) = amplitude * sin(omega t + phase)``; omega [rad/s], phase [rad].

    ::

        >>> wave = jfric.Harmonic(2.0, 3.0)
        >>> float(wave(0.0)), float(wave.derivative(0.0))
        (0.0, 6.0)
    """

    amplitude: Scalar = eqx.field(**holds())
    omega: Scalar = eqx.field(**holds("angular velocity"))
    phase: Scalar = eqx.field(default=0.0, **holds("angle"))

    def components(self, t):
        return Components([], [(self.amplitude, self.omega * t + self.phase, self.omega)])

    def breakpoints(self):
        return jnp.asarray(np.zeros(0), jnp.result_type(float))

    def frequency(self):
        return jnp.abs(self.omega)


class Sum(AbstractFunction):
    """Sum of functions of time; numbers are constants.

    ``terms``: the functions, in a list::

        >>> float(jfric.functions.Sum([jfric.Steps([1.0], [0.0, 5.0]), 2.0])(1.5))
        7.0
    """

    terms: tuple[AbstractFunction, ...] = eqx.field(
        converter=lambda terms: tuple(as_function(term) for term in terms)
    )

    def components(self, t):
        parts = [term.components(t) for term in self.terms]
        polynomial = _added([p.polynomial for p in parts])
        return Components(polynomial, [h for p in parts for h in p.harmonics])

    def magnitudes(self, t):
        return _added([term.magnitudes(t) for term in self.terms])

    def breakpoints(self):
        return jnp.concatenate([jnp.zeros((0,)), *(term.breakpoints() for term in self.terms)])

    def jumps(self):
        return jnp.concatenate([jnp.zeros((0,)), *(term.jumps() for term in self.terms)])

    def late(self, t):
        return sum(term.late(t) for term in self.terms)

    def tangled(self, t):
        return jnp.any(jnp.stack([term.tangled(t) for term in self.terms]))

    def frequency(self):
        result = 0.0
        for term in self.terms:
            result = jnp.maximum(result, term.frequency())
        return result


def _added(polynomials: list[list]) -> list:
    """Sum of polynomials of different length."""
    length = max((len(p) for p in polynomials), default=0)
    return [sum(p[j] for p in polynomials if j < len(p)) for j in range(length)]


def _piece(times, t):
    """Index of the piece at ``t``; it has no derivative."""
    frozen = jax.lax.stop_gradient
    return jnp.searchsorted(frozen(times), frozen(t), side="right")


def as_function(value) -> Any:
    """The ``value`` as a function of time; numbers and expressions become constants."""
    if isinstance(value, AbstractFunction):
        return value
    if value is None or type(value) is object:
        return value
    return Constant(value)


class Basis(NamedTuple):
    """Basis ``w`` of functions of time at the start of a smooth piece, its generator ``A``, one row
    for each function, and the magnitudes of these rows.

    These are ``powers`` powers of the time ``s`` since then, with a sine and cosine for each
    harmonic. They obey ``dw/ds = A w``: given functions can be part of a linear system.
    """

    w: Float[Array, " b"]
    A: Float[Array, "b b"]
    rows: Float[Array, "f b"]
    sizes: Float[Array, "f b"]
    powers: int


def basis(functions: Sequence[AbstractFunction], t, dtype) -> Basis:
    """The basis of all ``functions`` on the piece that begins at or contains ``t``."""
    parts = [f.components(t) for f in functions]
    powers = powers_of_time(functions)
    harmonics = [(i, h) for i, p in enumerate(parts) for h in p.harmonics]
    size = powers + 2 * len(harmonics)
    zero = jnp.zeros((), dtype)
    w = [zero + 1.0] + [zero] * (powers - 1)
    A = [[zero] * size for _ in range(size)]

    def filled(polynomial):
        short = [jnp.asarray(p, dtype) for p in polynomial]
        return short + [zero] * (size - len(short))

    rows = [filled(p.polynomial) for p in parts]
    sizes = [filled(f.magnitudes(t)) for f in functions]
    for j in range(1, powers):
        A[j][j - 1] = zero + float(j)
    for k, (i, (amplitude, angle, omega)) in enumerate(harmonics):
        at = powers + 2 * k
        w += [jnp.sin(angle) + zero, jnp.cos(angle) + zero]
        A[at][at + 1] = omega + zero
        A[at + 1][at] = -omega + zero
        rows[i][at] = amplitude + zero
        sizes[i][at] = jnp.abs(rows[i][at])

    def table(rows):
        return jnp.stack([jnp.stack(r) for r in rows]) if rows else jnp.zeros((0, size), dtype)

    return Basis(jnp.stack(w), table(A), table(rows), table(sizes), powers)


def powers_of_time(functions: Sequence[AbstractFunction]) -> int:
    """Number of powers of time with which the basis of ``functions`` begins."""
    return max([1, *(len(f.components(0.0).polynomial) for f in functions)])


def functions_after(powers: int, omegas: list, waves: list, s) -> list:
    """Powers of ``s``, and each sine and cosine of ``waves`` after the time ``s``."""
    result = [jnp.ones_like(s)]
    for _ in range(1, powers):
        result.append(result[-1] * s)
    for omega, sine, cosine in zip(omegas, waves[::2], waves[1::2], strict=True):
        sin, cos = jnp.sin(omega * s), jnp.cos(omega * s)
        result += [sine * cos + cosine * sin, cosine * cos - sine * sin]
    return result


class Held(AbstractFunction):
    """Input ``name`` from one sample to the next: ``f(t) = value + slope (t - start)``, or the
    constant ``value`` where there is no slope."""

    name: str = eqx.field(static=True)
    value: Scalar = 0.0
    slope: Scalar | None = None
    start: Scalar = 0.0

    def components(self, t):
        if self.slope is None:
            return Components([self.value], [])
        return Components([self.value + self.slope * (t - self.start), self.slope], [])

    def breakpoints(self):
        return jnp.zeros((0,))


def with_held(problem: Any, slots: Mapping[str, tuple[str, str, str]], *, lines: bool = True):
    """``problem`` with a :class:`Held` at each of ``slots``: section, name and field by path.
    ``lines``: whether each has a slope."""

    def where(p):
        return [getattr(p.elements[s][n], f) for s, n, f in slots.values()]

    zero = jnp.zeros((), jnp.result_type(float))
    pieces = [Held(path, zero, zero if lines else None, zero) for path in slots]
    return eqx.tree_at(
        where, problem, pieces, is_leaf=lambda x: isinstance(x, AbstractFunction) or x is None
    )


def hold(tree, pieces: Mapping[str, Held]):
    """``tree`` with every :class:`Held` replaced by the one of its name in ``pieces``."""
    return jax.tree.map(
        lambda x: pieces[x.name] if isinstance(x, Held) else x,
        tree,
        is_leaf=lambda x: isinstance(x, Held),
    )
