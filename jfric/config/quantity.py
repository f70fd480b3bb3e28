"""What a check measures on a solution: ``u(1)``, ``v.u(1)``, ``event_time(3)``, ``final.u`` ..."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from jfric.config.units import DIMENSIONS, UnitError, to_si
from jfric.errors import ProblemError, quoted
from jfric.limits import EVENTS, parse_count

Kind = Literal[
    "position",
    "velocity",
    "acceleration",
    "lambda_t",
    "lambda_n",
    "event_time",
    "event_position",
    "event_velocity",
    "event_velocity_before",
    "event_count",
    "impact_count",
    "final_position",
    "final_velocity",
    "end_time",
    "min",
    "max",
    "equilibrium_count",
    "continuum_count",
    "equilibrium",
    "equilibrium_to",
    "limit",
    "branch_count",
    "fold_count",
    "special",
]

#: Kinds taken from equilibria, limit loads and paths of a system, not from a trajectory.
STATIC_KINDS = (
    *("equilibrium_count", "continuum_count", "equilibrium", "equilibrium_to", "limit"),
    *("branch_count", "fold_count", "special"),
)

#: Word before the point (or alone) to kind, whether a name follows it, and what the parentheses
#: hold.
_FORMS: dict[str, tuple[Kind, bool, Literal["time", "event", None]]] = {
    "v": ("velocity", True, "time"),
    "a": ("acceleration", True, "time"),
    "lambda_t": ("lambda_t", True, "time"),
    "lambda_n": ("lambda_n", True, "time"),
    "event_time": ("event_time", False, "event"),
    "event": ("event_position", True, "event"),
    "event_v": ("event_velocity", True, "event"),
    "event_v_before": ("event_velocity_before", True, "event"),
    "event_count": ("event_count", False, None),
    "impact_count": ("impact_count", False, None),
    "final": ("final_position", True, None),
    "final_v": ("final_velocity", True, None),
    "end_time": ("end_time", False, None),
    "stop_time": ("end_time", False, None),
    "min": ("min", True, None),
    "max": ("max", True, None),
    "equilibrium_count": ("equilibrium_count", False, None),
    "continuum_count": ("continuum_count", False, None),
    "equilibrium": ("equilibrium", True, "event"),
    "equilibrium_to": ("equilibrium_to", True, "event"),
    "limit": ("limit", True, None),
    "branch_count": ("branch_count", False, None),
    "fold_count": ("fold_count", False, None),
    "special": ("special", True, "event"),
}

GRAMMAR = (
    "u(1), v.u(1), a.u(1), lambda_t.NAME(1), lambda_n.NAME(1), event_time(1), event.u(1), "
    "event_v.u(1), event_v_before.u(1), event_count, impact_count, final.u, final_v.u, end_time, "
    "min.u, max.u; equilibrium_count, continuum_count, equilibrium.u(1), equilibrium.lambda_n(1), "
    "equilibrium_to.u(1), limit.parameter, limit.lambda_n.NAME, branch_count, fold_count, "
    "special.parameter(1), special.u(1)"
)

_TEXT = re.compile(r"\s*([^()\s]+?)\s*(?:\((.*)\))?\s*")


@dataclass(frozen=True)
class Quantity:
    """A number taken from a solution.

    ``kind`` says which; ``name`` is a degree of freedom, or for ``lambda_t`` and ``lambda_n`` a
    contact (empty: the only one), empty where the kind takes none; ``argument`` is the time [s]
    (a float), the number of the event (an int from 1) or None. ``end_time`` is the time of the
    last event [s]; ``min`` and ``max`` are taken over the outputs. Of equilibria, limits and
    special points the ``name`` is a degree of freedom, ``lambda_t.CONTACT``, ``lambda_n.CONTACT``
    or, but for equilibria, ``parameter``; ``argument`` is their number.
    """

    kind: Kind
    name: str = ""
    argument: float | int | None = None

    def __str__(self) -> str:
        if self.kind == "position":
            word = self.name
        else:
            word = next(w for w, form in _FORMS.items() if form[0] == self.kind)
            word = f"{word}.{self.name}" if self.name else word
        return word if self.argument is None else f"{word}({self.argument!r})"


def parse_quantity(text: str) -> Quantity:
    """The quantity that ``text`` names; times may carry units (``u(10 ms)``).

    Raises :class:`jfric.ProblemError` for anything outside the grammar.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise _error(text)
    word, argument = match.groups()
    form, _, name = word.partition(".")
    kind, named, holds = _FORMS.get(form, ("position", False, "time"))
    optional = kind in ("lambda_t", "lambda_n")
    if not name and argument is not None and named and not optional:
        # A degree of freedom may be called like a form: v(1) is the position of v.
        return Quantity("position", word, _time(text, argument))
    if form not in _FORMS:
        if name or argument is None:
            raise _error(text)
        return Quantity("position", word, _time(text, argument))
    if bool(name) != named and not optional:
        raise _error(text, f"{form} takes {'a' if named else 'no'} name")
    if (argument is None) != (holds is None):
        needs = {"time": "a time", "event": "the number of an event", None: "nothing"}[holds]
        raise _error(text, f"{form} takes {needs} in parentheses")
    if holds is None or argument is None:
        return Quantity(kind, name)
    return Quantity(
        kind, name, _time(text, argument) if holds == "time" else _event(text, argument)
    )


def _time(text: str, argument: str) -> float:
    try:
        value = to_si(argument, DIMENSIONS["time"])
    except UnitError as error:
        raise _error(text, f"its time: {error}") from None
    if not isinstance(value, float):
        raise _error(text, "times hold no parameters")
    return value


def _event(text: str, argument: str) -> int:
    try:
        return parse_count(argument, "", 1, EVENTS)
    except ProblemError:
        raise _error(text, f"events are numbered 1, 2, ... up to {EVENTS}") from None


def _error(text: str, reason: str = "") -> ProblemError:
    return ProblemError(f"found {quoted(text)}, {reason or f'allowed are {GRAMMAR}'}")
