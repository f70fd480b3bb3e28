"""Checks of functions of time."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer, eval_context

from jfric.errors import ProblemError
from jfric.numerics.tolerances import tolerance_of
from jfric.system.bristle import BRISTLES
from jfric.system.derived_functions import Clipped, Until
from jfric.system.description import AbstractProblem, element_label
from jfric.system.direction import Direction
from jfric.system.expression import Expression
from jfric.system.functions import AbstractFunction, PiecewiseLinear, Steps, Sum


def _terms(function: Any):
    """The terms of a function of time (or number), in sums and in functions made from others."""
    if isinstance(function, Sum):
        for term in function.terms:
            yield from _terms(term)
    elif isinstance(function, (Until, Clipped)):
        yield from _terms(function.function)
    else:
        yield function


def _function(where: str, function) -> None:
    if not isinstance(function, (Steps, PiecewiseLinear)):
        return
    times, values = np.asarray(function.times), np.asarray(function.values)
    extra = 1 if isinstance(function, Steps) else 0
    if not extra and times.size == 0:
        raise ProblemError(f"{where}.times: found none, at least one is needed")
    if times.ndim != 1 or values.shape != (times.size + extra,) or np.any(np.diff(times) <= 0):
        raise ProblemError(
            f"{where}.times: found {times.size} times and {values.size} values; "
            f"times must increase strictly and have {values.size - extra} entries"
        )


def _known_zeros(where: str, function, time) -> None:
    """Refuse a harmonic clipped at zero whose zeros are not known over the whole run."""
    if isinstance(function, Sum):
        for term in function.terms:
            _known_zeros(where, term, time)
    if isinstance(function, (Until, Clipped)):
        _known_zeros(where, function.function, time)
    if isinstance(function, Clipped) and function.periods:
        with eval_context():
            known = np.asarray(function.breakpoints())
        if known[0] > float(time.start) or known[-1] < float(time.end):
            raise ProblemError(
                f"{where}: the zeros of the clipped harmonic are known from {known[0]:g} s to "
                f"{known[-1]:g} s, which is not the whole run; give a later end or more periods"
            )


def _not_negative(where: str, function, time) -> None:
    """Refuse a normal force that is negative anywhere in the simulated time."""
    start, end = float(time.start), float(time.end)
    found = find_negative(function, start, end) if end > start else None
    if found is not None:
        raise ProblemError(
            f"{where}: found {found.value:g} at t = {found.t:g} s, must not be negative"
        )


#: Fields that hold functions of time.
_FUNCTIONS = ("N", "limit", "belt", "F", "displacement", "V", "i")


def require_functions_of_time(where: str, section: str, element, time) -> None:
    """Raise :class:`ProblemError` for a function of time of ``element`` that is not valid, or is
    negative where a force must not be."""
    given = {f: getattr(element, f, None) for f in _FUNCTIONS}
    if isinstance(belts := given["belt"], tuple):
        given |= {"belt": None} | {f"belt[{i}]": belt for i, belt in enumerate(belts, 1)}
    for field, function in given.items():
        if isinstance(function, Sum) and not list(_terms(function)):
            raise ProblemError(f"{where}.{field}: found a sum without terms")
        for term in _terms(function):
            _function(f"{where}.{field}", term)
        if function is not None:
            _known_zeros(f"{where}.{field}", function, time)
        if field in ("N", "limit") and function is not None and section == "friction":
            _not_negative(f"{where}.{field}", function, time)


def refuse_jumping_bases(problem: AbstractProblem, who: str) -> None:
    """Raise :class:`ProblemError` for a base whose displacement jumps during a run, where contact,
    friction or a damper is attached to it: ``who`` would have to move bodies in no time."""
    for name, base in problem.section("base").items():
        jump = _jump(base.displacement, problem.resolved().time.start)
        if jump is None:
            continue
        for section in problem.elements:
            for where, element in problem.labelled(section).items():
                if not _names(element, name) or not _takes_no_jump(section, element):
                    continue
                raise ProblemError(
                    f"{element_label('base', name)}.displacement: found a jump{jump}, to which "
                    f"{where} is attached; {who} takes a displacement that jumps for springs "
                    "without a damper only, give a steep PiecewiseLinear for it"
                )


def _jump(function, start) -> str | None:
    """Text that says where a function of time jumps after ``start``; None where it does not. Traced
    numbers may make it jump: the text is then empty."""
    parts = function.terms if isinstance(function, Sum) else ()
    for part in (function.function,) if isinstance(function, (Until, Clipped)) else parts:
        if (found := _jump(part, start)) is not None:
            return found
    if not isinstance(function, (Steps, Until)):
        return None
    if any(isinstance(x, (Tracer, Expression)) for x in (*jax.tree.leaves(function), start)):
        return ""
    with eval_context():
        if isinstance(function, Until):
            times, before = [float(function.end)], [float(function.function(function.end))]
            after = [float(function.after)]
        else:
            times, values = np.asarray(function.times), np.asarray(function.values)
            before, after = values[:-1], values[1:]
    for t, a, b in zip(times, before, after, strict=True):
        if t > float(start) and a != b:
            return f" from {a:g} to {b:g} at {t:g} s"
    return None


def _names(element, base: str) -> bool:
    """Whether a direction of ``element`` names the ``base``."""
    leaves = jax.tree.leaves(element, is_leaf=lambda x: isinstance(x, Direction))
    return any(isinstance(x, Direction) and base in x.names for x in leaves)


def _takes_no_jump(section: str, element) -> bool:
    """Whether an element does not allow a jump of a base: a damper, contact, friction, a state."""
    damping = getattr(element, "c", None)
    damped = damping is not None and not isinstance(damping, Tracer | Expression)
    damped = damped and bool(np.any(np.asarray(damping) != 0.0))
    return damped or section in ("contact", "friction") or section in BRISTLES


#: Evaluations after which the search ends.
MOST = 1 << 20
#: The lowest value is known to this part of the magnitudes.
PRECISE = 1e-9
#: Values below zero by up to this part of the magnitudes of their terms are not negative; in single
#: precision by its rounding.
ROUNDING = 1e-12


class Pieces(NamedTuple):
    """All smooth pieces of a function on an interval; (P,), and (P, number of terms)."""

    start: np.ndarray
    length: np.ndarray
    polynomial: np.ndarray
    amplitude: np.ndarray
    angle: np.ndarray
    omega: np.ndarray


class Negative(NamedTuple):
    """A time [s] at which a function is negative, and its value there."""

    t: float
    value: float


def pieces(function: AbstractFunction, start: float, end: float) -> Pieces:
    """The pieces of ``function`` from ``start`` to ``end`` [s]."""
    # A concrete function may be looked at while something else is traced.
    with eval_context():
        breaks = np.unique(np.asarray(function.breakpoints(), float))
        breaks = breaks[(breaks > start) & (breaks < end)]
        begin = np.concatenate([[start], breaks])
        polynomial, harmonics = function.components(begin)
        count = begin.shape[0]

        def table(columns) -> np.ndarray:
            rows = [np.broadcast_to(np.asarray(c, float), (count,)) for c in columns]
            return np.stack(rows, axis=1) if rows else np.zeros((count, 0))

        return Pieces(
            begin,
            np.append(breaks, end) - begin,
            table(polynomial),
            *(table([h[i] for h in harmonics]) for i in range(3)),
        )


def find_negative(function: AbstractFunction, start: float, end: float) -> Negative | None:
    """The smallest value of ``function`` between ``start`` and ``end`` [s] if it is negative.

    On a smooth piece ``f(t + s) = sum_j p_j s^j + sum_i A_i sin(w_i s + a_i)``. Around the middle
    ``m`` of an interval of half-width ``r``, with the harmonics that vary slowly there
    (``w r <= 1``)::

        f >= f(m) - |f'(m)| r - B r^2 / 2 - sum_fast |A_i|,     B >= |f''|

    Intervals whose bound is negative are halved: branch and bound.

    Values below zero by rounding do not count; those by up to ``PRECISE`` may be missed. If the
    bound has not decided after a million evaluations, none of which was negative, the result is
    None: the function is then closer to zero than its oscillations allow to decide.
    """
    p = pieces(function, start, end)
    powers = p.length[:, None] ** np.arange(p.polynomial.shape[1])
    size = np.sum(np.abs(p.polynomial) * powers, axis=1) + np.sum(np.abs(p.amplitude), axis=1)
    slack = tolerance_of(jnp.result_type(float), ROUNDING) * size
    which, none = np.arange(p.start.shape[0]), np.zeros(p.start.shape)
    ends = np.concatenate([_values(p, which, none)[0], _values(p, which, p.length)[0]])
    ends = np.where(ends < -np.tile(slack, 2), ends, 0.0)
    times = np.concatenate([p.start, p.start + p.length])
    best = Negative(float(times[ends.argmin()]), float(ends.min()))
    middle, radius, done = 0.5 * p.length, 0.5 * p.length, 0
    while middle.size and done < (MOST if best.value == 0.0 else MOST >> 4):
        done += middle.size
        value, low = _bounds(p, which, middle, radius)
        negative = np.where(value < -slack[which], value, 0.0)
        i = int(negative.argmin())
        if negative[i] < best.value:
            best = _lowest_near(p, which[i : i + 1], middle[i : i + 1], radius[i])
        # Drop intervals that cannot be negative, and those that cannot be below the lowest value.
        keep = low < np.minimum(-slack, best.value - PRECISE * size)[which]
        which, radius = np.repeat(which[keep], 2), np.repeat(0.5 * radius[keep], 2)
        middle = np.repeat(middle[keep], 2) + radius * np.tile([-1.0, 1.0], int(keep.sum()))
    return best if best.value < 0.0 else None


def _lowest_near(p: Pieces, which, s, radius: float) -> Negative:
    """The lowest of a few Newton steps for a zero of the slope, from ``s`` (1,) on."""
    low, high = s - radius, s + radius
    best = (float(_values(p, which, s)[0][0]), float(s[0]))
    for _ in range(6):
        _, slope, _, rate = _values(p, which, s)
        angle = p.omega[which] * s[:, None] + p.angle[which]
        bend = -np.sum(p.amplitude[which] * p.omega[which] ** 2 * np.sin(angle), axis=1)
        for j in range(2, p.polynomial.shape[1]):
            bend = bend + j * (j - 1) * p.polynomial[which, j] * s ** (j - 2)
        step = (slope + rate.sum(axis=1)) / np.where(bend > 0.0, bend, np.inf)
        s = np.clip(s - step, low, high)
        best = min(best, (float(_values(p, which, s)[0][0]), float(s[0])))
    return Negative(float(p.start[which[0]]) + best[1], best[0])


def _values(p: Pieces, which, s):
    """Values at ``s`` after the start of the pieces ``which``, first derivatives of the
    polynomials, and value and derivative of each harmonic."""
    coefficients = p.polynomial[which]
    value, slope = np.zeros(s.shape), np.zeros(s.shape)
    for j in reversed(range(coefficients.shape[1])):
        value, slope = value * s + coefficients[:, j], slope * s + value
    angle = p.omega[which] * s[:, None] + p.angle[which]
    wave = p.amplitude[which] * np.sin(angle)
    rate = p.amplitude[which] * p.omega[which] * np.cos(angle)
    return value + wave.sum(axis=1), slope, wave, rate


def _bounds(p: Pieces, which, middle, radius):
    """Values (k,) in the middles of intervals, and lower bounds on them."""
    value, slope, wave, rate = _values(p, which, middle)
    amplitude, omega = np.abs(p.amplitude[which]), np.abs(p.omega[which])
    slow = omega * radius[:, None] <= 1.0
    slope = slope + np.sum(np.where(slow, rate, 0.0), axis=1)
    bend = np.sum(np.where(slow, amplitude * omega**2, 0.0), axis=1)
    far = middle + radius
    for j in range(2, p.polynomial.shape[1]):
        bend = bend + j * (j - 1) * np.abs(p.polynomial[which, j]) * far ** (j - 2)
    fast = np.sum(np.where(slow, 0.0, wave + amplitude), axis=1)
    return value, value - fast - np.abs(slope) * radius - 0.5 * bend * radius**2
