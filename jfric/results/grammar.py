"""Observables by name: the meaning of each quantity of a trajectory.

Names are parsed in :mod:`jfric.results.quantity`, whose grammar the checks of a file share.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jax.core import Tracer

from jfric.errors import ProblemError, within
from jfric.results import observables as seen
from jfric.results.abstract_observables import Observable, renamed
from jfric.results.quantity import (
    OUTCOMES,
    PERIODIC_KINDS,
    STATIC_KINDS,
    Quantity,
    parse_quantity,
    resolve,
)
from jfric.results.signals import contact_names, look_up, signal_names
from jfric.system.hysteresis import HYSTERESIS
from jfric.system.problem import Problem

#: Reductions over a trajectory of any signal: ``max.u``, ``max.v.u``, ``max.lambda_t.pad``.
REDUCTIONS: dict[str, Callable[..., Observable]] = {
    "final": seen.Final,
    "min": seen.Minimum,
    "max": seen.Maximum,
    "mean": seen.Mean,
    "rms": seen.RootMeanSquare,
    "amplitude": seen.Amplitude,
}
#: Names without a further part.
ALONE: dict[str, Callable[[], Observable]] = {
    "last_event_time": seen.LastEventTime,
    "stop_time": seen.StopTime,
    "event_count": seen.EventCount,
    "impact_count": lambda: seen.EventCount(impacts=True),
}


def as_observables(
    problem: Problem,
    observe: str | Sequence[str | Observable] | Mapping[str, Observable | Callable[..., Any] | str],
    times=None,
    end=None,
) -> list[Observable]:
    """Observables from names and objects; ``times`` [s] are those of ``S(t)``, ``end`` [s] is the
    end of the run (by default that of the problem).

    Raises :class:`ProblemError` for an unknown name, a name used twice, or an empty list.
    """
    if isinstance(observe, Mapping):
        named = [(name, item) for name, item in observe.items()]
    else:
        items = split(observe) if isinstance(observe, str) else list(observe)
        named = [(None, item) for item in items]
    found = [_one(problem, name, item, times, end) for name, item in named]
    if not found:
        raise ProblemError("observe: found nothing, name at least one observable: final.u, max.v")
    for i, observable in enumerate(found):
        if any(o.name == observable.name for o in found[:i]):
            raise ProblemError(f"observe: found {observable.name!r} twice, names must differ")
        if observable.name in RESERVED:
            raise ProblemError(
                f"observe: found the name {observable.name!r}, which a sweep gives by itself; "
                "choose another"
            )
    return found


#: Variables that every table contains.
RESERVED = ("status", "flags", "steps")


def split(text: str) -> list[str]:
    """Parts of ``text`` between commas that are not in parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _one(problem: Problem, name: str | None, item: Any, times, end) -> Observable:
    if isinstance(item, str):
        with within("observe: "):
            found = parse_observable(problem, item, times, end)
    elif isinstance(item, Observable):
        found = item
    else:
        raise ProblemError(
            f"observe: found {item!r}, expected a name such as 'final.u' or an observable such as "
            "jfric.observables.Maximum(function)"
        )
    return renamed(found, name) if name is not None else found


def parse_observable(problem: Problem, text: str, times=None, end=None) -> Observable:
    """Observable with the name ``text``."""
    found = resolve(parse_quantity(text, _names(problem)), problem)
    if found.kind in (*STATIC_KINDS, *PERIODIC_KINDS, *OUTCOMES, "derivative"):
        raise ProblemError(f"found {text.strip()!r}, which is no quantity of a trajectory")
    return renamed(observable(problem, found, times, end), text.strip())


def observable(problem: Problem, quantity: Quantity, times=None, end=None) -> Observable:
    """Observable of a trajectory for a ``quantity`` with its full name."""
    kind, name, argument = quantity.kind, quantity.name, quantity.argument
    label = str(quantity)
    if quantity.window is not None:
        whole = observable(problem, dataclasses.replace(quantity, window=None), times, end)
        first, last = quantity.window.start, quantity.window.end
        bounds = [
            _event_time(problem, x, str(x)) if isinstance(x, Quantity) else x for x in (first, last)
        ]
        given = [x for x in bounds if isinstance(x, float)]
        if given:
            _times(problem, given, label, end)
        return seen.During(whole, *bounds, name=label)
    if kind in ALONE:
        return renamed(ALONE[kind](), label)
    if kind == "event_time":
        return _event_time(problem, quantity, label)
    if kind in ("dissipated", "stick_fraction"):
        losing = [*contact_names(problem), *problem.labelled(*HYSTERESIS)]
        index = losing.index(name) if name else None
        if kind == "dissipated" or index is None:
            return seen.Dissipated(index, name=label)
        return seen.StickFraction(index, name=label)
    signal = look_up(problem, f"force.{name}" if kind == "impulse" else name)[1]
    if kind in ("impulse", "integral"):
        return seen.Integral(signal, name=label, unit=f"{signal.unit} s")
    if kind in REDUCTIONS:
        return REDUCTIONS[kind](signal, name=label, unit=signal.unit)
    if kind in ("event", "before_event"):
        at = seen.AtEvent if kind == "event" else seen.BeforeEvent
        return at(signal, int(argument or 0), name=label, unit=signal.unit)
    if argument == "t":
        if times is None:
            raise ProblemError(f"found {label!r}, but no times are given (times=..., --times)")
        return seen.AtTimes(
            signal, _times(problem, times, "times", end), name=label, unit=signal.unit
        )
    at_one = _times(problem, [argument], label, end)
    return seen.AtTimes(signal, at_one, name=label, unit=signal.unit, axis=None)


def _event_time(problem: Problem, quantity: Quantity, label: str) -> seen.EventTime:
    """The time of an event, of all or of the user's event that ``quantity`` names."""
    name = quantity.name
    own = [*problem.section("event")].index(name) if name else None
    return seen.EventTime(int(quantity.argument or 0), name=label, own=own)


def _times(problem: Problem, times, label: str, end) -> tuple[float, ...]:
    found = np.asarray(times, float)
    span: Any = problem.resolved().time
    if found.ndim != 1 or not found.size or not np.all(np.isfinite(found)):
        raise ProblemError(f"{label}: times must be a list of finite numbers")
    if np.any(np.diff(found) <= 0):
        raise ProblemError(f"{label}: times must be a list that increases strictly")
    end = span.end if end is None else end
    for limit, where, outside in (
        (span.start, "before the start", lambda t: found[found < t]),
        (end, "after the end", lambda t: found[found > t]),
    ):
        # A traced limit is known only when the program runs: values outside are NaN then.
        if not isinstance(limit, Tracer) and outside(float(limit)).size:
            raise ProblemError(
                f"{label}: found {outside(float(limit))[0]:g} s, {where} at {float(limit):g} s"
            )
    return tuple(found.tolist())


def _names(problem: Problem) -> list[str]:
    """Valid names, with which a misspelt one is compared."""
    signals = signal_names(problem)
    names = [*ALONE, "dissipated", "stick_fraction", "event_time(1)"]
    names += [f"event_time.{name}(1)" for name in problem.section("event")]
    return names + [f"{r}.{s}" for r in REDUCTIONS for s in signals] + [f"{s}(t)" for s in signals]
