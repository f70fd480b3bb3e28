"""Quantities by name: ``u(1)``, ``max.v.u``, ``event_time(3)``, ``final.u``, ``impulse.stop`` ...

Checks, runs, sweeps and :func:`jfric.observe` share one grammar. The meaning of names is defined in
:mod:`jfric.results.grammar`, for equilibria in :mod:`jfric.verification.system_checks`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from jfric.errors import ProblemError, nearest, quoted, require_known, within
from jfric.numerics.limits import STEPS
from jfric.results.signals import CONTACTS, FORMS, element_names, find_name, look_up
from jfric.results.status import Flag
from jfric.system.expression import Expression
from jfric.system.hysteresis import HYSTERESIS
from jfric.system.naming import find_path, parameters
from jfric.system.problem import Problem
from jfric.system.units import DIMENSIONS, UnitError, to_si

#: Numbers of a periodic motion that a trajectory does not have.
OF_ORBITS = ("period", "energy_loss", "residual", "event_count", "largest_multiplier")
#: Results for a harmonic of a quantity over a period, amplitude and angle; parts of a multiplier.
HARMONICS, PARTS = ("harmonic", "angle"), ("re", "im")
#: Numbers of an optimum, in addition to those that were free.
OF_OPTIMA = ("objective", "violation")
#: Numbers of a frequency response.
OF_RESPONSES = ("peak", "peak_frequency")


def _signal(quantity: Quantity, problem: Problem) -> str:
    return look_up(problem, quantity.name)[0]


def _motion(quantity: Quantity, problem: Problem) -> str:
    found, function = look_up(problem, quantity.name)
    if not function.of_motion:
        raise ProblemError("positions and velocities only are known before an event")
    return found


def _element(quantity: Quantity, problem: Problem) -> str:
    return look_up(problem, f"force.{quantity.name}")[0].removeprefix("force.")


def _static(quantity: Quantity, problem: Problem) -> str:
    kind, name = quantity.kind, quantity.name
    if name == "parameter" and kind in ("limit", "special"):
        return name
    if kind == "balance" or name.partition(".")[0] not in ("lambda_n", "lambda_t"):
        require_known("", "degree of freedom", name, problem.dofs, "declared are")
    return look_up(problem, name)[0]


def _contact(quantity: Quantity, problem: Problem) -> str:
    kind, name = quantity.kind, quantity.name
    sections = (*CONTACTS, *(HYSTERESIS if kind == "dissipated" else ()))
    contacts = element_names(problem, sections)
    if not contacts:
        raise ProblemError("but the system has no contact")
    if kind == "dissipated" and not name:
        return name
    found = find_name(problem, name, sections)
    if found is None:
        raise ProblemError(
            f"no single contact {name!r}{nearest(name, contacts)}; there are "
            + ", ".join(f"{kind}.{c}" for c in contacts)
        )
    return found


def _event(quantity: Quantity, problem: Problem) -> str:
    if quantity.name:
        require_known("", "event", quantity.name, problem.section("event"))
    return quantity.name


def _flag(quantity: Quantity, problem: Problem) -> str:
    require_known("", "flag", quantity.name, [str(flag.name).lower() for flag in Flag])
    return quantity.name


def _part(quantity: Quantity, problem: Problem) -> str:
    if quantity.name and quantity.name not in PARTS:
        raise ProblemError(f"no part {quantity.name!r}, allowed are {' and '.join(PARTS)}")
    return quantity.name


def _response(quantity: Quantity, problem: Problem) -> str:
    if quantity.name not in OF_RESPONSES:
        raise ProblemError(f"of a response there are {' and '.join(OF_RESPONSES)}")
    return quantity.name


def _optimum(quantity: Quantity, problem: Problem) -> str:
    with within(f"of an optimum there are {', '.join(OF_OPTIMA)}; ", KeyError):
        known = quantity.name in OF_OPTIMA
        return quantity.name if known else find_path(problem, quantity.name)


def _orbit(quantity: Quantity, problem: Problem) -> str:
    """Full name of a quantity of a periodic motion: a number of the motion itself, a signal at its
    start, a harmonic of a signal, or an observable over a period."""
    name, argument = quantity.name, quantity.argument
    first, _, rest = name.partition(".")
    if name in OF_ORBITS and argument is None:
        return name
    if first in HARMONICS and rest:
        if argument is None:
            raise ProblemError("it needs the number of the harmonic in parentheses")
        return f"{first}.{look_up(problem, rest)[0]}"
    inner = name if argument is None else f"{name}({argument})"
    if argument is None and first not in _KINDS:
        return look_up(problem, name)[0]
    found = resolve(parse_quantity(inner), problem)
    if found.kind in (*STATIC_KINDS, *PERIODIC_KINDS):
        raise ProblemError("which is no quantity of a trajectory")
    return ".".join(part for part in (found.kind, found.name) if part and part != "at")


class _Form(NamedTuple):
    """Form of the text after a kind: full name for the one that is given (None: no name), and
    parentheses."""

    name: Callable[[Quantity, Problem], str] | None = None
    holds: Literal["time", "number", "maybe"] | None = None
    #: Whether the name may be left out.
    optional: bool = False


_ALONE, _ROW, _SIGNAL = _Form(), _Form(None, "number"), _Form(_signal)
#: Kinds that are reduced from the motion of a trajectory.
MOTION_KINDS = {
    **dict.fromkeys(("final", "min", "max", "mean", "rms", "amplitude", "integral"), _SIGNAL),
    "impulse": _Form(_element, optional=True),
    "event": _Form(_signal, "number"),
    "before_event": _Form(_motion, "number"),
    "event_time": _Form(_event, "number", optional=True),
    **dict.fromkeys(("event_count", "impact_count", "last_event_time", "stop_time"), _ALONE),
    **dict.fromkeys(("dissipated", "stick_fraction"), _Form(_contact, optional=True)),
}
#: Kinds taken from the outcome of a run.
OUTCOMES = {"status": _ALONE, "flag": _Form(_flag)}
#: Kinds taken from equilibria, limit loads and paths of a system, not from a trajectory.
STATIC_KINDS = {
    **dict.fromkeys(("equilibrium_count", "continuum_count"), _ALONE),
    **dict.fromkeys(("branch_count", "fold_count", "dead_end_count"), _ALONE),
    **dict.fromkeys(("equilibrium", "equilibrium_to", "special"), _Form(_static, "number")),
    "limit": _Form(_static),
}
#: Kinds taken from a steady motion, from its path over a parameter, from many motions, and from an
#: optimisation.
PERIODIC_KINDS = {
    "orbit": _Form(_orbit, "maybe"),
    "multiplier": _Form(_part, "number", optional=True),
    **dict.fromkeys(("fold", "flip", "torus", "hopf", "dead_end", "branch_point"), _ROW),
    **dict.fromkeys(("event_change", "balance_fold", "basin_share"), _ROW),
    **dict.fromkeys(("mode_frequency", "onset"), _ROW),
    "balance": _Form(_static, "maybe"),
    "response": _Form(_response),
    **dict.fromkeys(("lyapunov", "attractor_count", "growth"), _ALONE),
    "optimum": _Form(_optimum, "maybe"),
}
_KINDS: dict[str, _Form] = {**MOTION_KINDS, **OUTCOMES, **STATIC_KINDS, **PERIODIC_KINDS}
#: Other words for a kind, and the prefix that they add to the name.
_SAME: dict[str, tuple[str, str]] = {
    "end_time": ("last_event_time", ""),
    "final_v": ("final", "v."),
    "event_v": ("event", "v."),
    "event_v_before": ("before_event", "v."),
}

GRAMMAR = (
    "S(1), final.S, min.S, max.S, mean.S, rms.S, amplitude.S, integral.S (also 'mean.S after 2 s', "
    "'max.S between 1 s and event_time(4)'), event.S(1), before_event.S(1), "
    "event_time(1), event_time.EVENT(1), last_event_time, stop_time, event_count, impact_count, "
    "dissipated, stick_fraction, impulse.NAME, status, flag.tie, "
    "derivative(final.u/friction.mu) with S one of u, v.u, a.u, lambda_t.NAME, "
    "lambda_n.NAME, slip.NAME, force.NAME, reaction.NAME, input.load.F; "
    "equilibrium_count, continuum_count, "
    "equilibrium.u(1), equilibrium.lambda_n(1), equilibrium_to.u(1), limit.parameter, "
    "limit.lambda_n.NAME, branch_count, fold_count, dead_end_count, special.parameter(1), "
    "special.u(1); orbit.period, orbit.u, orbit.max.u, orbit.harmonic.u(1), orbit.event_time(1), "
    "multiplier(1), multiplier.re(1), fold(1), flip(1), hopf(1), event_change(1), dead_end(1); "
    "balance.u, balance.u(1), balance_fold(1); response.peak, response.peak_frequency; "
    "lyapunov; attractor_count, basin_share(1); growth, mode_frequency(1), onset(1); "
    "optimum.objective, optimum.time.end, optimum.load.F.times(1)"
)

#: What a wrong name is answered with.
EXAMPLES = (
    "u(1 s), final.u, max.v.u, 'mean.u after 2 s', event_time(1), stop_time, equilibrium.u(1), "
    "orbit.period"
)
#: Kinds that may be taken over a part of a trajectory.
WINDOWED = (
    *("min", "max", "mean", "rms", "amplitude", "integral", "impulse", "dissipated"),
    *("stick_fraction", "event_count", "impact_count"),
)
_DERIVATIVE = re.compile(r"\s*derivative\((.+)/\s*([^/\s]+)\s*\)\s*")
_WINDOW = re.compile(r"(.+?)\s+(after|before|between)\s+(.+)")
_TEXT = re.compile(r"\s*([^()\s]+?)\s*(?:\((.*)\))?\s*")


@dataclass(frozen=True)
class Window:
    """Part of a trajectory from one time [s] or event to another; None: from its start, or to its
    end."""

    start: float | Quantity | None = None
    end: float | Quantity | None = None

    def __str__(self) -> str:
        start, end = (f"{x!r} s" if isinstance(x, float) else x for x in (self.start, self.end))
        if start is None:
            return f"before {end}"
        return f"after {start}" if end is None else f"between {start} and {end}"


@dataclass(frozen=True)
class Quantity:
    """A number taken from a trajectory or from the equilibria of a system.

    ``kind`` says which; ``name`` is a signal (``u``, ``v.u``, ``force.stop``), a contact or an
    element, empty where the kind takes none; ``argument`` is the time [s] (a float), ``"t"`` for
    the times of a sweep, the number of the event or equilibrium (an int from 1), or None; of a
    derivative ``name`` is the quantity and ``argument`` the path of the parameter. Of
    equilibria, limits and special points the ``name`` is a degree of freedom,
    ``lambda_t.CONTACT``, ``lambda_n.CONTACT`` or, but for equilibria, ``parameter``. ``window``:
    the part of the trajectory that it is taken from; None: all of it.
    """

    kind: str
    name: str = ""
    argument: float | int | str | None = None
    window: Window | None = None

    def __str__(self) -> str:
        if self.window is not None:
            return f"{dataclasses.replace(self, window=None)} {self.window}"
        word = ".".join(part for part in (self.kind, self.name) if part and part != "at")
        if self.argument is None:
            return word
        if self.kind == "derivative":
            return f"derivative({self.name}/{self.argument})"
        return f"{word}({self.argument if self.argument == 't' else repr(self.argument)})"


def parse_quantity(text: str, known: Iterable[str] = ()) -> Quantity:
    """Quantity with the name ``text``; times may have units (``u(10 ms)``).

    Raises :class:`jfric.ProblemError` for a text outside the grammar, with the nearest of the names
    ``known``.
    """
    slope = _DERIVATIVE.fullmatch(text)
    if slope is not None:
        return Quantity("derivative", slope[1], slope[2])
    windowed = _WINDOW.fullmatch(text.strip())
    if windowed is not None:
        return _with_window(text, parse_quantity(windowed[1], known), windowed[2], windowed[3])
    match = _TEXT.fullmatch(text)
    if match is None:
        raise _error(text, known=known)
    word, argument = match.groups()
    first, _, name = word.partition(".")
    kind, prefix = _SAME.get(first, (first, ""))
    form = _KINDS.get(kind)
    if form is not None and form.name and not (name or form.optional or argument is None):
        # A degree of freedom may be named like a kind: final(1) is its position.
        form = None
    if form is None:
        if argument is None or (name and first not in FORMS):
            raise _error(text, known=known)
        return Quantity("at", word, "t" if argument.strip() == "t" else _time(text, argument))
    if bool(name) != bool(form.name) and not form.optional:
        raise _error(text, f"{first} takes {'a' if form.name else 'no'} name")
    if form.holds != "maybe" and (argument is None) != (form.holds is None):
        needs = {"number": "the number of an event", None: "nothing"}[form.holds]
        raise _error(text, f"{first} takes {needs} in parentheses")
    number = None if argument is None else _number(text, argument)
    return Quantity(kind, prefix + name, number)


def _with_window(text: str, quantity: Quantity, word: str, bounds: str) -> Quantity:
    """``quantity`` over the part ``after``, ``before`` or ``between`` bounds."""
    if quantity.kind not in WINDOWED or quantity.window is not None:
        raise _error(text, f"{quantity.kind} is not taken over a part; {', '.join(WINDOWED)} are")
    found = [_bound(text, part) for part in re.split(r"\s+and\s+", bounds)]
    if len(found) != (2 if word == "between" else 1):
        raise _error(text, "write 'after 15 s', 'before 3 s', 'between 1 s and event_time(4)'")
    start = None if word == "before" else found[0]
    end = found[-1] if word != "after" else None
    return dataclasses.replace(quantity, window=Window(start, end))


def _bound(text: str, bound: str) -> float | Quantity:
    """A time [s], or the time of an event."""
    if bound.startswith("event_time"):
        found = parse_quantity(bound)
        if found.kind == "event_time":
            return found
    elif bound[0] in "+-.0123456789":
        return _time(text, bound)
    raise _error(text, "a part begins or ends at a time such as 4 s or at event_time(1)")


def resolve(quantity: Quantity, problem: Problem) -> Quantity:
    """``quantity`` with the full name that solutions use.

    Raises :class:`jfric.ProblemError` for an unknown or ambiguous name.
    """
    kind, window = quantity.kind, quantity.window
    if window is not None:
        for bound in (window.start, window.end):
            if isinstance(bound, Quantity):
                resolve(bound, problem)
    if kind == "derivative":
        return _derivative(quantity, problem)
    form = _SIGNAL if kind == "at" else _KINDS[kind]
    if form.name is None:
        return quantity
    with within(f"found {str(quantity)!r}, "):
        return dataclasses.replace(quantity, name=form.name(quantity, problem))


def _derivative(quantity: Quantity, problem: Problem) -> Quantity:
    """A derivative with the names of quantity and parameter in full."""
    inner = resolve(parse_quantity(quantity.name), problem)
    if inner.kind in (*STATIC_KINDS, *PERIODIC_KINDS, *OUTCOMES, "derivative"):
        raise ProblemError(f"found {str(quantity)!r}, {inner.kind} has no derivative here")
    with within(f"found {str(quantity)!r}, ", KeyError):
        path = find_path(problem, str(quantity.argument))
    value = parameters(problem)[path]
    if isinstance(value, Expression):
        own = ", ".join(f"parameters.{name}" for name in value.references)
        raise ProblemError(
            f"found {str(quantity)!r}, {path} is computed from shared parameters; take {own}"
        )
    if np.ndim(value):
        raise ProblemError(f"found {str(quantity)!r}, {path} is no single number")
    return dataclasses.replace(quantity, name=str(inner), argument=path)


def _time(text: str, argument: str) -> float:
    try:
        value = to_si(argument, DIMENSIONS["time"])
    except UnitError as error:
        raise _error(text, f"its time: {error}") from None
    if not isinstance(value, float):
        raise _error(text, "times hold no parameters")
    return value


def _number(text: str, argument: str) -> int:
    digits = argument.strip().lstrip("0")
    if not digits.isdecimal():
        raise _error(text, "events are numbered 1, 2, ...")
    # Converted only after a check of its length: a million digits would take for ever.
    if len(digits) > len(str(STEPS)) or int(digits) > STEPS:
        raise _error(text, f"events are numbered up to {STEPS}")
    return int(digits)


def _error(text: str, reason: str = "", known: Iterable[str] = ()) -> ProblemError:
    everything = "the page on sweeps and jfric.results.quantity.GRAMMAR list all"
    reason = reason or f"expected such as {EXAMPLES} ({everything})"
    return ProblemError(f"found {quoted(text)}{nearest(text, known)}, {reason}")
