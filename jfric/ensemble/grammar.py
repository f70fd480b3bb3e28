"""Observables by name: ``final.u``, ``max.v``, ``event_time(3)``, ``dissipated`` ..."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jax.core import Tracer

from jfric.config.units import DIMENSIONS, UnitError, to_si
from jfric.ensemble.observables import (
    AtEvent,
    AtTimes,
    Dissipated,
    EventCount,
    EventTime,
    Final,
    Maximum,
    Mean,
    Minimum,
    Observable,
    RootMeanSquare,
    StickFraction,
    StopTime,
    renamed,
)
from jfric.ensemble.signals import (
    Signal,
    contact_names,
    find_contact,
    find_signal,
    signal_names,
)
from jfric.errors import ProblemError, nearest
from jfric.limits import EVENTS, parse_count
from jfric.system.problem import Problem

#: Reductions over a trajectory of any signal: ``max.u``, ``max.v.u``, ``max.lambda_t.pad``.
REDUCTIONS: dict[str, Callable[..., Observable]] = {
    "final": Final,
    "min": Minimum,
    "max": Maximum,
    "mean": Mean,
    "rms": RootMeanSquare,
}
#: Names that stand alone.
ALONE: dict[str, Callable[[], Observable]] = {
    "stop_time": StopTime,
    "end_time": StopTime,
    "event_count": EventCount,
    "impact_count": lambda: EventCount(impacts=True),
}
#: Names of a contact, which may be left out.
OF_CONTACTS = ("dissipated", "stick_fraction")
#: Names used in checks of a file, which are reductions of a velocity here.
_SAME = {"final_v": "final.v", "event_v": "event.v"}

GRAMMAR = (
    "final.S, min.S, max.S, mean.S, rms.S, S(1 s), S(t), event.S(1), event_time(1), stop_time, "
    "event_count, impact_count, dissipated, stick_fraction with S one of "
)
_TEXT = re.compile(r"\s*([^()\s]+)\s*(?:\((.*)\))?\s*")


def as_observables(
    problem: Problem,
    observe: str | Sequence[str | Observable] | Mapping[str, Observable | Callable[..., Any] | str],
    times=None,
) -> list[Observable]:
    """Observables from names and objects; ``times`` [s] are those of ``S(t)``.

    Raises :class:`ProblemError` for an unknown name, a name used twice, or none at all.
    """
    if isinstance(observe, Mapping):
        named = [(name, item) for name, item in observe.items()]
    else:
        items = split(observe) if isinstance(observe, str) else list(observe)
        named = [(None, item) for item in items]
    found = [_one(problem, name, item, times) for name, item in named]
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


#: Variables that every table holds.
RESERVED = ("status", "flags", "steps")


def split(text: str) -> list[str]:
    """Parts of ``text`` between commas that are not in parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _one(problem: Problem, name: str | None, item: Any, times) -> Observable:
    if isinstance(item, str):
        try:
            found = parse_observable(problem, item, times)
        except ProblemError as error:
            raise ProblemError(f"observe: {error}") from None
    elif isinstance(item, Observable):
        found = item
    else:
        raise ProblemError(
            f"observe: found {item!r}, expected a name such as 'final.u' or an observable such as "
            "jfric.observables.Maximum(function)"
        )
    return renamed(found, name) if name is not None else found


def parse_observable(problem: Problem, text: str, times=None) -> Observable:
    """The observable that ``text`` names."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise _unknown(problem, text)
    word, argument = match.groups()
    word = _same(word)
    label = text.strip()
    first, _, rest = word.partition(".")
    if argument is not None:
        return _with_argument(problem, label, word, argument.strip(), times)
    if word in ALONE:
        return renamed(ALONE[word](), label)
    if first in OF_CONTACTS:
        return _of_contact(problem, label, first, rest)
    if first in REDUCTIONS and rest:
        signal = _signal(problem, rest, text)
        return REDUCTIONS[first](signal, name=label, unit=signal.unit)
    raise _unknown(problem, text)


def _with_argument(problem: Problem, label: str, word: str, argument: str, times) -> Observable:
    first, _, rest = word.partition(".")
    if word == "event_time" or (first == "event" and rest):
        try:
            event = parse_count(argument, "its event", 1, EVENTS)
        except ProblemError:
            raise ProblemError(
                f"found {label!r}, events are numbered 1, 2, ... up to {EVENTS}"
            ) from None
        if word == "event_time":
            return EventTime(event, name=label)
        signal = _signal(problem, rest, label)
        return AtEvent(signal, event, name=label, unit=signal.unit)
    signal = _signal(problem, word, label)
    if argument == "t":
        if times is None:
            raise ProblemError(f"found {label!r}, but no times are given (times=..., --times)")
        return AtTimes(signal, _times(problem, times), name=label, unit=signal.unit)
    try:
        time = to_si(argument, DIMENSIONS["time"])
    except UnitError as error:
        raise ProblemError(f"{label}: its time: {error}") from None
    if not isinstance(time, float):
        raise ProblemError(f"found {label!r}, times hold no parameters")
    chosen = _times(problem, [time], label)
    return AtTimes(signal, chosen, name=label, unit=signal.unit, axis=None)


def _times(problem: Problem, times, label: str = "times") -> tuple[float, ...]:
    found = np.asarray(times, float)
    span: Any = problem.resolved().time
    if found.ndim != 1 or not found.size or not np.all(np.isfinite(found)):
        raise ProblemError(f"{label}: times must be a list of finite numbers")
    if np.any(np.diff(found) <= 0):
        raise ProblemError(f"{label}: times must be a list that increases strictly")
    start = float(span.start)
    if found[0] < start:
        raise ProblemError(f"{label}: found {found[0]:g} s, before the start at {start:g} s")
    if not isinstance(span.end, Tracer) and found[-1] > float(span.end):
        raise ProblemError(
            f"{label}: found {found[-1]:g} s, after the end at {float(span.end):g} s"
        )
    return tuple(found.tolist())


def _of_contact(problem: Problem, label: str, form: str, name: str) -> Observable:
    contacts = contact_names(problem)
    if not contacts:
        raise ProblemError(f"found {label!r}, but the system has no contact")
    if form == "dissipated" and not name:
        return Dissipated(name=label)
    index = find_contact(name, contacts)
    if index is None:
        raise ProblemError(
            f"found {label!r}, no single contact {name!r}{nearest(name, contacts)}; there are "
            + ", ".join(f"{form}.{c}" for c in contacts)
        )
    return (Dissipated if form == "dissipated" else StickFraction)(index, name=label)


def _same(word: str) -> str:
    first, dot, rest = word.partition(".")
    return f"{_SAME[first]}{dot}{rest}" if first in _SAME else word


def _signal(problem: Problem, name: str, text: str) -> Signal:
    try:
        return find_signal(problem, name)
    except ProblemError as error:
        raise ProblemError(f"found {text.strip()!r}, {error}") from None


def _unknown(problem: Problem, text: str) -> ProblemError:
    signals = signal_names(problem)
    names = [*ALONE, *OF_CONTACTS, "event_time(1)"]
    names += [f"{r}.{s}" for r in REDUCTIONS for s in signals] + [f"{s}(t)" for s in signals]
    return ProblemError(
        f"found {text!r}{nearest(text, names)}, allowed are {GRAMMAR}{', '.join(signals)}"
    )
