"""Common period of all time functions: loads, supports, belts and given normal forces.

Shooting takes the period from one of them, and harmonic balance and sections from one of the
frequencies of the assembled system.
"""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jfric.errors import ProblemError
from jfric.system.assembly import assemble
from jfric.system.bristle import BRISTLES
from jfric.system.derived_functions import Clipped
from jfric.system.description import element_label
from jfric.system.expression import is_expression
from jfric.system.functions import AbstractFunction, Harmonic, Ramp, Sum
from jfric.system.inertia import is_concrete
from jfric.system.mechanics import Mechanics
from jfric.system.naming import function_paths, set_parameters
from jfric.system.problem import Problem

F = TypeVar("F", bound=AbstractFunction)

#: Name of harmonic balance in messages.
WHO = "harmonic balance"
#: Place of a function of time: section, element and field.
Place = tuple[str, str, str]
#: Largest denominator of the ratio of commensurate frequencies.
LARGEST = 64
#: Instants of a period at which a function of time is compared with itself a period later.
INSTANTS = (0.0, 0.137, 0.391, 0.662, 0.873)
#: Deviation of a number of cycles from an integer that counts as rounding.
ROUNDING = 1e-9
#: Sections of elements that depend on the velocity of a support, but not on its position.
FEEL_VELOCITY = frozenset({"damper", "friction", *BRISTLES})


class Forcing(NamedTuple):
    """Function that gives the period of all loads: its own period, ``cycles`` times.

    ``section``, ``element``, ``field``: where the function stands.
    """

    section: str
    element: str
    field: str
    cycles: int = 1

    def period(self, problem: Problem):
        """Period [s] of all loads of a resolved problem."""
        return self.cycles * 2.0 * jnp.pi / jnp.abs(self._wave(problem).omega)

    def angle(self, problem: Problem):
        """``angle`` [rad] of the load ``sin(angle)`` at the start of a resolved problem."""
        wave = self._wave(problem)
        return wave.omega * problem.time.start + wave.phase

    def _wave(self, problem: Problem) -> Any:
        return harmonics_in(function_at(problem, self[:3]))[0]


def forcing_of(problem: Problem, period: Any = None) -> Forcing | None:
    """The function of time a multiple of whose period is that of all loads; None if nothing depends
    on time.

    ``period`` [s]: the requested period, if it is known. Raises
    :class:`jfric.ProblemError` where loads have no common period, or end.
    """
    places = periodic_functions(problem)
    _refuse_other_functions(problem)
    if not places:
        return None
    labels = list(places)
    first = Forcing(*places[labels[0]])
    functions = [function_at(problem, place) for place in places.values()]
    if len({key for function in functions for key in _keys(function)}) == 1:
        return first
    if not is_concrete(problem):
        if period is not None:
            return first
        raise ProblemError(
            f"period: {', '.join(labels)} have different frequencies, whose common period is not "
            "known while JAX traces; give period"
        )
    resolved = problem.resolved()
    waves = {
        label: [float(harmonic.omega) for harmonic in harmonics_in(function_at(resolved, place))]
        for label, place in places.items()
    }
    base, cycles = waves[labels[0]][0], 1
    for label, found in waves.items():
        for w in found:
            ratio = ratio_of(w / base)
            if ratio is None:
                raise ProblemError(
                    f"period: {labels[0]} ({base:g} rad/s) and {label} ({w:g} rad/s) have no "
                    f"common period of up to {LARGEST} cycles; change one, or take a transient"
                )
            cycles = math.lcm(cycles, ratio.denominator)
    return first._replace(cycles=cycles)


def require_commensurate(problem: Problem, period: Any) -> None:
    """Raise :class:`jfric.ProblemError` where a load does not repeat after ``period`` [s]."""
    if isinstance(period, Tracer) or not is_concrete(problem):
        return
    resolved = problem.resolved()
    for label, place in periodic_functions(problem).items():
        for harmonic in harmonics_in(function_at(resolved, place)):
            w = float(harmonic.omega)
            cycles = w * float(np.max(np.asarray(period))) / (2.0 * np.pi)
            nearest = max(round(cycles), 1)
            if abs(cycles - nearest) > ROUNDING * max(cycles, 1.0):
                raise ProblemError(
                    f"period: found {float(np.max(np.asarray(period))):.12g} s, in which {label} "
                    f"({w:.12g} rad/s) goes through {cycles:.6g} cycles; it must be a "
                    f"multiple of {2.0 * np.pi / w:.12g} s"
                )


def ratio_of(value: float) -> Fraction | None:
    """The fraction that a ratio of frequencies is up to rounding, or None."""
    found = Fraction(value).limit_denominator(LARGEST)
    return found if found and abs(value / float(found) - 1.0) <= ROUNDING else None


def periodic_functions(problem: Problem) -> dict[str, Place]:
    """Places of the functions with a frequency by their paths."""
    places = function_paths(problem).items()
    return {label: place for label, place in places if harmonics_in(function_at(problem, place))}


def function_at(problem: Problem, place: Place) -> Any:
    """The function of time at a place."""
    section, element, field = place
    return getattr(problem.section(section)[element], field)


def harmonics_in(function: AbstractFunction) -> list[Harmonic]:
    """The harmonic parts of a function of time, however it is put together."""
    return _parts_in(function, Harmonic)


def _parts_in(function: AbstractFunction, kind: type[F]) -> list[F]:
    """The parts of one kind."""
    if isinstance(function, kind):
        return [function]
    parts = function.terms if isinstance(function, Sum) else [getattr(function, "function", None)]
    return [f for p in parts if isinstance(p, AbstractFunction) for f in _parts_in(p, kind)]


def _require_only_velocity(problem: Problem, base: str) -> None:
    """Raise :class:`ProblemError` for an element that depends on the position of a support that
    moves away for ever, not only on its velocity."""
    word = re.compile(rf"\b{re.escape(base)}\b")
    for section in problem.elements.keys() - {"base"}:
        for name, element in problem.section(section).items():
            if section in FEEL_VELOCITY and getattr(element, "position", None) is None:
                continue
            if any(word.search(str(x)) for x in vars(element).values()):
                raise ProblemError(
                    f"{element_label('base', base)}.displacement: found a ramp, and "
                    f"{element_label(section, name)} feels where this support is; periodic motion "
                    f"allows it for {', '.join(sorted(FEEL_VELOCITY))}, which feel its velocity; "
                    "let the support rest and give friction a belt: the same motion, seen from the "
                    "support"
                )


def _keys(function: AbstractFunction) -> list[Any]:
    """Keys that tell frequencies apart: the text of an expression, a number, or a tracer's id."""
    keys: list[Any] = []
    for harmonic in harmonics_in(function):
        omega: Any = harmonic.omega
        if is_expression(omega):
            keys.append(omega.text)
        else:
            keys.append(id(omega) if isinstance(omega, Tracer) else float(omega))
    return keys


def _refuse_other_functions(problem: Problem) -> None:
    """Refuse functions that change for good, because they have no period."""
    resolved = problem.resolved() if is_concrete(problem) else problem
    for label, place in function_paths(problem).items():
        function = function_at(resolved, place)
        if isinstance(function, AbstractFunction) and _parts_in(function, Ramp):
            if place[0] != "base":
                raise ProblemError(
                    f"{label}: found a function that grows without end; periodic motion needs "
                    "constant and harmonic loads"
                )
            _require_only_velocity(problem, place[1])
        if isinstance(function, Clipped) or not isinstance(function, AbstractFunction):
            continue
        if not is_concrete(problem):
            continue
        late = [float(t) for t in function.breakpoints() if float(t) > float(resolved.time.start)]
        if late:
            raise ProblemError(
                f"{label}: found a function that changes at {late[0]:g} s, after the start; "
                "periodic motion needs constant and harmonic loads (or a later start)"
            )
    for name, event in problem.section("event").items():
        if event.stops:
            raise ProblemError(
                f"{element_label('event', name)}: found action 'stop', which ends a period; "
                "periodic motion takes 'record' and 'change'"
            )


def frequencies(mechanics: Mechanics) -> list:
    """Angular frequencies [rad/s] of all harmonic parts of the functions of time."""
    zero = jnp.zeros((), mechanics.K.dtype)
    return [abs(w) for f in mechanics.functions() for _, _, w in f.components(zero).harmonics]


def carrier(problem: Problem, path: str | None, values: list[float]) -> tuple[int, float]:
    """Number of a frequency of :func:`frequencies`, and its ratio to the base frequency.

    The base frequency is the largest of which all others are multiples, the same ones at all
    ``values`` of the parameter ``path``. Raises :class:`ProblemError` where there is none, and for
    functions that are not periodic with it.
    """
    found: tuple[int, float] | None = None
    ratios = None
    for value in values:
        here = problem if path is None else set_parameters(problem, {path: value})
        here = here.resolved()
        mechanics = assemble(here)
        for where, place in function_paths(here).items():
            function = function_at(here, place)
            if function.breakpoints().size:
                raise ProblemError(
                    f"{where}: found a {type(function).__name__} with breakpoints, which has no "
                    f"period; {WHO} takes constants and sums of harmonic functions"
                )
        omegas = np.asarray([float(w) for w in frequencies(mechanics)])
        if not np.any(omegas > 0.0):
            raise ProblemError(
                "load: found no function of time with a frequency, such as "
                "jfric.Harmonic(1.0, omega=3.0), from which the period follows"
            )
        base = _base(omegas, path, value)
        multiples = np.round(omegas / base)
        if ratios is not None and np.any(multiples != ratios):
            raise ProblemError(
                f"{path}: at {value:g} frequencies have other ratios than at {values[0]:g}; make "
                "them multiples of one shared parameter"
            )
        ratios = multiples
        if found is None:
            index = int(np.argmin(np.where(omegas > 0.0, omegas, np.inf)))
            found = index, float(multiples[index])
        _require_periodic(here, mechanics, 2.0 * np.pi / base)
    assert found is not None
    return found


def highest(problem: Problem, divisor: tuple[int, float]) -> int:
    """The highest multiple of the base frequency in a function of time."""
    omegas = [float(w) for w in frequencies(assemble(problem))]
    return int(np.round(max(omegas) / omegas[divisor[0]] * divisor[1]))


def _base(omegas: np.ndarray, path: str | None, value: float) -> float:
    """The base frequency [rad/s] of which all ``omegas`` are multiples."""
    present = omegas[omegas > 0.0]
    lowest = float(present.min())
    ratios = [ratio_of(float(w) / lowest) for w in present]
    if None not in ratios:
        return lowest / math.lcm(*(r.denominator for r in ratios if r))
    listed = ", ".join(f"{w:g}" for w in sorted(set(present.tolist())))
    where = "" if path is None else f" at {path} = {value:g}"
    raise ProblemError(
        f"load: found the frequencies {listed} rad/s{where}, which are no multiples of one of them "
        f"divided by at most {LARGEST}; {WHO} needs a period"
    )


def _require_periodic(problem: Problem, mechanics: Mechanics, period: float) -> None:
    """Refuse functions of time without the given period."""
    for (path, place), part in itertools.product(function_paths(problem).items(), INSTANTS):
        function, t = function_at(problem, place), jnp.asarray(part * period)
        _compare(path, function(t), function(t + period), function.magnitude(t), period)
    n = mechanics.n
    size = jnp.maximum(jnp.max(jnp.abs(mechanics.K), initial=0.0), 1.0)
    q, v = jnp.linspace(0.3, 0.7, n), jnp.linspace(-0.4, 0.6, n)
    for element, part in itertools.product(mechanics.nonlinear, INSTANTS):
        t = jnp.asarray(part * period)
        now, later = (element.force(mechanics.axes, x, q, v) for x in (t, t + period))
        _compare(type(element).__name__, now, later, jnp.max(jnp.abs(now)) + size, period)


def _compare(what: str, now, later, size, period: float) -> None:
    if not np.all(np.abs(np.asarray(now - later)) <= 1e-6 * float(size)):
        raise ProblemError(
            f"{what}: depends on time and is not the same a period of {period:g} s later; {WHO} "
            "needs forces with the period of the loads"
        )
