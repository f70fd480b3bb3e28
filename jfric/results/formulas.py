"""Formulas in quantities of a motion, bound to the problem that defines these quantities; and user
events in the form that the solver needs: functions of a point, and their changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jfric.errors import ProblemError, nearest, within
from jfric.results.pieces import Function, Point
from jfric.results.signals import Signal, look_up
from jfric.system.description import state_axis
from jfric.system.event import Event, event_labels
from jfric.system.formula import require_formula
from jfric.system.naming import find_path, get_parameter, parameters, path_dimension
from jfric.system.problem import Problem
from jfric.system.units import UnitError, dimensions_of, named


def bound(problem: Problem, where: str, what: str | Callable) -> Function:
    """Function of a point for ``what``, a text or itself such a function.

    Raises :class:`jfric.ProblemError`, with a message that starts with ``where``, for a text that
    is no formula in quantities of ``problem``.
    """
    if not isinstance(what, str):
        return what
    formula = require_formula(where, what, problem.parameters)
    found = {name: _quantity(problem, where, name)[0] for name in formula.names.values()}

    def call(point):
        return formula.value(lambda name: found[name](point), point.problem.parameters)

    return call


#: Parts of a problem whose numbers an event cannot change: they define start and geometry.
_FIXED = ("initial", "time", "parameters", "base", "body", "ground", "event", "matrices")


def target(problem: Problem, where: str, name: str) -> Signal | str:
    """Position, velocity or state with this ``name``, or the full path of a number of an element.

    A state is the velocity of a coordinate."""
    try:
        found = look_up(problem, name)[1]
    except ProblemError:
        found = None
    if isinstance(found, Signal) and found.of_motion:
        return found
    if isinstance(found, Signal) and found.field == "z":
        axis = state_axis(look_up(problem, name)[0].removeprefix("z."))
        if axis in problem.axes:
            return Signal("v", problem.axes.index(axis), found.unit)
    try:
        path = find_path(problem, name)
    except KeyError:
        path = ""
    fixed = path.startswith(tuple(f"{part}." for part in _FIXED)) or path.endswith(".gap")
    if path and not fixed:
        return path
    states = [axis for axis in problem.axes if axis not in problem.dofs]
    allowed = [*problem.dofs, *(f"v.{dof}" for dof in problem.dofs), *states]
    raise ProblemError(
        f"{where}: no position, velocity, state or number of an element {name!r} that an event can "
        f"change{nearest(name, [*allowed, *parameters(problem)])}; there are {', '.join(allowed)} "
        "and the paths of parameters (jfric show lists them)"
    )


def require_formulas(problem: Problem) -> None:
    """Raise :class:`jfric.ProblemError` for formulas of events that do not fit the problem."""
    for where, event in zip(event_labels(problem), problem.section("event").values(), strict=True):
        if isinstance(event.when, str):
            _measures(problem, f"{where}.when", event.when)
        for key, value in event.change if isinstance(event.change, tuple) else ():
            at = f"{where}.change.{key}"
            found = target(problem, at, key)
            if isinstance(found, str):
                measures = path_dimension(problem, found)
                unit = None if measures is None else measures.unit
            else:
                unit = found.unit
            measured = _measures(problem, at, value) if isinstance(value, str) else None
            if None not in (measured, unit) and measured != dimensions_of(unit):
                raise ProblemError(
                    f"{at}: found {value!r}{named(measured)}, expected one in {unit}"
                )


def _measures(problem: Problem, where: str, text: str) -> Any:
    formula = require_formula(where, text, problem.parameters)
    units = {name: _quantity(problem, where, name)[1] for name in formula.names.values()}
    if not formula.quantities and len(set(units.values())) < 2 and where.endswith(".when"):
        return None  # nothing to compare: units take long to import
    with within(f"{where}: {text!r} ", UnitError):
        return formula.dimensionality(units.__getitem__)


def _quantity(problem: Problem, where: str, name: str) -> tuple[Function, str]:
    """Quantity with this ``name``, and its unit."""
    if name == "t" and name not in problem.dofs:
        return (lambda point: point.t), "s"
    with within(f"{where}: "):
        found = look_up(problem, name)[1]
    return found, found.unit


class UserEvents(eqx.Module):
    """All user events of a resolved problem, in the order of its description."""

    problem: Problem
    names: tuple[str, ...] = eqx.field(static=True)
    events: tuple[Event, ...]
    functions: tuple[Callable, ...] = eqx.field(static=True)

    @property
    def count(self) -> int:
        """Number of events."""
        return len(self.names)

    def values(self, point: Point):
        """Values (e,) watched by the events, one for each."""
        found = []
        for name, function in zip(self.names, self.functions, strict=True):
            value = jnp.asarray(function(point), point.q.dtype)
            if value.shape != ():
                raise ProblemError(
                    f"{name}.when: found a value of shape {value.shape}, expected one number"
                )
            found.append(value)
        return jnp.stack(found)

    def mask(self, which: Callable[[Event], bool]) -> np.ndarray:
        """Mask (e,) of the events for which ``which`` is true."""
        return np.asarray([which(event) for event in self.events])

    def numbers(self) -> dict[str, Array]:
        """Numbers of the problem that events change, by path, before the first change."""
        found = {}
        for name, event in zip(self.names, self.events, strict=True):
            for key, _ in event.change if isinstance(event.change, tuple) else ():
                if isinstance(at := target(self.problem, f"{name}.change.{key}", key), str):
                    found[at] = jnp.asarray(get_parameter(self.problem, at))
        return found

    def changed(
        self, point: Point, fires, numbers: dict[str, Array]
    ) -> tuple[Array, Array, dict[str, Array]]:
        """Position, velocity and numbers by path after the changes by events in ``fires`` (e,), one
        after another."""
        for i, event in enumerate(self.events):
            if event.changes:
                q, v, new = self._change(i, event, point)
                point = point._replace(
                    q=jnp.where(fires[i], q, point.q), v=jnp.where(fires[i], v, point.v)
                )
                new = {path: jnp.where(fires[i], x, numbers[path]) for path, x in new.items()}
                numbers = numbers | new
        return point.q, point.v, numbers

    def _change(self, i: int, event: Event, point: Point):
        where, problem = f"{self.names[i]}.change", self.problem
        if callable(event.change):
            values: Any = event.change(point)
            if not isinstance(values, dict):
                raise ProblemError(
                    f"{where}: the function returned {type(values).__name__}, expected new "
                    "positions and velocities by name, such as {'v.x': 0.0}"
                )
        else:
            values = {k: bound(problem, f"{where}.{k}", x)(point) for k, x in event.change}
        new, numbers = {"q": point.q, "v": point.v}, {}
        for key, value in values.items():
            at = target(problem, f"{where}.{key}", key)
            value = jnp.asarray(value, point.q.dtype)
            if not isinstance(at, str):
                new[at.field] = new[at.field].at[at.index].set(value)
            elif callable(event.change):
                raise ProblemError(
                    f"{where}: the function returned {key!r}; a function changes positions, "
                    "velocities and states; give numbers of elements as texts by their paths"
                )
            else:
                numbers[at] = value
        return new["q"], new["v"], numbers


def user_events(problem: Problem) -> UserEvents | None:
    """User events of a resolved ``problem``; None if it has none."""
    group = problem.section("event")
    if not group:
        return None
    names = event_labels(problem)
    functions = tuple(
        bound(problem, f"{name}.when", event.when)
        for name, event in zip(names, group.values(), strict=True)
    )
    return UserEvents(problem, names, tuple(group.values()), functions)
