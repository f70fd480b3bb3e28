"""User events in the form that the solver needs: functions of a point, and their changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jfric.errors import ProblemError
from jfric.results.formulas import bound, target
from jfric.results.pieces import Point
from jfric.system.event import Event, event_labels
from jfric.system.naming import get_parameter
from jfric.system.problem import Problem


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
