"""Events that the user defines: when they occur, and what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx

from jfric.errors import ProblemError
from jfric.system.description import AbstractProblem, element_label
from jfric.system.fields import texts_by_name, written

Passage = Literal["up", "down", "both"]
Action = Literal["record", "stop", "change"]


class Event(eqx.Module):
    """An instant at which ``when`` comes to zero; it is logged, and may end or change the motion.

    ``when``: text such as ``"x - 0.2 m"`` or ``"lambda_n.floor - $limit"`` (names of quantities as
    in observables, ``t``, ``$parameters``, quantities with units), or a JAX function of a
    :class:`jfric.results.pieces.Point` that is continuous between events. ``direction``: ``"up"``
    where ``when`` comes from negative values, ``"down"`` from positive ones, or ``"both"``.

    ``action``: ``"record"``, ``"stop"`` (the run ends there, with the flag ``STOPPED``), or
    ``"change"``. ``change``: new positions and velocities by name, ``{"v.x": "-0.5*v.x"}``, each a
    text, a number, or a function of a point; or one function of a point that returns numbers by
    name. Everything else stays: a new position stretches springs, and sliders slip where their
    limit is passed, but states (Dahl, Bouc-Wen, LuGre, ``State``) keep their values. With
    ``action="stop"`` the change is made first.

    ``when`` fires where it reaches zero, whether it then passes, turns or stays, and where a jump
    (an impact, another event's change) brings it to zero or beyond. If it is already zero, at the
    start or after firing, it does not fire until it has left zero and comes back.

    >>> import jfric
    >>> ball = jfric.Problem(
    ...     ("z",),
    ...     {
    ...         "mass": jfric.Mass("z", 1.0),
    ...         "load": jfric.Load("z", -10.0),
    ...         "event": {"floor": jfric.Event("z", "down", change={"v.z": "-0.5*v.z"})},
    ...     },
    ...     initial={"z": jfric.InitialState(5.0)},
    ...     time=1.5,
    ... )
    >>> [(row["contact"], round(row["time"], 3)) for row in jfric.simulate(ball).event_table()]
    [('event.floor', 1.0)]
    """

    when: str | Callable = eqx.field(**written("formula"))
    direction: Passage = eqx.field(static=True, default="both")
    action: Action = eqx.field(static=True, default="record")
    change: Any = eqx.field(default=None, converter=texts_by_name, **written("formulas"))

    @property
    def changes(self) -> bool:
        """Whether the event changes positions or velocities."""
        return self.change is not None

    @property
    def stops(self) -> bool:
        """Whether the event ends the run."""
        return self.action == "stop"


def event_labels(problem: Any) -> tuple[str, ...]:
    """Labels in results of the events that the user defines, in order."""
    return tuple(element_label("event", name) for name in problem.section("event"))


def require_event(problem: AbstractProblem, where: str, event: Event) -> None:
    """Raise :class:`jfric.ProblemError` for fields of an event that contradict each other."""
    del problem
    texts = [*event.change] if isinstance(event.change, tuple) else []
    for field, value in [("when", event.when), *((f"change.{k}", v) for k, v in texts)]:
        if not isinstance(value, str) and not callable(value):
            raise ProblemError(
                f"{where}.{field}: found {value!r}, expected a text such as 'x - 0.2 m' or a "
                "function of a point"
            )
    if not (event.change is None or callable(event.change) or isinstance(event.change, tuple)):
        raise ProblemError(
            f"{where}.change: found {event.change!r}, expected new positions and velocities by "
            "name, such as {'v.x': '-0.5*v.x'}"
        )
    if event.action == "change" and not event.changes:
        raise ProblemError(
            f"{where}.change: found none, action 'change' needs new positions or velocities, such "
            "as {'v.x': '-0.5*v.x'}"
        )
