"""States of elements: their names and units."""

from __future__ import annotations

from jfric.system.bristle import AbstractBristle, DirectionalLoss, RateState
from jfric.system.description import AbstractProblem
from jfric.system.direction import kind
from jfric.system.hysteresis import HYSTERESIS
from jfric.system.motor import Heating, Winding
from jfric.system.state import State


def state_units(problem: AbstractProblem) -> dict[str, str]:
    """Units of all states, by their names in results: the label of the element, with a number where
    it has several."""
    found = {}
    for label, element in problem.labelled(*HYSTERESIS).items():
        count = element.sliders
        unit = "rad" if kind(element.direction, problem.dofs) == "rotation" else "m"
        names = [label] if count == 1 else [f"{label}.{i}" for i in range(1, count + 1)]
        found |= dict.fromkeys(names, unit)
    return found | {
        label: unit_of_state(element, kind(element.direction, problem.dofs))
        for label, element in problem.states().items()
    }


def unit_of_state(element: AbstractBristle | State | Winding | Heating, of_kind: str | None) -> str:
    """Unit of the state of an element along a direction of this kind."""
    if isinstance(element, State | Winding | Heating):
        return element.unit
    if isinstance(element, DirectionalLoss | RateState):
        return ""
    return "rad" if of_kind == "rotation" else "m"
