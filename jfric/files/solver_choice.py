"""Choice of the solver from a configuration and the command line."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jfric import solvers
from jfric.errors import ProblemError, nearest, quoted, require_one_of
from jfric.numerics.limits import COUNTS, require_count, short

if TYPE_CHECKING:
    from jfric.system.problem import Problem

#: Classes of the solvers by name, the first being the default.
CLASSES = {
    "event-driven": "EventDriven",
    "moreau-jean": "MoreauJean",
    "midpoint": "Midpoint",
    "stabilised-midpoint": "StabilisedMidpoint",
    "quasi-static": "QuasiStatic",
    "smoothed": "Smoothed",
}
SOLVERS = tuple(CLASSES)
#: Fields of solvers that are Python objects, which no file holds.
OBJECTS = ("controller", "diffrax_adjoint")
#: Settings that a solver needs, and what to give for them.
REQUIRED = {
    "dt": "the length of its steps [s] (dt = 1e-4 in the table [solver], --option dt=1e-4), a "
    "small part of the shortest period of the system",
}
#: Settings with a physical dimension, and their limits; :data:`COUNTS` has the whole numbers.
NUMBERS: dict[str, dict[str, float]] = {
    "rtol": {"above": 0.0, "below": 1.0},
    "atol": {"above": 0.0},
    "dt": {"above": 0.0},
    "dt0": {"above": 0.0},
    "accumulation": {"above": 0.0, "below": 1.0},
    "theta": {"at_least": 0.0, "at_most": 1.0},
    "width": {"above": 0.0},
    "contact_stiffness": {"above": 0.0},
}
#: Settings that are words, not numbers.
WORDS = ("flow", "law", "method", "energy_gain", "kernel", "adjoint")
FLOWS = ("auto", "exact", "runge-kutta")


def settings_of(name: str) -> tuple[str, ...]:
    """Settings of the solver ``name``: the fields of its class; empty for an unknown solver."""
    fields = dataclasses.fields(getattr(solvers, CLASSES[name])) if name in CLASSES else ()
    return tuple(f.name for f in fields if f.init and f.name not in OBJECTS)


def choose_solver(settings: Mapping[str, Any] | None = None, **overrides: Any) -> tuple[Any, dict]:
    """The solver and its settings by name, from a config's ``[solver]`` and overriding values.

    An override of None leaves the config's value; settings of the config for another solver than
    the requested one are left out. Raises :class:`ProblemError` for an unknown solver or
    flow, and for a setting that the solver does not have.
    """
    given = {k: v for k, v in dict(settings or {}).items() if v is not None}
    overrides = {k: v for k, v in overrides.items() if v is not None}
    own = _name(given)
    given |= overrides
    name = _name(given)
    require_one_of("solver", name, SOLVERS)
    allowed = settings_of(name)
    asked = given if own == name else overrides
    for key in asked:
        if key != "name" and key not in allowed:
            raise ProblemError(
                f"{key}: the solver {name} has no such setting{nearest(key, allowed)}; "
                f"it takes {', '.join(allowed)}"
            )
    for key in allowed:
        if key in given:
            _require(key, given[key])
    if "flow" in allowed:
        given["flow"] = str(given.get("flow", FLOWS[0])).replace("_", "-")
        require_one_of("flow", given["flow"], FLOWS)
    for key, what in REQUIRED.items():
        if key in allowed and key not in given:
            raise ProblemError(f"{key}: missing; the solver {name} needs {what}")
    chosen = {k: given[k] for k in allowed if k in given}
    return getattr(solvers, CLASSES[name])(**chosen), {"name": name, **chosen}


def _require(key: str, value: Any) -> None:
    """Raise :class:`ProblemError` for a value that the setting ``key`` does not allow."""
    from jfric.files.codec import LIMITS

    if key in WORDS:
        if not isinstance(value, str):
            raise ProblemError(f"{key}: found {short(value)}, expected a name")
        return
    if isinstance(value, str):
        raise ProblemError(f"{key}: found {quoted(value)}, expected a number")
    if key in COUNTS:
        require_count(key, value, *COUNTS[key])
    # Whole numbers may be too large for a float.
    limits = NUMBERS.get(key, {})
    held = abs(value) < 10**300 and math.isfinite(value)
    if not held or not all(LIMITS[name].holds(value, end) for name, end in limits.items()):
        is_share = "below" in limits or "at_most" in limits
        words = "lie between 0 and 1" if is_share else "be positive and finite"
        seconds = ", in seconds" if key in ("dt", "dt0") else ""
        raise ProblemError(f"{key}: found {short(value)}, must {words}{seconds}")


def parse_options(options: Iterable[str], **given: Any) -> dict[str, Any]:
    """``NAME=VALUE`` settings of the command line, with numbers converted, and those that are
    ``given`` by separate options (None: not given)."""
    from jfric.files.assignments import split_assignment

    result = {k: v for k, v in given.items() if v is not None}
    for option in options:
        name, text = split_assignment(option, "name=value such as width=1e-3", "--option")
        name = name.replace("-", "_")
        if name in result:
            raise ProblemError(f"--option: found {name!r} twice")
        result[name] = _number(text)
    return result


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _name(settings: Mapping[str, Any]) -> str:
    return str(settings.get("name", SOLVERS[0])).replace("_", "-")


def resolved(settings: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """The settings with ``auto`` replaced by the flow that it selects, if the solver has flows:
    exact if every mode is linear with constant coefficients."""
    if settings.get("flow") != "auto":
        return dict(settings)
    from jfric.system.assembly import has_linear_modes

    return {**settings, "flow": "exact" if has_linear_modes(problem) else "runge-kutta"}


def solver_label(settings: Mapping[str, Any], problem: Problem) -> str:
    """Name of a solver in tables: ``event-driven (exact)``, ``quasi-static``."""
    flow = resolved(settings, problem).get("flow")
    return f"{settings['name']} ({flow})" if flow else str(settings["name"])
