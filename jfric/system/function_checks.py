"""Checks of functions of time."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.core import Tracer, eval_context

from jfric.errors import ProblemError
from jfric.system.bristle import BRISTLES
from jfric.system.derived_functions import Clipped, Until
from jfric.system.description import AbstractProblem, element_label
from jfric.system.direction import Direction
from jfric.system.expression import Expression
from jfric.system.functions import PiecewiseLinear, Steps, Sum
from jfric.system.smallest_value import find_negative


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
