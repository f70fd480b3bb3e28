"""Common period of all time functions: loads, supports, belts and given normal forces."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jfric.errors import ProblemError
from jfric.system.bristle import BRISTLES
from jfric.system.derived_functions import Clipped
from jfric.system.description import element_label
from jfric.system.expression import is_expression
from jfric.system.functions import AbstractFunction, Harmonic, Ramp, Sum
from jfric.system.inertia import is_concrete
from jfric.system.naming import function_paths
from jfric.system.problem import Problem

F = TypeVar("F", bound=AbstractFunction)

#: Largest numerator and denominator of the ratio of commensurate frequencies.
LARGEST = 60
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
        return harmonics_in(getattr(problem.section(self.section)[self.element], self.field))[0]


def forcing_of(problem: Problem, period: Any = None) -> Forcing | None:
    """The function of time a multiple of whose period is that of all loads; None if nothing depends
    on time.

    ``period`` [s]: the requested period, if it is known. Raises
    :class:`jfric.ProblemError` where loads have no common period, or end.
    """
    places = _periodic_functions(problem)
    _refuse_other_functions(problem)
    if not places:
        return None
    keys = {label: _keys(function) for label, (_, function) in places.items()}
    labels = list(places)
    first = Forcing(*places[labels[0]][0])
    every = {key for found in keys.values() for key in found}
    if len(every) == 1:
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
        label: [float(w) for w in _frequencies(_function(resolved, place))]
        for label, (place, _) in places.items()
    }
    base, cycles = waves[labels[0]][0], 1
    for label, found in waves.items():
        for w in found:
            ratio = Fraction(w / base).limit_denominator(LARGEST)
            if ratio == 0 or abs(w / base / float(ratio) - 1.0) > ROUNDING:
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
    for label, (place, _) in _periodic_functions(problem).items():
        for w in _frequencies(_function(resolved, place)):
            cycles = float(w) * float(np.max(np.asarray(period))) / (2.0 * np.pi)
            nearest = max(round(cycles), 1)
            if abs(cycles - nearest) > ROUNDING * max(cycles, 1.0):
                raise ProblemError(
                    f"period: found {float(np.max(np.asarray(period))):.12g} s, in which {label} "
                    f"({float(w):.12g} rad/s) goes through {cycles:.6g} cycles; it must be a "
                    f"multiple of {2.0 * np.pi / float(w):.12g} s"
                )


def _periodic_functions(problem: Problem) -> dict[str, tuple[tuple[str, str, str], Any]]:
    """Functions with a frequency by their paths: place and function."""
    found = {}
    for label, place in function_paths(problem).items():
        function = _function(problem, place)
        if harmonics_in(function):
            found[label] = (place, function)
    return found


def _function(problem: Problem, place: tuple[str, str, str]) -> Any:
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


def _frequencies(function: AbstractFunction) -> list[Any]:
    return [harmonic.omega for harmonic in harmonics_in(function)]


def _refuse_other_functions(problem: Problem) -> None:
    """Refuse functions that change for good, because they have no period."""
    resolved = problem.resolved() if is_concrete(problem) else problem
    for label, place in function_paths(problem).items():
        function = _function(resolved, place)
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
